"""`SQLManager` on real SQLite databases (X16): its two locks one by one (X1), limits and time (X3), honest results (X21)."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from agentkernel_kb import (
    AKConfigError,
    KnowledgeCapabilities,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.rows import distinct_names
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader
from agentkernel_kb.sql.sqlite_functions import LinearFunctions

SETUP = """
CREATE TABLE countries (code TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE cities (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL REFERENCES countries (code), population INT,
    "land area" REAL
);
CREATE TABLE twins (a INT, b INT, note, PRIMARY KEY (a, b));
CREATE TABLE secrets (word TEXT);
CREATE VIEW big_cities AS SELECT name, replace(country, 'C', 'c') AS country FROM cities WHERE population > 500000;
CREATE VIEW hints AS SELECT substr(word, 1, 1) AS initial FROM secrets;
CREATE VIRTUAL TABLE notes USING fts5 (body);
INSERT INTO countries VALUES ('CH', 'Switzerland'), ('DE', 'Germany');
INSERT INTO cities VALUES (1, 'Zürich', 'CH', 443037, 87.9), (2, 'Berlin', 'DE', 3755251, 891.7), (3, 'Bern', 'CH', NULL, 51.6);
INSERT INTO secrets VALUES ('swordfish');
INSERT INTO notes VALUES ('Bern is the seat of government'), ('Zürich is the largest city');
"""
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of the sample database, made once."""
    path = tmp_path_factory.mktemp("template") / "geo.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SETUP)
    return path.read_bytes()


@pytest.fixture
def database(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "geo graphy.db"
    path.write_bytes(content)
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


def rows(manager: SQLManager, statement: str, limit: int = 100, **options: Any) -> list[dict[str, Any]]:
    return [record["metadata"]["row"] for record in manager.query(statement, limit, **options)]


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


def test_the_number_of_described_tables_is_bounded_and_the_rest_counted(database: Path) -> None:
    with closing(SQLManager(f"sqlite:///{database}", described_tables=2)) as manager:
        schema = manager.schema()
        assert [*schema["tables"], *schema["views"]] == ["cities", "big_cities"]
        assert schema["further_tables"] == "5 more tables or views are not described here"


def test_row_counts_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE numbers (n INTEGER)")
        connection.executemany("INSERT INTO numbers VALUES (?)", ((i,) for i in range(10_001)))
        connection.commit()
    with closing(SQLManager(f"sqlite:///{path}")) as manager:
        assert manager.schema()["tables"] == {"numbers": "n INTEGER | more than 10,000 rows"}


def test_a_schema_of_thirty_tables_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    with closing(sqlite3.connect(path)) as connection:
        for number in range(30):
            columns = ", ".join(f"column_{i} TEXT" for i in range(10))
            connection.execute(f"CREATE TABLE table_{number} (id INTEGER PRIMARY KEY, {columns})")
    with closing(SQLManager(f"sqlite:///{path}")) as manager:
        assert len(str(manager.schema())) < 8_000


def test_the_schema_is_read_anew_after_reload(kb: SQLManager, database: Path) -> None:
    before = kb.schema()["tables"]
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE rivers (name TEXT)")
    assert kb.schema()["tables"] == before
    kb.reload()
    assert kb.schema()["tables"] == {**before, "rivers": "name TEXT | 0 rows"}


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


def test_names_of_columns_that_repeat_are_made_distinct(kb: SQLManager) -> None:
    found = rows(kb, "SELECT a.name, c.name, a.name FROM cities a JOIN countries c ON c.code = a.country WHERE a.id = 2")
    assert found == [{"name": "Berlin", "name_2": "Germany", "name_3": "Berlin"}]
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
    ("statement", "options", "count", "more"),
    [
        ("SELECT value FROM json_each('[1,2,3,4,5]')", {}, 3, True),
        ("SELECT value FROM json_each('[1,2,3,4,5]')", {"limit": 5}, 5, False),
        ("SELECT value FROM json_each('[1,2,3]')", {}, 3, False),
        ("SELECT value FROM json_each('[1,2,3,4,5]') LIMIT 4", {}, 4, False),
        ("SELECT value FROM json_each('[1,2,3,4,5]') LIMIT 4", {"max_rows": 2}, 2, True),
        ("SELECT value FROM json_each('[1,2,3,4,5]') LIMIT -1", {}, 5, False),
        ("SELECT value FROM json_each('[1,2,3,4,5]') -- LIMIT 5", {}, 3, True),
        ("SELECT value FROM json_each('[1,2,3,4,5]')", {"limit": 5, "max_rows": 4}, 4, True),
        ("SELECT value FROM json_each('[1,2,3,4,5]') WHERE value > 9", {}, 0, False),
    ],
)
def test_rows_are_bounded_and_it_is_known_whether_there_are_more(
    kb: SQLManager, statement: str, options: dict[str, Any], count: int, more: bool
) -> None:
    found = kb.query(statement, **options)
    assert (len(found), found.more) == (count, more)


def test_a_direct_call_without_max_rows_is_bounded_too(kb: SQLManager) -> None:
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
    found = kb.query(f"{numbers} LIMIT 1000000")
    assert (len(found), found.more) == (1_000, True)
    assert len(kb.query(numbers, limit=1_500)) == 1_500


def test_an_endless_result_is_streamed_and_ended(kb: SQLManager) -> None:
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
    found = kb.query(endless, limit=10)
    assert ([record["metadata"]["row"]["n"] for record in found], found.more) == (list(range(1, 11)), True)


def test_a_page_is_bounded_in_bytes(kb: SQLManager) -> None:
    fat = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT printf('%.*c', 900000, 'x') AS x FROM c"
    found = kb.query(fat, limit=500)
    assert (len(found), found.more) == (18, True)


@pytest.mark.parametrize("limits", [{"limit": 0}, {"limit": -1}, {"max_rows": 0}])
def test_a_limit_below_one_is_an_error(kb: SQLManager, limits: dict[str, Any]) -> None:
    with pytest.raises(AKConfigError, match="at least 1"):
        kb.query("SELECT 1", **limits)


def test_unknown_arguments_are_ignored(kb: SQLManager) -> None:
    assert [record["text"] for record in kb.query("SELECT 1 AS one", color="red")] == ["one=1"]


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


async def test_the_async_twin_answers_the_same(kb: SQLManager) -> None:
    assert [record["text"] for record in await kb.aquery("SELECT name FROM cities", 1, timeout=5)] == ["name=Zürich"]


# What it refuses.

WRITES = [
    "DELETE FROM cities",
    "INSERT INTO secrets VALUES ('x')",
    "UPDATE cities SET name = 'x'",
    "REPLACE INTO countries VALUES ('CH', 'x')",
    "DROP TABLE cities",
    "CREATE TABLE x (a)",
    "CREATE TEMP TABLE x (a)",
    "CREATE TEMP VIEW x AS SELECT 1",
    "CREATE TEMP TRIGGER x AFTER INSERT ON cities BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE temp.x USING fts5 (a)",
    "ALTER TABLE cities RENAME TO towns",
    "CREATE INDEX x ON cities (name)",
    "WITH x AS (SELECT 1) DELETE FROM cities",
    "EXPLAIN DELETE FROM cities",
    "UPDATE sqlite_master SET sql = 'x'",
    "INSERT INTO notes (notes) VALUES ('optimize')",
    "ATTACH DATABASE '{folder}/attached.db' AS x",
    "ATTACH DATABASE ':memory:' AS x",
    "VACUUM",
    "VACUUM INTO '{folder}/copy.db'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "BEGIN EXCLUSIVE",
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


def test_only_the_listed_tables_are_described(scoped: SQLManager) -> None:
    schema = scoped.schema()
    assert (list(schema["tables"]), list(schema["views"])) == (["countries", "notes"], ["hints"])
    assert scoped.get_diagnostics() == ["Table nowhere is not in the database."]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT count(*) AS n FROM countries", 2),
        ("SELECT initial FROM hints", "s"),
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
    "SELECT word FROM secrets",
    "SELECT count(*) FROM secrets WHERE word = 'swordfish'",
    "SELECT * FROM countries, secrets",
    "SELECT (SELECT word FROM secrets) FROM countries",
    "WITH c AS (SELECT word FROM secrets) SELECT * FROM c",
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


def test_a_table_cannot_be_read_under_the_name_of_a_listed_view(scoped: SQLManager) -> None:
    with pytest.raises(KnowledgeGuardError, match="Only these tables may be read"):
        scoped.query("WITH hints AS (SELECT word FROM secrets) SELECT word FROM hints")


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


@pytest.mark.parametrize("call", ["instr({}, {} || 'b')", "replace({}, {} || 'b', 'c')", "trim({}, {} || 'b')"])
def test_one_call_on_large_values_takes_linear_time(kb: SQLManager, call: str) -> None:
    rows(kb, "SELECT length(" + call.format("printf('%.*c', 990000, 'a')", "printf('%.*c', 490000, 'a')") + ")", timeout=20)


def test_the_work_itself_is_stopped(engine_alone: Reader, database: Path) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        engine_alone.fetch(f"SELECT * FROM cities, ({ENDLESS})", 1, 0.2)
    with closing(sqlite3.connect(database, isolation_level=None, timeout=5)) as writer:
        writer.execute("BEGIN EXCLUSIVE")  # No reader is left that holds the database.


def test_without_time_left_nothing_is_sent(kb: SQLManager) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        kb.query("SELECT 1", timeout=0)


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 86_400])
def test_a_time_out_may_be_as_long_as_one_likes(kb: SQLManager, timeout: float) -> None:
    assert rows(kb, "SELECT 1 AS one", timeout=timeout) == [{"one": 1}]


def test_more_endless_statements_than_connections_all_end_in_time(kb: SQLManager) -> None:
    def attempt(_: int) -> str:
        try:
            return kb.query(ENDLESS, timeout=0.5)[0]["text"]
        except KnowledgeTimeoutError:
            return "stopped"

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(attempt, range(20))) == {"stopped"}
    assert rows(kb, "SELECT 1 AS one", timeout=10) == [{"one": 1}]


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


def test_many_threads_get_their_own_answers(kb: SQLManager) -> None:
    def ask(number: int) -> object:
        return rows(kb, f"SELECT {number} AS n, name FROM cities WHERE id = {number % 3 + 1}", timeout=60)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(200)))
    names = ["Zürich", "Berlin", "Bern"]
    assert answers == [[{"n": number, "name": names[number % 3]}] for number in range(200)]


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


# Mistakes.


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT namex FROM cities", "no such column: namex. Did you mean name?"),
        ("SELECT * FROM city", "no such table: city. Did you mean cities?"),
        ("SELECT x.populaton FROM cities AS x", "no such column: x.populaton. Did you mean population?"),
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


def test_a_missing_file_is_named_and_not_created(tmp_path: Path) -> None:
    path = tmp_path / "nothing.db"
    with pytest.raises(AKConfigError, match=r"There is no SQLite database '.*nothing\.db'"):
        SQLManager(f"sqlite:///{path}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"This is a text file and no database.", b"\x00" * 4_096])
def test_a_file_that_is_no_database_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(AKConfigError, match="is not a SQLite database"):
        SQLManager(f"sqlite:///{path}")


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(AKConfigError, match="There is no SQLite database"):
        SQLManager(f"sqlite:///{tmp_path}")


def test_a_damaged_database_is_not_an_empty_one(database: Path) -> None:
    content = bytearray(database.read_bytes())
    content[100:4_000] = b"\xff" * 3_900
    database.write_bytes(content)
    with closing(SQLManager(f"sqlite:///{database}")) as manager:
        with pytest.raises(KnowledgeConnectionError, match="malformed"):
            manager.query("SELECT * FROM cities")
        assert manager.get_description() == "sql: SQL database (sqlite)"


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


def test_after_close_every_call_says_so(kb: SQLManager) -> None:
    kb.close()
    kb.close()
    for call in (lambda: kb.query("SELECT 1"), kb.schema):
        with pytest.raises(KnowledgeStateError, match="'geo' is closed"):
            call()


def test_connect_opens_it_again(kb: SQLManager) -> None:
    kb.close()
    kb.connect()
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]


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
