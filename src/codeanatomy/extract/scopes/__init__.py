"""The layer `scopes`: which binding each name refers to."""
