"""The catalogue: every dataset, column and kind, written once. Everything else is checked against it."""
