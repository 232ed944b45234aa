"""How far values of Neo4j's may grow from part to part of a statement: what holds itself twice doubles when it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentkernel_kb.guard.cypher_cursor import CLOSING, keyword
from agentkernel_kb.guard.cypher_effort import MAX_GROWTH, refusal
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.neo4j_texts import growth_of_replace

_LOOP = 4
_COLLECT = 3
_ANY_SIZE = "This statement may put together values of any size"
_GATHERING = frozenset(["collect"])
_EXPECTING = frozenset(
    [*"+-/%^=<>,.:|&!([", "||", "<=", ">=", "<>", "=~", "..", "AND", "OR", "XOR", "NOT", "IN", "AS", "STARTS", "ENDS"]
)
"""Behind these a value has to stand, whatever the word."""
_PARTS = frozenset(["WITH", "UNION", "UNWIND", "LET", "RETURN", "CALL"])
_NO_NAMES = frozenset(["AND", "AS", "BY", "CASE", "ELSE", "END", "IN", "IS", "MATCH", "NOT", "NULL", "OR", "ORDER", "THEN"]) | {
    *("FALSE", "TRUE", "WHEN", "WHERE")
}


def check_values(tokens: Sequence[Token]) -> None:
    """Refuse a chain of parts that each put a value more than once into a list or a map, or make a text longer.

    Raises:
        KnowledgeGuardError: What they make may be of any size.
    """
    growth, uses, most = 1, Counter[str](), 1
    opened: list[str] = []
    for index, token in enumerate(tokens):
        if token.kind == "mark":
            _follow(opened, token.text)
        elif keyword(token) in _PARTS and opened[-1:] in ([], ["{"]) and opens_part(tokens, index):
            growth, uses, most = growth * max(most, _most_uses(uses)), Counter[str](), 1
        elif keyword(token) == "IN" and index > 1 and tokens[index - 2].text == "[":
            most = max(most, _LOOP)
        elif token.name in _GATHERING and _text(tokens, index + 1) in ("(", "{"):
            most = max(most, _COLLECT)
        elif token.name == "replace" and _text(tokens, index + 1) == "(":
            most = max(most, growth_of_replace(tokens, index))
        elif ("[" in opened or "{" in opened) and _is_used(tokens, index, in_map=opened[-1] == "{"):
            uses[_whole_name(tokens, index)] += 1
        if growth * most > MAX_GROWTH:
            raise refusal(_ANY_SIZE, token)
    if growth * max(most, _most_uses(uses)) > MAX_GROWTH:
        raise refusal(_ANY_SIZE, tokens[-1])


def _most_uses(uses: Counter[str]) -> int:
    """Return how often one value is used at most, where `m`, `m.a` and `m.a.b` may be the same."""
    most = 1
    for name in uses:
        parts = name.split("\0")
        most = max(most, sum(uses["\0".join(parts[:end])] for end in range(1, len(parts) + 1)))
    return most


def _follow(opened: list[str], mark: str) -> None:
    if mark in CLOSING:
        opened.append(mark)
    elif mark in CLOSING.values() and opened:
        opened.pop()


def opens_part(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a word opens a part here, and is no name: it follows a value that is complete, or a bracket."""
    before = _text(tokens, index - 1)
    if before == "*":
        return _text(tokens, index - 2) in ("WITH", "RETURN", "DISTINCT")
    return not before or before not in _EXPECTING


def _is_used(tokens: Sequence[Token], index: int, *, in_map: bool) -> bool:
    """Tell whether this is the name of a value, and no label, key, function or word of the language."""
    if tokens[index].kind not in ("word", "quoted") or keyword(tokens[index]) in _NO_NAMES:
        return False
    if _text(tokens, index + 1) in (":", "("):
        return False
    before = _text(tokens, index - 1)
    return before not in (".", "&", "!") and (before != ":" or in_map)


def _whole_name(tokens: Sequence[Token], index: int) -> str:
    parts = [tokens[index].unquoted]
    while _text(tokens, index + 1) == "." and index + 2 < len(tokens) and tokens[index + 2].kind in ("word", "quoted"):
        index += 2
        parts.append(tokens[index].unquoted)
    return "\0".join(parts)


def _text(tokens: Sequence[Token], index: int) -> str:
    if not 0 <= index < len(tokens):
        return ""
    return keyword(tokens[index]) or tokens[index].text
