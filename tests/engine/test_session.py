"""A session starts in silence, takes nothing from its surroundings and leaves nothing behind.

Every test runs a program of its own: what is under test is a whole process, its output and its remains.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import codeanatomy
from codeanatomy.engine.java import require_java
from codeanatomy.engine.memory import descendants

SOURCES = str(Path(codeanatomy.__file__).parents[1])

PRELUDE = """
import json, os, sys
import pyarrow as pa
from codeanatomy.engine.session import log_of, open_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import CodeAnatomyError
SETTINGS = EngineSettings(archive=False, short_run=True)
"""


@dataclass(frozen=True)
class Room:
    """The directories a program may touch."""

    program: Path
    cwd: Path
    temp: Path
    cache: Path

    def start(self, body: str, **environ: str) -> subprocess.Popen[str]:
        self.program.write_text(PRELUDE + textwrap.dedent(body))
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
        own = {"PYTHONPATH": SOURCES, "TMPDIR": str(self.temp), "XDG_CACHE_HOME": str(self.cache)}
        return subprocess.Popen(
            [sys.executable, str(self.program)],
            cwd=self.cwd,
            stdin=subprocess.PIPE,
            env=kept | own | environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, body: str, **environ: str) -> subprocess.CompletedProcess[str]:
        process = self.start(body, **environ)
        out, err = process.communicate(timeout=180)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    for name in ("program", "cwd", "temp", "cache"):
        (tmp_path / name).mkdir()
    return Room(tmp_path / "program/main.py", tmp_path / "cwd", tmp_path / "temp", tmp_path / "cache")


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 20
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    left = alive(pids)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def test_a_session_is_silent_and_leaves_nothing_behind(room: Room) -> None:
    done = room.run("""
        import signal, threading
        from codeanatomy.engine.memory import descendants

        def noisy(batches):
            print("worker says", flush=True)
            print("worker complains", file=sys.stderr, flush=True)
            yield from batches

        def surroundings():
            return dict(os.environ), list(sys.path), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

        before = surroundings()
        for number in range(2):  # a process can open one session after another
            with open_engine(SETTINGS) as spark:
                print(spark.range(10).mapInArrow(noisy, "id long").count())
                spark.sql("SELECT 1 AS one").write.saveAsTable("managed")
                children, log = descendants(os.getpid()), log_of(spark)
        print(surroundings() == before, [pid for pid in children if os.path.exists(f"/proc/{pid}")], len(children) > 1)
        print("worker complains" in log.read_text())
    """)
    assert done.stderr == ""
    assert done.stdout == "10\n10\nTrue [] True\nTrue\n"
    assert list(room.cwd.iterdir()) == []
    assert list(room.temp.iterdir()) == []


def test_nothing_of_the_analysed_repository_is_run_or_read(room: Room, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    sprung.mkdir()
    python = f"import pathlib; pathlib.Path({str(sprung)!r}, __name__).touch()\n"
    shell = f"#!/bin/sh\ntouch {sprung}/$(basename $0)\nexit 1\n"
    trap = room.cwd
    for name in ("sitecustomize", "usercustomize", "pyspark", "pyarrow", "py4j", "codeanatomy", "json", "startup"):
        (trap / name).mkdir()
        (trap / name / "__init__.py").write_text(python)
    (trap / "startup.py").write_text(python)
    for script in ("bin/spark-submit", "bin/spark-class", "bin/java", "conf/spark-env.sh", "spark-env.sh", "python3"):
        (trap / script).parent.mkdir(exist_ok=True)
        (trap / script).write_text(shell)
        (trap / script).chmod(0o755)
    (trap / "jars").mkdir()
    for directory in (trap, trap / "conf"):
        (directory / "spark-defaults.conf").write_text("spark.canary sprung\nspark.sql.session.timeZone Asia/Tokyo\n")
        (directory / "log4j2.properties").write_text(
            f"rootLogger.level=info\nrootLogger.appenderRef.f.ref=f\nappender.f.type=File\nappender.f.name=f\n"
            f"appender.f.fileName={sprung}/log4j\nappender.f.layout.type=PatternLayout\n"
        )
        (directory / "hive-site.xml").write_text("<configuration><property>")
    before = sorted(trap.rglob("*"))
    (trap / "deeper").mkdir()
    done = room.run(f"""
        trap = {str(trap)!r}
        os.environ.update(
            PYTHONPATH=trap, PYTHONSTARTUP=trap + "/startup.py", SPARK_HOME=trap, SPARK_CONF_DIR=trap + "/conf",
            PYSPARK_PYTHON=trap + "/python3", PYSPARK_DRIVER_PYTHON=trap + "/python3", HADOOP_CONF_DIR=trap,
            PYSPARK_SUBMIT_ARGS="--conf spark.canary=sprung pyspark-shell", SPARK_REMOTE="sc://nowhere",
        )

        def look(batches):
            yield pa.RecordBatch.from_pydict({{"seen": [json.dumps([os.getcwd(), sys.path])]}})

        for cwd in (trap, trap + "/deeper"):  # pyspark looks for a Spark in the parent of the current directory
            os.chdir(cwd)
            with open_engine(SETTINGS) as spark:
                seen = spark.range(1).mapInArrow(look, "seen string").first().seen
                canary = spark.conf.get("spark.canary", None)
                print(json.dumps([seen, canary, spark.conf.get("spark.sql.session.timeZone")]))
            del os.environ["SPARK_HOME"]
            os.environ["SPARK_HOME"] = ""
    """)
    assert done.stderr == ""
    for line in done.stdout.splitlines():
        seen, canary, timezone = json.loads(line)
        assert str(trap) not in seen
        assert (canary, timezone) == (None, "UTC")
    assert len(done.stdout.splitlines()) == 2
    (trap / "deeper").rmdir()
    assert sorted(trap.rglob("*")) == before
    assert list(sprung.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 1)])
def test_a_signal_ends_everything(room: Room, number: signal.Signals, code: int) -> None:
    process = room.start("""
        import time
        from codeanatomy.engine.memory import descendants

        def slow(batches):
            time.sleep(600)
            yield from batches

        import threading
        def tell():
            while len(found := descendants(os.getpid())) < 3:  # the JVM, the workers' parent, a worker
                time.sleep(0.1)
            print(json.dumps(found), flush=True)

        with open_engine(SETTINGS) as spark:
            threading.Thread(target=tell, daemon=True).start()
            try:
                spark.range(10).mapInArrow(slow, "id long").count()
            except KeyboardInterrupt:
                sys.exit(1)
    """)
    children = json.loads(process.stdout.readline())
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, "", "")
    wait_until_gone(children)
    assert list(room.temp.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "is_stuck"),
    [
        (signal.SIGINT, "*launcher.Main*) true"),
        (signal.SIGINT, "*launcher.Main*) false;; *) true"),
        (signal.SIGTERM, "*launcher.Main*) false;; *) true"),
    ],
)
def test_a_signal_while_the_jvm_starts_leaves_no_process(
    room: Room, tmp_path: Path, number: signal.Signals, is_stuck: str
) -> None:
    """The JVM is stuck in one of the two programs it runs one after another, so that the moment is certain."""
    real = require_java().path
    java = tmp_path / "jdk/bin/java"
    java.parent.mkdir(parents=True)
    started = tmp_path / "started"
    java.write_text(
        f'#!/bin/sh\nif case "$*" in {is_stuck};; esac; then\n'
        f'echo $$ > {started}.new; mv {started}.new {started}; exec sleep 600\nfi\nexec {real} "$@"\n'
    )
    java.chmod(0o755)
    (tmp_path / "jdk/release").write_text('JAVA_VERSION="17.0.1"\n')
    process = room.start("with open_engine(SETTINGS): pass", JAVA_HOME=str(tmp_path / "jdk"))
    while not started.exists() and process.poll() is None:
        time.sleep(0.05)
    children = [*descendants(process.pid), int(started.read_text())]
    process.send_signal(number)
    process.communicate(timeout=60)
    wait_until_gone(children)
    assert list(room.temp.iterdir()) == []


def test_what_a_killed_process_leaves_ends_or_is_removed(room: Room) -> None:
    process = room.start("""
        from codeanatomy.engine.memory import descendants
        with open_engine(SETTINGS) as spark:
            spark.range(10).mapInArrow(lambda batches: batches, "id long").count()
            print(json.dumps(descendants(os.getpid())), flush=True)
            sys.stdin.read()
    """)
    children = json.loads(process.stdout.readline())
    process.kill()
    process.communicate()
    wait_until_gone(children)
    (left,) = room.temp.iterdir()
    with_engine = "with open_engine(SETTINGS): print(os.listdir(os.environ['TMPDIR']))"
    done = room.run(with_engine)
    assert left.name not in done.stdout
    assert list(room.temp.iterdir()) == []


def test_a_jvm_that_dies_is_one_clear_error(room: Room) -> None:
    done = room.run("""
        import signal
        from codeanatomy.engine.memory import descendants
        try:
            with open_engine(SETTINGS) as spark:
                os.kill(descendants(os.getpid())[0], signal.SIGKILL)
                spark.range(10).count()
        except CodeAnatomyError as error:
            print(error.exit_code, error)
    """)
    assert done.stderr == ""
    assert done.stdout.startswith("3 Spark was killed, most likely for lack of memory")
    assert list(room.temp.iterdir()) == []


def test_the_text_of_a_spark_error_outlives_the_session(room: Room) -> None:
    done = room.run("""
        from pyspark.errors import PySparkException
        try:
            with open_engine(SETTINGS) as spark:
                spark.sql("SELECT nothing FROM nowhere")
        except PySparkException as error:
            print(str(error))
    """)
    assert done.stderr == ""
    assert "TABLE_OR_VIEW_NOT_FOUND" in done.stdout


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("Error occurred during initialization of VM\nCould not reserve enough space for 99g heap", "not enough free"),
        ("Invalid maximum heap size: -Xmx10x\nError: Could not create the Java Virtual Machine.", "Invalid maximum"),
    ],
)
def test_a_jvm_that_does_not_start_is_one_clear_error(room: Room, tmp_path: Path, printed: str, told: str) -> None:
    java = tmp_path / "jdk/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "jdk/release").write_text('JAVA_VERSION="17.0.1"\n')
    body = """
        try:
            with open_engine(SETTINGS):
                pass
        except CodeAnatomyError as error:
            print(error.exit_code, error)
    """
    done = room.run(body, JAVA_HOME=str(tmp_path / "jdk"))
    assert done.stderr == ""
    assert done.stdout.startswith("3 Spark did not start: ")
    assert told in done.stdout
    assert done.stdout.count("\n") == 1
    assert Path(done.stdout.rpartition("(log: ")[2].rstrip(")\n")).read_text().startswith(printed)


def test_a_session_that_spark_refuses_says_why(room: Room) -> None:
    done = room.run("""
        import dataclasses
        try:
            with open_engine(dataclasses.replace(SETTINGS, master="local[0]")):
                pass
        except CodeAnatomyError as error:
            print(error.exit_code, error)
    """)
    assert done.stdout.startswith("3 Spark did not start on local[0]: Asked to run locally with 0 threads (log: ")


def test_without_java_the_program_ends_with_one_line(room: Room) -> None:
    body = """
        import codeanatomy.engine.session as session
        from codeanatomy.engine.java import require_java
        session.require_java = lambda: require_java(directories=())
        try:
            with open_engine(SETTINGS):
                pass
        except CodeAnatomyError as error:
            print(error.exit_code, error)
    """
    done = room.run(body, PATH="", JAVA_HOME="")
    assert done.stderr == ""
    assert done.stdout.startswith("3 no Java was found: install Java 17 or newer")


def test_a_remote_session_says_what_is_missing(room: Room) -> None:
    done = room.run("""
        import socket
        sys.modules["grpc"] = None  # as if the extra was not installed
        with socket.create_server(("localhost", 0)) as server:
            port = server.getsockname()[1]
            urls = [f"sc://localhost:{port}", "http://localhost"]
            for url in urls:
                try:
                    with open_engine(EngineSettings(remote=url)):
                        pass
                except CodeAnatomyError as error:
                    print(error.exit_code, error)
        try:
            with open_engine(EngineSettings(remote=urls[0])):
                pass
        except CodeAnatomyError as error:
            print(error.exit_code, error)
    """)
    assert done.stderr == ""
    packages, address, server = done.stdout.splitlines()
    assert packages == "3 --remote needs more packages: pip install 'codeanatomy[connect]'"
    assert address.startswith("2 http://localhost is not the address of a Spark Connect server")
    assert server.startswith("3 no Spark Connect server answers at sc://localhost:")


def test_a_process_that_already_runs_spark_is_refused(room: Room) -> None:
    done = room.run("""
        with open_engine(SETTINGS):
            try:
                with open_engine(SETTINGS):
                    pass
            except CodeAnatomyError as error:
                print(error.exit_code, error)
    """)
    assert done.stdout.startswith("2 this Python process already runs Spark")
