"""Lists as long as a model likes, walked over inside of one expression: the server's time limit looks between rows, not there.

`collect(n.name)` makes a list as long as the graph is large, and `[x IN l WHERE x IN l]` compares each of its items with each:
over a hundred thousand, that kept a thread of the server busy for minutes after its limit. So a loop over such a list may do
with each item only what takes the same time however long the list is. `collect(…)[..1000]` is short, whatever is collected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentkernel_kb.guard.cypher_cursor import CLOSING, arguments_of, keyword
from agentkernel_kb.guard.cypher_effort import refusal
from agentkernel_kb.guard.lexer import Token

MAX_KEPT = 1_000
_CURE = f"Keep its first items, as in collect(x)[..{MAX_KEPT}], or UNWIND it"
_SEARCHED = f"For each item of a list that was collected, a whole list is looked at; nothing stops that. {_CURE}"
_PUT_TOGETHER = f"A reduce over a list that was collected may copy a long text for each item; nothing stops that. {_CURE}"
_QUICK = frozenset(["head", "isempty", "last", "size"])
"""What takes the same time however long a list is, and makes no list."""
_NUMERIC = frozenset(["abs", "length", "size", "tofloat", "tointeger"])
_LOOPS = frozenset(["all", "any", "none", "reduce", "single"])
_BEGIN = frozenset(["AS", "CALL", "LET", "RETURN", "UNWIND", "WITH", "YIELD"])
_EXPECTING = _BEGIN | {
    "AND", "BY", "CASE", "CONTAINS", "DISTINCT", "ELSE", "ENDS", "IN", "LIMIT", "NOT", "OFFSET", "OR", "SKIP", "STARTS", "THEN",
    "WHEN", "WHERE", "XOR",
}  # fmt: skip
"""What a value has to follow: a word of `_BEGIN` that stands there is somebody's name, for Neo4j reserves none, or a part of
`STARTS WITH`."""
_ZONES = frozenset(["TIME", "TIMEZONE"])
_MOST_LOOKED = 10
_ADDED = frozenset(["+", "||"])
_TURNS = 8

Lists = Mapping[str, int]
"""Names of values that may hold what was collected, and how many lists deep each is."""


class _Loop(NamedTuple):
    """`[item IN source WHERE … | …]`, `all(item IN source WHERE …)` or `reduce(sum = …, item IN source | …)`."""

    item: str
    source: Sequence[Token]
    body: Sequence[Token]
    sum: str = ""


def check_collected(tokens: Sequence[Token]) -> None:
    """Refuse a loop over a list that was collected which looks at a list that was collected for each item, or makes a text.

    Raises:
        KnowledgeGuardError: It holds one.
    """
    lists = _named(tokens)
    if not lists and not any(_gathers(tokens, index) for index in range(len(tokens))):
        return
    for opened, token in enumerate(tokens):
        loop = _loop_at(tokens, opened)
        if loop is None or not (depth := _depth(loop.source, lists)):
            continue
        inside = {name: deep for name, deep in lists.items() if name not in (loop.item, loop.sum)}
        if _depth(loop.body, inside | {loop.item: depth - 1}):
            raise refusal(_SEARCHED, token)
        if loop.sum and any(each.text in _ADDED for each in loop.body) and not _adds_numbers(loop.body):
            raise refusal(_PUT_TOGETHER, token)


def _named(tokens: Sequence[Token]) -> dict[str, int]:
    """Return the names that are given to what was collected, directly or by way of other names."""
    lists = dict[str, int]()
    for _ in range(_TURNS):  # `AS` may name what a later part collects: a name counts wherever it stands.
        before, left = dict(lists), _MOST_LOOKED * len(tokens)
        for index, token in enumerate(tokens[:-1]):
            if keyword(token) == "AS" and index:
                start = _start_of_value(tokens, index)
                left -= index - start
                if left < 0:
                    raise refusal("Values overlap so often that they cannot be proven", token)
                depth = _depth(tokens[start:index], lists) - (keyword(tokens[start - 1]) == "UNWIND" if start else 0)
                name = tokens[index + 1].unquoted
                lists[name] = min(max(lists.get(name, 0), depth), _TURNS)
        if lists == before:
            break
    return {name: depth for name, depth in lists.items() if depth > 0}


def _start_of_value(tokens: Sequence[Token], end: int) -> int:
    """Return where the value begins that an `AS` at `end` names."""
    depth = 0
    for index in range(end - 1, -1, -1):
        token = tokens[index]
        if token.kind == "mark":
            depth += (token.text in CLOSING.values()) - (token.text in CLOSING)
            if depth < 0 or (not depth and token.text == ","):
                return index + 1
        elif not depth and keyword(token) in _BEGIN and _is_clause(tokens, index):
            return index + 1
    return 0


def _is_clause(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a word of `_BEGIN` begins something: what stands before it is at its end."""
    if not index:
        return True
    before = tokens[index - 1]
    if keyword(tokens[index]) == "WITH" and _text(tokens, index + 1) in _ZONES:  # A type's TIME WITH TIME ZONE, perhaps.
        return False
    return before.text in CLOSING.values() if before.kind == "mark" else keyword(before) not in _EXPECTING


def _depth(tokens: Sequence[Token], lists: Lists) -> int:
    """Return how many lists deep a value is that may be as long as what was collected; 0 for one that is not."""
    deepest, index = 0, 0
    while index < len(tokens):
        depth, after = _part(tokens, index, lists)
        deepest, index = max(deepest, depth), after
    return deepest


def _part(tokens: Sequence[Token], index: int, lists: Lists) -> tuple[int, int]:
    """Return how deep the part of a value is that begins at `index`, and where the next one begins."""
    token = tokens[index]
    if token.name in _QUICK and _text(tokens, index + 1) == "(":
        inside = arguments_of(tokens, index)
        depth = _depth(inside, lists) - 1 if token.name in ("head", "last") else 0
        return max(depth, 0), index + len(inside) + 3
    if _gathers(tokens, index):
        opened = index if token.text == "[" else index + 1
        inside = arguments_of(tokens, opened - 1)
        return _indexed(tokens, opened + len(inside) + 2, 1 + _depth(inside, lists))
    if token.name == "range" and _text(tokens, index + 1) == "(":
        inside = arguments_of(tokens, index)
        return int(any(each.name == "size" for each in inside)), index + len(inside) + 3
    if token.kind == "mark" and token.text == "[":
        inside = arguments_of(tokens, index - 1)
        return _depth_of_list(tokens, index, inside, lists), index + len(inside) + 2
    if token.kind in ("word", "quoted") and token.unquoted in lists and _text(tokens, index - 1) != ".":
        return _indexed(tokens, index + 1, lists[token.unquoted])
    return 0, index + 1


def _depth_of_list(tokens: Sequence[Token], opened: int, inside: Sequence[Token], lists: Lists) -> int:
    """Return how deep a list is that is written out, or made by a loop."""
    loop = _loop_at(tokens, opened)
    items = _depth(loop.body if loop else inside, lists)
    return max(_depth(loop.source, lists) if loop else 0, 1 + items if items else 0)


def _indexed(tokens: Sequence[Token], index: int, depth: int) -> tuple[int, int]:
    """Take one list away for each `[number]` that follows, and all where only the first ones are kept."""
    while depth > 0 and _text(tokens, index) == "[":
        inside = arguments_of(tokens, index - 1)
        written = "".join(token.text for token in inside)
        if ".." not in written:
            depth -= 1
        elif re.fullmatch(r"0?\.\.[0-9]{1,4}", written) and int(written.split("..")[1]) <= MAX_KEPT:
            depth = 0
        index += len(inside) + 2
    return depth, index


def _gathers(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether `collect(…)`, `COLLECT {…}`, `split(…)` or a list of what matches a pattern begins here."""
    name, following = tokens[index].name, _text(tokens, index + 1)
    if name == "collect":
        return following in ("(", "{")
    if name == "split":
        return following == "("
    if tokens[index].text != "[" or tokens[index].kind != "mark" or _loop_at(tokens, index):
        return False
    return any(token.text == "|" for token in arguments_of(tokens, index - 1)) and "(" in (following, _text(tokens, index + 3))


def _loop_at(tokens: Sequence[Token], opened: int) -> _Loop | None:
    token = tokens[opened]
    if token.kind != "mark" or token.text not in ("[", "("):
        return None
    caller = tokens[opened - 1].name if opened and token.text == "(" else ""
    if token.text == "(" and caller not in _LOOPS:
        return None
    inside = arguments_of(tokens, opened - 1)
    start = _after_comma(inside) if caller == "reduce" else 0
    if _text(inside, start + 1) != "IN":
        return None
    end = _end_of_source(inside, start + 2)
    added = inside[0].unquoted if caller == "reduce" else ""
    return _Loop(inside[start].unquoted, inside[start + 2 : end], inside[end:], added)


def _after_comma(tokens: Sequence[Token]) -> int:
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind == "mark":
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
            if not depth and token.text == ",":
                return index + 1
    return len(tokens)


def _end_of_source(tokens: Sequence[Token], start: int) -> int:
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.kind == "mark":
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
        if not depth and (token.text == "|" or keyword(token) == "WHERE"):
            return index
    return len(tokens)


def _adds_numbers(body: Sequence[Token]) -> bool:
    """Tell whether what is added can only be a number: written out, of a function that makes one, or multiplied."""
    return not any(token.kind == "string" or token.text in ("||", "[") for token in body) and any(
        token.name in _NUMERIC or token.text in ("*", "-", "/", "%") or token.kind == "number" for token in body
    )


def _text(tokens: Sequence[Token], index: int) -> str:
    if not 0 <= index < len(tokens):
        return ""
    return keyword(tokens[index]) or tokens[index].text
