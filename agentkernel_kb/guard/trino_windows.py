"""How many rows window functions of Trino may go through for each row: a server fills a page without looking at the time.

Measured on one core, over 300,000 rows: `max` over a frame of 50,000 rows was still at work twenty seconds after its query was
cancelled, and so was `lead(…) IGNORE NULLS` over nothing but NULLs. A frame that begins at UNBOUNDED PRECEDING costs a step a
row, and so does any frame of `count`, and of `sum` and `avg` of whole and floating numbers, out of which the server takes what
has left.

Source: `AggregateWindowFunction` and `io.trino.operator.window` of Trino.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from agentkernel_kb.errors import KnowledgeGuardError
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.trino_arguments import number_in
from agentkernel_kb.guard.trino_groups import Group, Node, text_of
from agentkernel_kb.guard.trino_sources import NamedLimit, StoredColumns, limit_of_source, limits_of_names, without_list

MAX_STEPS_OF_A_PAGE = 250_000_000
_ROWS_OF_A_PAGE = 100_000
_UNKNOWN = 10**9
_MOST_LISTS = 10
_WEIGHT = 5  # Of an aggregate that does more than to compare or add.
_FRAMES = frozenset(["ROWS", "RANGE", "GROUPS"])
_LIGHT = frozenset(["bool_and", "bool_or", "every", "max", "min", "sum", "avg", "bitwise_and_agg", "bitwise_or_agg"])
_PLACED = frozenset(
    "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number".split()  # noqa: SIM905
)
_SEEKING = frozenset(["first_value", "lag", "last_value", "lead", "nth_value"])
_QUICK_TYPES = frozenset(["bigint", "double", "int", "integer", "real", "smallint", "tinyint"])
_MAKES_NULLS = frozenset(["CUBE", "FULL", "LEFT", "RIGHT", "ROLLUP", "SETS", "UNION"])
_QUERIES = frozenset(["SELECT", "VALUES", "TABLE", "WITH"])
_SET_OPERATIONS = frozenset(["EXCEPT", "INTERSECT", "UNION"])
_REASON = (
    "Trino goes through {what} for each row, whatever the time: {instead}, or give it few rows, as in "
    "FROM (SELECT … LIMIT 10000)"
)
_FRAME = "the frames of these window functions"
_ROWS = "let them begin at UNBOUNDED PRECEDING, span at most 400 ROWS, or take sum or avg of CAST(… AS double)"
_NULLS = "the NULLs before the value that is looked for"
_COLUMN = "take a column of a table as it is, without outer joins"


NamesOf = Callable[[Sequence[Node]], Collection[str]]


class _Frame(NamedTuple):
    """How many rows a frame has at most, and whether its beginning moves, so that values leave it."""

    width: int = _UNKNOWN
    moves: bool = False


class _Window(NamedTuple):
    """A window function: its call, whether it ignores NULLs, and its frame."""

    call: Group
    ignores_nulls: bool
    frame: _Frame


def check_windows(parts: Sequence[Node], tokens: Sequence[Token], made: Collection[str], names_of: NamesOf) -> None:
    """Refuse window functions that may go through more rows for each row than can be done before the deadline.

    Args:
        parts: The statement.
        tokens: Its tokens.
        made: Names that the statement gives to values.
        names_of: Returns those that other parts give.

    Raises:
        KnowledgeGuardError: There is one. The message says what would do.
    """
    _Windows(parts, tokens, made, names_of).check(parts)


class _Windows:
    def __init__(self, parts: Sequence[Node], tokens: Sequence[Token], made: Collection[str], names_of: NamesOf) -> None:
        self._statement, self._tokens, self._names_of = parts, tokens, names_of
        self._limits: dict[str, NamedLimit] = limits_of_names(parts)
        self._makes_nulls = any(token.keyword in _MAKES_NULLS for token in tokens)
        self._columns = StoredColumns(tokens, made)
        self._lists_read = 0
        self._steps = 0

    def check(self, parts: Sequence[Node]) -> None:
        are_several = any(text_of(part) in _SET_OPERATIONS for part in parts)  # An ORDER BY at the end is of all of them.
        for select in _selects(parts):
            rows = None if are_several else limit_of_source(select, self._limits)
            columns: StoredColumns | None = None
            for window in _windows(select, _named_frames(select)):
                columns = columns or self._columns_in(select)
                self._count(window, rows, columns if _is_in_list(window, select) else self._columns)
        for part in parts:
            if isinstance(part, Group):
                self.check(part.parts)

    def _columns_in(self, select: Sequence[Node]) -> StoredColumns:
        """Return the stored columns as the items of a SELECT see them: its own aliases are names for others alone."""
        first = next(iter(select), None)
        is_recursive = any(token.keyword == "RECURSIVE" for token in self._tokens)
        if not isinstance(first, Token) or is_recursive or self._lists_read == _MOST_LISTS:
            return self._columns
        self._lists_read += 1
        return StoredColumns(self._tokens, self._names_of(without_list(self._statement, first)))

    def _count(self, window: _Window, rows: int | None, columns: StoredColumns) -> None:
        name, frame = window.call.called, window.frame
        page = _ROWS_OF_A_PAGE if rows is None else min(rows, _ROWS_OF_A_PAGE)
        width = min(frame.width, _UNKNOWN if rows is None else -(-rows // 2))
        if name in _PLACED:
            if not window.ignores_nulls or name not in _SEEKING or self._is_stored(window, columns):
                return
        elif not frame.moves or _is_quick(window.call, columns):
            return
        self._steps += width * page * (1 if name in _LIGHT | _PLACED else _WEIGHT)
        if self._steps > MAX_STEPS_OF_A_PAGE:
            what, instead = (_NULLS, _COLUMN) if name in _PLACED else (_FRAME, _ROWS)
            raise KnowledgeGuardError(
                _REASON.format(what=what, instead=instead), part=window.call.where.shown, position=window.call.where.start
            )

    def _is_stored(self, window: _Window, columns: StoredColumns) -> bool:
        """Tell whether this is a column of a table in which, as far as the statement goes, are the NULLs of the table."""
        return not self._makes_nulls and columns.has(window.call.items()[0])


def _is_in_list(window: _Window, select: Sequence[Node]) -> bool:
    """Tell whether a window function is one of the items of a SELECT; ORDER BY sees their aliases."""
    end = next((part.start for part in select if isinstance(part, Token) and text_of(part) == "FROM"), 0)
    return window.call.where.start < end


def _is_quick(call: Group, columns: StoredColumns) -> bool:
    """Tell whether the server takes out of the value what leaves the frame."""
    if call.called in ("count", "count_if"):
        return True
    item = call.items()[0]
    return call.called in ("avg", "sum") and (_is_cast(item) or columns.has(item))


def _is_cast(item: Sequence[Node]) -> bool:
    """Tell whether this is a cast to a type of numbers of which the server can take values out of a sum."""
    part = item[0] if len(item) == 1 else None
    if not isinstance(part, Group) or part.called not in ("cast", "try_cast") or len(part.parts) < 2:
        return False
    before, kind = part.parts[-2:]
    return text_of(before) == "AS" and isinstance(kind, Token) and kind.name in _QUICK_TYPES


def _selects(parts: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Yield the parts of each SELECT at this level, and those of a short query before the first."""
    starts = [index for index, part in enumerate(parts) if text_of(part) == "SELECT"]
    first = text_of(next(iter(parts), None))
    short = [0] if first in ("TABLE", "VALUES") or (first == "WITH" and not starts) else []
    for start, end in pairwise([*short, *starts, len(parts)]):
        yield parts[start:end]


def _windows(parts: Sequence[Node], named: Mapping[str, _Frame]) -> Iterator[_Window]:
    """Yield the window functions of a SELECT, wherever in its expressions they stand."""
    for index, part in enumerate(parts):
        if isinstance(part, Group):
            if text_of(next(iter(part.parts), None)) not in _QUERIES:
                yield from _windows(part.parts, named)
            if part.called == "over" and (call := _call_before(parts, index)):
                yield _Window(call, _ignores_nulls(parts, index), _frame(part.parts, named))
        elif part.keyword == "OVER" and index + 1 < len(parts) and (call := _call_before(parts, index)):
            following = parts[index + 1]
            name = following.name if isinstance(following, Token) else ""
            yield _Window(call, _ignores_nulls(parts, index), named.get(name, _Frame(moves=True)))


def _call_before(parts: Sequence[Node], index: int) -> Group | None:
    """Return the call of a function that OVER, at that place, belongs to."""
    calls = [part for part in parts[max(0, index - 4) : index] if isinstance(part, Group) and part.called != "filter"]
    return calls[-1] if calls else None


def _ignores_nulls(parts: Sequence[Node], index: int) -> bool:
    before = parts[index - 2] if index > 1 else None
    return isinstance(before, Token) and before.keyword == "IGNORE"


def _named_frames(select: Sequence[Node]) -> dict[str, _Frame]:
    """Return the frames of the windows that a SELECT names; of those that repeat the widest counts."""
    frames: dict[str, _Frame] = {}
    for name, between, part in zip(select, select[1:], select[2:], strict=False):
        if isinstance(name, Token) and text_of(between) == "AS" and isinstance(part, Group) and part.name is None:
            frames[name.name] = _wider(_frame(part.parts, frames), frames.get(name.name))
    return frames


def _wider(one: _Frame, other: _Frame | None) -> _Frame:
    return one if other is None else _Frame(max(one.width, other.width), one.moves or other.moves)


def _frame(parts: Sequence[Node], named: Mapping[str, _Frame]) -> _Frame:
    """Return the frame of these parts of a window, else that of the window which they begin with."""
    if own := _own_frame(parts):
        return own
    first = next(iter(parts), None)
    return named.get(first.name if isinstance(first, Token) else "", _Frame())


def _own_frame(parts: Sequence[Node]) -> _Frame | None:
    """Return the frame that ends these parts of a window, `None` where they have none."""
    places = [index for index, part in enumerate(parts) if isinstance(part, Token) and part.keyword in _FRAMES]
    bounds = [part for part in parts[places[-1] + 1 :] if text_of(part) != "BETWEEN"] if places else []
    middle = next((index for index, part in enumerate(bounds) if text_of(part) == "AND"), len(bounds))
    first, last = bounds[:middle], bounds[middle + 1 :]
    words = [part.keyword for part in first if isinstance(part, Token)]
    if words == ["UNBOUNDED", "PRECEDING"] or not {"CURRENT", "PRECEDING", "FOLLOWING"} & set(words):
        return _Frame() if words else None  # It only grows; or there is none, but a column that is called rows.
    start, end = _offset(first), _offset(last) if last else 0
    kind = parts[places[-1]]
    if start is None or end is None or not (isinstance(kind, Token) and kind.keyword == "ROWS"):
        return _Frame(moves=not (start == end == 0))  # Rows that are equal share a frame.
    return _Frame(max(1, end - start + 1), moves=True)


def _offset(bound: Sequence[Node]) -> int | None:
    """Return how many rows after the current one a bound lies, `None` where that is not said in a plain number."""
    last = bound[-1] if bound else None
    word = last.keyword if isinstance(last, Token) else ""
    if word == "ROW":
        return 0
    number = number_in(bound[:-1])
    return None if number is None else number if word == "FOLLOWING" else -number
