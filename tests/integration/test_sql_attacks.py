"""What a tester got past `SQLManager` on SQLite, by kind, each lock alone: listed tables (X1), memory, disk and time (X3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader

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
    with closing(SQLManager(f"sqlite:///{database}", tables=["clients", "v"])) as manager:
        with pytest.raises(KnowledgeGuardError, match="Only these tables may be read: clients, v|This name is that of a table"):
            manager.query(statement)


@pytest.mark.parametrize("statement", UNLISTED)
def test_no_name_and_no_join_opens_it_past_the_guard(database: Path, statement: str) -> None:
    with closing(engine_alone(database, ["clients", "v"])) as reader, pytest.raises(KnowledgeGuardError):
        reader.fetch(statement, 10, 5)


@pytest.mark.parametrize("statement", [join.format("main.") for join in FULL_JOINS if "secret" in join])
def test_a_listed_view_does_not_open_what_it_reads_itself(database: Path, statement: str) -> None:
    with closing(SQLManager(f"sqlite:///{database}", tables=["clients", "users"])) as manager:
        with pytest.raises(KnowledgeGuardError, match="Only these tables may be read"):
            manager.query(statement)


@pytest.mark.parametrize("name", ["v", '"V"', "[users]", "`secret`", "sqlite_master", "SQLITE_schema"])
def test_a_name_of_the_database_cannot_be_given_to_something_else(database: Path, name: str) -> None:
    with closing(engine_alone(database, ["v"])) as reader:
        with pytest.raises(KnowledgeGuardError, match="This name is that of a table; take another one"):
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
    with closing(SQLManager(f"sqlite:///{database}", tables=["KEY"])) as manager:
        with pytest.raises(KnowledgeGuardError, match="Only these tables may be read: KEY"):
            manager.query(statement)
        assert list(manager.schema()["tables"]) == ['"key"']
    with closing(engine_alone(database, ["KEY"])) as reader, pytest.raises(KnowledgeGuardError):
        reader.fetch(statement, 10, 5)


def test_a_table_is_not_hidden_by_a_name_that_only_looks_like_it(database: Path) -> None:
    with closing(SQLManager(f"sqlite:///{database}", tables=["clients"])) as manager:
        with pytest.raises(KnowledgeGuardError, match=r"Only these tables may be read: clients \(key\)"):
            manager.check_read('WITH "\u212aey" AS (SELECT 1) SELECT * FROM key')
