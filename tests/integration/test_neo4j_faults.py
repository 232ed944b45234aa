"""What Neo4jManager does when the server or the way to it is at fault (X7): each fault is a clear error in time, and heals."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import certificates
import pytest
from neo4j_people import RUNAWAY, SECRET

from agentkernel_kb import (
    KnowledgeBuilder,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeQueryError,
    KnowledgeTimeoutError,
    Limits,
)
from agentkernel_kb.neo4j import Neo4jManager, watch
from servers import PASSWORD, PrivateServer, Server, free_port, private

pytestmark = pytest.mark.server("neo4j")
PATIENCE_SECONDS = 30.0


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateServer]:
    with private("neo4j") as server:
        yield server


@pytest.fixture
def graph(own_server: PrivateServer) -> Iterator[Neo4jManager]:
    graph = Neo4jManager(own_server.url, "neo4j", PASSWORD, connect="lazy")
    yield graph
    graph.close()


def failure(call: Callable[[], object]) -> KnowledgeError:
    with pytest.raises(KnowledgeError) as caught:
        call()
    assert PASSWORD not in str(caught.value)
    assert SECRET not in str(caught.value)
    return caught.value


def ask_until_answered(graph: Neo4jManager) -> None:
    """Ask until there is an answer, as an agent would that tries again."""
    until = time.monotonic() + 120
    while True:
        try:
            assert graph.query("RETURN 1 AS one", timeout=PATIENCE_SECONDS)[0]["text"] == "one=1"
        except (KnowledgeConnectionError, KnowledgeTimeoutError):
            assert time.monotonic() < until
        else:
            return


@pytest.mark.timeout(600)
def test_a_server_that_is_killed_in_the_middle_is_unreachable_and_heals(own_server: PrivateServer, graph: Neo4jManager) -> None:
    ask_until_answered(graph)
    failures: list[KnowledgeError] = []
    asking = threading.Thread(target=lambda: failures.append(failure(lambda: graph.query(RUNAWAY, timeout=60))))
    asking.start()
    time.sleep(1)
    own_server.kill()
    asking.join(PATIENCE_SECONDS)
    assert [(type(error), getattr(error, "state", "")) for error in failures] == [(KnowledgeConnectionError, "unreachable")]
    for call in (lambda: graph.query("RETURN 1"), graph.ping, graph.schema):
        error = failure(call)
        assert isinstance(error, KnowledgeConnectionError)
        assert str(error) == f"Neo4j at 127.0.0.1:{own_server.port} cannot be reached."
    error = failure(lambda: graph.write([{"text": "", "metadata": {"query": "CREATE (:Never)"}}] * 2))
    assert str(error).startswith("Record 1 of 2 and those after it were not stored. Neo4j at")
    answer = {tool.__name__: tool for tool in KnowledgeBuilder([graph]).build()}["read_kb"]("neo4j", "RETURN 1")
    assert "Traceback" not in answer
    assert PASSWORD not in answer
    own_server.start()
    ask_until_answered(graph)


@pytest.mark.timeout(600)
def test_a_paused_server_costs_no_more_than_the_deadline(own_server: PrivateServer, graph: Neo4jManager) -> None:
    ask_until_answered(graph)
    own_server.pause()
    try:
        for _ in range(2):  # Over a connection that there is, then over one that cannot be made.
            started = time.monotonic()
            error = failure(lambda: graph.query("RETURN 2", timeout=1.5))
            assert isinstance(error, KnowledgeTimeoutError)
            assert str(error) == f"Neo4j at 127.0.0.1:{own_server.port} did not answer within 1.5 s."
            assert time.monotonic() - started < 15  # Not the minute for which the driver would go on.
        builder = KnowledgeBuilder([graph], limits=Limits(seconds=1.0))
        answer = {tool.__name__: tool for tool in builder.build()}["read_kb"]("neo4j", "RETURN 3")
        assert answer == "Backend 'neo4j' did not answer within 1 s. Narrow it, or try again."
        graph.close()  # Does not wait for it either.
    finally:
        own_server.resume()
    again = Neo4jManager(own_server.url, "neo4j", PASSWORD, connect="lazy")
    ask_until_answered(again)
    again.close()


def test_a_port_where_nobody_listens_is_unreachable_at_once() -> None:
    port = free_port()
    error = failure(lambda: Neo4jManager(f"bolt://127.0.0.1:{port}", "neo4j", SECRET))
    assert (str(error), getattr(error, "state", "")) == (f"Neo4j at 127.0.0.1:{port} cannot be reached.", "unreachable")
    lazy = Neo4jManager(f"neo4j://127.0.0.1:{port}", "neo4j", SECRET, connect="lazy")
    assert lazy.get_description() == "neo4j: property graph (Cypher)"
    assert isinstance(failure(lambda: lazy.query("RETURN 1")), KnowledgeConnectionError)
    lazy.close()


def test_a_host_that_has_no_address_is_unreachable() -> None:
    error = failure(lambda: Neo4jManager("bolt://nowhere.invalid:7687", "neo4j", SECRET))
    assert (str(error), getattr(error, "state", "")) == ("Neo4j at nowhere.invalid:7687 cannot be reached.", "unreachable")


def test_a_wrong_password_is_unauthorized(neo4j_server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    error = failure(lambda: Neo4jManager(neo4j_server.url, "neo4j", SECRET))
    assert getattr(error, "state", "") == "unauthorized"
    assert "does not let the user in" in str(error)
    assert SECRET not in caplog.text


def test_a_database_that_is_not_there_is_missing(neo4j_server: Server) -> None:
    error = failure(lambda: Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, "nowhere"))
    assert getattr(error, "state", "") == "missing"
    assert "has no database 'nowhere'. Without database= the user's home database is taken." in str(error)
    lazy = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, "nowhere", connect="lazy")
    assert getattr(failure(lambda: lazy.query("RETURN 1")), "state", "") == "missing"
    lazy.close()


def test_a_server_without_tls_is_untrusted_where_tls_is_asked_for(neo4j_server: Server) -> None:
    error = failure(lambda: Neo4jManager(neo4j_server.url.replace("bolt", "bolt+s"), "neo4j", PASSWORD))
    assert getattr(error, "state", "") == "untrusted"


@pytest.mark.parametrize("days", [30, -1], ids=["nobody trusts it", "it has expired"])
def test_a_certificate_that_does_not_hold_is_untrusted(tmp_path: Path, days: int) -> None:
    certificate = certificates.make(tmp_path, "own", days=days)
    with tls_server(certificate) as port:
        error = failure(lambda: Neo4jManager(f"bolt+s://127.0.0.1:{port}", "neo4j", SECRET))
        assert str(error) == f"The certificate of Neo4j at 127.0.0.1:{port} does not hold."
        assert getattr(error, "state", "") == "untrusted"
        if days < 0:  # Though its authority is trusted.
            error = failure(lambda: Neo4jManager(f"bolt://127.0.0.1:{port}", "neo4j", SECRET, certificates=[certificate]))
            assert getattr(error, "state", "") == "untrusted"


@contextmanager
def tls_server(certificate: Path) -> Generator[int]:
    """A server that shows a certificate and says nothing."""
    context = certificates.served(certificate)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    context.wrap_socket(connection, server_side=True).close()
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def test_a_program_that_is_no_graph_server_is_told_apart(chroma_server: Server) -> None:
    own = Neo4jManager(f"bolt://127.0.0.1:{chroma_server.port}", "neo4j", SECRET, connect="lazy")
    assert isinstance(failure(lambda: own.ping(timeout=5)), KnowledgeConnectionError | KnowledgeTimeoutError)
    own.close()


def test_a_cell_of_ten_megabytes_comes_whole_and_is_shown_short(neo4j_server: Server) -> None:
    own = Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)
    doubled = "WITH '0123456789' AS s " + "WITH s + s + s + s + s + s + s + s + s + s AS s " * 3
    (found,) = own.query(f"{doubled} RETURN s + s + s AS big, [x IN range(1, 300) | s] AS many")
    assert len(found["metadata"]["row"]["big"]) == 30_000
    assert sum(map(len, found["metadata"]["row"]["many"])) == 3_000_000
    assert len(found["text"]) < 3_000
    own.close()


# An error that arrives just while something is let go of is told and forgotten; the next one ends the reading.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_row_that_takes_too_long_to_read_is_given_up_and_holds_up_nobody(
    neo4j_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MOST_SECONDS", 0.2)
    with closing(Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)) as graph:
        lists = "UNWIND range(1, 1000) AS a UNWIND range(1, 600) AS b RETURN collect([a, b, 'x']) AS l"
        error = failure(lambda: graph.query(lists, timeout=PATIENCE_SECONDS))
        assert isinstance(error, KnowledgeQueryError)
        assert str(error) == "A row is too large to be read. Return less in one row, or aggregate it."
        assert graph.query("RETURN 1 AS one", timeout=PATIENCE_SECONDS)[0]["text"] == "one=1"


def test_an_error_for_a_row_that_comes_too_late_ends_no_loop(neo4j_server: Server) -> None:
    with closing(Neo4jManager(neo4j_server.url, "neo4j", PASSWORD, name="late")) as graph:
        (thread,) = [each for each in threading.enumerate() if "late" in each.name and not each.name.endswith("-watch")]
        for _ in range(5):
            watch.interrupt(thread)
            assert graph.query("RETURN 1 AS one", timeout=PATIENCE_SECONDS)[0]["text"] == "one=1"


@pytest.mark.parametrize("nested", ["[s]", "{a: s}"], ids=["lists", "maps"])
def test_a_value_that_is_nested_too_deeply_for_the_driver_is_a_clear_error(neo4j_server: Server, nested: str) -> None:
    with closing(Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)) as graph:
        error = failure(lambda: graph.query(f"RETURN reduce(s = null, i IN range(1, 1000) | {nested}) AS x"))
        assert isinstance(error, KnowledgeQueryError)
        assert str(error) == "A value is nested too deeply for the driver of Neo4j."


def test_a_parameter_that_is_nested_too_deeply_for_the_driver_is_a_clear_error(neo4j_server: Server) -> None:
    deep: list[object] = []
    for _ in range(1_500):
        deep = [deep]
    record = {"text": "", "metadata": {"query": "CREATE (n:Nobody {p: size($deep)})", "params": {"deep": deep}}}
    with closing(Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)) as graph:
        assert "nested too deep" in str(failure(lambda: graph.write([record])))


@pytest.mark.parametrize(
    "value", ["substring('abc', 0, 2147483648)", "[1, 2, 3][1..9223372036854775807]"], ids=["length", "index"]
)
def test_a_number_that_the_server_cannot_take_is_the_statements_own_fault(neo4j_server: Server, value: str) -> None:
    with closing(Neo4jManager(neo4j_server.url, "neo4j", PASSWORD)) as graph:
        error = failure(lambda: graph.query(f"RETURN {value} AS x"))
        assert isinstance(error, KnowledgeQueryError)
        assert "xpected an" in str(error)
