"""The layer `scopes`: which binding each name means."""
