"""Resolution: answers the questions of contents over all files. Plain Python over Arrow; no Spark, no store."""

from codeanatomy.resolve.answers import Asked, answer_files
from codeanatomy.resolve.index import CONTENT_COLUMNS, ContentNames, Index
from codeanatomy.resolve.resolver import Resolver

__all__ = ["CONTENT_COLUMNS", "Asked", "ContentNames", "Index", "Resolver", "answer_files"]
