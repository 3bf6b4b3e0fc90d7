"""Resolution: questions of contents answered across the repository. Plain Python over Arrow; no Spark, no store."""

from codeanatomy.resolve.answers import Asked, answer_files
from codeanatomy.resolve.index import CONTENT_COLUMNS, ContentNames, Index
from codeanatomy.resolve.resolver import Resolver

RESOLVER_REVISION = 3
"""To be raised whenever some question gets another answer."""

__all__ = ["CONTENT_COLUMNS", "RESOLVER_REVISION", "Asked", "ContentNames", "Index", "Resolver", "answer_files"]
