"""On whose behalf Neo4j is asked (X18): the server's own list of transactions says whom it saw for each call."""

from __future__ import annotations

import asyncio
import re
import threading
import uuid
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import LiteralString, cast

import neo4j
import pytest

from agentkernel_kb import KnowledgeConnectionError, KnowledgeIdentityError, KnowledgeTimeoutError, Record
from agentkernel_kb.identity import acting_as
from agentkernel_kb.neo4j import Neo4jManager
from servers import PASSWORD, Server

pytestmark = pytest.mark.server("neo4j")
RUN = uuid.uuid4().hex[:12]
CALLS, TOGETHER = 50, 10  # By tasks, and as many by threads.
WAITS = f"MATCH (n:Lock{RUN}) SET n.mark = '{{mark}}'"
SEEN = "SHOW TRANSACTIONS YIELD transactionId, currentQuery, metaData RETURN transactionId, currentQuery, metaData"


class Watcher:
    """Asks the server as its administrator, over and over, whom it runs statements for, and ends those that it has seen."""

    def __init__(self, url: str) -> None:
        self.seen: dict[str, tuple[str, str]] = {}
        self._url, self._stop = url, threading.Event()

    @contextmanager
    def watching(self) -> Generator[dict[str, tuple[str, str]]]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield self.seen
        finally:
            self._stop.set()
            thread.join()

    def _watch(self) -> None:
        with neo4j.GraphDatabase.driver(self._url, auth=("neo4j", PASSWORD)) as driver, driver.session() as session:
            while not self._stop.is_set():
                for transaction, query, told in session.run(SEEN).values():
                    if mark := re.search(rf"mark-{RUN}-(\w+-\d+)", str(query)):
                        self.seen[mark[1]] = (told.get("principal", ""), told.get("tenant", ""))
                        session.run("TERMINATE TRANSACTION $id", id=transaction).consume()


@pytest.fixture
def graph(neo4j_server: Server) -> Iterator[Neo4jManager]:
    graph = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, requires_identity=True)
    yield graph
    graph.close()


def ask(mark: str) -> Record:
    return {"text": "", "metadata": {"query": WAITS.format(mark=f"mark-{RUN}-{mark}")}}


@contextmanager
def held_lock(url: str) -> Generator[None]:
    """Hold a node, so that every statement that sets something on it waits without any work."""
    with neo4j.GraphDatabase.driver(url, auth=("neo4j", PASSWORD)) as driver, driver.session() as session:
        session.run(cast("LiteralString", f"CREATE (:Lock{RUN})")).consume()
        with session.begin_transaction() as transaction:
            transaction.run(cast("LiteralString", f"MATCH (n:Lock{RUN}) SET n.held = true")).consume()
            yield
            transaction.rollback()
        session.run(cast("LiteralString", f"MATCH (n:Lock{RUN}) DELETE n")).consume()


@pytest.mark.timeout(300)
def test_the_server_saw_the_right_principal_for_each_of_100_interleaved_calls(
    graph: Neo4jManager, neo4j_server: Server
) -> None:
    """Each statement waits until the server has told for whom it runs, and is ended then; tasks and threads ask at once."""

    def by_thread(mark: str) -> None:
        principal, tenant = expected(mark)
        with acting_as(principal, tenant=tenant), pytest.raises(KnowledgeTimeoutError, match="stopped the statement"):
            graph.write([ask(mark)], timeout=200)

    async def by_task(mark: str) -> None:
        principal, tenant = expected(mark)
        with acting_as(principal, tenant=tenant), pytest.raises(KnowledgeTimeoutError, match="stopped the statement"):
            await graph.awrite([ask(mark)], timeout=200)

    async def by_tasks() -> None:
        for start in range(0, CALLS, TOGETHER):
            await asyncio.gather(*(by_task(f"task-{number}") for number in range(start, start + TOGETHER)))

    def by_threads() -> None:
        with ThreadPoolExecutor(TOGETHER) as pool:
            list(pool.map(by_thread, (f"thread-{number}" for number in range(CALLS))))

    with held_lock(neo4j_server.url), Watcher(neo4j_server.url).watching() as seen:
        asking = threading.Thread(target=by_threads)
        asking.start()
        asyncio.run(by_tasks())
        asking.join()
    marks = [f"{how}-{number}" for how in ("task", "thread") for number in range(CALLS)]
    assert seen == {mark: expected(mark) for mark in marks}


def expected(mark: str) -> tuple[str, str]:
    odd = int(mark.rpartition("-")[2]) % 2
    return ("ann" if odd else "bob", f"t{odd}")


def test_without_an_identity_every_call_is_refused(graph: Neo4jManager) -> None:
    calls = (
        lambda: graph.query("RETURN 1"),
        lambda: graph.write([{"text": "", "metadata": {"query": "CREATE (:Never)"}}]),
        lambda: graph.ping(),
        lambda: graph.schema(),
    )
    for call in calls:
        with pytest.raises(KnowledgeIdentityError, match="answers only on behalf of a user"):
            call()
    with acting_as("ann"):
        assert graph.query("RETURN 1 AS one")[0]["text"] == "one=1"
        assert graph.ping()


def test_impersonation_that_the_edition_does_not_offer_is_a_clear_error(neo4j_server: Server) -> None:
    graph = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, impersonate=True)
    with acting_as("ann"), pytest.raises(KnowledgeIdentityError, match="takes no impersonation; its Enterprise edition does"):
        graph.query("RETURN 1")
    with pytest.raises(KnowledgeIdentityError, match="answers only on behalf of a user"):
        graph.query("RETURN 1")
    graph.close()


def test_a_tenant_has_its_database_and_no_other(neo4j_server: Server) -> None:
    graph = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, database_of={"here": "neo4j", "there": f"none{RUN}"})
    with acting_as("ann", tenant="here"):
        assert graph.query("RETURN 1 AS one")[0]["text"] == "one=1"
    with acting_as("ann", tenant="there"), pytest.raises(KnowledgeConnectionError, match="has no database") as caught:
        graph.query("RETURN 1")
    assert caught.value.state == "missing"
    with acting_as("ann", tenant="elsewhere"), pytest.raises(KnowledgeIdentityError, match="no database for this tenant"):
        graph.query("RETURN 1")
    with acting_as("ann"), pytest.raises(KnowledgeIdentityError, match="this call has no tenant"):
        graph.query("RETURN 1")
    graph.close()
