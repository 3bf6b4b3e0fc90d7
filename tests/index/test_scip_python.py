"""scip-python sees nothing of the machine and runs nothing of the tree.

What it is started with is tested on a script that writes down its surroundings, with any node; what it makes of the
fixture needs scip-python on PATH.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from codeanatomy.index.process import IndexerError, ProcessLimits
from codeanatomy.index.scip import open_index
from codeanatomy.index.scip_python import (
    CONFIGURATION,
    MEMORY_BYTES,
    ScipPython,
    command_line,
    configuration,
    environment,
    find_scip_python,
    run_scip_python,
)

FIXTURES = Path(__file__).parent / "fixtures"
NODE = shutil.which("node")
NOWHERE = Path("/nowhere")
LIMITS = ProcessLimits(120, MEMORY_BYTES)

needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")
needs_scip_python = pytest.mark.skipif(
    find_scip_python(NOWHERE) is None, reason="scip-python is not on PATH (npm install @sourcegraph/scip-python)"
)

SURROUNDINGS = """
const fs = require('fs'), child = require('child_process');
const after = name => process.argv[process.argv.indexOf(name) + 1];
const failed = name => child.spawnSync(name).error?.code;
fs.writeFileSync(after('--output'), JSON.stringify({
    variables: Object.keys(process.env).sort(),
    path: fs.readdirSync(process.env.PATH),
    home: fs.readdirSync(process.env.HOME),
    packages: JSON.parse(fs.readFileSync(after('--environment'))),
    tree: fs.readdirSync(after('--cwd')).sort(),
    configuration: JSON.parse(fs.readFileSync(after('--cwd') + '/scip-pyrightconfig.json')),
    started: ['python3', 'python', 'pip3', 'pip', 'git'].map(failed),
}));
"""

BOMB = "import pathlib; pathlib.Path(__file__).with_name('BOOM').touch()\n"


def executable(path, text="#!/bin/sh\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def mirror_of(tree, place):
    """Links to every source, as the indexer gets them."""
    for source in sorted(tree.rglob("*.py*")):
        link = place / source.relative_to(tree)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source)
    return place


def installed(place, script):
    """A scip-python that does what `script` says, laid out as npm does."""
    package = place / "lib" / "scip-python"
    package.mkdir(parents=True)
    (package / "index.js").write_text(script)
    (package / "index.js").chmod(0o755)
    (package / "package.json").write_text('{"version": "9.8.7"}')
    (place / "bin").mkdir()
    (place / "bin" / "scip-python").symlink_to(package / "index.js")
    return place / "bin"


def test_it_is_found_on_path_through_its_link(tmp_path, monkeypatch):
    node = executable(tmp_path / "node" / "node")
    place = installed(tmp_path / "npm", "")
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (place, node.parent))))
    found = find_scip_python(tmp_path / "repo")
    assert found == ScipPython(node, tmp_path / "npm" / "lib" / "scip-python" / "index.js", "9.8.7")


def test_one_that_the_repository_brings_along_is_not_found(tmp_path, monkeypatch):
    repo = tmp_path / "repo"
    place = installed(repo / "node_modules", "")
    node = executable(tmp_path / "node" / "node")
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (place, node.parent))))
    assert find_scip_python(repo) is None
    assert find_scip_python(tmp_path / "elsewhere") is not None
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "scip-python").symlink_to(place / "scip-python")
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (outside, node.parent))))
    assert find_scip_python(repo) is None


def test_neither_the_current_directory_nor_a_relative_one_is_looked_at(tmp_path, monkeypatch):
    installed(tmp_path, "")
    executable(tmp_path / "bin" / "node")
    monkeypatch.chdir(tmp_path)
    for path in ("", "bin", "./bin", os.pathsep):
        monkeypatch.setenv("PATH", path)
        assert find_scip_python(NOWHERE) is None


def test_node_of_the_repository_is_not_used(tmp_path, monkeypatch):
    repo = tmp_path / "repo"
    inside, outside = executable(repo / "bin" / "node"), executable(tmp_path / "node" / "node")
    place = installed(tmp_path / "npm", "")
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, (inside.parent, place, outside.parent))))
    found = find_scip_python(repo)
    assert found is not None
    assert found.node == outside


def test_a_wrapper_that_node_cannot_run_is_not_taken_for_it(tmp_path, monkeypatch):
    executable(tmp_path / "bin" / "scip-python")
    executable(tmp_path / "bin" / "node")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_scip_python(NOWHERE) is None


def test_the_environment_is_ours_alone(tmp_path):
    variables = environment(tmp_path)
    assert set(variables) == {"PATH", "HOME", "TMPDIR", "LC_ALL", "TZ"}
    assert list(Path(variables["PATH"]).iterdir()) == []


def test_the_command_leaves_nothing_to_guess(tmp_path):
    command = command_line(ScipPython(Path("/n/node"), Path("/s/index.js"), "1"), tmp_path / "tree", tmp_path, 1 << 30)
    assert command[:3] == ["/n/node", "--max-old-space-size=716", "/s/index.js"]
    options = dict(zip(command[5::2], command[6::2], strict=True))
    assert options["--project-name"] == options["--project-version"] == "."
    assert json.loads(Path(options["--environment"]).read_text()) == []
    assert options["--cwd"] == str(tmp_path / "tree")


@needs_node
def test_what_runs_can_start_nothing_and_knows_nothing(tmp_path, monkeypatch):
    for name in ("NODE_OPTIONS", "PYTHONPATH", "VIRTUAL_ENV", "SECRET"):
        monkeypatch.setenv(name, "--require=/nowhere")
    script = tmp_path / "index.js"
    script.write_text(SURROUNDINGS)
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("python3", "python", "pip3", "git"):
        executable(tree / name, "#!/bin/sh\ntouch BOOM\n")
    run_scip_python(ScipPython(Path(NODE), script, "1"), tree, tmp_path / "out", LIMITS)
    seen = json.loads((tmp_path / "out").read_text())
    assert seen["started"] == ["ENOENT"] * 5
    assert set(seen["variables"]) == {"HOME", "LC_ALL", "PATH", "TMPDIR", "TZ"}
    assert seen["path"] == seen["home"] == seen["packages"] == []
    assert seen["configuration"] == configuration(())
    assert CONFIGURATION in seen["tree"]
    assert sorted(p.name for p in tree.iterdir()) == ["git", "pip3", "python", "python3"]


@needs_node
def test_a_failure_says_why_and_leaves_nothing(tmp_path):
    script = tmp_path / "index.js"
    script.write_text("console.error('TypeError: no such luck'); process.exit(4)")
    tree = tmp_path / "tree"
    tree.mkdir()
    with pytest.raises(IndexerError, match=r"scip-python failed: exit code 4: TypeError: no such luck"):
        run_scip_python(ScipPython(Path(NODE), script, "1"), tree, tmp_path / "out", LIMITS)
    assert list(tree.iterdir()) == []
    assert not (tmp_path / "out").exists()


@needs_node
def test_one_that_writes_nothing_has_failed(tmp_path):
    script = tmp_path / "index.js"
    script.write_text("")
    tree = tmp_path / "tree"
    tree.mkdir()
    with pytest.raises(IndexerError, match="scip-python failed"):
        run_scip_python(ScipPython(Path(NODE), script, "1"), tree, tmp_path / "out", LIMITS)


def test_a_configuration_of_the_tree_is_neither_obeyed_nor_overwritten(tmp_path):
    theirs = tmp_path / "theirs.json"
    theirs.write_text("theirs")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / CONFIGURATION).symlink_to(theirs)
    with pytest.raises(IndexerError, match="in the tree already"):
        run_scip_python(ScipPython(Path("/n"), Path("/s"), "1"), tree, tmp_path / "out", LIMITS)
    assert theirs.read_text() == "theirs"
    assert (tree / CONFIGURATION).is_symlink()


@needs_scip_python
def test_the_fixture_is_what_it_makes_of_the_tree(tmp_path):
    mirror = mirror_of(FIXTURES / "tricky", tmp_path / "tricky")
    run_scip_python(find_scip_python(NOWHERE), mirror, tmp_path / "out.scip", LIMITS)
    made, kept = open_index(tmp_path / "out.scip"), open_index(FIXTURES / "tricky.scip")
    if made.tool_version != kept.tool_version:
        pytest.skip(f"the fixture is of scip-python {kept.tool_version}")
    assert made.documents.keys() == kept.documents.keys()
    for path, slices in made.documents.items():
        assert made.read(slices) == kept.read(kept.documents[path]), path
    assert made.read(made.external) == kept.read(kept.external)


@needs_scip_python
def test_nothing_of_a_hostile_tree_is_run_or_obeyed(tmp_path, monkeypatch):
    tree = tmp_path / "tree"
    (tree / "venv" / "bin").mkdir(parents=True)
    for name in ("json.py", "sitecustomize.py", "conftest.py", "setup.py", "pip.py", "venv/bin/x.py", ".hidden/h.py"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(BOMB)
    for name in ("python", "python3", "pip", "git", "venv/bin/python"):
        executable(tree / name, f"#!/bin/sh\ntouch {tree}/BOOM\n")
    hostile = {"include": ["nothing"], "venvPath": ".", "venv": "venv", "pythonPath": str(tree / "python")}
    for name in ("pyrightconfig.json", "../pyrightconfig.json", "../scip-pyrightconfig.json"):
        (tree / name).write_text(json.dumps(hostile))
    (tree / "pyproject.toml").write_text('[tool.pyright]\ninclude = ["nothing"]\n')
    (tree / "package.json").write_text('{"type": "module", "main": "boom.js"}')
    (tree / ".npmrc").write_text(f"node-options=--require={tree}/boom.js\n")
    (tree / "boom.js").write_text(f"require('fs').writeFileSync('{tree}/BOOM', '')")
    monkeypatch.setenv("NODE_OPTIONS", f"--require={tree}/boom.js")
    monkeypatch.chdir(tree)
    run_scip_python(find_scip_python(NOWHERE), tree, tmp_path / "out.scip", LIMITS)
    assert list(tmp_path.rglob("BOOM")) == []
    documents = open_index(tmp_path / "out.scip").documents
    assert {"json.py", "setup.py", "venv/bin/x.py", ".hidden/h.py"} <= documents.keys()


@needs_scip_python
def test_imports_are_found_in_other_trees_too(tmp_path):
    for name, text in {"one/a.py": "import b\nb.f()\n", "two/b.py": "def f(): ...\n"}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    tool = find_scip_python(NOWHERE)
    run_scip_python(tool, tmp_path / "one", tmp_path / "out.scip", LIMITS, [tmp_path / "two"])
    index = open_index(tmp_path / "out.scip")
    assert list(index.documents) == ["a.py"]
