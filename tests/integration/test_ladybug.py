"""The embedded graph on its engine: rows, values, limits, time, writes, files, processes (X15, X1, X3, X21)."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb import (
    AKConfigError,
    KnowledgeBuilder,
    KnowledgeCapabilityError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
    Limits,
    Record,
)
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.runner import Runner

RUNAWAY = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 1000) AS c RETURN sum(a * b * c)"
SCHEMA = (
    "CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT64, born DATE, wage DECIMAL(10, 2), badge UUID, leave INTERVAL, "
    "face FLOAT[40], tags STRING[], place STRUCT(street STRING, zip INT64), scores MAP(STRING, INT64), seen TIMESTAMP)",
    "CREATE NODE TABLE City(name STRING PRIMARY KEY, `land area` DOUBLE)",
    "CREATE REL TABLE KNOWS(FROM Person TO Person, since INT64)",
    "CREATE REL TABLE LIVES_IN(FROM Person TO City)",
)
CONTENT = (
    "CREATE (:Person {name: 'Ann', age: 41, born: date('1983-02-11'), wage: 5200.50, tags: ['a', 'b'], "
    "badge: uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), leave: interval('25 days'), scores: map(['go'], [3]), "
    "place: {street: 'High Street', zip: 8001}, seen: timestamp('2024-05-01 10:00:00'), "
    f"face: [{', '.join(['0.5'] * 40)}]}})",
    "CREATE (:Person {name: 'Bob', age: 37})",
    "CREATE (:Person {name: 'Cem', age: 29})",
    "CREATE (:City {name: 'Bern', `land area`: 51.6})",
    "MATCH (a:Person {name: 'Ann'}), (b:Person {name: 'Bob'}) CREATE (a)-[:KNOWS {since: 2010}]->(b)",
    "MATCH (a:Person {name: 'Cem'}), (b:Person {name: 'Bob'}) CREATE (a)-[:KNOWS {since: 2018}]->(b)",
    "MATCH (a:Person {name: 'Ann'}), (c:City) CREATE (a)-[:LIVES_IN]->(c)",
)


def record(statement: str, **parameters: Any) -> Record:
    return {"text": "", "metadata": {"query": statement, "params": parameters}}


def fill(graph: LadybugManager) -> LadybugManager:
    graph.write([record(statement) for statement in SCHEMA + CONTENT])
    return graph


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


def rows(graph: LadybugManager, statement: str, limit: int = 100) -> list[dict[str, Any]]:
    return [found["metadata"]["row"] for found in graph.query(statement, limit=limit)]


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
    tools = {tool.__name__: tool for tool in KnowledgeBuilder([graph], limits=Limits(seconds=1)).build()}
    assert tools["read_kb"]("people", RUNAWAY).startswith("Backend 'people' did not answer within 1 s.")
    assert "Partial" in tools["read_kb"]("people", "MATCH (p:Person) RETURN p.name", limit=1)


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


# Threads, files, processes.


def test_readers_and_a_writer_at_once(graph: LadybugManager) -> None:
    """Eight threads read whole transactions while another writes: nobody fails, and nobody sees half a write."""
    statement = "UNWIND [1, 2] AS x CREATE (:City {name: $name + cast(x AS STRING)})"
    seen: list[int] = []
    failures: list[BaseException] = []

    def read() -> None:
        try:
            seen.extend(rows(graph, "MATCH (c:City) RETURN count(*) AS total")[0]["total"] for _ in range(15))
        except BaseException as error:  # noqa: BLE001 - whatever a thread raises fails the test
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(15):
        graph.write([record(statement, name=f"c{number}-")])
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert {total % 2 for total in seen} == {1}
    assert rows(graph, "MATCH (c:City) RETURN count(*) AS total") == [{"total": 31}]


def test_what_is_written_is_there_when_the_file_is_opened_again(path: Path) -> None:
    graph = LadybugManager(path, threads=1)
    graph.write([record("CREATE (:City {name: 'Basel'})")])
    graph.close()
    graph.close()
    with pytest.raises(KnowledgeStateError, match="'ladybug' is closed"):
        graph.query("RETURN 1")
    again = LadybugManager(str(path), threads=1)
    assert rows(again, "MATCH (c:City) RETURN c.name ORDER BY c.name") == [{"c.name": "Basel"}, {"c.name": "Bern"}]
    again.close()


def test_closing_ends_what_runs(path: Path) -> None:
    graph = LadybugManager(path, threads=1)
    failures: list[str] = []

    def run() -> None:
        try:
            graph.query(RUNAWAY)
        except KnowledgeError as error:
            failures.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    graph.close()
    thread.join(10)
    assert failures
    assert in_another_process(path, read_only=False) == "[[4]]"


def in_another_process(path: Path, *, read_only: bool) -> str:
    """Return what another process reads from the file with the bare engine, or the last line of its failure."""
    script = (
        "import ladybug, sys\n"
        f"database = ladybug.Database(sys.argv[1], read_only={read_only}, max_num_threads=1)\n"
        "print(ladybug.Connection(database).execute('MATCH (n) RETURN count(*)').get_all())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=False)
    return (done.stdout or done.stderr).strip()


def test_a_writer_keeps_others_out_and_closing_lets_them_in(path: Path) -> None:
    graph = LadybugManager(path, threads=1)
    assert "Could not set lock" in in_another_process(path, read_only=False)
    graph.close()
    assert in_another_process(path, read_only=False) == "[[4]]"


def test_a_reader_keeps_writers_out_and_lets_readers_in(path: Path) -> None:
    first = LadybugManager(path, read_only=True, threads=1)
    second = LadybugManager(path, name="second", read_only=True, threads=1)
    assert "Could not set lock" in in_another_process(path, read_only=False)
    assert in_another_process(path, read_only=True) == "[[4]]"
    second.close()
    assert "Could not set lock" in in_another_process(path, read_only=False)
    first.close()
    assert in_another_process(path, read_only=False) == "[[4]]"


HOLDER = """
import ladybug, sys
database = ladybug.Database(sys.argv[1], max_num_threads=1)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("read_only", "message"), [(False, "open in another process"), (True, "open for writing in another")])
def test_a_file_that_another_process_writes_is_named(path: Path, read_only: bool, message: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(KnowledgeConnectionError, match=message) as caught:
            LadybugManager(path, read_only=read_only, threads=1)
        assert str(path) in str(caught.value)
        holder.communicate("")
    LadybugManager(path, read_only=read_only, threads=1).close()


def test_one_process_opens_a_file_for_writing_once(path: Path, tmp_path: Path) -> None:
    """The engine itself would let it, and lose data."""
    graph = LadybugManager(path, name="first", threads=1)
    link = tmp_path / "link.lbug"
    link.symlink_to(path)
    for other, read_only in ((path, False), (path, True), (link, False)):
        with pytest.raises(KnowledgeConnectionError, match="already open in this process by the backend 'first'"):
            LadybugManager(other, read_only=read_only)
    graph.close()
    reader = LadybugManager(path, read_only=True, threads=1)
    with pytest.raises(KnowledgeConnectionError, match="by a read-only backend"):
        LadybugManager(path)
    reader.close()
    LadybugManager(link, threads=1).close()


def test_a_backend_that_is_dropped_gives_its_file_back(path: Path) -> None:
    graph = LadybugManager(path, threads=1)
    rows(graph, "RETURN 1")
    del graph
    LadybugManager(path, threads=1).close()


@pytest.mark.parametrize("read_only", [False, True])
def test_wrong_paths_are_errors_at_construction(tmp_path: Path, read_only: bool) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a graph, but text that is long enough to look at " * 200)
    for path in (tmp_path, tmp_path / "missing" / "x.lbug", other, ""):
        with pytest.raises((AKConfigError, KnowledgeConnectionError)):
            LadybugManager(path, read_only=read_only)
    assert other.read_text().startswith("not a graph")


def test_a_missing_graph_is_made_unless_it_is_read_only(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeConnectionError, match="There is no graph at"):
        LadybugManager(tmp_path / "new.lbug", read_only=True)
    with pytest.raises(AKConfigError, match="would stay empty"):
        LadybugManager(":memory:", read_only=True)
    LadybugManager(tmp_path / "new.lbug", threads=1).close()
    assert (tmp_path / "new.lbug").exists()


def test_work_that_nothing_interrupts_is_left_behind(path: Path) -> None:
    """The caller gets its answer in time and other calls go on; closing waits for what is left. The guard refuses such work."""
    stubborn = "MATCH (c:City) WITH repeat(c.name, 5000) AS a, repeat('nreB', 5000) AS b RETURN levenshtein(a, b)"
    runner = Runner(GraphDatabase(path, "x", read_only=False, max_memory_bytes=128_000_000, threads=2), "x")
    with pytest.raises(KnowledgeTimeoutError):
        runner.fetch(stubborn, 1, 0.2)
    assert runner.fetch("MATCH (c:City) RETURN count(*)", 1, 5).rows == [[1]]
    runner.close()
    graph = LadybugManager(path, threads=1)
    with pytest.raises(KnowledgeGuardError):
        graph.query(stubborn)
    graph.close()
