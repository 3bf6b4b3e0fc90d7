"""A repository that wants to be run: whatever of it is executed leaves a canary, and nothing leaves one.

It also has links that lead out of it, and configuration that points out of it; nothing out there is told.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codeanatomy.index import scip_format as scip
from codeanatomy.index.pyrefly import find_pyrefly
from codeanatomy.index.scip_provider import ScipFileProvider, ScipPythonProvider
from codeanatomy.index.scip_python import find_scip_python
from tests.index.indexing import index, needs_pyrefly, pyrefly_provider, tree
from tests.repositories import write_repository

NODE = shutil.which("node")
PROGRAMS = ("python", "python3", "pip", "pip3", "node", "npm", "git", "conda", "which", "env", "pyrefly", "scip-python")
MODULES = (
    *("sitecustomize.py", "usercustomize.py", "conftest.py", "setup.py", "json.py", "typing.py", "builtins.py"),
    *("os.py", "pyrefly.py", "codeanatomy.py", "pip.py", "plugin.py", "__init__.py", "__main__.py", "stub.pyi"),
    *("typing.pyi", "bin/__init__.py", "shop/__init__.py", ".pyrefly/hook.py"),
    ".venv/lib/python3.11/site-packages/dependency.py",
)
PROGRAM_PLACES = (*(f"bin/{name}" for name in PROGRAMS), "python3", "pip", "node", "which", ".venv/bin/python")
LEAK = "LeakedFromOutside"
"""Is spelled nowhere in the repository: whoever tells of it has been outside."""

SECRET = f"class {LEAK}: ...\n\ndef give(): return {LEAK}()\n"


def module(canary):
    return f"import pathlib\npathlib.Path({str(canary)!r}).touch()\n\ndef loads(text): ...\n"


def program(canary):
    return f"#!/bin/sh\n: > '{canary}'\nexit 0\n"


def configuration(root):
    """Files by which a tool could be told to run something of the tree, or to look outside."""
    python = root / "bin" / "python"
    pyrefly = (
        f'python-interpreter-path = "{python}"\nsearch-path = ["../outside"]\nsite-package-path = ["../outside"]\n'
        'project-includes = ["nothing.py"]\nproject-excludes = ["**/*"]\ndisable-search-path-heuristics = false\n'
    )
    pyright = {
        "include": ["nothing"],
        "extraPaths": ["../outside"],
        "venvPath": ".",
        "venv": ".venv",
        "pythonPath": str(python),
        "defaultInterpreterPath": str(python),
    }
    tools = {"postinstall": "node boom.js", "preinstall": "bin/node", "prepare": "bin/python"}
    return {
        "pyrefly.toml": pyrefly,
        "shop/pyrefly.toml": 'conda-environment = "shop"\n',
        "tools/pyproject.toml": "[tool.pyrefly]\n" + pyrefly,
        "pyproject.toml": (
            f'[build-system]\nrequires = []\nbackend-path = ["."]\nbuild-backend = "setup"\n'
            f"[tool.pyrefly]\n{pyrefly}"
            f'[tool.pyright]\nvenvPath = "."\nvenv = ".venv"\nextraPaths = ["../outside"]\n'
            f'[tool.mypy]\nplugins = ["plugin"]\npython_executable = "{python}"\n'
        ),
        "mypy.ini": f"[mypy]\nplugins = plugin.py\npython_executable = {python}\nmypy_path = ../outside\n",
        "setup.cfg": "[mypy]\nplugins = plugin.py\n",
        "pyrightconfig.json": json.dumps(pyright),
        "scip-pyrightconfig.json": json.dumps(pyright),
        "package.json": json.dumps({"type": "module", "main": "boom.js", "scripts": tools}),
        ".npmrc": f"node-options=--require={root}/boom.js\nscript-shell={root}/bin/python\n",
        "evil.pth": "import json\n",
        ".venv/pyvenv.cfg": f"home = {root}/bin\n",
        ".venv/lib/python3.11/site-packages/evil.pth": f"{root}\nimport json\n",
        ".pyrefly/config.toml": pyrefly,
        ".python-version": "../outside\n",
        ".git/config": f"[core]\n\tfsmonitor = {root}/bin/git\n\thooksPath = {root}/bin\n",
    }


USER = """\
import json
import secret
import link.secret
import dependency
from link_file import give
from shop import loads
from stub import nothing

one, two, three = give(), secret.give(), link.secret.give()
loads("")
json.loads("")
def ours(): ...
ours()
"""


def write_hostile(place):
    """The repository, with its canaries and what is outside of it beside it."""
    root, canaries, outside = (place / name for name in ("repository", "canaries", "outside"))
    canaries.mkdir()
    write_repository(outside, {"secret.py": SECRET})
    write_repository(root, configuration(root))
    write_repository(root, {path: module(canary_of(canaries, path)) for path in MODULES})
    write_repository(root, {path: program(canary_of(canaries, path)) for path in PROGRAM_PLACES})
    for path in PROGRAM_PLACES:
        (root / path).chmod(0o755)
    boom = canary_of(canaries, "boom.js")
    sources = {
        "boom.js": f"require('fs').writeFileSync({str(boom)!r}, '')\n",
        "user.py": USER,
        "tools/job.py": "import secret\nvalue = secret.give()\n",
        **{f"x\n--{option}\nz.py": "" for option in (f"search-path={outside}", f"config={root}/pyrefly.toml")},
    }
    write_repository(root, sources)
    (root / "link").symlink_to(outside, target_is_directory=True)
    (root / "link_file.py").symlink_to(outside / "secret.py")
    (root / "up").symlink_to("..", target_is_directory=True)
    return root


def surround(patch, root):
    """Make the repository the current directory and the first place of every path."""
    patch.chdir(root)
    patch.setenv("PATH", os.pathsep.join((str(root / "bin"), ".", os.environ["PATH"])))
    patch.setenv("NODE_OPTIONS", f"--require={root}/boom.js")
    patch.setenv("PYTHONSTARTUP", str(root / "json.py"))
    for name in ("PYTHONPATH", "PYTHONHOME", "MYPYPATH", "NODE_PATH"):
        patch.setenv(name, str(root))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        patch.setenv(name, str(root / ".venv"))


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    root = write_hostile(tmp_path)
    surround(monkeypatch, root)
    return root


@pytest.fixture(scope="module")
def by_pyrefly(tmp_path_factory, shared_scratch):
    """The repository, and what pyrefly says of it."""
    root = write_hostile(tmp_path_factory.mktemp("hostile"))
    with pytest.MonkeyPatch.context() as patch:
        surround(patch, root)
        return root, index(tree(root), pyrefly_provider(), shared_scratch / "run")


def canary_of(canaries, path):
    return canaries / path.replace("/", "_")


def canaries_of(root):
    return sorted(each.name for each in (root.parent / "canaries").iterdir())


def told(indexed):
    return json.dumps([indexed.documents, indexed.failed], ensure_ascii=False)


def clean():
    """An environment in which a command does what it is told and no more."""
    return {"PATH": os.defpath}


def modules_of(indexed):
    return {mention for row in indexed.documents.values() for mention in row["mentions"]}


@pytest.mark.parametrize("path", PROGRAM_PLACES)
def test_a_program_that_is_run_leaves_its_canary(hostile, path):
    subprocess.run([hostile / path], check=True, env=clean())
    assert canaries_of(hostile) == [path.replace("/", "_")]


@pytest.mark.parametrize("path", MODULES)
def test_a_module_that_is_run_leaves_its_canary(hostile, path):
    subprocess.run([sys.executable, "-I", hostile / path], check=True, env=clean(), cwd=hostile.parent)
    assert canaries_of(hostile) == [path.replace("/", "_")]


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_a_script_that_is_run_leaves_its_canary(hostile):
    (hostile / "package.json").unlink()
    subprocess.run([NODE, hostile / "boom.js"], check=True, env=clean())
    assert canaries_of(hostile) == ["boom.js"]


@needs_pyrefly
def test_left_to_itself_pyrefly_runs_what_the_repository_says(hostile):
    """So the next test can fail."""
    subprocess.run(
        [pyrefly_provider().pyrefly.executable, "check"], check=False, env=clean(), cwd=hostile, capture_output=True
    )
    assert canaries_of(hostile) == ["bin_python"]


@needs_pyrefly
def test_pyrefly_runs_nothing(by_pyrefly):
    root, found = by_pyrefly
    assert canaries_of(root) == []
    assert found.documents.keys() >= {"user.py", "json.py", "typing.py", "setup.py", "tools/job.py", "shop/__init__.py"}
    ours = [row for row in found.occurrences("user.py") if row["symbol"].endswith("user/ours().")]
    assert {row["role"] for row in ours} == {"definition", "call"}


@needs_pyrefly
def test_pyrefly_stays_inside(by_pyrefly):
    _, found = by_pyrefly
    assert LEAK not in told(found)
    assert not modules_of(found) & {"secret", "link_file", "outside.secret", "dependency"}
    assert not any(path.startswith(("link", "up", ".venv")) for path in (*found.documents, *found.failed))


@needs_pyrefly
def test_pyrefly_tells_of_the_same_file_inside(tmp_path, scratch):
    """So the test before can fail."""
    root = write_repository(tmp_path, {"link_file.py": SECRET, "user.py": USER})
    assert LEAK in json.dumps(index(tree(root), pyrefly_provider(), scratch / "run").documents["user.py"])


@needs_pyrefly
def test_a_module_of_the_repository_may_be_called_like_one_of_python(by_pyrefly):
    """It is what is imported by that name; only that it is never run."""
    called = {row["symbol"] for row in by_pyrefly[1].occurrences("user.py") if row["role"] == "call"}
    assert "codeanatomy python . . json/loads()." in called


@needs_pyrefly
def test_names_that_spell_options_are_not_passed_on(by_pyrefly):
    failed = by_pyrefly[1].failed
    assert len(failed) == 2
    assert all("\n--" in path and reason == "its name has a line break" for path, reason in failed.items())


@needs_pyrefly
def test_what_pyrefly_is_given_is_links_to_sources_alone(by_pyrefly, shared_scratch):
    for link in (shared_scratch / "run" / "mirror").rglob("*"):
        assert link.suffix not in (".toml", ".json", ".ini", ".cfg", ".pth", ".js")
        if link.is_symlink():
            assert link.resolve().is_relative_to(by_pyrefly[0])
            assert link.is_file()
        else:
            assert link.is_dir()


def test_nothing_is_run_to_scan_and_extract(hostile):
    seen = tree(hostile)
    assert all(facts["line_starts"] is not None for facts in seen.facts.values())
    assert canaries_of(hostile) == []
    paths = {file.path for file in seen.files}
    assert paths >= {"user.py", "json.py"}
    assert not any(path.startswith(("link", "up/", ".venv")) for path in paths)


def test_an_index_tells_of_nothing_but_the_files_of_the_snapshot(hostile, tmp_path):
    outside = ("../outside/secret.py", str(tmp_path / "outside" / "secret.py"), "link_file.py", "link/secret.py")
    occurrence = scip.new(scip.Occurrence, range=[0, 6, 23], symbol=f"s m p . m/{LEAK}#", symbol_roles=1)
    documents = [scip.new(scip.Document, relative_path=path, occurrences=[occurrence]) for path in outside]
    mine = scip.new(scip.Occurrence, range=[0, 7, 11], symbol="s m p . json/", symbol_roles=8)
    documents.append(scip.new(scip.Document, relative_path="user.py", occurrences=[mine]))
    metadata = scip.new(scip.Metadata, tool_info=scip.new(scip.ToolInfo, name="hostile"))
    (tmp_path / "index.scip").write_bytes(scip.encode(scip.new(scip.Index, metadata=metadata, documents=documents)))
    found = index(tree(hostile), ScipFileProvider.of(tmp_path / "index.scip"), tmp_path / "run")
    assert found.documents.keys() == {"user.py"}
    assert LEAK not in told(found)
    assert canaries_of(hostile) == []


def test_the_programs_of_the_repository_are_not_chosen(hostile):
    found = find_scip_python(hostile)
    if found is not None:
        assert not found.node.is_relative_to(hostile)
        assert not found.script.is_relative_to(hostile)
    pyrefly = find_pyrefly()
    if pyrefly is not None:
        assert not pyrefly.executable.is_relative_to(hostile)


@pytest.mark.skipif(find_scip_python(Path("/nowhere")) is None, reason="scip-python is not on PATH")
def test_scip_python_runs_nothing_and_stays_inside(hostile, scratch):
    tool = find_scip_python(hostile)
    assert tool is not None
    found = index(tree(hostile), ScipPythonProvider(tool), scratch / "run")
    assert canaries_of(hostile) == []
    assert found.documents.keys() >= {"user.py", "json.py", "setup.py", "shop/__init__.py"}
    assert LEAK not in told(found)
    assert not any(path.startswith(("link", "up", ".venv")) for path in (*found.documents, *found.failed))
