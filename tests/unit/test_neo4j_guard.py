"""Corners of Neo4j's Cypher before the guard: what no time limit of the server stops, and predicates of several words (X1)."""

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


PREDICATES = [
    "IS :: INTEGER",
    "IS :: INTEGER NOT NULL",
    "IS NOT :: STRING",
    "IS TYPED BOOLEAN",
    "IS NOT TYPED FLOAT NOT NULL",
    "IS :: LIST<INTEGER NOT NULL> NOT NULL",
    "IS :: LIST<LIST<FLOAT>>",
    "IS :: LIST<INTEGER | STRING>",
    "IS :: INTEGER NOT NULL | FLOAT NOT NULL",
    "IS :: ZONED DATETIME",
    "IS :: LOCAL TIME",
    "IS :: TIMESTAMP WITH TIME ZONE",
    "IS :: TIMESTAMP WITHOUT TIMEZONE",
    "IS :: PROPERTY VALUE",
    "IS NORMALIZED",
    "IS NOT NFKC NORMALIZED",
]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_value_is_asked_for_its_type_or_its_form(predicate: str) -> None:
    check_read_only_cypher(f"MATCH (n) WHERE n.a {predicate} AND n.b > 1 RETURN n.a {predicate} AS is_so", engine="neo4j")
    check_read_only_cypher(f"MATCH (n) WHERE n.a {predicate} WITH n ORDER BY n.a RETURN n", engine="neo4j")


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize(("behind", "part"), [("SET n.a = 1", "SET"), ("CREATE (m)", "CREATE"), ("WITH n DELETE n", "DELETE")])
def test_what_follows_such_a_predicate_is_looked_at_all_the_same(predicate: str, behind: str, part: str) -> None:
    with pytest.raises(KnowledgeGuardError) as caught:
        check_read_only_cypher(f"MATCH (n) WHERE n.a {predicate} {behind}", engine="neo4j")
    assert caught.value.part == part
