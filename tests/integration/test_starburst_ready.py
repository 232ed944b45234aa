"""Transactions that are started ahead of the calls that use them: for whom, how strong, and what if they are gone (A13, X7)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
import trino_statements as admin

from agentkernel_kb import KnowledgeGuardError
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.identity import acting_as
from agentkernel_kb.starburst import StarburstManager
from agentkernel_kb.starburst.asking import Asker
from agentkernel_kb.starburst.server import Server as Client
from agentkernel_kb.starburst.settings import Settings
from servers import Server

pytestmark = pytest.mark.server("trino")


@pytest.fixture
def port(trino_server: Server) -> int:
    return trino_server.port


@pytest.fixture
def source() -> str:
    """What the server's list of queries names as the source of a test's own."""
    return f"source_{uuid.uuid4().hex}"


@pytest.fixture
def backend(port: int, source: str) -> Iterator[StarburstManager]:
    with closing(
        StarburstManager("127.0.0.1", port, "kb", source=source, impersonate=True, requires_identity=False)
    ) as manager:
        yield manager


def transaction_of(port: int, source: str, text: str) -> str:
    """Return the transaction in which the statement of that text ran."""
    (query,) = [each for each in admin.queries_of(port, source) if text in each.text]
    return admin.details_of(port, query.id)["session"]["transactionId"]


def test_a_call_runs_in_the_transaction_that_was_started_after_the_one_before(
    port: int, source: str, backend: StarburstManager
) -> None:
    backend.query("SELECT 1 AS earlier")
    *_, ready = admin.started_transactions(port, source, 2)
    backend.query("SELECT 2 AS later")
    assert transaction_of(port, source, "later") == ready


def test_nobody_gets_a_transaction_that_was_started_for_another(port: int, source: str, backend: StarburstManager) -> None:
    with acting_as("alice"):
        backend.query("SELECT 1 AS earlier")
    *_, ready = admin.started_transactions(port, source, 2)
    with acting_as("bob"):
        backend.query("SELECT 2 AS later")
    assert transaction_of(port, source, "later") != ready


def test_one_that_the_server_has_forgotten_costs_a_call_nothing_but_time(
    port: int, source: str, backend: StarburstManager
) -> None:
    backend.query("SELECT 1 AS earlier")
    *_, ready = admin.started_transactions(port, source, 2)
    admin.end_transaction(port, ready)
    assert backend.query("SELECT 2 AS later")[0]["text"] == "later=2"


def test_it_only_reads(port: int, source: str) -> None:
    settings = Settings("127.0.0.1", port, "http", "kb", catalog="memory", source=source)
    with closing(Client(settings, "past", cores=1_000)) as past_the_guard:
        past_the_guard.fetch("SELECT 1 AS earlier", 1, Deadline(60), Asker("kb", ()))
        *_, ready = admin.started_transactions(port, source, 2)
        with pytest.raises(KnowledgeGuardError, match="Cannot execute write in a read-only transaction"):
            past_the_guard.fetch(f"CREATE SCHEMA memory.{source}", 1, Deadline(60), Asker("kb", ()))
        assert transaction_of(port, source, "CREATE SCHEMA") == ready


def test_what_writes_is_not_run_where_the_server_has_forgotten_it(port: int, source: str) -> None:
    settings = Settings("127.0.0.1", port, "http", "kb", catalog="memory", source=source)
    with closing(Client(settings, "past", cores=1_000)) as past_the_guard:
        past_the_guard.fetch("SELECT 1 AS earlier", 1, Deadline(60), Asker("kb", ()))
        *_, ready = admin.started_transactions(port, source, 2)
        admin.end_transaction(port, ready)
        with pytest.raises(KnowledgeGuardError, match="Cannot execute write in a read-only transaction"):
            past_the_guard.fetch(f"CREATE SCHEMA memory.{source}", 1, Deadline(60), Asker("kb", ()))
    assert admin.rows(port, f"SHOW SCHEMAS FROM memory LIKE '{source}'") == []
