"""Find the Java runtime for Spark. Must not start Spark or change the environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from codeanatomy.errors import MachineError

OLDEST_JAVA = 17

USUAL_DIRECTORIES = (
    Path("/usr/lib/jvm"),
    Path("/usr/java"),
    Path("/opt/java"),
    Path("/opt/homebrew/opt"),
    Path("/usr/local/opt"),
    Path("/Library/Java/JavaVirtualMachines"),
    Path.home() / ".sdkman/candidates/java",
    Path.home() / ".jdks",
)

INSTALL = {
    "darwin": "brew install openjdk@17",
    "linux": "apt install openjdk-17-jre-headless, or dnf install java-17-openjdk-headless",
}


@dataclass(frozen=True)
class JavaRuntime:
    """A Java installation: its launcher and the version it reports."""

    path: Path
    version: str

    @property
    def home(self) -> Path:
        """The directory JAVA_HOME would name."""
        return self.path.parents[1]

    @property
    def major(self) -> int:
        """17 of 17.0.15; 8 of 1.8.0_402."""
        numbers = [int(number) for number in re.findall(r"\d+", self.version)]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def find_java(
    environ: Mapping[str, str] = os.environ, directories: Iterable[Path] = USUAL_DIRECTORIES
) -> JavaRuntime | None:
    """The first runtime that is new enough: from JAVA_HOME, then PATH, then the usual directories."""
    return next((runtime for runtime in _runtimes(environ, directories) if runtime.major >= OLDEST_JAVA), None)


def require_java(
    environ: Mapping[str, str] = os.environ, directories: Iterable[Path] = USUAL_DIRECTORIES
) -> JavaRuntime:
    """A runtime Spark can use, or an error that says what to install."""
    runtime = find_java(environ, directories)
    if runtime is not None:
        return runtime
    too_old = ", ".join(f"{old.version} in {old.home}" for old in _runtimes(environ, directories))
    found = f"the Java found is too old ({too_old})" if too_old else "no Java was found"
    how = INSTALL.get(sys.platform, INSTALL["linux"])
    raise MachineError(f"{found}", hint=f"install Java {OLDEST_JAVA} or newer ({how}), or point JAVA_HOME at one")


def _runtimes(environ: Mapping[str, str], directories: Iterable[Path]) -> Iterator[JavaRuntime]:
    for path in _launchers(environ, directories):
        version = _version_of(path)
        if version is not None:
            yield JavaRuntime(path, version)


def _launchers(environ: Mapping[str, str], directories: Iterable[Path]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"]) / "bin/java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path).resolve()
    for directory in directories:
        for pattern in ("*/bin/java", "*/Contents/Home/bin/java", "*/libexec/openjdk.jdk/Contents/Home/bin/java"):
            yield from sorted(directory.glob(pattern))


def _version_of(java: Path) -> str | None:
    if not os.access(java, os.X_OK):
        return None
    try:
        # A hundred times faster than starting the JVM.
        text = (java.parents[1] / "release").read_text(encoding="utf-8")
    except OSError:
        try:
            text = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
        except (OSError, subprocess.SubprocessError):
            return None
    match = re.search(r'(?:JAVA_VERSION=|version )"(\d[^"]*)"', text)
    return match.group(1) if match else None
