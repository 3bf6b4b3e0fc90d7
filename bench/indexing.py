"""The semantic index on Django: what it adds, whether it agrees with the own answers, and what it costs.

    python -m bench.indexing [--scip PATH]

A full build with the index, scip-python's index and a full build without, one after the other on the same tree: the
ratios are what counts. Writes bench/INDEXING.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

import codeanatomy as ca
from bench.builds import DJANGO, django
from bench.resolution import SCIP_PYTHON, scip_python, scip_seconds
from codeanatomy.pipeline.request import BuildResult
from codeanatomy.query.graph import Graph

RESULTS = Path(__file__).parent / "INDEXING.md"

_SITES = """
    SELECT
      c.file_id, c.call_no,
      bool_or(t.status = 'internal') AS internal,
      bool_or(t.status = 'external') AS external
    FROM cst_callsites AS c
    LEFT JOIN ({targets}) AS t ON t.site_id = concat('c:', c.file_id, ':', c.call_no)
    GROUP BY ALL
"""
_OWN = "SELECT site_id, status FROM rel_callsite_qname WHERE status <> 'absent'"
_SEMANTIC = "SELECT site_id, status FROM rel_callsite_symbol WHERE status <> 'absent'"
_BOTH = f"{_OWN} UNION ALL {_SEMANTIC} AND agreement = 'adds'"

_AGREEMENT = """
    SELECT
      CASE
        WHEN y.agrees THEN 'same target'
        WHEN y.adds AND q.site_id IS NULL THEN 'only the index'
        WHEN y.site_id IS NULL THEN 'only own answers'
        WHEN y.adds THEN 'own: outside the repository, index: inside'
        ELSE 'different targets'
      END AS who,
      count(*) AS sites,
      count(*) FILTER (WHERE q.internal OR y.internal) AS internal
    FROM (
      SELECT site_id, bool_or(status = 'internal') AS internal
      FROM rel_callsite_qname WHERE status <> 'absent' GROUP BY ALL
    ) AS q
    FULL JOIN (
      SELECT
        site_id,
        bool_or(agreement = 'agrees') AS agrees,
        bool_or(agreement = 'adds') AS adds,
        bool_or(status = 'internal') AS internal
      FROM rel_callsite_symbol WHERE status <> 'absent' GROUP BY ALL
    ) AS y ON y.site_id = q.site_id
    GROUP BY ALL ORDER BY sites DESC
"""


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scip", help="the scip-python command")
    options = parser.parse_args()
    root = django()
    with tempfile.TemporaryDirectory() as indexed, tempfile.TemporaryDirectory() as plain:
        with_index = ca.build(ca.BuildRequest(root, state=indexed, index="pyrefly"))
        scip = scip_seconds(options.scip or scip_python(), root)
        without = ca.build(ca.BuildRequest(root, state=plain, index="none"))
        graph = ca.open(root, state=indexed)
        parts = [
            f"# The semantic index on Django {DJANGO}\n",
            "`python -m bench.indexing`; all in one run, on the same tree.\n",
            "| | seconds | of scip-python |",
            "|---|---|---|",
            f"| full build with pyrefly's index | {with_index.seconds:.0f} | {with_index.seconds / scip:.2f} |",
            f"| full build without an index | {without.seconds:.0f} | {without.seconds / scip:.2f} |",
            f"| scip-python {SCIP_PYTHON.rpartition('@')[2]}, its index alone | {scip:.0f} | 1 |\n",
            *_stages(with_index, without),
            *_shares(graph),
            *_agreement(graph),
        ]
    RESULTS.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


def _stages(with_index: BuildResult, without: BuildResult) -> list[str]:
    """What dominates; stages overlap where one's planning hides behind another's work."""
    plain = {stage.name: stage.seconds for stage in without.stages}
    index: Mapping[str, float] = with_index.index or {}
    return [
        "What dominates. Tables are made side by side, so their times overlap; pyrefly itself runs beside the engine's "
        f"start and the extraction and took {index['seconds']:.0f} s there; `index` is waiting for it, reading its "
        "report and writing the documents.\n",
        "| stage | with the index, s | without, s |",
        "|---|---|---|",
        *(
            f"| {stage.name} | {stage.seconds:.1f} | {f'{plain[stage.name]:.1f}' if stage.name in plain else ''} |"
            for stage in with_index.stages
        ),
        f"| peak memory, MB | {with_index.peak_memory_mb:,} | {without.peak_memory_mb:,} |\n",
    ]


def _shares(graph: Graph) -> list[str]:
    rows = []
    for who, targets in (("own answers", _OWN), ("index alone", _SEMANTIC), ("both", _BOTH)):
        found = graph.sql(
            f"""
            SELECT count(*) AS sites, count(*) FILTER (WHERE internal) AS internal,
              count(*) FILTER (WHERE external AND NOT coalesce(internal, FALSE)) AS external
            FROM ({_SITES.format(targets=targets)})
            """
        ).to_pylist()[0]
        shares = (found["internal"] / found["sites"], found["external"] / found["sites"])
        rows.append(f"| {who} | {shares[0]:.1%} | {shares[1]:.1%} | {sum(shares):.1%} |")
    return [
        f"Share of the {found['sites']:,} call sites that have a target.\n",
        "| | in the repository | outside or builtin | any |",
        "|---|---|---|---|",
        *rows,
        "",
    ]


def _agreement(graph: Graph) -> list[str]:
    rows = graph.sql(_AGREEMENT).to_pylist()
    both = sum(row["sites"] for row in rows if not row["who"].startswith("only"))
    same = sum(row["sites"] for row in rows if row["who"] == "same target")
    return [
        f"Where both have a target they agree in {same / both:.2%} of {both:,} sites (implicit calls included).\n",
        "| who has a target | sites | with one in the repository |",
        "|---|---|---|",
        *(f"| {row['who']} | {row['sites']:,} | {row['internal']:,} |" for row in rows),
    ]


if __name__ == "__main__":
    main()
