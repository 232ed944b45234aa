"""Full-text searches that SQLite ranks: ranking cannot be interrupted, so what is searched for has to be short.

SQLite looks at the time while it searches, but `bm25`, and the column `rank` that stands for it, go through every place of
every phrase at once: a thousand phrases in a document of half a megabyte take twenty seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkernel_kb.guard.lexer import folded

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_RANKED_CHARS = 200
_RANKS = frozenset(["bm25", "rank"])
_REASON = f"A search that is ranked takes one string of at most {MAX_RANKED_CHARS} characters"


def check_ranked_search(tree: Expr) -> tuple[str, Expr, str] | None:
    """Return the search that is too long, or computed, in a statement that ranks what it finds."""
    from sqlglot import exp

    named = (node for node in tree.find_all(exp.Column, exp.Anonymous) if folded(node.name) in _RANKS)
    if next(named, None) is None:
        return None
    tables = {folded(table.name) for table in tree.find_all(exp.Table)}
    for node in tree.find_all(exp.Match, exp.EQ, exp.In, exp.Join):
        if _searches_at_length(node, tables):
            return _REASON, node, ""
    return None


def _searches_at_length(node: Expr, tables: set[str]) -> bool:
    """Tell whether a node may search for anything but a short string; a column named like its table searches by `=` too."""
    from sqlglot import exp

    if isinstance(node, exp.Match):
        return not _is_short(node.expression)
    if isinstance(node, exp.Join):
        return any(folded(column.name) in tables for column in node.args.get("using") or ())
    sides = [node.this] if isinstance(node, exp.In) else [node.this, node.expression]
    searching = [side for side in sides if isinstance(side, exp.Column) and folded(side.name) in tables]
    return bool(searching) and not any(map(_is_short, sides))


def _is_short(node: Expr) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Literal) and len(node.name) <= MAX_RANKED_CHARS
