"""PostgreSQL that is not there, lets nobody in, hangs, dies and comes back (X7): each has its state, and no secrets."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import postgres
import pytest

import servers
from agentkernel_kb import (
    AKConfigError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.sql import SQLManager

END_OURS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agentkernel_kb'"
ENDLESS = "SELECT count(*) FROM generate_series(1, 100000000000)"


@pytest.fixture(scope="module")
def own_server() -> Iterator[servers.PrivateServer]:
    with servers.private("postgres") as server:
        yield server


@pytest.fixture
def kb(own_server: servers.PrivateServer) -> Iterator[SQLManager]:
    with closing(SQLManager(own_server.url, name="lake")) as manager:
        yield manager


def one(manager: SQLManager, timeout: float = 20.0) -> object:
    (record,) = manager.query("SELECT 1 AS one", timeout=timeout)
    return record["metadata"]["row"]["one"]


@contextmanager
def hanging(server: servers.PrivateServer) -> Generator[None]:
    """Let the server and all of its processes stand still."""
    pids = [server.pid, *map(int, Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split())]
    try:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def in_background(call: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def wait_until_running(url: str, statement: str) -> None:
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%{}%' AND pid <> pg_backend_pid()"
    for _ in range(200):
        if postgres.rows(url, running.format(statement[-20:-1])) != [(0,)]:
            return
        time.sleep(0.05)
    pytest.fail("the statement never ran")


@pytest.mark.server("postgres")
@pytest.mark.parametrize(
    ("change", "state"),
    [
        (lambda url: url.replace(servers.PASSWORD, "hunter2"), "unauthorized"),
        (lambda url: url.replace("kb:", "nobody_of_that_name:"), "unauthorized"),
        (lambda url: url.replace(f":{servers.PASSWORD}", ""), "unauthorized"),
        (lambda url: url + "_of_no_such_name", "missing"),
        (lambda url: url + "?sslmode=require", "untrusted"),
    ],
    ids=["wrong password", "wrong login", "no password", "wrong database", "no encryption"],
)
def test_why_a_server_cannot_be_used_is_told(
    postgres_server: servers.Server, change: Callable[[str], str], state: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = change(postgres_server.url)
    with pytest.raises(KnowledgeConnectionError) as error:
        SQLManager(url, name="lake")
    assert error.value.state == state
    with closing(SQLManager(url, connect="lazy")) as later:
        for call in (later.ping, lambda: later.query("SELECT 1")):
            with pytest.raises(KnowledgeConnectionError) as again:
                call()
            assert again.value.state == state
        told = f"{later!r} {later.get_description()} {caplog.text} {''.join(traceback.format_exception(error.value))}"
    assert "hunter2" not in told
    assert servers.PASSWORD not in told


def test_a_port_where_nobody_listens_is_unreachable() -> None:
    port = servers.free_port()
    url = f"postgresql://kb:hunter2@127.0.0.1:{port}/kb"
    with pytest.raises(KnowledgeConnectionError, match=f"'kb' at 127.0.0.1:{port} cannot be reached") as error:
        SQLManager(url)
    assert error.value.state == "unreachable"
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize("sslmode", ["disable", "prefer", "require"])
@pytest.mark.server("chroma")
def test_a_port_where_a_web_server_answers_is_unreachable(chroma_server: servers.Server, sslmode: str) -> None:
    with pytest.raises(KnowledgeConnectionError, match="what answers there is no PostgreSQL server") as raised:
        SQLManager(f"postgresql://kb:{servers.PASSWORD}@127.0.0.1:{chroma_server.port}/kb?sslmode={sslmode}")
    assert raised.value.state == "unreachable"
    assert servers.PASSWORD not in str(raised.value)


def test_a_host_that_has_no_address_is_unreachable() -> None:
    with closing(SQLManager("postgresql://kb@nowhere.invalid/kb", connect="lazy")) as manager:
        with pytest.raises(KnowledgeConnectionError) as error:
            manager.ping(timeout=20)
        assert error.value.state == "unreachable"
        assert manager.get_description() == "sql: SQL database (postgres)"


@pytest.mark.parametrize("choice", ["", "never", None, True])
def test_connect_is_eager_or_lazy(choice: object) -> None:
    with pytest.raises(AKConfigError, match="connect is one of"):
        SQLManager("postgresql://kb@127.0.0.1:1/kb", connect=choice)  # pyright: ignore[reportArgumentType] - what is tested


@pytest.mark.parametrize(("scheme", "module", "extra"), [("postgresql", "psycopg", "postgres"), ("duckdb", "duckdb", "duckdb")])
def test_a_driver_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, scheme: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(KnowledgeDependencyError, match=rf"pip install 'agentkernel-kb\[{extra}\]'"):
        SQLManager(f"{scheme}://kb@127.0.0.1:1/kb", connect="lazy")


@pytest.mark.server("postgres")
def test_a_connection_that_the_server_ended_is_replaced_unnoticed(own_server: servers.PrivateServer, kb: SQLManager) -> None:
    assert one(kb) == 1
    postgres.run(
        own_server.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agentkernel_kb'"
    )
    assert one(kb) == 1


@pytest.mark.server("postgres")
def test_a_statement_that_an_administrator_ends_is_no_time_out_of_ours(
    own_server: servers.PrivateServer, kb: SQLManager
) -> None:
    thread, raised = in_background(lambda: kb.query(ENDLESS, timeout=60))
    wait_until_running(own_server.url, ENDLESS)
    postgres.run(
        own_server.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agentkernel_kb'"
    )
    thread.join(30)
    assert [type(error) for error in raised] == [KnowledgeConnectionError]
    assert one(kb) == 1


@pytest.mark.server("postgres")
def test_a_server_that_is_killed_in_the_middle_is_unreachable_and_answers_again(
    own_server: servers.PrivateServer, kb: SQLManager
) -> None:
    thread, raised = in_background(lambda: kb.query(ENDLESS, timeout=60))
    wait_until_running(own_server.url, ENDLESS)
    own_server.kill()
    thread.join(30)
    assert [(type(error), getattr(error, "state", "")) for error in raised] == [(KnowledgeConnectionError, "unreachable")]
    with pytest.raises(KnowledgeConnectionError) as down:
        one(kb)
    assert down.value.state == "unreachable"
    own_server.start()
    assert one(kb) == 1


@pytest.mark.server("postgres")
def test_a_server_that_hangs_ends_calls_at_their_deadline_and_answers_again(
    own_server: servers.PrivateServer, kb: SQLManager
) -> None:
    assert one(kb) == 1
    with hanging(own_server):
        started = time.monotonic()
        for _ in range(3):  # The first on a connection that was kept, the others on new ones.
            with pytest.raises(KnowledgeTimeoutError):
                kb.query("SELECT 1", timeout=1)
        assert time.monotonic() - started < 15
    assert one(kb) == 1


@pytest.mark.server("postgres")
def test_more_calls_than_connections_end_while_the_server_hangs(own_server: servers.PrivateServer, kb: SQLManager) -> None:
    with hanging(own_server):
        calls = [in_background(lambda: kb.query("SELECT 1", timeout=1)) for _ in range(12)]
        for thread, _ in calls:
            thread.join(30)
    assert {type(error) for _, raised in calls for error in raised} == {KnowledgeTimeoutError}
    assert one(kb, timeout=30) == 1


@pytest.mark.server("postgres")
def test_after_close_a_call_says_so_and_connect_opens_again(own_server: servers.PrivateServer, kb: SQLManager) -> None:
    kb.close()
    kb.close()
    with pytest.raises(KnowledgeStateError, match="'lake' is closed"):
        kb.ping()
    kb.connect()
    assert one(kb) == 1
