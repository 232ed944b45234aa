"""What a statement for Trino says about what it reads: how many rows a source has at most, which columns are stored ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_groups import Group, Node, text_of, where_of

_BEHIND_SOURCES = frozenset(
    "WHERE GROUP HAVING WINDOW ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT".split()  # noqa: SIM905 - reads better
)


_SET_OPERATIONS = frozenset(["EXCEPT", "INTERSECT", "UNION"])

_MORE_ROWS = frozenset(["match_recognize"])
"""What stands behind a source like an alias with columns, and may make more rows of it."""


def limit_of_query(part: Node | None) -> int | None:
    """Return how many rows the query in brackets has at most that a part is, `None` where that is not known."""
    if not isinstance(part, Group) or part.name is not None or part.opened.text != "(" or len(part.parts) < 2:
        return None
    if text_of(part.parts[0]) == "VALUES" and not any(text_of(each) in _SET_OPERATIONS for each in part.parts):
        return len(part.items())
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


def renamed_columns(columns: Group, query: Group, large: Collection[str]) -> list[Node]:
    """Return the names in brackets behind a query's name that it gives to anything but columns which are called so already.

    Args:
        columns: The names, as in `t (id, path) AS (SELECT id, path || id FROM …)`.
        query: The query in brackets, which may be several put together by UNION and its kind.
        large: Names that stand for large values, and so, before a dot, for no table.
    """
    rest, names = [part for part in columns.parts if text_of(part) != ","], columns.items()
    lists = [_selected(parts) for parts in _united(query.parts)]
    if any(items is None or len(items) != len(names) for items in lists):
        return rest
    called = [name[0].name if name and isinstance(name[0], Token) else "" for name in names]
    kept = {
        name
        for place, name in enumerate(called)
        if called.count(name) == 1 and all(_is_column(items[place], name, large) for items in lists if items)
    }
    return [part for part in rest if not (isinstance(part, Token) and part.name in kept)]


def _united(parts: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Yield the parts of each query that a set operation puts together."""
    starts = [index for index, part in enumerate(parts) if text_of(part) in _SET_OPERATIONS]
    for start, end in pairwise([-1, *starts, len(parts)]):
        yield parts[start + 1 :][: end - start - 1]


def _selected(parts: Sequence[Node]) -> list[list[Node]] | None:
    """Return the items that a SELECT begins with, `None` where it does not or they are all of a table's."""
    words = [index for index, part in enumerate(parts[:3]) if text_of(part) == "SELECT"]
    end = next((index for index, part in enumerate(parts) if text_of(part) == "FROM"), len(parts))
    if not words or any(text_of(part) == "*" for part in parts[:end]):
        return None
    items: list[list[Node]] = [[]]
    for part in parts[words[0] + 1 : end]:
        if text_of(part) == ",":
            items.append([])
        else:
            items[-1].append(part)
    return items


def _is_column(item: Sequence[Node], name: str, large: Collection[str]) -> bool:
    """Tell whether this is a column of that name, perhaps with its table's before it."""
    *qualifier, last = item or [None]
    if not isinstance(last, Token) or last.name != name or last.kind not in ("word", "quoted"):
        return False
    table = qualifier[0] if qualifier else None
    is_named = len(qualifier) == 2 and isinstance(table, Token) and text_of(qualifier[1]) == "." and table.name not in large
    return not qualifier or is_named


def without_list(parts: Sequence[Node], select: Token) -> list[Node]:
    """Return the parts of a statement without the items of the SELECT that begins with this token."""
    kept: list[Node] = []
    is_left_out = False
    for part in parts:
        is_left_out = is_left_out and text_of(part) not in ("FROM", *_SET_OPERATIONS)
        if not is_left_out:
            inner = without_list(part.parts, select) if isinstance(part, Group) else []
            kept.append(Group(part.opened, part.name, inner) if isinstance(part, Group) else part)
        is_left_out = is_left_out or part is select
    return kept


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
