"""What `SQLManager` promises on every engine (X16): one suite for all; another engine is an entry in `engines`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import engines
import pytest
from engines import Database, Engine

from agentkernel_kb import (
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.reader import CONNECTIONS

pytestmark = engines.on(engines.ALL)

NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) AS n FROM c"
FAT = "SELECT replace('{}', 'x', '{}') AS fat, n FROM ({})".format("x" * 300, "y" * 3_000, NUMBERS)


@pytest.fixture
def database(engine: Engine, tmp_path: Path) -> Iterator[Database]:
    with engine.open(tmp_path) as made:
        made.run(engines.SETUP)
        yield made


@pytest.fixture
def empty(engine: Engine, tmp_path: Path) -> Iterator[Database]:
    with engine.open(tmp_path) as made:
        yield made


@pytest.fixture
def kb(database: Database) -> Iterator[SQLManager]:
    manager = database.manager()
    yield manager
    manager.close()


def rows(manager: SQLManager, statement: str, limit: int = 100, **options: Any) -> list[dict[str, Any]]:
    return [record["metadata"]["row"] for record in manager.query(statement, limit, **options)]


def test_the_schema_is_compact_and_complete(engine: Engine, kb: SQLManager) -> None:
    schema = kb.schema()
    assert schema["guarded"]
    for own, common in engine.types.items():
        schema["tables"] = {name: line.replace(own, common) for name, line in schema["tables"].items()}
    assert schema["tables"] == {
        "cities": "id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, country VARCHAR NOT NULL REFERENCES countries(code), "
        "population INTEGER | 3 rows",
        "countries": "code VARCHAR PRIMARY KEY, name VARCHAR NOT NULL | 2 rows",
        "secrets": "word VARCHAR | 1 row",
        "twins": schema["tables"]["twins"],
    }
    assert schema["tables"]["twins"].endswith("PRIMARY KEY (a, b) | 0 rows")
    assert list(schema["views"]) == ["hints"]


def test_row_counts_are_bounded(empty: Database) -> None:
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10001) SELECT n FROM c"
    empty.run(f"CREATE TABLE numbers AS {numbers}")
    with closing(empty.manager()) as manager:
        assert manager.schema()["tables"]["numbers"].endswith("| more than 10,000 rows")


def test_the_number_of_described_tables_is_bounded_and_the_rest_counted(database: Database) -> None:
    with closing(database.manager(described_tables=2)) as manager:
        schema = manager.schema()
        assert list(schema["tables"]) == ["cities", "countries"]
        assert schema["further_tables"] == "3 more tables or views are not described here"


def test_the_schema_is_read_anew_after_reload(kb: SQLManager, database: Database) -> None:
    before = kb.schema()["tables"]
    kb.close()  # An engine in the process may keep its file from being written.
    database.run("CREATE TABLE rivers (name VARCHAR)")
    kb.connect()
    assert kb.schema()["tables"] == before
    kb.reload()
    assert set(kb.schema()["tables"]) == {*before, "rivers"}


def test_ping_reaches_the_engine_and_tells_its_version(engine: Engine, kb: SQLManager) -> None:
    name, _, version = kb.ping(timeout=20).partition(" ")
    assert (name, version.lstrip("v")[0].isdigit()) == (engine.name, True)
    kb.close()
    with pytest.raises(KnowledgeStateError, match="'geo' is closed"):
        kb.ping()


def test_a_page_is_bounded_in_bytes(kb: SQLManager) -> None:
    found = kb.query(FAT, limit=500)
    assert (len(found), found.more) == (18, True)


def test_a_value_that_is_too_large_is_an_error_that_says_so(database: Database) -> None:
    with closing(database.manager(max_value_bytes=10_000)) as manager:
        with pytest.raises(KnowledgeQueryError, match="larger than 10,000 bytes"):
            manager.query(FAT)
        assert rows(manager, "SELECT replace('abc', 'b', 'x') AS r") == [{"r": "axc"}]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT namex FROM cities", "Did you mean name?"),
        ("SELECT * FROM city", "Did you mean cities?"),
        ("SELECT x.populaton FROM cities AS x", "Did you mean population?"),
        ("SELECT qqqq FROM cities", "Tables: cities, countries, hints, secrets, twins"),
    ],
)
def test_a_rejected_statement_says_what_would_work(kb: SQLManager, statement: str, message: str) -> None:
    with pytest.raises(KnowledgeQueryError) as rejection:
        kb.query(statement)
    assert message in str(rejection.value)


@pytest.mark.parametrize(
    "words",
    ["file is not a database", "malformed", "unable to open", "disk I/O error", "Corrupt database", "read-only"],
)
def test_words_of_a_statement_never_declare_the_database_broken(kb: SQLManager, words: str) -> None:
    with pytest.raises(KnowledgeQueryError):
        kb.query(f'SELECT cities."{words}" FROM cities')


@pytest.mark.parametrize("write", engines.WRITES)
def test_the_engine_alone_refuses(database: Database, write: str) -> None:
    before = database.state()
    with closing(database.reader()) as reader, pytest.raises((KnowledgeGuardError, KnowledgeQueryError)):
        reader.fetch(write, 10, 5)
    assert database.state() == before


# Only some tables.


@pytest.fixture
def scoped(database: Database) -> Iterator[SQLManager]:
    manager = database.manager(tables=["Countries", "hints", "nowhere"])
    yield manager
    manager.close()


def test_only_the_listed_tables_are_described(scoped: SQLManager) -> None:
    schema = scoped.schema()
    assert (list(schema["tables"]), list(schema["views"])) == (["countries"], ["hints"])
    assert scoped.get_diagnostics() == ["Table nowhere is not in the database."]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT count(*) AS n FROM countries", 2),
        ("SELECT initial FROM hints", "s"),
        ("WITH c AS (SELECT * FROM COUNTRIES) SELECT count(*) FROM c", 2),
        ("WITH towns AS (SELECT 1 AS n) SELECT n FROM towns", 1),
        ("SELECT count(*) FROM {schema}.countries WHERE code IN (SELECT code FROM countries)", 2),
    ],
)
def test_listed_tables_can_be_read(engine: Engine, scoped: SQLManager, statement: str, expected: object) -> None:
    found = rows(scoped, statement.format(schema=engine.schema))
    assert [list(row.values()) for row in found] == [[expected]]


UNLISTED = [
    "SELECT word FROM secrets",
    "SELECT * FROM countries, secrets",
    "SELECT (SELECT word FROM secrets) FROM countries",
    "WITH c AS (SELECT word FROM secrets) SELECT * FROM c",
    'SELECT word FROM {schema}."SECRETS"',
    "SELECT * FROM (WITH secrets AS (SELECT 1 AS word) SELECT word FROM secrets) AS own, secrets",
    "WITH secrets AS (SELECT word FROM secrets) SELECT word FROM secrets",
    "WITH hints AS (SELECT word FROM secrets) SELECT word FROM hints",
    "WITH secrets AS (SELECT 1 AS word) SELECT word FROM {schema}.secrets",
]


@pytest.mark.parametrize("statement", UNLISTED)
def test_other_tables_cannot_be_read(engine: Engine, scoped: SQLManager, statement: str) -> None:
    with pytest.raises((KnowledgeGuardError, KnowledgeQueryError)):
        scoped.query(statement.format(schema=engine.schema))


@pytest.mark.parametrize("statement", UNLISTED)
def test_other_tables_cannot_be_read_past_the_guard(engine: Engine, database: Database, statement: str) -> None:
    with (
        closing(database.reader(tables=["countries"])) as reader,
        pytest.raises((KnowledgeGuardError, KnowledgeQueryError)),
    ):
        reader.fetch(statement.format(schema=engine.schema), 10, 5)


# Time.


def test_a_statement_is_stopped_at_its_deadline_and_the_next_one_answered(kb: SQLManager) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        kb.query(ENDLESS, timeout=0.3)
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]


def test_the_work_itself_is_stopped(database: Database) -> None:
    with closing(database.reader()) as reader:
        with pytest.raises(KnowledgeTimeoutError, match="was stopped after"):
            reader.fetch(ENDLESS, 1, 0.3)
        database.wait_until_idle()


def test_more_endless_statements_than_connections_all_end_in_time(kb: SQLManager) -> None:
    def attempt(_: int) -> str:
        try:
            return kb.query(ENDLESS, timeout=0.5)[0]["text"]
        except KnowledgeTimeoutError:
            return "stopped"

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(attempt, range(20))) == {"stopped"}
    assert rows(kb, "SELECT 1 AS one", timeout=10) == [{"one": 1}]


# Lives.


def test_after_close_every_call_says_so_and_connect_opens_again(kb: SQLManager) -> None:
    kb.close()
    kb.close()
    for call in (lambda: kb.query("SELECT 1"), kb.schema):
        with pytest.raises(KnowledgeStateError, match="'geo' is closed"):
            call()
    kb.connect()
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]


def test_close_lets_the_owner_write_again(kb: SQLManager, database: Database) -> None:
    kb.query("SELECT * FROM cities")
    kb.close()
    database.run("DELETE FROM cities WHERE id = 1")
    kb.connect()
    assert rows(kb, "SELECT count(*) AS n FROM cities") == [{"n": 2}]


async def test_a_cancelled_call_gives_its_connection_back(kb: SQLManager) -> None:
    calls = [asyncio.create_task(kb.aquery(ENDLESS, timeout=60)) for _ in range(CONNECTIONS)]
    await asyncio.sleep(0.3)
    for call in calls:
        call.cancel()
    assert [type(ended) for ended in await asyncio.gather(*calls, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * CONNECTIONS
    assert list((await kb.aquery("SELECT 1 AS one", timeout=20))[0]["metadata"]["row"].values()) == [1]
