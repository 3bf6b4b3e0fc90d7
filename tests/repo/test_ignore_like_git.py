"""The ignore rules are git's: whatever the ignore files say, scan keeps what git would not ignore."""

import shutil
import subprocess
from functools import reduce

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codeanatomy.repo.ignore import RulesAt, parse_rules
from codeanatomy.repo.scan import ScanOptions, scan
from codeanatomy.repo.snapshot import StatCache

NAMES = ("a", "b", "ab", "ba", "a.py", "ab.py", "a b", "é", "[a]", "!a", "#a", "a\\b", "a ", "b-", "a\nb")
IGNORE_FILES = (".gitignore", "a/.gitignore", "a/d/.gitignore", "b/.gitignore", ".git/info/exclude")

TOKENS = (
    *(
        "a",
        "b",
        "d",
        "ab",
        ".py",
        "*.py",
        "*",
        "**",
        "***",
        "**/",
        "/**",
        "?",
        "/",
        "!",
        "\\",
        " ",
        "#",
        "-",
        "é",
        "\0",
    ),
    *("**/**/", "/**/", "a/d", "d/a/", "**\\/", "\\/", "*a*", "*?", "?*", "a?b", "**a", "*/*/"),
    *(
        "[ab]",
        "[!a]",
        "[^b]",
        "[a-",
        "[]",
        "]",
        "[",
        "[[:alpha:]]",
        "[[:punct:]]",
        "[[:nope:]]",
        "[[:",
        "[b-a]",
        "[\\]]",
        "[[:space:]]",
        "[!-~]",
        "[^[:alpha:]]",
    ),
)
line = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=6).map("".join)
rules = st.lists(line, max_size=4).map("\n".join)
many_rules = st.lists(line, min_size=20, max_size=200).map("\n".join)


@pytest.fixture(scope="module")
def work_tree(tmp_path_factory):
    """Every name as a file, in the top and three levels of directories."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".git" / "info").mkdir(exist_ok=True)
    directories = [root / path for path in ("", "a.d", "d", "a/d/a", "a/d/d/b", "b/d", "b/a")]
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
    for directory in directories:
        for path in (directory / name for name in NAMES):
            if not path.exists():
                path.write_text("#!/usr/bin/python\n")
                path.chmod(0o755)
    return root


def decide(rules, path):
    """What rules say of a file, after a walk to its directory."""
    *folders, name = path.split(b"/")
    return reduce(RulesAt.below, folders, rules.start()).decide(name, is_directory=False)


def all_files(root):
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file() and path.name != ".gitignore")
    return {str(path) for path in paths if path.parts[0] != ".git"}


def ignored_by_git(root, paths):
    answer = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root,
        input="\0".join(sorted(paths)).encode(),
        capture_output=True,
        check=False,
    )
    assert answer.returncode in (0, 1), answer.stderr
    return {path.decode() for path in answer.stdout.split(b"\0") if path}


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.fixed_dictionaries(dict.fromkeys(IGNORE_FILES, rules) | {".gitignore": rules | many_rules}))
@example({".gitignore": "*\n!*/\n!*.py"})
@example({".gitignore": "*.py\nd/**", "a/.gitignore": "!d"})
@example({".gitignore": "a/*\n!a/d", "a/d/.gitignore": "a"})
@example({".gitignore": "a\n!a/d/a"})
@example({".gitignore": "b/a**\nab**"})
@example({".gitignore": "a**/b\n/**/d/**/b"})
@example({".gitignore": "a/**\\/a"})
@example({".gitignore": "**/**/a/**/**/d/*b*"})
@example({".gitignore": "ab\0c\n!b\0\n*\0"})
@example({".gitignore": "a[[:space:]]b\na[!/]b"})
@example({".gitignore": "\ufeffb\r\na \\ \r\na\\ "})
@example({".git/info/exclude": "b\nd", ".gitignore": "!d/\n!b", "a/d/.gitignore": "b"})
def test_scan_keeps_what_git_does_not_ignore(work_tree, ignore_files):
    for name in IGNORE_FILES:
        (work_tree / name).write_text(ignore_files.get(name, ""), newline="")
    kept = {file.path for file in scan(work_tree, ScanOptions(), StatCache()).files}
    paths = all_files(work_tree)
    assert kept == paths - ignored_by_git(work_tree, paths)


def test_a_linked_ignore_file_is_not_followed(tmp_path):
    (tmp_path / "a.py").touch()
    (tmp_path / "rules").write_text("*.py\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    assert [file.path for file in scan(tmp_path, ScanOptions(), StatCache()).files] == ["a.py"]


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("/" + "**/a/" * 30 + "b", "a/" * 120),
        ("/" + "**/*a*a/" * 20 + "b", "aaaaaaaaaa/" * 90),
        (" " * 200_000, "a"),
        ("\n".join(f"/**/a{n}?*/[!a]**" for n in range(50_000)), "/".join(["a1a2a3"] * 500)),
        ("\n".join(f"a/a/a/f{n}.py" for n in range(50_000)), "/".join(["a"] * 2000)),
        ("?" * 1_000_000, "a" * 250),
    ],
)
def test_a_hostile_pattern_costs_little(pattern, path):
    """Trying pattern by pattern takes minutes for some of these; trying again where a star may end, forever."""
    assert decide(parse_rules(pattern.encode(), "test"), path.encode()) is None


def test_fifty_thousand_rules_cost_little():
    """Trying rule by rule takes a second for each name, and there are two thousand."""
    patterns = [f"*a{n % 97}*b{n % 89}*c{n}*" for n in range(50_000)]
    rules = parse_rules("\n".join([*patterns, "!*c7*c7*"]).encode(), "test").start()
    for n in range(0, 50_000, 25):
        rule = rules.decide(b"-a%d-b%d-c%d-" % (n % 97, n % 89, n), is_directory=False)
        assert rule is not None
        assert rule.text == f"*a{n % 97}*b{n % 89}*c{n}*"
