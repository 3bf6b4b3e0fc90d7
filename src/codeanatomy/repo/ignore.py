"""Git's ignore rules, exactly: which rule, if any, decides about one path.

Patterns become regular expressions over bytes, because git compares bytes (`?` is one byte). The
translation follows git's `dir.c` and `wildmatch.c`, quirks included, and is tested against
`git check-ignore`. Patterns come from the analysed tree, so a malformed one matches nothing and none
can make matching explode: every gap but the last of its kind is closed by an atomic group.

A rule speaks about the path itself, never about what is below it: the walk does not enter an ignored
directory, which is how git does it too. This module never touches the file system.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

# A directory is matched as its path plus this mark, which no file name can contain.
_DIRECTORY = b"\0"
_BYTE = rb"[^/\0]"
_STAR = rb"[^/\0]*?"
_SEGMENTS = rb"(?:[^/\0]*/)*?"
_NEVER = rb"(?!)"

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
    """One line of an ignore file: its text, whether it re-includes, and how it matches."""

    text: str
    negated: bool
    by_name: bool
    expression: bytes


@dataclass(frozen=True, slots=True)
class _Alternatives:
    """Some rules of a set as one expression, the last rule first, with the number of each."""

    expression: re.Pattern[bytes]
    numbers: tuple[int, ...]

    def last_match(self, subject: bytes) -> int:
        """The number of the last rule that matches, or -1."""
        if not self.numbers:
            return -1
        match = self.expression.fullmatch(subject)
        return self.numbers[match.lastindex - 1] if match and match.lastindex else -1


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one ignore file; `base` is its directory in the tree, empty or with a final slash."""

    source: str
    base: bytes
    rules: tuple[Rule, ...]
    _names: _Alternatives
    _paths: _Alternatives

    def decide(self, path: bytes, *, is_directory: bool) -> Rule | None:
        """The last rule that matches a path below `base`, or None."""
        subject = path + _DIRECTORY if is_directory else path
        number = max(
            self._names.last_match(subject[path.rfind(b"/") + 1 :]),
            self._paths.last_match(subject[len(self.base) :]),
        )
        return self.rules[number] if number >= 0 else None


def parse_rules(text: bytes, source: str, base: bytes = b"") -> RuleSet:
    """The rules of an ignore file's text."""
    lines = (line.removesuffix(b"\r") for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    rules = tuple(_rule(line) for line in lines if line and not line.startswith(b"#"))
    return RuleSet(source, base, rules, _alternatives(rules, by_name=True), _alternatives(rules, by_name=False))


def pattern_rules(patterns: Sequence[str], source: str) -> RuleSet:
    """The rules given as a list of patterns, one line each."""
    return parse_rules("\n".join(patterns).encode("utf-8", "surrogateescape"), source)


def _alternatives(rules: Sequence[Rule], *, by_name: bool) -> _Alternatives:
    numbers = tuple(number for number, rule in reversed([*enumerate(rules)]) if rule.by_name == by_name)
    expression = b"|".join(b"(%s)" % rules[number].expression for number in numbers)
    return _Alternatives(re.compile(expression or _NEVER, re.DOTALL), numbers)


def _rule(line: bytes) -> Rule:
    pattern = line.rstrip(b" ")
    backslashes = len(pattern) - len(pattern.rstrip(b"\\"))
    if backslashes % 2 and pattern != line:
        pattern += b" "
    text = pattern.decode("utf-8", "backslashreplace")
    negated = pattern.startswith(b"!")
    pattern = pattern.removeprefix(b"!")
    only_directories = pattern.endswith(b"/")
    pattern = pattern.removesuffix(b"/")
    by_name = b"/" not in pattern
    end = re.escape(_DIRECTORY) + (b"" if only_directories else b"?")
    return Rule(text, negated, by_name, _translate(pattern.removeprefix(b"/")) + end)


def _translate(pattern: bytes) -> bytes:
    """A regular expression for a pattern without its `!` and its outer slashes."""
    wild = _WILD.search(pattern)
    if wild is None:
        return re.escape(pattern)
    # Git compares the literal beginning by itself, so to the rest a wildcard right after it stands at the start.
    start = at = wild.start()
    # Runs between `**/` of runs between `*`.
    runs: list[list[bytes]] = [[re.escape(pattern[:start])]]
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"*":
            stars = at
            while pattern[at : at + 1] == b"*":
                at += 1
            spans = at - stars > 1 and (stars == start or pattern[stars - 1 : stars] == b"/")
            if spans and at == len(pattern):
                runs[-1][-1] += rb"[^\0]*"
            elif spans and pattern.startswith((b"/", b"\\/"), at):
                if pattern.startswith(b"\\", at):  # an escaped slash: git no longer tries "no directory at all"
                    runs[-1][-1] += rb"[^/\0]*/"
                at = pattern.index(b"/", at) + 1
                runs.append([b""])
            else:
                runs[-1].append(b"")
            continue
        if byte == b"?":
            piece, at = _BYTE, at + 1
        elif byte == b"[":
            piece, at = _bracket(pattern, at + 1)
        elif byte == b"\\":
            piece, at = re.escape(pattern[at + 1 : at + 2]) or _NEVER, at + 2
        else:
            piece, at = re.escape(byte), at + 1
        runs[-1][-1] += piece
    return _close(_SEGMENTS, [_close(_STAR, run) for run in runs])


def _close(gap: bytes, parts: Sequence[bytes]) -> bytes:
    """Join parts by gaps. The nearest match of a part serves all that follow, so only the last gap may be retried."""
    first, *middle = parts
    last = gap + middle.pop() if middle else b""
    return first + b"".join(b"(?>%s%s)" % (gap, part) for part in middle) + last


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int]:
    """The expression for a bracket that opened just before `at`, and where the pattern goes on."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    opened = at
    members: set[int] = set()
    previous: int | None = None  # what a `-` here would start a range from
    while at == opened or pattern[at : at + 1] != b"]":
        if pattern.startswith(b"[:", at):
            close = pattern.find(b"]", at + 2)
            if close < 0:
                return _NEVER, len(pattern)
            if close > at + 2 and pattern[close - 1 : close] == b":":
                name = pattern[at + 2 : close - 1]
                if name not in _CLASSES:
                    return _NEVER, len(pattern)
                members.update(_CLASSES[name].encode())
                previous, at = None, close + 1
                continue
        low = previous if pattern.startswith(b"-", at) and pattern[at + 1 : at + 2] not in (b"", b"]") else None
        at += low is not None
        at += pattern.startswith(b"\\", at)
        if at >= len(pattern):
            return _NEVER, at
        members.update((pattern[at],) if low is None else range(low, pattern[at] + 1))
        previous, at = (pattern[at] if low is None else None), at + 1
    allowed = (set(range(256)) - members if negated else members) - {0, ord("/")}
    return (b"[%s]" % b"".join(b"\\x%02x" % byte for byte in sorted(allowed)) if allowed else _NEVER), at + 1
