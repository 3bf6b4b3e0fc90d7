"""The identity of a repository, to detect a state that belongs to another one.

It is the address it was cloned from, which is the same on every machine and in every directory. A repository without a
remote is identified by its directory; work trees by that of their repository. No program is run.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from codeanatomy.repo.git import git_home, remote_url


@dataclass(frozen=True)
class Identity:
    """The remote of a repository, without scheme and credentials, if it has one; and its directory."""

    remote: str | None
    place: str

    def __str__(self) -> str:
        """The identity in messages."""
        return self.remote or self.place

    def may_be(self, other: Identity, *, same_place: bool) -> bool:
        """Whether both can be the same repository; `same_place` if the other identity is stored inside this one."""
        if self.remote and other.remote:
            return self.remote == other.remote
        return same_place or self.place == other.place

    def as_text(self) -> str:
        """The identity as a state stores it."""
        return json.dumps(asdict(self))


def identify(root: Path) -> Identity:
    """The repository at `root`."""
    home = git_home(root) or root.resolve()
    return Identity(_plain(remote_url(root)), str(home.parent if home.name == ".git" else home))


def identity_from(text: str) -> Identity:
    """The identity that a state stores; ValueError if it is invalid."""
    try:
        known = Identity(**json.loads(text))
    except (TypeError, RecursionError) as error:
        raise ValueError("not an identity") from error
    if not isinstance(known.place, str) or not isinstance(known.remote, str | None):
        raise ValueError("not an identity")  # noqa: TRY004 - an invalid text, like any other
    return known


def _plain(url: str | None) -> str | None:
    """Host and path of a remote, which are the same for ssh and https; None for a path relative to this machine's."""
    if url is None or url.startswith("."):
        return None
    scheme, separator, rest = url.partition("://")
    if separator:
        host, _, path = rest.partition("/")
    elif ":" in url.partition("/")[0]:  # user@host:path
        scheme, host, path = "ssh", *url.split(":", 1)
    else:
        scheme, host, path = "file", "", url
    host = "" if scheme == "file" else host.rpartition("@")[2].partition(":")[0].lower()
    return f"{host}/{path.strip('/').removesuffix('.git')}"
