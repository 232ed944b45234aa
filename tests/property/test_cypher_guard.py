"""The Cypher guard under random statements: a write anywhere is refused, a read in any format is accepted (X1)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.guard.cypher import analyse_read_cypher, check_read_only_cypher

NAMES = st.sampled_from(["n", "m", "set", "delete", "match", "copy", "load", "`a b`", "größe", "x1"])
LABELS = st.sampled_from(["Person", "City", "SET", "`DELETE`", "Übersicht"])
LITERALS = st.sampled_from(["1", "2.5", "'x'", '"it\'s; DELETE"', "'\\'; CREATE (:X) //'", "true", "NULL", "[1, 2]", "{a: 1}"])


def _expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(lambda pair: f"{pair[0]} = {pair[1]}"),
        two.map(lambda pair: f"{pair[0]} AND NOT {pair[1]}"),
        two.map(lambda pair: f"coalesce({pair[0]}, {pair[1]})"),
        two.map(lambda pair: f"CASE WHEN {pair[0]} THEN {pair[1]} ELSE 0 END"),
        two.map(lambda pair: f"[{pair[0]}, {pair[1]}]"),
        inner.map(lambda one: f"({one})"),
        inner.map(lambda one: f"{{set: {one}, a: 1}}"),
        inner.map(lambda one: f"{one} IS NOT NULL"),
        inner.map(lambda one: f"any(x IN [1] WHERE {one})"),
    )


PROPERTIES = st.tuples(NAMES, NAMES).map(lambda pair: f"{pair[0]}.{pair[1]}")
EXPRESSIONS = st.recursive(st.one_of(LITERALS, PROPERTIES), _expressions, max_leaves=6)
PATTERNS = st.one_of(
    st.tuples(NAMES, LABELS).map(lambda pair: f"({pair[0]}:{pair[1]})"),
    st.tuples(NAMES, LABELS, NAMES).map(lambda three: f"({three[0]})-[:{three[1]} {{set: 1}}]->({three[2]})"),
    st.tuples(NAMES, NAMES).map(lambda pair: f"({pair[0]})<-[*1..3]-({pair[1]})"),
    st.just("p = ()--()"),
)
CLAUSES = st.one_of(
    PATTERNS.map(lambda pattern: f"MATCH {pattern}"),
    st.tuples(PATTERNS, EXPRESSIONS).map(lambda pair: f"OPTIONAL MATCH {pair[0]} WHERE {pair[1]}"),
    EXPRESSIONS.map(lambda one: f"WITH *, {one} AS set"),
    EXPRESSIONS.map(lambda one: f"WITH {one} AS delete ORDER BY delete DESC SKIP 1 LIMIT 2"),
    EXPRESSIONS.map(lambda one: f"UNWIND [{one}] AS load"),
    st.just("MATCH (n) WHERE EXISTS { MATCH (n)-->() WHERE n.set = 1 }"),
    st.just("CALL show_tables() WHERE true"),
)
ENDINGS = st.one_of(st.just("RETURN *"), EXPRESSIONS.map(lambda one: f"RETURN DISTINCT {one} AS merge"))
READS = st.tuples(st.lists(CLAUSES, max_size=4), ENDINGS).map(lambda parts: [*parts[0], parts[1]])
WRITES = st.sampled_from(
    [
        "SET n.x = 1",
        "SET n = {x: 1}",
        "DELETE n",
        "DETACH DELETE n",
        "CREATE (:Person)",
        "CREATE (n)-[:KNOWS]->(m)",
        "MERGE (n:Person)",
        "MERGE (n) ON CREATE SET n.x = 1",
        "REMOVE n.x",
        "FOREACH (x IN [1] | SET n.x = x)",
        "LOAD FROM 'x.csv'",
        "LOAD WITH HEADERS (a INT64) FROM 'x.csv'",
        "CALL apoc.create.node([], {})",
        "CALL project_graph('g', [], [])",
        "CALL { CREATE (:X) }",
        "; CREATE (:X)",
        "UNION DROP TABLE Person",
    ]
)
BLANKS = st.sampled_from([" ", "\n", "\t", "\r\n", " /* DELETE n */ ", " // SET\n", "\u00a0", " /** x **y */ ", "\x0b"])


def is_read(statement: str) -> bool:
    """Tell whether the guard takes it for a read; where it does not, it has to say why in some words."""
    reason = ""
    try:
        check_read_only_cypher(statement, engine="ladybug")
    except KnowledgeGuardError as error:
        reason = error.reason
    assert not reason or len(reason.split()) >= 3
    return not reason


MARKS = [*"()[]{}'\"`\\/*-><=.,:;|$!", "MATCH", "RETURN", "WITH", "CASE", "END", "n", "1"]


@settings(deadline=None)
@given(READS)
def test_a_read_is_accepted(parts: list[str]) -> None:
    check_read_only_cypher(" ".join(parts), engine="ladybug")


@settings(deadline=None)
@given(READS, WRITES, st.data())
def test_a_write_anywhere_is_refused(parts: list[str], write: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(parts)))
    assert not is_read(" ".join([*parts[:place], write, *parts[place:]]))


@settings(deadline=None)
@given(READS, WRITES, st.data())
def test_a_write_anywhere_is_refused_in_any_case_and_format(parts: list[str], write: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(parts)))
    odd = "".join(data.draw(st.sampled_from([character.lower(), character.upper()])) for character in write)
    spaced = odd.replace(" ", data.draw(BLANKS))
    assert not is_read(data.draw(BLANKS).join([*parts[:place], spaced, *parts[place:]]))


@settings(deadline=None)
@given(READS, st.data())
def test_a_read_is_accepted_in_any_format(parts: list[str], data: st.DataObject) -> None:
    statement = " ".join(parts)
    pieces = statement.split(" ")
    if any(quote in piece for piece in pieces for quote in "'\"`"):
        pieces = [statement]
    formatted = pieces[0] + "".join(data.draw(BLANKS) + piece for piece in pieces[1:])
    check_read_only_cypher(formatted + data.draw(st.sampled_from(["", ";", " ; // end", "\n"])), engine="ladybug")


@settings(deadline=None)
@given(READS)
def test_a_limit_goes_where_the_proof_says(parts: list[str]) -> None:
    """With the LIMIT put in, the statement is still a read and says that limit itself."""
    statement = " ".join(parts) + " // end"
    goes = analyse_read_cypher(statement, engine="ladybug").limit_goes
    assert goes is not None
    bounded = f"{statement[:goes]} LIMIT 5{statement[goes:]}"
    assert analyse_read_cypher(bounded, engine="ladybug").limit == 5


@settings(deadline=None)
@given(st.text(max_size=300))
def test_random_text_is_decided(text: str) -> None:
    is_read(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(MARKS), max_size=60))
def test_random_marks_are_decided(pieces: list[str]) -> None:
    is_read(" ".join(pieces))
    is_read("".join(pieces))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["(", "[", "{", "'", "`", "/*", "//", "\\", "CASE ", "NOT ", "a.", "x->", "1..", "-", "$x", "é", "range("]),
    st.data(),
)
def test_endless_text_is_decided_in_bounded_time(piece: str, data: st.DataObject) -> None:
    head = data.draw(st.sampled_from(["", "RETURN ", "MATCH (n) WHERE ", "RETURN 'x' + "]))
    text = (head + piece * 100_000)[: data.draw(st.integers(1_000, 100_000))]
    is_read(text)


@pytest.mark.parametrize("size", [100_001, 3_000_000])
def test_what_is_too_long_is_not_even_read(size: int) -> None:
    with pytest.raises(KnowledgeGuardError, match="more than 100,000"):
        check_read_only_cypher("x" * size, engine="ladybug")
