"""How many rows `MATCH_RECOGNIZE` may be given on Trino, which works through a partition without looking at the time.

Measured on one core: a pattern of 20 steps takes 0.4 ms for each row, one of 100 steps 2 ms; with `*` or `+` the time grows
with the cube of the rows, 500 of them take two seconds, and 10,000 ended a coordinator long after their query was cancelled;
and with the steps: PERMUTE of four names with `*`, 97 steps, took more than 13 seconds for 500 rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_groups import Group, Node, text_of
from agentkernel_kb.guard.trino_sources import NamedLimit, limit_of_named, limit_of_query
from agentkernel_kb.guard.trino_texts import pattern_size

MAX_ROWS_WITHOUT_A_COUNT = 500
STEPS_WITHOUT_A_COUNT = 10
"""Up to so many steps a pattern with `*` or `+` may have as many rows; with more, the cube of these falls as their square."""

MAX_STEPS_OF_ALL_ROWS = 2_000_000
"""Rows times the square of the steps of a pattern, once its counts are written out."""

_CALLED = "match_recognize"
_REASON = (
    "MATCH_RECOGNIZE works through its rows whatever the time: give this pattern at most {0:,}, as in FROM "
    "(SELECT … LIMIT {0}) MATCH_RECOGNIZE (…); one of fewer steps, and without * and +, may have more"
)


def check_matching(parts: Sequence[Node], limits: Mapping[str, NamedLimit]) -> None:
    """Refuse row patterns over more rows than can be matched before the deadline.

    Args:
        parts: The statement, or a part of it.
        limits: How many rows its common table expressions have at most.

    Raises:
        KnowledgeGuardError: There is one. The message says what would do.
    """
    for index, part in enumerate(parts):
        if not isinstance(part, Group):
            continue
        if part.called == _CALLED:
            most, rows = _most_rows(part), _rows_before(parts[:index], limits)
            if rows is None or rows > most:
                raise KnowledgeGuardError(_REASON.format(most), part=part.where.shown, position=part.where.start)
        check_matching(part.parts, limits)


def _most_rows(matching: Group) -> int:
    """Return how many rows the patterns of `MATCH_RECOGNIZE` may be held against."""
    patterns = [part for part in matching.parts if isinstance(part, Group) and part.called == "pattern"]
    steps = max(1, sum(pattern_size(pattern.parts) for pattern in patterns))
    if any(_is_open(pattern.parts) for pattern in patterns):
        return int(MAX_ROWS_WITHOUT_A_COUNT * min(1, STEPS_WITHOUT_A_COUNT / steps) ** (2 / 3))
    return max(1, MAX_STEPS_OF_ALL_ROWS // steps**2)


def _is_open(parts: Sequence[Node]) -> bool:
    """Tell whether a part of a pattern may be repeated without end: `*`, `+`, `{2,}`."""
    for part in parts:
        if isinstance(part, Group):
            counts = part.items() if part.opened.text == "{" else []
            if (len(counts) > 1 and not counts[-1]) or _is_open(part.parts):
                return True
        elif text_of(part) in ("*", "+"):
            return True
    return False


def _rows_before(parts: Sequence[Node], limits: Mapping[str, NamedLimit]) -> int | None:
    """Return how many rows the query in brackets, or its name, has that these parts end with, but for its alias."""
    behind = list(parts)
    while (
        behind and isinstance(behind[-1], Token) and behind[-1].kind in ("word", "quoted") and text_of(behind[-1]) in ("", "AS")
    ):
        behind.pop()
    last = behind[-1] if behind else None
    named = parts[len(behind) :]
    return limit_of_named(named[0], limits) if named and text_of(last) in ("FROM", "JOIN", ",") else limit_of_query(last)
