"""`SQLManager` on DuckDB files (X16): what only this engine has. Its locks one by one (X1), its types, its files.

What it shares with other engines is in `test_sql_engines.py`.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Collection, Iterator
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
    [
        "SELECT name, language FROM countries, unnest(languages) AS u(language) WHERE language = 'it'",
        "SELECT name FROM countries WHERE 'it' IN (SELECT x FROM UNNEST (countries.languages) AS u(x)) -- unnest(",
        "SELECT name FROM countries, unnest(['unnest(1)']) AS u(x) WHERE code = 'CH'",
    ],
)
def test_a_list_of_tables_leaves_unnest_alone(database: Path, statement: str) -> None:
    with closing(SQLManager(f"duckdb:///{database}", tables=["countries"])) as manager:
        assert [row["name"] for row in rows(manager, statement)] == ["Switzerland"]
    with closing(reader_of(database, tables=["budget"])) as reader, pytest.raises(KnowledgeGuardError, match="may not be read"):
        reader.fetch(statement, 10, 5)


def test_a_listed_view_whose_tables_cannot_be_told_is_refused_and_no_other(database: Path) -> None:
    with closing(duckdb.connect(database)) as connection:
        connection.execute("CREATE VIEW spoken AS SELECT language FROM countries, unnest(languages) AS u(language)")
    with closing(SQLManager(f"duckdb:///{database}", tables=["spoken", "large_cities"])) as manager:
        assert rows(manager, "SELECT count(*) AS n FROM large_cities") == [{"n": 2}]
        with pytest.raises(KnowledgeGuardError, match="Which tables a view reads cannot be told"):
            manager.query("FROM spoken")


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
