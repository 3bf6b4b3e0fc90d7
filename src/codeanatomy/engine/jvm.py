"""Start and stop the JVM of a session, isolated from the environment of the caller.

The JVM gets our Spark, an empty configuration directory and our worker path. It does not get the current directory,
which may be the repository under analysis, nor the caller's SPARK_*, PYSPARK_* and PYTHON* variables. Its output goes
to the session's log.

pyspark loses a JVM if it is interrupted while the JVM starts, and such a JVM never ends. So this module starts it, in a
session of its own, and can kill it at any moment.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

import codeanatomy
from codeanatomy.engine.directories import Scratch
from codeanatomy.engine.java import JavaRuntime
from codeanatomy.engine.memory import descendants
from codeanatomy.errors import LowMemoryError, MachineError

SPARK_HOME = Path(pyspark.__file__).parent
OUT_OF_MEMORY_EXIT = 3  # exit code of -XX:+ExitOnOutOfMemoryError
TOO_LITTLE_MEMORY = "there is not enough free memory; try the memory_tight profile"
NO_MEMORY = ("Could not reserve enough space", "Cannot allocate memory", "insufficient memory")

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_GATEWAY = "gateway"
_SECONDS_BETWEEN_CHECKS = 0.05
FOREIGN = ("SPARK_", "PYSPARK_", "PYTHON")
FOREIGN_TO_LOCAL = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
KEPT = ("PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")

LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""


@dataclass(frozen=True)
class Launch:
    """Everything that a JVM needs to start."""

    java: JavaRuntime
    conf: Mapping[str, str]
    java_options: Sequence[str]
    log_level: str
    log: Path
    scratch: Scratch
    config: Path
    is_local: bool


@contextlib.contextmanager
def isolated_environment(launch: Launch) -> Iterator[None]:
    """Hide the caller's environment from pyspark while it starts Spark; restored afterwards."""
    foreign = FOREIGN + (FOREIGN_TO_LOCAL if launch.is_local else ())
    before = dict(os.environ)
    for name in before:
        if name.startswith(foreign) and name not in KEPT:
            del os.environ[name]
    os.environ.update(
        JAVA_HOME=str(launch.java.home),
        PYSPARK_PYTHON=sys.executable,
        PYTHONPATH=worker_path(),
        PYTHONSAFEPATH="1",
        SPARK_CONF_DIR=str(launch.config),
        SPARK_HOME=str(SPARK_HOME),
    )
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def start_jvm(launch: Launch) -> subprocess.Popen[bytes]:
    """Start the JVM in the isolated environment. Once it runs, it ends when its standard input is closed."""
    directory = launch.scratch.path
    with launch.log.open("ab") as log:
        return subprocess.Popen(
            [SPARK_HOME / "bin/spark-submit", "--properties-file", _properties_file(launch), "pyspark-shell"],
            cwd=directory,
            env={**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(directory / _GATEWAY), "SPARK_CONNECT_MODE": "0"},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # ctrl-C goes to this process only
            pass_fds=[launch.scratch.lock],
        )


def gateway_to(process: subprocess.Popen[bytes], launch: Launch) -> JavaGateway:
    """Wait for a starting JVM and return pyspark's gateway to it, in the isolated environment."""
    connection_file = launch.scratch.path / _GATEWAY
    while not connection_file.is_file():
        if process.poll() is not None:
            raise start_failure("", start_error_in(launch.log), launch.log)
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    with connection_file.open("rb") as information:
        port, secret = read_int(information), UTF8Deserializer().loads(information)  # type: ignore[no-untyped-call]
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
    return launch_gateway()  # type: ignore[no-untyped-call]


def kill_jvm(process: subprocess.Popen[bytes]) -> None:
    """Kill the JVM, or the script that starts it."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def kill_with_workers(process: subprocess.Popen[bytes]) -> list[int]:
    """Kill the JVM and its child processes, which are returned."""
    workers = descendants(process.pid)
    kill_jvm(process)
    _kill(workers)
    return workers


def request_stop(process: subprocess.Popen[bytes]) -> list[int]:
    """Ask the JVM to stop Spark and exit; returns its child processes, which should end with it."""
    workers = descendants(process.pid)
    if process.stdin is not None:
        process.stdin.close()
    return workers


def wait_for_end(process: subprocess.Popen[bytes], workers: Sequence[int], seconds: float) -> None:
    """Wait until the JVM and its workers have ended; kill them after this time."""
    deadline = time.monotonic() + seconds
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    finally:  # also if the wait is interrupted
        if process.poll() is None:
            kill_jvm(process)
    remaining = list(workers)
    while remaining := [pid for pid in remaining if Path(f"/proc/{pid}").exists()]:
        if time.monotonic() > deadline:
            _kill(remaining)
            return
        time.sleep(0.02)


def _kill(processes: Sequence[int]) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def cause_of_death(process: subprocess.Popen[bytes], log: Path) -> MachineError | None:
    """Why the JVM ended, or None if it still runs."""
    try:
        code = process.wait(1)
    except subprocess.TimeoutExpired:
        return None
    if code == OUT_OF_MEMORY_EXIT:
        return MachineError(f"Spark's heap is too small; give it more with spark.driver.memory (log: {log})")
    if code == -signal.SIGKILL:
        return LowMemoryError(
            f"Spark was killed, most likely for lack of memory; try the memory_tight profile (log: {log})"
        )
    return MachineError(f"Spark's JVM ended unexpectedly with exit code {code} (log: {log})")


def start_failure(place: str, cause: str, log: Path) -> MachineError:
    """The error of a Spark that did not start."""
    kind = LowMemoryError if cause == TOO_LITTLE_MEMORY else MachineError
    return kind(f"Spark did not start{place}: {cause} (log: {log})")


def start_error_in(log: Path) -> str:
    """The line of the log that explains best why Spark did not start."""
    lines = [line.strip(" #\t") for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    if any(mark in line for line in lines for mark in NO_MEMORY):
        return TOO_LITTLE_MEMORY
    candidates = [line for line in lines if line and " WARN" not in line and not line.startswith(("WARN", "at "))]
    line = next((line for line in candidates if " ERROR " in line), (candidates or ["it printed nothing"])[0])
    return re.sub(r'^Exception in thread "\w+" [\w.$]+: ', "", line)


def _properties_file(launch: Launch) -> Path:
    logging = launch.scratch.path / "log4j2.properties"
    logging.write_text(LOGGING.format(level=launch.log_level), encoding="utf-8")
    options = (
        *launch.java_options,
        f"-Dlog4j2.configurationFile={logging.as_uri()}",
        f"-Djava.io.tmpdir={launch.scratch.path}",
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
    )
    java_options = [f'"{option}"' for option in options] + [launch.conf.get(JAVA_OPTIONS, "")]
    conf = {**launch.conf, JAVA_OPTIONS: " ".join(java_options)}
    # A private file: options may include storage credentials, and command lines are public.
    path = launch.scratch.path / "spark.conf"
    path.write_text("".join(f"{key}={_escaped(value)}\n" for key, value in conf.items()), encoding="utf-8")
    return path


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def worker_path() -> str:
    """The directory of this package if workers would not find it themselves."""
    root = str(Path(codeanatomy.__file__).parents[1])
    return "" if root in sysconfig.get_paths().values() else root
