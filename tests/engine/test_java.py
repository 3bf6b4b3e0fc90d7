"""Which Java is taken, and what the user reads when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.engine.java import find_java, require_java
from codeanatomy.errors import MachineError


def install(home: Path, version: str) -> Path:
    launcher = home / "bin/java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text("#!/bin/sh\nexit 1\n")
    launcher.chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_wins_over_path_over_the_usual_places(tmp_path: Path) -> None:
    home, on_path = install(tmp_path / "a", "17.0.1"), install(tmp_path / "b", "21.0.2")
    usual = install(tmp_path / "jvm/c", "25").parent
    everything = {"JAVA_HOME": str(home), "PATH": str(on_path / "bin")}
    assert find_java(everything, [usual]).version == "17.0.1"
    assert find_java({"PATH": str(on_path / "bin")}, [usual]).version == "21.0.2"
    assert find_java({}, [usual]).version == "25"
    assert find_java({}, []) is None


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, good = install(tmp_path / "old", "1.8.0_402"), install(tmp_path / "jvm/good", "17.0.15")
    found = find_java({"JAVA_HOME": str(old)}, [good.parent])
    assert (found.home, found.major) == (good, 17)


def test_a_launcher_that_does_not_run_is_no_java(tmp_path: Path) -> None:
    home = install(tmp_path / "stub", "17")
    (home / "release").unlink()  # now the launcher itself is asked, and fails
    assert find_java({"JAVA_HOME": str(home)}, []) is None


def test_without_java_the_error_says_what_to_do() -> None:
    with pytest.raises(MachineError, match=r"^no Java was found: install Java 17 or newer \(.+\), or point JAVA_HOME"):
        require_java({}, [])


def test_with_only_an_old_java_the_error_names_it(tmp_path: Path) -> None:
    old = install(tmp_path / "old", "11.0.2")
    with pytest.raises(MachineError, match=f"too old \\(11.0.2 in {old}\\): install Java 17"):
        require_java({"JAVA_HOME": str(old)}, [])
