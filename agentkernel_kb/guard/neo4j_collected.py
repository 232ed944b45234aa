"""Lists and texts that a statement makes as long as it likes, looked at again and again inside of one expression.

`collect(n.name)` is as long as the graph is large, `reduce(s = [], i IN range(1, 1000) | s + range(1, 200))` is long without a
graph, and `[x IN l WHERE x IN l]` compares each of its items with each: that kept a thread of the server busy for minutes after
its limit, which it looks at between rows only. So the work of each loop is estimated: how many items it walks over, times how
much its body looks at for each of them. `collect(…)[..1000]` is short, whatever is collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from agentkernel_kb.guard.cypher_cursor import arguments_of, keyword
from agentkernel_kb.guard.cypher_effort import refusal
from agentkernel_kb.guard.lexer import Token
from agentkernel_kb.guard.neo4j_patterns import repeats_twice
from agentkernel_kb.guard.neo4j_shapes import MAX_KEPT, Shapes, first, loop_at, operand_after, operand_before, pieces
from agentkernel_kb.guard.neo4j_sums import adds_numbers

MAX_WORK = 20_000_000
MAX_LENGTH = 2_000_000
MAX_MATCHED = 10_000
MAX_PARSED = 100_000
MAX_ASKED = 1_000
MAX_COMPARED = 1_000_000_000
_OF_UNKNOWN = 100
"""How many items a list is taken to have that is a property, or the labels or keys of a node."""
_CURE = f"Keep its first items, as in collect(x)[..{MAX_KEPT}], or UNWIND it"
_SEARCHED = (
    f"For each item of a list that was collected or put together, a long value is looked at; nothing stops that. {_CURE}"
)
_PUT_TOGETHER = (
    f"A reduce over a list that was collected may copy a long text for each item; nothing stops that. {_CURE}; "
    "where it adds numbers, write toInteger(x) or toFloat(x)"
)
_MATCHED = (
    f"A regular expression that repeats twice cannot match a text of more than {MAX_MATCHED:,} characters, as this one may be"
)
_SOUGHT = "A long text is looked for in another long one, which may compare each place with all of it; nothing stops that"
_PARSING = frozenset(["tofloat", "tofloatornull", "tointeger", "tointegerornull"])
_PARSED = f"A text of more than {MAX_PARSED:,} digits, as this one may be, is not read as a number; nothing stops that"
_LUCENE = frozenset(["querynodes", "queryrelationships"])
_ASKED = f"The query of an index has at most {MAX_ASKED:,} characters; nothing stops what a longer one is made into"
_GROWN = "This statement puts a list together that is too long for what looks at all of it, which nothing stops. Use UNWIND"


def check_collected(tokens: Sequence[Token]) -> None:
    """Refuse loops that look at something long for each of many items, and values that are put together too long.

    Raises:
        KnowledgeGuardError: It holds one.
    """
    shapes = Shapes(tokens)
    for index, token in enumerate(tokens):
        if keyword(token) == "AS" and index and index + 1 < len(tokens) and shapes.length(tokens[index + 1]) > MAX_LENGTH:
            raise refusal(_GROWN, tokens[index + 1])
        _check_loop(tokens, index, shapes)
        if token.text == "=~" and index + 1 < len(tokens):
            _check_match(tokens, index, shapes)
        if token.name in _PARSING and first(shapes.value(arguments_of(tokens, index)).shape) > MAX_PARSED:
            raise refusal(_PARSED, token)
        if token.name in _LUCENE and _asked_chars(tokens, index, shapes) > MAX_ASKED:
            raise refusal(_ASKED, token)
        if prod(first(shapes.value(text).shape) for text in _sought(tokens, index)) > MAX_COMPARED:
            raise refusal(_SOUGHT, token)


def _check_loop(tokens: Sequence[Token], opened: int, shapes: Shapes) -> None:
    loop = loop_at(tokens, opened)
    if loop is None:
        return
    count = first(shapes.value(loop.source).shape) or _OF_UNKNOWN
    if loop.sum and count > MAX_KEPT and not adds_numbers(loop.start, loop.body, loop.sum):
        raise refusal(_PUT_TOGETHER, tokens[opened])
    if count * shapes.inside(loop).value(loop.body).work > MAX_WORK:
        raise refusal(_SEARCHED, tokens[opened])


def _check_match(tokens: Sequence[Token], operator: int, shapes: Shapes) -> None:
    """Refuse a long text in front of an expression that repeats twice: of 30,000 letters it tried pairs, for more than 10 s."""
    length = first(shapes.value(operand_before(tokens, operator)).shape)
    if length > MAX_MATCHED and repeats_twice(tokens[operator + 1].text[1:-1]):
        raise refusal(_MATCHED, tokens[operator])


def _asked_chars(tokens: Sequence[Token], procedure: int, shapes: Shapes) -> int:
    """Return how many characters the query of a full-text index may have: thousands of choices took Lucene 20 s to prepare."""
    asked = [*pieces(arguments_of(tokens, procedure)), ()][1]
    return max(sum(len(token.text) for token in asked if token.kind == "string"), first(shapes.value(asked).shape))


def _sought(tokens: Sequence[Token], index: int) -> Sequence[Sequence[Token]]:
    """Return the text that is searched here and the one that is looked for, none where another word stands."""
    if keyword(tokens[index]) == "CONTAINS":
        return operand_before(tokens, index), operand_after(tokens, index + 1)
    if tokens[index].name in ("replace", "split") and index + 1 < len(tokens) and tokens[index + 1].text == "(":
        return list(pieces(arguments_of(tokens, index)))[:2]
    return ((),)
