"""Every kind of value of PostgreSQL as `SQLManager` returns it (X16), large ones and wide rows included (X3)."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any
from uuid import UUID

import postgres
import pytest

import servers
from agentkernel_kb import KnowledgeQueryError
from agentkernel_kb.render import encode
from agentkernel_kb.sql import SQLManager

pytestmark = pytest.mark.server("postgres")

SETUP = """
CREATE EXTENSION vector; CREATE EXTENSION hstore;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE point3 AS (x int, y int, note text);
CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
CREATE TABLE large (name text, body text, raw bytea, doc jsonb, list int[]);
INSERT INTO large VALUES
    ('text', repeat('x', 10000000), NULL, NULL, NULL),
    ('compressed', NULL, decode(repeat('00', 10000000), 'hex'), NULL, NULL),
    ('document', NULL, NULL, to_jsonb(repeat('x', 10000000)), NULL),
    ('list', NULL, NULL, NULL, array_fill(7, ARRAY[2000000])),
    ('small', 'x', '\\x00', '{}', '{1}');
"""


@pytest.fixture(scope="module")
def kb(postgres_server: servers.Server) -> Iterator[SQLManager]:
    with postgres.database(postgres_server.url, SETUP) as url, closing(SQLManager(url, name="values")) as manager:
        yield manager


def value(kb: SQLManager, expression: str) -> Any:
    (record,) = kb.query(f"SELECT {expression} AS v")
    return record["metadata"]["row"]["v"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("NULL", None),
        ("true", True),
        ("9223372036854775807", 2**63 - 1),
        ("1.50::numeric", Decimal("1.50")),
        ("170141183460469231731687303715884105727000::numeric", Decimal(170141183460469231731687303715884105727000)),
        ("'Infinity'::numeric", Decimal("Infinity")),
        ("'-Infinity'::float8", -math.inf),
        ("'a''b'::varchar(10)", "a'b"),
        ("'ab'::char(4)", "ab  "),
        ("'x'::\"char\"", "x"),
        ("date '2024-02-29'", dt.date(2024, 2, 29)),
        ("date 'infinity'", "infinity"),
        ("date '0044-03-15 BC'", "0044-03-15 BC"),
        ("date '20240-01-01'", "20240-01-01"),
        ("timestamp '-infinity'", "-infinity"),
        ("timestamp '2024-01-01 10:00:00.5'", dt.datetime(2024, 1, 1, 10, 0, 0, 500_000)),
        ("timestamptz '4713-01-01 00:00:00+00 BC' AT TIME ZONE 'UTC'", "4713-01-01 00:00:00 BC"),
        ("time '24:00:00'", "24:00:00"),
        ("timetz '10:00:00+05:30'", dt.time(10, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30)))),
        ("interval '1 year 2 months 3 days 04:05:06.7'", "1 year 2 mons 3 days 04:05:06.7"),
        ("interval '-1 month'", "-1 mons"),
        ("ARRAY[1, NULL, 3]", [1, None, 3]),
        ("ARRAY[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        ("ARRAY['a,b', 'c\"d', NULL]", ["a,b", 'c"d', None]),
        ("ARRAY[date 'infinity', date '2024-01-01']", ["infinity", dt.date(2024, 1, 1)]),
        ("'{}'::int[]", []),
        ("ARRAY['ok', 'sad']::mood[]", ["ok", "sad"]),
        ("ROW(1, 'a')", "(1,a)"),
        ("ROW(1, 2, 'a b')::point3", '(1,2,"a b")'),
        ("ARRAY[ROW(1, 2, 'a')::point3]", ["(1,2,a)"]),
        ("daterange('2020-01-01', NULL)", "[2020-01-01,)"),
        ("int4range(1, 5)", "[1,5)"),
        ("'{[1,3), [7,9)}'::int4multirange", "{[1,3),[7,9)}"),
        ('\'{"b": 1,  "a": [1.0]}\'::json', '{"b": 1,  "a": [1.0]}'),
        ('\'{"b": 1,  "a": [1.0]}\'::jsonb', '{"a": [1.0], "b": 1}'),
        ("'5f0c954e-1111-4a2b-8c3d-0123456789ab'::uuid", UUID("5f0c954e-1111-4a2b-8c3d-0123456789ab")),
        ("'\\x00ff'::bytea", b"\x00\xff"),
        ("inet '10.0.0.7/8'", "10.0.0.7/8"),
        ("'10.0.0.0/8'::cidr", "10.0.0.0/8"),
        ("B'1010'", "1010"),
        ("'a fat cat'::tsvector", "'a' 'cat' 'fat'"),
        ("point '(1,2)'", "(1,2)"),
        ("'ok'::mood", "ok"),
        ("'a@b.example'::email", "a@b.example"),
        ("'[1,2.5,3]'::vector", [1.0, 2.5, 3.0]),
        ("ARRAY['[1,2]', '[3,4]']::vector[]", [[1.0, 2.0], [3.0, 4.0]]),
        ("'{1:0.5,3:2}/5'::sparsevec", "{1:0.5,3:2}/5"),
        ("'a=>1'::hstore", '"a"=>"1"'),
    ],
)
def test_a_value_is_what_is_stored_and_json_can_hold_it(kb: SQLManager, expression: str, expected: object) -> None:
    found = value(kb, expression)
    assert (found, type(found)) == (expected, type(expected))
    json.dumps(encode(found), allow_nan=False)


def test_not_a_number_is_shown_as_such(kb: SQLManager) -> None:
    (record,) = kb.query("SELECT 'NaN'::numeric AS a, 'NaN'::float8 AS b, money '12.50' AS c")
    assert record["text"].startswith("a=NaN, b=NaN, c=")


def test_a_moment_has_its_offset(kb: SQLManager) -> None:
    assert value(kb, "timestamptz '2024-01-01 10:00:00+02'") == dt.datetime(2024, 1, 1, 8, tzinfo=dt.UTC)


def test_a_long_vector_is_shown_by_its_length(kb: SQLManager) -> None:
    (record,) = kb.query("SELECT ('[' || repeat('0.5,', 383) || '1]')::vector AS embedding")
    assert record["text"] == "embedding=[384 numbers]"


@pytest.mark.parametrize("name", ["text", "compressed", "document", "list"])
def test_a_cell_of_ten_megabytes_is_refused_before_it_is_sent(kb: SQLManager, name: str) -> None:
    with pytest.raises(KnowledgeQueryError, match="larger than 1,000,000 bytes"):
        kb.query(f"SELECT * FROM large WHERE name = '{name}'")
    assert kb.query(f"SELECT length(body) AS n, octet_length(raw) AS m FROM large WHERE name = '{name}'")


def test_the_small_rows_beside_a_large_one_can_be_read(kb: SQLManager) -> None:
    (record,) = kb.query("SELECT * FROM large WHERE name = 'small'")
    assert record["metadata"]["row"] == {"name": "small", "body": "x", "raw": b"\x00", "doc": "{}", "list": [1]}


def test_a_row_of_many_large_values_is_refused(kb: SQLManager) -> None:
    columns = ", ".join(f"repeat('x', 900000) AS c{number}" for number in range(20))
    with pytest.raises(KnowledgeQueryError, match="row is larger than 16,000,000 bytes"):
        kb.query(f"SELECT {columns}")


@pytest.mark.parametrize("count", [100, 1_000, 1_600])
def test_many_columns_come_back_in_their_order(kb: SQLManager, count: int) -> None:
    (record,) = kb.query("SELECT " + ", ".join(f"'v{number}'" for number in range(count)))
    assert list(record["metadata"]["row"].values()) == [f"v{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT 1 AS a, 2 AS a", [{"a": 1, "a_2": 2}]),
        ("SELECT FROM large LIMIT 2", [{}, {}]),
        ("VALUES (1, 'x'), (2, NULL)", [{"column1": 1, "column2": "x"}, {"column1": 2, "column2": None}]),
        ("TABLE large LIMIT 0", []),
        ("SELECT n FROM generate_series(3, 1, -1) AS s(n) -- LIMIT 1", [{"n": 3}, {"n": 2}, {"n": 1}]),
        ("SELECT 1 AS page; ", [{"page": 1}]),
        ("SELECT 100 % 7 AS m, '%s' AS s", [{"m": 2, "s": "%s"}]),
        ("(SELECT 1 AS a) UNION ALL (SELECT 2) ORDER BY a DESC", [{"a": 2}, {"a": 1}]),
    ],
)
def test_a_statement_of_any_shape_gives_its_own_rows(kb: SQLManager, statement: str, expected: list[dict[str, object]]) -> None:
    assert [record["metadata"]["row"] for record in kb.query(statement, limit=10)] == expected
