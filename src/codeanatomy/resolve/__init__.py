"""Resolution: questions of contents answered across the repository. Plain Python over Arrow; no Spark, no store."""

from codeanatomy.resolve.answers import answer_files
from codeanatomy.resolve.index import Index
from codeanatomy.resolve.resolver import Resolver

RESOLVER_REVISION = 1
"""To be raised whenever some question gets another answer."""

__all__ = ["RESOLVER_REVISION", "Index", "Resolver", "answer_files"]
