"""Hold the expected calls of every case against what running its program shows.

python -m bench.accuracy.check_cases [--verbose] [NAME …]

A call that is seen and not expected is an error, and so is an expected name that no file defines. A call that is
expected and not seen is a warning, unless the case says why. Where a case lists its implicit calls, the same holds for
what was entered otherwise than by a written call.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.accuracy.cases import Case, load_cases
from bench.accuracy.observe import definitions
from codeanatomy.repo.modules import module_names

_ROOT: Final = Path(__file__).resolve().parents[2]
_SECONDS: Final = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases or categories to check; all, if none is given")
    parser.add_argument("--verbose", action="store_true", help="also tell what was entered, but not by a call")
    options = parser.parse_args()
    cases = [case for case in load_cases() if not options.names or {case.name, case.category} & set(options.names)]
    counts: Counter[str] = Counter()
    for case in cases:
        for kind, message in check(case):
            counts[kind] += 1
            if kind != "note" or options.verbose:
                print(f"{case.category}/{case.name}: {kind}: {message}")
    _print_table(cases)
    print(f"{counts['error']} errors, {counts['warning']} warnings")
    return 1 if counts["error"] else 0


def check(case: Case) -> Iterator[tuple[str, str]]:
    """What is wrong with a case: kinds (`error`, `warning`, `note`) and messages."""
    modules = {name.path: name.module_fqn for name in module_names(tuple(case.files))}
    tops = {module.partition(".")[0] for module in modules.values()}
    known = set(modules.values())
    for path, source in case.files.items():
        try:
            tree = ast.parse(source, path)
        except SyntaxError as error:
            yield "error", f"{path}: {error}"
            return
        known |= {name for node, name in definitions(modules[path], [tree]) if not isinstance(node, ast.ClassDef)}
    implicit = case.implicit or frozenset()
    listed = case.calls | implicit
    named = {caller for caller, _ in listed} | {callee for _, callee in case.calls if _top(callee) in tops}
    named |= {callee for _, callee in implicit}
    yield from (("error", f"nothing is called {name}") for name in sorted(named - known))
    if case.not_run:
        return
    seen, aside, failure = _observe(case, modules, sorted({callee for _, callee in case.calls} - known))
    if failure:
        yield "error", f"the program fails: {failure}"
    yield from (("error", f"seen, not expected: {_arrow(call)}") for call in sorted(seen - case.calls))
    yield from (("error", f"said not to be seen: {_arrow(call)}") for call in sorted((seen | aside) & case.unseen))
    yield from (("warning", f"not seen: {_arrow(call)}") for call in sorted(case.calls - seen - case.unseen))
    yield from (("warning", f"not seen, implicit: {_arrow(call)}") for call in sorted(implicit - aside - case.unseen))
    kind = "note" if case.implicit is None else "error"
    yield from ((kind, f"not a written call: {_arrow(call)}") for call in sorted(aside - implicit))


def _observe(
    case: Case, modules: dict[str, str], outside: list[str]
) -> tuple[set[tuple[str, str]], set[tuple[str, str]], str]:
    """The calls seen, what was entered otherwise, and how the program failed."""
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory).resolve()
        for path, source in case.files.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(source, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-B", "-S", "-m", "bench.accuracy.observe"],
            input=json.dumps({"top": str(top), "modules": modules, "outside": outside}),
            capture_output=True,
            check=False,
            cwd=_ROOT,
            text=True,
            timeout=_SECONDS,
        )
    if done.returncode:
        return set(), set(), done.stderr
    result = json.loads(done.stdout)
    return {(a, b) for a, b in result["calls"]}, {(a, b) for a, b in result["aside"]}, result["error"]


def _top(name: str) -> str:
    return name.partition(".")[0]


def _arrow(call: tuple[str, str]) -> str:
    return f"{call[0]} -> {call[1]}"


def _print_table(cases: list[Case]) -> None:
    categories = Counter(case.category for case in cases)
    flow = Counter(case.category for case in cases if case.needs_flow)
    print(f"{'category':<20} cases  without flow  with flow  calls")
    for category, count in categories.items():
        calls = sum(len(case.calls) for case in cases if case.category == category)
        print(f"{category:<20} {count:5}  {count - flow[category]:12}  {flow[category]:9}  {calls:5}")
    calls = sum(len(case.calls) for case in cases)
    print(f"{'all':<20} {len(cases):5}  {len(cases) - flow.total():12}  {flow.total():9}  {calls:5}")


if __name__ == "__main__":
    sys.exit(main())
