"""Casts of bytes to sketches of Trino: what such bytes say about their own size, the server believes.

Measured: `CAST(X'…' AS tdigest)` of 37 bytes that speak of two thousand million centroids ends a coordinator at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_groups import Group, Node, all_groups, text_of
from agentkernel_kb.guard.trino_sources import StoredColumns

SKETCHES = frozenset(["hyperloglog", "p4hyperloglog", "qdigest", "setdigest", "tdigest"])
_CASTS = frozenset(["cast", "try_cast"])
_REASON = "A sketch is cast from a column of a table, by its name and without UNION: other bytes may say that they are endless"


def check_sketches(parts: Sequence[Node], tokens: Sequence[Token], made: Collection[str]) -> None:
    """Refuse casts to sketches of anything but stored columns.

    Args:
        parts: The statement.
        tokens: Its tokens.
        made: Names that the statement gives to values.

    Raises:
        KnowledgeGuardError: There is one.
    """
    columns = StoredColumns(tokens, made)
    for group in all_groups(parts):
        if group.called not in _CASTS:
            continue
        places = [index for index, part in enumerate(group.parts) if text_of(part) == "AS"]
        place = places[-1] if places else 0
        is_sketch = any(word in SKETCHES for word in _words(group.parts[place:]))
        if is_sketch and (columns.are_united or not columns.has(group.parts[:place])):
            raise KnowledgeGuardError(_REASON, part=group.where.shown, position=group.where.start)


def _words(parts: Sequence[Node]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Group):
            yield part.called
            yield from _words(part.parts)
        else:
            yield part.name
