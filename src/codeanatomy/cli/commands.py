"""One function per command: call the room that does it, print what it says. No logic of its own.

Rooms are imported inside the functions: `codeanatomy sql` must not pay for what only `build` needs.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeanatomy.cli.terminal import ProgressLine, data_stream, fail, show, show_json, show_table, size, tell
from codeanatomy.errors import InputError
from codeanatomy.query.json_output import json_text, print_json

if TYPE_CHECKING:
    from codeanatomy.pipeline.progress import Listener
    from codeanatomy.pipeline.replay import Replay
    from codeanatomy.pipeline.request import BuildRequest, BuildResult, Problem
    from codeanatomy.pipeline.verify import Verification
    from codeanatomy.query.graph import Graph
    from codeanatomy.query.symbol_diff import SymbolDiff
    from codeanatomy.store.builds import BuildRecord
    from codeanatomy.store.state import State

SHOWN_PROBLEMS = 5
SHOWN_SYMBOLS = 50
SHOWN_IMPACTED = 30
SHOWN_ROWS = 1000

_MARKS = {"added": "+", "removed": "-", "changed": "~"}


def build(options: argparse.Namespace) -> int:
    """Bring the graph up to date."""
    from codeanatomy.pipeline.run import build as run_build

    with _progress(options) as listener:
        result = run_build(_request(options), listener=listener)
    if options.json:
        show_json(result.as_json())
    if not options.quiet:
        _tell_problems(result.problems, options)
        if result.index is None or result.index["provider"] is None:
            asked = "as asked" if options.index == "none" else "pyrefly is not installed"
            tell(f"note: without a semantic index ({asked}): types are not known")
        elif options.strategy == "symbol_closure":
            tell("note: an index sees more than symbol_closure does: the strategy is hybrid")
        if result.limits:
            count = f"{sum(result.limits.values()):,} names in {len(result.limits):,} files"
            tell(f"note: {count} have too many possible values to follow them all (status 'limit' in answers)")
        tell(_summary(result))
    return 0


def plan(options: argparse.Namespace) -> int:
    """What a build would do now."""
    from codeanatomy.pipeline.preview import preview

    with _progress(options) as listener:
        found = preview(_request(options), listener=listener)
    if options.json:
        show_json(found.as_json())
    else:
        shown = found.files if options.verbose else found.files[:SHOWN_IMPACTED]
        rows = [(file.path, file.reason_kind, file.reason_ref or "", file.caused_by or "") for file in shown]
        if rows:
            show_table(("file", "reason", "what", "caused by"), rows)
        if len(found.files) > len(shown):
            show(f"… {len(found.files) - len(shown):,} more (--verbose shows all)")
    if not options.quiet:
        why = f" ({'; '.join(found.plan.reasons)})" if found.plan.reasons else ""
        tell(f"plan: {found.plan.mode}, {len(found.files):,} of {found.total:,} files{why}")
    return 0


def why(options: argparse.Namespace) -> int:
    """Why a file was rebuilt, or why not."""
    from codeanatomy.query.why import why as ask_why

    found = ask_why(_graph(options), options.path)
    if options.json:
        show_json(found.as_json())
        return 0
    was = "was rebuilt" if found.rebuilt else "was not rebuilt"
    show(f"{found.path} {was} in build {found.build_id}: {found.reason}")
    for depth, step in enumerate(found.steps[1:], start=1):
        show(f"{'  ' * depth}because of {step.path}: {step}")
    if found.rebuilt and found.steps:
        show(f"rows changed in {', '.join(found.tables)}" if found.tables else "no row of it changed")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Compare the last build with one from scratch."""
    from codeanatomy.pipeline.stored import verify_stored
    from codeanatomy.pipeline.verify import verify as run_verify

    with _progress(options) as listener:
        found = (verify_stored if options.stored else run_verify)(_request(options), listener=listener)
    return _tell_comparison(found, options)


def replay(options: argparse.Namespace) -> int:
    """Run a build again from its pinned inputs and compare."""
    from codeanatomy.pipeline.replay import replay as run_replay

    with _progress(options) as listener:
        found = run_replay(_request(options), options.build, listener=listener)
    return _tell_comparison(found, options)


def _tell_comparison(found: Verification | Replay, options: argparse.Namespace) -> int:
    """Show the rows that differ, and the verdict."""
    if options.json:
        show_json(found.as_json())
    else:
        for name, compared in found.tables.items():
            if not compared.as_pinned:
                show(f"{name}: its rows are not those that the build wrote")
            for row in compared.examples:
                show(f"{name}: {json_text(row)}")
    if not options.quiet:
        differing = [name for name, compared in found.tables.items() if not compared.equal]
        rows = sum(compared.rows for compared in found.tables.values())
        verdict = f"differs in {', '.join(differing)}" if differing else f"equal: {rows:,} rows"
        tell(f"{options.command} {found.build_id}: {verdict} ({found.seconds:.1f} s)")
    return 0 if found.equal else 1


def status(options: argparse.Namespace) -> int:
    """The last build, and whether the tree still looks like it."""
    from codeanatomy.pipeline.freshness import freshness

    found = freshness(_request(options))
    if options.json:
        show_json(found.as_json())
    else:
        last = found.build
        show(f"last build  {last.build_id}  {_age(last)}  {last.mode}")
        show(f"git commit  {last.git_commit or '-'}")
        show(f"graph       {last.tables['cpg_nodes'].rows:,} nodes, {last.tables['cpg_edges'].rows:,} edges")
        show(f"freshness   {'up to date' if found.fresh else 'stale: ' + '; '.join(found.reasons)}")
        for change, paths in found.changes().items():
            for path in paths if options.verbose else paths[:SHOWN_PROBLEMS]:
                show(f"  {change:9} {path}")
            if len(paths) > SHOWN_PROBLEMS and not options.verbose:
                show(f"  … {len(paths) - SHOWN_PROBLEMS:,} more {change} (--verbose shows all)")
    return 1 if options.check and not found.fresh else 0


def builds(options: argparse.Namespace) -> int:
    """The builds that are kept, newest first."""
    from codeanatomy.store.builds import list_builds

    kept = list_builds(_state(options))[::-1]
    if options.json:
        show_json([_build_json(each) for each in kept])
        return 0
    show_table(
        ("build", "when", "mode", "commit", "files", "nodes", "edges", "seconds"),
        [
            (
                each.build_id,
                f"{each.created_at:%Y-%m-%d %H:%M:%S}",
                f"{each.mode} to {each.rolled_back_to}" if each.rolled_back_to else each.mode,
                (each.git_commit or "")[:10],
                each.figures["files"]["total"],
                each.tables["cpg_nodes"].rows,
                each.tables["cpg_edges"].rows,
                round(each.figures["seconds"], 1),
            )
            for each in kept
        ],
    )
    return 0


def rollback(options: argparse.Namespace) -> int:
    """Make an earlier build the current one again."""
    from codeanatomy.store.builds import check_whole, current_build, find_build, publish, rollback_build
    from codeanatomy.store.lease import hold_lease

    state = _state(options)
    with hold_lease(state.location):
        target = find_build(state, options.build)
        check_whole(state, target)
        made = rollback_build(target, current_build(state), datetime.now(UTC))
        publish(state, made)
    if options.json:
        show_json(_build_json(made))
    if not options.quiet:
        tell(f"rolled back to {target.build_id} as build {made.build_id}; the next build starts from it")
    return 0


def diff(options: argparse.Namespace) -> int:
    """What changed in the graph between two builds."""
    from codeanatomy.query.history import choose_builds, compare_builds, is_build_name

    named = [word for word in (options.a, options.b) if word is not None]
    if named and options.repo == "." and not is_build_name(named[-1]):
        options.repo = named.pop()  # builds may be left out before it
    state = _state(options)
    found = compare_builds(state, *choose_builds(state, *named))
    if options.json:
        show_json(found.as_json())
        return 0
    for word, each in (("from", found.before), ("to", found.after)):
        commit = f"  commit {each.git_commit[:10]}" if each.git_commit else ""
        show(f"{word:5} {each.build_id}  {_age(each)}{commit}")
    show("files " + ", ".join(f"{len(paths):,} {change}" for change, paths in found.files.items()))
    counts = [(name, t.added, t.removed, t.changed, t.moved) for name, t in found.tables.items()]
    show_table(("rows", "added", "removed", "changed", "moved"), counts)
    _print_symbols(found.symbols, options)
    return 0


def changes(options: argparse.Namespace) -> int:
    """Rows added and removed since a consumer's last acknowledged build."""
    from codeanatomy.query.changes import DIRECTIONS, changes_since

    found = changes_since(_state(options), options.cursor, build=options.build, reset=options.reset)
    if options.json and not options.out:
        if error := found.print_json(sys.stdout):
            return fail(error.message, error.hint, error.exit_code, as_json=False)  # it is in the object
    else:
        counts = found.write_parquet(options.out) if options.out else found.count()
        if options.json:
            show_json(found.as_json(counts))
        else:
            show_table(("table", *DIRECTIONS), [(name, *rows.values()) for name, rows in counts.items()])
    if options.ack:
        sys.stdout.flush()  # what the consumer did not get is not acknowledged
        found.acknowledge()
    if not options.quiet:
        began = found.before.build_id if found.before else "an empty copy"
        moved = "acknowledged" if options.ack else "--ack acknowledges it"
        tell(f"cursor {found.cursor}: from {began} to build {found.after.build_id} ({moved})")
    return 0


def gc(options: argparse.Namespace) -> int:
    """Forget old builds and delete what only they needed."""
    from codeanatomy.store.lease import hold_lease
    from codeanatomy.store.retention import collect_garbage

    state = _state(options)
    older_than = timedelta(days=options.days) if options.days is not None else None
    with hold_lease(state.location) as lease:
        report = collect_garbage(state, lease, keep=options.keep, older_than=older_than, dry_run=options.dry_run)
    if options.json:
        show_json(
            {"builds": list(report.builds), "files": report.files, "bytes": report.bytes, "dry_run": options.dry_run}
        )
    if not options.quiet:
        verb = "would drop" if options.dry_run else "dropped"
        tell(f"{verb} {len(report.builds)} builds, {report.files:,} files, {size(report.bytes)}")
    return 0


def sql(options: argparse.Namespace) -> int:
    """Answer one SELECT."""
    from codeanatomy.engine.memory import machine_memory_mb
    from codeanatomy.query.answers import ROWS_AT_ONCE, print_csv, rows_of, write_arrow
    from codeanatomy.query.sql import Limits

    limits = Limits(options.timeout or None, options.max_memory_mb or machine_memory_mb() // 2)
    answer = _graph(options).read(options.query, limits, ROWS_AT_ONCE)
    if options.arrow:
        count = write_arrow(answer, options.arrow)
        if options.json:
            show_json({"file": options.arrow, "rows": count})
        if not options.quiet:
            tell(f"wrote {count:,} rows to {options.arrow}")
    elif options.csv:
        print_csv(answer, data_stream())
    elif options.json:
        if error := print_json({"columns": answer.schema.names, "rows": rows_of(answer)}, sys.stdout):
            return fail(error.message, error.hint, error.exit_code, as_json=False)  # it is in the object
    else:
        rows = rows_of(answer)
        is_cut = sys.stdout.isatty() and not options.verbose
        show_table(answer.schema.names, islice(rows, SHOWN_ROWS) if is_cut else rows)
        if is_cut and next(rows, None) is not None:
            show(f"… more than {SHOWN_ROWS:,} rows (--verbose shows all; --csv and --json print all)")
    return 0


def look_up(options: argparse.Namespace) -> int:
    """Answer one of the usual questions, grouped by file."""
    answer = getattr(_graph(options), options.command)(options.name)
    if options.json:
        show_json(answer.as_json())
        return 0
    path = ""
    for place in answer.places:
        if place.path != path:
            path = place.path
            show(path)
        sure = "" if place.confidence == 1 else f"  ({place.method}, {place.confidence:.0%})"
        show(f"{place.line:6}  {place.by}{sure}", *([f"        {place.text}"] if place.text else []))
    if not options.quiet:
        files = len({place.path for place in answer.places})
        names = ", ".join(answer.names[:SHOWN_PROBLEMS]) + (", …" if len(answer.names) > SHOWN_PROBLEMS else "")
        tell(f"{options.command} of {names}: {len(answer.places):,} in {files:,} files")
    return 0


def publish(options: argparse.Namespace) -> int:
    """Write the graph for other tools."""
    from codeanatomy.query.publish import publish as run_publish

    with _progress(options) as listener:
        found = run_publish(
            _graph(options),
            options.out,
            options.format,
            tables=options.table,
            canonical=options.determinism == "canonical",
            on_table=listener.stage,
        )
    if options.json:
        show_json(found.as_json())
    if not options.quiet:
        rows = sum(found.tables.values())
        what = f"{rows:,} documents" if found.format == "scip" else f"{len(found.tables)} tables, {rows:,} rows"
        tell(f"published build {found.build_id} to {options.out}: {what}")
    return 0


def doctor(options: argparse.Namespace) -> int:
    """What is there, what is wrong, what to do."""
    from codeanatomy.cli.doctor import examine
    from codeanatomy.repo.scan import checked_root

    checked_root(Path(options.repo))
    findings = examine(_request(options), deep=options.deep)
    if options.json:
        show_json([{"what": f.what, "ok": f.ok, "found": f.found, "todo": f.todo} for f in findings])
    else:
        for finding in findings:
            show(f"{'✓' if finding.ok else '✗'} {finding.what:8} {finding.found}")
            if finding.todo:
                show(f"           → {finding.todo}")
    wrong = [finding.what for finding in findings if not finding.ok]
    return 0 if not wrong else 4 if wrong == ["state"] else 3


def _print_symbols(symbols: Sequence[SymbolDiff], options: argparse.Namespace) -> None:
    """One line per symbol, with what changed in it below."""
    for symbol in symbols if options.verbose else symbols[:SHOWN_SYMBOLS]:
        show(f"{_MARKS[symbol.change]} {symbol.name}  ({symbol.kind}, {symbol.path})")
        details = symbol.details if options.verbose else symbol.details[:SHOWN_PROBLEMS]
        for detail in details:
            show(f"    {' '.join(detail.split())}")
        if len(symbol.details) > len(details):
            show(f"    … and {len(symbol.details) - len(details):,} more")
    if len(symbols) > SHOWN_SYMBOLS and not options.verbose:
        show(f"… and {len(symbols) - SHOWN_SYMBOLS:,} more; --json has all")


def _request(options: argparse.Namespace) -> BuildRequest:
    from codeanatomy.pipeline.request import BuildRequest
    from codeanatomy.repo.config import source_root

    scan: dict[str, Any] = {}
    if "include" in options:
        scan = {
            "repo_id": options.repo_id,
            "include": tuple(options.include or ()),
            "exclude": tuple(options.exclude or ()),
            "index": options.index,
            "scip": options.scip,
            "roots": tuple(source_root(root, "--root") for root in options.root or ()),
            "max_file_bytes": options.max_file_mb << 20,
        }
    engine: dict[str, Any] = {}
    if "profile" in options:
        engine = {
            "profile": options.profile,
            "master": options.master,
            "remote": options.remote,
            "spark_conf": _pairs(options.conf, "--conf"),
        }
    return BuildRequest(
        repo=options.repo,
        state=options.state,
        full=getattr(options, "full", False),
        strategy=getattr(options, "strategy", "hybrid"),
        max_impact_depth=getattr(options, "max_impact_depth", None),
        scratch=getattr(options, "scratch", None),
        moved=getattr(options, "moved", False),
        storage_options=_pairs(options.storage_option, "--storage-option"),
        **scan,
        **engine,
    )


def _state(options: argparse.Namespace) -> State:
    from codeanatomy.store.location import locate_state
    from codeanatomy.store.state import open_state

    return open_state(locate_state(options.repo, options.state, _pairs(options.storage_option, "--storage-option")))


def _graph(options: argparse.Namespace) -> Graph:
    from codeanatomy.query.graph import open_graph

    return open_graph(
        options.repo,
        state=options.state,
        build=options.build,
        storage_options=_pairs(options.storage_option, "--storage-option"),
    )


@contextmanager
def _progress(options: argparse.Namespace) -> Iterator[Listener]:
    from codeanatomy.pipeline.progress import Silent

    if options.quiet or not sys.stderr.isatty():
        yield Silent()
        return
    with ProgressLine() as line:
        yield line


def _summary(result: BuildResult) -> str:
    files, tables = result.files, result.tables
    graph = f"{tables['cpg_nodes']['rows']:,} nodes, {tables['cpg_edges']['rows']:,} edges"
    if result.mode == "noop":
        return f"build {result.build_id}: up to date, {files['total']:,} files, {graph} ({result.seconds:.1f} s)"
    counted = f"{files['total']:,} files"
    if result.mode == "incremental":
        changed = sum(files[kind] for kind in ("added", "modified", "deleted", "renamed"))
        waste = f", {files['unchanged_rows']:,} with rows unchanged" if files["unchanged_rows"] else ""
        counted = f"{changed:,} changed, {files['rebuilt']:,} of {counted} rebuilt{waste}"
    return (
        f"build {result.build_id}: {result.mode}, {counted}, {graph} "
        f"({result.seconds:.1f} s, peak {result.peak_memory_mb:,} MB)"
    )


def _tell_problems(problems: Sequence[Problem], options: argparse.Namespace) -> None:
    for problem in problems if options.verbose else problems[:SHOWN_PROBLEMS]:
        tell(f"warning: {problem.path}: {problem.reason}: {problem.detail}")
    if len(problems) > SHOWN_PROBLEMS and not options.verbose:
        tell(f"warning: {len(problems) - SHOWN_PROBLEMS:,} more files with problems (--verbose shows all)")


def _build_json(build: BuildRecord) -> dict[str, Any]:
    return {
        "build_id": build.build_id,
        "parent_build_id": build.parent_build_id,
        "created_at": build.created_at.isoformat(),
        "mode": build.mode,
        "rolled_back_to": build.rolled_back_to,
        "git_commit": build.git_commit,
        "snapshot_id": build.snapshot_id,
        "files": build.figures["files"],
        "tables": {
            name: {"rows": pin.rows, "digest": pin.digest.hash, "version": pin.version}
            for name, pin in build.tables.items()
        },
        "seconds": round(build.figures["seconds"], 3),
    }


def _age(build: BuildRecord) -> str:
    seconds = int((datetime.now(UTC) - build.created_at).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if any(not separator for _, separator, _ in pairs):
        raise InputError(f"{option} takes KEY=VALUE")
    return {key: value for key, _, value in pairs}
