"""ChromaManager (row A11) on a real Chroma server: the same behaviour, clear errors, and no secret in any of them."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeConnectionError

EMBEDDER = HashEmbedder(64)
HEADERS = {"x-chroma-token": "SECRET"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Server:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        deadline = time.monotonic() + 100
        while not self.answers():
            assert self.process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not answer"
            time.sleep(0.1)

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v2/heartbeat", timeout=10):
                return True
        except OSError:
            return False

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(timeout=10)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("chroma"), free_port())
    running.start()
    yield running
    running.stop()


def manager(server: Server, collection: str, embedder: HashEmbedder = EMBEDDER) -> ChromaManager:
    return ChromaManager(
        host="127.0.0.1", port=server.port, headers=HEADERS, collection_name=collection, embedding_function=embedder
    )


def test_what_was_written_is_found_by_another_client(server: Server):
    writer, reader = manager(server, "shared"), manager(server, "shared")
    metadata = {"source": "faq", "year": 2024, "tags": ["a"], "nested": {"a": None}}

    assert reader.search("refunds") == []
    assert writer.add([{"text": "Refunds within 30 days.", "metadata": {"id": "r", **metadata}}]) == ["r"]
    (found,) = reader.search("refunds", where={"year": 2024})
    writer.close()
    reader.close()
    score = found["metadata"]["score"]
    assert found == {"text": "Refunds within 30 days.", "metadata": {"id": "r", **metadata, "score": score}}
    assert 0 < score < 1


def test_a_record_replaces_the_older_one_with_its_metadata(server: Server):
    kb = manager(server, "replaced")
    kb.write([{"text": "old", "metadata": {"id": "x", "gone": 1}}])
    kb.write([{"text": "new", "metadata": {"id": "x", "kept": 2}}])
    (found,) = kb.search("new")
    kb.close()

    assert sorted(found["metadata"]) == ["id", "kept", "score"]


def test_another_function_is_refused(server: Server):
    kb = manager(server, "bound")
    kb.write([{"text": "text"}])
    kb.close()

    with pytest.raises(AKConfigError, match="'hash-64-v1', not with 'hash-8-v1'"):
        manager(server, "bound", HashEmbedder(8))


def test_a_limit_beyond_what_chroma_can_count_is_fine(server: Server):
    kb = manager(server, "limits")
    kb.write([{"text": "text"}])

    assert len(kb.search("text", limit=10**12)) == 1
    kb.close()


def test_nothing_unpublished_that_limits_requests_is_missing(server: Server, caplog: pytest.LogCaptureFixture):
    manager(server, "unpublished").close()

    assert [record.getMessage() for record in caplog.records if record.name == "agentkernel_kb.chroma"] == []


def test_a_server_that_is_not_there_is_named_without_headers():
    port = free_port()

    with pytest.raises(KnowledgeConnectionError) as caught:
        ChromaManager(name="docs", host="127.0.0.1", port=port, headers=HEADERS, embedding_function=EMBEDDER)

    assert str(caught.value) == f"Chroma at 127.0.0.1:{port} can't be reached by 'docs'; is its server running?"


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agentkernel_kb.chroma.connection.CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(KnowledgeConnectionError, match=rf"127.0.0.1:{port} did not answer 'chromadb' within 0.3 seconds"):
            ChromaManager(host="127.0.0.1", port=port, embedding_function=EMBEDDER)


# chromadb 1.5.9 leaves the connection of a client that could not be constructed to the garbage collector.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_an_unknown_database_is_a_clear_error(server: Server):
    with pytest.raises(KnowledgeBackendError, match="does not know the tenant, database or collection of 'chromadb'"):
        ChromaManager(host="127.0.0.1", port=server.port, database="nowhere", embedding_function=EMBEDDER)
    gc.collect()


def test_headers_are_not_shown(server: Server):
    kb = manager(server, "hidden")
    kb.close()

    assert repr(kb) == f"ChromaManager('chromadb', collection='hidden', at=127.0.0.1:{server.port})"
    assert "SECRET" not in repr(vars(kb))


def test_a_collection_that_was_deleted_is_a_clear_error_and_connecting_again_makes_it_anew(server: Server):
    kb = manager(server, "deleted")
    kb.write([{"text": "text"}])
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/api/v2/tenants/default_tenant/databases/default_database/collections/deleted",
        method="DELETE",
    )
    with urllib.request.urlopen(request, timeout=60):
        pass

    with pytest.raises(KnowledgeBackendError, match=r"if it was deleted, call close\(\) and connect\(\)"):
        kb.search("text")
    kb.close()
    kb.connect()
    assert kb.search("text") == []
    kb.close()


def test_a_server_that_dies_is_an_error_and_heals_when_it_is_back(tmp_path: Path):
    server = Server(tmp_path, free_port())
    server.start()
    kb = manager(server, "survives")
    kb.write([{"text": "text"}])
    server.stop()

    with pytest.raises(KnowledgeConnectionError, match=rf"Chroma at 127.0.0.1:{server.port} can't be reached"):
        kb.search("text")
    server.start()
    assert [found["text"] for found in kb.search("text")] == ["text"]
    kb.close()
    server.stop()
