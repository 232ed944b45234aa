"""How much an engine has to plan for a statement: work that no deadline interrupts, as it comes before the first step.

Engines write a common table expression out wherever it is named. Twenty of them, each of which names the one before twice, are
a kilobyte of text and a million queries, for which SQLite takes gigabytes before it starts. And the plans of a join grow with
a power of its tables: sixty of them cost it seconds.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentkernel_kb.errors import KnowledgeGuardError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

MAX_QUERIES = 2_000
MAX_JOINED = 32


def check_planning(tree: Expr) -> None:
    """Refuse a tree that is large once it is written out, or that joins too many tables at once.

    Raises:
        KnowledgeGuardError: It has more than `MAX_QUERIES` queries, or joins more than `MAX_JOINED` tables in one of them.
    """
    from sqlglot import exp

    joins = Counter(id(join.find_ancestor(exp.Select)) for join in tree.find_all(exp.Join))
    joined = max(joins.values(), default=0) + 1
    if joined > MAX_JOINED:
        raise KnowledgeGuardError(f"A query joins {joined} tables at once, more than {MAX_JOINED}")
    queries = _WrittenOut(tree).count(tree)
    if queries > MAX_QUERIES:
        raise KnowledgeGuardError(
            f"Common table expressions that use each other make this more than {MAX_QUERIES:,} queries; use each of them once"
        )


class _WrittenOut:
    """Counts queries as if each common table expression stood wherever its name does.

    Names are not told apart by the place where they are visible: of those that repeat the largest one counts.
    """

    def __init__(self, tree: Expr) -> None:
        from sqlglot import exp

        self._bodies: dict[str, list[Expr]] = {}
        for cte in tree.find_all(exp.CTE):
            self._bodies.setdefault(cte.alias.lower(), []).append(cte.this)
        self._counts: dict[str, int] = {}

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
            self._counts[name] = max(self.count(body) for body in self._bodies[name])
        return self._counts[name]
