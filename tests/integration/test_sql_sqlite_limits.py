"""What bounds a statement on SQLite (X3): time, sizes, and functions that replace those of the engine that take too long."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import make_url
from sqlite_geo import ENDLESS, content, rows

from agentkernel_kb import (
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader
from agentkernel_kb.sql.sqlite_functions import LinearFunctions


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "geo graphy.db"
    path.write_bytes(content())
    return path


@pytest.fixture
def kb(database: Path) -> Iterator[SQLManager]:
    manager = SQLManager(f"sqlite:///{database}", name="geo")
    yield manager
    manager.close()


@pytest.fixture
def engine_alone(database: Path) -> Iterator[Reader]:
    """The engine's lock without the guard."""
    reader = Reader(lock_for(make_url(f"sqlite:///{database}"), tables=None, max_value_bytes=1_000_000), "alone")
    yield reader
    reader.close()


# A LIMIT for statements that have none.


def test_of_many_sorted_rows_only_those_that_are_asked_for_are_kept(kb: SQLManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentkernel_kb.sql.sqlite.MAX_WORKING_BYTES", 8_000_000)
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 20000)"
    sorted_rows = f"{numbers} SELECT n, printf('%1000d', n) AS wide FROM c ORDER BY wide DESC"
    found = kb.query(sorted_rows, limit=2)
    assert ([record["metadata"]["row"]["n"] for record in found], found.more) == ([20000, 19999], True)
    with pytest.raises(KnowledgeQueryError, match="bytes of memory"):
        kb.query(f"{sorted_rows} LIMIT 20000")


# Time.


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(ENDLESS, id="recursion"),
        pytest.param("SELECT count(*) FROM cities a, cities b, cities c, notes d, (" + ENDLESS + ") e", id="join"),
        pytest.param(
            "SELECT max(instr(printf('%.*c', 999000, 'a'), printf('%.*c', 499000 + n, 'a') || 'b')) FROM "
            "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c)",
            id="quadratic function",
        ),
        pytest.param(
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c ORDER BY n DESC", id="sort"
        ),
    ],
)
def test_a_statement_is_stopped_at_its_deadline(kb: SQLManager, statement: str) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        kb.query(statement, timeout=0.3)
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.parametrize(
    "call",
    [
        "printf('%.2000000000c', 'x')",
        "format('%.*c', 2e9, 'x')",
        "printf('%d%.*c', 1, '2000000000', 'x')",
        "printf('%*.*c', 5, 1e16, 'x')",
        "printf('%%%*d%.*c', 3, 7, -2000000000, 'x')",
        "printf('%.999999c%.999999c', 'x', 'x')",
        "printf('%2000000000d', 1)",
    ],
)
def test_a_padding_that_is_too_large_is_an_error_at_once(kb: SQLManager, call: str) -> None:
    with pytest.raises(KnowledgeQueryError, match=r"larger than 1,000,000 bytes"):
        kb.query(f"SELECT {call}", timeout=5)


def test_a_short_format_is_filled_in(kb: SQLManager) -> None:
    assert rows(kb, "SELECT printf('%*d|%.3s|%,d|%.*c', 3, 7, 'abcdef', 12345, 4, '=') AS f, format(NULL) AS n") == [
        {"f": "  7|abc|12,345|====", "n": None}
    ]


@pytest.mark.parametrize(
    "call",
    ["instr({}, {} || 'b')", "replace({}, {} || 'b', 'c')", "trim({}, {} || 'b')", "unhex(replace({}, 'a', 'x'), {} || 'x')"],
)
def test_one_call_on_large_values_takes_linear_time(kb: SQLManager, call: str) -> None:
    rows(kb, "SELECT length(" + call.format("printf('%.*c', 990000, 'a')", "printf('%.*c', 490000, 'a')") + ")", timeout=20)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("unhex('4142-43', '-')", b"ABC"),
        ("unhex('-4a 4B-', '- ')", b"JK"),
        ("unhex('4142', '4')", b"AB"),
        ("unhex('', '-')", b""),
        ("unhex('4-1', '-')", None),
        ("unhex('411', '-')", None),
        ("unhex('41 42', '-')", None),
        ("unhex(NULL, '-')", None),
        ("unhex('41', NULL)", None),
    ],
)
def test_unhex_is_that_of_the_manual(kb: SQLManager, call: str, expected: bytes | None) -> None:
    assert rows(kb, f"SELECT {call} AS bytes") == [{"bytes": expected}]


PATTERNS = """
    SELECT count(*) FROM cities, (
        WITH RECURSIVE c(n, v) AS (SELECT 1, printf('%.*c', 990000, 'a') UNION ALL SELECT n + 1, v FROM c) SELECT v FROM c
    ) WHERE v {}
"""


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(f"SELECT * FROM cities, ({ENDLESS})", id="recursion"),
        pytest.param(PATTERNS.format(f"LIKE '%{'a' * 120}b%'"), id="patterns"),
        pytest.param(PATTERNS.format(f"GLOB '*{'[a]' * 38}b*'"), id="sets of characters"),
    ],
)
def test_the_work_itself_is_stopped(engine_alone: Reader, database: Path, statement: str) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        engine_alone.fetch(statement, 1, 0.2)
    with closing(sqlite3.connect(database, isolation_level=None, timeout=5)) as writer:
        writer.execute("BEGIN EXCLUSIVE")  # No reader is left that holds the database.


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 86_400])
def test_a_time_out_may_be_as_long_as_one_likes(kb: SQLManager, timeout: float) -> None:
    assert rows(kb, "SELECT 1 AS one", timeout=timeout) == [{"one": 1}]


def test_a_writer_that_holds_the_database_ends_in_a_time_out(kb: SQLManager, database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(KnowledgeTimeoutError, match=r"locked by a writer for 0\.3 s"):
            kb.query("SELECT * FROM cities", timeout=0.3)
        writer.execute("ROLLBACK")
    assert len(kb.query("SELECT * FROM cities")) == 3


def test_a_writer_that_lets_go_in_time_only_delays(kb: SQLManager, database: Path) -> None:
    writer = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.3, lambda: writer.execute("ROLLBACK"))
    release.start()
    assert len(kb.query("SELECT * FROM cities", timeout=20)) == 3
    release.join()
    writer.close()


def test_a_database_with_a_write_ahead_log_is_read_beside_its_writer(kb: SQLManager, database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM cities")
        assert rows(kb, "SELECT count(*) AS n FROM cities", timeout=10) == [{"n": 3}]
        writer.execute("COMMIT")
        assert rows(kb, "SELECT count(*) AS n FROM cities", timeout=10) == [{"n": 0}]


# Sizes.


def test_a_value_that_is_too_large_is_an_error_that_says_so(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("INSERT INTO secrets VALUES (?)", ("x" * 20_000,))
        connection.commit()
    with closing(SQLManager(f"sqlite:///{database}", max_value_bytes=10_000)) as manager:
        with pytest.raises(KnowledgeQueryError, match="larger than 10,000 bytes"):
            manager.query("SELECT word FROM secrets")
        assert rows(manager, "SELECT length(replace('abc', 'b', 'x')) AS n") == [{"n": 3}]
        with pytest.raises(KnowledgeQueryError, match="larger than 10,000 bytes"):
            manager.query("SELECT replace(printf('%.*c', 9000, 'a'), 'a', 'abc')")


def test_a_row_has_a_bounded_number_of_columns(kb: SQLManager) -> None:
    with pytest.raises(KnowledgeQueryError, match="too many columns"):
        kb.query("SELECT " + ", ".join(["1"] * 500))


def test_a_wide_table_can_be_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE wide ({', '.join(f'c{i}' for i in range(900))})")
        connection.execute("INSERT INTO wide (c0) VALUES (1)")
        connection.commit()
    with closing(SQLManager(f"sqlite:///{path}")) as manager:
        assert len(rows(manager, "SELECT * FROM wide, wide AS other")[0]) == 1_800


# The replaced functions give what SQLite gives.


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text("ab é🏙", max_size=6),
    st.text("ab", max_size=6).map(str.encode),
)


@given(
    call=st.sampled_from(["instr(a, b)", "replace(a, b, c)", "trim(a, b)", "ltrim(a, b)", "rtrim(a, b)"]),
    a=VALUES,
    b=VALUES,
    c=VALUES,
)
@settings(max_examples=300, deadline=None)
def test_the_linear_functions_agree_with_the_native_ones(call: str, a: object, b: object, c: object) -> None:
    assume(not (isinstance(a, int | float) and b in ("", b"")))  # Versions of SQLite differ in the type of the result.
    functions = LinearFunctions(lambda: None, 1_000)
    with closing(functions), closing(sqlite3.connect(":memory:")) as native, closing(sqlite3.connect(":memory:")) as replaced:
        functions.install(replaced)
        statement = f"WITH given(a, b, c) AS (SELECT ?, ?, ?) SELECT {call}, typeof({call}) FROM given"
        assert replaced.execute(statement, (a, b, c)).fetchone() == native.execute(statement, (a, b, c)).fetchone()


@given(
    form=st.text("%%%.*-+0,!l27cdfsqz é", max_size=12),
    values=st.lists(st.one_of(st.none(), st.integers(-50, 50), st.floats(-50, 50), st.text("a é5", max_size=3)), max_size=5),
)
@settings(max_examples=300, deadline=None)
def test_the_bounded_format_agrees_with_the_native_one(form: str, values: list[Any]) -> None:
    assume(not re.search("[0-9]{3}", form))
    functions = LinearFunctions(lambda: None, 10_000)
    with closing(functions), closing(sqlite3.connect(":memory:")) as native, closing(sqlite3.connect(":memory:")) as replaced:
        functions.install(replaced)
        statement = f"SELECT printf({', '.join('?' * (len(values) + 1))})"
        given = (form, *values)
        assert replaced.execute(statement, given).fetchone() == native.execute(statement, given).fetchone()
