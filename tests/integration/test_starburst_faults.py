"""A Trino server that hangs, dies and comes back, and answers that are none: each with a deliberate outcome (A13, X7)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import trino_statements as admin

from agentkernel_kb import KnowledgeBackendError, KnowledgeConnectionError, KnowledgeTimeoutError
from agentkernel_kb.starburst import StarburstManager
from servers import PrivateServer, private

pytestmark = [pytest.mark.server("trino"), pytest.mark.timeout(900)]
LONG = "SELECT count(*) FROM tpch.sf1000.lineitem"
HANG_SECONDS = 100.0


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    with private("trino") as server:
        admin.wait_for_nodes(server.port)
        yield server


@pytest.fixture
def backend(own: PrivateServer) -> Iterator[StarburstManager]:
    with closing(StarburstManager("127.0.0.1", own.port, "kb", None, "tpch", "tiny", connect="lazy")) as manager:
        yield manager


def took(call: object, *arguments: object, **options: object) -> tuple[BaseException | None, float]:
    """Call, and return what it raised and how many seconds it took."""
    assert callable(call)
    started = time.monotonic()
    try:
        call(*arguments, **options)
    except Exception as error:  # noqa: BLE001 - what it is, is what the tests look at
        return error, time.monotonic() - started
    return None, time.monotonic() - started


def test_a_server_that_hangs_costs_no_more_than_the_time_that_there_is(own: PrivateServer, backend: StarburstManager) -> None:
    assert backend.ping(timeout=90)
    own.pause()
    try:
        error, seconds = took(backend.query, "SELECT * FROM nation", timeout=2.0)
        assert isinstance(error, KnowledgeTimeoutError)
        assert seconds < 20
        error, seconds = took(backend.ping, timeout=1.0)
        assert isinstance(error, KnowledgeTimeoutError)
    finally:
        own.resume()
    assert len(backend.query("SELECT * FROM nation", timeout=90)) == 3


def test_a_query_that_somebody_ends_on_the_server_says_so(own: PrivateServer, backend: StarburstManager) -> None:
    marker = f"marker_{uuid.uuid4().hex}"

    def end() -> None:
        query = admin.started_query(own.port, marker)
        admin.rows(own.port, f"CALL system.runtime.kill_query('{query.id}', 'enough')")

    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(end)
        with pytest.raises(KnowledgeBackendError, match="stopped on the server"):
            backend.query(f"{LONG} /* {marker} */", timeout=HANG_SECONDS)
        ended.result()


def test_a_server_that_is_killed_in_the_midst_of_a_query_is_told_quickly_and_used_again(
    own: PrivateServer, backend: StarburstManager
) -> None:
    marker = f"marker_{uuid.uuid4().hex}"
    backend.ping(timeout=90)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(took, backend.query, f"{LONG} /* {marker} */", timeout=HANG_SECONDS)
        admin.started_query(own.port, marker)
        killed = time.monotonic()
        own.kill()
        error, _ = call.result()
    assert isinstance(error, KnowledgeConnectionError)
    assert error.state == "unreachable"
    assert time.monotonic() - killed < HANG_SECONDS / 2
    error, seconds = took(backend.query, "SELECT 1", timeout=HANG_SECONDS)
    assert isinstance(error, KnowledgeConnectionError)
    assert seconds < HANG_SECONDS / 2
    own.start()
    admin.wait_for_nodes(own.port)
    # The connections that were open before are dead: the first call notices, and is made once more.
    assert len(backend.query("SELECT * FROM nation", timeout=90)) == 3
