"""What chromadb does not publish (row A11): nothing of it is missing here, and what is missing elsewhere is said once."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import chromadb
import pytest
from chromadb.api import ClientAPI
from chromadb.config import Settings

from agentkernel_kb.chroma import ChromaManager, unpublished
from agentkernel_kb.embed import HashEmbedder

EMBEDDER = HashEmbedder(64)


@pytest.fixture(autouse=True)
def nothing_was_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpublished, "_WARNED", set[str]())


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "agentkernel_kb.chroma"]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ClientAPI]:
    own = chromadb.PersistentClient(tmp_path, settings=Settings(anonymized_telemetry=False))
    yield own
    cast("Any", own).close()


class OnlyPublished:
    """A client that hands on what Chroma publishes, and has nothing else."""

    def __init__(self, client: ClientAPI) -> None:
        self.get_collection = client.get_collection
        self.create_collection = client.create_collection
        self.get_max_batch_size = client.get_max_batch_size
        self.get_settings = client.get_settings


def test_nothing_is_missing_in_a_folder_with_this_chromadb(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    manager = ChromaManager(tmp_path, embedding_function=EMBEDDER)
    manager.write([{"text": "text"}])
    manager.close()

    assert said(caplog) == []


def test_a_client_without_them_works_and_what_is_lost_is_said_once(client: ClientAPI, caplog: pytest.LogCaptureFixture):
    for _ in range(2):
        manager = ChromaManager(client=cast("Any", OnlyPublished(client)), embedding_function=EMBEDDER)
        manager.write([{"text": "text"}])
        assert [found["text"] for found in manager.search("text")] == ["text"]
        manager.close()

    assert said(caplog) == [
        f"chromadb {version('chromadb')} has no _server.bindings and _server.start of an embedded client, so that a process "
        "does not see what other processes write to its folder until it opens it again; use a version of chromadb that "
        "agentkernel-kb was tested with."
    ]
    assert {record.levelname for record in caplog.records if record.name == "agentkernel_kb.chroma"} == {"WARNING"}


@pytest.mark.parametrize("given", [SimpleNamespace(), SimpleNamespace(_server=SimpleNamespace(bindings=1))])
def test_a_client_that_cannot_read_anew_is_told(given: object, caplog: pytest.LogCaptureFixture):
    assert unpublished.reloader(given) is None
    assert len(said(caplog)) == 1


def test_http_sessions_that_are_missing_are_told_each_once(caplog: pytest.LogCaptureFixture):
    session = object()
    half = SimpleNamespace(_server=SimpleNamespace(_session=session))

    assert unpublished.http_sessions(half) == [session]
    assert unpublished.http_sessions(SimpleNamespace()) == unpublished.http_sessions(SimpleNamespace()) == []
    messages = said(caplog)
    assert [message.split(" has no ")[1].split(",")[0] for message in messages] == [
        "_admin_client._server._session of an HTTP client",
        "_server._session of an HTTP client",
    ]
    assert all("requests to a server have no time limit" in message for message in messages)


def test_a_chromadb_without_its_table_of_folders_is_told(caplog: pytest.LogCaptureFixture):
    assert unpublished.table_of(SimpleNamespace()) is None
    assert ["two spellings of one folder" in message for message in said(caplog)] == [True]


def test_managers_work_without_that_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agentkernel_kb.chroma.connection.open_folders", lambda: unpublished.table_of(None))
    first, second = (ChromaManager(tmp_path, embedding_function=EMBEDDER) for _ in range(2))
    first.write([{"text": "one text"}])
    second.write([{"text": "other text"}])
    first.close()

    assert sorted(found["text"] for found in second.search("text")) == ["one text", "other text"]
    second.close()
