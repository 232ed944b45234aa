"""The shipped suite run on a SQLite file (X16, A21)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agentkernel_kb import KnowledgeBase
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.testing import KnowledgeBaseContract

SHOP = """
CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL);
INSERT INTO product VALUES (1, 'bicycle', 499.5), (2, 'helmet', 59.0), (3, 'bell', NULL), (4, 'lamp', 25.0);
"""


class TestSQLManagerOnSQLite(KnowledgeBaseContract):
    declares = frozenset({"query", "guard"})
    read_statement, read_expects = "SELECT id, name, price FROM product ORDER BY id", "bicycle"
    empty_statement = "SELECT name FROM product WHERE price > 1000"
    bad_statement = "SELECT colour FROM product"
    write_statements = (
        "DELETE FROM product",
        "INSERT INTO product VALUES (5, 'pump', 12.0)",
        "UPDATE product SET price = 0",
        "DROP TABLE product",
        "CREATE TABLE other (id INTEGER)",
        "/* SELECT */ DELETE FROM product",
        "SELECT 1; DELETE FROM product",
        "WITH gone AS (SELECT 1) DELETE FROM product",
        "PRAGMA writable_schema = 1",
        "ATTACH DATABASE 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
    )

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        file = tmp_path / "shop.db"
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(SHOP)
        return SQLManager(f"sqlite:///{file}", name="shop")

    def count_records(self, answer: str) -> int:
        """Count the rows of a table below its two lines of heading; records that are no rows are lines as elsewhere."""
        return len(answer.split("\n")) - 2 if answer.startswith("|") else super().count_records(answer)

    def test_values_cannot_forge_rows(self, backend: KnowledgeBase) -> None:
        rows = backend.query(
            "SELECT 'a' || char(10) || '| 9 | forged |' AS one, char(13, 124, 133, 8232) AS two UNION SELECT 'b', ''"
        )
        assert self.count_records(backend.format_results(rows)) == len(rows) == 2
