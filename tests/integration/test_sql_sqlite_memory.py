"""What a statement on SQLite may take of memory and disk, with the guard and past it (X1, X3)."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.sqlite_memory import memory_meter

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
LARGE = "printf('%.*c', 900000, 'a')"
GREEDY = {
    "a JSON array": f"{ENDLESS}, b(y) AS MATERIALIZED (SELECT {LARGE}) SELECT json_group_array((SELECT y FROM b)) FROM c",
    "a JSON object": f"{ENDLESS}, b(y) AS MATERIALIZED (SELECT {LARGE}) SELECT json_group_object(x, (SELECT y FROM b)) FROM c",
    "sorting": f"{ENDLESS} SELECT {LARGE} || x AS y FROM c ORDER BY y",
    "sets": f"{ENDLESS} SELECT DISTINCT {LARGE} || x FROM c LIMIT -1 OFFSET 1000000000",
    "recursion": f"WITH RECURSIVE c(x, y) AS (SELECT 1, '' UNION SELECT x + 1, {LARGE} || x FROM c) SELECT max(x) FROM c",
    "kept rows": f"{ENDLESS}, d AS MATERIALIZED (SELECT x, {LARGE} AS y FROM c) SELECT count(*) FROM d",
    "constants": f"SELECT {' + '.join(f'length(name || {LARGE} || {i})' for i in range(100))} FROM clients",
}
WIDE = f"WITH b(y) AS MATERIALIZED (SELECT {LARGE}) SELECT {', '.join(f'y AS c{i}' for i in range(100))} FROM b"
WIDE_RAW = f"SELECT {', '.join(f'y AS c{i}' for i in range(100))} FROM (SELECT CAST({LARGE} AS BLOB) AS y)"
IN_A_PROCESS = """
import os, resource, sys
from sqlalchemy.engine import make_url
from agentkernel_kb.sql import sqlite
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader

sqlite.MAX_WORKING_BYTES = 32_000_000  # An eighth of what it is, and reached as much earlier.
reader = Reader(lock_for(make_url(sys.argv[1]), tables=None, max_value_bytes=1_000_000), "alone")
reader.fetch("SELECT 1", 1, 5)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    print(len(reader.fetch(sys.argv[2], 20, 50).rows), "rows")
except Exception as error:
    print(type(error).__name__, error)
try:
    with open("/proc/self/status") as status:  # ru_maxrss would count what the process that started this one has in use.
        print(next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM")))
except FileNotFoundError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE clients (name); INSERT INTO clients VALUES ('Acme')")
    return path


@pytest.fixture
def kb(database: Path) -> Iterator[SQLManager]:
    with closing(SQLManager(f"sqlite:///{database}")) as manager:
        yield manager


def in_a_process(database: Path, statement: str) -> tuple[str, int]:
    """Run a statement past the guard, where no byte can be written, and return the outcome and the peak of memory in MB."""
    command = [sys.executable, "-c", IN_A_PROCESS, f"sqlite:///{database}", statement]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    outcome, peak = ended.stdout.splitlines()
    return outcome, int(peak)


@pytest.mark.parametrize("statement", [pytest.param(statement, id=kind) for kind, statement in GREEDY.items()])
def test_a_statement_takes_a_bounded_amount_of_memory_and_no_disk(database: Path, kb: SQLManager, statement: str) -> None:
    kb.check_read(statement)
    outcome, peak = in_a_process(database, statement)
    assert outcome.startswith("KnowledgeQueryError The statement needs more than 32,000,000 bytes of memory.")
    assert peak < 600


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (WIDE, "KnowledgeQueryError A row is larger than 16,000,000 bytes. Select fewer columns or less of them"),
        (WIDE_RAW, "1 rows"),
    ],
    ids=["text", "bytes"],
)
def test_a_row_takes_a_bounded_amount_of_memory(database: Path, statement: str, expected: str) -> None:
    outcome, peak = in_a_process(database, statement)
    assert outcome == expected
    assert peak < 600


def test_a_page_is_bounded_by_the_memory_that_its_rows_take(kb: SQLManager) -> None:
    # A character beyond the basic plane makes Python take four bytes for each character of a text.
    page = kb.query(f"{ENDLESS} SELECT {LARGE} || char(128512) AS y FROM c LIMIT 100", 100, timeout=20)
    assert (len(page), page.more) == (5, True)


def test_what_the_meter_counts_is_sqlites_memory() -> None:
    meter = memory_meter()
    assert meter is not None
    before = meter()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t AS SELECT zeroblob(10000000) AS z")
        assert meter() - before >= 10_000_000


def test_the_time_is_looked_at_while_a_statement_is_prepared(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE wide ({', '.join(f'c{i}' for i in range(1900))})")
    lock = lock_for(make_url(f"sqlite:///{path}"), tables=None, max_value_bytes=1_000_000)
    with lock.make_engine(1).connect() as connection:
        driver = lock.driver(connection)
        with lock.reading(driver, Deadline(0.1), whole=False), pytest.raises(sqlite3.DatabaseError, match="prohibited"):
            lock.rows(driver, " UNION ALL ".join(["SELECT * FROM wide"] * 500), 1)
