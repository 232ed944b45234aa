"""The observatory on which the DuckDB corpora run: nested types, time series, two schemas, names that look like keywords."""

from __future__ import annotations

import hashlib
from contextlib import closing
from functools import lru_cache
from pathlib import Path

import duckdb
from sqlalchemy.engine import make_url

from agentkernel_kb.sql import SQLManager
from agentkernel_kb.sql.duckdb import DuckDBLock
from agentkernel_kb.sql.duckdb_isolated import IsolatedReader

UNGUARDED_SECONDS = 1.0
UNGUARDED_ROWS = 100

SCHEMA = """
CREATE TYPE continent AS ENUM ('Africa', 'Asia', 'Europe');
CREATE TABLE countries (
    code VARCHAR PRIMARY KEY, name VARCHAR NOT NULL, continent continent, languages VARCHAR[],
    facts STRUCT(capital VARCHAR, founded INTEGER), links MAP(VARCHAR, VARCHAR)
);
CREATE TABLE cities (
    id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, country VARCHAR NOT NULL REFERENCES countries (code), population BIGINT,
    "land area" DOUBLE, place STRUCT(lat DOUBLE, lon DOUBLE), founded DATE
);
CREATE TABLE readings (station VARCHAR, taken TIMESTAMP, celsius DOUBLE, flags VARCHAR[]);
CREATE TABLE prices (symbol VARCHAR, since TIMESTAMP, price DECIMAL(10, 2));
CREATE TABLE trades (symbol VARCHAR, at_time TIMESTAMP, quantity INTEGER);
CREATE TABLE budget (team VARCHAR, jan INTEGER, feb INTEGER, mar INTEGER);
CREATE TABLE parts (parent VARCHAR, child VARCHAR, quantity INTEGER);
CREATE TABLE documents (
    id UUID PRIMARY KEY, body JSON, raw BLOB, embedding FLOAT[4], size HUGEINT, mixed UNION(num INTEGER, word VARCHAR), mask BIT
);
CREATE TABLE "order" ("group" VARCHAR, "select" INTEGER, "from date" DATE, "drop""s" VARCHAR, "set" INTEGER, "delete" BOOLEAN);
CREATE SCHEMA sales;
CREATE TABLE sales.orders (
    id INTEGER PRIMARY KEY, customer VARCHAR, total DECIMAL(12, 2), placed TIMESTAMPTZ, lead_time INTERVAL, comment VARCHAR
);
CREATE SEQUENCE tickets;
CREATE VIEW large_cities AS SELECT name, country FROM cities WHERE population > 1000000;
CREATE MACRO fahrenheit(c) AS c * 9 / 5 + 32;
CREATE INDEX cities_by_country ON cities (country);
COMMENT ON TABLE cities IS 'Cities with their land area in km²';
COMMENT ON COLUMN cities.population IS 'inhabitants, latest census';
"""

CONTENT = """
INSERT INTO countries VALUES
    ('CH', 'Switzerland', 'Europe', ['de', 'fr', 'it', 'rm'],
     {'capital': 'Bern', 'founded': 1848}, MAP {'web': 'admin.example'}),
    ('DE', 'Germany', 'Europe', ['de'], {'capital': 'Berlin', 'founded': 1949}, MAP {}),
    ('JP', 'Japan', 'Asia', ['ja'], {'capital': 'Tokyo', 'founded': NULL}, NULL);
INSERT INTO cities VALUES
    (1, 'Zürich', 'CH', 443037, 87.9, {'lat': 47.37, 'lon': 8.54}, '0929-01-01'),
    (2, 'Bern', 'CH', NULL, 51.6, {'lat': 46.95, 'lon': 7.45}, '1191-01-01'),
    (3, 'Berlin', 'DE', 3755251, 891.7, {'lat': 52.52, 'lon': 13.4}, '1237-10-28'),
    (4, '東京', 'JP', 14094034, 2194.1, NULL, '1457-01-01');
INSERT INTO readings VALUES
    ('north', '2024-01-01 00:00', -3.5, ['ok']), ('north', '2024-01-01 12:00', 1.25, []),
    ('north', '2024-01-02 00:00', NULL, NULL),
    ('north', '2024-01-03 00:00', -7.0, ['ok', 'late']), ('south', '2024-01-01 00:00', 14.0, ['ok']),
    ('south', '2024-01-02 12:00', 19.5, ['check', 'late']);
INSERT INTO prices VALUES
    ('A', '2024-01-01 09:00', 10.50), ('A', '2024-01-01 10:00', 11.00), ('B', '2024-01-01 09:30', 99.95);
INSERT INTO trades VALUES ('A', '2024-01-01 09:45', 5), ('A', '2024-01-01 10:00', 2), ('B', '2024-01-01 09:00', 1);
INSERT INTO budget VALUES ('sales', 100, 120, NULL), ('research', 80, 80, 95);
INSERT INTO parts VALUES ('desk', 'top', 1), ('desk', 'leg', 4), ('leg', 'screw', 6), ('top', 'screw', 8);
INSERT INTO documents VALUES
    ('5f0c954e-1111-4a2b-8c3d-0123456789ab', '{"title": "Insert coin", "tags": ["drop", "update"], "size": {"kb": 4}}',
     '\\x00\\xFF'::BLOB,
     [0.1, 0.2, 0.3, 0.4], 170141183460469231731687303715884105727, 7, '10110'),
    ('5f0c954e-2222-4a2b-8c3d-0123456789ab', '{"title": null, "tags": []}', NULL, [1, 0, 0, 0], -1, 'seven', NULL);
INSERT INTO "order" VALUES ('a', 1, '2024-01-01', 'x', 3, true), ('b', 2, '2024-06-30', NULL, 4, false);
INSERT INTO sales.orders VALUES
    (1, 'Update & Sons', 149.90, '2024-01-05 10:00+00', INTERVAL 3 DAYS, 'Please delete the old address'),
    (2, 'DROP Ltd.', 99.00, '2024-02-14 23:30+00', INTERVAL 1 MONTH, NULL),
    (3, 'Select; Co', 0.00, '2024-02-15 00:15+00', NULL, 'it''s a gift; drop at the back');
"""


def build(folder: Path) -> Path:
    """Make the database in `folder` and return its path."""
    path = folder / "observatory.duckdb"
    with closing(duckdb.connect(path)) as connection:
        connection.execute(SCHEMA + CONTENT)
    return path


def open_backend(path: Path) -> SQLManager:
    """Open the database as an application would."""
    return SQLManager(f"duckdb:///{path}", name="observatory")


def fingerprint(path: Path) -> str:
    """Return a hash of the file, which holds data and schema, and of the names of all files beside it."""
    beside = sorted(found.name for found in path.parent.iterdir())
    return hashlib.sha256(path.read_bytes() + repr(beside).encode()).hexdigest()


def run_unguarded(path: Path, statement: str) -> str:
    """Send a statement to the engine's own lock, past the guard, and return what it answers.

    Raises:
        KnowledgeError: The engine refused or rejected it, or stopped it at the deadline.
    """
    return str(_reader(path).fetch(statement, UNGUARDED_ROWS, UNGUARDED_SECONDS))


@lru_cache(maxsize=1)
def _reader(path: Path) -> IsolatedReader:
    """Return what reads a database, in processes that may be filled or brought down; it ends when another one is asked for."""
    lock = DuckDBLock(make_url(f"duckdb:///{path}"), tables=None, max_value_bytes=1_000_000)
    return IsolatedReader(lock, "unguarded")
