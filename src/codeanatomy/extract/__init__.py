"""Extraction: from the bytes of one content to facts, in layers. Plain Python; knows no paths, other files or Spark."""

from codeanatomy.extract.extractor import extract_batch
from codeanatomy.extract.renewal import renewed_facts, stale_layers

__all__ = ["extract_batch", "renewed_facts", "stale_layers"]
