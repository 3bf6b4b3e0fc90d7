"""Value flow: bounds and bad input, independence of order, solutions from earlier ones against those from scratch."""

import random
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bench.accuracy.small_graphs import small_graphs

from codeanatomy.extract import extract_batch
from codeanatomy.repo.modules import module_names
from codeanatomy.resolve import ContentNames, Flow, Index, Resolver, answer_files, flow_of
from codeanatomy.resolve.flow import PassEvaluator
from codeanatomy.resolve.flow_tables import FlowTables, from_tables, to_tables
from codeanatomy.resolve.solution import MAX_VALUES, Solution
from codeanatomy.resolve.solver import flow_after
from codeanatomy.resolve.values import LIMIT


def index_of(files, order=None):
    """The index of a program; `order` shuffles its files."""
    ids = {path: sha256(text.encode()).hexdigest() for path, text in files.items()}
    sources = {ids[path]: text.encode() for path, text in files.items()}
    facts = pa.Table.from_batches([extract_batch(list(sources), list(sources.values()))])
    rows = [
        (file_id(m.path), m.path, ids[m.path], m.module_fqn, m.is_init, m.is_stub) for m in module_names(list(files))
    ]
    if order is not None:
        order.shuffle(rows)
    names = ("file_id", "path", "content_id", "module_fqn", "is_init", "is_stub")
    return Index(pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)}), ContentNames(facts))


def file_id(path):
    return sha256(path.encode()).hexdigest()[:24]


def calls(files):
    with small_graphs({"program": files}) as (connection, _):
        return set(connection.execute("SELECT DISTINCT caller, callee FROM calls").fetchall())


def statuses(files, question):
    with small_graphs({"program": files}) as (connection, _):
        query = f"SELECT status FROM answers WHERE question LIKE '{question}'"
        return {status for (status,) in connection.execute(query).fetchall()}


def same(first: Solution, second: Solution):
    """Equal to the last evaluation of every round, values in the same order."""
    assert {slot: list(held.items()) for slot, held in first.contents.items()} == {
        slot: list(held.items()) for slot, held in second.contents.items()
    }
    assert first.history.keys() == second.history.keys()
    for key, evaluations in first.history.items():
        assert [(e.round, set(e.writes), e.trail) for e in evaluations] == [
            (e.round, set(e.writes), e.trail) for e in second.history[key]
        ]
        assert [e.read for e in evaluations] == [e.read for e in second.history[key]]
    assert {slot: [(at, list(found.items())) for at, found in held] for slot, held in first.held.items()} == {
        slot: [(at, list(found.items())) for at, found in held] for slot, held in second.held.items()
    }
    assert (first.full, first.evaluated) == (second.full, second.evaluated)
    assert (first.readers, first.writers, first.files) == (second.readers, second.writers, second.files)
    return True


def test_a_decorator_that_decorates_itself_ends():
    files = {"main.py": "@deco\ndef deco(f):\n    return f\n@deco\ndef g(): pass\ng()\ndeco(deco)(g)()\n"}
    assert ("main", "main.g") in calls(files)


def test_a_list_of_very_many_functions_is_bounded_and_says_so():
    names = [f"f{n}" for n in range(200)]
    defs = "".join(f"def {name}(): pass\n" for name in names)
    listed = ", ".join(names * 500)
    files = {"main.py": f"{defs}ALL = [{listed}]\ndef run(i):\n    ALL[i]()\nrun(3)\n"}
    flow = flow_of(index_of(files))
    assert max(map(len, flow.contents.values())) <= MAX_VALUES + 1
    assert any(LIMIT in held for held in flow.contents.values())
    assert "limit" in statuses(files, "g:ALL []")


def test_a_registry_of_very_many_functions_keeps_what_came_first_and_says_that_there_is_more():
    defs = "".join(f"@register\ndef f{n}(): pass\n" for n in range(300))
    files = {
        "main.py": "ALL = []\ndef register(f):\n    ALL.append(f)\n    return f\n"
        f"{defs}def run():\n    for f in ALL: f()\nrun()\nf7()\n"
    }
    found = calls(files)
    assert ("main", "main.f7") in found  # a call of one of them is not mixed up with the others
    assert "limit" in statuses(files, "%@next")


def test_mutual_recursion_of_many_functions_through_parameters_ends():
    count = 500
    lines = [f"def f{n}(cb):\n    f{(n + 1) % count}(cb)\n    cb(f{n})\n" for n in range(count)]
    files = {"main.py": "".join(lines) + "def leaf(g): pass\nf0(leaf)\n"}
    index = index_of(files)
    flow = flow_of(index)
    assert flow.rounds <= 2 * count + 5
    assert same(flow, flow_of(index_of(files, random.Random(1))))


def test_deeply_curried_lambdas_end():
    depth = 200
    text = "def leaf(): pass\nf = " + "".join(f"lambda a{n}: " for n in range(depth)) + "a0()\n"
    files = {"main.py": text + "f" + "(leaf)" * depth + "\n"}
    assert flow_of(index_of(files)).rounds < depth
    calls(files)


def test_names_of_outside_things_do_not_grow_without_end():
    files = {"main.py": "import ext\ndef f(x):\n    f(x.more)\n    x.run()\nf(ext.first)\n"}
    assert flow_of(index_of(files)).rounds < 6


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_files_and_passes_does_not_matter(seed):
    order = random.Random(seed)
    program = random_program(order)
    expected = flow_of(index_of(program))
    for _ in range(2):
        assert same(flow_of(index_of(program, order)), expected)


@pytest.mark.parametrize("seed", range(12))
def test_a_solution_from_an_earlier_one_equals_one_from_scratch(seed):
    order = random.Random(seed)
    before = random_program(order)
    solution = flow_of(index_of(before))
    reused = 0
    for _ in range(8):
        after = edited(before, order)
        old, new = index_of(before), index_of(after)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        evaluated = flow_after(solution, new, set(map(file_id, changed)), changed_entries(old, new, changed))
        scratch = flow_of(new)
        assert same(evaluated, scratch)
        reused += sum(evaluated.history.get(key) is each for key, each in solution.history.items())
        before, solution = after, evaluated
    assert reused


@pytest.mark.parametrize("seed", range(8))
def test_a_stored_solution_is_the_one_that_was_stored_and_can_be_updated(seed):
    order = random.Random(seed)
    before = random_program(order)
    solution = flow_of(index_of(before))
    tables = to_tables(solution)
    assert same(from_tables(tables), solution)
    for _ in range(4):
        after = edited(before, order)
        old, new = index_of(before), index_of(after)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        stored = from_tables(tables)
        updated = flow_after(stored, new, set(map(file_id, changed)), changed_entries(old, new, changed))
        scratch = flow_of(new)
        assert same(updated, scratch)
        assert updated.changed_entries(stored) == scratch.changed_entries(solution)
        owners = updated.changed_owners(stored) | set(map(file_id, changed))
        rows = to_tables(updated, owners)
        tables = FlowTables(*(replaced(*sides, owners) for sides in zip(tables, rows, strict=True)))
        assert same(from_tables(tables), scratch)
        before, solution = after, scratch


@pytest.mark.parametrize("seed", range(4))
def test_limits_that_are_hit_and_released_by_edits_are_those_of_a_solution_from_scratch(seed):
    order = random.Random(seed)
    count = 6

    def ring(at, registered):
        names = [f"f{n}" for n in range(registered)]
        defs = "".join(f"def {name}(x): x(x)\n" for name in names)
        calls = "".join(f"core.add({name})\n" for name in names)
        return (
            f"import core\nimport ring{(at + 1) % count}\n{defs}{calls}"
            f"def go(cb, n):\n    ring{(at + 1) % count}.go(cb, n)\n    cb(go)\n"
            f"{f'go({names[0]}, core.ALL)' if names else ''}\n"
        )

    core = (
        "import ring0\nALL = []\ndef add(f):\n    ALL.append(f)\ndef run():\n    for f in ALL: ring0.go(f, f)\nrun()\n"
    )
    program = {"core.py": core} | {f"ring{at}.py": ring(at, order.randint(0, 4)) for at in range(count)}
    solution = flow_of(index_of(program))
    were_full = set()
    for _ in range(10):
        at = order.randrange(count)
        path = f"ring{at}.py"
        after = {each: text for each, text in program.items() if each != path}
        if path not in program or order.random() < 0.8:
            after[path] = ring(at, order.choice((0, 0, 1, 4, 9)))
        entries = changed_entries(index_of(program), index_of(after), {path})
        updated = flow_after(solution, index_of(after), {file_id(path)}, entries)
        scratch = flow_of(index_of(after))
        assert same(updated, scratch)
        stored = from_tables(to_tables(solution))
        assert all(value is LIMIT for held in stored.contents.values() for value in held if value == LIMIT)
        assert same(flow_after(stored, index_of(after), {file_id(path)}, entries), scratch)
        were_full.add(frozenset(updated.full))
        program, solution = after, updated
    assert len(were_full) > 1


def replaced(table, rows, owners):
    """A table with the rows of some owners replaced."""
    kept = table.filter(pc.invert(pc.is_in(table["file_id"], pa.array(list(owners), pa.string()))))
    return pa.concat_tables([kept, rows])


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_that_changes_has_what_changed_on_its_trail(seed):
    order = random.Random(seed)
    before = random_program(order)
    through_slots = 0
    for _ in range(6):
        after = edited(before, order)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        indexes = [index_of(before), index_of(after)]
        flows = [flow_of(index) for index in indexes]
        modules = changed_entries(*indexes, changed)
        entries = modules | flows[1].changed_entries(flows[0])
        old, new = (
            answers(index, flow, program) for index, flow, program in zip(indexes, flows, (before, after), strict=True)
        )
        for question in old.keys() | new.keys():
            if question[0] not in changed and old.get(question, NO_ROW)[0] != new.get(question, NO_ROW)[0]:
                trail = set(old.get(question, NO_ROW)[1])
                assert entries & trail, (question, old.get(question), new.get(question))
                through_slots += not modules & trail
        before = after
    assert through_slots


NO_ROW = (None, ())


def answers(index, flow, program):
    """What each question of a program is answered, and the trail of that."""
    asks = [[{"ask_no": no, "question": text} for no, text in enumerate(questions(program[p]))] for p in program]
    kind = ANSWERS_ASKS
    batch = pa.record_batch(
        {
            "file_id": [file_id(path) for path in program],
            "asks": pa.array(asks, kind),
            "symbol_asks": pa.nulls(len(program)),
        }
    )
    rows = answer_files(Resolver(index, Flow(flow.contents)), batch).to_pylist()
    return {(row["path"], row["question"]): (row["outcome"], row["trail"]) for row in rows}


ANSWERS_ASKS = pa.list_(pa.struct([("ask_no", pa.int32()), ("question", pa.string())]))


def questions(text):
    return [ask["question"] for ask in extract_batch(["x"], [text.encode()])["asks"][0].as_py()]


def test_an_edit_that_passes_nothing_else_evaluates_only_the_passes_of_its_file(monkeypatch):
    before = random_program(random.Random(3))
    after = {**before, "alpha.py": before["alpha.py"].replace("def f(a, b=None, *rest, **named):\n", "\\g", 1)}
    after["alpha.py"] = after["alpha.py"].replace("\\g", "def f(a, b=None, *rest, **named):\n    len('x')\n")
    solution = flow_of(index_of(before))
    evaluated = []
    real = PassEvaluator.writes_of
    monkeypatch.setattr(PassEvaluator, "writes_of", lambda *given: evaluated.append(given[1].path) or real(*given))
    updated = flow_after(solution, index_of(after), {file_id("alpha.py")}, ())
    assert set(evaluated) == {"alpha.py"}
    assert same(updated, flow_of(index_of(after)))


def test_a_caller_that_goes_takes_what_only_it_passed_around_a_circle():
    circle = "def a(f):\n    b(f)\n    f()\ndef b(f):\n    a(f)\n"
    before = {
        "ring.py": circle,
        "one.py": "import ring\ndef x(): pass\nring.a(x)\n",
        "two.py": "import ring\ndef y(): pass\nring.b(y)\n",
    }
    after = {**before, "two.py": "import ring\ndef y(): pass\n"}
    solution = flow_of(index_of(before))
    assert ("ring.a", "two.y") in calls(before)
    updated = flow_after(solution, index_of(after), {file_id("two.py")}, ())
    assert same(updated, flow_of(index_of(after)))
    assert ("ring.a", "two.y") not in calls(after)
    assert ("ring.a", "one.x") in calls(after)
    slots = updated.changed_slots(solution)
    assert slots
    assert all(slot.startswith(f"p:{file_id('ring.py')}:") for slot in slots)


def changed_entries(old, new, changed):
    """The entries of trails that a change of these files meets, as impact analysis tells them."""
    entries = set()
    for path in changed:
        sides = [index.files.get(file_id(path)) for index in (old, new)]
        if None in sides:
            module = next(each.module for each in sides if each)
            entries |= {module, f"?{module}"}
        elif not old.names(sides[0]).says_the_same(new.names(sides[1])):
            entries.add(sides[0].module)
    return entries


MODULES = ("alpha", "beta", "gamma", "delta")
NAMES = ("f", "g", "h", "k")


def random_program(order):
    return {f"{module}.py": random_module(order) for module in MODULES}


def random_module(order):
    parts = [f"import {module}\n" for module in MODULES]
    parts += ["registry = []\ntable = {}\nhook = None\n"]
    parts += [
        "class Base:\n"
        "    def __init__(self, cb=None):\n        self.cb = cb\n"
        "    def run(self, x):\n        self.step(x)\n        self.cb(x)\n"
        "    def step(self, x):\n        return x\n"
        f"class Sub({order.choice(MODULES)}.Base):\n"
        "    def step(self, x):\n        x()\n        return super().step(x)\n"
    ]
    for name in NAMES:
        body = "".join(f"    {random_statement(order)}\n" for _ in range(order.randint(1, 4)))
        decorator = f"@{order.choice(MODULES)}.{order.choice(NAMES)}\n" if order.random() < 0.15 else ""
        parts.append(
            f"{decorator}def {name}(a, b=None, *rest, **named):\n{body}    return {random_value(order, inside=True)}\n"
        )
    parts += [f"{random_statement(order, inside=False)}\n" for _ in range(order.randint(1, 5))]
    return "".join(parts)


def random_value(order, *, inside):
    place = f"{order.choice(MODULES)}."
    choices = [
        f"{place}{order.choice(NAMES)}",
        f"{place}Base({place}{order.choice(NAMES)})",
        f"{place}Sub",
        f"[{place}{order.choice(NAMES)}, {order.choice(NAMES)}]",
        f"{place}registry",
        f"{place}table.get('x')",
        f"{place}hook",
        f"lambda z: z({order.choice(NAMES)})",
        f"{place}{order.choice(NAMES)}({place}{order.choice(NAMES)})",
    ]
    return order.choice([*choices, *(["a", "b", "rest[0]", "named['cb']", "rest"] * 2 if inside else [])])


def random_statement(order, *, inside=True):
    place = f"{order.choice(MODULES)}."
    value = random_value(order, inside=inside)
    choices = [
        f"{place}{order.choice(NAMES)}({value}, {random_value(order, inside=inside)})",
        f"{place}{order.choice(NAMES)}(b={value})",
        f"{place}{order.choice(NAMES)}({value}, None, {value}, cb={value})",
        f"{place}registry.append({value})",
        f"{place}table['x'] = {value}",
        f"{place}hook = {value}",
        f"{place}Base({value}).run({value})",
        f"{place}Sub({value}).run({value})",
        f"{place}Base.extra = {value}",
        f"for each in {place}registry: each({value})",
    ]
    return order.choice(
        [
            *choices,
            *(
                ["a(b)", "b(a)", "a.run(b)", "rest[0](a)", f"{place}{order.choice(NAMES)}(*rest, **named)"]
                if inside
                else []
            ),
        ]
    )


def edited(program, order):
    """The program with one module changed in one place, written anew, or taken away for a while."""
    path = f"{order.choice(MODULES)}.py"
    if path not in program:
        return {**program, path: random_module(order)}
    kind = order.random()
    if kind < 0.1:
        return {each: text for each, text in program.items() if each != path}
    if kind < 0.3:
        return {**program, path: random_module(order)}
    lines = program[path].splitlines(keepends=True)
    at = [n for n, line in enumerate(lines) if line.startswith("    ") and "return" not in line and "def " not in line]
    where = order.choice(at)
    indent = lines[where][: len(lines[where]) - len(lines[where].lstrip())]
    inside = indent == "    "
    lines[where] = f"{indent}{random_statement(order) if inside and kind < 0.8 else 'pass'}\n"
    return {**program, path: "".join(lines)}
