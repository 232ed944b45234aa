"""What a statement for Trino says about what it reads: how many rows a source has at most, which columns are stored ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_groups import Group, Node, text_of, where_of

_BEHIND_SOURCES = frozenset(
    "WHERE GROUP HAVING WINDOW ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT".split()  # noqa: SIM905 - reads better
)


_MORE_ROWS = frozenset(["match_recognize"])
"""What stands behind a source like an alias with columns, and may make more rows of it."""


def limit_of_query(part: Node | None) -> int | None:
    """Return how many rows the query in brackets has at most that a part is, `None` where that is not known."""
    if not isinstance(part, Group) or part.name is not None or part.opened.text != "(" or len(part.parts) < 2:
        return None
    limit, number = part.parts[-2:]
    if not (isinstance(limit, Token) and limit.keyword == "LIMIT" and isinstance(number, Token) and number.text.isdecimal()):
        return None
    return int(number.text[:10])


class NamedLimit(NamedTuple):
    """How many rows a common table expression has at most, and from which character on its name means it."""

    rows: int
    start: int


def limits_of_names(statement: Sequence[Node]) -> dict[str, NamedLimit]:
    """Return the common table expressions of a statement that end in a LIMIT and whose names mean nothing else in it."""
    if text_of(next(iter(statement), None)) != "WITH":
        return {}
    found: dict[str, NamedLimit] = {}
    for before, name, between, part, after in zip(*(statement[place:] for place in range(5)), strict=False):
        rows = limit_of_query(part)
        if isinstance(name, Token) and text_of(before) in ("WITH", ",") and text_of(between) == "AS" and rows is not None:
            found[name.name] = NamedLimit(rows, where_of(after).start)
    named = [name for name in _names_of_expressions(statement) if name in found]
    return {name: limit for name, limit in found.items() if named.count(name) == 1}


def _names_of_expressions(parts: Sequence[Node]) -> Iterator[str]:
    """Yield the names of all common table expressions, wherever they stand."""
    for index, part in enumerate(parts):
        if not isinstance(part, Group):
            continue
        if index > 1 and part.name is None and text_of(parts[index - 1]) == "AS":
            name = parts[index - 2]
            yield name.name if isinstance(name, Token) else name.called
        yield from _names_of_expressions(part.parts)


def limit_of_named(part: Node | None, limits: Mapping[str, NamedLimit]) -> int | None:
    """Return how many rows a query in brackets, or the name of one, has at most."""
    if isinstance(part, Token):
        limit = limits.get(part.name)
        return limit.rows if limit is not None and part.start >= limit.start else None
    return limit_of_query(part)


def limit_of_source(select: Sequence[Node], limits: Mapping[str, NamedLimit]) -> int | None:
    """Return how many rows a SELECT reads at most: those of one query in brackets or its name, with an alias perhaps."""
    start = next((index for index, part in enumerate(select) if text_of(part) == "FROM"), None)
    if start is None or text_of(select[start - 1]) == "DISTINCT":  # As in IS DISTINCT FROM.
        return None
    source: list[Node] = []
    for part in select[start + 1 :]:
        if isinstance(part, Token) and part.keyword in _BEHIND_SOURCES:
            break
        source.append(part)
    alias = [part for part in source[1:] if text_of(part) != "AS"]
    is_alone = len(alias) < 2 and all(is_alias(part) for part in alias)
    return limit_of_named(source[0], limits) if source and is_alone else None


def is_alias(part: Node) -> bool:
    """Tell whether a part can be the name that a source gets, perhaps with names for its columns."""
    if isinstance(part, Group):
        return part.name is not None and part.called not in _MORE_ROWS
    return part.kind in ("word", "quoted") and not text_of(part)


class StoredColumns:
    """Tells which names are columns of tables, with the values that the tables hold.

    Args:
        tokens: The statement.
        made: Names that it gives to values.
    """

    def __init__(self, tokens: Sequence[Token], made: Collection[str]) -> None:
        self.are_united = any(token.keyword == "UNION" for token in tokens)
        """The statement puts rows under the names of others, which may be made."""
        self._made = {*made, *_arguments_of_lambdas(tokens), *_fields_of_rows(tokens)}

    def has(self, item: Sequence[Node]) -> bool:
        """Tell whether this is the name of a column, perhaps with the table's, which the statement gives to nothing."""
        names, dots = item[::2], item[1::2]
        last = names[-1] if names else None
        return (
            isinstance(last, Token)
            and all(isinstance(part, Token) and part.kind in ("word", "quoted") for part in names)
            and all(text_of(dot) == "." for dot in dots)
            and last.name not in self._made
            and last.keyword != "NULL"
        )


def _fields_of_rows(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the names in the brackets of rows and their types."""
    depth, is_row = 0, False
    for token in tokens:
        if depth or (is_row and token.text == "("):
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            yield token.name
        is_row = token.name == "row"


def _arguments_of_lambdas(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the names before arrows: `x -> …`, `(x, y) -> …`."""
    arrows = [index for index, token in enumerate(tokens) if token.text == "->"]
    for arrow in arrows:
        place = arrow - 1
        is_list = tokens[place].text == ")"
        while place >= 0 and tokens[place].text != "(":
            yield tokens[place].name
            place = place - 1 if is_list else -1
