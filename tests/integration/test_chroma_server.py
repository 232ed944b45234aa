"""ChromaManager (row A11) on a real Chroma server: the same behaviour, clear errors, and no secret in any of them."""

from __future__ import annotations

import gc
import json
import secrets
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import certificates
import pytest
from chroma_proxy import TOKEN_HEADER, proxy

import servers
from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeConnectionError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.router.resilience import Resilience
from agentkernel_kb.testing import FakeKnowledgeBase

pytestmark = [
    pytest.mark.server("chroma"),
    # chromadb 1.5.9 leaves the connection of a client that could not be constructed to the garbage collector.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]
EMBEDDER = HashEmbedder(64)
SECRET = "hunter2canary"
HEADERS = {TOKEN_HEADER: SECRET}
DEFAULT = "/api/v2/tenants/default_tenant/databases/default_database"

Make = Callable[..., ChromaManager]


def ask(port: int, method: str, path: str, body: object = None) -> None:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data, {"content-type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60):
        pass


def create_collection(port: int, name: str, configuration: object = None) -> None:
    ask(port, "POST", f"{DEFAULT}/collections", {"name": name, "configuration": configuration})


def delete_collection(port: int, name: str) -> None:
    ask(port, "DELETE", f"{DEFAULT}/collections/{name}")


@pytest.fixture
def collection(chroma_server: servers.Server) -> Iterator[str]:
    """The name of a collection of this test alone, which is deleted in the end."""
    name = f"test-{secrets.token_hex(8)}"
    yield name
    try:
        delete_collection(chroma_server.port, name)
    except OSError:  # The test itself deleted it, or never made it.
        return


@pytest.fixture
def make(chroma_server: servers.Server, collection: str) -> Iterator[Make]:
    """Makes managers on that collection, which are closed in the end."""
    made: list[ChromaManager] = []

    def manager(**arguments: Any) -> ChromaManager:
        usual: dict[str, Any] = {"host": "127.0.0.1", "port": chroma_server.port, "headers": HEADERS}
        usual |= {"collection_name": collection, "embedding_function": EMBEDDER}
        made.append(ChromaManager(**(usual | arguments)))
        return made[-1]

    yield manager
    for each in made:
        each.close()
    gc.collect()


def test_what_was_written_is_found_by_another_client(make: Make):
    writer, reader = make(), make()
    metadata = {"source": "faq", "year": 2024, "tags": ["a"], "nested": {"a": None}}

    assert reader.search("refunds") == []
    assert writer.add([{"text": "Refunds within 30 days.", "metadata": {"id": "r", **metadata}}]) == ["r"]
    (found,) = reader.search("refunds", where={"year": 2024})
    score = found["metadata"]["score"]
    assert found == {"text": "Refunds within 30 days.", "metadata": {"id": "r", **metadata, "score": score}}
    assert 0 < score < 1


def test_a_record_replaces_the_older_one_with_its_metadata(make: Make):
    kb = make()
    kb.write([{"text": "old", "metadata": {"id": "x", "gone": 1}}])
    kb.write([{"text": "new", "metadata": {"id": "x", "kept": 2}}])
    (found,) = kb.search("new")

    assert sorted(found["metadata"]) == ["id", "kept", "score"]


def test_another_function_is_refused(make: Make):
    make().write([{"text": "text"}])

    with pytest.raises(AKConfigError, match="'hash-64-v2', not with 'hash-8-v2'"):
        make(embedding_function=HashEmbedder(8))


def test_a_limit_beyond_what_chroma_can_count_is_fine(make: Make):
    kb = make()
    kb.write([{"text": "text"}])

    assert len(kb.search("text", limit=10**12)) == 1


def test_nothing_unpublished_that_limits_requests_is_missing(make: Make, caplog: pytest.LogCaptureFixture):
    make()

    assert [record.getMessage() for record in caplog.records if record.name == "agentkernel_kb.chroma"] == []


def test_headers_are_not_shown(make: Make, chroma_server: servers.Server, collection: str):
    kb = make()

    assert repr(kb) == f"ChromaManager('chromadb', collection='{collection}', at=127.0.0.1:{chroma_server.port})"
    assert SECRET not in repr(vars(kb))


WRITER = """
import sys, threading
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder

port, collection, name = sys.argv[1:]
kb = ChromaManager(host="127.0.0.1", port=int(port), collection_name=collection, embedding_function=HashEmbedder(64))

def write(thread):
    for number in range(10):
        kb.write([{"text": f"note {number} of {thread}", "metadata": {"id": f"{name}-{thread}-{number}"}}])

threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
kb.close()
"""


def test_many_writers_at_once_lose_nothing(make: Make, chroma_server: servers.Server, collection: str):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(chroma_server.port), collection, name]) for name in ("a", "b")
    ]
    assert [writer.wait(110) for writer in writers] == [0, 0]

    found = {record["metadata"]["id"] for record in make().search("note", limit=200)}
    assert found == {f"{process}-{thread}-{number}" for process in "ab" for thread in range(4) for number in range(10)}


# What is not there.


@pytest.mark.parametrize("wrong", [{"tenant": "nowhere"}, {"database": "nowhere"}], ids=["tenant", "database"])
def test_an_unknown_tenant_or_database_is_a_clear_error(wrong: dict[str, str], make: Make):
    with pytest.raises(
        KnowledgeConnectionError, match="does not know the tenant, database or collection of 'chromadb'"
    ) as caught:
        make(**wrong)
    assert caught.value.state == "missing"


def test_a_database_of_ones_own_is_used(make: Make, chroma_server: servers.Server):
    name = f"test-{secrets.token_hex(8)}"
    ask(chroma_server.port, "POST", "/api/v2/tenants/default_tenant/databases", {"name": name})
    try:
        make(tenant="default_tenant", database=name).write([{"text": "only here"}])
        assert make().search("only here") == []
        assert len(make(database=name).search("only here")) == 1
    finally:
        ask(chroma_server.port, "DELETE", f"/api/v2/tenants/default_tenant/databases/{name}")


def test_a_server_that_is_not_there_is_named_without_headers(make: Make):
    port = servers.free_port()

    with pytest.raises(KnowledgeConnectionError) as caught:
        make(name="docs", port=port)

    assert str(caught.value) == f"Chroma at 127.0.0.1:{port} can't be reached by 'docs'; is its server running?"
    assert caught.value.state == "unreachable"


def test_a_server_that_does_not_answer_is_given_up(make: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agentkernel_kb.chroma.server.CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(KnowledgeTimeoutError, match=rf"127.0.0.1:{port} did not answer 'chromadb' within 0.3 seconds"):
            make(port=port)


def test_however_many_calls_wait_for_a_server_that_hangs_one_thread_connects(make: Make):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kb = make(port=silent.getsockname()[1], connect="lazy")
        for _ in range(5):
            with pytest.raises(KnowledgeTimeoutError):
                kb.search("text", timeout=0.1)
        assert len([thread for thread in threading.enumerate() if thread.name.startswith("kb-chromadb-connect")]) == 1


def test_a_server_speaking_no_tls_is_not_reached_with_it(make: Make):
    with pytest.raises(KnowledgeConnectionError, match="can't be reached"):
        make(ssl=True)


def test_a_collection_that_was_deleted_is_a_clear_error_and_connecting_again_makes_it_anew(
    make: Make, chroma_server: servers.Server, collection: str
):
    kb = make()
    kb.write([{"text": "text"}])
    delete_collection(chroma_server.port, collection)

    for call in (lambda: kb.search("text"), lambda: kb.write([{"text": "text"}]), kb.ping):
        with pytest.raises(KnowledgeConnectionError, match=r"if it was deleted, call close\(\) and connect\(\)") as caught:
            call()
        assert caught.value.state == "missing"
    kb.close()
    kb.connect()
    assert kb.search("text") == []


def test_a_collection_that_was_deleted_and_made_anew_by_somebody_else_is_found(
    make: Make, chroma_server: servers.Server, collection: str
):
    kb, other = make(), make()
    kb.write([{"text": "old"}])
    delete_collection(chroma_server.port, collection)
    create_collection(chroma_server.port, collection)
    other.write([{"text": "new"}])

    assert [found["text"] for found in kb.search("new", limit=10)] == ["new"]


def test_a_function_that_a_collection_was_stored_with_is_never_built(
    make: Make, chroma_server: servers.Server, collection: str
):
    config = {"model_name": "x/y", "device": "cpu", "normalize_embeddings": False, "kwargs": {"trust_remote_code": True}}
    function = {"type": "known", "name": "sentence_transformer", "config": config}
    create_collection(chroma_server.port, collection, {"embedding_function": function})
    kb = make()
    # Building it would fail here, where that package is not installed, with a warning, which is an error in these tests.
    kb.write([{"text": "text"}])
    kb.write([{"text": "more text"}])
    assert len(kb.search("text")) == 2
    assert "sentence_transformers" not in sys.modules


# A proxy that demands a token.


def test_a_token_in_the_headers_opens_a_proxy_that_demands_it(make: Make, chroma_server: servers.Server):
    with proxy(chroma_server.port, SECRET) as guard:
        kb = make(port=guard.port)
        kb.write([{"text": "text"}])
        assert [found["text"] for found in kb.search("text")] == ["text"]
        assert kb.ping()
        assert guard.refused == 0
        kb.close()


@pytest.mark.parametrize("headers", [None, {TOKEN_HEADER: f"wrong-{SECRET}"}], ids=["none", "wrong"])
def test_a_wrong_token_is_told_apart_from_a_server_that_is_not_there(
    headers: dict[str, str] | None, make: Make, chroma_server: servers.Server, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO")
    with proxy(chroma_server.port, SECRET) as guard:
        with pytest.raises(KnowledgeConnectionError, match="refused the credentials of 'chromadb'") as caught:
            make(port=guard.port, headers=headers)
        assert caught.value.state == "unauthorized"

        router = KnowledgeBuilder([make(port=guard.port, headers=headers, connect="lazy")])
        answer = router.build()[1]("chromadb", "text")
        assert answer.startswith("Backend 'chromadb' does not let this application in.")
        health = router.health(timeout=30)["chromadb"]
        assert health.state == "unauthorized"
        for text in (str(caught.value), repr(caught.value), answer, repr(health), caplog.text):
            assert SECRET not in text


def test_a_token_that_is_withdrawn_is_told_at_the_next_call(make: Make, chroma_server: servers.Server):
    with proxy(chroma_server.port, SECRET) as guard:
        kb = make(port=guard.port)
        guard.token = "another"
        with pytest.raises(KnowledgeConnectionError) as caught:
            kb.search("text")
        assert caught.value.state == "unauthorized"
        kb.close()


def test_a_proxy_with_nobody_behind_it_is_a_server_that_is_not_there(make: Make):
    with proxy(servers.free_port(), SECRET) as guard, pytest.raises(KnowledgeConnectionError) as caught:
        make(port=guard.port)
    assert caught.value.state == "unreachable"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return certificates.make(tmp_path, "server")


def test_a_certificate_that_nobody_vouches_for_is_told_apart(make: Make, chroma_server: servers.Server, certificate: Path):
    with proxy(chroma_server.port, SECRET, certificate) as guard:
        with pytest.raises(KnowledgeConnectionError, match="certificate that does not hold") as caught:
            make(port=guard.port, ssl=True)
        assert caught.value.state == "untrusted"


def test_a_certificate_that_the_machine_trusts_is_taken(
    make: Make, chroma_server: servers.Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with proxy(chroma_server.port, SECRET, certificate) as guard:
        kb = make(port=guard.port, ssl=True)
        kb.write([{"text": "text"}])
        assert len(kb.search("text")) == 1
        kb.close()


# Lazy, ping and what comes and goes.


def test_ping_gives_the_version_that_the_server_tells(make: Make, chroma_server: servers.Server):
    with urllib.request.urlopen(f"{chroma_server.url}/api/v2/version", timeout=60) as told:
        assert make().ping(timeout=30) == json.load(told)


def test_a_lazy_manager_opens_at_its_first_use_and_not_after_it_was_closed(make: Make):
    kb = make(connect="lazy")
    kb.write([{"text": "text"}])
    assert len(kb.search("text")) == 1
    kb.close()
    with pytest.raises(KnowledgeStateError, match="is closed"):
        kb.search("text")


def test_connect_is_eager_or_lazy(make: Make):
    with pytest.raises(AKConfigError, match="connect must be 'eager' or 'lazy', not 'later'"):
        make(connect="later")


def test_a_lazy_manager_whose_server_is_down_at_start_does_not_stop_the_others(make: Make):
    down = make(name="docs", port=servers.free_port(), connect="lazy").add_schema({"usage": "Ask."})
    up = FakeKnowledgeBase("notes", [{"text": "hello", "metadata": {}}])
    with KnowledgeBuilder([down, up], resilience=Resilience(wait_seconds=0.01)) as router:
        tools = {tool.__name__: tool for tool in router.build()}
        assert "docs" in router.instructions()
        assert '"usage": "Ask."' in tools["get_schemas"]()
        assert "docs" in tools["get_all_kb_descriptions"]()
        assert tools["search_kb"]("notes", "hello") == "- hello (source: N/A)"
        assert tools["search_kb"]("docs", "hello").startswith("Backend 'docs' can't be reached.")
        assert [each.state for each in router.health(timeout=30).values()] == ["unreachable", "ok"]
