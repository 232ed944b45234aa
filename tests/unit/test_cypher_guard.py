"""What the Cypher guard refuses and accepts, with what it says about it (X1)."""

from __future__ import annotations

from typing import Any

import pytest

from agentkernel_kb import AKConfigError, KnowledgeGuardError
from agentkernel_kb.guard.cypher import (
    analyse_read_cypher,
    check_read_only_cypher,
    check_write_cypher,
    supported_engines,
)


def check(statement: str, allow: Any = ()) -> None:
    check_read_only_cypher(statement, engine="ladybug", allow=allow)


def refused(statement: str) -> KnowledgeGuardError:
    with pytest.raises(KnowledgeGuardError) as caught:
        check(statement)
    return caught.value


def test_engines_are_named() -> None:
    assert supported_engines() == ["ladybug", "neo4j"]
    with pytest.raises(AKConfigError, match="Supported: \\['ladybug', 'neo4j'\\]"):
        check_read_only_cypher("RETURN 1", engine="lydabug")


@pytest.mark.parametrize(
    ("statement", "part", "position"),
    [
        ("MATCH (n) DETACH DELETE n", "DETACH", 10),
        ("MATCH (n) RETURN n; CREATE (:X)", "CREATE", 20),
        ("  CREATE (:X)", "CREATE", 2),
        ("LOAD FROM 'x.csv' RETURN *", "LOAD", 0),
        ("CALL threads=4", "threads", 5),
        ("CALL apoc.load.json('x')", "apoc", 5),
        ("RETURN nextval('s')", "nextval", 7),
        ("RETURN 'open", "'open", 7),
        ("MATCH (n) RETURN n)", ")", 18),
        ("RETURN $name", "$name", 7),
    ],
)
def test_a_refusal_names_the_part_and_its_position(statement: str, part: str, position: int) -> None:
    error = refused(statement)
    assert (error.part, error.position) == (part, position)
    assert len(error.reason.split()) >= 3


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("MATCH (a)-[r]->(b) RETURN type(r)", "use label(r)"),
        ("RETURN toInteger('1')", "use cast(x AS INT64)"),
        ("RETURN uppr('x')", "did you mean upper?"),
        ("CALL show_table() RETURN *", "did you mean show_tables?"),
        ("MATCH (n) RETURNN n", "did you mean RETURN?"),
        ("RETURN 'it''s'", "a quote inside one is written \\'"),
        ("MATCH (a)–(b) RETURN a", "write it in backticks"),
        ("UNWIND range(1, 100000) AS x RETURN x", "whole numbers up to 1,000"),
        ("RETURN nodes(NULL)", "does not survive a NULL here"),
        ("RETURN struct_extract((null), 'a')", "a cast(NULL AS …)"),
        ("MATCH (n) WHERE", "ends too early"),
        ("SELECT 1", "A read starts with CALL, MATCH"),
    ],
)
def test_a_refusal_says_what_would_work(statement: str, hint: str) -> None:
    assert hint in str(refused(statement))


@pytest.mark.parametrize("word", ["SET", "DELETE", "MERGE", "DETACH", "DROP", "COPY", "LOAD", "USE", "COMMIT", "ATTACH"])
def test_a_verb_is_a_name_where_only_a_name_can_stand(word: str) -> None:
    check(f"MATCH (n:{word} {{{word}: 1}})-[:{word}]->({word}) WHERE n.{word} = {word}.{word} RETURN {word} AS {word}")
    check(f"RETURN {{{word}: 1}}, [{word}.x, {word}[1]], upper({word}.y), CASE {word}.z WHEN {word} THEN {word} END")


@pytest.mark.parametrize("word", ["SET n.x = 1", "DELETE n", "MERGE (n)", "DETACH DELETE n", "LOAD FROM 'x'", "COPY n TO 'x'"])
@pytest.mark.parametrize(
    "before",
    [
        "MATCH (n)",
        "MATCH (n) WHERE n.a = 1",
        "MATCH (n) WHERE n.a IS NULL",
        "MATCH (n) WHERE n.a = 'x'",
        "MATCH (n) WHERE n.a IN [1]",
        "MATCH (n) WHERE n.a = 3!",
        "MATCH (n) WITH *",
        "MATCH (n) WITH n.*",
        "MATCH (n) WITH n ORDER BY n.a DESC",
        "MATCH (n) WITH n LIMIT 1",
        "MATCH (n) WITH n, CASE WHEN true THEN 1 END AS set",
        "UNWIND [1] AS n",
        "CALL show_tables()",
        "MATCH (n) RETURN n",
    ],
)
def test_a_verb_is_a_clause_where_a_clause_can_stand(before: str, word: str) -> None:
    refused(f"{before} {word}")


@pytest.mark.parametrize("prefix", ["EXPLAIN ", "EXPLAIN LOGICAL ", "PROFILE "])
def test_an_explanation_is_proven_by_what_it_explains(prefix: str) -> None:
    check(f"{prefix}MATCH (n) RETURN n")
    refused(f"{prefix}MATCH (n) DELETE n")
    refused(prefix)


def test_names_that_a_deployment_allows() -> None:
    statement = "CALL QUERY_FTS_INDEX('Person', 'notes', 'x') RETURN tenfold(score)"
    refused(statement)
    check(statement, allow=["query_fts_index", "Tenfold"])
    refused(statement)
    check("RETURN tenfold(1)", allow="tenfold")


@pytest.mark.parametrize(
    "statement",
    [
        "/* a */ RETURN /** b * c */ 1 // d",
        "RETURN 1 /*** e ***/",
        "RETURN '/*' AS a, '*/' AS b, '//' AS c",
        "RETURN 1 //",
    ],
)
def test_comments_are_blanks(statement: str) -> None:
    check(statement)


@pytest.mark.parametrize("statement", ["RETURN /***/ 1", "RETURN /* **/ 1 /* */", "RETURN 1 /* never", "// a\rRETURN 1"])
def test_a_comment_that_engines_read_differently_is_refused(statement: str) -> None:
    refused(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "RETURN 1\x00",
        "RETURN '\ud800'",
        "RETURN '\\q'",
        "RETURN '\\u12'",
        "MATCH (n) \\u0053ET n.x = 1",
        "MATCH (a)—[r]—(b) RETURN r",
        "RETURN 1 AS a\u200bb",
        "\ufeffRETURN 1",
        "RETURN 1a",
    ],
)
def test_characters_that_hide_something_are_refused(statement: str) -> None:
    refused(statement)


@pytest.mark.parametrize("statement", ["", " \n", ";", "// nothing", "/**/"])
def test_nothing_is_refused(statement: str) -> None:
    assert "empty" in str(refused(statement)) or "semicolon" in str(refused(statement))


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(KnowledgeGuardError, match="not int"):
        check_read_only_cypher(7, engine="ladybug")  # pyright: ignore[reportArgumentType] - what is tested


@pytest.mark.parametrize(
    "statement",
    [
        "RETURN 1" + " " * 100_000,
        "RETURN [" + "1," * 6_000 + "1]",
        "RETURN 1" + " + 1" * 3_000,
        "RETURN " + "(" * 30 + "1" + ")" * 30,
        "RETURN " + "[" * 30_000,
        "RETURN " + "CASE WHEN true THEN " * 30 + "1" + " END" * 30,
        "RETURN " + "NOT " * 20_000 + "true",
        "MATCH (a)" + "-[]->()" * 9 + " RETURN a",
        "MATCH (a)" + "-->()" * 9 + " RETURN a",
        "MATCH (a)-->() WITH a " * 21 + "RETURN a",
        "WITH [1] AS s " + "WITH s + s AS s " * 17 + "RETURN s",
        "/*" * 40_000,
        "`" * 99_991,
        "'\\" * 40_000,
    ],
)
def test_what_costs_the_engine_too_much_is_refused_at_once(statement: str) -> None:
    refused(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "MATCH (n) WHERE n.id IN [" + ", ".join(map(str, range(4_000))) + "] RETURN n",
        "RETURN " + "(" * 20 + "1" + ")" * 20,
        "RETURN 'x'" + " + 'y'" * 300 + " AS text",
        "MATCH (a)" + "-[]->()" * 8 + " RETURN a",
        "RETURN range(), range(1, 1000), range(0, size(nodes(p)) - 1), range(10, 0, -2)",
        "RETURN list_transform(range(1, 9), x -> x + 1)",
        "MATCH (n) RETURN levenshtein(n.name, 'Anna'), lpad(n.code, 10, '0')",
    ],
)
def test_what_is_large_for_a_reason_is_accepted(statement: str) -> None:
    check(statement)


@pytest.mark.parametrize(
    ("statement", "has_limit", "limit", "goes"),
    [
        ("MATCH (n) RETURN n", False, None, 18),
        ("MATCH (n) RETURN n ; // end", False, None, 18),
        ("MATCH (n) RETURN n SKIP 2", False, None, 25),
        ("MATCH (n) RETURN n ORDER BY n.limit", False, None, 35),
        ("MATCH (n) RETURN n LIMIT 7", True, 7, None),
        ("MATCH (n) RETURN n LIMIT 7 // LIMIT 9", True, 7, None),
        ("MATCH (n) RETURN n LIMIT 3 + 4", True, None, None),
        ("MATCH (n) WITH n LIMIT 7 RETURN n", False, None, 33),
        ("RETURN 1 AS limit", False, None, 17),
        ("RETURN 'LIMIT 1'", False, None, 16),
        ("RETURN 1 UNION RETURN 2 LIMIT 1", False, None, None),
        ("EXPLAIN MATCH (n) RETURN n", False, None, None),
        ("CALL show_tables() RETURN *", False, None, 27),
    ],
)
def test_the_outer_limit_is_found(statement: str, has_limit: bool, limit: int | None, goes: int | None) -> None:
    read = analyse_read_cypher(statement, engine="ladybug")
    assert (read.has_limit, read.limit, read.limit_goes) == (has_limit, limit, goes)
    if read.limit_span is not None:
        assert statement[slice(*read.limit_span)] == str(limit)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE (:Person {name: $name, age: $age})",
        "MATCH (p:Person {name: $name}) SET p.age = $age RETURN p",
        "UNWIND $name AS row MERGE (p:Person {name: row}) SET p.age = $age",
        "MATCH (p:Person {name: $name}) WHERE p.age > $age DETACH DELETE p",
    ],
)
def test_a_write_may_have_parameters(statement: str) -> None:
    assert check_write_cypher(statement, engine="ladybug") == {"name", "age"}


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE NODE TABLE A(id INT64 PRIMARY KEY)",
        "ALTER TABLE A ADD b STRING",
        "DROP TABLE A",
        "CREATE (:A {note: 'LOAD FROM x; $100'})",
        "MATCH (n) CALL show_tables() RETURN n",
    ],
)
def test_a_write_may_change_the_schema(statement: str) -> None:
    assert check_write_cypher(statement, engine="ladybug") == frozenset()


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (MATCH (n) RETURN n) TO 'x.csv'",
        "COPY A FROM 'x.csv'",
        "LOAD FROM 'x.csv' CREATE (:A {id: column0})",
        "MATCH (n) LOAD FROM 'x.csv' RETURN *",
        "CREATE NODE TABLE A AS LOAD FROM 'x.csv' RETURN *",
        "EXPORT DATABASE 'x'",
        "IMPORT DATABASE 'x'",
        "ATTACH 'x' AS y (dbtype duckdb)",
        "INSTALL json",
        "LOAD EXTENSION 'x'",
        "CALL timeout=0",
        "MATCH (n) CALL project_graph('g', [], []) RETURN n",
        "USE x",
        "COMMIT",
        "CHECKPOINT",
        "CREATE (:A); DROP TABLE A",
        "EXPLAIN CREATE (:A)",
        "MATCH (a)" + "-[]->()" * 9 + " DELETE a",
        "MATCH (a)" + "-->()" * 9 + " DELETE a",
        "UNWIND range(1, 10000000000) AS x CREATE (:A {id: x})",
        "CREATE (:A {text: repeat('x', 1000000000)})",
        "RETURN " + "(" * 40 + "1" + ")" * 40,
        "",
    ],
)
def test_a_write_stays_inside_the_graph(statement: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        check_write_cypher(statement, engine="ladybug")
