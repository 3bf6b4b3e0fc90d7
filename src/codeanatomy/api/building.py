"""Verbs that compare a repository with its state: build, plan, status, verify, replay."""
# ruff: noqa: PLC0415 - see the package's docstring

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.api.requests import BuildRequest
    from codeanatomy.pipeline.freshness import Freshness
    from codeanatomy.pipeline.preview import Preview
    from codeanatomy.pipeline.progress import Listener
    from codeanatomy.pipeline.replay import Replay
    from codeanatomy.pipeline.request import BuildResult
    from codeanatomy.pipeline.verify import Verification
    from codeanatomy.pipeline.warm import Warm


def build(
    request: BuildRequest,
    *,
    listener: Listener | None = None,
    spark: SparkSession | None = None,
    warm: Warm | None = None,
) -> BuildResult:
    """Bring the graph of a repository up to date, on `spark` if given, else on a session of its own.

    A process that builds again and again gives `warm`, which has a session and what earlier builds on it left.
    """
    from codeanatomy.pipeline.run import build as run_build

    return run_build(_normalized(request), listener=listener, spark=warm.spark if warm else spark, warm=warm)


def plan(request: BuildRequest, *, listener: Listener | None = None) -> Preview:
    """What `build` would do now, and why; writes nothing."""
    from codeanatomy.pipeline.preview import preview

    return preview(_normalized(request), listener=listener)


def status(request: BuildRequest) -> Freshness:
    """The last build, and what changed in the working tree since."""
    from codeanatomy.pipeline.freshness import freshness

    return freshness(_normalized(request))


def verify(
    request: BuildRequest, *, stored: bool = False, listener: Listener | None = None, spark: SparkSession | None = None
) -> Verification:
    """Compare the last build with one from scratch, or (`stored`) what is on disk with what the last build wrote."""
    if stored:
        from codeanatomy.pipeline.stored import verify_stored

        return verify_stored(request, listener=listener, spark=spark)
    from codeanatomy.pipeline.verify import verify as run_verify

    return run_verify(_normalized(request), listener=listener, spark=spark)


def replay(
    request: BuildRequest, build: str, *, listener: Listener | None = None, spark: SparkSession | None = None
) -> Replay:
    """Run a build again from its pinned inputs, whatever the tree is now, and compare."""
    from codeanatomy.pipeline.replay import replay as run_replay

    return run_replay(request, build, listener=listener, spark=spark)


def _normalized(request: BuildRequest) -> BuildRequest:
    """The request with every source root in its one spelling; one outside the repository is an error."""
    if not request.roots:
        return request
    from codeanatomy.repo.config import source_root

    return replace(request, roots=tuple(source_root(root, "--root") for root in request.roots))
