"""Rules: SQL files with contracts. There is no other way to make rows."""
