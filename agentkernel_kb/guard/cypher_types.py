"""The predicates of Cypher that name a type or a form of text: `IS :: LIST<INTEGER NOT NULL>`, `IS NOT NFC NORMALIZED`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agentkernel_kb.guard.cypher_cursor import keyword
from agentkernel_kb.guard.lexer import Token

_FORMS = frozenset(["NFC", "NFD", "NFKC", "NFKD"])
_ZONES = (("TIME", "ZONE"), ("TIMEZONE",))


def predicate_end(tokens: Sequence[Token], start: int, types: Collection[str]) -> int | None:
    """Return the index behind the predicate that begins with the `IS` at `start`, `None` where it is another one.

    Args:
        tokens: The query.
        start: Index of `IS`.
        types: The words of which names of types consist, in capitals; none where the engine has no such predicates.
    """
    if not types:
        return None
    index = start + 1
    index += _text(tokens, index) == "NOT"
    if _text(tokens, index) in _FORMS:
        index += 1
    if _text(tokens, index) == "NORMALIZED":
        return index + 1
    if _text(tokens, index) == "TYPED":
        return _type_end(tokens, index + 1, types)
    is_typed = (_text(tokens, index), _text(tokens, index + 1)) == (":", ":")
    return _type_end(tokens, index + 2, types) if is_typed else None


def _type_end(tokens: Sequence[Token], index: int, types: Collection[str]) -> int | None:
    """Return the index behind one type, or several with `|` between them."""
    begun = index
    while _text(tokens, index) in types:
        index += 1
        index = _zone_end(tokens, index)
    if index == begun:
        return None
    if _text(tokens, index) == "<":
        inside = _type_end(tokens, index + 1, types)
        if inside is None or _text(tokens, inside) != ">":
            return None
        index = inside + 1
    if (_text(tokens, index), _text(tokens, index + 1)) == ("NOT", "NULL"):
        index += 2
    if _text(tokens, index) == "|":
        return _type_end(tokens, index + 1, types)
    return index


def _zone_end(tokens: Sequence[Token], index: int) -> int:
    """Return the index behind `WITH TIME ZONE` or its like, or `index` where none stands: `WITH` opens a clause too."""
    if _text(tokens, index) in ("WITH", "WITHOUT"):
        for zone in _ZONES:
            if tuple(_text(tokens, index + 1 + at) for at in range(len(zone))) == zone:
                return index + 1 + len(zone)
    return index


def _text(tokens: Sequence[Token], index: int) -> str:
    if not 0 <= index < len(tokens):
        return ""
    return keyword(tokens[index]) or (tokens[index].text if tokens[index].kind == "mark" else "")
