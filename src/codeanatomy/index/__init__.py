"""Semantic documents: run an indexer, read what it reports, say it in byte spans and portable symbols.

Knows neither Spark nor rules. Nothing of the analysed tree is executed, and none of its configuration is obeyed.
"""
