"""`SQLManager` on a real PostgreSQL (X16): its lock without the guard (X1), bounds (X3), its catalogue, mistakes explained."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import postgres
import psycopg
import pytest
from sqlalchemy.engine import make_url

import servers
from agentkernel_kb import (
    AKConfigError,
    KnowledgeError,
    KnowledgeGuardError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.locks import lock_for
from agentkernel_kb.sql.reader import Reader

pytestmark = pytest.mark.server("postgres")

SETUP = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN email AS varchar(80) CHECK (VALUE LIKE '%@%');
CREATE TABLE countries (code char(2) PRIMARY KEY, name text NOT NULL);
CREATE TABLE cities (
    id int PRIMARY KEY, name text NOT NULL, country char(2) REFERENCES countries, mayor email, feeling mood, tags text[],
    area numeric(8, 2), UNIQUE (name)
);
CREATE TABLE visits (city int REFERENCES cities, day date, PRIMARY KEY (city, day)) PARTITION BY RANGE (day);
CREATE TABLE visits_2024 PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE "Odd Name" ("Some Column" int, "select" text);
CREATE TABLE cases (n int);
CREATE TABLE "CASES" (n int);
CREATE TABLE secrets (word text);
CREATE SCHEMA sales;
CREATE TABLE sales.orders (id int PRIMARY KEY, city int REFERENCES cities);
CREATE VIEW hints AS SELECT left(word, 1) AS initial FROM secrets;
CREATE VIEW deep AS SELECT initial FROM hints;
CREATE MATERIALIZED VIEW sales.summary AS SELECT count(*) AS orders FROM sales.orders;
CREATE SEQUENCE tickets;
COMMENT ON TABLE cities IS 'Cities and their
mayors';
COMMENT ON COLUMN cities.area IS 'km²';
INSERT INTO countries VALUES ('CH', 'Switzerland');
INSERT INTO cities VALUES (1, 'Bern', 'CH', 'a@bern.example', 'ok', '{capital}', 51.6);
INSERT INTO secrets VALUES ('swordfish');
INSERT INTO cases VALUES (1);
INSERT INTO "CASES" VALUES (2);
CREATE FUNCTION wipe() RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM secrets; RETURN 1; END';
CREATE FUNCTION lost(code text) RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE ''lost'' USING ERRCODE = code; END';
CREATE FUNCTION peek() RETURNS text LANGUAGE sql AS 'SELECT word FROM secrets';
"""


@pytest.fixture(scope="module")
def url(postgres_server: servers.Server) -> Iterator[str]:
    with postgres.database(postgres_server.url, SETUP) as made:
        yield made


@pytest.fixture
def kb(url: str) -> Iterator[SQLManager]:
    with closing(SQLManager(url, name="geo")) as manager:
        yield manager


def lock_alone(url: str, tables: list[str] | None = None) -> Reader:
    """Return the engine's lock without the guard."""
    return Reader(lock_for(make_url(url), tables=tables, max_value_bytes=1_000_000), "alone")


@pytest.fixture
def alone(url: str) -> Iterator[Reader]:
    with closing(lock_alone(url)) as reader:
        yield reader


def rows(manager: SQLManager, statement: str, **options: Any) -> list[dict[str, Any]]:
    return [record["metadata"]["row"] for record in manager.query(statement, 100, **options)]


# What it tells about itself.


def test_the_schema_tells_types_keys_enums_domains_comments_and_rows(kb: SQLManager) -> None:
    schema = kb.schema()
    assert schema["tables"] == {
        '"CASES"': "n integer | 1 row",
        '"Odd Name"': '"Some Column" integer, "select" text | 0 rows',
        "cases": "n integer | 1 row",
        "cities": "id integer PRIMARY KEY, name text NOT NULL, country character(2) REFERENCES countries(code), "
        "mayor email (character varying(80)), feeling mood ('sad', 'ok'), tags text[], area numeric(8,2) (km²) | 1 row | "
        "Cities and their mayors",
        "countries": "code character(2) PRIMARY KEY, name text NOT NULL | 1 row",
        "sales.orders": "id integer PRIMARY KEY, city integer REFERENCES cities(id) | 0 rows",
        "secrets": "word text | 1 row",
        "visits": "city integer NOT NULL REFERENCES cities(id), day date NOT NULL, PRIMARY KEY (city, day) | 0 rows",
    }
    assert schema["views"] == {"deep": "initial text", "hints": "initial text", "sales.summary": "orders bigint"}


def test_many_rows_are_the_servers_estimate(url: str) -> None:
    postgres.run(url, "CREATE TABLE many AS SELECT n FROM generate_series(1, 20000) AS s(n); ANALYZE many")
    with closing(SQLManager(url, tables=["many"])) as manager:
        assert manager.schema()["tables"] == {"many": "n integer | about 20,000 rows"}
    postgres.run(url, "DROP TABLE many")


def test_what_the_login_may_not_read_is_not_listed(url: str) -> None:
    with postgres.login(url) as limited:
        postgres.run(url, f"GRANT SELECT (name) ON cities TO {make_url(limited).username}")
        with closing(SQLManager(limited)) as manager:
            assert manager.schema()["tables"] == {"cities": "name text NOT NULL | Cities and their mayors"}
            with pytest.raises(KnowledgeGuardError, match=r"The database refused: permission denied for table secrets"):
                manager.query("SELECT word FROM secrets")


def test_ping_tells_the_version(kb: SQLManager) -> None:
    assert kb.ping(timeout=10).startswith("postgres 1")


# The lock without the guard.


@pytest.mark.parametrize(
    "write",
    [
        "DELETE FROM secrets",
        "INSERT INTO secrets VALUES ('x')",
        "WITH gone AS (DELETE FROM secrets RETURNING *) SELECT * FROM gone",
        "EXPLAIN ANALYZE DELETE FROM secrets",
        "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1",
        "SELECT wipe()",
        "SELECT * FROM wipe()",
        "SELECT nextval('tickets')",
        "SELECT setval('tickets', 9)",
        "SELECT lo_create(0)",
        "SELECT * INTO other FROM secrets",
        "SELECT word FROM secrets FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', true), wipe()",
        "SELECT 1; DELETE FROM secrets",
        "COMMIT",
        "COPY secrets TO '/tmp/secrets'",
        "DO $$ BEGIN DELETE FROM secrets; END $$",
        "BEGIN READ WRITE",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "CALL cleanup()",
        "PREPARE p AS DELETE FROM secrets",
        "",
    ],
)
def test_the_engine_alone_refuses_as_a_login_that_may_write(alone: Reader, url: str, write: str) -> None:
    with pytest.raises((KnowledgeGuardError, KnowledgeQueryError)):
        alone.fetch(write, 10, 5)
    assert postgres.rows(url, "SELECT word FROM secrets") == [("swordfish",)]


def test_nothing_of_one_call_is_left_for_the_next(alone: Reader) -> None:
    alone.fetch("SELECT set_config('search_path', 'sales', false), set_config('app.x', 'left', false)", 1, 5)
    alone.fetch("SELECT pg_advisory_lock(42)", 1, 5)
    found = alone.fetch("SELECT current_setting('search_path'), current_setting('app.x', true)", 1, 5)
    assert found.rows[0][0] == "pg_catalog, public, pg_temp"
    assert found.rows[0][1] in (None, "")
    held = alone.fetch("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()", 1, 5)
    assert held.rows == [(0,)]


def test_strings_end_where_the_guard_takes_them_to_end(url: str) -> None:
    name = url.rpartition("/")[2]
    postgres.run(url, f"ALTER DATABASE {name} SET standard_conforming_strings = off")
    try:
        with closing(lock_alone(url)) as reader:
            assert reader.fetch(r"SELECT 'a\', ' b'", 1, 5).rows == [("a\\", " b")]
    finally:
        postgres.run(url, f"ALTER DATABASE {name} RESET standard_conforming_strings")


def test_a_function_in_front_of_the_engines_own_is_not_called(url: str) -> None:
    postgres.run(url, "CREATE FUNCTION lower(text) RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$")
    try:
        options = "?options=-csearch_path%3Dpublic,pg_catalog"
        with closing(SQLManager(url + options)) as manager:
            assert rows(manager, "SELECT lower('A'::text) AS a") == [{"a": "a"}]
    finally:
        postgres.run(url, "DROP FUNCTION public.lower(text)")


# Only some tables.

LISTED = ["countries", "deep", "sales.orders", "CASES"]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT count(*) FROM countries", 1),
        ("SELECT count(*) FROM public.COUNTRIES", 1),
        ("SELECT initial FROM deep", "s"),
        ("SELECT count(*) FROM sales.orders", 0),
        ('SELECT n FROM "CASES"', 2),
        ("WITH secrets AS (SELECT 1 AS word) SELECT word FROM secrets", 1),
    ],
)
def test_listed_tables_can_be_read(url: str, statement: str, expected: object) -> None:
    with closing(SQLManager(url, tables=LISTED)) as manager:
        assert [list(row.values()) for row in rows(manager, statement)] == [[expected]]


UNLISTED = [
    "SELECT word FROM secrets",
    "SELECT * FROM countries, public.secrets",
    "SELECT (SELECT word FROM secrets) FROM countries",
    "SELECT count(*) FROM countries WHERE EXISTS (SELECT FROM secrets)",
    "WITH secrets AS (SELECT word FROM secrets) SELECT word FROM secrets",
    "EXPLAIN SELECT word FROM secrets",
    "SELECT * FROM cities NATURAL JOIN countries",
    "SELECT relname FROM pg_class",
    "SELECT table_name FROM information_schema.tables",
    "SELECT orders FROM sales.summary",
    "TABLE secrets",
]


@pytest.mark.parametrize("statement", UNLISTED)
def test_other_tables_cannot_be_read(url: str, statement: str) -> None:
    with closing(SQLManager(url, tables=LISTED)) as manager, pytest.raises(KnowledgeGuardError):
        manager.query(statement)


@pytest.mark.parametrize("statement", [*UNLISTED, "SELECT n FROM cases"])
def test_other_tables_cannot_be_read_past_the_guard(url: str, statement: str) -> None:
    with (
        closing(lock_alone(url, ["countries", "sales.orders", "CASES"])) as reader,
        pytest.raises(KnowledgeGuardError, match="may not be read"),
    ):
        reader.fetch(statement, 10, 5)


def test_tables_that_are_listed_and_missing_are_named(url: str) -> None:
    with closing(SQLManager(url, tables=["sales.orders", "visits_2024", "nowhere"])) as manager:
        assert list(manager.schema()["tables"]) == ["sales.orders", "visits_2024"]
        assert manager.get_diagnostics() == ["Table nowhere is not in the database."]


# Bounds.


def test_ten_million_rows_take_no_memory_for_three(kb: SQLManager) -> None:
    rows(kb, "SELECT 1")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wide = "SELECT n, repeat('x', 1000) FROM generate_series(1, 200000) AS s(n)"
    for statement in ("SELECT generate_series(1, 10000000) AS n", wide):
        found = kb.query(statement, 3)
        assert (len(found), found.more) == (3, True)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 50_000


def test_the_server_stops_at_the_deadline(kb: SQLManager, url: str) -> None:
    with pytest.raises(KnowledgeTimeoutError, match="was stopped after"):
        kb.query("SELECT count(*) FROM generate_series(1, 100000000000)", timeout=0.5)
    running = "state = 'active' AND query LIKE '%0000)%' AND pid <> pg_backend_pid()"
    left = f"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {running}"
    assert postgres.rows(url, left) == [(0,)]


def test_a_table_that_a_writer_holds_ends_in_a_time_out(kb: SQLManager, url: str) -> None:
    with psycopg.connect(url) as writer:
        writer.execute("LOCK TABLE secrets IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(KnowledgeTimeoutError, match="locked by a writer"):
            kb.query("SELECT word FROM secrets", timeout=1)
        writer.rollback()
    assert rows(kb, "SELECT word FROM secrets", timeout=20) == [{"word": "swordfish"}]


# Mistakes.


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT nam FROM cities", 'column "nam" does not exist (position 7). Perhaps you meant to reference the column '),
        ("SELECT nam FROM cities", "Did you mean name?"),
        ("SELECT * FROM sales.order", 'relation "sales.order" does not exist (position 14). Did you mean sales.orders or '),
        ("SELECT * FROM oddname", 'Did you mean "Odd Name"'),
        ("SELECT * FROM qqqq", "Tables: "),
        ("SELECT c.populaton FROM cities AS c", "column c.populaton does not exist (position 7)"),
        ("SELECT 'x'::int", 'invalid input syntax for type integer: "x" (position 7)'),
        ("SELECT 1 / 0", "division by zero"),
        ("SELECT name || 1 = 2 FROM cities", "operator does not exist: text = integer (position 17)"),
        ("SELECT count(*), name FROM cities", "must appear in the GROUP BY clause"),
        ("SELECT reverse(1)", "function reverse(integer) does not exist"),
        ("SELECT '{'::json", "invalid input syntax for type json"),
    ],
)
def test_a_rejected_statement_says_what_and_where(kb: SQLManager, statement: str, message: str) -> None:
    with pytest.raises(KnowledgeQueryError) as rejection:
        kb.query(statement)
    assert message in str(rejection.value)


# Addresses.


@pytest.mark.parametrize("driver", ["postgresql", "postgresql+psycopg"])
def test_both_spellings_of_the_address_are_taken(url: str, driver: str) -> None:
    with closing(SQLManager(url.replace("postgresql", driver, 1))) as manager:
        assert rows(manager, "SELECT 1 AS one") == [{"one": 1}]


def test_another_driver_is_an_error_that_names_ours() -> None:
    with pytest.raises(AKConfigError, match=r"write 'postgresql://', not 'postgresql\+asyncpg://'"):
        SQLManager("postgresql+asyncpg://kb:hunter2@db.example/x", connect="lazy")


@pytest.mark.parametrize("query", ["nonsense=hunter2", "connect_timeout=hunter2", "client_encoding=LATIN1", "port=hunter2"])
def test_a_parameter_that_is_none_is_an_error_without_its_value(query: str) -> None:
    with pytest.raises(KnowledgeError) as error:
        SQLManager(f"postgresql://kb:hunter2@127.0.0.1:1/x?{query}", connect="lazy").ping(timeout=5)
    assert "hunter2" not in f"{error.value!r} {error.value}"


@pytest.mark.parametrize("password", ["a@hunter2", "a@hunter2/b", "a/@hunter2", "@hunter2"])
def test_a_password_that_is_taken_for_a_host_is_an_error_that_does_not_show_it(password: str) -> None:
    with pytest.raises(AKConfigError, match="an '@' too many: in a user or password it is written %40") as error:
        SQLManager(f"postgresql://kb:{password}@127.0.0.1:1/x", connect="lazy")
    assert "hunter2" not in str(error.value)


def test_a_password_that_is_taken_for_a_host_and_a_parameter_is_an_error_that_does_not_show_it() -> None:
    with pytest.raises(AKConfigError, match="needs a SQLAlchemy URL") as error:
        SQLManager("postgresql://kb:a@hunter2?b@127.0.0.1:1/x", connect="lazy")
    assert "hunter2" not in str(error.value)


def test_close_ends_the_connections_on_the_server(url: str) -> None:
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'closing'"
    manager = SQLManager(f"{url}?application_name=closing")
    assert postgres.rows(url, count) == [(1,)]
    manager.close()
    for _ in range(100):
        if postgres.rows(url, count) == [(0,)]:
            return
    pytest.fail("a connection is left")


@pytest.mark.parametrize("code", ["08001", "08006", "28P01", "3D000", "53300", "57P03"])
def test_a_connection_that_fails_inside_of_a_statement_is_not_the_backends(kb: SQLManager, code: str) -> None:
    with pytest.raises(KnowledgeQueryError, match="lost"):
        kb.query(f"SELECT lost('{code}')", allow=["lost"])
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]
