"""Two locks keep a read from writing on Trino, each with the other taken away, for an account that may write (A13, X1)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
import trino_statements as admin

from agentkernel_kb import KnowledgeGuardError, KnowledgeQueryError
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.starburst import StarburstManager
from agentkernel_kb.starburst.asking import Asker
from agentkernel_kb.starburst.attempt import Fetched
from agentkernel_kb.starburst.server import Server as Client
from agentkernel_kb.starburst.settings import Settings
from servers import Server

pytestmark = pytest.mark.server("trino")
WRITES = (
    "INSERT INTO orders VALUES (3)",
    "TRUNCATE TABLE orders",
    "ALTER TABLE orders ADD COLUMN b integer",
    "ALTER TABLE orders RENAME TO other",
    "CREATE TABLE other AS SELECT 1 AS a",
    "CREATE OR REPLACE VIEW seen AS SELECT 1 AS a",
    "CREATE SCHEMA memory.{schema}_other",
    "CREATE FUNCTION memory.{schema}.twice(a bigint) RETURNS bigint RETURN 2 * a",
    "COMMENT ON TABLE orders IS 'changed'",
    "DROP TABLE orders",
    "EXECUTE IMMEDIATE 'DROP TABLE orders'",
    "EXPLAIN ANALYZE INSERT INTO orders VALUES (3)",
)


@pytest.fixture(scope="module")
def schema(trino_server: Server) -> Iterator[str]:
    with admin.own_schema(trino_server.port, "orders AS SELECT * FROM (VALUES 1, 2) AS t (a)") as name:
        yield name


def contents(port: int, schema: str) -> list[object]:
    looks = (
        f"SHOW TABLES FROM memory.{schema}",
        f"SHOW CREATE TABLE memory.{schema}.orders",
        f"SELECT a FROM memory.{schema}.orders ORDER BY a",
        f"SHOW SCHEMAS FROM memory LIKE '{schema}%'",
        f"SHOW FUNCTIONS FROM memory.{schema}",
    )
    return [admin.rows(port, look) for look in looks]


@pytest.mark.parametrize("write", WRITES)
def test_the_guard_alone_refuses_what_the_account_may_do(trino_server: Server, schema: str, write: str) -> None:
    port = trino_server.port
    with closing(StarburstManager("127.0.0.1", port, "kb", None, "memory", schema, connect="lazy")) as backend:
        with pytest.raises(KnowledgeGuardError):
            backend.check_read(write.format(schema=schema))
        with pytest.raises(KnowledgeGuardError):
            backend.query(write.format(schema=schema))


def past_the_guard(port: int, schema: str, statement: str, *, read_only: bool = True) -> Fetched:
    settings = Settings("127.0.0.1", port, "http", "kb", catalog="memory", db_schema=schema)
    with closing(Client(settings, "past", cores=1_000)) as client:
        return client.fetch(statement, 10, Deadline(60), Asker("kb", ()), read_only=read_only)


@pytest.mark.parametrize("write", WRITES)
def test_the_transaction_alone_refuses_what_the_account_may_do(trino_server: Server, schema: str, write: str) -> None:
    port = trino_server.port
    before = contents(port, schema)
    with pytest.raises(KnowledgeGuardError, match="Cannot execute write in a read-only transaction"):
        past_the_guard(port, schema, write.format(schema=schema))
    assert contents(port, schema) == before


def test_procedures_cannot_be_called_in_it_either(trino_server: Server, schema: str) -> None:
    with pytest.raises(KnowledgeQueryError, match="Procedures cannot be called within a transaction"):
        past_the_guard(trino_server.port, schema, "CALL system.runtime.kill_query('20240101_000000_00000_abcde', 'x')")


def test_the_account_may_do_all_that_where_there_is_no_lock(trino_server: Server) -> None:
    port = trino_server.port
    with admin.own_schema(port, "orders AS SELECT * FROM (VALUES 1, 2) AS t (a)") as schema:
        past_the_guard(port, schema, "INSERT INTO orders VALUES (3)", read_only=False)
        assert admin.rows(port, f"SELECT count(*) FROM memory.{schema}.orders") == [[3]]
        past_the_guard(port, schema, "EXECUTE IMMEDIATE 'DROP TABLE orders'", read_only=False)
        assert admin.rows(port, f"SHOW TABLES FROM memory.{schema}") == []


def test_an_account_that_may_only_read_reads(trino_server: Server, schema: str) -> None:
    with closing(StarburstManager("127.0.0.1", trino_server.port, "reader", None, "memory", schema)) as backend:
        assert backend.query("SELECT sum(a) AS total FROM orders")[0]["text"] == "total=3"
