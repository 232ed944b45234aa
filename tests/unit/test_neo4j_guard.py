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


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """Return calls of `replace` inside each other, the first pair innermost."""
    for old, new in pairs:
        text = f"replace({text}, {old}, {new})"
    return text


BLANK = "''"
LONG = ("'x'", f"'{'x' * 10}'")


@pytest.mark.parametrize(
    "statement",
    [
        f"RETURN size({replaced(LONG[1], *[LONG] * 9)})",
        f"MATCH (n) RETURN {replaced('n.t', *[('n.a', LONG[1])] * 6)}",
        f"MATCH (n) RETURN {replaced('n.t', *[(LONG[0], 'n.t')] * 3)}",
        f"MATCH (n) RETURN {replaced('n.t', *[(BLANK, LONG[1])] * 7)}",
        "WITH 'x' AS s " + f"WITH {replaced('s', *[LONG] * 2)} AS s " * 3 + "RETURN size(s)",
    ],
    ids=["letters", "a value's letters", "a value's texts", "between letters", "in parts"],
)
def test_replacing_again_and_again_makes_no_text_of_any_size(statement: str) -> None:
    for check in (check_read_only_cypher, check_write_cypher):
        with pytest.raises(KnowledgeGuardError, match="values of any size"):
            check(statement, engine="neo4j")


@pytest.mark.parametrize(
    "cleaned",
    [
        replaced("n.t", ("'&'", "'&amp;'"), ("'<'", "'&lt;'"), ("'>'", "'&gt;'"), ("'\"'", "'&quot;'"), ("'/'", "'&#47;'")),
        replaced("toLower(n.t)", ("'ä'", "'ae'"), ("'ö'", "'oe'"), ("'ü'", "'ue'"), ("' '", "'-'"), ("'.'", "''")),
        replaced("'Dear {name} of {city}, {greeting}'", ("'{name}'", "n.a"), ("'{city}'", "n.b"), ("'{greeting}'", "n.c")),
        replaced("n.t", ("n.a", "''"), ("n.b", "''"), ("n.c", "' '")),
    ],
    ids=["escaped", "a name for an address", "a letter", "left out"],
)
def test_texts_are_cleaned_and_filled_in(cleaned: str) -> None:
    check_read_only_cypher(f"MATCH (n) RETURN {cleaned} AS t, {cleaned} AS u", engine="neo4j")


def test_no_long_text_is_put_together_a_thousand_times() -> None:
    for statement in (
        "RETURN reduce(s = '', i IN range(1, 1000) | s + '#')",
        "WITH '#' AS t RETURN reduce(s = '', x IN [1] | s + t)",
    ):
        check_read_only_cypher(statement.replace("#", "x" * 100), engine="neo4j")
        with pytest.raises(KnowledgeGuardError, match="A text of more than 1,000 characters cannot stand beside reduce"):
            check_read_only_cypher(statement.replace("#", "x" * 1_001), engine="neo4j")


@pytest.mark.parametrize(
    "asked",
    ["'/{}/'", "'a' + '{}'", "reduce(s = '', i IN range(1, 1000) | s + '(a|b)?')", "t"],
    ids=["written", "added", "reduced", "named"],
)
def test_no_long_text_is_the_query_of_a_full_text_index(asked: str) -> None:
    choices = "(a|b)?" * 600
    named = f"'{choices}'" if asked == "t" else "1"
    for kind in ("Nodes", "Relationships"):
        with pytest.raises(KnowledgeGuardError, match="at most 1,000 characters"):
            check_read_only_cypher(
                f"WITH {named} AS t CALL db.index.fulltext.query{kind}('notes', {asked.format(choices)}) YIELD score "
                "RETURN score",
                engine="neo4j",
            )


@pytest.mark.parametrize("asked", ["'lamp OR desk~2'", "n.note", "'/(a|b)?c/'"], ids=["words", "property", "pattern"])
def test_a_full_text_index_is_asked_for_a_few_words(asked: str) -> None:
    check_read_only_cypher(
        f"MATCH (n) CALL db.index.fulltext.queryNodes('notes', {asked}) YIELD node RETURN node", engine="neo4j"
    )


@pytest.mark.parametrize(
    "body",
    [
        "CASE WHEN a > m THEN a ELSE m END + a",
        "CASE WHEN a > m THEN [a] ELSE m END",
        "CASE WHEN a > 1 THEN CASE WHEN a > m THEN a ELSE m END + a ELSE a END",
    ],
    ids=["added", "in a list", "added inside"],
)
def test_what_a_reduce_chooses_is_not_enlarged(body: str) -> None:
    with pytest.raises(KnowledgeGuardError, match="may copy a long text"):
        check_read_only_cypher(f"MATCH (n) WITH collect(n.t) AS l RETURN reduce(m = 0, a IN l | {body}) AS x", engine="neo4j")


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (n) RETURN trim(BOTH SET FROM n) DELETE n",
        "MATCH (n) RETURN trim(FROM n) SET n.a = 1",
        "MATCH (n) RETURN CASE n.a WHEN IS NULL THEN 1 END SET n.a = 1",
        "MATCH (n) RETURN CASE n.a WHEN > 1 THEN 1 SET n.a = 1",
        "MATCH (n:%) DELETE n",
        "RETURN CASE 'a' WHEN =~ '(a+)+$' THEN 1 END",
    ],
    ids=["trim", "from", "case", "open case", "label", "pattern"],
)
def test_words_and_marks_that_stand_in_place_of_a_value_hide_no_clause(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check_read_only_cypher(statement, engine="neo4j")
