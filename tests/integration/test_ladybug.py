"""The embedded graph on its engine: rows, values, limits, time, writes (X15, X1, X3, X21)."""

from __future__ import annotations

import datetime
import decimal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphs import RUNAWAY, fill, record, rows

from agentkernel_kb import (
    AKConfigError,
    KnowledgeBuilder,
    KnowledgeCapabilityError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
    Limits,
)
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.runner import Runner


@pytest.fixture
def graph() -> Iterator[LadybugManager]:
    graph = fill(LadybugManager(":memory:", name="people", threads=2))
    yield graph
    graph.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "people.lbug"
    fill(LadybugManager(path, threads=1)).close()
    return path


# Declaration and schema.


def test_it_declares_a_graph_that_is_asked_in_cypher_and_written(graph: LadybugManager) -> None:
    declared = graph.capabilities.model_dump()
    assert LadybugManager(":memory:").backend_name == "ladybug"
    assert (declared["kinds"], declared["query_language"], declared["writable"]) == (["graph", "structured"], "cypher", True)


def test_the_schema_derives_labels_properties_keys_ends_and_counts(graph: LadybugManager) -> None:
    schema = graph.schema()
    assert schema["nodes"]["City"] == "name STRING PRIMARY KEY, `land area` DOUBLE | 1 node"
    assert schema["relationships"] == {
        "KNOWS": "(:Person)-[:KNOWS]->(:Person) | since INT64 | 2 relationships",
        "LIVES_IN": "(:Person)-[:LIVES_IN]->(:City) | 1 relationship",
    }


def test_the_schema_is_new_after_an_own_write_and_bounded() -> None:
    graph = LadybugManager(":memory:", described_tables=1, threads=1)
    assert graph.schema()["nodes"] == {}
    graph.write([record("CREATE NODE TABLE A(id INT64 PRIMARY KEY)"), record("CREATE NODE TABLE B(id INT64 PRIMARY KEY)")])
    assert graph.schema()["nodes"] == {"A": "id INT64 PRIMARY KEY | 0 nodes"}
    assert graph.schema()["further_tables"] == "1 more labels are not described here"
    assert graph.add_schema({"nodes": "mine"}).schema()["nodes"] == "mine"
    graph.close()


def test_the_description_names_the_labels_or_what_was_given(graph: LadybugManager) -> None:
    assert graph.get_description().endswith("with the nodes City, Person and the relationships KNOWS, LIVES_IN")
    given = LadybugManager(":memory:", description="Who knows whom.")
    assert given.get_description() == "ladybug: Who knows whom."
    given.close()


# Values.


def test_values_keep_their_types(graph: LadybugManager) -> None:
    statement = "MATCH (p:Person {name: 'Ann'}) RETURN p.born, p.wage, p.badge, p.leave, p.tags, p.place, p.scores, p.seen"
    assert list(rows(graph, statement)[0].values()) == [
        datetime.date(1983, 2, 11),
        decimal.Decimal("5200.50"),
        uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        datetime.timedelta(days=25),
        ["a", "b"],
        {"street": "High Street", "zip": 8001},
        {"go": 3},
        datetime.datetime(2024, 5, 1, 10, 0),
    ]


def test_nodes_and_relationships_come_without_the_ids_of_the_engine(graph: LadybugManager) -> None:
    found = graph.query("MATCH (p:Person {name: 'Bob'})<-[k:KNOWS]-(q {name: 'Cem'}) RETURN p, k, id(p) AS id")[0]
    assert found["metadata"]["row"] == {
        "p": {"_label": "Person", "name": "Bob", "age": 37},
        "k": {"_type": "KNOWS", "since": 2018},
        "id": "0:1",
    }
    assert found["text"] == "p=(:Person {name: Bob, age: 37}), k=[:KNOWS {since: 2018}], id=0:1"


def test_paths_are_drawn_with_their_directions(graph: LadybugManager) -> None:
    found = graph.query("MATCH p = (:Person {name: 'Ann'})-[:KNOWS*2..2]-(:Person {name: 'Cem'}) RETURN p")
    table = graph.format_results(found)
    assert "(:Person {name: Bob, age: 37})<-[:KNOWS {since: 2018}]-(:Person {name: Cem, age: 29})" in table
    assert "})-[:KNOWS {since: 2010}]->(:Person {name: Bob" in table
    assert "[40 numbers]" in table
    assert [len(found[0]["metadata"]["row"]["p"][part]) for part in ("_nodes", "_relationships")] == [3, 2]


def test_rows_are_a_table_and_columns_that_repeat_are_told_apart(graph: LadybugManager) -> None:
    found = graph.query("MATCH (p:Person) RETURN p.name AS a, p.age AS a, p.tags ORDER BY p.name DESC", limit=2)
    assert graph.format_results(found).split("\n") == [
        "| a | a_2 | p.tags |",
        "| --- | --- | --- |",
        "| Cem | 29 | NULL |",
        "| Bob | 37 | NULL |",
    ]


def test_a_vector_is_shown_by_its_length(graph: LadybugManager) -> None:
    assert "[40 numbers]" in graph.format_results(graph.query("MATCH (p:Person {name: 'Ann'}) RETURN p.face, p"))


# Bounds.


@pytest.mark.parametrize(
    ("statement", "keywords", "expected"),
    [
        ("UNWIND range(1, 50) AS x RETURN x", {}, (3, True)),
        ("UNWIND range(1, 50) AS x RETURN x", {"limit": 50}, (50, False)),
        ("UNWIND range(1, 50) AS x RETURN x", {"limit": 20, "max_rows": 10}, (10, True)),
        ("UNWIND range(1, 50) AS x RETURN x LIMIT 7", {"limit": 1, "max_rows": 10}, (7, False)),
        ("UNWIND range(1, 50) AS x RETURN x LIMIT 40", {"limit": 1, "max_rows": 10}, (10, True)),
        ("UNWIND range(1, 50) AS x RETURN x LIMIT 10", {"limit": 1, "max_rows": 10}, (10, False)),
        ("UNWIND range(1, 50) AS x RETURN x LIMIT 3 + 4", {"limit": 1}, (7, False)),
        ("UNWIND range(1, 50) AS x RETURN x UNION ALL RETURN 1 AS x LIMIT 1", {"limit": 5}, (5, True)),
        ("UNWIND range(1, 50) AS x RETURN x // LIMIT 40", {"limit": 2}, (2, True)),
        ("UNWIND range(1, 50) AS x RETURN x ORDER BY x SKIP 48;", {"limit": 5}, (2, False)),
    ],
)
def test_rows_are_bounded_and_more_is_told(
    graph: LadybugManager, statement: str, keywords: dict[str, Any], expected: tuple[int, bool]
) -> None:
    page = graph.query(statement, **keywords)
    assert (len(page), page.more) == expected


@pytest.mark.parametrize("keywords", [{"limit": 0}, {"limit": 1, "max_rows": 0}])
def test_a_limit_below_one_is_a_mistake(graph: LadybugManager, keywords: dict[str, Any]) -> None:
    with pytest.raises(AKConfigError, match="at least 1"):
        graph.query("RETURN 1", **keywords)


def test_a_runaway_statement_stops_in_time_and_the_graph_goes_on(graph: LadybugManager) -> None:
    """The work itself ends: the process uses no processor afterwards, and the next statement is answered."""
    with pytest.raises(KnowledgeTimeoutError, match="within 1 s"):
        graph.query(RUNAWAY, timeout=1)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.2
    assert rows(graph, "RETURN 1 AS one") == [{"one": 1}]


def test_no_time_left_is_said_at_once(graph: LadybugManager) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        graph.query("RETURN 1", timeout=0)


def test_a_statement_gets_no_more_memory_than_it_may_have() -> None:
    graph = fill(LadybugManager(":memory:", max_memory_bytes=64_000_000, threads=1))
    with pytest.raises(KnowledgeQueryError, match="more memory"):
        graph.query("UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 100) AS c RETURN collect(a + b * c)")
    assert rows(graph, "RETURN 1 AS one") == [{"one": 1}]
    graph.close()


def test_a_deadline_reaches_the_engine_through_the_router(graph: LadybugManager) -> None:
    hurried, patient = (
        {tool.__name__: tool for tool in KnowledgeBuilder([graph], limits=Limits(seconds=seconds)).build()}
        for seconds in (1, 60)
    )
    assert hurried["read_kb"]("people", RUNAWAY).startswith("Backend 'people' did not answer within 1 s.")
    assert "Partial" in patient["read_kb"]("people", "MATCH (p:Person) RETURN p.name", limit=1)


# Errors.


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("MATCH (p:Persn) RETURN p", "Table Persn does not exist. Did you mean Person?"),
        ("MATCH (p:Person)-[:KNOW]->(q) RETURN q", "Did you mean KNOWS?"),
        ("MATCH (c:City) RETURN c.land_area", "Did you mean `land area`?"),
        ("MATCH (c:Zebra) RETURN c", "Labels: City, KNOWS, LIVES_IN, Person."),
        ("MATCH (p:Person) RETURN q.name", "Variable q is not in scope."),
        ("CALL show_tables()", "Write RETURN * after the procedure."),
        ("MATCH (p:Person) RETURN p.name + 1 -", ""),
    ],
)
def test_a_rejected_statement_says_what_would_work(graph: LadybugManager, statement: str, message: str) -> None:
    with pytest.raises((KnowledgeQueryError, KnowledgeGuardError)) as caught:
        graph.query(statement)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# The two locks.

WRITES = (
    "CREATE (:City {name: 'X'})",
    "MATCH (p:Person) SET p.age = 0",
    "MATCH (p:Person) DETACH DELETE p",
    "DROP TABLE KNOWS",
    "CREATE NODE TABLE X(id INT64 PRIMARY KEY)",
    "COMMIT; CREATE (:City {name: 'X'})",
    "RETURN 1; CREATE (:City {name: 'X'})",
    "PROFILE CREATE (:City {name: 'X'})",
    "CREATE MACRO m(x) AS x",
)


@pytest.mark.parametrize("statement", WRITES)
def test_the_guard_alone_keeps_reads_from_writing(graph: LadybugManager, statement: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        graph.query(statement)
    with pytest.raises(KnowledgeGuardError):
        graph.check_read(statement)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("statement", WRITES)
def test_the_engine_alone_keeps_reads_from_writing(path: Path, statement: str, read_only: bool) -> None:
    """Past the guard the engine refuses, in a read-only transaction of a writable database and in a read-only one."""
    runner = Runner(GraphDatabase(path, "x", read_only=read_only, max_memory_bytes=128_000_000, threads=1), "x")
    with pytest.raises(KnowledgeError):
        runner.fetch(statement, 10, 5)
    for harmless in ("COMMIT", "ROLLBACK"):
        runner.fetch(harmless, 10, 5)
        with pytest.raises(KnowledgeError):
            runner.fetch(statement, 10, 5)
    assert runner.fetch("MATCH (n) RETURN count(*)", 1, 5).rows == [[4]]
    runner.close()


# Writes.


def test_a_write_is_seen_by_the_next_read(graph: LadybugManager) -> None:
    graph.write([record("CREATE (:Person {name: $name, age: $age, tags: $tags})", name="Eve", age=None, tags=["x"])])
    assert rows(graph, "MATCH (p:Person {name: 'Eve'}) RETURN p.age, p.tags") == [{"p.age": None, "p.tags": ["x"]}]


def test_the_old_keys_are_understood(graph: LadybugManager) -> None:
    old = {"cypher_query": "CREATE (:Person {name: $name})", "cypher_params": {"name": "Old"}}
    graph.write([{"text": "", "metadata": old}])
    assert len(rows(graph, "MATCH (p:Person {name: 'Old'}) RETURN p")) == 1


def test_what_cannot_be_stored_is_counted_and_the_rest_runs(graph: LadybugManager) -> None:
    with pytest.raises(KnowledgeError) as caught:
        graph.write([record("CREATE (:City {name: 'A'})"), {"text": "no statement"}, record("CREATE (:City {name: 'B'})")])
    assert str(caught.value).startswith("1 of 3 records were not stored. record 2: ")
    assert not isinstance(caught.value, KnowledgeQueryError)
    with pytest.raises(KnowledgeQueryError, match="2 of 3 records were not stored"):
        graph.write([record("CREATE (:Cty {name: 'C'})"), record(""), record("CREATE (:City {name: 'C'})")])
    assert [row["c.name"] for row in rows(graph, "MATCH (c:City) RETURN c.name ORDER BY c.name")] == ["A", "B", "Bern", "C"]


def test_a_failed_statement_leaves_nothing_behind(graph: LadybugManager) -> None:
    """Each record is a transaction: what it did before it failed is undone."""
    with pytest.raises(KnowledgeQueryError):
        graph.write([record("UNWIND ['N1', 'N2', 'Ann'] AS name CREATE (:Person {name: name})")])
    assert rows(graph, "MATCH (p:Person) RETURN count(*) AS people") == [{"people": 3}]


@pytest.mark.parametrize(
    ("statement", "parameters", "message"),
    [
        ("CREATE (:Person {name: $name})", {"name": "Ann"}, "duplicated primary key value $name"),
        ("CREATE (:Person {name: 'Z', age: $age})", {"age": "hunter2"}, 'Could not convert "$age" to INT64'),
        ("UNWIND $rows AS r CREATE (:Person {name: r.name})", {"rows": [{"name": "Ann"}]}, "primary key value $rows"),
    ],
)
def test_values_of_parameters_stay_out_of_messages(
    graph: LadybugManager, statement: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(KnowledgeQueryError) as caught:
        graph.write([record(statement, **parameters)])
    assert message in str(caught.value)
    assert "Ann" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"query": "CREATE (:Person {name: $name, age: $age})", "params": {"name": "Z"}}, "not given: age"),
        ({"query": "CREATE (:Person {name: 'Z'})", "params": [1]}, "not list"),
        ({"query": "COPY (MATCH (n) RETURN n) TO 'x.csv'"}, "stays inside the graph"),
        ({"query": "CREATE (:City {name: 'Z'}); DROP TABLE KNOWS"}, "second statement"),
        ({"query": "CREATE (:Cty {name: 'Z'})"}, "Did you mean City?"),
    ],
)
def test_a_write_that_cannot_work_says_why(graph: LadybugManager, metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(KnowledgeQueryError, match=message.replace("?", "\\?")):
        graph.write([{"text": "", "metadata": metadata}])


def test_a_write_that_takes_too_long_is_rolled_back(graph: LadybugManager) -> None:
    with pytest.raises(KnowledgeTimeoutError, match="Record 1 of 2"):
        graph.write(
            [record(f"{RUNAWAY.replace('RETURN', 'WITH')} AS s CREATE (:City {{name: 'late'}})"), record("")], timeout=1
        )
    assert rows(graph, "MATCH (c:City) RETURN c.name") == [{"c.name": "Bern"}]


def test_a_read_only_graph_is_not_writable(path: Path) -> None:
    graph = LadybugManager(path, read_only=True, threads=1)
    assert graph.capabilities.writable is False
    with pytest.raises(KnowledgeCapabilityError):
        graph.write([record("CREATE (:City {name: 'X'})")])
    assert len(rows(graph, "MATCH (p:Person) RETURN p")) == 3
    graph.close()
