"""How far values of Neo4j's may grow from part to part of a statement: what holds itself twice doubles when it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentkernel_kb.guard.cypher_cursor import keyword
from agentkernel_kb.guard.cypher_effort import MAX_GROWTH, refusal
from agentkernel_kb.guard.lexer import Token

_LOOP = 4
_COLLECT = 3
_PARTS = frozenset(["WITH", "UNION", "LET", "RETURN", "CALL"])
_NO_NAMES = frozenset(["AND", "AS", "BY", "CASE", "ELSE", "END", "IN", "IS", "MATCH", "NOT", "NULL", "OR", "ORDER", "THEN"]) | {
    *("FALSE", "TRUE", "WHEN", "WHERE")
}


def check_values(tokens: Sequence[Token]) -> None:
    """Refuse a chain of parts that each put a value more than once into a list or a map.

    Raises:
        KnowledgeGuardError: What they make may be of any size.
    """
    growth, uses, most, inside = 1, Counter[str](), 1, 0
    for index, token in enumerate(tokens):
        if token.kind == "mark":
            inside += (token.text in ("[", "{")) - (token.text in ("]", "}"))
            continue
        if keyword(token) in _PARTS and not _is_name(tokens, index):
            growth, uses, most = growth * most, Counter[str](), 1
        elif keyword(token) == "IN" and index > 1 and tokens[index - 2].text == "[":
            most = max(most, _LOOP)
        elif token.name in ("collect", "percentiledisc") and _text(tokens, index + 1) in ("(", "{"):
            most = max(most, _COLLECT)
        elif inside and _is_used(tokens, index):
            name = _whole_name(tokens, index)
            uses[name] += 1
            most = max(most, uses[name])
        if growth * most > MAX_GROWTH:
            raise refusal("This statement may put together values of any size", token)


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    return (
        _text(tokens, index - 1) in (".", ":")
        or _text(tokens, index + 1) in (":", ".", ",")
        or _text(tokens, index - 1)
        in (
            "STARTS",
            "ENDS",
        )
    )


def _is_used(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether this is the name of a value, and no label, key, function or word of the language."""
    if tokens[index].kind not in ("word", "quoted") or keyword(tokens[index]) in _NO_NAMES:
        return False
    return _text(tokens, index - 1) not in (".", ":", "|", "&", "!") and _text(tokens, index + 1) not in (":", "(")


def _whole_name(tokens: Sequence[Token], index: int) -> str:
    parts = [tokens[index].unquoted]
    while _text(tokens, index + 1) == "." and index + 2 < len(tokens) and tokens[index + 2].kind in ("word", "quoted"):
        index += 2
        parts.append(tokens[index].unquoted)
    return ".".join(parts)


def _text(tokens: Sequence[Token], index: int) -> str:
    if not 0 <= index < len(tokens):
        return ""
    return keyword(tokens[index]) or tokens[index].text
