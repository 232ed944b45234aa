"""Calls of PostgreSQL that no deadline ends: their time grows with the product of two sizes.

Inside of them the engine does not look up. Seen on PostgreSQL 18: `translate` of 100,000 characters by 100,000 others takes
minutes, and neither `statement_timeout` nor a cancellation stops it. So of two sizes one has to be small for all to see:
written out in the statement, or a column of a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_SET_CHARS = 64
MAX_SOUGHT_CHARS = 200
MAX_ELEMENTS = 200

_Refusal = tuple[str, "Expr", str]


def check_costs(tree: Expr) -> _Refusal | None:
    """Return the reason, the node and the part of a call that could go on for minutes, or `None`."""
    from sqlglot import exp

    has_plain_sources = _has_plain_sources(tree)
    for what, node, argument, most in _sought(tree):
        if not _is_small(argument, most, has_plain_sources):
            reason = f"What {what} looks for has to be a plain string of at most {most} characters, or a column of a table"
            return f"{reason} where the statement reads nothing but tables", node, what
    if has_plain_sources or not _makes_arrays(tree):
        return None
    comparisons = {exp.ArrayOverlaps: "&&", exp.ArrayContainsAll: "@>", exp.ArrayContainedBy: "<@"}
    for node in tree.find_all(*comparisons):
        if not any(_is_small(side, MAX_SOUGHT_CHARS, is_plain=False) for side in (node.this, node.expression)):
            return "One side has to be written out here where the statement builds arrays", node, comparisons[type(node)]
    return None


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


def _makes_arrays(tree: Expr) -> bool:
    from sqlglot import exp

    if any(clause.args.get("recursive") for clause in tree.find_all(exp.With)):
        return True
    if tree.find(exp.ArrayAgg, exp.StringToArray, exp.RegexpSplit) is not None:
        return True
    if any(array.find(exp.Select) is not None for array in tree.find_all(exp.Array)):
        return True
    names = {call.name.lower() for call in tree.find_all(exp.Anonymous)}
    return not names.isdisjoint({"array_fill", "regexp_split_to_array", "tsvector_to_array"})


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
