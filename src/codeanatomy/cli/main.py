"""The `codeanatomy` command: parse, call, print. Every error is one line on stderr and an exit code."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from codeanatomy import __version__
from codeanatomy.api.failures import unexpected
from codeanatomy.api.reading import SQL_TIMEOUT
from codeanatomy.api.requests import FORMATS
from codeanatomy.cli import commands
from codeanatomy.cli.options import Parser, asks_for_json, real_number, whole_number, with_defaults
from codeanatomy.cli.terminal import print_error, print_message
from codeanatomy.errors import CodeAnatomyError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]

PROFILES = ("prod_fast", "dev_debug", "memory_tight")
STRATEGIES = ("hybrid", "symbol_closure", "import_closure")
INDEXES = ("auto", "pyrefly", "scip", "none")
DETERMINISM = ("fast", "stable", "canonical")

INTERRUPTED, BROKEN_PIPE = 130, 141
"""Exit codes of a process that a signal ended, as shells report them."""

ENGINE_MODES = ("off", "auto", "require")
ENGINE_ACTIONS = ("start", "stop", "status")

MAX_DAYS = 36_525


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    owns_process = arguments is None
    arguments = sys.argv[1:] if arguments is None else arguments
    as_json = asks_for_json(arguments)
    os.environ.setdefault("RUST_LOG", "error")  # delta-rs warns on stderr of each place without credentials it tried
    try:
        options = with_defaults(parser(), arguments)
        as_json = options.json
        code: int = options.run(options)
        if sys.stdout is not None:  # None: it was closed by whoever started this process
            sys.stdout.flush()
    except CodeAnatomyError as error:
        return print_error(error.message, error.hint, error.exit_code, as_json=as_json)
    except KeyboardInterrupt:
        code = print_error("interrupted", "the last build is unchanged", INTERRUPTED, as_json=as_json)
        if owns_process:
            _exit(code)
        return code
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has stopped
        return BROKEN_PIPE
    except Exception as error:
        if "--verbose" in arguments:
            print_message(*traceback.format_exc().splitlines())
        failure = unexpected(error)
        return print_error(failure.message, failure.hint, failure.exit_code, as_json=as_json)
    if owns_process:
        _exit(code)
    return code


def _exit(code: int) -> NoReturn:
    """End the process without the interpreter's clean-up: it takes time, and DuckDB can complain on stderr in it."""
    atexit._run_exitfuncs()
    with suppress(OSError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def parser() -> Parser:
    """Every command and its options."""
    top = Parser(prog="codeanatomy", description="A code property graph of a Python repository, kept fresh.")
    top.add_argument("--version", action="version", version=f"codeanatomy {__version__}")
    chosen = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    build = _command(chosen, "build", commands.build, "bring the graph up to date", "codeanatomy build ~/src/django")
    build.add_argument("--full", action="store_true", help="build everything, even if nothing changed")
    build.add_argument(
        "--determinism",
        choices=DETERMINISM,
        default="stable",
        help="order of rows in data files: any (fast), by file (stable) or total (canonical); the rows are the same "
        "(default: stable)",
    )
    _update_options(build)
    _scan_options(build)
    _engine_options(build)
    _engine_use(build)

    plan = _command(
        chosen,
        "plan",
        commands.plan,
        "show what a build would do now, and why; writes nothing",
        "codeanatomy plan --json",
    )
    plan.add_argument("--full", action="store_true", help="plan a full build")
    _update_options(plan)
    _scan_options(plan)
    _engine_options(plan)
    _engine_use(plan)

    why = _command(
        chosen,
        "why",
        commands.why,
        "explain why a file was rebuilt in the last build, or why not",
        "codeanatomy why pkg/mod.py",
        "path",
    )
    why.add_argument("--build", metavar="ID", help="the build to explain (default: the last)")
    _engine_use(why)

    verify = _command(
        chosen, "verify", commands.verify, "compare the last build with one from scratch", "codeanatomy verify --json"
    )
    verify.add_argument(
        "--stored", action="store_true", help="only check that the files on disk are those the last build wrote"
    )
    _scan_options(verify)
    _engine_options(verify)

    replay = _command(
        chosen,
        "replay",
        commands.replay,
        "run a build again from its pinned inputs, whatever the tree is now, and compare",
        "codeanatomy replay 20260301T09",
        "build",
    )
    _engine_options(replay, scratch="temporary directory; on a cluster, one that the workers share")

    status = _command(
        chosen,
        "status",
        commands.status,
        "show the last build, and whether the working tree has changed since",
        "codeanatomy status",
    )
    status.add_argument("--check", action="store_true", help="exit 1 if the working tree has changed")
    _scan_options(status)
    _engine_use(status)

    builds = _command(chosen, "builds", commands.builds, "list the builds that are kept", "codeanatomy builds")
    _engine_use(builds)

    _command(
        chosen,
        "rollback",
        commands.rollback,
        "make an earlier build the current one again",
        "codeanatomy rollback 20260301T09",
        "build",
    )

    _command(
        chosen,
        "diff",
        commands.diff,
        "show what changed in the graph from one build (default: the previous) to another (default: the last)",
        "codeanatomy diff 20260301T09 20260302T10",
        "a?",
        "b?",
    )

    changes = _command(
        chosen,
        "changes",
        commands.changes,
        "print the rows added and removed since a consumer's last acknowledged build",
        "codeanatomy changes --cursor search-index --out delta --ack",
    )
    changes.add_argument("--cursor", required=True, metavar="NAME", help="name of the consumer")
    changes.add_argument("--ack", action="store_true", help="move the cursor to the reported build")
    changes.add_argument("--reset", action="store_true", help="start over: report everything as added")
    changes.add_argument("--build", metavar="ID", help="report up to this build (default: the last)")
    changes.add_argument("--out", metavar="DIR", help="write Parquet files to this directory, replacing earlier ones")

    gc = _command(chosen, "gc", commands.gc, "drop old builds and delete their files", "codeanatomy gc --keep 3")
    gc.add_argument(
        "--keep", type=whole_number(1), default=10, metavar="N", help="how many builds to keep at least (default: 10)"
    )
    gc.add_argument("--days", type=real_number(MAX_DAYS), metavar="D", help="keep builds of the last D days as well")
    gc.add_argument("--dry-run", action="store_true", help="print what would be deleted, delete nothing")

    sql = _command(
        chosen,
        "sql",
        commands.sql,
        "run a read-only SQL query over the graph",
        'codeanatomy sql "SELECT node_kind, count(*) FROM cpg_nodes GROUP BY ALL"',
        "query",
    )
    sql.add_argument("--build", metavar="ID", help="the build to read (default: the last)")
    sql.add_argument("--csv", action="store_true", help="print CSV")
    sql.add_argument(
        "--timeout",
        type=real_number(MAX_DAYS * 86_400),
        default=SQL_TIMEOUT,
        metavar="SECONDS",
        help=f"stop a query that takes longer; 0: never (default: {SQL_TIMEOUT:.0f})",
    )
    sql.add_argument(
        "--max-memory-mb",
        type=whole_number(1),
        metavar="MB",
        help="memory of the query before it spills to disk (default: half of the machine's)",
    )
    sql.add_argument("--arrow", metavar="FILE", help="write an Arrow IPC file instead of printing")
    _engine_use(sql)

    for name, purpose in (
        ("callers", "find who calls a function, method or class"),
        ("callees", "find what a function or module calls"),
        ("refs", "find where a name is used"),
        ("definition", "find where a name is defined"),
    ):
        lookup = _command(chosen, name, commands.look_up, purpose, f"codeanatomy {name} pkg.mod.name", "name")
        lookup.add_argument("--build", metavar="ID", help="the build to read (default: the last)")
        _engine_use(lookup)

    entry_points = _command(
        chosen,
        "entry-points",
        commands.entry_points,
        "list what something outside the repository calls: routes, commands, tests, scripts",
        "codeanatomy entry-points --kind flask_route",
    )
    entry_points.add_argument("--kind", metavar="KIND", help="only this kind (default: all)")
    entry_points.add_argument("--build", metavar="ID", help="the build to read (default: the last)")

    publish = _command(
        chosen,
        "publish",
        commands.publish,
        "write the graph for other tools",
        "codeanatomy publish --out graph --format duckdb",
    )
    publish.add_argument(
        "--out", required=True, metavar="DIR", help="directory to write, replacing an earlier publication"
    )
    publish.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="(default: parquet)")
    publish.add_argument("--build", metavar="ID", help="the build to publish (default: the last)")
    publish.add_argument("--table", action="append", metavar="NAME", help="only this dataset; may be repeated")
    publish.add_argument(
        "--props-json", action="store_true", help="also write properties that are lists or objects (cpg_props_json)"
    )
    publish.add_argument(
        "--diagnostics",
        action="store_true",
        help="also write what the build did, and why: the tables of its run bundle",
    )
    publish.add_argument(
        "--determinism",
        choices=DETERMINISM,
        default="stable",
        help="order of rows: any (fast), that of the build (stable), or total, so that the same graph gives the same "
        "bytes (canonical) (default: stable)",
    )

    watch = _command(
        chosen,
        "watch",
        commands.watch,
        "build whenever the repository has changed, until it is interrupted",
        "codeanatomy watch --exec 'codeanatomy status'",
    )
    watch.add_argument(
        "--exec", metavar="COMMAND", help="run this after each update; CODEANATOMY_BUILD names the build"
    )
    watch.add_argument(
        "--quiet-ms",
        type=whole_number(1),
        default=100,
        metavar="MS",
        help="build when nothing has changed for so long (default: 100)",
    )
    _update_options(watch)
    _scan_options(watch)
    _engine_options(watch)
    _engine_use(watch)

    engine = _command(
        chosen,
        "engine",
        commands.engine,
        "start or stop the process that keeps Spark warm for other commands, or show what it does",
        "codeanatomy engine start",
        about_repository=False,
    )
    engine.add_argument("action", choices=ENGINE_ACTIONS, metavar="start|stop|status")
    engine.add_argument(
        "--idle-minutes",
        type=real_number(MAX_DAYS * 1_440),
        default=30.0,
        metavar="N",
        help="end after so long without a request (default: 30)",
    )
    engine.add_argument(
        "--max-memory-mb",
        type=whole_number(1),
        metavar="MB",
        help="memory that it may keep between requests (default: half of the machine's)",
    )
    engine.add_argument(
        "--rehearsals",
        type=whole_number(0),
        default=8,
        metavar="N",
        help="updates of a sample to begin with, so that the first of yours is quick (default: 8)",
    )
    _spark_options(engine)

    doctor = _command(
        chosen, "doctor", commands.doctor, "check Python, Java, Spark, the indexer and the state", "codeanatomy doctor"
    )
    doctor.add_argument("--deep", action="store_true", help="also read and check every row of the last build")
    return top


def _command(
    chosen: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    purpose: str,
    example: str,
    *arguments: str,
    about_repository: bool = True,
) -> Parser:
    """Add a command with the options of all commands; its own arguments (`?`: optional) precede the repository."""
    command = chosen.add_parser(
        name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.", epilog=f"example: {example}"
    )
    command.set_defaults(run=run)
    for argument in arguments:
        bare = argument.removesuffix("?")
        command.add_argument(bare, nargs="?" if argument != bare else None, metavar=bare.upper())
    if about_repository:
        _repository_options(command)
    command.add_argument("--config", metavar="FILE", help="TOML file to read options from")
    command.add_argument("--json", action="store_true", help="print data as JSON on stdout")
    command.add_argument("--quiet", action="store_true", help="print only data and errors")
    command.add_argument("--verbose", action="store_true", help="print more")
    return command


def _repository_options(command: Parser) -> None:
    command.add_argument(
        "repo", nargs="?", default=".", metavar="REPO", help="the repository (default: the current directory)"
    )
    command.add_argument("--state", metavar="DIR", help="directory of the state (default: REPO/.codeanatomy)")
    command.add_argument(
        "--storage-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="option of the object store that holds the state; may be repeated",
    )


def _engine_use(command: Parser) -> None:
    command.add_argument(
        "--engine",
        choices=ENGINE_MODES,
        default="auto",
        help="use the engine: never (off), if one runs (auto; a build at a terminal starts one for later), or only "
        "(require) (default: auto)",
    )


def _scan_options(command: Parser) -> None:
    command.add_argument(
        "--include", action="append", metavar="GLOB", help="scan only files that match; may be repeated"
    )
    command.add_argument("--exclude", action="append", metavar="GLOB", help="skip files that match; may be repeated")
    command.add_argument(
        "--root", action="append", metavar="DIR", help="source root, where module names start; may be repeated"
    )
    command.add_argument(
        "--max-file-mb", type=whole_number(1), default=10, metavar="MB", help="skip larger files (default: 10)"
    )
    command.add_argument(
        "--index",
        choices=INDEXES,
        help="semantic index: auto (pyrefly if it is installed), pyrefly, scip or none "
        "(default: auto; of status and verify: that of the last build)",
    )
    command.add_argument(
        "--entry-points", metavar="FILE", help="TOML file that describes entry points beyond those of known frameworks"
    )
    command.add_argument("--scip", metavar="FILE", help="SCIP index to read (default: run scip-python)")
    command.add_argument(
        "--repo-id", default="", metavar="TEXT", help="makes the ids of this repository differ from those of others"
    )


def _update_options(command: Parser) -> None:
    command.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default=STRATEGIES[0],
        help="how to find the files that a change affects; the graph is the same (default: hybrid)",
    )
    command.add_argument(
        "--max-impact-depth",
        type=whole_number(0),
        metavar="N",
        help="build everything if a change propagates through more than N files in a row",
    )
    command.add_argument(
        "--moved", action="store_true", help="use the state although its repository was at another path"
    )


def _engine_options(
    command: Parser,
    scratch: str = "temporary directory of the indexer; on a cluster, one that the workers share (default: the state)",
) -> None:
    command.add_argument("--scratch", metavar="DIR", help=scratch)
    command.add_argument("--remote", metavar="URL", help="Spark Connect server, sc://host:port")
    _spark_options(command)


def _spark_options(command: Parser) -> None:
    command.add_argument("--profile", choices=PROFILES, default=PROFILES[0], help=f"(default: {PROFILES[0]})")
    command.add_argument("--master", metavar="URL", help="Spark master (default: local[*])")
    command.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark option; may be repeated"
    )


if __name__ == "__main__":
    sys.exit(main())
