"""How much an engine has to plan for a statement: work that no deadline interrupts, as it comes before the first step.

Engines write a common table expression out wherever it is named. Twenty of them, each of which names the one before twice, are
a kilobyte of text and a million queries, for which SQLite takes gigabytes before it starts. And the plans of a join grow with
a power of its tables: sixty of them cost it seconds. `SELECT *, *` twenty times inside each other is a million columns.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentkernel_kb.errors import KnowledgeGuardError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_QUERIES = 2_000
MAX_JOINED = 32
MAX_COLUMNS = 20_000
"""Most columns of one query once each `*` is written out, which takes Trino seconds from a hundred thousand on."""

_COLUMNS_OF_A_TABLE = 30


def check_planning(tree: Expr, rounds: int = 1) -> None:
    """Refuse a tree that is large once it is written out, or that joins too many tables at once.

    Args:
        tree: A query.
        rounds: How often the engine writes out the body of an expression that names itself, before it knows how often it runs.

    Raises:
        KnowledgeGuardError: It has more than `MAX_QUERIES` queries, joins more than `MAX_JOINED` tables in one of them, or has
            more than `MAX_COLUMNS` columns in one.
    """
    from sqlglot import exp

    joins = Counter(id(join.find_ancestor(exp.Select)) for join in tree.find_all(exp.Join))
    joined = max(joins.values(), default=0) + 1
    if joined > MAX_JOINED:
        raise KnowledgeGuardError(f"A query joins {joined} tables at once, more than {MAX_JOINED}")
    written = _WrittenOut(tree, rounds)
    if written.columns(tree) > MAX_COLUMNS:
        raise KnowledgeGuardError(
            f"Queries that repeat all columns of each other make this more than {MAX_COLUMNS:,} columns; name those that matter"
        )
    queries = written.count(tree)
    if queries > MAX_QUERIES:
        raise KnowledgeGuardError(
            f"Common table expressions that use each other make this more than {MAX_QUERIES:,} queries; use each of them once"
        )


class _WrittenOut:
    """Counts queries as if each common table expression stood wherever its name does.

    Names are not told apart by the place where they are visible: of those that repeat the largest one counts.
    """

    def __init__(self, tree: Expr, rounds: int) -> None:
        from sqlglot import exp

        self._rounds = rounds
        recursive = [clause for clause in tree.find_all(exp.With) if clause.recursive]
        self._recursive = {cte.alias.lower() for clause in recursive for cte in clause.expressions}
        self._bodies: dict[str, list[Expr]] = {}
        for cte in tree.find_all(exp.CTE):
            self._bodies.setdefault(cte.alias.lower(), []).append(cte.this)
        self._counts: dict[str, int] = {}
        self._widths: dict[str, int] = {}

    def count(self, tree: Expr) -> int:
        """Return the number of queries in `tree`, more or less exactly; what is far too many is not counted to its end."""
        from sqlglot import exp

        queries = 0
        for node in tree.walk(prune=lambda node: isinstance(node, exp.CTE)):  # What is only defined costs nothing.
            if isinstance(node, exp.Select | exp.Values):
                queries += 1
            elif isinstance(node, exp.Table):
                queries += self._named(node.name.lower())
            elif isinstance(node, exp.In) and (field := node.args.get("field")) is not None:
                queries += self._named(field.name.lower())
        return min(queries, MAX_QUERIES + 1)

    def _named(self, name: str) -> int:
        if name not in self._bodies:
            return 0
        if name not in self._counts:
            self._counts[name] = 0  # Where a recursive one names itself, it is not written out again.
            rounds = self._rounds if name in self._recursive else 1
            self._counts[name] = rounds * max(self.count(body) for body in self._bodies[name])
        return self._counts[name]

    def columns(self, tree: Expr) -> int:
        """Return how many columns the widest query in `tree` has, more or less exactly, where tables have thirty."""
        from sqlglot import exp

        widest = 0
        stars = [star for star in tree.find_all(exp.Star) if isinstance(_item(star).parent, exp.Select)]
        for select in {id(select): select for star in stars if (select := star.find_ancestor(exp.Select))}.values():
            widest = max(widest, self._width(select))
        return widest

    def _width(self, query: Expr) -> int:
        """Return how many columns a query has."""
        from sqlglot import exp

        if isinstance(query, exp.Subquery | exp.CTE):
            return self._width(query.this)
        if isinstance(query, exp.SetOperation):
            return self._width(query.left)
        if isinstance(query, exp.Table) and query.name.lower() in self._bodies:
            return self._width_of(query.name.lower())
        if not isinstance(query, exp.Select):
            return _COLUMNS_OF_A_TABLE
        parts = [part.this for part in (query.args.get("from_"), *(query.args.get("joins") or ())) if part is not None]
        sources = [(source.alias_or_name.lower(), self._width(source)) for source in parts]
        width = 0
        for item in query.expressions:
            table = item.table.lower() if isinstance(item, exp.Column) else ""
            named = [columns for name, columns in sources if name == table]
            width += sum(named or (columns for _, columns in sources)) if item.is_star else 1
        return min(width, 10 * MAX_COLUMNS)

    def _width_of(self, name: str) -> int:
        if name not in self._widths:
            self._widths[name] = _COLUMNS_OF_A_TABLE  # Where a recursive one names itself.
            self._widths[name] = max(map(self._width, self._bodies[name]))
        return self._widths[name]


def _item(star: Expr) -> Expr:
    """Return what stands among the columns of a query: a star, or that of one table."""
    from sqlglot import exp

    return star.parent if isinstance(star.parent, exp.Column) else star
