"""What a scan sees, what it refuses to look at, and when it reads a file again."""

import os
import shutil
import socket
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from codeanatomy.errors import InputError
from codeanatomy.repo import reading
from codeanatomy.repo.scan import IGNORE_BYTES, ScanOptions, read_contents, scan
from codeanatomy.repo.snapshot import Skipped, StatCache, file_id
from tests.repositories import deep_file

LATER_NS = 60_000_000_000


def write(root, *paths, text="x = 1\n"):
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def paths(root, previous=StatCache(), **options):  # noqa: B008 (an immutable value)
    return [file.path for file in scan(root, ScanOptions(**options), previous).files]


def skipped(root, **options):
    return {skip.path: skip.reason for skip in scan(root, ScanOptions(**options), StatCache()).skipped}


def settled(snapshot):
    """The cache as it would be had the scan happened long after the last write."""
    return replace(snapshot.stat_cache, scanned_at_ns=snapshot.stat_cache.scanned_at_ns + LATER_NS)


@pytest.fixture
def opened(monkeypatch):
    """The names of the files opened since the last clear(), but for git's own."""
    names = []
    original = os.open

    def recording(path, flags, *rest):
        assert flags & os.O_NOFOLLOW
        if (name := Path(os.fsdecode(path)).name) != ".git":
            names.append(name)
        return original(path, flags, *rest)

    monkeypatch.setattr(reading.os, "open", recording)
    return names


def test_python_files_in_the_order_of_their_path_bytes(tmp_path):
    write(tmp_path, "b.py", "a/x.pyi", "a.py", "a-b.pyw", "é.py", "Z.py", "notes.txt", "a.pyc", ".py", "data.py.bak")
    assert paths(tmp_path) == ["Z.py", "a-b.pyw", "a.py", "a/x.pyi", "b.py", "é.py"]


def test_a_file_carries_the_hash_of_its_bytes_and_of_its_path(tmp_path):
    write(tmp_path, "a.py")
    (file,) = scan(tmp_path, ScanOptions(), StatCache()).files
    assert (file.status, file.size, file.content_id) == ("ok", 6, sha256(b"x = 1\n").hexdigest())
    assert file.file_id == file_id("a.py") == sha256(b"a.py").hexdigest()[:24]
    (file,) = scan(tmp_path, ScanOptions(repo_id="fork"), StatCache()).files
    assert file.file_id == file_id("a.py", "fork") == sha256(b"fork\0a.py").hexdigest()[:24]


@pytest.mark.parametrize(
    ("first_line", "is_python"),
    [
        ("#!/usr/bin/env python3", True),
        ("#!/usr/bin/python3.11 -I", True),
        ("#!/opt/pypy", True),
        ("#!/bin/sh", False),
        ("#!/usr/bin/pythonic", False),
        ("import python", False),
        ("", False),
    ],
)
def test_an_executable_without_suffix_counts_by_its_first_line(tmp_path, first_line, is_python):
    write(tmp_path, "tool", text=f"{first_line}\n#!python\n")
    assert paths(tmp_path) == []
    (tmp_path / "tool").chmod(0o755)
    assert paths(tmp_path) == (["tool"] if is_python else [])


def test_directories_that_are_never_walked(tmp_path):
    write(tmp_path, "a.py", ".git/hooks/x.py", "p/__pycache__/y.py", "p/.git/z.py", "venv/lib/m.py", "venv/pyvenv.cfg")
    write(tmp_path, "out/state/s.py", "out/t.py")
    assert paths(tmp_path, state_dir=tmp_path / "out" / "state") == ["a.py", "out/t.py"]
    assert skipped(tmp_path) == {"venv": "virtual_environment"}
    assert "venv/lib/m.py" in paths(tmp_path, virtual_environments=True)


def test_a_virtual_environment_given_as_the_root_is_scanned(tmp_path):
    write(tmp_path, "pyvenv.cfg", "lib/m.py")
    assert paths(tmp_path) == ["lib/m.py"]


def test_include_narrows_and_exclude_has_the_last_word(tmp_path):
    write(tmp_path, "src/a.py", "src/gen/b.py", "src/gen/keep.py", "docs/conf.py", "build/c.py")
    write(tmp_path, ".gitignore", text="build/\n")
    assert paths(tmp_path, include=("src/",)) == ["src/a.py", "src/gen/b.py", "src/gen/keep.py"]
    assert paths(tmp_path, include=("src/", "!src/gen/", "keep.py")) == ["src/a.py", "src/gen/keep.py"]
    assert paths(tmp_path, exclude=("src/gen/*", "!keep.py", "docs")) == ["src/a.py", "src/gen/keep.py"]
    assert "build/c.py" in paths(tmp_path, exclude=("!build/",))
    assert paths(tmp_path, include=("src",), exclude=("gen",)) == ["src/a.py"]


def test_what_is_ignored_is_reported_with_the_pattern_that_did_it(tmp_path):
    write(tmp_path, "p/a.py", "p/b.py", "p/c.txt")
    write(tmp_path, "p/.gitignore", text="b*\nc*\n")
    snapshot = scan(tmp_path, ScanOptions(), StatCache())
    assert snapshot.skipped == (Skipped("p/b.py", "ignored", "b* (p/.gitignore)"),)


def test_an_ignore_file_that_cannot_be_read_is_reported(tmp_path):
    write(tmp_path, "a.py")
    (tmp_path / ".gitignore").write_bytes(b"a.py\n" * 300_000)
    assert paths(tmp_path) == ["a.py"]
    assert skipped(tmp_path) == {".gitignore": "unreadable"}


def test_ignore_files_that_are_too_long_together_are_reported(tmp_path):
    write(tmp_path, "p/a.py", "p/q/a.py", "r/a.py")
    long = b"#" * (IGNORE_BYTES // 2)
    for folder, pattern in (("p", b"b.py"), ("p/q", b"a.py"), ("r", b"a.py")):
        (tmp_path / folder / ".gitignore").write_bytes(long + b"\n" + pattern)
    assert paths(tmp_path) == ["p/a.py", "p/q/a.py"]
    assert skipped(tmp_path) == {"p/q/.gitignore": "unreadable", "r/a.py": "ignored"}


def test_a_file_may_be_as_deep_as_its_path_can_be_long(tmp_path):
    with deep_file(tmp_path, 1000) as path:
        assert paths(tmp_path) == [path]
        ((_, content),) = read_contents(tmp_path, scan(tmp_path, ScanOptions(), StatCache()).files)
        assert content == b""
    with deep_file(tmp_path, 3000):
        assert paths(tmp_path) == []
        assert set(skipped(tmp_path).values()) == {"unreadable"}


def test_links_are_never_followed(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "root"
    write(outside, "secret.py", "package/m.py")
    write(root, "a.py", "p/m.py")
    (root / "loop").symlink_to(root)
    (root / "p" / "up").symlink_to("..")
    (root / "self.py").symlink_to("self.py")
    (root / "inside.py").symlink_to("a.py")
    (root / "outside.py").symlink_to(outside / "secret.py")
    (root / "package").symlink_to(outside / "package")
    assert paths(root) == ["a.py", "p/m.py"]
    links = ("inside.py", "loop", "outside.py", "p/up", "package", "self.py")
    assert skipped(root) == dict.fromkeys(links, "link")


def test_the_root_itself_may_be_a_link(tmp_path):
    write(tmp_path, "real/a.py", "real/state/b.py")
    (tmp_path / "link").symlink_to("real")
    assert paths(tmp_path / "link", state_dir=tmp_path / "link" / "state") == ["a.py"]


def test_a_file_replaced_by_a_link_during_the_scan_is_not_followed(tmp_path, monkeypatch):
    outside, root = tmp_path / "secret.py", tmp_path / "root"
    outside.write_text("secret")
    write(root, "a.py")
    original = os.open

    def swapping(path, flags, *rest):
        if os.fsdecode(path) == str(root / "a.py"):
            (root / "a.py").unlink()
            (root / "a.py").symlink_to(outside)
        return original(path, flags, *rest)

    monkeypatch.setattr(reading.os, "open", swapping)
    (file,) = scan(root, ScanOptions(), StatCache()).files
    assert (file.status, file.content_id) == ("unreadable", None)


def test_special_files_are_not_opened(tmp_path, opened):
    os.mkfifo(tmp_path / "fifo.py")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.py"))
        assert skipped(tmp_path) == {"fifo.py": "special", "socket.py": "special"}
    assert not {"fifo.py", "socket.py"} & set(opened)


def test_reading_a_fifo_does_not_wait_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "fifo.py")
    with pytest.raises(OSError, match="Not a regular file"):
        reading.read_regular(tmp_path / "fifo.py", 10)


def test_names_that_are_not_utf8(tmp_path):
    write(tmp_path, "ok.py", *map(os.fsdecode, (b"caf\xe9.py", b"notes-\xe9.txt", b"d\xff/a.py")))
    assert paths(tmp_path) == ["ok.py"]
    assert skipped(tmp_path) == {"caf\\xe9.py": "name_not_utf8", "d\\xff": "name_not_utf8"}


def test_a_large_file_is_there_but_not_read(tmp_path, opened):
    write(tmp_path, "big.py", text="x" * 11)
    write(tmp_path, "fits.py", text="x" * 10)
    big, fits = scan(tmp_path, ScanOptions(max_file_bytes=10), StatCache()).files
    assert (big.status, big.content_id, big.size) == ("too_large", None, 11)
    assert fits.status == "ok"
    assert "big.py" not in opened


@pytest.mark.parametrize("failure", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "Gone")])
def test_an_unreadable_file_is_reported_and_the_rest_goes_on(tmp_path, monkeypatch, failure):
    write(tmp_path, "a.py", "b.py")
    original = os.open

    def failing(path, flags, *rest):
        if os.fsdecode(path).endswith("a.py"):
            raise failure
        return original(path, flags, *rest)

    monkeypatch.setattr(reading.os, "open", failing)
    a, b = scan(tmp_path, ScanOptions(), StatCache()).files
    assert (a.status, a.content_id, a.detail) == ("unreadable", None, failure.strerror)
    assert b.status == "ok"


def test_an_unreadable_directory_is_reported(tmp_path, monkeypatch):
    write(tmp_path, "a.py", "locked/b.py")
    original = os.scandir

    def failing(path):
        if os.fsdecode(path).rstrip("/").endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "scandir", failing)
    assert paths(tmp_path) == ["a.py"]
    assert skipped(tmp_path) == {"locked": "unreadable"}


def test_deeper_than_the_recursion_limit(tmp_path):
    directories = [tmp_path / ("d/" * depth) for depth in range(1, 1200)]
    for directory in directories:
        directory.mkdir()
    (directories[-1] / "a.py").touch()
    try:
        assert paths(tmp_path) == ["d/" * 1199 + "a.py"]
    finally:  # whoever cleans up after the test may recurse
        (directories[-1] / "a.py").unlink()
        for directory in reversed(directories):
            directory.rmdir()


def test_progress_counts_the_files(tmp_path):
    write(tmp_path, "a.py", "p/b.py", "c.txt")
    seen = []
    scan(tmp_path, ScanOptions(), StatCache(), progress=seen.append)
    assert seen == [1, 2]


def test_unchanged_files_are_not_opened_again(tmp_path, opened):
    write(tmp_path, "a.py", "p/b.py")
    write(tmp_path, "tool", text="#!/usr/bin/python\n")
    (tmp_path / "tool").chmod(0o755)
    first = scan(tmp_path, ScanOptions(), StatCache())
    assert sorted(opened) == ["a.py", "b.py", "tool", "tool"]
    opened.clear()
    second = scan(tmp_path, ScanOptions(), settled(first))
    assert opened == []
    assert second == first
    assert second.stat_cache.entries == first.stat_cache.entries


def test_a_changed_file_alone_is_read_again(tmp_path, opened):
    write(tmp_path, "a.py", "b.py")
    first = scan(tmp_path, ScanOptions(), StatCache())
    write(tmp_path, "a.py", text="y = 22\n")
    opened.clear()
    second = scan(tmp_path, ScanOptions(), settled(first))
    assert opened == ["a.py"]
    assert second.files[0].content_id == sha256(b"y = 22\n").hexdigest()
    assert second.snapshot_id != first.snapshot_id


def test_a_rewrite_with_the_old_size_and_the_old_mtime_is_seen(tmp_path):
    write(tmp_path, "a.py", text="x = 1\n")
    before = (tmp_path / "a.py").stat()
    first = scan(tmp_path, ScanOptions(), StatCache())
    write(tmp_path, "a.py", text="x = 2\n")
    os.utime(tmp_path / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    after = (tmp_path / "a.py").stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    second = scan(tmp_path, ScanOptions(), settled(first))
    assert second.files[0].content_id == sha256(b"x = 2\n").hexdigest()


def test_a_rewrite_that_leaves_every_stamp_equal_is_seen_while_the_entry_is_young(tmp_path):
    """Two writes within one tick of a coarse clock: only the racy rule can catch the second."""
    write(tmp_path, "a.py", text="x = 1\n")
    first = scan(tmp_path, ScanOptions(), StatCache())
    write(tmp_path, "a.py", text="x = 2\n")
    same_tick = scan(tmp_path, ScanOptions(), StatCache()).stat_cache.entries["a.py"][0]
    entries = {"a.py": (same_tick, first.files[0].content_id)}
    changed = sha256(b"x = 2\n").hexdigest()
    newest = max(same_tick.mtime_ns, same_tick.ctime_ns)
    for age_ns, expected in [(0, changed), (2_000_000_000, changed), (2_000_000_001, first.files[0].content_id)]:
        cache = StatCache(newest + age_ns, entries)
        assert scan(tmp_path, ScanOptions(), cache).files[0].content_id == expected


def test_a_file_replaced_by_another_of_the_same_stamps_is_seen_by_its_inode(tmp_path):
    write(tmp_path, "a.py")
    first = scan(tmp_path, ScanOptions(), StatCache())
    stamp, content_id = first.stat_cache.entries["a.py"]
    cache = StatCache(stamp.ctime_ns + LATER_NS, {"a.py": (stamp._replace(inode=stamp.inode + 1), "0" * 64)})
    assert scan(tmp_path, ScanOptions(), cache).files[0].content_id == content_id


def test_the_cache_survives_saving(tmp_path):
    write(tmp_path, "a.py", "é/b.py")
    cache = scan(tmp_path, ScanOptions(), StatCache()).stat_cache
    cache.save(tmp_path / "stats")
    assert StatCache.load(tmp_path / "stats") == cache
    replace(cache, scanned_at_ns=7).save(tmp_path / "stats")
    assert StatCache.load(tmp_path / "stats").scanned_at_ns == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "stats", "é"]


def test_a_damaged_cache_is_an_empty_cache(tmp_path):
    write(tmp_path, "a.py")
    saved = tmp_path / "stats"
    assert StatCache.load(saved) == StatCache()
    scan(tmp_path, ScanOptions(), StatCache()).stat_cache.save(saved)
    whole = saved.read_bytes()
    flipped = whole.replace(b'"a.py"', b'"b.py"')
    of_another_version = whole[32:].replace(b'"version":1', b'"version":2')
    not_a_cache = b"[1]"
    for damaged in (
        b"",
        whole[:-1],
        flipped,
        sha256(of_another_version).digest() + of_another_version,
        sha256(not_a_cache).digest() + not_a_cache,
    ):
        assert damaged != whole
        saved.write_bytes(damaged)
        assert StatCache.load(saved) == StatCache()


def test_the_snapshot_id_is_that_of_the_files(tmp_path):
    write(tmp_path, "one/a.py", "one/b.py")
    shutil.copytree(tmp_path / "one", tmp_path / "two")

    def snapshot_id(name, **options):
        return scan(tmp_path / name, ScanOptions(**options), StatCache()).snapshot_id

    assert snapshot_id("one") == snapshot_id("two")
    assert snapshot_id("one") != snapshot_id("one", repo_id="fork")
    assert snapshot_id("one") != snapshot_id("one", max_file_bytes=1)
    write(tmp_path, "two/notes.txt")
    assert snapshot_id("one") == snapshot_id("two")
    (tmp_path / "two" / "b.py").rename(tmp_path / "two" / "c.py")
    assert snapshot_id("one") != snapshot_id("two")


def test_contents_are_read_once_each(tmp_path):
    write(tmp_path, "a.py", "b.py")
    write(tmp_path, "c.py", text="y = 2\n")
    write(tmp_path, "big.py", text="x" * 100)
    files = scan(tmp_path, ScanOptions(max_file_bytes=50), StatCache()).files
    delivered = [(file.path, content) for file, content in read_contents(tmp_path, files)]
    assert delivered == [("a.py", b"x = 1\n"), ("c.py", b"y = 2\n")]


def test_contents_that_changed_since_the_scan_are_not_delivered(tmp_path):
    write(tmp_path, "a.py", "b.py", "copy_of_b.py", text="x = 1\n")
    write(tmp_path, "a.py", text="a = 1\n")
    write(tmp_path, "grown.py", text="g = 1\n")
    write(tmp_path, "kept.py", text="k = 1\n")
    files = scan(tmp_path, ScanOptions(), StatCache()).files
    write(tmp_path, "a.py", text="a = 2\n")
    (tmp_path / "b.py").unlink()
    write(tmp_path, "grown.py", text="g = 1\nh = 2\n")
    delivered = {file.path: content for file, content in read_contents(tmp_path, files)}
    assert delivered == {
        "a.py": None,
        "b.py": None,
        "copy_of_b.py": b"x = 1\n",
        "grown.py": None,
        "kept.py": b"k = 1\n",
    }


def test_a_root_that_cannot_be_scanned(tmp_path):
    write(tmp_path, "a.py")
    with pytest.raises(InputError, match=r"no such directory: .*gone: give the path"):
        paths(tmp_path / "gone")
    with pytest.raises(InputError, match=r"not a directory: .*a\.py: give the directory"):
        paths(tmp_path / "a.py")
    with pytest.raises(InputError, match=r"no such directory"):
        paths(tmp_path / "a.py" / "b")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"cannot open .*loop: .*: give a directory that can be read"):
        paths(tmp_path / "loop")
