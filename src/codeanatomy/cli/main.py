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
from codeanatomy.cli import commands
from codeanatomy.cli.options import Parser, asks_for_json, real_number, whole_number, with_defaults
from codeanatomy.cli.terminal import fail, tell
from codeanatomy.engine.causes import cause_of
from codeanatomy.errors import CodeAnatomyError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[Parser]

PROFILES = ("prod_fast", "dev_debug", "memory_tight")
STRATEGIES = ("hybrid", "symbol_closure", "import_closure")
INDEXES = ("auto", "pyrefly", "scip", "none")

INTERRUPTED = 130
SECONDS_OF_A_QUERY = 300
A_CENTURY = 36_525


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
    except CodeAnatomyError as error:
        return fail(error.message, error.hint, error.exit_code, as_json=as_json)
    except KeyboardInterrupt:
        code = fail("interrupted", "the last build is untouched", INTERRUPTED, as_json=as_json)
        if owns_process:
            _leave(code)
        return code
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has left; nobody needs to hear of it
        return 141
    except Exception as error:
        if "--verbose" in arguments:
            tell(*traceback.format_exc().splitlines())
        hint = "--verbose shows where; the last build is untouched"
        return fail(f"failed: {cause_of(error)}", hint, 3, as_json=as_json)
    return code


def _leave(code: int) -> NoReturn:
    """End the process without taking the interpreter apart: DuckDB would list on stderr what an interrupt left."""
    atexit._run_exitfuncs()
    with suppress(OSError):
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
    _update_options(build)
    _scan_options(build)
    _engine_options(build)

    plan = _command(
        chosen, "plan", commands.plan, "what a build would do now, and why; writes nothing", "codeanatomy plan --json"
    )
    plan.add_argument("--full", action="store_true", help="of a full build")
    _update_options(plan)
    _scan_options(plan)
    _engine_options(plan)

    why = _command(
        chosen,
        "why",
        commands.why,
        "why a file was rebuilt in the last build, or why not",
        "codeanatomy why pkg/mod.py",
        "path",
    )
    why.add_argument("--build", metavar="ID", help="the build to ask about (default: the last)")

    verify = _command(
        chosen, "verify", commands.verify, "compare the last build with one from scratch", "codeanatomy verify --json"
    )
    verify.add_argument(
        "--stored", action="store_true", help="only whether what is on disk is what the last build wrote"
    )
    _scan_options(verify)
    _engine_options(verify)

    replay = _command(
        chosen,
        "replay",
        commands.replay,
        "run a build again from what it was made from, whatever the tree is now, and compare",
        "codeanatomy replay 20260301T09",
        "build",
    )
    _engine_options(replay, scratch="where it may write; workers of a cluster must see it")

    status = _command(
        chosen, "status", commands.status, "the last build, and whether it is fresh", "codeanatomy status"
    )
    status.add_argument("--check", action="store_true", help="exit 1 if the tree has changed since the last build")
    _scan_options(status)

    _command(chosen, "builds", commands.builds, "the builds that are kept", "codeanatomy builds")

    _command(
        chosen,
        "rollback",
        commands.rollback,
        "go back to an earlier build",
        "codeanatomy rollback 20260301T09",
        "build",
    )

    _command(
        chosen,
        "diff",
        commands.diff,
        "what changed in the graph from one build (default: the one before) to another (default: the last)",
        "codeanatomy diff 20260301T09 20260302T10",
        "a?",
        "b?",
    )

    changes = _command(
        chosen,
        "changes",
        commands.changes,
        "rows of the graph added and removed since a consumer's last acknowledged build",
        "codeanatomy changes --cursor search-index --out delta --ack",
    )
    changes.add_argument("--cursor", required=True, metavar="NAME", help="name of the consumer")
    changes.add_argument("--ack", action="store_true", help="move the cursor to the build that is reported")
    changes.add_argument("--reset", action="store_true", help="start over: report everything as added")
    changes.add_argument("--build", metavar="ID", help="report up to this build (default: the last)")
    changes.add_argument("--out", metavar="DIR", help="write Parquet files to this directory; made anew")

    gc = _command(chosen, "gc", commands.gc, "forget old builds and delete their files", "codeanatomy gc --keep 3")
    gc.add_argument(
        "--keep", type=whole_number(1), default=10, metavar="N", help="builds to keep at least (default: 10)"
    )
    gc.add_argument("--days", type=real_number(A_CENTURY), metavar="D", help="keep builds younger than this as well")
    gc.add_argument("--dry-run", action="store_true", help="say what would go, delete nothing")

    sql = _command(
        chosen,
        "sql",
        commands.sql,
        "ask the graph in SQL, read-only",
        'codeanatomy sql "SELECT node_kind, count(*) FROM cpg_nodes GROUP BY ALL"',
        "query",
    )
    sql.add_argument("--build", metavar="ID", help="the build to ask (default: the last)")
    sql.add_argument("--csv", action="store_true", help="print CSV")
    sql.add_argument(
        "--timeout",
        type=real_number(A_CENTURY * 86_400),
        default=SECONDS_OF_A_QUERY,
        metavar="SECONDS",
        help=f"stop a query that takes longer; 0: never (default: {SECONDS_OF_A_QUERY})",
    )
    sql.add_argument(
        "--max-memory-mb",
        type=whole_number(1),
        metavar="MB",
        help="memory for the query, beyond which it uses the disk (default: half of the machine's)",
    )
    sql.add_argument("--arrow", metavar="FILE", help="write an Arrow IPC file instead of printing")

    for question, purpose in (
        ("callers", "who calls a function, method or class"),
        ("callees", "what a function or module calls"),
        ("refs", "where a name is used"),
        ("definition", "where a name is defined"),
    ):
        asked = _command(chosen, question, commands.look_up, purpose, f"codeanatomy {question} pkg.mod.name", "name")
        asked.add_argument("--build", metavar="ID", help="the build to ask (default: the last)")

    publish = _command(
        chosen,
        "publish",
        commands.publish,
        "write the graph for other tools",
        "codeanatomy publish --out graph --format duckdb",
    )
    publish.add_argument("--out", required=True, metavar="DIR", help="directory to write; made anew")
    publish.add_argument(
        "--format", choices=("parquet", "duckdb", "scip"), default="parquet", help="(default: parquet)"
    )
    publish.add_argument("--build", metavar="ID", help="the build to publish (default: the last)")
    publish.add_argument("--table", action="append", metavar="NAME", help="only this dataset; may be repeated")
    publish.add_argument(
        "--determinism",
        choices=("stable", "canonical"),
        default="stable",
        help="canonical: sorted, the same bytes every time",
    )

    doctor = _command(
        chosen, "doctor", commands.doctor, "what is there, what is wrong, what to do", "codeanatomy doctor"
    )
    doctor.add_argument("--deep", action="store_true", help="read everything that the last build has, and check it")
    return top


def _command(
    chosen: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    purpose: str,
    example: str,
    *arguments: str,
) -> Parser:
    """A command with what all commands have; its own arguments (`?` after an optional one) precede the repository."""
    command = chosen.add_parser(
        name, help=purpose, description=f"{purpose.capitalize()}.", epilog=f"example: {example}"
    )
    command.set_defaults(run=run)
    for argument in arguments:
        bare = argument.removesuffix("?")
        command.add_argument(bare, nargs="?" if argument != bare else None, metavar=bare.upper())
    command.add_argument("repo", nargs="?", default=".", metavar="REPO", help="the repository (default: here)")
    command.add_argument("--state", metavar="DIR", help="where the state is (default: REPO/.codeanatomy)")
    command.add_argument(
        "--storage-option", action="append", default=[], metavar="KEY=VALUE", help="for a state on an object store"
    )
    command.add_argument("--config", metavar="FILE", help="a TOML file of yours with options")
    command.add_argument("--json", action="store_true", help="print data as JSON on stdout")
    command.add_argument("--quiet", action="store_true", help="print nothing but data and errors")
    command.add_argument("--verbose", action="store_true", help="print more")
    return command


def _scan_options(command: Parser) -> None:
    command.add_argument("--include", action="append", metavar="GLOB", help="only files that match; may be repeated")
    command.add_argument("--exclude", action="append", metavar="GLOB", help="no files that match; may be repeated")
    command.add_argument("--root", action="append", metavar="DIR", help="where module names start; may be repeated")
    command.add_argument(
        "--max-file-mb", type=whole_number(1), default=10, metavar="MB", help="skip larger files (default: 10)"
    )
    command.add_argument(
        "--index",
        choices=INDEXES,
        help="semantic index: pyrefly (which auto, the default, finds), a SCIP index, or none; "
        "status and verify default to what the last build used",
    )
    command.add_argument("--scip", metavar="FILE", help="the SCIP index to read (default: run scip-python)")
    command.add_argument("--repo-id", default="", metavar="TEXT", help="tells this repository from others in its ids")


def _update_options(command: Parser) -> None:
    command.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default=STRATEGIES[0],
        help="how to find the files that a change reaches; the graph is the same (default: hybrid)",
    )
    command.add_argument(
        "--max-impact-depth",
        type=whole_number(0),
        metavar="N",
        help="build everything if a change reaches on through more than N files in a row",
    )
    command.add_argument(
        "--moved", action="store_true", help="the state is of this repository, although that was somewhere else before"
    )


def _engine_options(
    command: Parser,
    scratch: str = "where an indexer may write; workers of a cluster must see it (default: the state)",
) -> None:
    command.add_argument("--scratch", metavar="DIR", help=scratch)
    command.add_argument("--profile", choices=PROFILES, default=PROFILES[0], help=f"(default: {PROFILES[0]})")
    command.add_argument("--master", metavar="URL", help="Spark master (default: local[*])")
    command.add_argument("--remote", metavar="URL", help="Spark Connect server, sc://host:port")
    command.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark option; may be repeated"
    )


if __name__ == "__main__":
    sys.exit(main())
