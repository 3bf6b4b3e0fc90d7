"""Impact: which files a change can reach, and why. Plain Python over Arrow; it reads no state and writes nothing."""
