"""Which repository this is: what tells it from others when a state is given to the wrong one.

Where it was cloned from says so on every machine, whatever the directory is called. A repository without a remote is
its directory; work trees are that of the repository they belong to. Nothing is run to find out.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from codeanatomy.repo.git import git_home, remote_url


@dataclass(frozen=True)
class Identity:
    """Where a repository was cloned from, without scheme and credentials, if it was; and where it is."""

    remote: str | None
    place: str

    def __str__(self) -> str:
        """How it is told to people."""
        return self.remote or self.place

    def may_be(self, other: Identity, *, same_place: bool) -> bool:
        """Whether both can be the same repository; `same_place` if what is known of the other lies inside this one."""
        if self.remote and other.remote:
            return self.remote == other.remote
        return same_place or self.place == other.place

    def as_text(self) -> str:
        """The identity as a state remembers it."""
        return json.dumps(asdict(self))


def identify(root: Path) -> Identity:
    """The repository at `root`."""
    home = git_home(root) or root.resolve()
    return Identity(_plain(remote_url(root)), str(home.parent if home.name == ".git" else home))


def identity_from(text: str) -> Identity:
    """The identity that a state remembers; ValueError if that is none."""
    try:
        known = Identity(**json.loads(text))
    except (TypeError, RecursionError) as error:
        raise ValueError("not an identity") from error
    if not isinstance(known.place, str) or not isinstance(known.remote, str | None):
        raise ValueError("not an identity")  # noqa: TRY004 - a text that is none, however that shows
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
