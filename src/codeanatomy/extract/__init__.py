"""Extraction: bytes of one content to facts, in layers. Plain Python; sees no paths, no other files and no Spark."""

from codeanatomy.extract.extractor import LAYER_VERSIONS, extract_batch
from codeanatomy.extract.renewal import renewed_facts, stale_layers

__all__ = ["LAYER_VERSIONS", "extract_batch", "renewed_facts", "stale_layers"]
