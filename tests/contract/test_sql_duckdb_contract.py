"""The shipped suite run on a DuckDB file (X16, A21)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb

from agentkernel_kb import KnowledgeBase
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.testing import KnowledgeBaseContract

SHOP = """
CREATE TABLE product (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, price DOUBLE, tags VARCHAR[]);
INSERT INTO product VALUES
    (1, 'bicycle', 499.5, ['outdoor']), (2, 'helmet', 59.0, []), (3, 'bell', NULL, NULL), (4, 'lamp', 25.0, ['light']);
"""


class TestSQLManagerOnDuckDB(KnowledgeBaseContract):
    declares = frozenset({"query", "guard"})
    read_statement, read_expects = "FROM product SELECT id, name, price ORDER BY id", "bicycle"
    empty_statement = "SELECT name FROM product WHERE price > 1000"
    bad_statement = "SELECT colour FROM product"
    write_statements = (
        "DELETE FROM product",
        "INSERT INTO product VALUES (5, 'pump', 12.0, NULL)",
        "UPDATE product SET price = 0",
        "TRUNCATE product",
        "CREATE TEMP TABLE other (id INTEGER)",
        "/* SELECT */ DELETE FROM product",
        "SELECT 1; DELETE FROM product",
        "WITH gone AS (DELETE FROM product RETURNING *) FROM gone",
        "EXPLAIN ANALYZE DELETE FROM product",
        "SET threads = 1",
        "ATTACH 'other.duckdb' AS other",
        "COPY product TO 'copy.csv'",
        "FROM 'other.csv'",
    )

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        file = tmp_path / "shop.duckdb"
        with closing(duckdb.connect(file)) as connection:
            connection.execute(SHOP)
        return SQLManager(f"duckdb:///{file}", name="shop")

    def count_records(self, answer: str) -> int:
        """Count the rows of a table below its two lines of heading; records that are no rows are lines as elsewhere."""
        return len(answer.split("\n")) - 2 if answer.startswith("|") else super().count_records(answer)

    def test_values_cannot_forge_rows(self, backend: KnowledgeBase) -> None:
        rows = backend.query(
            "SELECT 'a' || chr(10) || '| 9 | forged |' AS one, [chr(8232) || chr(13)] AS two UNION SELECT 'b', []"
        )
        assert self.count_records(backend.format_results(rows)) == len(rows) == 2
