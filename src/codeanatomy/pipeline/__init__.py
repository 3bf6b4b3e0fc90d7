"""Builds: the order of the stages. Each stage's own logic lives in its room."""
