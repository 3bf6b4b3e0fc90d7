"""Queries: read one pinned build. Small questions are answered without Spark."""
