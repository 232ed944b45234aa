"""StarburstManager on a real Trino server: what is sent, what comes back, where it ends (A13, X1, X3, X4)."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
import trino_statements as admin

from agentkernel_kb import (
    KnowledgeBuilder,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.starburst import StarburstManager
from servers import Server

pytestmark = pytest.mark.server("trino")
LONG = "SELECT count(*) FROM tpch.sf1000.lineitem a"  # Hours of work.


@pytest.fixture
def port(trino_server: Server) -> int:
    return trino_server.port


@pytest.fixture
def tiny(port: int) -> Iterator[StarburstManager]:
    with closing(StarburstManager("127.0.0.1", port, "kb", None, "tpch", "tiny", name="lake")) as backend:
        yield backend


@pytest.fixture
def marker() -> str:
    return f"marker_{uuid.uuid4().hex}"


# What is sent.


def test_a_statement_without_a_limit_gets_one_of_one_row_more(tiny: StarburstManager, port: int, marker: str) -> None:
    page = tiny.query(f"SELECT name /* {marker} */ FROM nation ORDER BY name -- the end\n;")
    assert [record["text"] for record in page] == ["name=ALGERIA", "name=ARGENTINA", "name=BRAZIL"]
    assert page.more
    assert admin.ended_query(port, marker).text == f"SELECT name /* {marker} */ FROM nation ORDER BY name LIMIT 4 -- the end\n"


def test_a_limit_of_its_own_is_sent_as_it_was_written(tiny: StarburstManager, port: int, marker: str) -> None:
    page = tiny.query(f"SELECT name /* {marker} */ FROM nation LIMIT 5", limit=1)
    assert (len(page), page.more) == (5, False)
    assert admin.ended_query(port, marker).text.endswith("FROM nation LIMIT 5")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SHOW TABLES FROM tpch.tiny LIKE 'nat%'", "Table=nation"),
        ("DESCRIBE nation", "Column=nationkey, Type=bigint, Extra=, Comment="),
        ("VALUES 1, 2", "_col0=1"),
        ("TABLE region", "regionkey=0, name=AFRICA"),
        ("WITH t AS (SELECT 7 AS a) SELECT a FROM t", "a=7"),
        ("EXPLAIN (TYPE VALIDATE) SELECT 1", "Valid=true"),
    ],
)
def test_everything_that_reads_is_answered(tiny: StarburstManager, statement: str, expected: str) -> None:
    assert str(tiny.query(statement)[0]["text"]).startswith(expected)


# Where it ends.


def test_at_the_row_cap_the_query_is_cancelled_on_the_server(tiny: StarburstManager, port: int, marker: str) -> None:
    page = tiny.query(f"SELECT orderkey /* {marker} */ FROM tpch.sf100.lineitem LIMIT 100000000", max_rows=10, timeout=60)
    assert (len(page), page.more) == (10, True)
    assert admin.ended_query(port, marker).error == "USER_CANCELED"


def test_at_the_byte_cap_too(tiny: StarburstManager, port: int, marker: str) -> None:
    statement = f"SELECT rpad(comment, 90000, 'x') AS large /* {marker} */ FROM tpch.sf1.orders LIMIT 1000"
    page = tiny.query(statement, timeout=100)
    assert (170 <= len(page) <= 180, page.more) == (True, True)
    assert admin.ended_query(port, marker).error == "USER_CANCELED"


def test_at_the_deadline_the_query_is_cancelled_on_the_server(tiny: StarburstManager, port: int, marker: str) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        tiny.query(f"{LONG} /* {marker} */", timeout=1.5)
    assert admin.ended_query(port, marker).error in ("USER_CANCELED", "EXCEEDED_TIME_LIMIT")


async def test_an_awaited_query_that_is_cancelled_stops_on_the_server(tiny: StarburstManager, port: int, marker: str) -> None:
    task = asyncio.create_task(tiny.aquery(f"{LONG} /* {marker} */", timeout=100))
    await asyncio.to_thread(admin.started_query, port, marker)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await asyncio.to_thread(admin.ended_query, port, marker)).error == "USER_CANCELED"


async def test_the_event_loop_goes_on_while_a_query_runs(tiny: StarburstManager) -> None:
    task = asyncio.create_task(tiny.aquery(LONG, timeout=2))
    steps = 0
    while not task.done():
        await asyncio.sleep(0.01)
        steps += 1
    assert steps > 20
    with pytest.raises(KnowledgeTimeoutError):
        await task


def test_the_server_is_told_how_long_a_query_may_take(port: int, marker: str) -> None:
    with closing(StarburstManager("127.0.0.1", port, "kb", cpu_cores=2, connect="lazy")) as backend:
        backend.query(f"SELECT 1 /* {marker} */", timeout=50)
    properties = admin.session_of(port, admin.ended_query(port, marker).id)["systemProperties"]
    seconds = {name: float(value.removesuffix("s")) for name, value in properties.items()}
    assert sorted(seconds) == [
        "iterative_optimizer_timeout",
        "query_max_cpu_time",
        "query_max_execution_time",
        "query_max_planning_time",
        "query_max_run_time",
    ]
    assert 0 < seconds["query_max_run_time"] == seconds["query_max_execution_time"] == seconds["query_max_planning_time"] <= 50
    assert seconds["iterative_optimizer_timeout"] == seconds["query_max_run_time"]
    assert seconds["query_max_cpu_time"] == pytest.approx(2 * seconds["query_max_run_time"], abs=0.01)


def test_without_time_nothing_is_sent(tiny: StarburstManager, port: int, marker: str) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        tiny.query(f"SELECT 1 /* {marker} */", timeout=0)
    assert admin.queries_with(port, marker) == []


def test_every_transaction_only_reads_and_is_ended(port: int, marker: str) -> None:
    with closing(StarburstManager("127.0.0.1", port, "kb", source=marker, connect="lazy")) as backend:
        backend.query("SELECT 1")
        with pytest.raises(KnowledgeQueryError):
            backend.query("SELECT 1 / 0")
        with pytest.raises(KnowledgeTimeoutError):
            backend.query(LONG, timeout=1)
    started = len(admin.started_transactions(port, marker, 3))  # Perhaps one more, which no call has used.
    until = time.monotonic() + admin.PATIENCE_SECONDS
    while admin.count_of(port, marker, "ROLLBACK") < started and time.monotonic() < until:
        time.sleep(0.1)
    assert admin.count_of(port, marker, "ROLLBACK") == started


# What comes back.


def test_rows_are_shown_to_a_model_as_a_table(tiny: StarburstManager) -> None:
    with KnowledgeBuilder([tiny]) as router:
        read_kb = {tool.__name__: tool for tool in router.build()}["read_kb"]
        answer = read_kb("lake", "SELECT regionkey, name FROM region ORDER BY name", limit=2)
    assert answer.splitlines()[-4:] == ["| regionkey | name |", "| --- | --- |", "| 0 | AFRICA |", "| 1 | AMERICA |"]


def test_write_kb_is_declined(tiny: StarburstManager) -> None:
    with KnowledgeBuilder([tiny]) as router:
        write_kb = {tool.__name__: tool for tool in router.build()}["write_kb"]
        assert str(write_kb("lake", "text")).startswith("Backend 'lake' does not support write. Backends that do: [].")


TYPES = {
    "DECIMAL '12.50'": "12.50",
    "DECIMAL '12345678901234567890123456789012345678'": "12345678901234567890123456789012345678",
    "BIGINT '9223372036854775807'": 9223372036854775807,
    "TINYINT '-1'": -1,
    "nan()": "NaN",
    "-infinity()": "-Infinity",
    "REAL '1.5'": 1.5,
    "true": True,
    "NULL": None,
    "DATE '-2024-02-29'": "-2024-02-29",
    "TIME '10:00:00.123456789012'": "10:00:00.123456789012",
    "TIME '10:00:00.1 +02:00'": "10:00:00.1+02:00",
    "TIMESTAMP '12024-01-01 10:00:00.123456789012'": "+12024-01-01 10:00:00.123456789012",
    "TIMESTAMP '2024-07-01 10:00 Europe/Zurich'": "2024-07-01 10:00:00 Europe/Zurich",
    "INTERVAL '-3' YEAR": "-3-0",
    "INTERVAL '2 03:04:05.678' DAY TO SECOND": "2 03:04:05.678",
    "X'00ff'": "0x00ff",
    "CAST('ab' AS char(4))": "ab  ",
    "JSON '{\"a\":[1,null]}'": '{"a":[1,null]}',
    "UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'": "12151fd2-7586-11e9-8f9e-2a86e4085a59",
    "IPADDRESS '2001:db8::1'": "2001:db8::1",
    "ARRAY[1, NULL, 3]": [1, None, 3],
    "ARRAY[ARRAY[X'00'], NULL]": [["0x00"], None],
    "MAP(ARRAY['x', 'y'], ARRAY[DECIMAL '1.0', NULL])": {"x": "1.0", "y": None},
    "MAP(ARRAY[ROW(1, 2)], ARRAY[nan()])": {"[1, 2]": "NaN"},
    "MAP(ARRAY[X'01'], ARRAY[1])": {"0x01": 1},
    "CAST(ROW(1, 'a', NULL) AS ROW(x integer, y varchar, z date))": {"x": 1, "y": "a", "z": None},
    "ROW(1, 2.5)": {"field0": 1, "field1": "2.5"},
    "CAST(ROW(1, 2) AS ROW(a integer, a integer))": {"a": 1, "a_2": 2},
    "approx_set(1)": "<HyperLogLog of 8 bytes>",
    "'two' || chr(10) || 'lines'": "two\nlines",
}


def test_every_type_is_plain_data_and_one_line(tiny: StarburstManager) -> None:
    columns = ", ".join(f"{expression} AS c{index}" for index, expression in enumerate(TYPES))
    (record,) = tiny.query(f"SELECT {columns}", timeout=60)
    row = record["metadata"]["row"]
    assert dict(zip(TYPES, row.values(), strict=True)) == TYPES
    assert json.loads(json.dumps(dict(record["metadata"]), allow_nan=False))["row"] == row
    assert len(str(record["text"]).splitlines()) == 1


def test_columns_of_one_name_are_told_apart(tiny: StarburstManager) -> None:
    (record,) = tiny.query("SELECT 1 AS a, 2 AS a, 3")
    assert record["metadata"] == {"row": {"a": 1, "a_2": 2, "_col2": 3}, "source": "lake"}


def test_a_hundred_columns(tiny: StarburstManager) -> None:
    (record,) = tiny.query("SELECT " + ", ".join(f"{number} AS c{number}" for number in range(100)))
    assert record["metadata"]["row"] == {f"c{number}": number for number in range(100)}


def test_a_cell_of_ten_megabytes_is_read_and_shown_cut(tiny: StarburstManager, port: int) -> None:
    megabyte = "lpad(name, 1000000, 'x')"  # No function makes longer text.
    large = f"cells AS SELECT ARRAY[{', '.join([megabyte] * 10)}] AS large FROM tpch.tiny.nation LIMIT 1"
    with admin.own_schema(port, large) as schema:
        (record,) = tiny.query(f"SELECT large FROM memory.{schema}.cells", timeout=60)
    assert [len(part) for part in record["metadata"]["row"]["large"]] == [1_000_000] * 10
    assert len(str(record["text"])) < 5_000
    assert str(record["text"]).endswith("characters)")


def test_a_vector_is_shown_by_its_length(tiny: StarburstManager) -> None:
    (record,) = tiny.query("SELECT transform(sequence(1, 400), x -> x / 7e0) AS embedding")
    assert record["text"] == "embedding=[400 numbers]"


# What is wrong with a statement.


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT nmae FROM nation", "line 1:8: Column 'nmae' cannot be resolved. Did you mean name?"),
        ("SELECT colour FROM region", "line 1:8: Column 'colour' cannot be resolved. Columns: regionkey, name, comment"),
        (
            "SELECT * FROM\n  natoin",
            "line 2:3: Table 'tpch.tiny.natoin' does not exist. Did you mean nation?",
        ),
        ("SELECT * FROM tpch.tinny.nation", "line 1:15: Schema 'tinny' does not exist. Did you mean tiny?"),
        ("SELECT * FROM tcph.tiny.nation", "line 1:15: Catalog 'tcph' not found. Did you mean tpch?"),
        ("SELECT 1 / 0", "Division by zero"),
        ("SELECT CAST('x' AS bigint)", "Cannot cast 'x' to BIGINT"),
        (
            "SELECT name FROM nation GROUP BY regionkey",
            "line 1:8: 'name' must be an aggregate expression or appear in GROUP BY",
        ),
    ],
)
def test_the_message_has_the_place_and_near_names(tiny: StarburstManager, statement: str, expected: str) -> None:
    with pytest.raises(KnowledgeQueryError) as caught:
        tiny.query(statement, timeout=60)
    assert str(caught.value).startswith(expected)


def test_near_names_are_written_as_a_statement_has_to(port: int) -> None:
    with (
        admin.own_schema(port, '"Order Items" AS SELECT 1 AS "unit price"') as schema,
        closing(StarburstManager("127.0.0.1", port, "kb", None, "memory", schema)) as backend,
    ):
        with pytest.raises(KnowledgeQueryError, match='Did you mean "order items"'):
            backend.query("SELECT * FROM order_items", timeout=60)
        with pytest.raises(KnowledgeQueryError, match='Did you mean "unit price"'):
            backend.query('SELECT unit_price FROM "order items"', timeout=60)


@pytest.mark.parametrize("statement", ["DELETE FROM nation", "SELECT 1; SELECT 2", "CALL system.runtime.kill_query('a')", ""])
def test_what_is_no_read_is_not_sent(tiny: StarburstManager, statement: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        tiny.query(statement)


def test_a_table_function_of_a_connector_runs_only_where_the_deployment_names_it(tiny: StarburstManager) -> None:
    statement = "SELECT * FROM TABLE(memory.system.sheet(id => '1'))"
    with pytest.raises(KnowledgeGuardError):
        tiny.query(statement)
    with pytest.raises(KnowledgeQueryError, match="not registered"):  # It went to the server, which has no such function.
        tiny.query(statement, allow=["memory.system.sheet"])
