"""What a model gets wrong on a real Neo4j server, and what it writes there (A12, X1)."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from neo4j_people import PERSON, SECRET, people, record, rows

from agentkernel_kb import KnowledgeBuilder, KnowledgeError, KnowledgeQueryError, Limits
from agentkernel_kb.neo4j import Neo4jManager
from servers import Server

pytestmark = pytest.mark.server("neo4j")


@pytest.fixture(scope="module")
def graph(neo4j_server: Server) -> Iterator[Neo4jManager]:
    with people(neo4j_server) as graph:
        yield graph


# Mistakes of a model.


def test_the_servers_message_is_told_without_the_statement_around_it(graph: Neo4jManager) -> None:
    with pytest.raises(KnowledgeQueryError) as caught:
        graph.query(f"MATCH (p:{PERSON}) RETURN q")
    assert str(caught.value) == "Variable `q` not defined"


def test_a_misspelt_label_finds_nothing_and_is_named(graph: Neo4jManager) -> None:
    wrong = PERSON.replace("Person", "Persn")
    with pytest.raises(KnowledgeQueryError) as caught:
        graph.query(f"MATCH (p:{wrong}) RETURN p")
    said = f"Nothing was found: the graph has no label or type {wrong}. Did you mean {PERSON}"
    assert str(caught.value).startswith(said)
    assert graph.query(f"MATCH (p:{PERSON}) WHERE p.age > 200 RETURN p") == []
    assert graph.query("MATCH (p:Zzzzzzzzzz) RETURN p") == []


# Writing.


def test_text_without_a_statement_is_skipped_and_the_rest_is_stored(graph: Neo4jManager) -> None:
    statement = f"MATCH (p:{PERSON} {{name: 'Cem'}}) SET p.seen = $seen"
    with pytest.raises(KnowledgeError) as caught:
        graph.write([{"text": "only text", "metadata": {}}, record(statement, seen=7), {"text": "more", "metadata": {}}])
    assert str(caught.value).startswith("2 of 3 records were not stored. record 1: a graph stores what a Cypher statement says")
    assert not isinstance(caught.value, KnowledgeQueryError)
    assert rows(graph, f"MATCH (p:{PERSON} {{name: 'Cem'}}) RETURN p.seen AS seen") == [{"seen": 7}]


def test_the_old_keys_are_understood_and_the_generic_ones_win(graph: Neo4jManager) -> None:
    statement = f"MATCH (p:{PERSON} {{name: 'Cem'}}) SET p.seen = $seen"
    graph.write([{"text": "", "metadata": {"cypher_query": statement, "cypher_params": {"seen": 8}}}])
    assert rows(graph, f"MATCH (p:{PERSON} {{name: 'Cem'}}) RETURN p.seen AS seen") == [{"seen": 8}]
    old = {"cypher_query": "CREATE (:Never)", "cypher_params": {"seen": 0}}
    graph.write([{"text": "", "metadata": {**old, "query": statement, "params": {"seen": 9}}}])
    assert rows(graph, f"MATCH (p:{PERSON} {{name: 'Cem'}}) RETURN p.seen AS seen") == [{"seen": 9}]


@pytest.mark.parametrize("unfilled", [{"query": None, "params": None}, {"query": "", "params": {}}], ids=["null", "empty"])
def test_generic_keys_without_a_value_do_not_hide_the_old_ones(graph: Neo4jManager, unfilled: dict[str, Any]) -> None:
    old = {"cypher_query": f"MATCH (p:{PERSON} {{name: 'Cem'}}) SET p.seen = $seen", "cypher_params": {"seen": 10}}
    graph.write([{"text": "", "metadata": {**unfilled, **old}}])
    assert rows(graph, f"MATCH (p:{PERSON} {{name: 'Cem'}}) RETURN p.seen AS seen") == [{"seen": 10}]


def test_each_record_is_stored_by_itself(graph: Neo4jManager) -> None:
    with pytest.raises(KnowledgeQueryError, match=r"^1 of 3 records were not stored\. record 2: .*constraint"):
        graph.write(
            [
                record(f"MATCH (p:{PERSON} {{name: 'Cem'}}) SET p.first = 1"),
                record(f"CREATE (p:{PERSON} {{name: $name}})", name="Ann"),
                record(f"MATCH (p:{PERSON} {{name: 'Cem'}}) SET p.last = 1"),
            ]
        )
    assert rows(graph, f"MATCH (p:{PERSON} {{name: 'Cem'}}) RETURN p.first AS a, p.last AS b") == [{"a": 1, "b": 1}]


@pytest.mark.parametrize(
    "statement",
    [
        "LOAD CSV FROM 'http://127.0.0.1:9/' AS line CREATE (:Never {x: line})",
        "CREATE USER eve SET PASSWORD 'secret-pass'",
        "DROP DATABASE neo4j",
        "ALTER USER neo4j SET PASSWORD 'secret-pass'",
        "CALL dbms.killConnections([])",
        "CALL apoc.load.json('x') YIELD value CREATE (:Never)",
        "CREATE (:Never {x: apoc.text.join([], '')})",
        "CREATE (:Never {x: file()})",
        "CREATE (:Never {x: `lineNumber`()})",
        "UNWIND [1] AS x CALL (x) { CREATE (:Never) } IN TRANSACTIONS",
        "CREATE (:Never) WITH 1 AS x CALL { USE system CREATE (:Never) }",
        "SHOW USERS",
        "CREATE (:Never); CREATE (:Never)",
    ],
)
def test_a_write_stays_inside_the_graph(graph: Neo4jManager, statement: str) -> None:
    with pytest.raises(KnowledgeQueryError):
        graph.write([record(statement)])
    assert rows(graph, "MATCH (n:Never) RETURN count(n) AS total") == [{"total": 0}]


def test_an_error_about_an_expression_does_not_tell_how_long_it_is(graph: Neo4jManager) -> None:
    said: list[str] = []
    for value in ("(abcdefg", "(abcdefghijklmnopq"):
        with pytest.raises(KnowledgeError) as caught:
            graph.write([record(f"CREATE (p:{PERSON} {{name: 'Zed'}}) WITH p WHERE p.name =~ $name SET p.age = 1", name=value)])
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "index" not in said[0]


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        (f"CREATE (:{PERSON} {{name: $name}}) CREATE (:{PERSON} {{name: $name}})", {"name": SECRET}),
        (f"CREATE (:{PERSON} {{name: $name, born: date($born)}})", {"name": "Zed", "born": SECRET}),
        (f"CREATE (:{PERSON} {{name: $name, home: $home}})", {"name": "Zed", "home": {"street": SECRET}}),
        (f"CREATE (:{PERSON} {{name: $name, tags: $tags}})", {"name": "Zed", "tags": [SECRET, 1]}),
        (f"CREATE (:{PERSON} {{name: $name, when: $when}})", {"name": "Zed", "when": {SECRET}}),
        (f"CREATE (:{PERSON} {{name: $name}}) RETURN toInteger($name)[0]", {"name": SECRET}),
        (f"MATCH (p:{PERSON}) SET p.age = $name + 1 RETURN p.age / $name", {"name": SECRET}),
        (f"CREATE (:{PERSON} {{name: $name, size: $size}})", {"name": SECRET, "size": 2**70}),
        (f"CREATE (:{PERSON} {{name: $other}})", {"name": SECRET}),
        (f"CREATE (:{PERSON} {{name: $name)", {"name": SECRET}),
    ],
    ids=itertools.count(),  # The names hold what is different in each worker.
)
def test_no_error_holds_the_value_of_a_parameter(
    graph: Neo4jManager, caplog: pytest.LogCaptureFixture, statement: str, parameters: dict[str, Any]
) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(KnowledgeError) as caught:
        graph.write([record(statement, **parameters)])
    seen: BaseException | None = caught.value
    while seen is not None:
        assert SECRET not in str(seen)
        seen = seen.__cause__
    assert SECRET not in caplog.text
    assert rows(graph, f"MATCH (p:{PERSON}) RETURN count(p) AS total") == [{"total": 3}]


def test_the_driver_logs_nothing_of_a_statement_above_debug(
    graph: Neo4jManager, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO)
    graph.query(f"MATCH (a:{PERSON}), (b:Zzzzzzzzzzzzzz) WHERE id(a) = 1 RETURN a.{SECRET}, b")
    assert (caplog.text, capfd.readouterr()) == ("", ("", ""))


def test_what_was_written_is_found_by_the_next_call(graph: Neo4jManager) -> None:
    for number in range(20):
        graph.write([record(f"MATCH (p:{PERSON} {{name: 'Cem'}}) SET p.seen = $seen", seen=number)])
        assert rows(graph, f"MATCH (p:{PERSON} {{name: 'Cem'}}) RETURN p.seen AS seen") == [{"seen": number}]


def test_a_router_reads_and_writes_with_parameters(graph: Neo4jManager) -> None:
    tools = {tool.__name__: tool for tool in KnowledgeBuilder([graph], limits=Limits(seconds=20)).build()}
    statement = f"MATCH (p:{PERSON} {{name: $name}}) SET p.seen = $seen"
    tools["write_kb"]("people", query=statement, params_json='{"name": "Bob", "seen": 1}')
    answer = tools["read_kb"]("people", f"MATCH (p:{PERSON} {{seen: 1}}) RETURN p.name AS name")
    assert answer == "| name |\n| --- |\n| Bob |"
