"""Rules: SQL files with contracts. All rows of the graph come from rules."""
