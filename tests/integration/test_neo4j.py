"""Neo4jManager on a real server: rows, values, limits, time, writes, the schema and searches (A12, X1, X3, X4)."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import math
import resource
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import neo4j
import pytest

from agentkernel_kb import (
    AKConfigError,
    KnowledgeBuilder,
    KnowledgeCapabilityError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
    Limits,
    Record,
)
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.neo4j import Neo4jManager
from agentkernel_kb.neo4j.verdicts import MAX_VERDICTS, Verdicts
from servers import PASSWORD, Server

pytestmark = pytest.mark.server("neo4j")
RUN = uuid.uuid4().hex[:12]
PERSON, CITY, KNOWS = f"Person{RUN}", f"Lone City {RUN}", f"KNOWS{RUN}"
NOTES, FACES = f"notes{RUN}", f"faces{RUN}"
RUNAWAY = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 1000) AS c RETURN sum(a * b * c)"
MANY = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 10) AS c RETURN a, b, c"
SECRET = "hunter2canary"
EMBED = HashEmbedder(64)


def record(statement: str, **parameters: Any) -> Record:
    return {"text": "", "metadata": {"query": statement, "params": parameters}}


def rows(graph: Neo4jManager, statement: str, limit: int = 100) -> list[dict[str, Any]]:
    return [found["metadata"]["row"] for found in graph.query(statement, limit)]


@pytest.fixture(scope="module")
def graph(neo4j_server: Server) -> Iterator[Neo4jManager]:
    graph = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, name="people")
    people = [("Ann", 41, "repairs bicycles"), ("Bob", 37, "sells bicycles and lamps"), ("Cem", 29, "paints houses")]
    graph.write(
        [
            record(f"CREATE CONSTRAINT name{RUN} FOR (p:{PERSON}) REQUIRE p.name IS UNIQUE"),
            record(f"CREATE FULLTEXT INDEX {NOTES} FOR (p:{PERSON}) ON EACH [p.note]"),
            record(
                f"CREATE VECTOR INDEX {FACES} FOR (p:{PERSON}) ON (p.face) "
                "OPTIONS {indexConfig: {`vector.dimensions`: 64, `vector.similarity_function`: 'cosine'}}"
            ),
            *(
                record(
                    f"CREATE (:{PERSON} {{name: $name, age: $age, note: $note, face: $face}})",
                    name=name,
                    age=age,
                    note=note,
                    face=EMBED.embed_documents([note])[0],
                )
                for name, age, note in people
            ),
            record(f"CREATE (:`{CITY}` {{name: 'Bern', `land area`: 51.6}})"),
            record(
                f"MATCH (a:{PERSON} {{name: 'Ann'}}), (b:{PERSON} {{name: 'Bob'}}) CREATE (a)-[:{KNOWS} {{since: 2010}}]->(b)"
            ),
        ]
    )
    with neo4j.GraphDatabase.driver(neo4j_server.url, auth=("neo4j", PASSWORD)) as driver:
        driver.execute_query("CALL db.awaitIndexes(60)")
    yield graph
    graph.write(
        [
            record(f"DROP INDEX {NOTES}"),
            record(f"DROP INDEX {FACES}"),
            record(f"DROP CONSTRAINT name{RUN}"),
            record(f"MATCH (n) WHERE n:{PERSON} OR n:`{CITY}` DETACH DELETE n"),
        ]
    )
    graph.close()


# Reading.


def test_nodes_relationships_and_paths_are_drawn_as_cypher_draws_them(graph: Neo4jManager) -> None:
    (found,) = graph.query(
        f"MATCH p = (b:{PERSON} {{name: 'Bob'}})<-[k:{KNOWS}]-(a) "
        "RETURN a {.name} AS who, k, [x IN nodes(p) | x.name] AS names"
    )
    assert found["text"] == f'who={{"name": "Ann"}}, k=[:{KNOWS} {{since: 2010}}], names=["Bob", "Ann"]'
    (path,) = rows(graph, f"MATCH p = (b:{PERSON} {{name: 'Bob'}})<-[:{KNOWS}]-() RETURN p")
    assert [node["name"] for node in path["p"]["_nodes"]] == ["Bob", "Ann"]
    assert path["p"]["_relationships"] == [{"_type": KNOWS, "since": 2010, "_reversed": True}]
    drawn = graph.format_results(graph.query(f"MATCH p = (b:{PERSON} {{name: 'Bob'}})<-[:{KNOWS}]-() RETURN p"))
    assert f"<-[:{KNOWS} {{since: 2010}}]-(:{PERSON} {{" in drawn


VALUES = {
    "1": 1,
    "9223372036854775807": 9223372036854775807,
    "-9223372036854775807 - 1": -9223372036854775808,
    "0.1": 0.1,
    "0.0 / 0.0": "NaN",
    "1.0 / 0.0": "Infinity",
    "-1.0 / 0.0": "-Infinity",
    "null": None,
    "true": True,
    "''": "",
    "[1, null, 'x', [2.5]]": [1, None, "x", [2.5]],
    "{a: {b: [null, date('2024-01-02')]}}": {"a": {"b": [None, "2024-01-02"]}},
    "date('2024-02-29')": "2024-02-29",
    "time('10:00:00.5+02:00')": "10:00:00.5+02:00",
    "localtime('10:00')": "10:00:00",
    "localdatetime('2024-01-02T03:04:05.000000001')": "2024-01-02T03:04:05.000000001",
    "datetime('2024-01-02T03:04:05Z')": "2024-01-02T03:04:05+00:00",
    "datetime('2024-07-02T03:04:05[Europe/Zurich]')": "2024-07-02T03:04:05+02:00[Europe/Zurich]",
    "datetime('2024-01-02T03:04:05-05:30')": "2024-01-02T03:04:05-05:30",
    "duration('P1Y2M3DT4H5M6.5S')": "P1Y2M3DT4H5M6.5S",
    "duration('-P1D')": "P-1D",
    "point({latitude: 47.5, longitude: 8.5})": {"srid": 4326, "longitude": 8.5, "latitude": 47.5},
    "point({x: 1, y: 2, z: 3})": {"srid": 9157, "x": 1.0, "y": 2.0, "z": 3.0},
    "[x IN range(1, 384) | x * 0.5]": "[384 numbers]",
    "[x IN range(1, 8) | x * 0.5]": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0],
}


@pytest.mark.parametrize(("written", "expected"), VALUES.items())
def test_every_value_becomes_plain_data_that_json_holds(graph: Neo4jManager, written: str, expected: object) -> None:
    (found,) = rows(graph, f"RETURN {written} AS value")
    assert found == {"value": expected}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_value_that_spans_lines_is_shown_on_one(graph: Neo4jManager) -> None:
    (found,) = graph.query("RETURN 'a\\nb\\r\\n- [forged] c' AS value")
    assert found["text"] == "value=a b - [forged] c"


def test_bytes_are_shown_short_and_long_ones_by_their_length(graph: Neo4jManager) -> None:
    graph.write(
        [record(f"MATCH (p:{PERSON} {{name: 'Cem'}}) SET p.short = $short, p.long = $long", short=b"\x00\xff", long=bytes(999))]
    )
    (found,) = rows(graph, f"MATCH (p:{PERSON} {{name: 'Cem'}}) RETURN p.short AS short, p.long AS long")
    assert found == {"short": "0x00ff", "long": "<999 bytes>"}


def test_columns_of_one_name_are_told_apart_and_hundreds_are_shown(graph: Neo4jManager) -> None:
    assert rows(graph, "RETURN 1 AS a, 2 AS `a b`, 3 AS `A`") == [{"a": 1, "a b": 2, "A": 3}]
    (found,) = rows(graph, f"RETURN {', '.join(f'{n} AS c{n}' for n in range(300))}")
    assert len(found) == 300


def test_an_explained_statement_gives_its_plan(graph: Neo4jManager) -> None:
    found = graph.query(f"EXPLAIN MATCH (p:{PERSON}) RETURN p.name", 50)
    assert any("ProduceResults" in line["text"] for line in found)
    assert found[0]["metadata"]["row"].keys() == {"plan"}


# Limits.


def test_limits_hold_and_the_statement_is_sent_as_it_is(graph: Neo4jManager) -> None:
    assert (len(graph.query(MANY)), graph.query(MANY).more) == (3, True)
    assert len(graph.query("UNWIND range(1, 9) AS x RETURN x LIMIT 7")) == 7
    page = graph.query("UNWIND range(1, 99) AS x RETURN x LIMIT 70", max_rows=5)
    assert (len(page), page.more) == (5, True)
    assert not graph.query("UNWIND range(1, 3) AS x RETURN x").more
    with pytest.raises(AKConfigError, match="at least 1"):
        graph.query("RETURN 1", 0)


def test_a_statement_of_ten_million_rows_costs_little_memory(graph: Neo4jManager) -> None:
    graph.query(MANY, 3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5):
        assert len(graph.query(MANY, 3)) == 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024


def test_rows_are_bounded_by_their_bytes_too(graph: Neo4jManager) -> None:
    """64 KB a row: the server doubles a text in each part."""
    doubled = "WITH '0123456789abcdef' AS s " + "WITH s + s AS s " * 6 + "WITH s + s + s + s + s + s + s + s AS s "
    page = graph.query(f"{doubled} UNWIND range(1, 1000) AS x WITH s + s + s + s + s + s + s + s AS t, x RETURN t, x", 1_000)
    size = len(page[0]["metadata"]["row"]["t"])
    assert size == 16 * 64 * 64
    assert page.more
    assert math.ceil(16_000_000 / (size + 8)) == len(page)


def test_time_is_kept_and_the_server_stops_too(graph: Neo4jManager, neo4j_server: Server) -> None:
    marked = RUNAWAY.replace("sum", f"/* {RUN} */ sum")
    with pytest.raises(KnowledgeTimeoutError, match=r"did not answer within 0\.5 s"):
        graph.query(marked, timeout=0.5)
    with neo4j.GraphDatabase.driver(neo4j_server.url, auth=("neo4j", PASSWORD)) as driver:
        for _ in range(100):
            running = driver.execute_query("SHOW TRANSACTIONS YIELD currentQuery RETURN currentQuery").records
            if not any(f"/* {RUN} */ sum" in str(query) and "SHOW" not in str(query) for (query,) in running):
                break
            time.sleep(0.1)
        else:
            pytest.fail("the server goes on")
    with pytest.raises(KnowledgeTimeoutError, match="no time left"):
        graph.query("RETURN 1", timeout=0)


async def test_a_cancelled_task_stops_its_statement(graph: Neo4jManager) -> None:
    task = asyncio.create_task(graph.aquery(RUNAWAY, timeout=60))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await graph.aquery("RETURN 1 AS one"))[0]["text"] == "one=1"


def test_one_backend_serves_several_event_loops_and_threads_at_once(graph: Neo4jManager) -> None:
    async def several() -> list[int]:
        pages = await asyncio.gather(*(graph.aquery(f"RETURN {n} AS n") for n in range(20)))
        return [page[0]["metadata"]["row"]["n"] for page in pages]

    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(several()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    found.append([rows(graph, f"RETURN {n} AS n")[0]["n"] for n in range(20)])
    for thread in threads:
        thread.join()
    assert found == [list(range(20))] * 5


# The locks.


def test_without_the_guard_the_server_says_what_a_statement_does(graph: Neo4jManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentkernel_kb.neo4j.manager.analyse_read_cypher", accept_all)
    for statement, does in {
        f"CREATE (:{PERSON} {{name: 'Eve'}})": "writes",
        f"MATCH (p:{PERSON}) SET p.age = 0 RETURN p": "reads and writes",
        f"CREATE INDEX FOR (p:{PERSON}) ON (p.age)": "changes the schema or administers the server",
        "SHOW USERS": "changes the schema or administers the server",
    }.items():
        for _ in range(2):  # The second time it is known.
            with pytest.raises(KnowledgeGuardError, match=f"finds that this statement {does}$"):
                graph.query(statement)
    assert rows(graph, f"MATCH (p:{PERSON}) RETURN count(p) AS total, sum(p.age) AS age") == [{"total": 3, "age": 107}]


def test_without_both_the_transaction_only_reads(graph: Neo4jManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentkernel_kb.neo4j.manager.analyse_read_cypher", accept_all)
    monkeypatch.setattr(Verdicts, "known", lambda *_: "r")
    for statement in (f"CREATE (:{PERSON} {{name: 'Eve'}})", f"MATCH (p:{PERSON}) DETACH DELETE p RETURN 1 AS one"):
        with pytest.raises(KnowledgeGuardError, match="writes, in a transaction that only reads"):
            graph.query(statement)
    assert rows(graph, f"MATCH (p:{PERSON}) RETURN count(p) AS total") == [{"total": 3}]


def accept_all(statement: str, **_: object) -> object:
    from agentkernel_kb.guard.cypher import ReadCypher

    return ReadCypher()


def test_what_the_server_said_is_kept_for_the_statements_seen_lately() -> None:
    from agentkernel_kb.neo4j.arguments import Scope

    verdicts, here, there = Verdicts(), Scope("a", None), Scope("b", None)
    for number in range(MAX_VERDICTS + 1):
        verdicts.remember(here, str(number), "r")
        assert verdicts.known(here, "0" if number < MAX_VERDICTS else "1") in ("r", None)
    assert (verdicts.known(here, "0"), verdicts.known(here, "1"), verdicts.known(there, "1")) == ("r", None, None)
    verdicts.remember(here, "x" * 20_000, "r")
    assert verdicts.known(here, "x" * 20_000) is None


def test_the_deployment_can_allow_more_and_the_server_still_has_its_word(neo4j_server: Server) -> None:
    own = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, allow=["db.info", "dbms.components"])
    assert len(own.query("CALL db.info() YIELD name RETURN name")) == 1
    with pytest.raises(KnowledgeGuardError, match="The server finds that this statement changes the schema or administers"):
        own.query("CALL dbms.components()")
    with pytest.raises(KnowledgeGuardError, match="not known to only read"):
        own.query("CALL dbms.listConfig()")
    own.close()


def test_a_refusal_names_the_part_and_read_kb_says_who_takes_writes(graph: Neo4jManager) -> None:
    tools = {tool.__name__: tool for tool in KnowledgeBuilder([graph]).build()}
    answer = tools["read_kb"]("people", f"MATCH (p:{PERSON}) DETACH DELETE p")
    assert answer.startswith("Refused: read_kb only reads. This statement deletes (DETACH, position")
    assert "['people']" in answer


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


# The schema.


def test_the_schema_says_all_that_a_statement_needs(graph: Neo4jManager) -> None:
    graph.reload()
    schema = graph.schema()
    assert schema["nodes"][PERSON].startswith("age INTEGER, ")
    assert "name STRING (unique)" in schema["nodes"][PERSON]
    assert "face LIST<FLOAT>" in schema["nodes"][PERSON]
    assert schema["nodes"][PERSON].endswith("| 3 nodes")
    assert schema["nodes"][f"`{CITY}`"] == "`land area` FLOAT, name STRING | 1 node"
    assert schema["relationships"][KNOWS] == f"(:{PERSON})-[:{KNOWS}]->(:{PERSON}) | since INTEGER | 1 relationship"
    assert f"{FACES}: vector index on nodes :{PERSON}(face)" in schema["indexes"]
    assert f"{NOTES}: fulltext index on nodes :{PERSON}(note)" in schema["indexes"]
    assert json.loads(json.dumps(schema)) == schema
    assert graph.get_description().startswith("people: property graph (Cypher) with the nodes ")


def test_what_is_described_is_bounded_and_what_was_added_wins(neo4j_server: Server, graph: Neo4jManager) -> None:
    small = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, described=0, description="people").add_schema({"nodes": "mine"})
    assert small.schema()["nodes"] == "mine"
    assert "more labels and types are not described here" in small.schema()["further"]
    assert small.get_description() == "neo4j: people"
    small.close()


def test_a_new_label_is_in_the_schema_after_a_write(graph: Neo4jManager) -> None:
    label = f"New{RUN}"
    assert label not in graph.schema()["nodes"]
    graph.write([record(f"CREATE (:{label} {{x: 1}})")])
    assert graph.schema()["nodes"][label] == "x INTEGER | 1 node"
    graph.write([record(f"MATCH (n:{label}) DELETE n")])


# Searching.


def test_a_full_text_index_is_searched_by_words_that_are_no_syntax(graph: Neo4jManager, neo4j_server: Server) -> None:
    searched = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, search_index=NOTES)
    assert searched.capabilities.search_mode == "lexical"
    (best, second) = searched.search("lamps bicycles")
    assert (best["text"], best["metadata"]["kind"]) == ("sells bicycles and lamps", PERSON)
    assert best["metadata"]["score"] > second["metadata"]["score"] > 0
    assert len(searched.search("bicycles", limit=1)) == 1
    for text in ('"', "\\", "xyz OR", "* OR [", '+-&&||!(){}[]^"~*?:\\/', "note:*", "", "  \n"):
        assert searched.search(text) == []
    assert searched.format_results(searched.search("houses")) == "- paints houses (source: neo4j)"
    searched.close()


def test_a_vector_index_is_searched_by_an_embedding_function(graph: Neo4jManager, neo4j_server: Server) -> None:
    searched = Neo4jManager(
        neo4j_server.url, "neo4j", PASSWORD, search_index=FACES, embedding_function=EMBED, search_text="note"
    )
    assert searched.capabilities.search_mode == "semantic"
    (best,) = searched.search("paints houses", limit=1)
    assert best["text"] == "paints houses"
    assert best["metadata"]["row"]["face"] == "[64 numbers]"
    searched.close()


def test_an_index_that_is_not_there_or_of_another_kind_is_named(neo4j_server: Server, graph: Neo4jManager) -> None:
    for index, embed, wanted in (
        (f"no{RUN}", None, "no index"),
        (FACES, None, "needs embedding_function"),
        (NOTES, EMBED, "type FULLTEXT"),
    ):
        searched = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, search_index=index, embedding_function=embed)
        with pytest.raises(AKConfigError, match=wanted):
            searched.search("x")
        searched.close()
    with pytest.raises(KnowledgeCapabilityError):
        graph.search("x")


# Construction.


def test_arguments_come_from_the_environment_in_the_old_order(neo4j_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_URI", neo4j_server.url)
    monkeypatch.setenv("NEO4J_USERNAME", "neo4j")
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
    own = Neo4jManager()
    assert (own.backend_name, own.ping()) == ("neo4j", own.ping())
    own.close()
    named = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, "neo4j", "graph", "what it holds")
    assert (named.backend_name, named.get_description()) == ("graph", "graph: what it holds")
    named.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"uri": None}, "needs uri=, or NEO4J_URI"),
        ({"uri": f"bolt://neo4j:{SECRET}@127.0.0.1"}, "uri must hold no login"),
        ({"uri": "http://127.0.0.1:7474"}, "uri must be one of bolt"),
        ({"uri": "bolt://"}, "uri must be one of"),
        ({"uri": "bolt://h:99999"}, "uri must be one of"),
        ({"uri": "bolt://h/db"}, "uri must be one of"),
        ({"password": None}, "user was given and password was not"),
        ({"user": None}, "password was given and user was not"),
        ({"user": 7}, "user must be text"),
        ({"database": " "}, "database must be text"),
        ({"connect": "late"}, "'eager' or 'lazy'"),
        ({"allow": "apoc.x"}, "allow takes a list of names"),
        ({"described": -1}, "described is a whole number"),
        ({"embedding_function": EMBED}, "go with search_index"),
        ({"database_of": 7}, "database_of maps tenants"),
        ({"certificates": ["/nowhere.pem"]}, "files that are not there"),
    ],
)
def test_a_wrong_argument_is_named(monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str) -> None:
    for name in ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    good: dict[str, Any] = {"uri": "bolt://127.0.0.1:1", "user": "neo4j", "password": SECRET, "connect": "lazy"}
    with pytest.raises(AKConfigError, match=message) as caught:
        Neo4jManager(**(good | arguments))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("scheme", ["bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"])
def test_every_scheme_is_taken_and_no_representation_holds_the_password(scheme: str) -> None:
    own = Neo4jManager(f"{scheme}://graph.example:7687", "neo4j", SECRET, connect="lazy")
    assert f"{scheme}://graph.example:7687" in repr(own)
    assert SECRET not in repr(own) + repr(vars(own)) + str(own)
    own.close()
    own.close()


def test_a_closed_backend_says_so_and_can_be_connected_again(neo4j_server: Server) -> None:
    own = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)
    own.close()
    for call in (lambda: own.query("RETURN 1"), own.ping, own.schema, lambda: own.write([]), lambda: own.search("x")):
        with pytest.raises((KnowledgeStateError, KnowledgeCapabilityError)):
            call()
    assert own.get_description() == "neo4j: property graph (Cypher)"
    own.connect()
    assert own.query("RETURN 1 AS one")[0]["text"] == "one=1"
    own.close()


def test_closing_ends_what_runs(neo4j_server: Server) -> None:
    own = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            own.query(RUNAWAY, timeout=60)
        except KnowledgeError as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.5)
    own.close()
    thread.join(20)
    assert [type(error) for error in failures] == [KnowledgeStateError]


def test_a_router_reads_and_writes_with_parameters(graph: Neo4jManager) -> None:
    tools = {tool.__name__: tool for tool in KnowledgeBuilder([graph], limits=Limits(seconds=20)).build()}
    statement = f"MATCH (p:{PERSON} {{name: $name}}) SET p.seen = $seen"
    tools["write_kb"]("people", query=statement, params_json='{"name": "Bob", "seen": 1}')
    answer = tools["read_kb"]("people", f"MATCH (p:{PERSON} {{seen: 1}}) RETURN p.name AS name")
    assert answer == "| name |\n| --- |\n| Bob |"
