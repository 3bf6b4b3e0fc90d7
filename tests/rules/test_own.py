"""The rules that a process remembers are those that SQLGlot compiles."""

from dataclasses import asdict

from codeanatomy.rules.compiler import compile_rules
from codeanatomy.rules.definition import load_rules
from codeanatomy.rules.own import own_rules


def test_what_is_remembered_is_what_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled = []
    for parsed in compile_rules(load_rules()):
        values = {field: value for field, value in vars(parsed).items() if field != "tree"}
        compiled.append({**values, "rule": asdict(parsed.rule)})
    for _ in ("compiled", "remembered"):
        own_rules.cache_clear()
        assert [{**vars(each), "rule": asdict(each.rule)} for each in own_rules()] == compiled
    own_rules.cache_clear()
