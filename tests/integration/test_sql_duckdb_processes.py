"""DuckDB's file among processes: who has it open, and the engine in processes of its own (X16, X1, X3)."""

from __future__ import annotations

import datetime
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from corpora import duckdb_world
from sqlalchemy.engine import make_url

from agentkernel_kb import (
    KnowledgeConnectionError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of the sample database, made once."""
    return duckdb_world.build(tmp_path_factory.mktemp("template")).read_bytes()


@pytest.fixture
def database(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "observatory.duckdb"
    path.write_bytes(content)
    return path


@pytest.fixture
def kb(database: Path) -> Iterator[SQLManager]:
    manager = duckdb_world.open_backend(database)
    yield manager
    manager.close()


@pytest.fixture
def engine_alone(database: Path) -> Iterator[Reader]:
    """The engine's own lock without the guard."""
    reader = Reader(lock_for(make_url(f"duckdb:///{database}"), tables=None, max_value_bytes=1_000_000), "alone")
    yield reader
    reader.close()


def rows(manager: SQLManager, statement: str, limit: int = 100, **options: Any) -> list[dict[str, Any]]:
    return [record["metadata"]["row"] for record in manager.query(statement, limit, **options)]


# Files.

WRITER = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
"""


def test_a_database_that_another_process_writes_is_an_error_until_it_lets_go(kb: SQLManager, database: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(KnowledgeConnectionError, match=rf"is open for writing in another process \(PID {writer.pid}\)"):
            kb.query("SELECT 1")
        assert kb.get_description() == "observatory: SQL database (duckdb)"
        writer.communicate("\n")
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]


def test_a_database_that_this_process_has_open_otherwise_is_an_error_that_says_so(kb: SQLManager, database: Path) -> None:
    with (
        closing(duckdb.connect(database)),
        pytest.raises(KnowledgeConnectionError, match="This process has the DuckDB database"),
    ):
        kb.query("SELECT 1")


def test_two_managers_read_one_file(kb: SQLManager, database: Path) -> None:
    with closing(SQLManager(f"duckdb:///{database}", tables=["cities"])) as other:
        assert rows(kb, "SELECT 1 AS one") == rows(other, "SELECT 1 AS one") == [{"one": 1}]
    assert rows(kb, "SELECT count(*) AS n FROM cities") == [{"n": 4}]


def test_close_during_a_statement_frees_the_file_once_it_has_ended(kb: SQLManager, database: Path) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        kb.query("SELECT count(*) FROM range(100000000000)", timeout=0.2)
    kb.close()
    for _ in range(100):
        try:
            duckdb.connect(database).close()
        except duckdb.ConnectionException:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the file stays open")


def test_the_driver_is_not_imported_before_a_database_is_opened() -> None:
    code = "import sys, agentkernel_kb.sql; print(sorted({'duckdb', 'sqlalchemy', 'sqlglot'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_is_missing_is_named_by_the_extra_that_brings_all_of_it() -> None:
    code = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from agentkernel_kb.sql import SQLManager\n"
        "try: SQLManager(sys.argv[1])\n"
        "except ImportError as error: print(error.extra)"
    )
    for url, extra in (("duckdb:///x", "duckdb"), ("postgresql://h/d", "postgres"), ("sqlite:///x", "sql")):
        assert (
            subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=True).stdout == f"{extra}\n"
        )


# Processes of its own.

ENDLESS_TEXT = "SELECT length(replace(replace(lpad('a',10000,'a'),'a',lpad('b',10000,'b')),'b','cccccccccc'))"


def test_a_statement_that_nothing_interrupts_ends_near_its_deadline_and_no_other_is_affected(kb: SQLManager) -> None:
    """It is made of constants, and counted by no limit of the engine."""
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]
    with ThreadPoolExecutor() as threads:
        honest = threads.submit(rows, kb, "SELECT count(*) AS n FROM range(300000000) WHERE range % 7 = 3", 1)
        started = time.monotonic()
        with pytest.raises((KnowledgeTimeoutError, KnowledgeQueryError)):
            kb.query(ENDLESS_TEXT, timeout=1)
        assert time.monotonic() - started < 20
        assert honest.result()[0]["n"] > 1_000_000
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]


def test_the_driver_is_not_imported_where_the_engine_does_not_run(database: Path) -> None:
    code = (
        "import sys; from agentkernel_kb.sql import SQLManager\n"
        "kb = SQLManager(sys.argv[1]); kb.query('SELECT 1'); print('duckdb' in sys.modules); kb.close()\n"
        "kb = SQLManager(sys.argv[1], isolate=False); kb.query('SELECT 1'); print('duckdb' in sys.modules); kb.close()"
    )
    done = subprocess.run([sys.executable, "-c", code, f"duckdb:///{database}"], capture_output=True, text=True, check=True)
    assert done.stdout == "False\nTrue\n"


@pytest.mark.parametrize("isolate", [True, False])
def test_values_are_the_same_in_a_process_of_its_own(database: Path, isolate: bool) -> None:
    with closing(SQLManager(f"duckdb:///{database}", isolate=isolate)) as manager:
        found = rows(
            manager,
            "SELECT timestamptz '2024-01-01 00:00:00+02' AS a, time '10:00' AS b, interval 3 days AS c, 1.5::decimal(3, 1) AS d"
            ", '5f0c954e-1111-4a2b-8c3d-0123456789ab'::uuid AS e, '\\x00'::blob AS f, map{1: 'x'} AS g, [1, 2]::int[2] AS h, "
            "170141183460469231731687303715884105727::hugeint AS i, {'a': [NULL, 1.5]} AS j, '101'::bit AS k, NULL AS l",
        )
    (row,) = found
    assert row["a"] == datetime.datetime(2023, 12, 31, 22, tzinfo=datetime.UTC)
    assert str(row["a"].tzinfo) == "Etc/UTC"
    assert list(row.values())[1:] == [
        datetime.time(10),
        datetime.timedelta(days=3),
        Decimal("1.5"),
        uuid.UUID("5f0c954e-1111-4a2b-8c3d-0123456789ab"),
        b"\x00",
        {1: "x"},
        (1, 2),
        2**127 - 1,
        {"a": [None, 1.5]},
        "101",
        None,
    ]
    assert isinstance(row["h"], tuple)


def test_show_tables_lists_the_tables_and_nothing_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with closing(duckdb.connect(path)) as connection:
        connection.execute("CREATE TABLE clients (name VARCHAR)")
    with closing(SQLManager(f"duckdb:///{path}")) as manager:
        assert "clients" in str(list(manager.query("SHOW TABLES")))
        assert "agentkernel" not in str(list(manager.query(" show all tables", limit=50)))
        assert "name" in str(list(manager.query("DESCRIBE clients")))


@pytest.mark.parametrize(
    "statement", ["FROM information_schema.tables", "FROM duckdb_views() SELECT view_name, sql", "FROM pg_catalog.pg_class"]
)
def test_the_catalogue_holds_nothing_of_ours(kb: SQLManager, engine_alone: Reader, statement: str) -> None:
    """Values are measured without a view, on the way of the manager and past the guard."""
    assert "agentkernel" not in str(engine_alone.fetch(statement, 1_000, 10).rows)
    if not statement.endswith("pg_class"):
        assert "agentkernel" not in str(rows(kb, statement, limit=1_000))


def test_a_value_that_python_cannot_hold_is_the_statements_fault(kb: SQLManager) -> None:
    with pytest.raises(KnowledgeQueryError, match="too large for Python"):
        kb.query("SELECT to_days(1000000000)")


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("SELECT [NULL]::INTEGER[100000][1000][1000]", id="lists"),
        pytest.param(f"SELECT array_value(1)::INTEGER[1]{'[100]' * 20}", id="deep lists"),
        pytest.param(f"SELECT NULL::STRUCT(a INT{'[10]' * 200})", id="structs"),
    ],
)
@pytest.mark.parametrize("isolate", [True, False])
def test_an_error_of_the_engines_own_is_the_statements_fault(database: Path, statement: str, isolate: bool) -> None:
    """Three of them in a row would else have the router leave the database alone for everybody."""
    with closing(SQLManager(f"duckdb:///{database}", isolate=isolate)) as manager:
        with pytest.raises(KnowledgeQueryError):
            manager.query(statement)
        assert rows(manager, "SELECT 1 AS one") == [{"one": 1}]
