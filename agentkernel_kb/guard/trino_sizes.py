"""Bounds on what one expression of Trino can make, and on how long it can take for one row.

The server bounds the memory of tables, joins and aggregates, and asks for the time between pages of rows. Inside one expression
it does neither: there, a value that doubles itself ends the process, and lambdas inside each other keep a core busy long after
the query was cancelled. So the guard follows values through the statement, from name to name, and estimates the largest.

What a name stands for is not looked up: names that repeat count as the largest of them, and one that the statement gives to
nothing is a column of a table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_calls import DOCUMENT, Calls, refused
from agentkernel_kb.guard.trino_groups import RESERVED, Group, Node, all_groups, grouped, text_of, where_of
from agentkernel_kb.guard.trino_kinds import SIZED_NAMES
from agentkernel_kb.guard.trino_matching import check_matching
from agentkernel_kb.guard.trino_sequences import check_sequences
from agentkernel_kb.guard.trino_sketches import SKETCHES, check_sketches
from agentkernel_kb.guard.trino_sources import limits_of_names, renamed_columns
from agentkernel_kb.guard.trino_texts import MAX_PATTERN, pattern_size
from agentkernel_kb.guard.trino_values import NOTHING, SMALL, STORED, Size, array, either, text, together
from agentkernel_kb.guard.trino_windows import check_windows

MAX_VISITS = 40_000
MAX_ROW_BYTES = 5_000_000
ROUNDS_OF_A_RECURSION = 11  # Trino's `max_recursion_depth` is 10.

_SEPARATORS = RESERVED | frozenset([",", ";", ":", "=", "<>", "!=", "<", ">", "<=", ">=", "=>", "->", "?", "|", "$", "^"])
_BYTES_A_STEP = 64
_COMPARES = frozenset(["=", "<>", "!=", "<", ">", "<=", ">=", "BETWEEN", "DISTINCT", "IN", "IS", "WHEN"])
_ARITHMETIC = frozenset(["+", "-", "*", "/", "%"])
_QUERIES = frozenset(["SELECT", "VALUES", "TABLE"])
_SOURCES = frozenset(["json_table", "match_recognize", "unnest"])
"""What gives names to values in FROM, besides queries."""
_BEGINS_QUERY = _QUERIES | {"WITH", "FROM"}
_SMALL_WORDS = frozenset(["null", "true", "false", "date", "time", "timestamp", "interval", "decimal", "day", "hour", "month"])
_NO_ALIASES = frozenset(["over", "filter", "columns", "pattern", "permute", "sets"])


def check_sizes(tokens: Sequence[Token]) -> None:
    """Refuse a statement in which an expression can make a value that is too large, or take too long for one row.

    Raises:
        KnowledgeGuardError: One can.
    """
    parts = grouped(tokens)
    for group in all_groups(parts):
        if group.called == "pattern" and pattern_size(group.parts) > MAX_PATTERN:
            reason = f"This pattern has more than {MAX_PATTERN:,} steps once counts and PERMUTE are written out; shorten it"
            raise KnowledgeGuardError(reason, part=group.where.shown, position=group.where.start)
    steps = sum(token.keyword in _QUERIES or token.name in _SOURCES for token in tokens)
    is_recursive = any(token.keyword == "RECURSIVE" for token in tokens)
    sizes = _Sizes(parts)
    sizes.settle(max(1, steps) * (ROUNDS_OF_A_RECURSION if is_recursive else 1) + 1)
    check_matching(parts, limits_of_names(parts))
    words = {token.text.strip('"').lower() for token in tokens}
    if "over" in words:
        check_windows(parts, tokens, sizes.known, lambda others: _Sizes(others).settle(1))
    if words & SKETCHES:
        check_sketches(parts, tokens, sizes.known)
    if "sequence" in words:
        check_sequences(parts)


class _Sizes(Calls):
    """Estimates the values of one statement, again and again until those of its names stay.

    Each round carries a value through one query or source further, so that as many as there are carry it everywhere.
    """

    def __init__(self, parts: Sequence[Node]) -> None:
        super().__init__()
        self._parts = parts
        self._known: dict[str, Size] = {}
        self._found: dict[str, Size] = {}
        self._visits = 0

    @property
    def known(self) -> Collection[str]:
        """The names that the statement gives to values."""
        return self._known.keys() | self._found.keys()

    def settle(self, rounds: int) -> Collection[str]:
        """Read the statement so many times, or until nothing changes, and return the names that it gives to values."""
        for _ in range(rounds):
            self.steps, self._found = 0, {}
            self.value(self._parts, {})
            if self._found == self._known:
                break
            self._known = self._found
        return self.known

    def _name(self, name: str, size: Size) -> None:
        self._found[name] = either(self._found.get(name, NOTHING), size)

    def value(self, parts: Sequence[Node], local: Mapping[str, Size]) -> Size:
        """Return the size of whatever these parts of the statement stand for: of the largest, where they are several."""
        largest, before, segment, is_named = NOTHING, NOTHING, list[Node](), False
        matched: tuple[Size, Token] | None = None
        row, compares = 0, False
        named: list[Node] = []
        for index, part in enumerate([*parts, None]):
            sign = "," if part is None else text_of(part)
            if part is not None and (sign not in _SEPARATORS or _goes_on(parts, index, sign)):
                segment.append(part)
                continue
            size = self._alias(named, before, segment, local) if is_named else self._chain(segment, local)
            if segment and not is_named:
                row = self._in_row(row + self._beside(segment, size), segment[-1])
            row = 0 if sign in _BEGINS_QUERY else row
            if matched is not None:  # Trino holds a pattern of LIKE against a text without looking at the time.
                self.spend(matched[0].bytes * size.bytes // _BYTES_A_STEP, matched[1])
            if segment and (compares or sign in _COMPARES):
                self.spend(size.bytes // _BYTES_A_STEP, where_of(segment[-1]))
            compares = sign in _COMPARES or (compares and not segment)  # As in IS DISTINCT FROM.
            largest = either(largest, size)
            before, named, segment, is_named = (size if segment else before), segment, [], sign == "AS"
            matched = (before, part) if isinstance(part, Token) and sign == "LIKE" else None
        return largest

    def _beside(self, segment: Sequence[Node], size: Size) -> int:
        """Return what a value adds to its row; a star stands for all that the statement makes."""
        return sum(each.bytes for each in self._known.values()) if text_of(segment[-1]) == "*" else size.bytes

    def _in_row(self, size: int, last: Node) -> int:
        """Return the size of values beside each other, once it is proven not to be too large for a page of rows."""
        if size > MAX_ROW_BYTES:
            raise refused(
                f"Up to here a row can have more than {MAX_ROW_BYTES:,} bytes; select fewer large values, or parts of them",
                where_of(last),
            )
        return size

    def _alias(self, named: list[Node], before: Size, segment: list[Node], local: Mapping[str, Size]) -> Size:
        """Read what stands behind `AS`: a name for what stands before it, or a query that gets the names before it."""
        first, rest = (segment[0], segment[1:]) if segment else (None, [])
        if isinstance(first, Group) and first.name is None and text_of(next(iter(first.parts), None)) in _BEGINS_QUERY:
            size = self.value(first.parts, local)
            self._name_query(named[-1:], first, size)
            return either(size, self._chain(rest, local))
        self._name_all([first] if first is not None else [], before)
        return either(before, self._chain(rest, local))

    def _name_query(self, named: Sequence[Node], query: Group, size: Size) -> None:
        """Give a query's size to its name and to those of its columns; one that was called so before is no larger for it."""
        columns = named[0] if named else None
        if not isinstance(columns, Group) or columns.name is None:
            self._name_all(named, size)
            return
        large = [name for name in self.known if either(STORED, self._known.get(name, self._found.get(name, STORED))) != STORED]
        self._name_all([columns.name, *renamed_columns(columns, query, large)], size)

    def _name_all(self, parts: Sequence[Node], size: Size) -> None:
        for part in parts:
            if isinstance(part, Group):
                if part.name is not None:
                    self._name(part.called, size)
                self._name_all(part.parts, size)
            elif part.kind in ("word", "quoted"):
                self._name(part.name, size)

    def _chain(self, parts: Sequence[Node], local: Mapping[str, Size]) -> Size:
        """Return the size of values that `||` puts together."""
        pieces: list[list[Node]] = [[]]
        joint: Token | None = None
        for part in parts:
            if isinstance(part, Token) and part.text == "||":
                joint = joint or part
                pieces.append([])
            else:
                pieces[-1].append(part)
        read = [self._piece(piece, local) for piece in pieces]
        sizes = [size for size, _ in read]
        for _, aliases in read:
            for alias, size in aliases:
                self._name_all([alias], together(*sizes[:-1], size))
        if joint is None:
            return sizes[0]
        self.spend(1 + sum(size.bytes for size in sizes) // 64, joint)
        return self.bounded(together(*sizes), joint)

    def _piece(self, parts: Sequence[Node], local: Mapping[str, Size]) -> tuple[Size, list[tuple[Node, Size]]]:
        """Return the size of one operand of `||`, which may be calculated, and names that stand behind a value without AS."""
        atoms: list[Size] = []
        earlier = NOTHING  # All of them but the last, which may still change.
        aliases: list[tuple[Node, Size]] = []
        is_calculated = is_field = False
        for index, part in enumerate(parts):
            self._count_visit(part)
            before = parts[index - 1] if index else None
            if isinstance(part, Token) and part.kind == "mark":
                is_calculated = is_calculated or (part.text in _ARITHMETIC and text_of(before) != ".")
                is_field = part.text == "."
                continue
            if isinstance(part, Group) and part.opened.text == "[":
                atoms = self._indexed(part, before, atoms, local)
            elif is_field and atoms:
                atoms[-1] = either(atoms[-1], self._atom(part, local))
            else:
                if atoms and text_of(before) not in _ARITHMETIC and _can_be_alias(part):
                    aliases.append((part, either(earlier, atoms[-1])))
                earlier = either(earlier, *atoms[-1:])
                atoms.append(self._atom(part, local))
            is_field = False
        return SMALL if is_calculated else either(*atoms), aliases  # Without an operator between them, only one is the value.

    def _indexed(self, group: Group, before: Node | None, atoms: list[Size], local: Mapping[str, Size]) -> list[Size]:
        """Read `ARRAY[…]`, or a subscript behind a value."""
        if isinstance(before, Token) and before.keyword == "ARRAY":
            items = [self.value(item, local) for item in group.items()]
            made = array(0, either(*items), extra=sum(item.bytes + 8 for item in items))
            return [*atoms[:-1], self.bounded(Size(made.bytes, len(items), made.element), before)]
        self.value(group.parts, local)
        return [*atoms[:-1], atoms[-1].largest] if atoms else [STORED]

    def _atom(self, part: Node, local: Mapping[str, Size]) -> Size:
        if isinstance(part, Token):
            return self._token(part, local)
        if part.opened.text != "(" or part.name is None:
            return self._bracket(part, local)
        if part.called in SIZED_NAMES or part.called in ("cast", "try_cast"):
            return self.call(part, local)
        if part.called == "pattern":
            return NOTHING
        size = self.value(part.parts, local)
        if part.called == "columns":  # Of JSON_TABLE, which names them without AS.
            self._name_all(part.parts, local.get(DOCUMENT, STORED))
        return size

    def _token(self, token: Token, local: Mapping[str, Size]) -> Size:
        if token.kind == "number":
            return SMALL
        if token.kind == "string":
            return text(len(token.text.encode()) - 2)
        name = token.name
        found = local.get(name) or self._known.get(name)
        return found or (SMALL if name in _SMALL_WORDS else STORED)

    def _bracket(self, group: Group, local: Mapping[str, Size]) -> Size:
        """Return the size of what stands in brackets: a query, one value, or several that make a row."""
        items = group.items()
        if group.opened.text != "(" or len(items) == 1 or text_of(next(iter(group.parts), None)) in _BEGINS_QUERY:
            return self.value(group.parts, local)
        return together(*(self.value(item, local) for item in items))

    def _count_visit(self, part: Node) -> None:
        self._visits += 1
        if self._visits > MAX_VISITS:
            token = where_of(part)
            reason = "The statement is too long for the sizes of its values to be followed; shorten it"
            raise KnowledgeGuardError(reason, part=token.shown, position=token.start)


def _can_be_alias(part: Node) -> bool:
    if isinstance(part, Group):
        return part.name is not None and part.called not in _NO_ALIASES
    return part.kind in ("word", "quoted")


def _goes_on(parts: Sequence[Node], index: int, sign: str) -> bool:
    """Tell whether a reserved word belongs to the value before it: `WITH ORDINALITY`, `WITHIN GROUP`."""
    place = index + 1 if sign == "WITH" else index - 1
    other = parts[place] if 0 <= place < len(parts) else None
    word = other.keyword if isinstance(other, Token) else ""
    return (sign, word) in (("WITH", "ORDINALITY"), ("GROUP", "WITHIN"))
