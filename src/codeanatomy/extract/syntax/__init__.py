"""The layer `syntax`: what is written where."""
