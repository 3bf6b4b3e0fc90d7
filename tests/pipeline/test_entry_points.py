"""Entry points: what is found per framework, in small repositories; descriptions, right and wrong; project files."""

import json

import pytest

import codeanatomy as ca
from codeanatomy.cli.main import main
from codeanatomy.pipeline.entry_points import fingerprint_of, name_like, path_like, path_pattern, patterns_of
from codeanatomy.repo.declarations import read_declarations
from tests.repositories import write_repository

WEB = {
    "web/flask_app.py": """\
from flask import Blueprint, Flask
from flask.views import MethodView
import flask as f

app = Flask(__name__)
bp = f.Blueprint("b", __name__)

@app.route("/index", methods=["GET"])
def index(): pass

@bp.post(rule="/new")
def new(): pass

@app.errorhandler(404)
def missing(error): pass

@app.cli.command("init-db")
def init_db(): pass

def listed(): pass
def kept(): pass
def nothing(): pass

app.add_url_rule("/listed", view_func=listed)
app.add_url_rule("/kept", "kept", kept)

def create():
    made = Flask(__name__)

    @made.route("/inner")
    def inner(): pass

    return made

def register(given):
    @given.route("/given")
    def of_parameter(): pass

@create().route("/outer")
def outer(): pass

class Items(MethodView):
    def get(self): pass
    def helper(self): pass
""",
    "web/fast.py": """\
from fastapi import APIRouter, Depends, FastAPI
from starlette.routing import Route
app = FastAPI()
router = APIRouter(prefix="/x")

def database(): pass

@app.get("/fast")
async def fast(db=Depends(database)): pass

@router.websocket("/ws")
async def socket(): pass

def page(request): pass
routes = [Route("/page", page)]
""",
    "web/django_app/urls.py": """\
from django.urls import path, re_path as again
from . import views
from .views import detail
urlpatterns = [path("list/", views.index), path("new/", view=detail, name="x"), again(r"^old/$", views.old)]
""",
    "web/django_app/views.py": """\
from django.views import View
def index(request): pass
def detail(request): pass
def old(request): pass
def unused(request): pass
class Base(View): pass
class Page(Base):
    def get(self, request): pass
    def own(self): pass
""",
    "web/django_app/apps.py": """\
from django.apps import AppConfig
from django.db.models.signals import post_save
from django.dispatch import receiver, Signal
done = Signal()
class Shop(AppConfig):
    def ready(self): pass
@receiver(post_save)
def saved(sender, **more): pass
def connected(sender, **more): pass
post_save.connect(connected)
def finished(sender, **more): pass
done.connect(finished)
""",
    "web/django_app/management/commands/sweep.py": """\
from django.core.management.base import BaseCommand
class Command(BaseCommand):
    def add_arguments(self, parser): pass
    def handle(self, **options): pass
    def part(self): pass
""",
    "web/tasks.py": """\
from celery import Celery, shared_task, signals
app = Celery("tasks")
@app.task(name="add.them")
def add(x, y): pass
@shared_task
def shared(): pass
@signals.worker_ready.connect
def ready(**more): pass
""",
}

TOOLS = {
    "pyproject.toml": """\
[project]
name = "tools"
[project.scripts]
tool = "tools:main"
other = "tools.commands:Runner.run [extra]"
missing = "tools.nowhere:main"
[project.gui-scripts]
window = "tools.commands:window"
[project.entry-points.pytest11]
plug = "tools.commands"
""",
    "setup.cfg": """\
[metadata]
name = tools
[options.entry_points]
console_scripts =
    old = tools.commands:window
""",
    "tools/__init__.py": "from .commands import cli as main\n",
    "tools/__main__.py": "from tools import main\nmain()\n",
    "tools/commands.py": """\
import argparse
import atexit
import click
import typer

@click.group()
def cli(): pass

@cli.command("first")
def first(): pass

@cli.group(name="inner")
def inner(): pass

@inner.command()
def second(): pass

class Plain:
    def command(self): pass
plain = Plain()

@plain.command
def no_command(): pass

app = typer.Typer()

@app.command()
def typed(): pass

class Runner:
    def run(self): pass
    def __enter__(self): pass

def window(): pass

@atexit.register
def bye(): pass

def used(options): pass
parser = argparse.ArgumentParser()
parser.set_defaults(func=used)

if __name__ == "__main__":
    cli()
""",
    "tools/far.py": """\
from tools import commands
from tools.commands import inner

@inner.command()
def third(): pass

@commands.cli.command()
def fourth(): pass
""",
    "tests/conftest.py": """\
import pytest
def pytest_configure(config): pass
@pytest.fixture(name="thing")
def _thing(): pass
def helper(): pass
""",
    "tests/test_tools.py": """\
import unittest
def test_one(): pass
def helper(): pass
class TestThem:
    def test_two(self): pass
    def help(self): pass
class Case(unittest.TestCase):
    def setUp(self): pass
    def testThree(self): pass
class Other(Case):
    def test_four(self): pass
def outer():
    def test_inner(): pass
""",
    "tests/helpers.py": "def test_no_test(): pass\n",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory, spark):
    """What is found in both repositories, as (kind, last names, detail)."""
    root = write_repository(tmp_path_factory.mktemp("entry_points"), {**WEB, **TOOLS})
    ca.build(ca.BuildRequest(root), spark=spark)
    return ca.entry_points(root).found


def of(found, *kinds):
    return {(each.name, each.detail) for each in found if each.kind in kinds}


def test_flask(found):
    prefix = "web.flask_app"
    assert of(found, "flask_route") == {
        (f"{prefix}.index", "/index"),
        (f"{prefix}.new", "/new"),
        (f"{prefix}.listed", "/listed"),
        (f"{prefix}.kept", "/kept"),
        (f"{prefix}.create.inner", "/inner"),
        (f"{prefix}.outer", "/outer"),
        (f"{prefix}.register.of_parameter", "/given"),
    }
    assert of(found, "flask_view") == {(f"{prefix}.Items.get", None)}
    assert of(found, "flask_hook") == {(f"{prefix}.missing", None)}
    assert of(found, "flask_command") == {(f"{prefix}.init_db", "init-db")}


def test_fastapi_and_starlette(found):
    assert of(found, "fastapi_route") == {("web.fast.fast", "/fast"), ("web.fast.socket", "/ws")}
    assert of(found, "fastapi_dependency") == {("web.fast.database", None)}
    assert of(found, "starlette_route") == {("web.fast.page", "/page")}


def test_django(found):
    prefix = "web.django_app"
    assert of(found, "django_url") == {
        (f"{prefix}.views.index", "list/"),
        (f"{prefix}.views.detail", "new/"),
        (f"{prefix}.views.old", "^old/$"),
    }
    assert of(found, "django_view") == {(f"{prefix}.views.Page.get", None)}
    assert of(found, "django_app") == {(f"{prefix}.apps.Shop.ready", None)}
    assert of(found, "django_signal_receiver") == {
        (f"{prefix}.apps.{name}", None) for name in ("saved", "connected", "finished")
    }
    command = f"{prefix}.management.commands.sweep.Command"
    assert of(found, "django_command") == {(f"{command}.handle", None), (f"{command}.add_arguments", None)}


def test_celery(found):
    assert of(found, "celery_task") == {("web.tasks.add", "add.them"), ("web.tasks.shared", None)}
    assert of(found, "celery_signal") == {("web.tasks.ready", None)}


def test_commands_of_groups_in_any_file(found):
    assert of(found, "click_command") == {
        ("tools.commands.cli", None),
        ("tools.commands.first", "first"),
        ("tools.commands.inner", "inner"),
        ("tools.commands.second", None),
        ("tools.far.third", None),
        ("tools.far.fourth", None),
    }
    assert of(found, "typer_command") == {("tools.commands.typed", None)}


def test_scripts_and_plugins_of_project_files(found):
    assert {(each.name, each.detail, each.evidence) for each in found if each.kind == "console_script"} == {
        ("tools.commands.cli", "tool", "pyproject.toml [project.scripts]"),
        ("tools.commands.Runner.run", "other", "pyproject.toml [project.scripts]"),
        ("tools.commands.window", "old", "setup.cfg [options.entry_points.console_scripts]"),
    }
    assert of(found, "gui_script") == {("tools.commands.window", "window")}
    assert of(found, "plugin") == {("tools.commands", "plug")}


def test_python_itself(found):
    assert of(found, "main_block") == {("tools.commands", None)}
    assert of(found, "main_module") == {("tools.__main__", None)}
    assert of(found, "dunder") == {("tools.commands.Runner.__enter__", None)}
    assert of(found, "exit_handler") == {("tools.commands.bye", None)}
    assert of(found, "argparse_command") == {("tools.commands.used", None)}


def test_tests_fixtures_and_hooks(found):
    prefix = "tests.test_tools"
    assert of(found, "pytest_test") == {(f"{prefix}.test_one", None), (f"{prefix}.TestThem.test_two", None)}
    assert of(found, "unittest_test") == {(f"{prefix}.Case.testThree", None), (f"{prefix}.Other.test_four", None)}
    assert of(found, "unittest_fixture") == {(f"{prefix}.Case.setUp", None)}
    assert of(found, "pytest_fixture") == {("tests.conftest._thing", "thing")}
    assert of(found, "pytest_hook") == {("tests.conftest.pytest_configure", None)}


def test_places_and_confidence(found):
    (route,) = [each for each in found if each.name == "web.flask_app.index"]
    assert (route.path, route.line, route.evidence) == ("web/flask_app.py", 9, "flask.Flask.route")
    assert 0.5 < route.confidence < 1  # `app` could be assigned something else
    (guessed,) = [each for each in found if each.name == "web.flask_app.register.of_parameter"]
    assert (guessed.evidence, guessed.confidence) == ("@given.route", 0.5)
    (block,) = [each for each in found if each.kind == "main_block"]
    assert TOOLS[block.path].splitlines()[block.line - 1] == 'if __name__ == "__main__":'


MINE = """\
[[entry_point]]
kind = "job"
decorated_by = ["queue_lib.job", "tools.commands.plain"]
detail = [0, "title"]
confidence = 0.6
[[entry_point]]
kind = "job"
functions = ["*_job"]
in_files = ["jobs/**/*.py"]
"""

JOBS = {
    "tools/commands.py": "def plain(f): return f\n",
    "jobs/a/b.py": """\
from queue_lib import job
from tools.commands import plain
@job("night\x1b[31m\u202e")
def one(): pass
@plain
def two(): pass
def three_job(): pass
""",
}


def entry_points(root, kind=None):
    return {(each.name, each.detail, each.confidence) for each in ca.entry_points(root, kind=kind).found}


def test_a_description_of_the_users_own(tmp_path, spark, capsys):
    root, mine = write_repository(tmp_path / "repo", JOBS), tmp_path / "mine.toml"
    request = ca.BuildRequest(root)
    ca.build(request, spark=spark)
    assert entry_points(root) == set()
    mine.write_text(MINE)
    request = ca.BuildRequest(root, entry_points=str(mine))
    assert ca.plan(request).plan.reasons == ("entry points are described differently",)
    built = ca.build(request, spark=spark)
    assert (built.mode, built.files["rebuilt"]) == ("incremental", 0)
    expected = {
        ("jobs.a.b.one", "night\x1b[31m\u202e", 0.6),
        ("jobs.a.b.two", None, 0.6),
        ("jobs.a.b.three_job", None, 1),
    }
    assert entry_points(root, "job") == expected
    assert ca.build(request, spark=spark).mode == "noop"
    assert ca.verify(request, spark=spark).equal
    assert ca.replay(request, built.build_id, spark=spark).equal
    mine.write_text("# as before, in other words\n" + MINE.replace("0.6", "0.60"))
    assert ca.build(request, spark=spark).mode == "noop"
    capsys.readouterr()
    assert main(["entry-points", str(root), "--kind", "job"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert main(["entry-points", str(root), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["entry_points"]) == 3
    assert main(["entry-points", str(root), "--kind", "jobs"]) == 2
    assert "choose from job" in capsys.readouterr().err
    (root / "jobs/a/b.py").write_text("def none(): pass\n")
    ca.build(ca.BuildRequest(root), spark=spark)
    assert entry_points(root) == set()


def test_project_files_come_and_go(tmp_path, spark):
    root = write_repository(tmp_path, {"m.py": "def f(): pass\ndef g(): pass\n"})
    request, file = ca.BuildRequest(root), root / "pyproject.toml"

    def built(text):
        file.write_text(text)
        mode = ca.build(request, spark=spark).mode
        assert ca.verify(request, spark=spark).equal
        return mode, entry_points(root)

    assert built("[project]\nname = 'm'")[1] == set()
    assert built("[project]\nversion = '2'") == ("noop", set())
    assert built("[project.scripts]\nx = 'm:f'") == ("incremental", {("m.f", "x", 1)})
    assert built("[project.scripts]\nx = 'm:g'") == ("incremental", {("m.g", "x", 1)})
    assert built("[project.scripts]\nx = 'm:g'\n[tool.other]\na = 1") == ("noop", {("m.g", "x", 1)})
    assert built("[project.scripts]\nx = 'm:gone'") == ("incremental", set())
    assert built("not TOML [") == ("incremental", set())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[entry_point]]\nkind = 'x'", "[[entry_point]] 1: give one of decorated_by"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=['a.b']\nmodules=['x']", "give one of"),
        ("[[entry_point]]\nkind='X y'\ndecorated_by=['a.b']", "kind must be a name"),
        ("[[entry_point]]\nkind=3\ndecorated_by=['a.b']", "kind must be a name"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=['a b']", "'a b' in decorated_by is not a dotted name"),
        ("[[entry_point]]\nkind='x'\ndecorated_by='a.b'", "decorated_by must be a list of texts"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=[]", "decorated_by must be a list of texts"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=['a.b']\nconfidence=2", "confidence must be a number from 0 to 1"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=['a.b']\nconfidence=nan", "confidence must be a number"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=['a.b']\nconfidence=true", "confidence must be a number"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=['a.b']\ndetail=-1", "detail must be a position"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=['a.b']\ndetail=[0, 1]", "detail can be one position and one"),
        ("[[entry_point]]\nkind='x'\ndecorated_by=['a.b']\nmakes='a-b'", "makes must be a dotted name"),
        ("[[entry_point]]\nkind='x'\npassed_to=['a.b']", "argument must say which argument"),
        ("[[entry_point]]\nkind='x'\nmethods=['a']", "of_subclasses_of must be a list of texts"),
        ("[[entry_point]]\nkind='x'\nfunctions=['a']", "in_files must be a list of texts"),
        ("[[entry_point]]\nkind='x'\nmain_block=false", "main_block can only be true"),
        ("[[entry_point]]\nkind='x'\nmodules=['a']\nin_files=['b']", "'in_files' does not go with modules"),
        ("[[entry_points]]\nkind='x'", "must consist of [[entry_point]] tables"),
        ("entry_point = 3", "must consist of [[entry_point]] tables"),
        ("", "must consist of [[entry_point]] tables"),
        ("[[", "is not valid TOML"),
        ("a = " + "[" * 5000, "is nested too deeply"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path, capsys, text, said):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert main(["build", str(tmp_path), "--entry-points", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert not (tmp_path / ".codeanatomy").exists()


@pytest.mark.parametrize("name", ["missing.toml", ".", "nul\0"])
def test_a_description_that_cannot_be_read_is_refused(tmp_path, capsys, name):
    assert main(["build", str(tmp_path), "--entry-points", str(tmp_path / name)]) == 2
    assert "cannot read --entry-points" in capsys.readouterr().err


def test_the_option_can_come_from_a_variable_and_from_the_users_file(tmp_path, capsys, monkeypatch):
    config = tmp_path / "mine.toml"
    config.write_text('entry-points = "not-there.toml"')
    assert main(["build", str(tmp_path), "--config", str(config)]) == 2
    assert "not-there.toml" in capsys.readouterr().err
    monkeypatch.setenv("CODEANATOMY_ENTRY_POINTS", "neither.toml")
    assert main(["build", str(tmp_path)]) == 2
    assert "neither.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("**/test_*.py", "test_a.py", True),
        ("**/test_*.py", "a/b/test_a.py", True),
        ("**/test_*.py", "a/b/xtest_a.py", False),
        ("test_*.py", "a/test_a.py", False),
        ("a/*.py", "a/b/c.py", False),
        ("a.b?", "axbc", False),
        ("a.b?", "a.bc", True),
        ("a$|b", "a$|b", True),
        ("a", "a\n", False),
        ("ü*", "übung", True),
        ("'\"\\", "'\"\\", True),
    ],
)
def test_globs_mean_the_same_in_sql(tmp_path, glob, path, matches):
    import duckdb

    found = duckdb.execute("SELECT regexp_matches($1, $2)", [path, path_pattern(glob)]).fetchall()
    assert found == [(matches,)]
    assert duckdb.execute("SELECT $1 LIKE $2", [path, path_like(glob)]).fetchone() != (False,) or not matches


@pytest.mark.parametrize(
    ("glob", "name", "matches"),
    [
        ("test_*", "test_a", True),
        ("test_*", "testXa", False),
        ("100%", "100 and more", False),
        ("a!*", "a!b", True),
        ("a?c", "abc", True),
    ],
)
def test_names_are_compared_by_like(glob, name, matches):
    import duckdb

    assert duckdb.execute("SELECT $1 LIKE $2 ESCAPE '!'", [name, name_like(glob)]).fetchall() == [(matches,)]


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        b"[project]\nscripts = 3",
        b"[project.scripts]\na = 3\nb = ''\nc = 'x y'\nd = ':f'\ne = {reference = 4}",
        b"project = []\n[tool]\npoetry = 'x'",
        b"a = " + b"[" * 5000,
    ],
)
def test_a_project_file_that_says_nothing_sensible_declares_nothing(tmp_path, text):
    for name in ("pyproject.toml", "setup.cfg"):
        (tmp_path / name).write_bytes(text)
    assert read_declarations(tmp_path) == ()


def test_a_linked_project_file_is_not_read(tmp_path):
    (tmp_path / "other").write_text("[project.scripts]\nx = 'm:f'")
    (tmp_path / "pyproject.toml").symlink_to(tmp_path / "other")
    assert read_declarations(tmp_path) == ()


def test_the_own_description_names_nothing_twice(tmp_path):
    rows = patterns_of(tmp_path, None)
    assert len(set(rows)) == len(rows)
    assert fingerprint_of(rows) == fingerprint_of(patterns_of(tmp_path, None))
