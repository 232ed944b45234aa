"""The shipped suite run on tables of a real Trino server (A13, A21)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import trino.dbapi

from agentkernel_kb import KnowledgeBase
from agentkernel_kb.starburst import StarburstManager
from agentkernel_kb.testing import KnowledgeBaseContract
from servers import Server

pytestmark = pytest.mark.server("trino")
SCHEMA = f"contract_{uuid.uuid4().hex[:12]}"
SETUP = (
    f"CREATE SCHEMA memory.{SCHEMA}",
    f"CREATE TABLE memory.{SCHEMA}.product (id integer, name varchar, price double)",
    f"INSERT INTO memory.{SCHEMA}.product VALUES (1, 'bicycle', 499.5), (2, 'helmet', 59), (3, 'bell', NULL), (4, 'lamp', 25)",
)
CLEANUP = (f"DROP TABLE memory.{SCHEMA}.product", f"DROP SCHEMA memory.{SCHEMA}")


@pytest.fixture(scope="module", autouse=True)
def products(trino_server: Server) -> Iterator[None]:
    connection = trino.dbapi.connect(host="127.0.0.1", port=trino_server.port, user="kb")
    cursor = connection.cursor()
    for statement in SETUP:
        cursor.execute(statement)
    TestStarburstManager.port = trino_server.port
    yield
    for statement in CLEANUP:
        cursor.execute(statement)
    connection.close()


class TestStarburstManager(KnowledgeBaseContract):
    port: int
    declares = frozenset({"query", "guard", "browse"})
    read_statement, read_expects = "SELECT id, name, price FROM product ORDER BY id", "bicycle"
    empty_statement = "SELECT name FROM product WHERE price > 1000"
    bad_statement = "SELECT colour FROM product"
    browse_path, browse_expects = f"memory/{SCHEMA}", "product"
    missing_path = "memory/nowhere"
    write_statements = (
        "DELETE FROM product",
        "INSERT INTO product VALUES (5, 'pump', 12.0)",
        "UPDATE product SET price = 0",
        "DROP TABLE product",
        "CREATE TABLE other (id integer)",
        "CREATE TABLE other AS SELECT 1 AS id",
        "/* SELECT */ DELETE FROM product",
        "SELECT 1; DELETE FROM product",
        "WITH gone AS (SELECT 1) DELETE FROM product",
        "EXPLAIN ANALYZE INSERT INTO product VALUES (5, 'pump', 12.0)",
        "EXECUTE IMMEDIATE 'DELETE FROM product'",
        "CALL system.runtime.kill_query('20240101_000000_00000_abcde', 'x')",
    )

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        # An account that may write, so that nothing but the two locks keeps it from that.
        return StarburstManager("127.0.0.1", self.port, "kb", None, "memory", SCHEMA, "product", "shop", browse=True)

    def count_records(self, answer: str) -> int:
        """Count the rows of a table below its two lines of heading; records that are no rows are lines as elsewhere."""
        return len(answer.split("\n")) - 2 if answer.startswith("|") else super().count_records(answer)

    def test_values_cannot_forge_rows(self, backend: KnowledgeBase) -> None:
        rows = backend.query(
            "SELECT 'a' || chr(10) || '| 9 | forged |' AS one, chr(13) || '|' || chr(8232) AS two UNION SELECT 'b', ''"
        )
        assert self.count_records(backend.format_results(rows)) == len(rows) == 2
