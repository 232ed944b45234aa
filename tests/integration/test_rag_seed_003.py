"""Every call that seed 003 documents within S1 (text), S2, S4, S5, S6 and S8, as written there, with the import prefix changed.

`TextBlock` comes from `agentkernel_kb.rag`, and the local stores stand in for the remote ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.rag import (
    ApproxTokenChunker,
    Chunk,
    ChunkerBase,
    CollectionStore,
    DataBlock,
    Document,
    DocumentSummary,
    InMemoryVectorStore,
    KnowledgeBase,
    ParserBase,
    Section,
    SQLiteVectorStore,
    TextBlock,
    TextParser,
    VectorRecord,
    VectorSearchResult,
    VectorStoreBase,
    create_knowledge,
)

CATS = b"# Cats\nCats sleep 12-16 hours per day.\n"


# S1: parsers.


async def test_s1_a_text_parser_takes_bytes():
    sections = await TextParser().parse(file=CATS, filename="cats.md")
    assert sections == [Section(content=TextBlock(text=CATS.decode()), source="cats.md", metadata={})]


async def test_s1_a_text_parser_takes_the_path_of_an_existing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("cats.md").write_bytes(CATS)
    (section,) = await TextParser().parse(file="./cats.md", filename="cats.md")
    assert section.content == TextBlock(CATS.decode())


async def test_s1_a_text_parser_takes_any_other_string_as_the_text():
    (section,) = await TextParser().parse(file="./no-such-file.md", filename="cats.md")
    assert section.text == "./no-such-file.md"


def test_s1_the_media_types_of_the_text_parser():
    assert TextParser.supported_media_types == [
        "text/plain", "text/markdown", "text/csv", "text/html", "text/x-rst", "application/json", "application/xml",
        "application/x-yaml",
    ]  # fmt: skip


class MyMarkdownParser(ParserBase):
    supported_media_types = ["text/markdown"]  # noqa: RUF012 - as the seed writes it

    async def parse(self, file: bytes | str, filename: str) -> list[Section]:
        text = file.decode("utf-8") if isinstance(file, bytes) else file
        # Split by H2 headings into multiple Sections, preserving the source
        return [
            Section(content=TextBlock(text=block), source=filename, metadata={"index": index})
            for index, block in enumerate(text.split("\n## "))
        ]


async def test_s8_a_parser_of_ones_own():
    sections = await MyMarkdownParser().parse(b"# A\n## B\n## C", "a.md")
    assert [(each.text, each.source, each.metadata) for each in sections] == [
        ("# A", "a.md", {"index": 0}), ("B", "a.md", {"index": 1}), ("C", "a.md", {"index": 2}),
    ]  # fmt: skip
    assert ".md" in MyMarkdownParser.supported_extensions()


# S2: chunkers.


async def test_s2_sections_become_chunks():
    chunker = ApproxTokenChunker(chunk_size=256, overlap=32)
    image = DataBlock(b"\x89PNG", "image/png")
    sections = [Section(TextBlock("word " * 1_000), "a.txt"), Section(image, "a.png"), Section(TextBlock("The end."), "a.txt")]
    chunks = await chunker.chunk(sections)
    assert [chunk.chunk_index for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.total_chunks for chunk in chunks} == {len(chunks)}
    assert [chunk.content for chunk in chunks if chunk.is_data] == [image]
    assert chunks[-1].text == "The end."
    assert max(len(chunk.text.encode("utf-8")) // 4 for chunk in chunks) <= 256


class FixedCharChunker(ChunkerBase):
    def __init__(self, chunk_size: int = 1000) -> None:
        self._chunk_size = chunk_size

    async def chunk(self, sections: list[Section]) -> list[Chunk]:
        chunks: list[Chunk] = []
        for section in sections:
            # Multimodal content is not split — pass through as a whole chunk
            if not isinstance(section.content, TextBlock):
                chunks.append(
                    Chunk(
                        content=section.content,
                        source=section.source,
                        chunk_index=0,
                        total_chunks=0,
                        metadata=dict(section.metadata),
                    ),
                )
                continue
            text = section.content.text
            for start in range(0, len(text), self._chunk_size):
                chunks.append(  # noqa: PERF401 - as the seed writes it
                    Chunk(
                        content=TextBlock(
                            text=text[start : start + self._chunk_size],
                        ),
                        source=section.source,
                        chunk_index=0,
                        total_chunks=0,
                        metadata=dict(section.metadata),
                    ),
                )
        # Renumber consistently
        for index, chunk in enumerate(chunks):
            chunk.chunk_index = index
            chunk.total_chunks = len(chunks)
        return chunks


async def test_s8_a_chunker_of_ones_own():
    chunks = await FixedCharChunker(4).chunk([Section(TextBlock("abcdefgh"), "a"), Section(DataBlock(b"x", "image/png"), "b")])
    assert [(chunk.text, chunk.chunk_index, chunk.total_chunks) for chunk in chunks] == [
        ("abcd", 0, 3),
        ("efgh", 1, 3),
        ("", 2, 3),
    ]


async def test_s8_a_chunker_of_ones_own_cuts_managed_knowledge_too():
    knowledge = create_knowledge(
        "memory", splitter=FixedCharChunker(12), sources=[Document("Cats sleep. Dogs bark. ", "pets.md")]
    )
    (hit,) = await knowledge.search("dogs", k=1)
    assert (hit.text, hit.source, hit.document_id) == (
        "Dogs bark. ",
        "pets.md",
        Document("Cats sleep. Dogs bark. ", "pets.md").id,
    )


# S4, S5, S6: the handle.


@pytest.fixture(params=["memory", "sqlite", "own"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    kinds = {"memory": InMemoryVectorStore, "sqlite": lambda: SQLiteVectorStore(tmp_path / "rag.db"), "own": MyVectorStore}
    return kinds[request.param]()


async def test_s4_a_file_is_indexed_searched_listed_and_deleted(store: Any):
    embedding_model = HashEmbedder(dimensions=64)
    chunks = await ApproxTokenChunker(chunk_size=256, overlap=32).chunk(await TextParser().parse(file=CATS, filename="cats.md"))
    async with store:
        knowledge = KnowledgeBase(
            name="demo-kb",
            description="A toy corpus.",
            embedding_model=embedding_model,
            vector_store=store,
            collection="demo-kb",
        )
        document_id = await knowledge.insert_document(
            chunks,
            document_metadata={"filename": "cats.md"},
        )
        results = await knowledge.search(
            queries=["When do cats sleep?"],
            top_k=3,
            score_threshold=None,  # only meaningful for cosine / dot-product
        )
        assert [(r.document_id, r.chunk.content) for r in results] == [(document_id, TextBlock(CATS.decode().strip()))]
        assert 0 < results[0].score <= 1
        summaries = await knowledge.list_documents()
        for s in summaries:
            assert (s.document_id, s.source, s.chunk_count, s.metadata["filename"]) == (document_id, "cats.md", 1, "cats.md")
        assert len(summaries) == 1
        await knowledge.delete_document(document_id)
        assert await knowledge.list_documents() == []


async def test_s4_the_collection_is_made_on_first_use_as_long_as_the_vectors():
    store = MyVectorStore()
    knowledge = KnowledgeBase("kb", "…", HashEmbedder(dimensions=48), store, "docs")
    assert store.made == {}
    await knowledge.insert_document([Chunk("Cats sleep.")])
    assert store.made == {"docs": 48}


async def test_s5_a_metadata_filter_isolates_a_shared_collection(store: Any):
    def knowledge(name: str) -> KnowledgeBase:
        return KnowledgeBase(
            name=f"{name}-kb",
            description="...",
            embedding_model=HashEmbedder(),
            vector_store=store,
            collection="shared",
            metadata_filter={"tenant_id": name},
        )

    await knowledge("tenant-a").insert_document([Chunk("The plan of a.", metadata={"tenant_id": "tenant-b"})])
    assert await knowledge("tenant-b").search(["plan"]) == []
    assert await knowledge("tenant-b").list_documents() == []
    assert len(await knowledge("tenant-a").search(["plan"])) == 1


def test_s6_models_say_whether_they_take_data():
    assert HashEmbedder().supports_multimodal is False


async def test_s6_questions_of_data_are_dropped_where_a_model_takes_texts(store: Any):
    knowledge = KnowledgeBase("kb", "…", HashEmbedder(), store, "docs")
    await knowledge.insert_document([Chunk("Cats sleep.")])
    assert await knowledge.search([DataBlock(b"\x89PNG", "image/png")]) == []
    assert len(await knowledge.search(["cats", TextBlock("sleep"), DataBlock(b"\x89PNG", "image/png")])) == 1


# S8: a store of ones own.


async def test_s8_a_store_of_ones_own_as_one_of_managed_knowledge():
    store = CollectionStore(MyVectorStore(), "docs")
    knowledge = create_knowledge("vector", store=store, embedder=HashEmbedder(), sources=[Document("Cats sleep.", "cats.md")])
    (hit,) = await knowledge.search("cats")
    hit.metadata["changed"] = True
    assert [each.metadata.get("changed") for each in await knowledge.search("cats")] == [None]
    faulty: list[dict[str, Any]] = [{}, {"sources": "cats.md"}, {"document_ids": [None]}, {"where": {"a": {"$x": 1}}}]
    for criterion in faulty:
        with pytest.raises(ValueError):  # noqa: PT011 - each message names another criterion
            await store.delete(**criterion)
    assert await knowledge.delete(sources=["cats.md"]) == 1


class MyVectorStore(VectorStoreBase):
    def __init__(self) -> None:
        self.made: dict[str, int] = {}
        self.records: dict[str, list[VectorRecord]] = {}

    async def __aenter__(self) -> MyVectorStore:  # noqa: PYI034 - as the seed writes it
        return self

    async def __aexit__(self, exc_type: object, exc: object, tb: object) -> None:
        return None

    async def create_collection(self, name: str, dimensions: int) -> None:
        self.made[name], self.records[name] = dimensions, []

    async def delete_collection(self, name: str) -> None:
        del self.made[name], self.records[name]

    async def has_collection(self, name: str) -> bool:
        return name in self.made

    async def insert(self, collection: str, records: list[VectorRecord]) -> None:
        self.records[collection].extend(records)

    async def delete(self, collection: str, document_id: str) -> None:
        self.records[collection] = [each for each in self.records[collection] if each.document_id != document_id]

    async def search(
        self,
        collection: str,
        query_vector: list[float],
        top_k: int = 5,
        metadata_filter: dict[str, Any] | None = None,
    ) -> list[VectorSearchResult]:
        found = [
            VectorSearchResult(
                score=sum(one * other for one, other in zip(query_vector, each.vector, strict=True)),
                document_id=each.document_id,
                chunk=each.chunk,
            )
            for each in self._meeting(collection, metadata_filter)
        ]
        return sorted(found, key=lambda each: -each.score)[:top_k]

    async def list_documents(
        self,
        collection: str,
        metadata_filter: dict[str, Any] | None = None,
    ) -> list[DocumentSummary]:
        chunks = [each.chunk for each in self._meeting(collection, metadata_filter)]
        firsts = {chunk.document_id: chunk for chunk in reversed(chunks)}
        return [
            DocumentSummary(
                document_id=name,
                source=first.source or "",
                chunk_count=sum(chunk.document_id == name for chunk in chunks),
                metadata=first.metadata,
            )
            for name, first in firsts.items()
        ]

    def _meeting(self, collection: str, wanted: dict[str, Any] | None) -> list[VectorRecord]:
        return [
            each
            for each in self.records[collection]
            if all(each.chunk.metadata.get(key) == value for key, value in (wanted or {}).items())
        ]
