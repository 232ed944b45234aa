"""`SQLManager` on DuckDB files (X16): what only this engine has. Its locks one by one (X1), its types, its files.

What it shares with other engines is in `test_sql_engines.py`.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import time
import uuid
from collections.abc import Collection, Iterator
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
    AKConfigError,
    KnowledgeConnectionError,
    KnowledgeGuardError,
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
    (tmp_path / "store").mkdir()
    path = tmp_path / "store" / "observatory.duckdb"
    path.write_bytes(content)
    return path


@pytest.fixture
def kb(database: Path) -> Iterator[SQLManager]:
    manager = duckdb_world.open_backend(database)
    yield manager
    manager.close()


def reader_of(database: Path, tables: Collection[str] | None = None) -> Reader:
    """Return the engine's own lock without the guard."""
    return Reader(lock_for(make_url(f"duckdb:///{database}"), tables=tables, max_value_bytes=1_000_000), "alone")


@pytest.fixture
def engine_alone(database: Path) -> Iterator[Reader]:
    reader = reader_of(database)
    yield reader
    reader.close()


def rows(manager: SQLManager, statement: str, limit: int = 100, **options: Any) -> list[dict[str, Any]]:
    return [record["metadata"]["row"] for record in manager.query(statement, limit, **options)]


# What it is and returns.


def test_the_schema_has_comments_keys_other_schemas_and_quoted_names(kb: SQLManager) -> None:
    schema = kb.schema()
    assert schema["dialect"] == "duckdb"
    assert schema["tables"]["cities"] == (
        "id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, country VARCHAR NOT NULL REFERENCES countries(code), "
        'population BIGINT (inhabitants, latest census), "land area" DOUBLE, place STRUCT(lat DOUBLE, lon DOUBLE), '
        "founded DATE | 4 rows | Cities with their land area in km²"
    )
    assert schema["tables"]['"order"'] == (
        '"group" VARCHAR, "select" INTEGER, "from date" DATE, "drop""s" VARCHAR, set INTEGER, delete BOOLEAN | 2 rows'
    )
    assert schema["tables"]["sales.orders"].startswith("id INTEGER PRIMARY KEY, customer VARCHAR, total DECIMAL(12,2)")
    assert schema["views"] == {"large_cities": "name VARCHAR, country VARCHAR"}


def test_a_long_type_is_shortened_in_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "long.duckdb"
    with closing(duckdb.connect(path)) as connection:
        connection.execute(f"CREATE TABLE t (e ENUM ({', '.join(repr(f'value {i}') for i in range(500))}))")
    with closing(SQLManager(f"duckdb:///{path}")) as manager:
        assert len(manager.schema()["tables"]["t"]) < 250


def test_every_type_becomes_a_value(kb: SQLManager) -> None:
    found = rows(
        kb, "SELECT d.*, o.placed, o.lead_time, o.total FROM documents AS d, sales.orders AS o WHERE size > 0 AND o.id = 1"
    )
    assert found == [
        {
            "id": uuid.UUID("5f0c954e-1111-4a2b-8c3d-0123456789ab"),
            "body": '{"title": "Insert coin", "tags": ["drop", "update"], "size": {"kb": 4}}',
            "raw": b"\x00\xff",
            "embedding": pytest.approx((0.1, 0.2, 0.3, 0.4)),
            "size": 170141183460469231731687303715884105727,
            "mixed": 7,
            "mask": "10110",
            "placed": datetime.datetime(2024, 1, 5, 10, tzinfo=datetime.UTC),
            "lead_time": datetime.timedelta(days=3),
            "total": Decimal("149.90"),
        }
    ]


def test_nested_values_are_shown_as_json_and_long_vectors_by_their_length(kb: SQLManager) -> None:
    found = kb.query("SELECT code, languages, facts, links FROM countries WHERE code = 'DE'")
    assert kb.format_results(found).splitlines()[2] == '| DE | ["de"] | {"capital": "Berlin", "founded": 1949} | {} |'
    vector = kb.query("SELECT range(400)::FLOAT[] AS embedding")
    assert "400 numbers" in kb.format_results(vector)


def test_every_type_of_the_engine_can_be_returned_and_shown(engine_alone: Reader) -> None:
    fetched = engine_alone.fetch("SELECT * EXCLUDE (bignum) FROM test_all_types()", 10, 20)
    assert len(fetched.rows) == 3


@pytest.mark.parametrize(
    "statement",
    ["SELECT repeat('x', 9999) || 'yz' AS v", "SELECT range(9999) AS v", "SELECT {'a': [repeat('x', 9999), 'yz']} AS v"],
)
def test_values_of_any_shape_are_measured_before_python_has_them(database: Path, statement: str) -> None:
    with (
        closing(SQLManager(f"duckdb:///{database}", max_value_bytes=10_000)) as manager,
        pytest.raises(KnowledgeQueryError, match="larger than 10,000 bytes"),
    ):
        manager.query(statement)


def test_a_pivot_whose_columns_come_from_the_data_is_answered(kb: SQLManager) -> None:
    found = rows(kb, "FROM (PIVOT readings ON station USING max(celsius) GROUP BY taken) ORDER BY taken LIMIT 1")
    assert found == [{"taken": datetime.datetime(2024, 1, 1), "north": -3.5, "south": 14.0}]


def test_explain_analyze_of_a_read_is_answered(kb: SQLManager) -> None:
    assert "Total Time" in rows(kb, "EXPLAIN ANALYZE SELECT count(*) FROM cities")[0]["explain_value"]


def test_describe_and_show_are_answered(kb: SQLManager) -> None:
    assert [row["column_name"] for row in rows(kb, "DESCRIBE sales.orders")][:2] == ["id", "customer"]
    assert {"name": "cities"} in rows(kb, "SHOW TABLES")


# The engine without the guard.

NOT_EVEN_PAST_THE_GUARD = [
    "SET threads = 1",
    "SET VARIABLE x = 1",
    "USE sales",
    "PREPARE p AS SELECT 1",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "CREATE TEMP TABLE x AS SELECT 1",
    "WITH x AS (DELETE FROM cities RETURNING *) FROM x",
    "EXPLAIN ANALYZE DELETE FROM cities",
    "SELECT nextval('tickets')",
    "ATTACH '{folder}/other.duckdb' AS other",
    "ATTACH '{database}' AS again",
    "UPDATE EXTENSIONS",
    "CONNECT '{folder}/other.duckdb'",
    "COPY cities TO '{folder}/copy.csv'",
    "COPY (PIVOT cities ON country) TO '{folder}/copy.csv'",
    "EXPORT DATABASE '{folder}/all'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE SECRET s (TYPE http)",
    "FROM '{folder}/canary.csv'",
    "FROM read_text('{folder}/canary.csv')",
    "FROM glob('{folder}/*')",
    "FROM read_csv('http://127.0.0.1:1/x.csv')",
    "FROM query('DROP TABLE cities')",
    "SELECT 1; SELECT 2",
    "",
]


@pytest.mark.parametrize("statement", NOT_EVEN_PAST_THE_GUARD)
def test_the_engine_alone_refuses(engine_alone: Reader, database: Path, statement: str) -> None:
    (database.parent.parent / "canary.csv").write_text("word\nswordfish\n")
    before = duckdb_world.fingerprint(database)
    with pytest.raises((KnowledgeGuardError, KnowledgeQueryError)) as refusal:
        engine_alone.fetch(statement.format(folder=database.parent.parent, database=database), 10, 5)
    assert "swordfish" not in str(refusal.value)
    assert duckdb_world.fingerprint(database) == before


def test_the_engine_alone_sees_no_variables_of_python(engine_alone: Reader) -> None:
    secrets = [{"word": "swordfish"}]
    with pytest.raises(KnowledgeQueryError, match="secrets does not exist"):
        engine_alone.fetch("SELECT * FROM secrets", 10, 5)
    assert secrets


def test_what_a_statement_leaves_in_its_session_is_gone_for_the_next_one(engine_alone: Reader) -> None:
    engine_alone.fetch("PIVOT readings ON station USING avg(celsius)", 10, 5)  # The engine makes a temporary type for it.
    assert engine_alone.fetch(
        "SELECT count(*) FROM duckdb_types() WHERE NOT internal AND database_name = 'temp'", 1, 5
    ).rows == [(0,)]


def test_a_list_of_tables_knows_schemas_and_looks_behind_views(database: Path) -> None:
    with closing(SQLManager(f"duckdb:///{database}", tables=["sales.orders", "large_cities"])) as manager:
        assert (list(manager.schema()["tables"]), list(manager.schema()["views"])) == (["sales.orders"], ["large_cities"])
        assert rows(manager, "SELECT count(*) AS n FROM sales.orders") == [{"n": 3}]
        assert rows(manager, "SELECT count(*) AS n FROM large_cities") == [{"n": 2}]
        for statement in (
            "FROM orders",
            "FROM cities",
            "FROM observatory.main.cities",
            "DESCRIBE cities",
            "SUMMARIZE cities",
            "SHOW TABLES",
            "FROM duckdb_tables()",
            "FROM information_schema.tables",
            "FROM sqlite_master",
            "FROM pragma_table_info('cities')",
            "SELECT enum_range(NULL::continent)",
            "SELECT typeof(TRY_CAST(NULL AS main.continent[]))",
            "DESCRIBE SELECT NULL::STRUCT(a continent)",
            "SELECT typeof(json_transform('null', '\"continent\"'))",
            "SELECT typeof(from_json('null', '\"continent\"'))",
        ):
            with pytest.raises(KnowledgeGuardError, match="Only these tables may be read"):
                manager.query(statement)


@pytest.mark.parametrize(
    "statement",
    ["FROM main.budget", 'SELECT * FROM observatory.main."BUDGET"', "DESCRIBE budget", "FROM query_table('budget')"],
)
def test_a_list_of_tables_holds_past_the_guard(database: Path, statement: str) -> None:
    with closing(reader_of(database, tables=["sales.orders", "large_cities"])) as reader:
        assert len(reader.fetch("FROM sales.orders", 10, 5).rows) == 3
        assert len(reader.fetch("FROM large_cities", 10, 5).rows) == 2
        with pytest.raises(KnowledgeGuardError, match="may not be read"):
            reader.fetch(statement, 10, 5)


def test_allow_names_a_function_for_the_guard_and_the_engine_still_reads_no_file(kb: SQLManager, database: Path) -> None:
    canary = database.parent / "canary.csv"
    canary.write_text("word\nswordfish\n")
    statement = f"SELECT * FROM read_csv('{canary}')"
    kb.check_read(statement, allow=["read_csv"])
    with pytest.raises(KnowledgeGuardError, match="The database refused"):
        kb.query(statement, allow=["read_csv"])


# Time and memory.


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("SELECT count(*) FROM range(100000000000)", id="scan"),
        pytest.param("SELECT sum(a.range * b.range) FROM range(1000000) a CROSS JOIN range(1000000) b", id="join"),
        pytest.param("SELECT count(DISTINCT range % 1000) FROM range(100000000000)", id="aggregate"),
        pytest.param(
            "SELECT max(levenshtein(repeat('a', 900) || range, repeat('b', 900))) FROM range(10000000)", id="slow function"
        ),
        pytest.param("EXPLAIN ANALYZE SELECT count(*) FROM range(100000000000)", id="explain analyze"),
        pytest.param("SUMMARIZE SELECT * FROM range(100000000000)", id="summarize"),
    ],
)
def test_a_statement_is_stopped_at_its_deadline(kb: SQLManager, statement: str) -> None:
    with pytest.raises(KnowledgeTimeoutError):
        kb.query(statement, timeout=0.5)
    assert rows(kb, "SELECT 1 AS one") == [{"one": 1}]


def test_a_statement_that_needs_too_much_memory_is_an_error_and_leaves_no_file(database: Path) -> None:
    with closing(SQLManager(f"duckdb:///{database}?memory_limit=64MB&threads=1")) as manager:
        with pytest.raises(KnowledgeQueryError, match="needs more memory than 64MB"):
            manager.query("SELECT list(range) FROM range(100000000)", timeout=30)
        assert rows(manager, "SELECT 1 AS one") == [{"one": 1}]
    assert list(database.parent.iterdir()) == [database]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("access_mode=READ_WRITE", r"takes 'memory_limit' and 'threads', not \['access_mode'\]"),
        ("enable_external_access=true", "takes 'memory_limit' and 'threads'"),
        ("memory_limit=lots", "memory_limit is a size"),
        ("threads=0", "threads is a number"),
        ("threads=1&threads=2", "threads is a number"),
    ],
)
def test_a_url_can_only_set_limits(database: Path, query: str, message: str) -> None:
    with pytest.raises(AKConfigError, match=message):
        SQLManager(f"duckdb:///{database}?{query}")


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
