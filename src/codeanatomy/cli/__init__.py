"""The command line: parse options, call one function of `api`, print its result."""
