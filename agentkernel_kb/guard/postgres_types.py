"""Types of PostgreSQL to which nothing is cast: doing so is work that no deadline ends, or tells who may log in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

_REASONS = {
    "regrole": "This type tells who may log in",
    "xml": "XML is refused, as no time limit stops its parser; columns of that type can be read as ::text",
}


def check_types(tree: Expr) -> tuple[str, Expr, str] | None:
    """Return the reason, the node and the name of a type to which a value is cast, or `None`."""
    from sqlglot import exp

    for node in tree.find_all(exp.DataType):
        name = node.sql("postgres").lower().rpartition(".")[2].strip('"').removesuffix("[]").removeprefix("_")
        if reason := _REASONS.get(name):
            return reason, node, name
    return None
