"""RAGManager beside other backends of a router, inside a running loop, and from kb.yaml (P1, P2, S5, X10)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rag_world import PAGES, made, pages

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.config import load
from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeCapabilityError
from agentkernel_kb.rag import CallableEmbedder, Document, HashEmbedder, RAGManager, RecursiveCharacterSplitter


async def test_plain_operations_work_inside_a_running_loop(tmp_path: Path):
    backend = RAGManager(made("sqlite", tmp_path, sources=[pages(tmp_path / "docs")]))
    (hit, *_) = backend.search("how long do cats sleep", limit=1)
    assert hit["text"] == PAGES["sub/cats.md"].strip()
    assert backend.fetch([hit["metadata"]["id"]])[0]["text"] == hit["text"]
    assert await backend.afetch([hit["metadata"]["document_id"]]) == backend.fetch([hit["metadata"]["document_id"]])
    backend.close()


def test_a_document_is_fetched_whole_and_what_overlaps_is_there_once(tmp_path: Path):
    text = " ".join(f"word{number}" for number in range(300)) + "\n\nThe end."
    knowledge = made(
        "memory",
        tmp_path,
        sources=[Document(text, "long.md")],
        splitter=RecursiveCharacterSplitter(chunk_size=200, chunk_overlap=50),
    )
    backend = RAGManager(knowledge)
    (entry,) = backend.browse()
    assert entry["text"].startswith("long.md (1")
    assert backend.fetch([entry["metadata"]["id"]])[0]["text"].split() == text.split()


def test_what_agents_write_replaces_nothing_of_the_same_source(tmp_path: Path):
    backend = RAGManager(made("memory", tmp_path, sources=[Document("The policy.", "policy.md")]))
    ids = backend.add([{"text": f"Note {n} on lamps.", "metadata": {"source": "policy.md", "by": "agent"}} for n in range(3)])
    assert [record["text"] for record in backend.fetch(ids)] == [f"Note {n} on lamps." for n in range(3)]
    assert {hit["metadata"]["source"] for hit in backend.search("lamps", limit=5)} == {"policy.md"}
    assert backend.search("policy", limit=1)[0]["text"] == "The policy."


def test_what_cannot_be_stored_is_an_error_and_not_forgotten(tmp_path: Path):
    def broken(texts: list[str]) -> list[list[float]]:
        if any("poison" in text for text in texts):
            raise RuntimeError("password=hunter2")
        return HashEmbedder(8)(texts)

    backend = RAGManager(made("memory", tmp_path, embedder=CallableEmbedder(broken, model_id="broken")))
    with pytest.raises(KnowledgeBackendError, match="1 records could not be stored, 1 were") as caught:
        backend.write([{"text": "poison"}, {"text": "fine"}])
    assert "hunter2" not in str(caught.value)
    with pytest.raises(AKConfigError, match="some text"):
        backend.write([{"text": "  "}])


def test_a_router_asks_it_like_any_backend(tmp_path: Path):
    documents = [Document(f"Refunds of {name} take thirty days.", f"{name}/policy.md", id=name) for name in "ab"]
    router = KnowledgeBuilder([RAGManager(made("memory", tmp_path, sources=documents), "docs")])
    tools = {tool.__name__: tool for tool in router.build()}
    assert "Refunds of a" in tools["read_kb"]("docs", "refunds of a")
    assert "Refunds of b" in tools["fetch_kb"]("docs", "b")
    assert "b/policy.md" in tools["browse_kb"]("docs", "b")
    assert "write_kb" in tools


def test_agents_may_be_kept_from_writing(tmp_path: Path):
    backend = RAGManager(made("memory", tmp_path), read_only=True)
    assert not backend.capabilities.writable
    with pytest.raises(KnowledgeCapabilityError):
        backend.write([{"text": "A note."}])


def test_arguments_that_make_knowledge_do_not_go_with_knowledge(tmp_path: Path):
    with pytest.raises(AKConfigError, match="path"):
        RAGManager(made("memory", tmp_path), path="x.db")
    with pytest.raises(AKConfigError, match="create_knowledge"):
        RAGManager("docs/")  # type: ignore[arg-type] # That it is refused is what is tested.


def test_kb_yaml_names_a_corpus_with_paths_from_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pages(tmp_path / "docs")
    config = tmp_path / "kb.yaml"
    config.write_text(
        "backends:\n  handbook:\n    type: knowledge\n    path: kb.db\n    sources: [docs/, 'An inline text on lamps.']\n"
    )
    monkeypatch.chdir(tmp_path.parent)
    with load(config) as loaded:
        tools = {tool.__name__: tool for tool in loaded.tools()}
        assert PAGES["sub/cats.md"].strip() in tools["read_kb"]("handbook", "how long do cats sleep")
        assert "An inline text on lamps." in tools["read_kb"]("handbook", "lamps")
    assert (tmp_path / "kb.db").exists()


async def test_async_and_plain_at_once(tmp_path: Path):
    backend = RAGManager(made("sqlite", tmp_path, sources=[pages(tmp_path / "docs")]))
    answers = await asyncio.gather(
        *(backend.asearch("refunds", 1) for _ in range(4)), asyncio.to_thread(backend.search, "refunds", 1)
    )
    assert len({repr(answer) for answer in answers}) == 1
