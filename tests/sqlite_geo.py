"""The SQLite database that the tests of SQLite share."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentkernel_kb.sql import SQLManager

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


@cache
def content() -> bytes:
    """Return the bytes of the database, made once."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "geo.db")
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(SETUP)
        return path.read_bytes()


def rows(manager: SQLManager, statement: str, limit: int = 100, **options: Any) -> list[dict[str, Any]]:
    """Return the rows that a statement selects."""
    return [record["metadata"]["row"] for record in manager.query(statement, limit, **options)]
