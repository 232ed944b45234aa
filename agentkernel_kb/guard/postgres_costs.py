"""Calls of PostgreSQL that no deadline ends: their time grows with the product of two sizes.

Inside of them the engine does not look up. Seen on PostgreSQL 18: `translate` of 100,000 characters by 100,000 others takes
minutes, and so does the distance of two paths; neither `statement_timeout` nor a cancellation stops it. So of two sizes one has
to be small for all to see: written out in the statement, or a column of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from agentkernel_kb.guard.postgres_lengths import check_lengths
from agentkernel_kb.guard.postgres_sizes import Sizes, check_built

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_SET_CHARS = 64
MAX_SOUGHT_CHARS = 200
MAX_ELEMENTS = 200

_Refusal = tuple[str, "Expr", str]


def check_costs(tree: Expr) -> _Refusal | None:
    """Return the reason, the node and the part of a call that could go on for minutes, or `None`."""
    has_plain_sources = _has_plain_sources(tree)
    for what, node, argument, most in _sought(tree):
        if not _is_small(argument, most, has_plain_sources):
            reason = f"What {what} looks for has to be a plain string of at most {most} characters, or a column of a table"
            return f"{reason} where the statement reads nothing but tables", node, what
    sizes = Sizes(tree, has_plain_sources)
    if refusal := check_built(tree, has_plain_sources, sizes) or check_lengths(tree):
        return refusal
    for what, node, left, right in _compared(tree):
        if sizes.is_large(left) and sizes.is_large(right):
            return "Both sides are built by this statement and may be large; one of them has to be written out", node, what
    for what, node, argument in _followed(tree):
        if sizes.is_large(argument):
            return f"The pattern, format, replacement or query of {what} has to be written out, or short", node, what
    for what, node, value, path in _walked(tree):
        if sizes.is_large(value) and not _is_simple_path(path):
            return "In JSON that this statement builds, a path compares with written values only, as in $[*] > 3", node, what
    return None


def _compared(tree: Expr) -> Iterator[tuple[str, Expr, Expr, Expr]]:
    """Yield name, node and both sides of what compares each part of one with each part of the other."""
    from sqlglot import exp

    operators = {
        exp.ArrayContainedBy: "<@",
        exp.ArrayContainsAll: "@>",
        exp.ArrayOverlaps: "&&",
        exp.Distance: "<->",
        exp.JSONBContainsAllTopKeys: "?&",
        exp.JSONBContainsAnyTopKeys: "?|",
        exp.Sub: "-",  # Of JSON and an array of keys; the parser is shown `?#` in this way too.
    }
    for node in tree.find_all(*operators):
        yield operators[type(node)], node, node.this, node.expression
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in ("ts_rank", "ts_rank_cd"):
            for left, right in pairwise(call.expressions):  # Weights may stand in front.
                yield call.name.lower(), call, left, right


def _followed(tree: Expr) -> Iterator[tuple[str, Expr, Expr | None]]:
    """Yield name, node and what is gone through anew for each step of something else."""
    from sqlglot import exp

    for node in tree.find_all(exp.SimilarTo):
        yield "SIMILAR TO", node, node.expression
    for node in tree.find_all(exp.TimeToStr, exp.StrToTime, exp.StrToDate, exp.ToNumber, exp.ToChar):
        yield _FORMATTING.get(type(node).__name__, "to_char"), node, node.args.get("format")
    for node in tree.find_all(exp.Like, exp.ILike):
        yield "LIKE", node, node.expression
    for node in tree.find_all(exp.RegexpReplace):
        yield "regexp_replace", node, node.args.get("replacement")
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in _QUERIES and call.expressions:
            yield call.name.lower(), call, call.expressions[-1]


_QUERIES = frozenset(["phraseto_tsquery", "plainto_tsquery", "to_tsquery", "websearch_to_tsquery"])
"""Each word is put beside all before it: 400,000 words kept a connection busy for minutes after a cancellation."""
_FORMATTING = {"StrToTime": "to_timestamp", "StrToDate": "to_date", "ToNumber": "to_number"}
_PATH_FUNCTIONS = ("json_exists", "json_query", "json_table", "json_value", "jsonb_path_")


def _walked(tree: Expr) -> Iterator[tuple[str, Expr, Expr, Expr | None]]:
    """Yield name, node, the JSON and the path that is followed in it."""
    from sqlglot import exp

    for node in tree.find_all(exp.MatchAgainst):
        path = node.this
        if (isinstance(path, exp.Literal) and "$" in path.name) or _is_cast_to(path, "jsonpath"):
            yield "@@", node, node.expressions[0], path
    for node in tree.find_all(exp.JSONBPathExists):
        yield "@?", node, node.this, node.expression
    for node in tree.find_all(exp.JSONValue, exp.JSONTable):
        yield "json_value", node, node.this, node.args.get("path")
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower().startswith(_PATH_FUNCTIONS) and len(call.expressions) > 1:
            yield call.name.lower(), call, call.expressions[0], call.expressions[1]


def _is_cast_to(node: Expr, name: str) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Cast) and node.to.sql().lower() == name


def _is_simple_path(path: Expr | None) -> bool:
    """Tell whether a path is written out, and behind each of its comparisons stands a value and no path."""
    from sqlglot import exp

    while isinstance(path, exp.Cast):
        path = path.this
    if not isinstance(path, exp.Literal):
        return False
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', path.name)
    return all(re.match(r'\s*(?:""|-?\d|true|false|null)', behind) for behind in re.split(r"==|!=|<>|<=|>=|<|>", text)[1:])


def _sought(tree: Expr) -> Iterator[tuple[str, Expr, Expr, int]]:
    """Yield name, node, and the argument that has to be small, with the most characters that it may have."""
    from sqlglot import exp

    for node in tree.walk():
        if isinstance(node, exp.Translate):
            yield "translate", node, node.args["from_"], MAX_SET_CHARS
        elif isinstance(node, exp.Trim) and node.args.get("expression") is not None:
            yield "trim", node, node.args["expression"], MAX_SET_CHARS
        elif isinstance(node, exp.Normalize):
            yield "normalize", node, node.this, MAX_SOUGHT_CHARS
        elif isinstance(node, exp.StrPosition):
            yield "position", node, node.args["substr"], MAX_SOUGHT_CHARS
        elif isinstance(node, exp.SplitPart):
            yield "split_part", node, node.args["delimiter"], MAX_SOUGHT_CHARS
        elif isinstance(node, exp.Replace | exp.StringToArray):
            yield type(node).__name__.lower(), node, node.expression, MAX_SOUGHT_CHARS
        elif isinstance(node, exp.Anonymous) and node.name.lower() == "string_to_table" and len(node.expressions) > 1:
            yield "string_to_table", node, node.expressions[1], MAX_SOUGHT_CHARS


def _has_plain_sources(tree: Expr) -> bool:
    """Tell whether every row is one of a table or view, so that columns hold what is stored and nothing that was just made."""
    from sqlglot import exp

    if tree.find(exp.CTE, exp.Lateral, exp.Unnest, exp.Values, exp.JSONTable) is not None:
        return False
    if any(isinstance(subquery.parent, exp.From | exp.Join) for subquery in tree.find_all(exp.Subquery)):
        return False
    return all(isinstance(table.this, exp.Identifier) for table in tree.find_all(exp.Table))


def _is_small(node: Expr, most: int, is_plain: bool) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Literal | exp.ByteString | exp.UnicodeString | exp.National | exp.RawString):
        return len(node.name) <= most
    if isinstance(node, exp.Null | exp.Boolean):
        return True
    if isinstance(node, exp.Column):
        return is_plain
    if isinstance(node, exp.Array):
        return len(node.expressions) <= MAX_ELEMENTS and all(_is_small(item, most, is_plain) for item in node.expressions)
    if isinstance(node, exp.Cast | exp.Chr | exp.Lower | exp.Neg | exp.Paren | exp.Upper):
        inner = node.expressions or [node.this]
        return all(_is_small(item, most, is_plain) for item in inner)
    if isinstance(node, exp.DPipe | exp.Coalesce):
        parts = [node.this, *node.expressions] if isinstance(node, exp.Coalesce) else [node.left, node.right]
        return all(_is_small(item, most, is_plain) for item in parts)
    return False
