"""CodeAnatomy: a code property graph of a Python repository, kept fresh.

>>> import codeanatomy as ca
>>> result = ca.build(ca.BuildRequest(repo="path"))
>>> graph = ca.open("path")
>>> graph.sql("SELECT node_kind, count(*) FROM cpg_nodes GROUP BY ALL")

Names are imported when first used: Python workers on Spark load this package for its extractor alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codeanatomy.errors import CodeAnatomyError, InputError, MachineError, StateError
    from codeanatomy.pipeline.request import BuildRequest, BuildResult
    from codeanatomy.pipeline.run import build
    from codeanatomy.pipeline.verify import Verification, verify
    from codeanatomy.query.graph import Graph
    from codeanatomy.query.graph import open_graph as open  # noqa: A004 - `ca.open` reads as it should

__version__ = "0.1.0"

__all__ = [
    "BuildRequest",
    "BuildResult",
    "CodeAnatomyError",
    "Graph",
    "InputError",
    "MachineError",
    "StateError",
    "Verification",
    "build",
    "open",
    "verify",
]

_HOMES = {
    "BuildRequest": "pipeline.request",
    "BuildResult": "pipeline.request",
    "build": "pipeline.run",
    "Verification": "pipeline.verify",
    "verify": "pipeline.verify",
    "Graph": "query.graph",
    "open": "query.graph",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'codeanatomy' has no attribute {name!r}")
    home = import_module(f"codeanatomy.{_HOMES.get(name, 'errors')}")
    return getattr(home, "open_graph" if name == "open" else name)
