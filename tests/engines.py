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
from sqlalchemy.engine import make_url

import servers
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader


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
    """

    name: str
    schema: str
    open: Callable[[Path], AbstractContextManager[Database]]
    types: dict[str, str] = field(default_factory=dict[str, str])
    is_file: bool = True


def on(engines: Collection[Engine]) -> pytest.MarkDecorator:
    """Return the mark by which a test runs on these engines, on servers with the mark of their server."""
    return pytest.mark.parametrize(
        "engine",
        [
            pytest.param(engine, id=engine.name, marks=[] if engine.is_file else [pytest.mark.server("postgres")])
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
