"""Resolution on Django without a semantic index: what calls resolve to and how, what each rule costs, and the time.

    python -m bench.resolution [--scip PATH]

The time is told next to scip-python's index, which is installed from npm into the corpora unless its command is given.
Both run on the same tree, one after the other, with nothing else: the ratio is what counts. Writes bench/RESOLUTION.md.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from graphlib import TopologicalSorter
from pathlib import Path

import codeanatomy as ca
from bench.builds import CORPORA, DJANGO, django
from codeanatomy.catalogue.tables import CPG_EDGES, CPG_NODES, STORED_TABLES
from codeanatomy.pipeline.context import Build, Engine
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.inputs import gather
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.progress import Silent, StageClock
from codeanatomy.pipeline.request import Mode, Strategy
from codeanatomy.pipeline.rule_inputs import Sources, offer_sources
from codeanatomy.pipeline.scope import ALL
from codeanatomy.query.graph import Graph
from codeanatomy.rules.compiled import by_output, dependencies, needed_rules
from codeanatomy.rules.evaluator import RuleInputs
from codeanatomy.store.location import locate_state
from codeanatomy.store.tables import read_table

RESULTS = Path(__file__).parent / "RESOLUTION.md"
SCIP_PYTHON = "@sourcegraph/scip-python@0.6.6"
CRASHES_SCIP = "tests/model_enums/tests.py"
"""scip-python ends with a fatal error at this file, and writes nothing of those after it."""

_SITES = """
    SELECT c.file_id, c.call_no, min(r.status) AS status, min(r.resolution_method) AS method
    FROM cst_callsites AS c
    LEFT JOIN rel_callsite_qname AS r ON r.site_id = concat('c:', c.file_id, ':', c.call_no) AND r.status <> 'absent'
    GROUP BY ALL
"""
_IMPORTED = """
    SELECT
      count(*) AS calls,
      count(*) FILTER (WHERE r.site_id IS NULL) AS unresolved,
      count(*) FILTER (WHERE r.site_id IS NULL AND a.ask_no IS NOT NULL) AS variables
    FROM cst_callsites AS c
    JOIN asks AS q ON q.file_id = c.file_id AND q.ask_no = c.ask_no
    JOIN sym_values AS v ON v.file_id = c.file_id AND v.slot = 'global' AND v.kind = 'import'
      AND q.question = concat('g:', v.name)
    LEFT JOIN (SELECT DISTINCT site_id FROM rel_callsite_qname) AS r
      ON r.site_id = concat('c:', c.file_id, ':', c.call_no)
    LEFT JOIN answers AS a ON a.file_id = c.file_id AND a.ask_no = c.ask_no AND a.kind = 'variable'
"""


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scip", help="the scip-python command")
    options = parser.parse_args()
    root = django()
    with tempfile.TemporaryDirectory() as state:
        result = ca.build(ca.BuildRequest(root, state=state, index="none"))
        index_seconds = scip_seconds(options.scip or scip_python(), root)
        graph = ca.open(root, state=state)
        parts = [
            f"# Resolution on Django {DJANGO}\n",
            "`python -m bench.resolution`; both sides in one run, on the same tree.\n",
            f"| full build, resolution included | scip-python {SCIP_PYTHON.rpartition('@')[2]} | ratio |",
            "|---|---|---|",
            f"| {result.seconds:.0f} s | {index_seconds:.0f} s | {result.seconds / index_seconds:.2f} |\n",
            *_shares(graph),
            *_rule_costs(root, state, result.seconds),
        ]
    RESULTS.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


def scip_python() -> str:
    home = CORPORA / "scip-python"
    command = home / "node_modules" / ".bin" / "scip-python"
    if not command.exists():
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--prefix", str(home), SCIP_PYTHON], check=True)
    return str(command.absolute())


def scip_seconds(command: str, root: Path) -> float:
    """Its time for the same tree without the file it crashes on; no installed packages, as ours has none."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(shutil.copytree(root, f"{scratch}/tree"))
        (tree / CRASHES_SCIP).unlink()
        environment = Path(scratch) / "environment.json"
        environment.write_text("[]")
        arguments = ["--project-name", "django", "--project-version", DJANGO, "--environment", str(environment)]
        began = time.monotonic()
        subprocess.run(
            [command, "index", ".", *arguments, "--output", f"{scratch}/index.scip"],
            cwd=tree,
            check=True,
            capture_output=True,
        )
        return time.monotonic() - began


def _shares(graph: Graph) -> list[str]:
    rows = graph.sql(
        f"""
        SELECT coalesce(status, 'none') AS target, coalesce(method, '') AS method, count(*) AS sites FROM ({_SITES})
        GROUP BY ALL ORDER BY sites DESC
        """
    ).to_pylist()
    total = sum(row["sites"] for row in rows)
    found = sum(row["sites"] for row in rows if row["target"] != "none")
    imported = graph.sql(_IMPORTED).to_pylist()[0]
    return [
        f"{total:,} call sites, {found / total:.1%} with at least one target (in the repository, external or builtin).",
        f"Of {imported['calls']:,} calls of an imported name, {imported['unresolved']:,} have no target; "
        f"{imported['variables']:,} of these call an imported variable (a partial, a named tuple).\n",
        "| target | method | call sites | share |",
        "|---|---|---|---|",
        *(f"| {r['target']} | {r['method']} | {r['sites']:,} | {r['sites'] / total:.1%} |" for r in rows),
        "",
    ]


def _rule_costs(root: Path, state: str, build_seconds: float) -> list[str]:
    """Each rule of nodes and edges alone, on a warm session, without writing."""
    location = locate_state(root, state, {})
    graph = ca.open(root, state=state)
    inputs = gather(ca.BuildRequest(root, state=state, index="none"), location, graph.state)
    needed = needed_rules(inputs.rules, documents=False)
    rules = by_output(needed)
    costs = {}
    clock = StageClock(Silent())
    with Engine(inputs.settings, clock) as engine, RuleInputs(engine.session()) as offered:
        spark = engine.session()
        build = Build(graph.state, None, inputs, Plan(Mode.FULL, ()), Strategy.HYBRID, clock, engine)
        offer_sources(offered, Sources(build, ALL, Facts(graph.state, graph.build.tables["facts"]), None), needed)
        for table in STORED_TABLES:
            offered.offer(table.name, read_table(spark, graph.state, table, graph.build.tables[table.name].version))
        stored = {table.name for table in STORED_TABLES}
        for name in TopologicalSorter(dependencies(rules)).static_order():
            if name in rules and name not in stored:
                frame = offered.evaluate(rules[name])
                offered.offer(name, frame.localCheckpoint() if name == "site_answers" else frame)
        for rule in (*rules[CPG_NODES.name], *rules[CPG_EDGES.name]):
            frame = offered.evaluate([rule])
            began = time.monotonic()
            frame.write.format("noop").mode("overwrite").save()
            costs[rule.rule.name] = time.monotonic() - began
    slowest = sorted(costs, key=lambda name: -costs[name])[:8]
    return [
        "What the slowest rules take alone, on a warm session, without writing (share of the full build):\n",
        "| rule | seconds | share |",
        "|---|---|---|",
        *(f"| `{name}` | {costs[name]:.1f} | {costs[name] / build_seconds:.1%} |" for name in slowest),
    ]


if __name__ == "__main__":
    main()
