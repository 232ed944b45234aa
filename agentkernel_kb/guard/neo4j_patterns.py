"""Which regular expressions Neo4j may run: those that go back a bounded number of times, as nothing stops one that does not."""

from __future__ import annotations

import re

MAX_PATTERN_CHARS = 500
MAX_UNBOUNDED = 2
MAX_WAYS = 64
_WIDE = 8
_PREFIX = re.compile(r"\(\?(?:[:=!>]|<[=!]|<\w+>|[a-zA-Z-]*:)")
_FLAGS = re.compile(r"\(\?[a-zA-Z-]*\)")
_REPEATS = re.compile(r"([*+?]|\{(\d+)(,?)(\d*)\})[?+]?")


def pattern_fault(written: str) -> str:
    """Return why a regular expression is refused, `""` if it is not.

    Counted are what may repeat without a bound, or by more than a few, and the ways in which the rest of it can match: each
    choice multiplies them.
    """
    if len(written) > MAX_PATTERN_CHARS:
        return f"A regular expression has at most {MAX_PATTERN_CHARS} characters"
    pattern = _as_read(written)
    if re.search(r"\\[1-9kQ]", pattern):
        return "A regular expression may not refer back to a part of itself, nor quote by \\Q"
    pattern = re.sub(r"\\.", "_", pattern, flags=re.DOTALL)
    if re.search(r"\(\?[a-zA-Z-]*x", pattern):
        return "A regular expression may not have the flag x"
    pattern = _without_classes(pattern)
    unbounded, ways = _repetitions(pattern)
    if unbounded > MAX_UNBOUNDED:
        return f"A regular expression repeats at most {MAX_UNBOUNDED} times without a bound, or by more than {_WIDE}"
    return _group_fault(pattern, ways)


def repeats_twice(written: str) -> bool:
    """Tell whether two parts of a regular expression repeat without a small bound: it may try each place with each."""
    return _repetitions(_without_classes(re.sub(r"\\.", "_", _as_read(written), flags=re.DOTALL)))[0] > 1


def _as_read(written: str) -> str:
    """Return the expression that a string of Cypher holds; what such a string escapes itself is one plain character."""
    return re.sub(r"\\(.)", lambda found: "\\" if found[1] == "\\" else "x", written, flags=re.DOTALL)


def _without_classes(pattern: str) -> str:
    return _PREFIX.sub("(", _FLAGS.sub("", re.sub(r"\[[^\]]*\]", "_", pattern)))


def _repetitions(pattern: str) -> tuple[int, int]:
    """Return how often something is repeated without a small bound, and in how many ways the others can match."""
    unbounded, ways = 0, 1
    for mark, least, comma, most in _REPEATS.findall(pattern):
        if mark == "?":
            ways *= 2
        elif mark in "*+" or (comma and (not most or len(most) > 4 or int(most) - int(least) > _WIDE)):
            unbounded += 1
        elif comma:
            ways *= max(1, int(most) - int(least) + 1)
    return unbounded, ways


def _group_fault(pattern: str, ways: int) -> str:
    """Look at the groups from the inside out."""
    while group := re.search(r"\(([^()]*)\)([*+{]?)", pattern):
        if group[2] and re.search(r"[*+{|?]", group[1]):
            return "A regular expression may not repeat a group that itself repeats or chooses"
        ways *= group[1].count("|") + 1
        inside = "_*" if re.search(r"[*+{|?]", group[1]) else "_"
        pattern = f"{pattern[: group.start()]}{inside}{group[2]}{pattern[group.end() :]}"
    return f"A regular expression may match in at most {MAX_WAYS} ways, choices multiplied" if ways > MAX_WAYS else ""
