"""What the guard refuses of Neo4j's Cypher because no time limit of the server stops it (X1)."""

from __future__ import annotations

import pytest

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard.cypher import check_read_only_cypher, check_write_cypher


def nested(opening: str, innermost: str, closing: str, deep: int) -> str:
    """Return a part of a statement that stands so many deep in itself, with `#` in place of the number of each level."""
    return "".join(opening.replace("#", str(level)) for level in range(deep)) + innermost + closing * deep


@pytest.mark.parametrize(
    ("opening", "innermost", "closing"),
    [
        ("COUNT { MATCH (x#:Big) WHERE 0 < ", "1", " }"),
        ("EXISTS { MATCH (x#:Big) WHERE ", "true", " }"),
        ("EXISTS { (:Big) WHERE ", "true", " }"),
        ("COLLECT { MATCH (x#:Big) WHERE [] <> ", "[1]", " RETURN 1 }"),
    ],
)
def test_subqueries_stand_a_few_deep_in_each_other(opening: str, innermost: str, closing: str) -> None:
    few, many = (f"MATCH (n) RETURN {nested(opening, innermost, closing, deep)} AS x" for deep in (2, 9))
    check_read_only_cypher(few, engine="neo4j")
    for check in (check_read_only_cypher, check_write_cypher):
        with pytest.raises(KnowledgeGuardError, match="Subqueries stand more than 8 deep in each other"):
            check(many, engine="neo4j")


def test_many_subqueries_beside_each_other_are_no_nesting() -> None:
    beside = ", ".join(f"COUNT {{ (n)-->(:L{number}) }} AS c{number}" for number in range(8))
    check_read_only_cypher(f"MATCH (n) RETURN {beside}", engine="neo4j")
