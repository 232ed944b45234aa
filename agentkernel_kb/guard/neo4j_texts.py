"""How much longer the `replace` of Neo4j's may make a text: calls inside each other make one of any size out of ten letters."""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.guard.cypher_cursor import CLOSING, arguments_of
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_replacements import Replacement, growth_of

_ARGUMENTS = 3
_UNKNOWN = 100
"""How many characters a value is taken to put in the place of one."""


def growth_of_replace(tokens: Sequence[Token], name: int) -> int:
    """Return how often as long as before a text may be after the call of `replace` at `name`, with those inside of it."""
    growth, replaced = 1, list[Replacement]()
    while len(arguments := _arguments(tokens, name)) == _ARGUMENTS:
        old, new = _plain(tokens, *arguments[1]), _plain(tokens, *arguments[2])
        if new is None:
            growth *= -(-_UNKNOWN // max(1, len(old or "")))
        else:
            # Of what is not known, or empty, there may be one between any two characters.
            replaced.insert(0, Replacement(old, new) if old else Replacement(new[:1] or "-", new * 2))
        name = arguments[0][0]
        if tokens[name].name != "replace":
            break
    return growth * growth_of(replaced)


def _arguments(tokens: Sequence[Token], name: int) -> list[tuple[int, int]]:
    """Return where each argument of a call begins and ends."""
    start = name + 2
    inside, depth, found = arguments_of(tokens, name), 0, list[tuple[int, int]]()
    for index, token in enumerate(inside, name + 2):
        if token.kind != "mark":
            continue
        depth += (token.text in CLOSING) - (token.text in CLOSING.values())
        if token.text == "," and not depth:
            found.append((start, index))
            start = index + 1
    found.append((start, name + 2 + len(inside)))
    return found if all(begin < end for begin, end in found) else []


def _plain(tokens: Sequence[Token], start: int, end: int) -> str | None:
    """Return the text of a string that stands alone, as long as it is written; what is escaped is shorter."""
    is_string = end - start == 1 and tokens[start].kind == "string" and not tokens[start].text.startswith("$")
    return tokens[start].text[1:-1] if is_string else None
