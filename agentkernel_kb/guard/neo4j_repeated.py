"""What a Neo4j statement does for each row of an `UNWIND`, between whose rows the server does not always look at its limit.

It looks where rows come from the graph, but of the rows of a list only once in more than a thousand: a `reduce` that joins a
thousand texts of 900 characters, for each of a thousand rows, kept a thread of the server busy for 90 s under a limit of one.
So what one expression may do for a row is less by as many times as there are rows. What is collected behind the `UNWIND` does
not count as long there: all of it together is no longer than the rows that made it.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkernel_kb.guard.cypher_cursor import arguments_of, keyword
from agentkernel_kb.guard.cypher_effort import refusal
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.neo4j_shapes import MAX_KEPT, Shapes, first, loop_at, operand_before
from agentkernel_kb.guard.neo4j_values import opens_part

MAX_WORK_OF_ROWS = 20_000_000
MAX_ROWS = 1_000
MAX_UNWINDS = 20
_OF_UNKNOWN = 100
_COPIED_AT_ONCE = 200
"""How many characters are copied in the time in which one item is looked at, twice, as a text is half as long on average."""
_CHEAP = frozenset(
    [
        *("coalesce", "elementid", "exists", "head", "id", "isempty", "keys", "labels", "last", "length", "nodes", "range"),
        *("relationships", "reverse", "size", "tail"),
        *("all", "any", "none", "reduce", "single"),
        *("avg", "collect", "count", "max", "min", "stdev", "stdevp", "sum"),
    ]
)
"""Functions that take the same time for a long list, or whose work is counted where their loop stands."""
_EACH_ROW = (
    "For each row of an UNWIND, a long list or text is looked at; the server does not stop that in time. "
    f"Keep its first items, as in collect(x)[..{MAX_KEPT}], or do it before the UNWIND"
)
_TOO_MANY = f"A statement has at most {MAX_UNWINDS} UNWIND"


def check_repeated(tokens: Sequence[Token]) -> None:
    """Refuse loops and functions behind an `UNWIND` whose work, times its rows, is more than nothing stops in time.

    Raises:
        KnowledgeGuardError: It holds one.
    """
    named = [
        (_name_of(tokens, index), index)
        for index, token in enumerate(tokens)
        if keyword(token) == "UNWIND" and opens_part(tokens, index)
    ]
    if len(named) > MAX_UNWINDS:
        raise refusal(_TOO_MANY, tokens[named[MAX_UNWINDS][1]])
    if not named:
        return
    known = Shapes(tokens)
    rows = [(end, first(known.value(tokens[start + 1 : end]).shape) or _OF_UNKNOWN) for end, start in named]
    for position in range(len(rows)):
        _check_behind(tokens, rows[position:])


def _name_of(tokens: Sequence[Token], unwind: int) -> int:
    """Return where the `AS` of an `UNWIND` stands."""
    depth = 0
    for index in range(unwind, len(tokens)):
        depth += (tokens[index].text in ("(", "[", "{")) - (tokens[index].text in (")", "]", "}"))
        if not depth and keyword(tokens[index]) == "AS":
            return index
    return len(tokens) - 1


def _check_behind(tokens: Sequence[Token], rows: Sequence[tuple[int, int]]) -> None:
    """Look at what stands behind the first of some `UNWIND`, each given as the place of its `AS` and its rows."""
    begin = rows[0][0]
    shapes = Shapes(tokens, since=tokens[begin].start)
    for index in range(begin + 1, len(tokens)):
        if (work := _work_at(tokens, index, shapes)) and work * _rows_at(rows, index) > MAX_WORK_OF_ROWS:
            raise refusal(_EACH_ROW, tokens[index])


def _rows_at(rows: Sequence[tuple[int, int]], index: int) -> int:
    """Return how many rows reach a token, as far as the server does not look at its limit between them."""
    count = 1
    for begin, each in rows:
        count *= each if begin < index else 1
    return min(count, MAX_ROWS)


def _work_at(tokens: Sequence[Token], index: int, shapes: Shapes) -> int:
    """Return how many items the loop, the function or the match looks at that begins at a token."""
    if loop := loop_at(tokens, index):
        count = first(shapes.value(loop.source).shape) or _OF_UNKNOWN
        copied = count * first(shapes.looped(loop).shape) // _COPIED_AT_ONCE if loop.sum else 0
        return count * max(1, shapes.inside(loop).value(loop.body).work) + copied
    token = tokens[index]
    if token.text == "=~":
        return shapes.value(operand_before(tokens, index)).work
    is_called = token.kind == "word" and index + 1 < len(tokens) and tokens[index + 1].text == "("
    return shapes.value(arguments_of(tokens, index)).work if is_called and token.name not in _CHEAP else 0
