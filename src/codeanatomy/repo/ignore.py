"""Git's ignore rules, exactly: which rule, if any, decides about one path.

The rules follow git's `dir.c` and `wildmatch.c`, quirks included, and are tested against `git check-ignore`. They come
from the analysed tree, so a malformed pattern matches nothing, and no pattern makes matching explode: all patterns of
a file are one automaton that reads a path once, byte by byte, and never goes back. What a byte costs depends on the
length of the patterns alone, not on what is in them or how many there are. Patterns without a wildcard are looked up.

A rule speaks about the path itself, never about what is below it: the walk does not enter an ignored
directory, which is how git does it too. This module never touches the file system.

Glossary
    place     a position in a pattern; one bit of a whole number that says which places a path has reached.
    state     the places that have been reached; a byte of the path moves each on, keeps it or drops it.
    span      `**/`: any number of whole directories; a place of its own, which a `/` also moves on to the next.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_SLASH = ord("/")
_ANY = 0
"""What a place waits for if it is any byte but a slash: no file name and no pattern has a NUL."""
_NOTHING = ord("\n")
"""What a place waits for if no byte moves it on: no pattern has a line break."""
_ZERO, _ONE = b"01"

_WILD = re.compile(rb"[*?\[\\]")
_CLASSES = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, [*range(32), 127])),
    b"digit": string.digits,
    b"graph": string.ascii_letters + string.digits + string.punctuation,
    b"lower": string.ascii_lowercase,
    b"print": string.ascii_letters + string.digits + string.punctuation + " ",
    b"punct": string.punctuation,
    b"space": string.whitespace,
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file: its text, and whether it re-includes."""

    text: str
    negated: bool


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one ignore file; `size` is the length of its text."""

    source: str
    size: int
    rules: tuple[Rule, ...]
    _names: dict[bytes, int]
    _paths: dict[bytes, int]
    _patterns: _Patterns

    def start(self) -> RulesAt:
        """The rules as they apply in the directory of their file."""
        return RulesAt(self, b"", self._patterns.at_base)

    def last_match(self, folder: bytes, state: int, name: bytes, *, is_directory: bool) -> Rule | None:
        """The last rule that matches a name in `folder`, the path of which has led to `state`."""
        key = name + b"/" if is_directory else name
        number = max(
            self._names.get(key, -1),
            self._paths.get(folder + key, -1) if self._paths else -1,
            self._patterns.last_match(state, name, is_directory=is_directory),
        )
        return self.rules[number] if number >= 0 else None

    def below(self, state: int, name: bytes) -> int:
        """The state in a directory called `name`."""
        return self._patterns.after(state, name + b"/")


@dataclass(frozen=True, slots=True)
class RulesAt:
    """Rules as they apply in one directory, whose path below the rules' own is `folder`, empty or with a final slash.

    What the path of the directory means to the patterns is known, so a name in it is read without that path.
    """

    rule_set: RuleSet
    folder: bytes
    state: int

    def decide(self, name: bytes, *, is_directory: bool) -> Rule | None:
        """The last rule that matches what has this name in the directory, or None."""
        if not self.rule_set.rules:
            return None
        return self.rule_set.last_match(self.folder, self.state, name, is_directory=is_directory)

    def below(self, name: bytes) -> RulesAt:
        """The same rules in the directory that has this name."""
        if not self.rule_set.rules:
            return self
        return RulesAt(self.rule_set, self.folder + name + b"/", self.rule_set.below(self.state, name))


def parse_rules(text: bytes, source: str) -> RuleSet:
    """The rules of an ignore file's text."""
    lines = (line.removesuffix(b"\r") for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    rules: list[Rule] = []
    names: dict[bytes, int] = {}
    paths: dict[bytes, int] = {}
    patterns = _PatternsBuilder()
    for line in lines:
        if not line or line.startswith(b"#"):
            continue
        whole = _without_trailing_spaces(line.partition(b"\0")[0])  # to git, a NUL is the end of the text
        pattern = whole.removeprefix(b"!")
        number = len(rules)
        rules.append(Rule(whole.decode("utf-8", "backslashreplace"), pattern != whole))
        only_directories = pattern.endswith(b"/")
        pattern = pattern.removesuffix(b"/")
        by_name = b"/" not in pattern
        pattern = pattern.removeprefix(b"/")
        if _WILD.search(pattern):
            patterns.add(pattern, number, by_name=by_name, only_directories=only_directories)
        else:
            literals = names if by_name else paths
            literals[pattern + b"/"] = number
            if not only_directories:
                literals[pattern] = number
    return RuleSet(source, len(text), tuple(rules), names, paths, patterns.built())


def pattern_rules(patterns: Sequence[str], source: str) -> RuleSet:
    """The rules given as a list of patterns, one line each."""
    return parse_rules("\n".join(patterns).encode("utf-8", "surrogateescape"), source)


def _without_trailing_spaces(line: bytes) -> bytes:
    pattern = line.rstrip(b" ")
    backslashes = len(pattern) - len(pattern.rstrip(b"\\"))
    return pattern + b" " if backslashes % 2 and pattern != line else pattern


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Patterns as one automaton. Those of later rules have higher places, so the highest that is reached has won."""

    waits_for: bytes
    brackets: tuple[tuple[int, int], ...]  # places that wait for one byte of many, and those bytes, as bits
    at_base: int
    at_name: int
    stars: int
    spans: int
    anything: int
    ends: int
    ends_for_files: int
    ends_in_order: tuple[int, ...]
    numbers: tuple[int, ...]
    _moved_by: dict[int, int] = field(default_factory=dict)

    def after(self, state: int, text: bytes) -> int:
        """The state after some bytes of a path."""
        spans, at_slash, elsewhere, moved_by = self.spans, self.anything, self.anything | self.stars, self._moved_by
        for byte in text:
            if not state:
                break
            places = moved_by[byte] if byte in moved_by else self._places_moved_by(byte)
            moved = (state & places) << 1
            state = moved | (moved & spans) << 1 | state & (at_slash if byte == _SLASH else elsewhere)
        return state

    def last_match(self, state: int, name: bytes, *, is_directory: bool) -> int:
        """The number of the last rule that matches a name in a directory with this state, or -1."""
        reached = self.after(state | self.at_name, name) & (self.ends if is_directory else self.ends_for_files)
        return self.numbers[bisect_left(self.ends_in_order, reached.bit_length() - 1)] if reached else -1

    def _places_moved_by(self, byte: int) -> int:
        table = bytearray([_ZERO]) * 256
        table[_ANY] = _ZERO if byte == _SLASH else _ONE
        if byte != _NOTHING:
            table[byte] = _ONE
        digits = bytearray(self.waits_for.translate(table))
        for place, members in self.brackets:
            if members >> byte & 1:
                digits[place] = _ONE
        places = self._moved_by[byte] = _number(digits)
        return places


class _PatternsBuilder:
    """Makes one automaton of patterns, which are added in the order of their rules."""

    def __init__(self) -> None:
        self._waits_for = bytearray()
        self._brackets: list[tuple[int, int]] = []
        self._at_base: list[int] = []
        self._at_name: list[int] = []
        self._stars: list[int] = []
        self._spans: list[int] = []
        self._anything: list[int] = []
        self._ends: list[int] = []
        self._ends_for_files: list[int] = []
        self._numbers: list[int] = []

    def add(self, pattern: bytes, number: int, *, by_name: bool, only_directories: bool) -> None:
        """Add a pattern with a wildcard, without its `!` and its outer slashes."""
        (self._at_name if by_name else self._at_base).append(len(self._waits_for))
        self._add_places(pattern)
        end = len(self._waits_for)
        self._ends.append(end)
        if not only_directories:
            self._ends_for_files.append(end)
        self._numbers.append(number)
        self._waits_for.append(_NOTHING)

    def _add_places(self, pattern: bytes) -> None:
        wild = _WILD.search(pattern)
        # Git compares the literal beginning by itself, so to the rest a wildcard right after it stands at the start.
        start = at = wild.start() if wild else len(pattern)
        places = self._waits_for
        places += pattern[:start]
        while at < len(pattern):
            byte = pattern[at : at + 1]
            if byte == b"*":
                stars = at
                while pattern[at : at + 1] == b"*":
                    at += 1
                spans = at - stars > 1 and (stars == start or pattern[stars - 1 : stars] == b"/")
                if spans and at == len(pattern):
                    self._anything.append(len(places))
                elif spans and pattern.startswith((b"/", b"\\/"), at):
                    if pattern.startswith(b"\\", at):  # an escaped slash: git no longer tries "no directory at all"
                        self._stars.append(len(places))
                        places.append(_SLASH)
                    at = pattern.index(b"/", at) + 1
                    self._add_span()
                else:
                    self._stars.append(len(places))
            elif byte == b"?":
                places.append(_ANY)
                at += 1
            elif byte == b"[":
                members, at = _bracket(pattern, at + 1)
                self._brackets.append((len(places), members))
                places.append(_NOTHING)
            else:
                at += byte == b"\\"
                places.append(pattern[at] if at < len(pattern) else _NOTHING)
                at += 1

    def _add_span(self) -> None:
        place = len(self._waits_for)
        if not self._spans or self._spans[-1] != place - 1:  # any number of directories twice is any number
            self._spans.append(place)
            self._anything.append(place)
            self._waits_for.append(_SLASH)

    def built(self) -> _Patterns:
        """The automaton."""
        bits = self._bits
        spans = bits(self._spans)
        at_base, at_name = bits(self._at_base), bits(self._at_name)
        return _Patterns(
            waits_for=bytes(self._waits_for),
            brackets=tuple(self._brackets),
            at_base=at_base | (at_base & spans) << 1,
            at_name=at_name | (at_name & spans) << 1,
            stars=bits(self._stars),
            spans=spans,
            anything=bits(self._anything),
            ends=bits(self._ends),
            ends_for_files=bits(self._ends_for_files),
            ends_in_order=tuple(self._ends),
            numbers=tuple(self._numbers),
        )

    def _bits(self, places: Iterable[int]) -> int:
        digits = bytearray([_ZERO]) * len(self._waits_for)
        for place in places:
            digits[place] = _ONE
        return _number(digits)


def _number(digits: bytearray) -> int:
    """The number of which these are the binary digits, the lowest first."""
    return int(digits[::-1] or b"0", 2)


def _bracket(pattern: bytes, at: int) -> tuple[int, int]:
    """The bytes, as bits, in a bracket that opened just before `at`, and where the pattern goes on."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    opened = at
    members: set[int] = set()
    previous: int | None = None  # what a `-` here would start a range from
    while at == opened or pattern[at : at + 1] != b"]":
        if pattern.startswith(b"[:", at):
            close = pattern.find(b"]", at + 2)
            if close < 0:
                return 0, len(pattern)
            if close > at + 2 and pattern[close - 1 : close] == b":":
                name = pattern[at + 2 : close - 1]
                if name not in _CLASSES:
                    return 0, len(pattern)
                members.update(_CLASSES[name].encode())
                previous, at = None, close + 1
                continue
        low = previous if pattern.startswith(b"-", at) and pattern[at + 1 : at + 2] not in (b"", b"]") else None
        at += low is not None
        at += pattern.startswith(b"\\", at)
        if at >= len(pattern):
            return 0, at
        members.update((pattern[at],) if low is None else range(low, pattern[at] + 1))
        previous, at = (pattern[at] if low is None else None), at + 1
    allowed = (set(range(256)) - members if negated else members) - {0, _SLASH}
    return sum(1 << byte for byte in allowed), at + 1
