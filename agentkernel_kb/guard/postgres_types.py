"""Types of PostgreSQL to which nothing is cast: doing so is work that no deadline ends, or tells who may log in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_REASONS = {
    "aclitem": "This type tells who may log in",
    "regrole": "This type tells who may log in",
    "xml": "XML is refused, as no time limit stops its parser; columns of that type can be read as ::text",
}


def check_types(tree: Expr) -> tuple[str, Expr, str] | None:
    """Return the reason, the node and the name of a type to which a value is cast, or `None`."""
    from sqlglot import exp

    for node in tree.find_all(exp.DataType):
        name = _plain(node.sql("postgres"))
        if reason := _REASONS.get(name):
            return reason, node, name
    for node in tree.find_all(exp.Anonymous):
        if node.name.lower() == "pg_input_is_valid" and (reason := _reason_of_tried(node.expressions[1:])):
            return reason, node, node.name
    for node in tree.find_all(exp.Is):
        if isinstance(node.expression, exp.Column) and node.expression.name.upper() == "DOCUMENT":
            return _REASONS["xml"], node, "IS DOCUMENT"
    return None


def _plain(written: str) -> str:
    return written.lower().rpartition(".")[2].strip('" ').removesuffix("[]").removeprefix("_")


def _reason_of_tried(types: Sequence[Expr]) -> str:
    """Return why a type is not tried on a value whose name is given as a text, `""` where it may be."""
    from sqlglot import exp

    if len(types) != 1 or not (isinstance(types[0], exp.Literal) and types[0].name.isidentifier()):
        return "The type has to be written out as one word"
    return _REASONS.get(_plain(types[0].name), "")
