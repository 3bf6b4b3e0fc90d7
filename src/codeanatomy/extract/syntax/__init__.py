"""The layer `syntax`: definitions, names, calls, imports and assignments, as they are written."""
