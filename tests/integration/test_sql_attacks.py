"""What a tester got past `SQLManager` on SQLite, by kind, each lock alone: listed tables (X1), memory, disk and time (X3)."""

from __future__ import annotations

import asyncio
import gc
import inspect
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from agentkernel_kb import (
    AKConfigError,
    KnowledgeBuilder,
    KnowledgeConnectionError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import CONNECTIONS, Reader

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
SETUP = """
CREATE TABLE clients (name);
CREATE TABLE secret (user, password);
CREATE INDEX by_user ON secret (user);
CREATE TABLE ordered (password PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE key (a);
CREATE TABLE "\u212aey" (a);
CREATE VIEW v AS SELECT name FROM clients;
CREATE VIEW users AS SELECT user FROM secret;
CREATE VIRTUAL TABLE notes USING fts5 (body);
CREATE VIRTUAL TABLE hidden USING fts5 (body);
INSERT INTO clients VALUES ('Acme');
INSERT INTO secret VALUES ('root', 'CANARY');
INSERT INTO ordered VALUES ('CANARY');
INSERT INTO "\u212aey" VALUES ('CANARY');
INSERT INTO notes VALUES ('hello');
INSERT INTO hidden VALUES ('CANARY');
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SETUP)
    return path


@pytest.fixture
def kb(database: Path) -> Iterator[SQLManager]:
    with closing(SQLManager(f"sqlite:///{database}")) as manager:
        yield manager


def engine_alone(database: Path, tables: list[str] | None = None) -> Reader:
    """Return the engine's lock without the guard."""
    return Reader(lock_for(make_url(f"sqlite:///{database}"), tables=tables, max_value_bytes=1_000_000), "alone")


def values(manager: SQLManager, statement: str, **options: Any) -> list[list[Any]]:
    return [list(record["metadata"]["row"].values()) for record in manager.query(statement, 100, **options)]


# Only some tables.

FULL_JOINS = [
    "SELECT * FROM (SELECT 'x' AS user, 'y' AS password) NATURAL FULL JOIN {0}secret",
    "SELECT password FROM (SELECT 'x' AS password) FULL JOIN {0}secret USING (password)",
    "SELECT password FROM (SELECT 'x' AS password) RIGHT JOIN {0}secret USING (password)",
    "SELECT count(*) FROM (SELECT 'CANARY' AS password) JOIN {0}secret USING (password)",
    "SELECT user FROM (SELECT 'x' AS user) FULL JOIN {0}secret USING (user)",
    "SELECT * FROM (SELECT 'x' AS password) NATURAL FULL JOIN {0}ordered",
    "SELECT * FROM (SELECT 'x' AS body) NATURAL FULL JOIN {0}hidden",
    "SELECT c0 FROM (SELECT 'x' AS c0) FULL JOIN {0}hidden_content USING (c0)",
    "SELECT sql FROM (SELECT 'x' AS sql) FULL JOIN {0}sqlite_master USING (sql)",
    "SELECT sql FROM (SELECT 'x' AS sql) FULL JOIN {0}sqlite_schema USING (sql)",
    "SELECT count(*) FROM {0}secret",
    "SELECT EXISTS (SELECT 1 FROM {0}secret)",
    "SELECT 'CANARY' IN {0}ordered",
    "SELECT name FROM clients, {0}secret",
]
HIDING = "WITH secret AS (SELECT 1), ordered(x) AS MATERIALIZED (SELECT 1), hidden AS NOT MATERIALIZED (SELECT 1) "
UNLISTED = [
    *(join.format(schema) for join in FULL_JOINS for schema in ("", "main.")),
    *(HIDING + join.format("main.") for join in FULL_JOINS),
    *("WITH sqlite_master AS (SELECT 1), hidden_content AS (SELECT 1) " + join.format("main.") for join in FULL_JOINS),
    "SELECT password FROM (SELECT 'x' AS password) FULL JOIN secret USING (password)"
    " WHERE 1 OR 1 IN (WITH secret AS (SELECT 1) SELECT * FROM secret)",
    "SELECT * FROM (WITH secret AS (SELECT 1) SELECT * FROM secret), (SELECT count(*) FROM secret)",
    "WITH clients AS (SELECT * FROM main.secret) SELECT * FROM clients",
    "WITH secret AS (SELECT 1), v AS (SELECT * FROM main.secret) SELECT * FROM v",
    "WITH v(a, b) AS (SELECT * FROM main.secret) SELECT * FROM v",
    'WITH secret AS (SELECT 1), "V" AS (SELECT password FROM main.secret) SELECT * FROM v',
    "WITH a AS (WITH v AS (SELECT password FROM main.secret) SELECT * FROM v) SELECT * FROM a",
]


@pytest.mark.parametrize("statement", UNLISTED)
def test_no_name_and_no_join_opens_a_table_that_is_not_listed(database: Path, statement: str) -> None:
    with (
        closing(SQLManager(f"sqlite:///{database}", tables=["clients", "v"])) as manager,
        pytest.raises(KnowledgeGuardError, match=r"Only these tables may be read: clients, v|This name is that of a table"),
    ):
        manager.query(statement)


@pytest.mark.parametrize("statement", UNLISTED)
def test_no_name_and_no_join_opens_it_past_the_guard(database: Path, statement: str) -> None:
    with closing(engine_alone(database, ["clients", "v"])) as reader, pytest.raises(KnowledgeGuardError):
        reader.fetch(statement, 10, 5)


@pytest.mark.parametrize("statement", [join.format("main.") for join in FULL_JOINS if "secret" in join])
def test_a_listed_view_does_not_open_what_it_reads_itself(database: Path, statement: str) -> None:
    with (
        closing(SQLManager(f"sqlite:///{database}", tables=["clients", "users"])) as manager,
        pytest.raises(KnowledgeGuardError, match="Only these tables may be read"),
    ):
        manager.query(statement)


@pytest.mark.parametrize("name", ["v", '"V"', "[users]", "`secret`", "sqlite_master", "SQLITE_schema"])
def test_a_name_of_the_database_cannot_be_given_to_something_else(database: Path, name: str) -> None:
    with (
        closing(engine_alone(database, ["v"])) as reader,
        pytest.raises(KnowledgeGuardError, match="This name is that of a table; take another one"),
    ):
        reader.fetch(f"WITH {name} AS (SELECT 1) SELECT * FROM {name}", 10, 5)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT * FROM clients NATURAL JOIN v", [["Acme"]]),
        ("SELECT name FROM (SELECT 'x' AS name) FULL JOIN clients USING (name)", [["x"], ["Acme"]]),
        ("WITH c AS (SELECT * FROM clients), d(n) AS (SELECT name FROM c) SELECT count(*) FROM d", [[1]]),
        ("SELECT * FROM users", [["root"]]),
        ("SELECT count(*) FROM users", [[1]]),
        ("SELECT u.user FROM clients LEFT JOIN users AS u ON u.user = 'root'", [["root"]]),
        ("SELECT body FROM notes WHERE notes MATCH 'hello'", [["hello"]]),
        ("SELECT body FROM (SELECT 'hello' AS body) NATURAL JOIN notes", [["hello"]]),
        ("SELECT value FROM clients, json_each('[1]')", [[1]]),
        ("SELECT name FROM pragma_table_info('clients')", [["name"]]),
        ("SELECT count(*) FROM KEY", [[0]]),
        ("SELECT sum(1) OVER w FROM clients AS c WINDOW w AS (ORDER BY name)", [[1]]),
    ],
)
def test_what_is_listed_is_read_as_ever(database: Path, statement: str, expected: list[list[Any]]) -> None:
    tables = ["Clients", "v", "users", "notes", "key"]
    with closing(SQLManager(f"sqlite:///{database}", tables=tables)) as manager:
        assert values(manager, statement) == expected
    with closing(engine_alone(database, tables)) as reader:
        assert [list(row) for row in reader.fetch(statement, 10, 5).rows] == expected


def test_a_table_that_appears_later_is_not_open_either(database: Path) -> None:
    with closing(engine_alone(database, ["clients"])) as reader:
        assert reader.fetch("SELECT name FROM clients", 10, 5).rows == [("Acme",)]
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript("CREATE TABLE later (name); INSERT INTO later VALUES ('CANARY')")
        with pytest.raises(KnowledgeGuardError):
            reader.fetch("SELECT name FROM (SELECT 'x' AS name) FULL JOIN later USING (name)", 10, 5)


# Names as SQLite compares them.


@pytest.mark.parametrize(
    "statement", ['SELECT * FROM "\u212aey"', 'WITH "\u212aey" AS (SELECT 1) SELECT a FROM key AS k, main."\u212aey"']
)
def test_only_letters_of_ascii_have_two_cases(database: Path, statement: str) -> None:
    with (
        closing(SQLManager(f"sqlite:///{database}", tables=["KEY"])) as manager,
        pytest.raises(KnowledgeGuardError, match="Only these tables may be read: KEY"),
    ):
        manager.query(statement)
    with closing(engine_alone(database, ["KEY"])) as reader, pytest.raises(KnowledgeGuardError):
        reader.fetch(statement, 10, 5)


def test_a_name_that_only_looks_listed_is_not_described(database: Path) -> None:
    with closing(SQLManager(f"sqlite:///{database}", tables=["KEY"])) as manager:
        assert list(manager.schema()["tables"]) == ['"key"']


def test_a_table_is_not_hidden_by_a_name_that_only_looks_like_it(database: Path) -> None:
    with (
        closing(SQLManager(f"sqlite:///{database}", tables=["clients"])) as manager,
        pytest.raises(KnowledgeGuardError, match=r"Only these tables may be read: clients \(key\)"),
    ):
        manager.check_read('WITH "\u212aey" AS (SELECT 1) SELECT * FROM key')


# Calls that nobody waits for, and managers that nobody holds.


async def test_the_router_cancels_through(kb: SQLManager) -> None:
    (read,) = [tool for tool in KnowledgeBuilder([kb]).build_async() if tool.__name__ == "read_kb"]
    calls = [asyncio.create_task(read("sql", f"{ENDLESS} SELECT count(*) FROM c")) for _ in range(CONNECTIONS)]
    await asyncio.sleep(0.5)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert await read("sql", "SELECT 1 AS one") == "| one |\n| --- |\n| 1 |"


def test_a_dropped_manager_leaves_no_thread(database: Path) -> None:
    manager = SQLManager(f"sqlite:///{database}", name="dropped")
    manager.query("SELECT 1")
    del manager
    gc.collect()
    until = time.monotonic() + 5
    while any("dropped" in thread.name for thread in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)
    assert [thread.name for thread in threading.enumerate() if "dropped" in thread.name] == []


# What a database can be like.


def test_a_write_that_did_not_finish_is_no_fault_of_the_statement(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN IMMEDIATE")
        writer.executemany("INSERT INTO clients VALUES (?)", [("z" * 2000,)] * 3000)
        for suffix in ("", "-journal"):
            shutil.copy(f"{database}{suffix}", f"{copy}{suffix}")
        writer.execute("ROLLBACK")
    recovery = pytest.raises(KnowledgeConnectionError, match="Open it once with a program that may write to it")
    with closing(SQLManager(f"sqlite:///{copy}")) as manager, recovery:
        manager.query("SELECT count(*) FROM clients")


def test_a_log_that_nobody_writes_can_be_read_without_a_trace(database: Path) -> None:
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO clients VALUES ('new')")
        writer.commit()
    with closing(SQLManager(f"sqlite:///{database}?immutable=1")) as manager:
        assert values(manager, "SELECT count(*) FROM clients") == [[2]]
    assert [path.name for path in database.parent.iterdir()] == ["a.db"]


def test_a_name_that_is_not_utf_8_is_said_to_be_that(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE odd (placeholder, fine); INSERT INTO odd VALUES (1, 2)")
    path.write_bytes(path.read_bytes().replace(b"placeholder", b"\xff\xfe\xffceholder"))
    with closing(SQLManager(f"sqlite:///{path}")) as manager:
        assert values(manager, "SELECT fine FROM odd") == [[2]]
        with pytest.raises(KnowledgeQueryError, match="A name in this database is not UTF-8"):
            manager.query("SELECT * FROM odd")


# What a manager is made with.


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("max_value_bytes", value) for value in (-1, 0, "x", None, True, 1.5, 10**12)),
        *(("described_tables", value) for value in (-1, "x", None, True, 1.5)),
        *(("tables", value) for value in (5, [1], "clients", b"clients", ["clients", None])),
    ],
)
def test_a_wrong_argument_is_named_at_construction(database: Path, argument: str, value: Any) -> None:
    with pytest.raises(AKConfigError, match=f"SQLManager 'sql': {argument} "):
        SQLManager(f"sqlite:///{database}", **{argument: value})


def test_it_is_shown_by_its_database_and_not_by_what_else_a_url_holds(database: Path) -> None:
    url = make_url(f"sqlite:///{database}?token=CANARY&password=CANARY").set(username="CANARY", password="CANARY", host=None)
    with closing(SQLManager(url)) as manager:
        assert repr(manager) == f"SQLManager(sqlite, database={str(database)!r}, name='sql')"


def test_the_proof_may_be_asked_with_a_time_out(kb: SQLManager) -> None:
    kb.check_read("SELECT 1", timeout=1)
    assert "timeout" in inspect.signature(kb.check_read).parameters


@pytest.mark.parametrize(
    "function", ["snippet(notes, 0, '', '', '', 9)", "highlight(notes, 0, '', '')", "matchinfo(notes)", "offsets(notes)"]
)
def test_the_engine_alone_has_no_full_text_function_of_unbounded_cost(database: Path, function: str) -> None:
    with closing(engine_alone(database)) as reader, pytest.raises(KnowledgeGuardError, match="not authorized"):
        reader.fetch(f"SELECT {function} FROM notes WHERE notes MATCH 'hello'", 10, 5)


def test_a_long_search_is_stopped_at_its_deadline(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5 (body)")
        connection.execute("INSERT INTO notes VALUES (?)", (" ".join(f"{'abcdefgh'[i % 8]}{i % 97}" for i in range(120_000)),))
        connection.commit()
    with closing(SQLManager(f"sqlite:///{path}")) as manager:
        with pytest.raises(KnowledgeTimeoutError):
            manager.query(f"SELECT count(*) FROM notes WHERE notes MATCH replace('{'a' * 5_000}', 'a', 'a* ')", timeout=1)
        assert list(manager.query("SELECT 1 AS one", timeout=5)[0]["metadata"]["row"].values()) == [1]
