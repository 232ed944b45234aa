"""`SQLManager` on real SQLite databases (X16): its two locks one by one (X1), honest results (X21), what only SQLite has."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url
from sqlite_geo import SETUP, content, rows

from agentkernel_kb import (
    AKConfigError,
    KnowledgeCapabilities,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.rows import distinct_names
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader


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


# What it is.


def test_it_declares_reading_sql_and_nothing_else(kb: SQLManager) -> None:
    assert kb.capabilities == KnowledgeCapabilities(kinds=["structured"], query=True, query_language="sql", derives_schema=True)
    assert kb.backend_name == "geo"


def test_the_schema_is_compact_and_complete(kb: SQLManager) -> None:
    schema = kb.schema()
    assert {key: schema[key] for key in ("backend", "dialect", "guarded", "tables", "views")} == {
        "backend": "geo",
        "dialect": "sqlite",
        "guarded": True,
        "tables": {
            "cities": "id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL REFERENCES countries(code), "
            'population INTEGER, "land area" REAL | 3 rows',
            "countries": "code TEXT PRIMARY KEY, name TEXT NOT NULL | 2 rows",
            "notes": "body | 2 rows",
            "secrets": "word TEXT | 1 row",
            "twins": "a INTEGER, b INTEGER, note, PRIMARY KEY (a, b) | 0 rows",
        },
        "views": {"big_cities": "name TEXT, country", "hints": "initial"},
    }


def test_a_broken_view_and_a_hostile_name_do_not_hide_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            'CREATE VIEW broken AS SELECT x FROM nowhere; CREATE TABLE "a\n| b""c" ("x\ny" "some\ntype"); CREATE TABLE fine (a)'
        )
    with closing(SQLManager(f"sqlite:///{path}")) as manager:
        schema = manager.schema()
        assert schema["tables"] == {'"a | b""c"': '"x y" NUMERIC | 0 rows', "fine": "a | 0 rows"}
        assert schema["views"] == {"broken": "cannot be described: no such table: main.nowhere"}
        assert manager.get_diagnostics() == ["broken cannot be described: no such table: main.nowhere"]


def test_a_schema_of_thirty_tables_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    with closing(sqlite3.connect(path)) as connection:
        for number in range(30):
            columns = ", ".join(f"column_{i} TEXT" for i in range(10))
            connection.execute(f"CREATE TABLE table_{number} (id INTEGER PRIMARY KEY, {columns})")
    with closing(SQLManager(f"sqlite:///{path}")) as manager:
        assert len(str(manager.schema())) < 8_000


def test_the_description_names_the_backend_and_its_tables(kb: SQLManager, database: Path) -> None:
    assert kb.get_description() == (
        "geo: SQL database (sqlite) with the tables big_cities, cities, countries, hints, notes, secrets, twins"
    )
    with closing(SQLManager(f"sqlite:///{database}", description="Cities of the world.")) as described:
        assert described.get_description() == "sql: Cities of the world."


def test_importing_it_loads_neither_the_parser_nor_the_toolkit() -> None:
    code = "import sys, agentkernel_kb.sql; print(sorted({'sqlalchemy', 'sqlglot'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# What it returns.


def test_rows_are_typed_and_shown_on_one_line(kb: SQLManager) -> None:
    found = kb.query("SELECT id, name, population, \"land area\", x'00ff' AS raw, 'a\nb' AS note FROM cities WHERE id = 3")
    assert list(found) == [
        {
            "text": "id=3, name=Bern, population=NULL, land area=51.6, raw=0x00ff, note=a b",
            "metadata": {
                "row": {"id": 3, "name": "Bern", "population": None, "land area": 51.6, "raw": b"\x00\xff", "note": "a\nb"},
                "source": "geo",
            },
        }
    ]
    assert not found.more


def test_a_name_that_repeats_is_told_from_one_that_looks_like_it() -> None:
    assert distinct_names(["a", "a", "a_2", "a", ""]) == ["a", "a_3", "a_2", "a_4", ""]


def test_results_are_shown_as_a_table(kb: SQLManager) -> None:
    found = kb.query("SELECT name, population, '|' AS bar FROM cities ORDER BY id LIMIT 5")
    assert kb.format_results(found).splitlines() == [
        "| name | population | bar |",
        "| --- | --- | --- |",
        "| Zürich | 443037 | \\| |",
        "| Berlin | 3755251 | \\| |",
        "| Bern | NULL | \\| |",
    ]
    assert kb.format_results([]) == "No relevant knowledge found."
    assert kb.format_results([{"text": "plain"}, *found]).splitlines()[0] == "- plain (source: N/A)"


def test_text_that_is_not_utf_8_is_shown_with_replacement_characters(kb: SQLManager) -> None:
    assert rows(kb, "SELECT CAST(x'61ff62' AS TEXT) AS t") == [{"t": "a\ufffdb"}]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT name FROM cities WHERE name GLOB 'B*' ORDER BY name LIMIT 1", [{"name": "Berlin"}]),
        ("SELECT body FROM notes WHERE notes MATCH 'government'", [{"body": "Bern is the seat of government"}]),
        ("SELECT body FROM notes('largest')", [{"body": "Zürich is the largest city"}]),
        ("SELECT name, country FROM big_cities", [{"name": "Berlin", "country": "DE"}]),
        ("SELECT count(*) AS n FROM big_cities", [{"n": 1}]),
        ("SELECT name FROM pragma_table_info('countries') LIMIT 5", [{"name": "code"}, {"name": "name"}]),
        ("SELECT '{\"a\": [1, 2]}' ->> '$.a[1]' AS x", [{"x": 2}]),
        ("SELECT rank() OVER (ORDER BY population DESC) AS r, name FROM cities LIMIT 1", [{"r": 1, "name": "Berlin"}]),
        ("SELECT 1 AS a UNION SELECT 2 ORDER BY 1 DESC", [{"a": 2}, {"a": 1}]),
        ("VALUES (1, 'x')", [{"column1": 1, "column2": "x"}]),
        ("SELECT instr('abc', 'c') AS i, trim('xax', 'x') AS t, replace('abc', 'b', '') AS r", [{"i": 3, "t": "a", "r": "ac"}]),
        ("SELECT count(*) AS n FROM cities FULL JOIN countries ON code = country", [{"n": 3}]),
        ("SELECT 'a' AS x; -- the end", [{"x": "a"}]),
    ],
)
def test_honest_reads_are_answered(kb: SQLManager, statement: str, expected: list[dict[str, Any]]) -> None:
    assert rows(kb, statement, allow=["notes"]) == expected


def test_explain_and_pragmas_are_answered(kb: SQLManager) -> None:
    plan = rows(kb, "EXPLAIN QUERY PLAN SELECT * FROM cities WHERE id = 1")
    assert [row["detail"] for row in plan] == ["SEARCH cities USING INTEGER PRIMARY KEY (rowid=?)"]
    assert [row["name"] for row in rows(kb, "PRAGMA main.table_info('twins')")] == ["a", "b", "note"]


# What it refuses.


WRITES = [
    "DELETE FROM cities",
    "REPLACE INTO countries VALUES ('CH', 'x')",
    "CREATE TEMP TRIGGER x AFTER INSERT ON cities BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE temp.x USING fts5 (a)",
    "CREATE INDEX x ON cities (name)",
    "EXPLAIN DELETE FROM cities",
    "UPDATE sqlite_master SET sql = 'x'",
    "INSERT INTO notes (notes) VALUES ('optimize')",
    "ATTACH DATABASE '{folder}/attached.db' AS x",
    "VACUUM",
    "VACUUM INTO '{folder}/copy.db'",
    "REINDEX",
    "ANALYZE",
    "SAVEPOINT x",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = WAL",
    "PRAGMA user_version = 5",
    "PRAGMA busy_timeout = 1000000",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA database_list",
    "PRAGMA temp_store_directory = '{folder}'",
    "SELECT load_extension('{folder}/x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT zeroblob(1000)",
    "SELECT json_patch('{{}}', '{{}}')",
    "SELECT file FROM pragma_database_list",
    "SELECT * FROM pragma_journal_mode",
    "SELECT sql FROM sqlite_stmt",
    "SELECT * FROM dbstat",
]


@pytest.mark.parametrize("write", WRITES)
def test_the_guard_alone_refuses(kb: SQLManager, write: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        kb.check_read(write.format(folder="/nowhere"))


@pytest.mark.parametrize("write", WRITES)
def test_the_engine_alone_refuses(engine_alone: Reader, database: Path, write: str) -> None:
    digest, files = _fingerprint(database)
    with pytest.raises((KnowledgeGuardError, KnowledgeQueryError)):
        engine_alone.fetch(write.format(folder=database.parent), 10, 5)
    assert _fingerprint(database) == (digest, files)


def test_the_engine_alone_sends_one_statement(engine_alone: Reader) -> None:
    with pytest.raises(KnowledgeQueryError, match="one statement"):
        engine_alone.fetch("SELECT 1; DELETE FROM cities", 10, 5)


def test_a_battery_of_attacks_changes_no_byte_and_makes_no_file(kb: SQLManager, engine_alone: Reader, database: Path) -> None:
    before = _fingerprint(database)
    attempts: list[Callable[[str], object]] = [
        lambda attack: kb.query(attack, timeout=5),
        lambda attack: engine_alone.fetch(attack, 10, 5),
    ]
    for write in WRITES:
        for attack in (write, f"SELECT 1; {write}", f"/* {write} */ {write}", f"SELECT * FROM ({write})", f"EXPLAIN {write}"):
            for attempt in attempts:
                with suppress(KnowledgeError):
                    attempt(attack.format(folder=database.parent))
    assert _fingerprint(database) == before
    assert rows(kb, "SELECT count(*) AS n FROM cities") == [{"n": 3}]


def _fingerprint(database: Path) -> tuple[str, list[str]]:
    return hashlib.sha256(database.read_bytes()).hexdigest(), sorted(path.name for path in database.parent.iterdir())


def test_the_engine_alone_has_no_regular_expressions(kb: SQLManager) -> None:
    with pytest.raises(KnowledgeQueryError, match=r"no REGEXP\. Use LIKE or GLOB"):
        kb.query("SELECT 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' REGEXP '(a+)+$'")


# Only some tables.


@pytest.fixture
def scoped(database: Path) -> Iterator[SQLManager]:
    manager = SQLManager(f"sqlite:///{database}", tables=["Countries", "hints", "notes", "nowhere"])
    yield manager
    manager.close()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT count(*) FROM hints", 1),
        ("WITH c AS (SELECT * FROM COUNTRIES) SELECT count(*) FROM c", 2),
        ("SELECT count(*) FROM notes WHERE notes MATCH 'bern'", 1),
        ("SELECT count(*) FROM json_each('[1,2]')", 2),
        ("SELECT count(*) FROM pragma_table_info('countries')", 2),
        ("SELECT 'CH' IN (SELECT code FROM main.countries)", 1),
    ],
)
def test_listed_tables_can_be_read(scoped: SQLManager, statement: str, expected: object) -> None:
    assert [list(row.values()) for row in rows(scoped, statement)] == [[expected]]


UNLISTED = [
    "SELECT count(*) FROM secrets WHERE word = 'swordfish'",
    "SELECT word FROM main.secrets",
    'SELECT word FROM "SECRETS"',
    "SELECT 'swordfish' IN secrets",
    "SELECT c0 FROM notes_content WHERE (SELECT 1 FROM secrets WHERE word > 'a')",
    "SELECT sql FROM sqlite_master",
    "SELECT name FROM sqlite_schema",
    "PRAGMA table_info(secrets)",
    "PRAGMA table_list",
    "SELECT * FROM pragma_table_info('secrets')",
    "SELECT * FROM pragma_table_list",
]


@pytest.mark.parametrize("statement", UNLISTED)
def test_other_tables_cannot_be_read(scoped: SQLManager, statement: str) -> None:
    with pytest.raises(KnowledgeGuardError):
        scoped.query(statement)


@pytest.mark.parametrize("statement", UNLISTED)
def test_other_tables_cannot_be_read_past_the_guard(database: Path, statement: str) -> None:
    lock = lock_for(make_url(f"sqlite:///{database}"), tables=["countries", "notes"], max_value_bytes=1_000_000)
    with closing(Reader(lock, "alone")) as reader, pytest.raises(KnowledgeGuardError):
        reader.fetch(statement, 10, 5)


# Mistakes.


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "SELECT qqqq FROM cities",
            "no such column: qqqq. Tables: big_cities, cities, countries, hints, notes, secrets, twins",
        ),
        ("SELECT land area FROM cities", "no such column: land. Did you mean"),
        ("SELECT count(*) FROM cities GROUP BY 7", "GROUP BY term out of range"),
        ("(SELECT 1)", "syntax error"),
    ],
)
def test_a_rejected_statement_says_what_would_work(kb: SQLManager, statement: str, message: str) -> None:
    with pytest.raises(KnowledgeQueryError) as rejection:
        kb.query(statement)
    assert message in str(rejection.value)
    assert isinstance(rejection.value.__cause__, sqlite3.Error)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"])
def test_a_private_in_memory_database_is_an_error_that_names_the_shared_form(url: str) -> None:
    with pytest.raises(AKConfigError, match="cache=shared"):
        SQLManager(url)


def test_a_shared_in_memory_database_is_read_and_not_written() -> None:
    with closing(sqlite3.connect("file:shared-geo?mode=memory&cache=shared", uri=True)) as owner:
        owner.executescript(SETUP)
        with closing(SQLManager("sqlite:///file:shared-geo?mode=memory&cache=shared&uri=true")) as manager:
            assert rows(manager, "SELECT name FROM countries") == [{"name": "Switzerland"}, {"name": "Germany"}]
            lock = lock_for(
                make_url("sqlite:///file:shared-geo?mode=memory&cache=shared&uri=true"), tables=None, max_value_bytes=1_000_000
            )
            with closing(Reader(lock, "alone")) as reader, pytest.raises(KnowledgeGuardError):
                reader.fetch("DELETE FROM countries", 1, 5)
        assert owner.execute("SELECT count(*) FROM countries").fetchone() == (2,)


def test_a_table_locked_by_a_writer_of_a_shared_database_is_an_error() -> None:
    with closing(sqlite3.connect("file:shared-lock?mode=memory&cache=shared", uri=True, isolation_level=None)) as owner:
        owner.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1); BEGIN; UPDATE t SET a = 2;")
        with (
            closing(SQLManager("sqlite:///file:shared-lock?mode=memory&cache=shared&uri=true")) as manager,
            pytest.raises((KnowledgeConnectionError, KnowledgeTimeoutError), match="locked"),
        ):
            manager.query("SELECT a FROM t", timeout=1)


@pytest.mark.parametrize("url", ["file URI", "read-write URI"])
def test_a_url_can_only_narrow(database: Path, url: str) -> None:
    mode = "&mode=rwc" if url == "read-write URI" else ""
    quoted = str(database).replace(" ", "%20")
    lock = lock_for(make_url(f"sqlite:///file:{quoted}?uri=true{mode}"), tables=None, max_value_bytes=1_000_000)
    with closing(Reader(lock, "alone")) as reader:
        assert reader.fetch("SELECT count(*) FROM cities", 1, 5).rows == [(3,)]


@pytest.mark.parametrize("url", ["mysql://kb:hunter2@db.example/x", "oracle://kb:hunter2@db.example/x"])
def test_another_dialect_is_an_error_that_names_the_supported_ones(url: str) -> None:
    with pytest.raises(AKConfigError) as error:
        SQLManager(url)
    assert "Supported: ['duckdb', 'postgresql', 'sqlite']" in str(error.value)
    assert "hunter2" not in repr(error.value)


@pytest.mark.parametrize("url", ["", "no url with hunter2", "kb:hunter2@host/x", 5, None])
def test_what_is_no_url_is_an_error_that_repeats_nothing_of_it(url: Any) -> None:
    with pytest.raises(AKConfigError) as error:
        SQLManager(url, name="geo")
    assert str(error.value) == "SQLManager 'geo' needs a SQLAlchemy URL, such as 'sqlite:///cities.db'."
    assert error.value.__cause__ is None


def test_tables_as_one_string_are_an_error(database: Path) -> None:
    with pytest.raises(AKConfigError, match="a list of names"):
        SQLManager(f"sqlite:///{database}", tables="cities")


def test_the_password_of_a_url_is_not_shown(database: Path) -> None:
    url = make_url(f"sqlite:///{database}").set(username="kb", password="hunter2")
    with closing(SQLManager(url)) as manager:
        assert "hunter2" not in repr(manager) + str(manager.schema()) + manager.get_description()
