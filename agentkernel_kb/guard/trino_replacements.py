"""Calls of `replace` of Trino inside each other, with plain strings, as statements use them to clean text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_groups import Group, Node

_ARGUMENTS = 3


class Replacement(NamedTuple):
    """What is looked for, and what is put in its place."""

    old: str
    new: str


def replacements(group: Group) -> tuple[Sequence[Node], list[Replacement]]:
    """Return what calls inside each other begin with, and what they replace in order; nothing where that is not plain."""
    items = group.items()
    if len(items) != _ARGUMENTS:
        return (), []
    old, new = _plain(items[1]), _plain(items[2])
    if not old or new is None:
        return (), []
    source, inner = items[0], items[0][0] if len(items[0]) == 1 else None
    earlier: list[Replacement] = []
    if isinstance(inner, Group) and inner.called == "replace":
        found, earlier = replacements(inner)
        source = list(found) if earlier else source
    return source, [*earlier, Replacement(old, new)]


def growth_of(replaced: Sequence[Replacement]) -> int:
    """Return how often as long as before a text can be after these replacements."""
    growth, put_in = 1, set[str]()
    for old, new in replaced:
        each = max(1, -(-len(new.encode()) // len(old.encode())))
        growth = growth * each if put_in & set(old) else max(growth, each)
        put_in |= set(new)
    return growth


def _plain(parts: Sequence[Node]) -> str | None:
    part = parts[0] if len(parts) == 1 else None
    return part.unquoted if isinstance(part, Token) and part.kind == "string" and part.text[0] == "'" else None
