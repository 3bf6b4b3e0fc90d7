"""One writer at a time; a dead writer stands in nobody's way."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codeanatomy.errors import StateError
from codeanatomy.store import StateLocation, hold_lease

from .samples import python


def holder(location: StateLocation) -> subprocess.Popen[str]:
    """A process that holds the lease and has a child that outlives it."""
    return subprocess.Popen(
        python(
            "import subprocess",
            "from codeanatomy.store import StateLocation, hold_lease",
            f"with hold_lease(StateLocation.at({location.uri!r})):",
            "    child = subprocess.Popen(['sleep', '20'])",
            "    print(child.pid, flush=True)",
            "    input()",
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_second_writer_is_told_who_is_first_until_it_dies(tmp_path: Path) -> None:
    location = StateLocation.at(tmp_path / "state")
    process = holder(location)
    assert process.stdout is not None
    child = process.stdout.readline().strip()
    try:
        with pytest.raises(StateError, match=rf"pid {process.pid} of .* for \d+ s\): wait"), hold_lease(location):
            pass
        process.kill()
        process.wait()
        with hold_lease(location) as lease:
            assert lease.location == location
    finally:
        subprocess.run(["kill", child], check=True)


def test_a_lease_ends_with_its_block(tmp_path: Path) -> None:
    location = StateLocation.at(tmp_path / "state")
    for _ in range(2):
        with hold_lease(location), pytest.raises(StateError, match="another build"), hold_lease(location):
            pass


def test_an_object_store_has_no_lease() -> None:
    location = StateLocation.at("s3://bucket/state")
    with hold_lease(location), hold_lease(location) as lease:
        assert lease.location == location
