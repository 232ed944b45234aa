"""Seed 003's handle (S4, S5, S6, S8): its calls as written there, over a store of ones own and over the local ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self

import pytest

import agentkernel_kb
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import AKConfigError, UnsupportedKnowledgeOperationError
from agentkernel_kb.rag import (
    ApproxTokenChunker,
    Chunk,
    CollectionStore,
    DataBlock,
    Document,
    DocumentSummary,
    InMemoryVectorStore,
    KnowledgeBase,
    SQLiteVectorStore,
    TextBlock,
    TextParser,
    VectorRecord,
    VectorSearchResult,
    VectorStoreBase,
    create_knowledge,
)


class MyVectorStore(VectorStoreBase):
    """A vector database of an application: lists of records by collection."""

    def __init__(self) -> None:
        self.collections: dict[str, list[VectorRecord]] = {}
        self.entered = False

    async def __aenter__(self) -> Self:
        self.entered = True
        return self

    async def create_collection(self, name: str, dimensions: int) -> None:
        self.collections[name] = []

    async def delete_collection(self, name: str) -> None:
        del self.collections[name]

    async def has_collection(self, name: str) -> bool:
        return name in self.collections

    async def insert(self, collection: str, records: list[VectorRecord]) -> None:
        self.collections[collection] += records

    async def delete(self, collection: str, document_id: str) -> None:
        held = self.collections[collection]
        self.collections[collection] = [record for record in held if record.document_id != document_id]

    async def search(
        self, collection: str, query_vector: list[float], top_k: int = 5, metadata_filter: dict[str, Any] | None = None
    ) -> list[VectorSearchResult]:
        scored = [
            VectorSearchResult(_cosine(query_vector, list(record.vector)), record.document_id, record.chunk)
            for record in self._meeting(collection, metadata_filter)
        ]
        return sorted(scored, key=lambda result: -result.score)[:top_k]

    async def list_documents(self, collection: str, metadata_filter: dict[str, Any] | None = None) -> list[DocumentSummary]:
        documents: dict[str, list[Chunk]] = {}
        for record in self._meeting(collection, metadata_filter):
            documents.setdefault(record.document_id, []).append(record.chunk)
        return [
            DocumentSummary(name, chunks[0].source or "", len(chunks), chunks[0].metadata) for name, chunks in documents.items()
        ]

    def _meeting(self, collection: str, wanted: dict[str, Any] | None) -> list[VectorRecord]:
        held = self.collections[collection]
        return [each for each in held if all(each.chunk.metadata.get(key) == value for key, value in (wanted or {}).items())]


def _cosine(one: list[float], other: list[float]) -> float:
    norm = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / norm if norm else 0.0


@pytest.fixture(params=["own", "memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    kinds = {"own": MyVectorStore, "memory": InMemoryVectorStore, "sqlite": lambda: SQLiteVectorStore(tmp_path / "kb.db")}
    return kinds[request.param]()


def handle(store: Any, collection: str = "demo-kb", **options: Any) -> KnowledgeBase:
    return KnowledgeBase(
        name="demo-kb",
        description="A toy corpus.",
        embedding_model=options.pop("embedding_model", HashEmbedder(128)),
        vector_store=store,
        collection=collection,
        **options,
    )


async def cats(text: bytes = b"# Cats\nCats sleep 12-16 hours per day.\n") -> list[Chunk]:
    sections = await TextParser().parse(file=text, filename="cats.md")
    return await ApproxTokenChunker(chunk_size=256, overlap=32).chunk(sections)


async def test_s4_a_document_is_inserted_found_listed_and_deleted(store: Any):
    knowledge = handle(store)
    document_id = await knowledge.insert_document(await cats(), document_metadata={"filename": "cats.md"})
    results = await knowledge.search(queries=["When do cats sleep?"], top_k=3, score_threshold=None)
    assert [(r.document_id, "Cats sleep" in r.chunk.text, 0 < r.score <= 1) for r in results] == [(document_id, True, True)]
    (summary,) = await knowledge.list_documents()
    assert (summary.document_id, summary.source, summary.chunk_count) == (document_id, "cats.md", 1)
    assert summary.metadata["filename"] == "cats.md"
    await knowledge.delete_document(document_id)
    await knowledge.delete_document("never there")
    assert (await knowledge.list_documents(), await knowledge.search(["cats"])) == ([], [])


async def test_s4_several_queries_give_each_chunk_once_with_its_best_score(store: Any):
    knowledge = handle(store)
    await knowledge.insert_document([Chunk("Cats sleep all day."), Chunk("Dogs bark.", chunk_index=1)], "pets")
    alone = await knowledge.search(["Dogs bark."], top_k=1)
    both = await knowledge.search(["cats", TextBlock("Dogs bark."), "dogs"], top_k=5)
    assert (both[0].chunk.chunk_index, both[0].score) == (1, pytest.approx(alone[0].score))
    assert sorted(r.chunk.chunk_index for r in both) == [0, 1]
    assert len(await knowledge.search(["cats", "dogs"], top_k=1)) == 1
    assert [r.chunk.text for r in await knowledge.search(["Dogs bark.", "cats"], score_threshold=0.99)] == ["Dogs bark."]


async def test_s4_a_document_of_the_same_id_is_replaced(store: Any):
    knowledge = handle(store)
    for text in ("The old text.", "The new text."):
        assert await knowledge.insert_document([Chunk(text)], "policy") == "policy"
    assert [r.chunk.text for r in await knowledge.search(["text"])] == ["The new text."]


async def test_s4_chunks_stay_the_callers(store: Any):
    chunk = Chunk("Text.", metadata={"a": 1})
    await handle(store, metadata_filter={"tenant": "a"}).insert_document([chunk], "d", {"b": 2})
    assert (chunk.metadata, chunk.document_id) == ({"a": 1}, "")


async def test_s5_a_metadata_filter_is_stamped_and_holds_whatever_a_chunk_says(store: Any):
    one, two = (handle(store, "shared", metadata_filter={"tenant_id": f"tenant-{name}"}) for name in "ab")
    mine = await one.insert_document([Chunk("The secret of a.", metadata={"tenant_id": "tenant-b"})])
    assert (await two.search(["secret"]), await two.list_documents()) == ([], [])
    await two.delete_document(mine)
    assert [r.chunk.metadata["tenant_id"] for r in await one.search(["secret"])] == ["tenant-a"]


async def test_s5_a_document_id_of_another_tenant_takes_nothing_from_it(store: Any):
    one, two = (handle(store, "shared", metadata_filter={"tenant_id": name}) for name in "ab")
    await one.insert_document([Chunk("The text of a.")], "same")
    if isinstance(store, VectorStoreBase):  # It can only remove a document whole, whosever its chunks are.
        with pytest.raises(AKConfigError, match="choose another"):
            await two.insert_document([Chunk("The text of b.")], "same")
    else:
        await two.insert_document([Chunk("The text of b.")], "same")
    await two.delete_document("same")
    assert [r.chunk.text for r in await one.search(["text"])] == ["The text of a."]
    assert await two.search(["text"]) == []


async def test_collections_do_not_see_each_other(store: Any):
    one, two = handle(store, "one"), handle(store, "two")
    await one.insert_document([Chunk("Cats sleep.")])
    assert (await two.search(["cats"]), await two.list_documents()) == ([], [])


async def test_s6_a_model_of_texts_drops_questions_of_data(store: Any):
    knowledge = handle(store)
    await knowledge.insert_document([Chunk(DataBlock(b"\x89PNG", "image/png")), Chunk("Cats sleep.", chunk_index=1)])
    image = DataBlock(b"\x89PNG", "image/png")
    assert await knowledge.search([image]) == []
    assert [r.chunk.text for r in await knowledge.search([image, "cats"])] == ["Cats sleep."]


async def test_s6_a_model_of_images_is_given_them(store: Any):
    class Both(HashEmbedder):
        supports_multimodal = True

        def embed_documents(self, texts: Any) -> list[list[float]]:
            return [self.embed_query(each) for each in texts]

        def embed_query(self, text: Any) -> list[float]:
            return super().embed_query("a picture of a cat" if isinstance(text, DataBlock) else text)

    knowledge = handle(store, embedding_model=Both(64))
    await knowledge.insert_document([Chunk(DataBlock(b"\x89PNG", "image/png"), source="cat.png")])
    for query in ("picture of a cat", DataBlock(b"GIF", "image/gif")):
        assert [r.chunk.source for r in await knowledge.search([query])] == ["cat.png"]


async def test_s8_a_store_of_ones_own_holds_managed_knowledge():
    async with MyVectorStore() as own:
        knowledge = create_knowledge("vector", store=CollectionStore(own, "docs"), embedder=HashEmbedder(64))
        await knowledge.add([Document("Cats sleep.", "cats.md"), Document("Dogs bark.", "dogs.md")])
        await knowledge.add(Document("Cats purr.", "cats.md"))
        assert [hit.text for hit in await knowledge.search("cats", where={"source": {"$ne": "dogs.md"}})] == ["Cats purr."]
        assert (await knowledge.refresh([Document("Dogs bark.", "dogs.md")], delete_missing=True)).deleted == 1
        assert await knowledge.delete(sources=["dogs.md"]) == 1
        with pytest.raises(UnsupportedKnowledgeOperationError):
            await knowledge.delete(ids=["x"])
        with pytest.raises(AKConfigError, match="scopes"):
            create_knowledge("vector", store=CollectionStore(own, "docs"), where={"tenant": "a"})


def test_the_handle_is_never_the_contract_of_the_root():
    assert agentkernel_kb.KnowledgeBase is not KnowledgeBase
    with pytest.raises(AKConfigError, match="VectorStoreBase"):
        handle(object())
