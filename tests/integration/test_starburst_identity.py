"""On whose behalf a query runs, as the Trino server sees it (X18)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import trino_statements as admin

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.errors import KnowledgeIdentityError
from agentkernel_kb.identity import acting_as
from agentkernel_kb.starburst import StarburstManager
from servers import Server

pytestmark = pytest.mark.server("trino")
PEOPLE = ("alice", "bob@shop.example")
CALLS = 100


@pytest.fixture
def marker() -> str:
    return f"marker_{uuid.uuid4().hex}"


@pytest.fixture
def impersonating(trino_server: Server) -> Iterator[StarburstManager]:
    with closing(StarburstManager("127.0.0.1", trino_server.port, "kb", impersonate=True, name="lake")) as backend:
        yield backend


def statement(marker: str, number: int) -> str:
    return f"SELECT current_user AS who /* {marker} {number:03} {PEOPLE[number % 2]} */"


@pytest.mark.timeout(300)
async def test_a_hundred_interleaved_tasks_each_run_as_their_own_user(
    impersonating: StarburstManager, trino_server: Server, marker: str
) -> None:
    async def call(number: int) -> str:
        with acting_as(PEOPLE[number % 2], tenant=f"tenant {number % 2}"):
            await asyncio.sleep(0)
            (record,) = await impersonating.aquery(statement(marker, number), timeout=200)
        return record["metadata"]["row"]["who"]

    answers = await asyncio.gather(*map(call, range(CALLS)))
    assert answers == [PEOPLE[number % 2] for number in range(CALLS)]
    assert users_of(await asyncio.to_thread(admin.queries_with, trino_server.port, marker)) == sorted(PEOPLE * (CALLS // 2))


@pytest.mark.timeout(300)
def test_a_hundred_interleaved_threads_too(impersonating: StarburstManager, trino_server: Server, marker: str) -> None:
    def call(number: int) -> str:
        with acting_as(PEOPLE[number % 2]):
            (record,) = impersonating.query(statement(marker, number), timeout=200)
        return record["metadata"]["row"]["who"]

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(call, range(CALLS)))
    assert answers == [PEOPLE[number % 2] for number in range(CALLS)]
    assert users_of(admin.queries_with(trino_server.port, marker)) == sorted(PEOPLE * (CALLS // 2))


def users_of(queries: list[admin.Query]) -> list[str]:
    """Return who ran the queries, each of which says for whom it was meant."""
    assert [query for query in queries if f" {query.user} " not in query.text] == []
    return sorted(query.user for query in queries)


def test_tenant_and_roles_are_tags_of_the_query(trino_server: Server, marker: str) -> None:
    with (
        closing(StarburstManager("127.0.0.1", trino_server.port, "kb", client_tags=["agent"])) as backend,
        acting_as("zoë, the first", tenant="shop/1", roles=["reader"]),
    ):
        backend.query(f"SELECT 1 /* {marker} */")
    session = admin.session_of(trino_server.port, admin.ended_query(trino_server.port, marker).id)
    assert session["user"] == "kb"
    assert sorted(session["clientTags"]) == [
        "agent",
        "principal:zo%C3%AB%2C%20the%20first",
        "role:reader",
        "tenant:shop%2F1",
    ]


def test_nobody_is_acted_for_where_the_application_bound_nobody(impersonating: StarburstManager) -> None:
    with pytest.raises(KnowledgeIdentityError, match="'lake' answers only on behalf of a user"):
        impersonating.query("SELECT 1")
    assert impersonating.ping()


def test_without_impersonation_an_identity_can_still_be_demanded(trino_server: Server) -> None:
    with closing(StarburstManager("127.0.0.1", trino_server.port, "kb", requires_identity=True)) as backend:
        with pytest.raises(KnowledgeIdentityError):
            backend.query("SELECT 1")
        with acting_as("alice"):
            assert backend.query("SELECT current_user AS who")[0]["text"] == "who=kb"


def test_the_service_itself_asks_where_the_deployment_says_so(trino_server: Server) -> None:
    with closing(StarburstManager("127.0.0.1", trino_server.port, "kb", impersonate=True, requires_identity=False)) as backend:
        assert backend.query("SELECT current_user AS who")[0]["text"] == "who=kb"


@pytest.mark.parametrize("principal", ["zoë", " alice", "alice "])
def test_a_name_that_a_header_would_bend_is_refused(impersonating: StarburstManager, principal: str) -> None:
    with acting_as(principal), pytest.raises(KnowledgeIdentityError, match="ASCII"):
        impersonating.query("SELECT 1")


def test_rights_are_those_of_the_principal(impersonating: StarburstManager, trino_server: Server) -> None:
    with KnowledgeBuilder([impersonating]) as router:
        read_kb = {tool.__name__: tool for tool in router.build()}["read_kb"]
        with acting_as("alice"):
            assert "| alice |" in str(read_kb("lake", "SELECT current_user AS who"))
        assert "on behalf of a user" in str(read_kb("lake", "SELECT current_user AS who"))
