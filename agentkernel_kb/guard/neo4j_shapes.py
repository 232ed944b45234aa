"""How long the lists and texts of a Neo4j statement may be, estimated from what makes them and from the names they get.

A shape has the length of a value and, behind it, those of its items: `collect(n.name)` has one length, a list of lists two, a
number none. What a map holds is told by its keys, wherever in the statement they get a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from math import inf, prod
from typing import NamedTuple

from agentkernel_kb.guard.cypher_cursor import CLOSING, arguments_of, keyword
from agentkernel_kb.guard.cypher_effort import refusal
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.neo4j_sums import adds_numbers
from agentkernel_kb.guard.neo4j_texts import growth_of_replace

MAX_KEPT = 1_000
_COLLECTED, _MATCHED, _WORDS, _UNKNOWN, _FEW, _LONG_TEXT = 100_000, 10_000, 10_000, 20, 100, 200
_MOST = 10**9
_DEEPEST = 6
_TURNS = 8
_QUICK = frozenset(["head", "isempty", "last", "size"])
"""What takes the same time however long a list is, and makes no list."""
_LOOPS = frozenset(["all", "any", "none", "reduce", "single"])
_BEGIN = frozenset(["AS", "CALL", "LET", "RETURN", "UNWIND", "WITH", "YIELD"])
_EXPECTING = _BEGIN | {
    "AND", "BY", "CASE", "CONTAINS", "DISTINCT", "ELSE", "ENDS", "IN", "IS", "LIMIT", "NOT", "OFFSET", "OR", "SKIP", "STARTS",
    "THEN", "WHEN", "WHERE", "XOR",
}  # fmt: skip
"""What a value has to follow: a word of `_BEGIN` that stands there is somebody's name, for Neo4j reserves none, or a part of
`STARTS WITH`."""
_CONDITIONS = frozenset(["AND", "CONTAINS", "NOT", "OR", "WHEN", "WHERE", "XOR"])
_ZONES = frozenset(["TIME", "TIMEZONE"])
_MOST_LOOKED = 10
_TWO_NUMBERS = re.compile("(-?[0-9]{1,5}),(-?[0-9]{1,5}),")
_ADDED = frozenset(["+", "||"])
Shape = tuple[int, ...]


class Loop(NamedTuple):
    """`[item IN source WHERE … | …]`, `all(item IN source WHERE …)` or `reduce(sum = …, item IN source | …)`.

    Attributes:
        item: The name of the item.
        source: What is walked over.
        body: What stands behind it.
        sum: The name of what a `reduce` has so far.
        start: What a `reduce` begins with.
    """

    item: str
    source: Sequence[Token]
    body: Sequence[Token]
    sum: str = ""
    start: Sequence[Token] = ()


class Value(NamedTuple):
    """A value as it is estimated.

    Attributes:
        shape: Its length, and those of its items.
        work: How many items are looked at to make it.
    """

    shape: Shape = ()
    work: int = 0


class Shapes:
    """What a statement gives names to, with how long it may be.

    Args:
        tokens: The whole statement.
        names: What is known of names already.
        keys: What is known of the keys of maps already.
        since: Where what is collected, matched or split begins to count as short: it is made anew for each of many rows.

    Raises:
        KnowledgeGuardError: Its values overlap too often to look at each of them.
    """

    def __init__(
        self,
        tokens: Sequence[Token],
        names: Mapping[str, Shape] | None = None,
        keys: Mapping[str, Shape] | None = None,
        *,
        since: float = inf,
    ) -> None:
        self._since = since
        self._names = dict(names or {})
        self._keys = dict(keys or {})
        for _ in range(_TURNS):  # A name counts wherever it stands, whatever part gave it.
            before = dict(self._names), dict(self._keys)
            self._learn(tokens)
            if before == (self._names, self._keys):
                break

    def length(self, token: Token) -> int:
        """Return how long what a name stands for may be."""
        return first(self._names.get(token.unquoted, ()))

    def inside(self, loop: Loop) -> Shapes:
        """Return what names stand for in the body of a loop."""
        names = {**self._names, loop.item: self.value(loop.source).shape[1:], loop.sum: ()}
        return Shapes((), names, self._keys, since=self._since)

    def value(self, tokens: Sequence[Token]) -> Value:
        """Return the length of a value, and the work of it."""
        shapes, work, index = list[Shape](), 0, 0
        while index < len(tokens):
            part, index = self._part(tokens, index)
            work += part.work
            if part.shape:
                shapes.append(part.shape)
        together = _joined(shapes)
        if len(shapes) > 1 and any(token.text in _ADDED for token in tokens):
            together = (min(sum(map(first, shapes)), _MOST), *together[1:])
        return Value(together, min(work, _MOST))

    def _learn(self, tokens: Sequence[Token]) -> None:
        left = _MOST_LOOKED * len(tokens)
        for index, token in enumerate(tokens):
            following = _text(tokens, index + 1)
            if keyword(token) == "AS" and 0 < index < len(tokens) - 1:
                start = _start_of_value(tokens, index)
                left -= index - start
                if left < 0:
                    raise refusal("Values overlap so often that they cannot be proven", token)
                shape = self.value(tokens[start:index]).shape
                self._give(self._names, tokens[index + 1], shape[1:] if keyword(tokens[start]) == "UNWIND" else shape)
            elif token.kind in ("word", "quoted") and following == "=" and _text(tokens, index - 1) in ("LET", ","):
                self._give(self._names, token, self.value(_up_to_comma(tokens, index + 2)).shape)
            elif token.kind in ("word", "quoted") and following == ":" and _text(tokens, index - 1) in ("{", ","):
                self._give(self._keys, token, self.value(_up_to_comma(tokens, index + 2)).shape)
            elif token.kind in ("word", "quoted") and _text(tokens, index - 1) in ("{", ",") and following in ("}", ","):
                self._give(self._keys, token, self._names.get(token.unquoted, ()))
            elif loop := loop_at(tokens, index):
                shape = self.value(loop.source).shape[1:]
                self._names[loop.item] = _joined([self._names.get(loop.item, ()), shape])

    def _give(self, known: dict[str, Shape], name: Token, shape: Shape) -> None:
        known[name.unquoted] = _joined([known.get(name.unquoted, ()), shape])[:_DEEPEST]

    def _part(self, tokens: Sequence[Token], index: int) -> tuple[Value, int]:
        """Return the part of a value that begins at `index`, and where the next one begins."""
        token = tokens[index]
        if token.kind == "string":
            return _looked_at((len(token.text),) if len(token.text) > _LONG_TEXT else ()), index + 1
        if token.kind == "mark":
            return self._list(tokens, index) if token.text == "[" else (Value(), index + 1)
        if token.kind not in ("word", "quoted"):
            return Value(), index + 1
        if _text(tokens, index + 1) == "(" or (token.name == "collect" and _text(tokens, index + 1) == "{"):
            return self._called(tokens, index)
        if keyword(token) in _EXPECTING:  # A list may follow; where it is a name after all, no index makes it shorter.
            return _looked_at(self._names.get(token.unquoted, ())), index + 1
        if _text(tokens, index - 1) == ".":
            return self._shortened(tokens, index + 1, self._keys.get(token.unquoted, ()))
        return self._shortened(tokens, index + 1, self._names.get(token.unquoted, ()))

    def _called(self, tokens: Sequence[Token], index: int) -> tuple[Value, int]:
        name, inside = tokens[index].name, arguments_of(tokens, index)
        after = index + len(inside) + 3
        if name in _QUICK:
            value = self.value(inside)
            shape = value.shape[1:] if name in ("head", "last") else ()
            return Value(shape, prod(shape) if shape and _is_plain(inside) else 0 if _is_plain(inside) else value.work), after
        if name in ("collect", "split"):
            shape = self.value(inside).shape
            return self._shortened(tokens, after, (self._gathered(tokens[index], shape), *shape)[:_DEEPEST])
        if name == "range":
            return _looked_at((self._range(inside),)), after
        if name == "replace" and (growth := growth_of_replace(tokens, index)) > MAX_KEPT:
            return _looked_at((growth,)), after
        if loop := loop_at(tokens, index + 1):
            return self.looped(loop), after
        return Value(), index + 1

    def _gathered(self, token: Token, given: Shape = ()) -> int:
        """Return how many items are collected, matched or split at a token."""
        if self._since == inf:
            return _COLLECTED
        if token.name == "split":
            return first(given) or _WORDS
        return _COLLECTED if token.start < self._since else _FEW

    def _range(self, arguments: Sequence[Token]) -> int:
        if any(token.name == "size" for token in arguments):
            names = [self._names.get(token.unquoted, ()) for token in arguments if token.kind in ("word", "quoted")]
            return max(map(first, names)) or _COLLECTED
        numbers = _TWO_NUMBERS.match("".join(token.text for token in arguments) + ",")
        return min(abs(int(numbers[2]) - int(numbers[1])) + 1, MAX_KEPT) if numbers else MAX_KEPT

    def looped(self, loop: Loop) -> Value:
        """Return what a `reduce` makes, or one of the quantifiers."""
        source, body = self.value(loop.source), self.inside(loop).value(loop.body)
        count = first(source.shape) or _UNKNOWN
        work = source.work + count * max(1, body.work)
        if not loop.sum or adds_numbers(loop.start, loop.body, loop.sum):
            return Value((), work)
        written = sum(len(token.text) for token in loop.body if token.kind == "string")
        each = first(body.shape) or max(_UNKNOWN, written)
        return Value((min(count * each, _MOST), *body.shape[1:]), work)

    def _list(self, tokens: Sequence[Token], index: int) -> tuple[Value, int]:
        """Return the list that begins at `index`: written out, made by a loop, or of what matches a pattern."""
        inside = arguments_of(tokens, index - 1)
        after = index + len(inside) + 2
        if loop := loop_at(tokens, index):
            source, body = self.value(loop.source), self.inside(loop).value(loop.body)
            items = body.shape if any(token.text == "|" for token in loop.body) else source.shape[1:]
            count = first(source.shape) or (_UNKNOWN if items else 0)
            shape = ((count, *items) if count else ())[:_DEEPEST]
            work = source.work + (count or _UNKNOWN) * body.work
            value, after = self._shortened(tokens, after, shape)
            return Value(value.shape, max(work, value.work)), after
        value = self.value(inside)
        if any(token.text == "|" for token in inside):
            found, after = self._shortened(
                tokens, after, (min(_MATCHED, self._gathered(tokens[index])), *value.shape)[:_DEEPEST]
            )
            return found, after
        count = sum(1 for _ in pieces(inside)) if inside else 0
        items = _joined([self.value(piece).shape for piece in pieces(inside)]) if value.shape else ()
        found, after = self._shortened(tokens, after, (count, *items)[:_DEEPEST] if count else ())
        written = (
            _text(tokens, index - 1) == "IN" and not value.work
        )  # The server keeps such a list in a form it finds things in.
        return Value(found.shape, 0 if written else max(value.work, found.work)), after

    def _shortened(self, tokens: Sequence[Token], index: int, shape: Shape) -> tuple[Value, int]:
        """Follow the keys and the indexes behind a value."""
        while (mark := _text(tokens, index)) in (".", "["):
            if mark == ".":
                shape, index = self._keys.get(tokens[index + 1].unquoted, ()) if index + 1 < len(tokens) else (), index + 2
                continue
            inside = arguments_of(tokens, index - 1)
            shape, index = self._indexed(shape, inside), index + len(inside) + 2
        return _looked_at(shape), index

    def _indexed(self, shape: Shape, inside: Sequence[Token]) -> Shape:
        written = "".join(token.text for token in inside)
        if ".." in written:
            kept = re.fullmatch(
                r"(?:0?|(?P<from>\w+))\.\.(?:(?P=from)\+)?(?P<most>[0-9]{1,4})|-(?P<last>[0-9]{1,4})\.\.", written
            )
            return (min(shape[0], int(kept["most"] or kept["last"])), *shape[1:]) if kept and shape else shape
        if any(token.kind == "number" for token in inside) and not any(
            token.kind == "string" or token.text == "(" for token in inside
        ):
            return shape[1:]
        return _joined([shape[1:], *self._keys.values()])


def first(shape: Shape) -> int:
    """Return the length of a value, 0 where it has none."""
    return shape[0] if shape else 0


def loop_at(tokens: Sequence[Token], opened: int) -> Loop | None:
    """Return the loop whose bracket opens at `opened`, if one does."""
    token = tokens[opened]
    if token.kind != "mark" or token.text not in ("[", "("):
        return None
    caller = tokens[opened - 1].name if opened and token.text == "(" else ""
    if token.text == "(" and caller not in _LOOPS:
        return None
    inside = arguments_of(tokens, opened - 1)
    first_piece = next(pieces(inside), inside) if caller == "reduce" else ()
    start = len(first_piece) + 1 if caller == "reduce" else 0
    if _text(inside, start + 1) != "IN":
        return None
    end = _end_of_source(inside, start + 2)
    added = inside[0].unquoted if caller == "reduce" else ""
    return Loop(inside[start].unquoted, inside[start + 2 : end], inside[end:], added, first_piece[2:])


def operand_before(tokens: Sequence[Token], end: int) -> Sequence[Token]:
    """Return the operand that ends at `end`, without the words and the conditions in front of it."""
    depth = 0
    for index in range(end - 1, -1, -1):
        token = tokens[index]
        if token.kind == "mark":
            depth += (token.text in CLOSING.values()) - (token.text in CLOSING)
            if depth < 0 or (not depth and token.text in (",", "|")):
                return tokens[index + 1 : end]
        elif not depth and keyword(token) in _CONDITIONS and _is_clause(tokens, index):
            return tokens[index + 1 : end]
    return tokens[:end]


def operand_after(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """Return the operand that begins at `start`, up to the condition, the comma or the bracket behind it."""
    found = _up_to_comma(tokens, start)
    depth = 0
    for index, token in enumerate(found):
        if token.kind == "mark":
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
        elif not depth and keyword(token) in _CONDITIONS and index and _is_clause(found, index):
            return found[:index]
    return found


def _looked_at(shape: Shape) -> Value:
    return Value(shape, min(prod(shape), _MOST) if shape else 0)


def _joined(shapes: Sequence[Shape]) -> Shape:
    return tuple(min(max(lengths), _MOST) for lengths in zip_longest(*shapes, fillvalue=0))


def _is_plain(tokens: Sequence[Token]) -> bool:
    """Tell whether this is a name with keys and indexes, whose length is known."""
    return bool(tokens) and tokens[0].kind in ("word", "quoted") and not any(t.text in ("(", "{", *_ADDED) for t in tokens)


def _start_of_value(tokens: Sequence[Token], end: int) -> int:
    """Return where the value begins that an `AS` at `end` names: at the word in front of it, which may be a name too."""
    depth = 0
    for index in range(end - 1, -1, -1):
        token = tokens[index]
        if token.kind == "mark":
            depth += (token.text in CLOSING.values()) - (token.text in CLOSING)
            if depth < 0 or (not depth and token.text == ","):
                return index + 1
        elif not depth and keyword(token) in _BEGIN and _is_clause(tokens, index):
            return index
    return 0


def _is_clause(tokens: Sequence[Token], index: int) -> bool:
    """Tell whether a word of `_BEGIN` begins something: what stands before it is at its end."""
    if not index:
        return True
    before = tokens[index - 1]
    if keyword(tokens[index]) == "WITH" and _text(tokens, index + 1) in _ZONES:  # A type's TIME WITH TIME ZONE, perhaps.
        return False
    return before.text in CLOSING.values() if before.kind == "mark" else keyword(before) not in _EXPECTING


def _up_to_comma(tokens: Sequence[Token], start: int) -> Sequence[Token]:
    """Return the value that begins at `start`, which a comma ends, or the bracket or the part around it."""
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.kind == "mark":
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
            if depth < 0 or (not depth and token.text == ","):
                return tokens[start:index]
        elif not depth and index > start and keyword(token) in _BEGIN and _is_clause(tokens, index):
            return tokens[start:index]
    return tokens[start:]


def pieces(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Cut what stands in brackets at its commas."""
    start = depth = 0
    for index, token in enumerate(tokens):
        if token.kind == "mark":
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
            if not depth and token.text == ",":
                yield tokens[start:index]
                start = index + 1
    yield tokens[start:]


def _end_of_source(tokens: Sequence[Token], start: int) -> int:
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        if token.kind == "mark":
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
        begins = token.text == "|" or (
            keyword(token) == "WHERE" and index > start and (index == start + 1 or _is_clause(tokens, index))
        )
        if not depth and begins:
            return index
    return len(tokens)


def _text(tokens: Sequence[Token], index: int) -> str:
    if not 0 <= index < len(tokens):
        return ""
    return keyword(tokens[index]) or tokens[index].text
