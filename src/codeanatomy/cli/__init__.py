"""The command line: a thin face over builds and queries."""
