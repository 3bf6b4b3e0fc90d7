"""Resolution: answers the questions of contents over all files. Plain Python over Arrow; no Spark, no store."""

from codeanatomy.resolve.answers import Asked, answer_files
from codeanatomy.resolve.index import CONTENT_COLUMNS, ContentNames, Index
from codeanatomy.resolve.resolver import Resolver
from codeanatomy.resolve.slots import Flow
from codeanatomy.resolve.solver import flow_after, flow_of

__all__ = [
    "CONTENT_COLUMNS",
    "Asked",
    "ContentNames",
    "Flow",
    "Index",
    "Resolver",
    "answer_files",
    "flow_after",
    "flow_of",
]
