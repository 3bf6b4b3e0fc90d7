"""CodeAnatomy: a code property graph of a Python repository, kept fresh.

>>> import codeanatomy as ca
>>> result = ca.build(ca.BuildRequest(repo="path"))
>>> graph = ca.open("path")
>>> graph.sql("SELECT node_kind, count(*) FROM cpg_nodes GROUP BY ALL")

There is a function for each command (`ca.status`, `ca.callers`, `ca.diff`, …), with the request and result types they
use. Names are imported when first used: Python workers on Spark load this package for its extractor alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codeanatomy.api.building import build, plan, replay, status, verify
    from codeanatomy.api.diagnosis import Check, Diagnosis, doctor
    from codeanatomy.api.history import builds, changes, diff, gc, rollback
    from codeanatomy.api.reading import (
        callees,
        callers,
        definition,
        entry_points,
        open,  # noqa: A004
        publish,
        refs,
        sql,
        why,
    )
    from codeanatomy.api.requests import BuildRequest, PublishRequest, Repository
    from codeanatomy.errors import CodeAnatomyError, InputError, MachineError, StateError
    from codeanatomy.pipeline.freshness import Freshness
    from codeanatomy.pipeline.preview import Preview
    from codeanatomy.pipeline.progress import Listener
    from codeanatomy.pipeline.replay import Replay
    from codeanatomy.pipeline.request import BuildResult
    from codeanatomy.pipeline.verify import Verification
    from codeanatomy.pipeline.warm import Warm
    from codeanatomy.query.build_diff import BuildDiff
    from codeanatomy.query.changes import Changes
    from codeanatomy.query.entry_points import EntryPoints
    from codeanatomy.query.graph import Graph
    from codeanatomy.query.lookup import LookupResult
    from codeanatomy.query.publish import Publication
    from codeanatomy.query.result import QueryResult
    from codeanatomy.query.symbol_diff import SymbolDiff
    from codeanatomy.query.why import Explanation
    from codeanatomy.service.engine import EngineOptions, EngineStatus, engine_status, start_engine, stop_engine
    from codeanatomy.service.watch import Update, WatchRequest, watch
    from codeanatomy.store.builds import BuildRecord
    from codeanatomy.store.retention import GcReport

__version__ = "0.1.0"

__all__ = [
    "BuildDiff",
    "BuildRecord",
    "BuildRequest",
    "BuildResult",
    "Changes",
    "Check",
    "CodeAnatomyError",
    "Diagnosis",
    "EngineOptions",
    "EngineStatus",
    "EntryPoints",
    "Explanation",
    "Freshness",
    "GcReport",
    "Graph",
    "InputError",
    "Listener",
    "LookupResult",
    "MachineError",
    "Preview",
    "Publication",
    "PublishRequest",
    "QueryResult",
    "Replay",
    "Repository",
    "StateError",
    "SymbolDiff",
    "Update",
    "Verification",
    "Warm",
    "WatchRequest",
    "build",
    "builds",
    "callees",
    "callers",
    "changes",
    "definition",
    "diff",
    "doctor",
    "engine_status",
    "entry_points",
    "gc",
    "open",
    "plan",
    "publish",
    "refs",
    "replay",
    "rollback",
    "sql",
    "start_engine",
    "status",
    "stop_engine",
    "verify",
    "watch",
    "why",
]

_HOMES = {
    "api.building": ("build", "plan", "replay", "status", "verify"),
    "api.diagnosis": ("Check", "Diagnosis", "doctor"),
    "api.history": ("builds", "changes", "diff", "gc", "rollback"),
    "api.reading": ("callees", "callers", "definition", "entry_points", "open", "publish", "refs", "sql", "why"),
    "api.requests": ("BuildRequest", "PublishRequest", "Repository"),
    "errors": ("CodeAnatomyError", "InputError", "MachineError", "StateError"),
    "pipeline.freshness": ("Freshness",),
    "pipeline.preview": ("Preview",),
    "pipeline.progress": ("Listener",),
    "pipeline.replay": ("Replay",),
    "pipeline.request": ("BuildResult",),
    "pipeline.verify": ("Verification",),
    "pipeline.warm": ("Warm",),
    "query.build_diff": ("BuildDiff",),
    "query.changes": ("Changes",),
    "query.entry_points": ("EntryPoints",),
    "query.graph": ("Graph",),
    "query.lookup": ("LookupResult",),
    "query.publish": ("Publication",),
    "query.result": ("QueryResult",),
    "query.symbol_diff": ("SymbolDiff",),
    "query.why": ("Explanation",),
    "service.engine": ("EngineOptions", "EngineStatus", "engine_status", "start_engine", "stop_engine"),
    "service.watch": ("Update", "WatchRequest", "watch"),
    "store.builds": ("BuildRecord",),
    "store.retention": ("GcReport",),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"codeanatomy.{module}"), name)
    raise AttributeError(f"module 'codeanatomy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
