"""What Neo4jManager reads on a real server: rows, values, limits, time and the locks (A12, X1, X3, X4)."""

from __future__ import annotations

import asyncio
import json
import math
import resource
import threading
import time
from collections.abc import Iterator

import neo4j
import pytest
from neo4j_people import KNOWS, PERSON, RUN, RUNAWAY, people, record, rows

from agentkernel_kb import AKConfigError, KnowledgeBuilder, KnowledgeGuardError, KnowledgeQueryError, KnowledgeTimeoutError
from agentkernel_kb.neo4j import Neo4jManager
from agentkernel_kb.neo4j.verdicts import MAX_VERDICTS, Verdicts
from servers import PASSWORD, Server

pytestmark = pytest.mark.server("neo4j")
MANY = "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 10) AS c RETURN a, b, c"


@pytest.fixture(scope="module")
def graph(neo4j_server: Server) -> Iterator[Neo4jManager]:
    with people(neo4j_server) as graph:
        yield graph


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
    "datetime('2024-07-02T03:04:05[America/St_Johns]')": "2024-07-02T03:04:05-02:30[America/St_Johns]",
    "time('10:00-03:30')": "10:00:00-03:30",
    "date('-0044-03-15')": "-0044-03-15",
    "date('0000-12-31')": "0000-12-31",
    "datetime('0000-12-31T10:00:00Z')": "0000-12-31T10:00:00+00:00",
    "date('+999999999-12-31')": "+999999999-12-31",
    "[localdatetime('-0044-03-15T23:59:59.5')]": ["-0044-03-15T23:59:59.5"],
    "{a: datetime('0001-01-01T00:00:00+10:00')}": {"a": "0001-01-01T00:00:00+10:00"},
    "datetime('-0044-03-15T12:00:00[Europe/Rome]')": "-0044-03-15T11:10:04+00:00[Europe/Rome]",
    "{_labels: 3, _type: 5, _label: null}": {"_labels": 3, "_type": 5, "_label": None},
    "{_label: 'A', _labels: 3}": {"_label": "A", "_labels": 3},
    "{_nodes: [1], _relationships: [2, 3]}": {"_nodes": [1], "_relationships": [2, 3]},
    "duration('P1Y2M3DT4H5M6.5S')": "P1Y2M3DT4H5M6.5S",
    "duration('-P1D')": "P-1D",
    "point({latitude: 47.5, longitude: 8.5})": {"srid": 4326, "longitude": 8.5, "latitude": 47.5},
    "point({x: 1, y: 2, z: 3})": {"srid": 9157, "x": 1.0, "y": 2.0, "z": 3.0},
    "[x IN range(1, 384) | x * 0.5]": "[384 numbers]",
    "[x IN range(1, 8) | x * 0.5]": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0],
}


@pytest.mark.parametrize(("written", "expected"), VALUES.items())
def test_every_value_becomes_plain_data_that_json_holds(graph: Neo4jManager, written: str, expected: object) -> None:
    (found,) = page = graph.query(f"RETURN {written} AS value")
    row = found["metadata"]["row"]
    assert row == {"value": expected}
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert graph.format_results(page).startswith("| value |")


def test_no_property_passes_for_a_label_a_type_or_a_part_of_a_path(graph: Neo4jManager) -> None:
    properties = "_labels: ['Forged'], _label: 'Forged', _type: 'FORGED', _nodes: [1], _relationships: [2], _reversed: true"
    graph.write([record(f"CREATE (:Odd{RUN} {{{properties}}})-[:ODD{RUN} {{{properties}}}]->(:Odd{RUN} {{_labels: 3}})")])
    (row,) = rows(graph, f"MATCH (a:Odd{RUN})-[r:ODD{RUN}]->(b) RETURN a, r, b")
    assert (row["a"]["_labels"], row["r"]["_type"]) == ([f"Odd{RUN}"], f"ODD{RUN}")
    assert row["r"].keys() == {"_type", "_labels_2", "_label_2", "_type_2", "_nodes_2", "_relationships_2", "_reversed_2"}
    assert row["b"] == {"_labels": [f"Odd{RUN}"], "_labels_2": 3}
    (found,) = graph.query(f"MATCH p = (:Odd{RUN})-[:ODD{RUN}]->() RETURN p")
    assert found["text"].startswith(f"p=(:Odd{RUN} {{")
    assert found["text"].endswith(f"]->(:Odd{RUN} {{_labels_2: 3}})")
    graph.write([record(f"MATCH (n:Odd{RUN}) DETACH DELETE n")])


def test_a_moment_outside_of_the_drivers_years_is_shown_within_a_node(graph: Neo4jManager) -> None:
    graph.write([record(f"CREATE (:Odd{RUN} {{name: 'Caesar', died: [date('-0044-03-15')]}})")])
    (row,) = rows(graph, f"MATCH (n:Odd{RUN}) RETURN n")
    assert row["n"] == {"_labels": [f"Odd{RUN}"], "name": "Caesar", "died": ["-0044-03-15"]}
    graph.write([record(f"MATCH (n:Odd{RUN}) DETACH DELETE n")])


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("9223372036854775808", "integer is too large"),
        ("0x8000000000000000", "integer is too large"),
        ("9223372036854775807 + 1", "long overflow"),
        ("toInteger('9223372036854775808')", "is too large"),
    ],
)
def test_an_integer_of_more_than_64_bits_is_rejected_and_never_wrapped(graph: Neo4jManager, written: str, reason: str) -> None:
    with pytest.raises(KnowledgeQueryError, match=reason):
        graph.query(f"RETURN {written} AS value")


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
