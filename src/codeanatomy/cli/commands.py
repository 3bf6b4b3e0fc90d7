"""One function per command: make a request from the options, call one function of `api`, print its result.

Each returns the exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from codeanatomy.api import building, history, reading
from codeanatomy.api.json_output import json_text, write_json
from codeanatomy.cli.requests import build_request, builds_to_compare, publish_request, repository
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

if TYPE_CHECKING:
    from codeanatomy import (
        BuildRecord,
        BuildResult,
        Changes,
        CodeAnatomyError,
        Freshness,
        Replay,
        SymbolDiff,
        Verification,
    )

MAX_PATHS = 5
MAX_DETAILS = 5
MAX_NAMES = 5
MAX_PLANNED_FILES = 30
MAX_SYMBOLS = 50
MAX_ROWS = 1000
"""The most that a command prints on a terminal without `--verbose`."""

_MARKS = {"added": "+", "removed": "-", "changed": "~"}


def build(options: argparse.Namespace) -> int:
    """Bring the graph up to date."""
    with _progress(options) as progress:
        result = building.build(build_request(options), listener=progress)
    if options.json:
        print_json(result.as_json())
    if not options.quiet:
        _print_warnings(result, options)
        _print_notes(result, options)
        print_message(_summary(result))
    return 0


def plan(options: argparse.Namespace) -> int:
    """What a build would do now."""
    with _progress(options) as progress:
        found = building.plan(build_request(options), listener=progress)
    if options.json:
        print_json(found.as_json())
    elif found.files:
        shown = found.files if options.verbose else found.files[:MAX_PLANNED_FILES]
        rows = [(file.path, file.reason_kind, file.reason_ref or "", file.caused_by or "") for file in shown]
        print_table(("file", "reason", "name", "caused by"), rows)
        if len(found.files) > len(shown):
            print_lines(f"… {len(found.files) - len(shown):,} more (--verbose shows all)")
    if options.verbose and not options.json:
        print_table(
            ("stage", "does", "files"), [(each["name"], each["does"], each["files"]) for each in found.described()]
        )
    if not options.quiet:
        reasons = f" ({'; '.join(found.plan.reasons)})" if found.plan.reasons else ""
        print_message(f"plan: {found.plan.mode}, {len(found.files):,} of {found.total:,} files{reasons}")
    return 0


def status(options: argparse.Namespace) -> int:
    """The last build, and whether the working tree has changed since."""
    found = building.status(build_request(options))
    if options.json:
        print_json(found.as_json())
    else:
        _print_status(found, options)
    return 1 if options.check and not found.fresh else 0


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
    kept = history.builds(repository(options))
    if options.json:
        print_json([each.as_json() for each in kept])
        return 0
    print_table(
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
        print_lines(f"{word:5} {each.build_id}  {_age(each)}{commit}")
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
    result = reading.sql(
        options.query,
        repository(options),
        build=options.build,
        timeout=options.timeout or None,
        max_memory_mb=options.max_memory_mb,
    )
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
        rows = result.rows()
        is_cut = sys.stdout.isatty() and not options.verbose
        print_table(result.columns, islice(rows, MAX_ROWS) if is_cut else rows)
        if is_cut and next(rows, None) is not None:
            print_lines(f"… more than {MAX_ROWS:,} rows (--verbose shows all; --csv and --json print all)")
    return 0


def look_up(options: argparse.Namespace) -> int:
    """Print the callers, callees, references or definition of a name, grouped by file."""
    found = getattr(reading, options.command)(options.name, repository(options), build=options.build)
    if options.json:
        print_json(found.as_json())
        return 0
    path = ""
    for line in found.lines:
        if line.path != path:
            path = line.path
            print_lines(path)
        confidence = "" if line.confidence == 1 else f"  ({line.method}, {line.confidence:.0%})"
        print_lines(f"{line.line:6}  {line.what}{confidence}", *([f"        {line.text}"] if line.text else []))
    if not options.quiet:
        files = len({line.path for line in found.lines})
        names = ", ".join(found.names[:MAX_NAMES]) + (", …" if len(found.names) > MAX_NAMES else "")
        print_message(f"{options.command} of {names}: {len(found.lines):,} in {files:,} files")
    return 0


def why(options: argparse.Namespace) -> int:
    """Why a file was rebuilt, or why not."""
    found = reading.why(options.path, repository(options), build=options.build)
    if options.json:
        print_json(found.as_json())
        return 0
    was = "was rebuilt" if found.rebuilt else "was not rebuilt"
    print_lines(f"{found.path} {was} in build {found.build_id}: {found.reason}")
    for depth, step in enumerate(found.steps[1:], start=1):
        print_lines(f"{'  ' * depth}because of {step.path}: {step}")
    if found.rebuilt and found.tables:
        print_lines(f"rows changed in {', '.join(found.tables)}")
    elif found.rebuilt and not found.rows_changed:
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

    found = diagnosis.doctor(repository(options), deep=options.deep)
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


def _print_warnings(result: BuildResult, options: argparse.Namespace) -> None:
    """Files that could not be read or parsed as a whole."""
    problems = result.problems if options.verbose else result.problems[:MAX_PATHS]
    for problem in problems:
        print_message(f"warning: {problem.path}: {problem.reason}: {problem.detail}")
    if len(result.problems) > len(problems):
        more = len(result.problems) - len(problems)
        print_message(f"warning: {more:,} more files with problems (--verbose shows all)")


def _print_notes(result: BuildResult, options: argparse.Namespace) -> None:
    """What a user may not expect of the build."""
    if result.index is None or result.index["provider"] is None:
        cause = "--index none" if options.index == "none" else "pyrefly is not installed"
        print_message(f"note: no semantic index ({cause}): types are unknown")
    elif options.strategy == "symbol_closure":
        print_message("note: --strategy symbol_closure needs --index none: used hybrid")
    if result.limits:
        count = f"{sum(result.limits.values()):,} names in {len(result.limits):,} files"
        print_message(f"note: {count} have too many possible values to track (status 'limit' in answers)")


def _summary(result: BuildResult) -> str:
    files, tables = result.files, result.tables
    graph = f"{tables['cpg_nodes']['rows']:,} nodes, {tables['cpg_edges']['rows']:,} edges"
    if result.mode == "noop":
        return f"build {result.build_id}: up to date, {files['total']:,} files, {graph} ({result.seconds:.1f} s)"
    counted = f"{files['total']:,} files"
    if result.mode == "incremental":
        changed = sum(files[kind] for kind in ("added", "modified", "deleted", "renamed"))
        unchanged = f" ({files['unchanged_rows']:,} with rows unchanged)" if files["unchanged_rows"] else ""
        counted = f"{changed:,} changed, {files['rebuilt']:,} of {counted} rebuilt{unchanged}"
    return (
        f"build {result.build_id}: {result.mode}, {counted}, {graph} "
        f"({result.seconds:.1f} s, peak {result.peak_memory_mb:,} MB)"
    )


def _print_status(found: Freshness, options: argparse.Namespace) -> None:
    last = found.build
    print_lines(
        f"last build  {last.build_id}  {_age(last)}  {last.mode}",
        f"git commit  {last.git_commit or '-'}",
        f"graph       {last.tables['cpg_nodes'].rows:,} nodes, {last.tables['cpg_edges'].rows:,} edges",
        f"freshness   {'up to date' if found.fresh else 'stale: ' + '; '.join(found.reasons)}",
    )
    for change, paths in found.changes().items():
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


def _age(build: BuildRecord) -> str:
    seconds = int((datetime.now(UTC) - build.created_at).total_seconds())
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"
