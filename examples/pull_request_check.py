"""A check for pull requests: build the tree as it is now, and fail if something that others call was removed.

    python examples/pull_request_check.py path/to/repository [auto|pyrefly|none]

Keep the state between runs (a cache of your CI): the build then only rebuilds what the pull request affects.
"""

import sys

import codeanatomy as ca


def main(repo: str, index: str = "auto") -> int:
    """Print what the changes affect; the exit code is 1 if a function with callers elsewhere is gone."""
    before = ca.builds(repo)[0]
    result = ca.build(ca.BuildRequest(repo, index=index))
    if result.mode == "noop":
        print("nothing changed")
        return 0
    print(f"{result.files['rebuilt']} of {result.files['total']} files are affected")
    broken = 0
    for symbol in ca.diff(before.build_id, result.build_id, repo).symbols:
        print(f"{symbol.change:8} {symbol.name}")
        if symbol.change == "removed":
            broken += _callers_left(symbol.name, before.build_id, repo)
    return 1 if broken else 0


def _callers_left(name: str, build: str, repo: str) -> int:
    """Print who called `name` in the build before, from a definition that is still there."""
    definitions = {row[0] for row in ca.sql("SELECT name FROM definitions", repo).rows()}
    try:
        callers = ca.callers(name, repo, build=build)
    except ca.InputError:  # not something that can be called
        return 0
    left = [line for line in callers.lines if line.what in definitions]
    for line in left:
        print(f"         was called by {line.what} ({line.path}:{line.line})")
    return len(left)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
