"""One function per command: make a request from the options, call one function of `api`, print its result.

Each returns the exit code.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from codeanatomy.api import building, history, reading
from codeanatomy.api.json_output import json_text, write_json
from codeanatomy.cli.requests import build_request, builds_to_compare, engine_options, publish_request, repository
from codeanatomy.cli.terminal import (
    ProgressLine,
    data_stream,
    format_bytes,
    print_error,
    print_json,
    print_lines,
    print_message,
    print_table,
)
from codeanatomy.errors import CodeAnatomyError, StateError
from codeanatomy.service.runner import Runner, SqlQuery

if TYPE_CHECKING:
    from codeanatomy import Changes, Replay, SymbolDiff, Update, Verification

MAX_PATHS = 5
MAX_AFFECTED = 3
MAX_DETAILS = 5
MAX_NAMES = 5
MAX_PLANNED_FILES = 30
MAX_SYMBOLS = 50
MAX_ROWS = 1000
"""The most that a command prints on a terminal without `--verbose`."""

_MARKS = {"added": "+", "removed": "-", "changed": "~"}


def build(options: argparse.Namespace) -> int:
    """Bring the graph up to date."""
    request, runner = build_request(options), _runner(options)
    with _progress(options) as progress:
        result = runner.build(request, progress)
    if options.json:
        print_json(result)
    if not options.quiet:
        _print_warnings(result, options)
        _print_notes(result, options)
        print_message(_summary(result))
    runner.start_beside(request)
    return 0


def plan(options: argparse.Namespace) -> int:
    """What a build would do now."""
    with _progress(options) as progress:
        found = _runner(options).plan(build_request(options), progress)
    files, stages = found["files"], found["stages"]
    if options.json:
        print_json(found)
    elif files:
        shown = files if options.verbose else files[:MAX_PLANNED_FILES]
        rows = [(file["path"], file["reason_kind"], file["reason_ref"], file["caused_by"]) for file in shown]
        print_table(("file", "reason", "name", "caused by"), rows)
        if len(files) > len(shown):
            print_lines(f"… {len(files) - len(shown):,} more (--verbose shows all)")
    if options.verbose and not options.json:
        print_table(("stage", "does", "files"), [(each["name"], each["does"], each["files"]) for each in stages])
    if not options.quiet:
        reasons = f" ({'; '.join(found['reasons'])})" if found["reasons"] else ""
        total = stages[0]["files"]  # the first stage scans them
        print_message(f"plan: {found['mode']}, {len(files):,} of {total:,} files{reasons}")
    return 0


def status(options: argparse.Namespace) -> int:
    """The last build, and whether the working tree has changed since."""
    found = _runner(options).status(build_request(options))
    if options.json:
        print_json(found)
    else:
        _print_status(found, options)
    return 1 if options.check and not found["fresh"] else 0


def verify(options: argparse.Namespace) -> int:
    """Compare the last build with one from scratch."""
    with _progress(options) as progress:
        found = building.verify(build_request(options), stored=options.stored, listener=progress)
    return _print_comparison(found, options)


def replay(options: argparse.Namespace) -> int:
    """Run a build again from its pinned inputs and compare."""
    with _progress(options) as progress:
        found = building.replay(build_request(options), options.build, listener=progress)
    return _print_comparison(found, options)


def builds(options: argparse.Namespace) -> int:
    """The builds that are kept, newest first."""
    kept = _runner(options).builds(repository(options))
    if options.json:
        print_json(kept)
        return 0
    print_table(
        ("build", "when", "mode", "commit", "files", "nodes", "edges", "seconds"),
        [
            (
                each["build_id"],
                f"{datetime.fromisoformat(each['created_at']):%Y-%m-%d %H:%M:%S}",
                f"{each['mode']} to {each['rolled_back_to']}" if each["rolled_back_to"] else each["mode"],
                (each["git_commit"] or "")[:10],
                each["files"]["total"],
                *_graph_rows(each),
                round(each["seconds"], 1),
            )
            for each in kept
        ],
    )
    return 0


def rollback(options: argparse.Namespace) -> int:
    """Make an earlier build the current one again."""
    record = history.rollback(options.build, repository(options))
    if options.json:
        print_json(record.as_json())
    if not options.quiet:
        print_message(f"rolled back to {record.rolled_back_to} as build {record.build_id}")
    return 0


def gc(options: argparse.Namespace) -> int:
    """Drop old builds and delete what only they needed."""
    report = history.gc(repository(options), keep=options.keep, days=options.days, dry_run=options.dry_run)
    if options.json:
        print_json(report.as_json())
    if not options.quiet:
        verb = "would drop" if options.dry_run else "dropped"
        print_message(f"{verb} {len(report.builds)} builds, {report.files:,} files, {format_bytes(report.bytes)}")
    return 0


def diff(options: argparse.Namespace) -> int:
    """What changed in the graph between two builds."""
    found = history.diff(*builds_to_compare(options))
    if options.json:
        print_json(found.as_json())
        return 0
    for word, each in (("from", found.before), ("to", found.after)):
        commit = f"  commit {each.git_commit[:10]}" if each.git_commit else ""
        print_lines(f"{word:5} {each.build_id}  {_age(each.created_at.isoformat())}{commit}")
    print_lines("files " + ", ".join(f"{len(paths):,} {change}" for change, paths in found.files.items()))
    counts = [(name, t.added, t.removed, t.changed, t.moved) for name, t in found.tables.items()]
    print_table(("rows", "added", "removed", "changed", "moved"), counts)
    _print_symbols(found.symbols, options)
    return 0


def changes(options: argparse.Namespace) -> int:
    """Rows added and removed since a consumer's last acknowledged build."""
    found = history.changes(options.cursor, repository(options), build=options.build, reset=options.reset)
    if error := _print_changes(found, options):
        return _print_interruption(error)
    if options.ack:
        sys.stdout.flush()  # only what the consumer received is acknowledged
        found.acknowledge()
    if not options.quiet:
        start = f"build {found.before.build_id}" if found.before else "the start"
        acknowledged = "acknowledged" if options.ack else "not acknowledged: use --ack"
        print_message(f"cursor {found.cursor}: from {start} to build {found.after.build_id} ({acknowledged})")
    return 0


def sql(options: argparse.Namespace) -> int:
    """Answer one SELECT."""
    form = "csv" if options.csv else "json" if options.json else "rows"
    limits = {"build": options.build, "timeout": options.timeout or None, "max_memory_mb": options.max_memory_mb}
    if not options.arrow:
        answer = _runner(options).sql(SqlQuery(options.query, form, **limits), repository(options))
        if answer is not None:
            return _print_answer(answer, options)
    result = reading.sql(options.query, repository(options), **limits)
    if options.arrow:
        count = result.write_arrow(options.arrow)
        if options.json:
            print_json({"file": options.arrow, "rows": count})
        if not options.quiet:
            print_message(f"wrote {count:,} rows to {options.arrow}")
    elif options.csv:
        result.write_csv(data_stream())
    elif options.json:
        if error := write_json({"columns": result.columns, "rows": result.rows()}, sys.stdout):
            return _print_interruption(error)
    else:
        _print_rows(result.columns, result.rows(), options)
    return 0


def _print_answer(answer: Iterator[str], options: argparse.Namespace) -> int:
    """Print the engine's answer to a SELECT as it comes."""
    if options.csv or options.json:
        stream = data_stream() if options.csv else sys.stdout
        try:
            for text in answer:
                stream.write(text)
        except CodeAnatomyError as error:
            if options.csv:
                raise
            return _print_interruption(error)
    else:
        from codeanatomy.service.rows import row_from  # noqa: PLC0415 - only here

        _print_rows(row_from(next(answer)), map(row_from, answer), options)
    return 0


def _print_rows(columns: Sequence[str], rows: Iterator[Sequence[object]], options: argparse.Namespace) -> None:
    is_cut = sys.stdout.isatty() and not options.verbose
    print_table(columns, islice(rows, MAX_ROWS) if is_cut else rows)
    if is_cut and next(rows, None) is not None:
        print_lines(f"… more than {MAX_ROWS:,} rows (--verbose shows all; --csv and --json print all)")


def look_up(options: argparse.Namespace) -> int:
    """Print the callers, callees, references or definition of a name, grouped by file."""
    found = _runner(options).look_up(options.command, options.name, repository(options), options.build)
    if options.json:
        print_json(found)
        return 0
    lines, path = found["lines"], ""
    for line in lines:
        if line["path"] != path:
            path = line["path"]
            print_lines(path)
        confidence = "" if line["confidence"] == 1 else f"  ({line['method']}, {line['confidence']:.0%})"
        text = [f"        {line['text']}"] if line["text"] else []
        print_lines(f"{line['line']:6}  {line['what']}{confidence}", *text)
    if not options.quiet:
        files = len({line["path"] for line in lines})
        names = ", ".join(found["names"][:MAX_NAMES]) + (", …" if len(found["names"]) > MAX_NAMES else "")
        print_message(f"{options.command} of {names}: {len(lines):,} in {files:,} files")
    return 0


def entry_points(options: argparse.Namespace) -> int:
    """Print the entry points of a kind, or all, grouped by file."""
    found = reading.entry_points(repository(options), kind=options.kind, build=options.build)
    if options.json:
        print_json(found.as_json())
        return 0
    path = ""
    for each in found.found:
        if each.path != path:
            path = each.path
            print_lines(path)
        detail = f" {each.detail!r}" if each.detail is not None else ""
        confidence = "" if each.confidence == 1 else f", {each.confidence:.0%}"
        print_lines(f"{each.line:6}  {each.name}  {each.kind}{detail}  ({each.evidence}{confidence})")
    if not options.quiet:
        files = len({each.path for each in found.found})
        print_message(f"{len(found.found):,} entry points in {files:,} files")
    return 0


def why(options: argparse.Namespace) -> int:
    """Why a file was rebuilt, or why not."""
    found = _runner(options).why(options.path, repository(options), options.build)
    if options.json:
        print_json(found)
        return 0
    was = "was rebuilt" if found["rebuilt"] else "was not rebuilt"
    print_lines(f"{found['path']} {was} in build {found['build_id']}: {found['reason']}")
    for depth, step in enumerate(found["chain"][1:], start=1):
        print_lines(f"{'  ' * depth}because of {step['path']}: {step['reason']}")
    if found["rebuilt"] and found["tables"]:
        print_lines(f"rows changed in {', '.join(found['tables'])}")
    elif found["rebuilt"] and not found["rows_changed"]:
        print_lines("rows unchanged")
    return 0


def publish(options: argparse.Namespace) -> int:
    """Write the graph for other tools."""
    with _progress(options) as progress:
        found = reading.publish(publish_request(options), repository(options), build=options.build, listener=progress)
    if options.json:
        print_json(found.as_json())
    if not options.quiet:
        rows = sum(found.tables.values())
        content = f"{rows:,} documents" if found.format == "scip" else f"{len(found.tables)} tables, {rows:,} rows"
        print_message(f"published build {found.build_id} to {options.out}: {content}")
    return 0


def doctor(options: argparse.Namespace) -> int:
    """Check what a build needs; exit code 4 if only the state is damaged, 3 if the machine lacks something."""
    from codeanatomy.api import diagnosis  # noqa: PLC0415 - imports what it checks
    from codeanatomy.service.engine import check_engine  # noqa: PLC0415

    found = diagnosis.doctor(repository(options), deep=options.deep)
    found = diagnosis.Diagnosis((*found.checks, check_engine()))
    if options.json:
        print_json(found.as_json())
    else:
        for check in found.checks:
            print_lines(f"{'✓' if check.ok else '✗'} {check.name:8} {check.detail}")
            if check.hint:
                print_lines(f"           → {check.hint}")
    if found.ok:
        return 0
    return 4 if all(check.name == diagnosis.STATE for check in found.failed) else 3


def watch(options: argparse.Namespace) -> int:
    """Build whenever the repository has changed; Ctrl-C ends it."""
    from codeanatomy.service.watch import WatchRequest, watch  # noqa: PLC0415 - loads much that others do not need

    runner, began = _runner(options), datetime.now(UTC)
    request = WatchRequest(build_request(options), options.engine, options.quiet_ms / 1000, runner.notify)
    updates = failures = 0
    try:
        for update in watch(request):
            updates, failures = updates + (update.error is None), failures + (update.error is not None)
            _print_update(update, options)
            sys.stdout.flush()
            if options.exec and update.build_id:
                _execute(options, update.build_id)
    except KeyboardInterrupt:
        print_message(f"watched for {_age(began.isoformat(), '')}: {updates:,} updates, {failures:,} failed")
    return 130


def engine(options: argparse.Namespace) -> int:
    """Start or stop the engine, or tell what it does."""
    from codeanatomy.service import engine as service  # noqa: PLC0415 - other commands do not need it

    if options.action == "start":
        found = service.start_engine(engine_options(options))
    else:
        found = service.stop_engine() if options.action == "stop" else service.engine_status()
    if options.json:
        print_json(found.as_json())
    elif found.running and found.pid is not None:
        where = f", {found.master}" if found.master else ""
        idle = "rehearsing" if found.rehearsing else "idle" if found.ready else "starting"
        state = ", ".join(found.under_way) if found.under_way else idle
        print_lines(
            f"engine      {found.version}, pid {found.pid}, started {_age(found.started_at)} ({found.profile}{where})",
            f"doing       {state}; {found.requests:,} requests so far",
            f"memory      {found.memory_mb:,} MB, of {found.max_memory_mb:,} MB that it may keep",
            f"ends        after {found.idle_minutes:g} minutes without a request",
            *(f"state       {uri}" for uri in found.states),
            f"log         {found.log}",
        )
    elif not options.quiet:
        detail = f" ({found.detail})" if found.detail else ""
        print_message(f"an engine runs, but cannot be used{detail}" if found.running else "no engine runs")
    return 1 if options.action == "stop" and found.running else 0


def _print_update(update: Update, options: argparse.Namespace) -> None:
    if options.json:
        print_json(update.as_json())
    elif update.error:
        print_message(f"{update.seconds:.1f} s: {update.error}")
    elif not options.quiet:
        parts = [f"{update.changed:,} changed, {update.rebuilt:,} rebuilt"]
        if update.edges_added is not None:
            parts.append(f"+{update.edges_added:,} −{update.edges_removed:,} edges")
        if update.affected:
            more = ", …" if len(update.affected) > MAX_AFFECTED else ""
            parts.append(f"{', '.join(update.affected[:MAX_AFFECTED])}{more} affected")
        print_lines(f"{update.seconds:.1f} s: {', '.join(parts)}")


def _execute(options: argparse.Namespace, build: str) -> None:
    """Run the user's command in the user's shell; with --json, stdout is for our lines alone."""
    import subprocess  # noqa: PLC0415 - takes longer to import than most commands take

    done = subprocess.run(
        [os.environ.get("SHELL") or "/bin/sh", "-c", options.exec],
        env={**os.environ, "CODEANATOMY_BUILD": build},
        stdout=sys.stderr if options.json else None,
        check=False,
    )
    if done.returncode:
        print_message(f"{options.exec}: exit code {done.returncode}")


def _runner(options: argparse.Namespace) -> Runner:
    return Runner(options.engine, (lambda _: None) if options.quiet else print_message)


def _print_warnings(result: Mapping[str, Any], options: argparse.Namespace) -> None:
    """Files that could not be read or parsed as a whole."""
    found = result["problems"]
    shown = found if options.verbose else found[:MAX_PATHS]
    for problem in shown:
        print_message(f"warning: {problem['path']}: {problem['reason']}: {problem['detail']}")
    if len(found) > len(shown):
        print_message(f"warning: {len(found) - len(shown):,} more files with problems (--verbose shows all)")


def _print_notes(result: Mapping[str, Any], options: argparse.Namespace) -> None:
    """What a user may not expect of the build."""
    if result["index"] is None or result["index"]["provider"] is None:
        cause = "--index none" if options.index == "none" else "pyrefly is not installed"
        print_message(f"note: no semantic index ({cause}): types are unknown")
    elif options.strategy == "symbol_closure":
        print_message("note: --strategy symbol_closure needs --index none: used hybrid")
    if (limits := result["limits"])["questions"]:
        count = f"{limits['questions']:,} names in {limits['files']:,} files"
        print_message(f"note: {count} have too many possible values to track (status 'limit' in answers)")


def _summary(result: Mapping[str, Any]) -> str:
    build, files, seconds = (result[name] for name in ("build_id", "files", "seconds"))
    graph = "{:,} nodes, {:,} edges".format(*_graph_rows(result))
    if result["mode"] == "noop":
        return f"build {build}: up to date, {files['total']:,} files, {graph} ({seconds:.1f} s)"
    counted = f"{files['total']:,} files"
    if result["mode"] == "incremental":
        changed = sum(files[kind] for kind in ("added", "modified", "deleted", "renamed"))
        unchanged = f" ({files['unchanged_rows']:,} with rows unchanged)" if files["unchanged_rows"] else ""
        counted = f"{changed:,} changed, {files['rebuilt']:,} of {counted} rebuilt{unchanged}"
    peak = result["peak_memory_mb"]
    return f"build {build}: {result['mode']}, {counted}, {graph} ({seconds:.1f} s, peak {peak:,} MB)"


def _graph_rows(build: Mapping[str, Any]) -> tuple[int, int]:
    """How many nodes and edges a build has."""
    try:
        nodes, edges = (build["tables"][name]["rows"] for name in ("cpg_nodes", "cpg_edges"))
    except KeyError as missing:
        raise StateError(f"the state is damaged: build {build['build_id']} has no {missing}") from None
    return nodes, edges


def _print_status(found: Mapping[str, Any], options: argparse.Namespace) -> None:
    print_lines(
        f"last build  {found['build_id']}  {_age(found['created_at'])}  {found['mode']}",
        f"git commit  {found['git_commit'] or '-'}",
        "graph       {:,} nodes, {:,} edges".format(*_graph_rows(found)),
        f"freshness   {'up to date' if found['fresh'] else 'stale: ' + '; '.join(found['reasons'])}",
    )
    for change, paths in found["changes"].items():
        shown = paths if options.verbose else paths[:MAX_PATHS]
        print_lines(*(f"  {change:9} {path}" for path in shown))
        if len(paths) > len(shown):
            print_lines(f"  … {len(paths) - len(shown):,} more {change} (--verbose shows all)")


def _print_comparison(found: Verification | Replay, options: argparse.Namespace) -> int:
    """Print the rows that differ, and whether any do; the exit code."""
    if options.json:
        print_json(found.as_json())
    else:
        for name, compared in found.tables.items():
            if not compared.as_pinned:
                print_lines(f"{name}: rows differ from those the build wrote")
            print_lines(*(f"{name}: {json_text(row)}" for row in compared.examples))
    if not options.quiet:
        differing = [name for name, compared in found.tables.items() if not compared.equal]
        rows = sum(compared.rows for compared in found.tables.values())
        verdict = f"differs in {', '.join(differing)}" if differing else f"equal: {rows:,} rows"
        print_message(f"{options.command} {found.build_id}: {verdict} ({found.seconds:.1f} s)")
    return 0 if found.equal else 1


def _print_changes(found: Changes, options: argparse.Namespace) -> CodeAnatomyError | None:
    """Print the changed rows, or how many there are; the error that ended a list of rows, if one did."""
    if options.json and not options.out:
        with found.rows() as rows:
            return write_json(found.as_json(rows), sys.stdout)
    counts = found.write_parquet(options.out) if options.out else found.count()
    if options.json:
        print_json(found.as_json(counts))
    else:
        print_table(("table", "added", "removed"), [(name, *rows.values()) for name, rows in counts.items()])
    return None


def _print_symbols(symbols: Sequence[SymbolDiff], options: argparse.Namespace) -> None:
    """One line per symbol, with what changed in it below."""
    shown = symbols if options.verbose else symbols[:MAX_SYMBOLS]
    for symbol in shown:
        print_lines(f"{_MARKS[symbol.change]} {symbol.name}  ({symbol.kind}, {symbol.path})")
        details = symbol.details if options.verbose else symbol.details[:MAX_DETAILS]
        print_lines(*(f"    {' '.join(detail.split())}" for detail in details))
        if len(symbol.details) > len(details):
            print_lines(f"    … {len(symbol.details) - len(details):,} more (--verbose shows all)")
    if len(symbols) > len(shown):
        print_lines(f"… {len(symbols) - len(shown):,} more (--verbose shows all)")


def _print_interruption(error: CodeAnatomyError) -> int:
    """Print the error that ended a JSON object, which already contains it; the exit code."""
    return print_error(error.message, error.hint, error.exit_code, as_json=False)


@contextmanager
def _progress(options: argparse.Namespace) -> Iterator[ProgressLine | None]:
    """A progress line, if there is a terminal to show it."""
    if options.quiet or not sys.stderr.isatty():
        yield None
        return
    with ProgressLine() as line:
        yield line


def _age(moment: str, suffix: str = " ago") -> str:
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}{suffix}"
    return f"{seconds} s{suffix}"
