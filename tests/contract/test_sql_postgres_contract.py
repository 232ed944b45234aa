"""The shipped suite run on a PostgreSQL database (X16, A21), by a login that may write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest

import servers
from agentkernel_kb import KnowledgeBase
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.testing import KnowledgeBaseContract

SHOP = """
CREATE TABLE product (id int PRIMARY KEY, name text NOT NULL, price float8, tags text[]);
INSERT INTO product VALUES
    (1, 'bicycle', 499.5, '{outdoor}'), (2, 'helmet', 59.0, '{}'), (3, 'bell', NULL, NULL), (4, 'lamp', 25.0, '{light}');
"""
pytestmark = pytest.mark.server("postgres")


@pytest.fixture(scope="module")
def shop(postgres_server: servers.Server) -> Iterator[str]:
    with postgres.database(postgres_server.url, SHOP) as url:
        yield url


class TestSQLManagerOnPostgreSQL(KnowledgeBaseContract):
    declares = frozenset({"query", "guard"})
    read_statement, read_expects = "SELECT id, name, price FROM product ORDER BY id", "bicycle"
    empty_statement = "SELECT name FROM product WHERE price > 1000"
    bad_statement = "SELECT colour FROM product"
    write_statements = (
        "DELETE FROM product",
        "INSERT INTO product VALUES (5, 'pump', 12.0, NULL)",
        "UPDATE product SET price = 0",
        "TRUNCATE product",
        "SELECT * INTO TEMP other FROM product",
        "/* SELECT */ DELETE FROM product",
        "SELECT 1; DELETE FROM product",
        "WITH gone AS (DELETE FROM product RETURNING *) SELECT * FROM gone",
        "EXPLAIN ANALYZE DELETE FROM product",
        "SET default_transaction_read_only = off",
        "COPY product TO PROGRAM 'cat'",
        "DO $$ BEGIN DELETE FROM product; END $$",
    )

    @pytest.fixture(autouse=True)
    def _in_the_shop(self, shop: str) -> None:
        self._url = shop

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return SQLManager(self._url, name="shop")

    def count_records(self, answer: str) -> int:
        """Count the rows of a table below its two lines of heading; records that are no rows are lines as elsewhere."""
        return len(answer.split("\n")) - 2 if answer.startswith("|") else super().count_records(answer)

    def test_values_cannot_forge_rows(self, backend: KnowledgeBase) -> None:
        rows = backend.query("SELECT E'a\n| 9 | forged |' AS one, ARRAY[chr(8232) || chr(13)] AS two UNION SELECT 'b', '{}'")
        assert self.count_records(backend.format_results(rows)) == len(rows) == 2
