"""The exports of a changed file that differ: names that were added, removed, or mean something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

_OFFERED: Final = frozenset({"global", "member", "attribute", "star"})
EXPORT_DATASETS: Final = ("sym_values", "all_names", "cst_defs", "cst_params")
"""Facts that exports are told from."""


class ChangedExport(NamedTuple):
    """A name that a file exports differently than before; `what` names the parts of it that changed."""

    path: str
    module: str
    name: str
    delta_kind: str
    what: str | None


class _Export(NamedTuple):
    kind: str | None
    target: str | None
    in_all: bool
    shape: str | None
    parts: Mapping[str, Any]


def changed_exports(
    path: str, module: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[ChangedExport]:
    """Compare what the two contents of a file offer; None for one that is not there."""
    old, new = _exports(before), _exports(after)
    found = []
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            found.append(ChangedExport(path, module, name, "added", None))
        elif name not in new:
            found.append(ChangedExport(path, module, name, "removed", None))
        elif old[name] != new[name]:
            what = ", ".join(_differences(old[name], new[name])) or "shape"
            found.append(ChangedExport(path, module, name, "changed", what))
    return found


def _differences(old: _Export, new: _Export) -> Iterable[str]:
    for part in ("kind", "target", "in_all"):
        if getattr(old, part) != getattr(new, part):
            yield part
    for part in sorted(old.parts.keys() | new.parts.keys()):
        if old.parts.get(part) != new.parts.get(part):
            yield part


def _exports(facts: Mapping[str, Any] | None) -> dict[str, _Export]:
    if facts is None:
        return {}
    listed = [(each["op"], each["name"], each["ref"]) for each in facts["all_names"] or ()]
    in_all = {name for op, name, _ in listed if op == "add"} - {name for op, name, _ in listed if op == "remove"}
    parts = _parts(facts)
    found = {"__all__": _Export(None, None, in_all=False, shape=None, parts={"names": listed})} if listed else {}
    for value in facts["sym_values"] or ():
        if value["slot"] not in _OFFERED:
            continue
        is_star = value["slot"] == "star"
        name = f"*{value['name']}" if is_star else ".".join(filter(None, (value["qualname"], value["name"])))
        is_listed = value["slot"] == "global" and value["name"] in in_all
        target = value["value"]
        of_def = parts.get(target.partition(":")[2], {}) if target and " " not in target else {}
        if name != "__all__":
            found[name] = _Export(value["kind"], target, is_listed, value["shape"], of_def)
    return found


def _parts(facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the shape of each definition is made of, by its key."""
    parameters: dict[str, list[tuple[Any, ...]]] = {}
    for each in facts["cst_params"] or ():
        parameters.setdefault(each["def_key"], []).append(
            (each["position"], each["name"], each["kind"], each["default"], each["annotation"])
        )
    return {
        each["def_key"]: {
            "parameters": sorted(parameters.get(each["def_key"], ())),
            "returns": each["returns"],
            "decorators": each["decorators"],
            "bases": each["bases"],
            "is_async": each["is_async"],
        }
        for each in facts["cst_defs"] or ()
    }
