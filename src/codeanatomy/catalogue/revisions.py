"""What extraction and resolution are at: with other revisions, the same content can have other facts or answers.

They are here, not in the rooms that they are of, because a build that has nothing to do needs them and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final
from unicodedata import unidata_version

from codeanatomy.catalogue.layers import LAYERS, facts_of

RESOLVER_REVISION: Final = 4
"""Raise it whenever a change gives some question another answer."""

_PARSER_VERSIONS: Final = (version("tree-sitter"), version("tree-sitter-python"), unidata_version)


def _version(layer: str, number: int) -> str:
    """The version of a layer: its number, and a hash of the parser's versions and the types of its columns."""
    depends_on = repr((*_PARSER_VERSIONS, str(facts_of([layer]).schema())))
    return f"{number}-{hashlib.sha256(depends_on.encode()).hexdigest()[:12]}"


LAYER_VERSIONS: Final[Mapping[str, str]] = {layer.name: _version(layer.name, layer.version) for layer in LAYERS}
"""The version of each layer: facts of another version are never used."""
