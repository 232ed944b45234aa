"""The engines behind `SQLManager`, each one entry, so that one suite can ask all of them for what they have in common."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import postgres
import pytest
import trino_statements
from sqlalchemy.engine import make_url

import servers
from agentkernel_kb import KnowledgeBase
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader
from agentkernel_kb.starburst import StarburstManager

SETUP = """
CREATE TABLE countries (code VARCHAR PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE cities (
    id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, country VARCHAR NOT NULL REFERENCES countries (code), population INTEGER
);
CREATE TABLE twins (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
CREATE TABLE secrets (word VARCHAR);
CREATE VIEW hints AS SELECT substr(word, 1, 1) AS initial FROM secrets;
INSERT INTO countries VALUES ('CH', 'Switzerland'), ('DE', 'Germany');
INSERT INTO cities VALUES (1, 'Zürich', 'CH', 443037), (2, 'Berlin', 'DE', 3755251), (3, 'Bern', 'CH', NULL);
INSERT INTO secrets VALUES ('swordfish');
"""
"""The sample of the suite, for engines that know keys."""

WRITES = [
    "DELETE FROM cities",
    "INSERT INTO secrets VALUES ('x')",
    "UPDATE cities SET name = 'x'",
    "DROP TABLE cities",
    "CREATE TABLE x (a INTEGER)",
    "CREATE TEMP TABLE x (a INTEGER)",
    "CREATE TEMP VIEW x AS SELECT 1",
    "ALTER TABLE cities RENAME TO towns",
    "WITH x AS (SELECT 1) DELETE FROM cities",
    "BEGIN",
    "ATTACH ':memory:' AS x",
    "SELECT 1; DELETE FROM cities",
]
"""What no engine may be told through a read."""


@dataclass(frozen=True)
class Database:
    """A database of an engine.

    Attributes:
        url: Its address.
        run: Runs a script that may write.
        state: Returns something that is another when data or schema are.
        is_idle: Tells whether nothing works on it any more.
        path: Its file, where it is one.
    """

    url: str
    run: Callable[[str], None]
    state: Callable[[], object]
    is_idle: Callable[[], bool]
    path: Path = field(default=Path("/nowhere"))

    def manager(self, **options: Any) -> SQLManager:
        """Open it as an application would."""
        return SQLManager(self.url, name="geo", **options)

    def reader(self, tables: Collection[str] | None = None) -> Reader:
        """Open it by the engine's own lock, without the guard."""
        return Reader(lock_for(make_url(self.url), tables=tables, max_value_bytes=1_000_000), "alone")

    def wait_until_idle(self) -> None:
        """Wait until nothing works on it."""
        for _ in range(200):
            if self.is_idle():
                return
            time.sleep(0.02)
        pytest.fail("the engine still works after its deadline")


@dataclass(frozen=True)
class Engine:
    """An engine by what the suite needs of it.

    Attributes:
        name: Its name in URLs.
        schema: The schema whose tables are meant by their names alone.
        open: Makes an empty database, below a folder if it is a file.
        types: How it names types that others call otherwise.
        is_file: A database is a file.
        numbers: A statement with more rows `n` than anybody can wait for.
    """

    name: str
    schema: str
    open: Callable[[Path], AbstractContextManager[Database]]
    types: dict[str, str] = field(default_factory=dict[str, str])
    is_file: bool = True
    numbers: str = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"


def on(engines: Collection[Engine]) -> pytest.MarkDecorator:
    """Return the mark by which a test runs on these engines, on servers with the mark of their server."""
    return pytest.mark.parametrize(
        "engine",
        [
            pytest.param(engine, id=engine.name, marks=[] if engine.is_file else [pytest.mark.server(engine.name)])
            for engine in engines
        ],
    )


def _is_this_process_idle() -> bool:
    before = time.process_time()
    time.sleep(0.05)
    return time.process_time() - before < 0.02


@contextmanager
def _file_of_sqlite(folder: Path) -> Generator[Database]:
    path = folder / "geo graphy.db"

    def run(script: str) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)

    run("")
    yield Database(f"sqlite:///{path}", run, path.read_bytes, _is_this_process_idle, path)


@contextmanager
def _file_of_duckdb(folder: Path) -> Generator[Database]:
    path = folder / "geo graphy.duckdb"

    def run(script: str) -> None:
        with closing(duckdb.connect(path)) as connection:
            connection.execute(script)

    run("")
    yield Database(f"duckdb:///{path}", run, path.read_bytes, _is_this_process_idle, path)


@contextmanager
def _database_of_postgres(folder: Path) -> Generator[Database]:
    with postgres.database(servers.shared("postgres").url) as url:

        def is_idle() -> bool:
            others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
            return postgres.rows(url, others) == [(1,)]

        yield Database(url, lambda script: postgres.run(url, script), lambda: postgres.contents(url), is_idle)


SQLITE = Engine("sqlite", "main", _file_of_sqlite)
DUCKDB = Engine("duckdb", "main", _file_of_duckdb)
POSTGRES = Engine(
    "postgres", "public", _database_of_postgres, {"integer": "INTEGER", "character varying": "VARCHAR"}, is_file=False
)
ALL = (SQLITE, DUCKDB, POSTGRES)
FILES = tuple(engine for engine in ALL if engine.is_file)


# What Trino has in common with them. It is read by a backend of its own, takes no key and no constraint, and its recursions
# end after ten steps, so that its tables and its endless statement are others.

TRINO_TABLES = (
    "countries AS SELECT * FROM (VALUES ('CH', 'Switzerland'), ('DE', 'Germany')) AS t (code, name)",
    "cities AS SELECT * FROM (VALUES (1, 'Zürich', 'CH', 443037), (2, 'Berlin', 'DE', 3755251), (3, 'Bern', 'CH', NULL)) "
    "AS t (id, name, country, population)",
)


@dataclass(frozen=True)
class Source:
    """Tables that are only read, the same in each engine.

    Attributes:
        name: The engine.
        numbers: A statement with more rows `n` than anybody can wait for.
        open: Opens a backend over the tables, below a folder if they are in a file.
        server: The server that it needs, `""` where it needs none.
    """

    name: str
    numbers: str
    open: Callable[[Path], AbstractContextManager[KnowledgeBase]]
    server: str = ""


def _tables_of(engine: Engine) -> Source:
    @contextmanager
    def opened(folder: Path) -> Generator[KnowledgeBase]:
        with engine.open(folder) as made:
            made.run(SETUP)
            with closing(made.manager()) as manager:
                yield manager

    return Source(engine.name, engine.numbers, opened, "" if engine.is_file else engine.name)


@contextmanager
def _tables_of_trino(folder: Path) -> Generator[KnowledgeBase]:
    port = servers.shared("trino").port
    with (
        trino_statements.own_schema(port, *TRINO_TABLES) as schema,
        closing(StarburstManager("127.0.0.1", port, "kb", None, "memory", schema, name="geo")) as manager,
    ):
        yield manager


TRINO = Source(
    "trino",
    "SELECT a.n FROM UNNEST(sequence(1, 10000)) AS a (n) CROSS JOIN UNNEST(sequence(1, 10000)) AS b (m) "
    "CROSS JOIN UNNEST(sequence(1, 10000)) AS c (k)",
    _tables_of_trino,
    "trino",
)
SOURCES = (*map(_tables_of, ALL), TRINO)


def on_sources() -> pytest.MarkDecorator:
    """Return the mark by which a test runs on the tables of each engine, which are kept for a module."""
    marks = {source.name: [pytest.mark.server(source.server)] if source.server else [] for source in SOURCES}
    return pytest.mark.parametrize(
        "source", [pytest.param(source, id=source.name, marks=marks[source.name]) for source in SOURCES], scope="module"
    )
