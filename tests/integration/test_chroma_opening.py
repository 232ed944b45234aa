"""ChromaManager (row A11) constructed, opened, shared and closed: the arguments, what stays, and clear errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import chromadb
import pytest
from chromadb.api import ClientAPI
from chromadb.config import Settings

from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.chroma.connection import _FOLDERS  # pyright: ignore[reportPrivateUsage] - that it shrinks is the promise
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeStateError

EMBEDDER = HashEmbedder(64)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[ChromaManager]:
    manager = ChromaManager(tmp_path / "db", embedding_function=EMBEDDER)
    yield manager
    manager.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ClientAPI]:
    own = chromadb.PersistentClient(tmp_path, settings=Settings(anonymized_telemetry=False))
    yield own
    cast("Any", own).close()


def record(text: str, /, **metadata: Any) -> dict[str, Any]:
    return {"text": text, "metadata": metadata}


def texts(found: list[Any]) -> list[str]:
    return [one["text"] for one in found]


def test_it_declares_semantic_search_and_writing(kb: ChromaManager):
    assert kb.capabilities.model_dump() == {
        "kinds": ["vector"],
        "search": True,
        "search_mode": "semantic",
        "query": False,
        "query_language": None,
        "fetch": False,
        "browse": False,
        "writable": True,
        "derives_schema": False,
        "filters": True,
    }


def test_the_seeds_positional_arguments_are_kept(tmp_path: Path):
    manager = ChromaManager(str(tmp_path), "notes", "my_notes", "What we noted.", EMBEDDER)
    manager.close()

    assert manager.backend_name == "notes"
    assert manager.get_description() == "notes: What we noted."


def test_the_name_is_chromadb_unless_given(kb: ChromaManager):
    assert kb.backend_name == "chromadb"
    assert "chromadb" in kb.get_description()


def test_a_client_that_was_given_stays_open(client: ClientAPI):
    manager = ChromaManager(client=client, embedding_function=EMBEDDER)
    manager.write([record("text")])
    manager.close()

    assert client.get_collection("knowledge_base", embedding_function=None).count() == 1


def test_a_chroma_in_memory_can_be_given():
    in_memory = chromadb.EphemeralClient(settings=Settings(anonymized_telemetry=False))
    manager = ChromaManager(client=in_memory, collection_name="in_memory", embedding_function=EMBEDDER)
    ids = manager.add([record("Refunds within 30 days.", source="faq", when=None), record("We ship on Mondays.")])

    (found,) = manager.search("refunds")
    manager.close()
    score = found["metadata"]["score"]
    assert found == {
        "text": "Refunds within 30 days.",
        "metadata": {"id": ids[0], "source": "faq", "when": None, "score": score},
    }
    assert repr(manager) == "ChromaManager('chromadb', collection='in_memory', at=the given client)"
    assert in_memory.get_collection("in_memory", embedding_function=None).count() == 2
    in_memory.delete_collection("in_memory")
    cast("Any", in_memory).close()


def test_a_folder_is_forgotten_when_the_last_manager_of_it_is_closed(tmp_path: Path):
    before = set(_FOLDERS)
    first, second = (ChromaManager(tmp_path, embedding_function=EMBEDDER) for _ in range(2))
    first.write([record("text")])
    first.close()
    assert set(_FOLDERS) - before == {tmp_path.resolve()}

    second.search("text")
    second.close()
    assert set(_FOLDERS) == before


def test_the_folder_of_a_given_client_is_forgotten_too(client: ClientAPI):
    before = set(_FOLDERS)
    manager = ChromaManager(client=client, embedding_function=EMBEDDER)
    manager.write([record("text")])
    manager.search("text")
    manager.close()

    assert set(_FOLDERS) == before


def test_records_are_still_there_after_a_restart(tmp_path: Path):
    with_first = ChromaManager(tmp_path, embedding_function=EMBEDDER)
    with_first.write([record("Refunds within 30 days.", source="faq", when=None)])
    with_first.close()
    again = ChromaManager(tmp_path, embedding_function=EMBEDDER)

    (found,) = again.search("refunds")
    again.close()
    assert found["metadata"]["source"] == "faq"
    assert found["metadata"]["when"] is None


def test_closing_twice_is_fine_and_use_after_it_says_so(kb: ChromaManager):
    kb.close()
    kb.close()

    for call in (lambda: kb.search("text"), lambda: kb.search(""), lambda: kb.write([record("text")])):
        with pytest.raises(KnowledgeStateError, match=r"'chromadb' is closed; call connect\(\)"):
            call()


def test_it_can_be_opened_again(kb: ChromaManager):
    kb.write([record("text")])
    kb.close()
    kb.connect()

    assert texts(kb.search("text")) == ["text"]


def test_managers_on_one_folder_do_not_break_each_other(tmp_path: Path):
    first = ChromaManager(tmp_path, embedding_function=EMBEDDER)
    second = ChromaManager(str(tmp_path) + "/../" + tmp_path.name, embedding_function=EMBEDDER)
    first.write([record("one")])
    second.write([record("two")])
    first.close()
    second.write([record("three")])

    assert sorted(texts(second.search("one two three", limit=9))) == ["one", "three", "two"]
    second.close()


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(KnowledgeBackendError, match="'chromadb' can't open the folder"):
        ChromaManager(tmp_path / "file" / "db", embedding_function=EMBEDDER)


def test_a_broken_database_is_a_clear_error_and_can_be_mended(tmp_path: Path):
    (tmp_path / "chroma.sqlite3").write_text("not a database" * 1_000)
    with pytest.raises(KnowledgeBackendError, match="failed with InternalError while 'chromadb' tried to open it"):
        ChromaManager(tmp_path, embedding_function=EMBEDDER)

    (tmp_path / "chroma.sqlite3").unlink()
    ChromaManager(tmp_path, embedding_function=EMBEDDER).close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"collection_name": "a b"}, "'a b' can't name a collection"),
        ({"collection_name": ""}, "collection_name must be text"),
        ({"description": None}, "description must be text"),
        ({"distance": "manhattan"}, "distance must be one of"),
        ({"download": "yes"}, "download must be True or False"),
        ({"embedding_function": "all-MiniLM"}, "embedding_function must be a callable"),
        ({"embedding_function": HashEmbedder}, "is not the class HashEmbedder"),
        ({"persist_path": " "}, "persist_path must be a folder"),
        ({"persist_path": "elsewhere", "host": "db"}, "persist_path and host exclude each other"),
        ({"port": 8000}, r"\['port'\] need host="),
        ({"headers": {"x": "SECRET"}}, r"\['headers'\] need host="),
        ({"host": "user:SECRET@db"}, "credentials belong in headers="),
        ({"host": "db", "port": 0}, "port must be a whole number"),
        ({"host": "db", "headers": {"x": 1}}, "headers must map names to values"),
        ({"host": "db", "headers": {"x": "SECRET\n"}}, "both strings of printable ASCII without outer blanks"),
        ({"host": "db", "headers": {"x": "SECRETé"}}, "both strings of printable ASCII"),
        ({"host": "db", "headers": {"x:": "SECRET"}}, "both strings of printable ASCII"),
        ({"host": "db", "headers": {"": "SECRET"}}, "both strings of printable ASCII"),
        ({"client": object()}, "client must be a synchronous Chroma client"),
        ({"client": object(), "host": "db"}, r"client= stands alone; leave out \['host'\]"),
    ],
)
def test_wrong_arguments_are_refused_at_construction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(AKConfigError, match=message) as caught:
        ChromaManager(**dict[str, Any]({"name": "docs", "embedding_function": EMBEDDER, **arguments}))

    assert "'docs'" in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_nothing_is_printed(kb: ChromaManager, capfd: pytest.CaptureFixture[str]):
    kb.write([record("text")])
    kb.search("text")
    kb.close()

    assert capfd.readouterr() == ("", "")


def run_python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout


def test_importing_the_manager_loads_no_sdk():
    code = (
        "import sys, agentkernel_kb.chroma; print(sorted({'chromadb', 'numpy', 'filelock', 'onnxruntime'} & set(sys.modules)))"
    )

    assert run_python(code) == "[]\n"


def test_a_missing_chroma_names_the_extra():
    code = """
import sys
sys.modules["chromadb"] = None  # As if it were not installed.
from agentkernel_kb.chroma import ChromaManager
try:
    ChromaManager(name="docs")
except ImportError as error:
    print(type(error).__name__, error)
"""

    assert run_python(code) == (
        "KnowledgeDependencyError ChromaManager 'docs' needs the extra 'chroma': pip install 'agentkernel-kb[chroma]'\n"
    )
