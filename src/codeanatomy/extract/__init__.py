"""Extraction: bytes of one content to facts. Plain Python; sees no paths, no other files and no Spark."""

from codeanatomy.extract.extractor import EXTRACTOR_VERSION, extract_batch

__all__ = ["EXTRACTOR_VERSION", "extract_batch"]
