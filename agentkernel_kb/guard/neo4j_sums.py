"""Which `reduce` of Neo4j's adds numbers: what else it adds to a text or a list is copied with each step."""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.guard.cypher_cursor import CLOSING, arguments_of, keyword
from agentkernel_kb.guard.lexer import Token

_NUMERIC = frozenset(["abs", "length", "size", "sqrt", "tofloat", "tointeger"])
_ENDS = ("WHEN", "ELSE", "END")
_RECKONED = frozenset("*-/%^")


def adds_numbers(start: Sequence[Token], body: Sequence[Token], total: str) -> bool:
    """Tell whether a `reduce` begins with a number, and whether each thing that it adds can only be a number.

    Args:
        start: What it begins with.
        body: What stands behind its list, from the `|` on.
        total: The name of what it has so far.
    """
    if _is_number(start) and body[1:] and keyword(body[1]) == "CASE" and _chooses(body[1:], "number", "word", "quoted"):
        return True  # The largest or smallest, say: nothing is added.
    return _is_number(start) and all(_is_number(term) or _is_name(term, total) for term in _cut(body[1:], "+"))


def _is_number(tokens: Sequence[Token]) -> bool:
    """Tell whether this is written out as a number, made by a function that makes one, reckoned, or chosen among such."""
    if len(tokens) == 1:
        return tokens[0].kind == "number"
    if not tokens or any(token.text == "||" for token in tokens):
        return False
    if keyword(tokens[0]) == "CASE":
        return _chooses(tokens, "number")
    if tokens[0].name in _NUMERIC and tokens[1].text == "(" and len(arguments_of(tokens, 0)) + 3 == len(tokens):
        return True
    return len(list(_cut(tokens, "+"))) == 1 and len(list(_cut(tokens, *_RECKONED))) > 1


def _chooses(tokens: Sequence[Token], *kinds: str) -> bool:
    """Tell whether this is one `CASE`, of which each branch is one number, or one name where names will do."""
    words = [*map(keyword, tokens), "END"]
    branches = [index for index, word in enumerate(words) if word in ("THEN", "ELSE")]
    return (
        bool(branches)
        and all(index + 2 < len(tokens) and tokens[index + 1].kind in kinds for index in branches)
        and all(words[index + 2] in _ENDS for index in branches)
        and all(words[index + 1] in _ENDS for index, word in enumerate(words[:-1]) if word == "END")
    )


def _is_name(tokens: Sequence[Token], name: str) -> bool:
    return len(tokens) == 1 and tokens[0].kind in ("word", "quoted") and tokens[0].unquoted == name


def _cut(tokens: Sequence[Token], *marks: str) -> list[Sequence[Token]]:
    """Cut at marks outside of brackets and of `CASE`."""
    found, start, depth = list[Sequence[Token]](), 0, 0
    for index, token in enumerate(tokens):
        if token.kind == "mark":
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
            if not depth and token.text in marks:
                found.append(tokens[start:index])
                start = index + 1
        depth += (keyword(token) == "CASE") - (keyword(token) == "END")
    return [*found, tokens[start:]]
