"""The catalogue: every dataset, column, kind and id, written once. Everything else is checked against it."""
