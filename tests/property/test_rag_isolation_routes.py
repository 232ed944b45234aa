"""Tenants in one corpus (S5): whatever is asked, by whichever route, nothing of another tenant is told or changed."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rag_world import STORES

from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.rag import (
    Chunk,
    Document,
    InMemoryVectorStore,
    Knowledge,
    KnowledgeBase,
    RAGManager,
    SearchMode,
    SQLiteVectorStore,
    VectorStore,
    create_knowledge,
)

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
CANARY = "zebra"
"""In every text, source, id and value of the other tenant, and in nothing of the one who asks."""

keys = st.sampled_from([
    "tenant", "TENANT", "tenant ", " tenant", "ｔenant", "tenant.", ".tenant", "tenant.tenant", "metadata.tenant", "metadata",
    "tenant\x00", "org.tenant", "org", "year", "source", "id", "chunk_id", "document_id", "scope", "", "$or", "$and", "$not",
    "$nor", "$expr", "$where", "tenant.$ne", "*", "%", "' OR 1=1 --", "__class__",
])  # fmt: skip
operators = st.sampled_from(
    ["$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte", "$contains", "$or", "$exists", "$regex"]
)
values = st.recursive(
    st.sampled_from(["a", "b", "", "zebra.md", "zebra-doc", 0, 1, 1e308, float("nan"), True, None, "%", ".*", b"b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys | operators, inner, max_size=2),
    max_leaves=4,
)
filters = st.none() | st.dictionaries(keys, values | st.dictionaries(operators, values, min_size=1, max_size=2), max_size=3)
words = st.sampled_from([CANARY, "zebra lamp", "lamp", "lamp OR zebra", "zebr", "\x00", "*"])
names = st.lists(st.sampled_from(["zebra-doc", "zebra.md", "lamp.md", "lamp-doc", "*", "%", ""]), max_size=3)
routes = st.sampled_from([
    "search", "search_all", "retrieve", "list", "passages", "tool", "json", "manager", "fetch", "browse", "delete", "verify",
])  # fmt: skip


def theirs() -> list[Document]:
    return [
        Document(f"The {CANARY} of b stands by the lamp.", "zebra.md", {"tenant": "b", "secret": CANARY}),
        Document(f"A {CANARY} without a source.", None, {"note": CANARY}, "zebra-doc"),
    ]


def made(store: VectorStore, tenant: str, mode: SearchMode) -> Knowledge:
    return create_knowledge("vector", store=store, embedder=HashEmbedder(32), mode=mode, where={"tenant": tenant})


async def asked(knowledge: Knowledge, route: str, query: str, where: Any, listed: list[str]) -> Any:
    """Return all that whoever asks by a route is told."""
    manager = RAGManager(knowledge)
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "search": lambda: knowledge.search(query, k=20, where=where),
        "search_all": lambda: knowledge.search_all([query, "lamp"], where=where),
        "retrieve": lambda: knowledge.retrieve(query, where=where),
        "list": lambda: knowledge.list_documents(where),
        "passages": lambda: knowledge.passages(ids=listed, document_ids=listed, where=where),
        "tool": lambda: knowledge.as_tool().tool_description.acall(query, where=where),  # type: ignore[attr-defined]
        "json": lambda: knowledge.as_tool().tool_description.acall(query, where=json.dumps(where, default=repr)),  # type: ignore[attr-defined]
        "manager": lambda: manager.asearch(query, 20, filters=where),
        "fetch": lambda: manager.afetch(listed, filters=where),
        "browse": lambda: manager.abrowse(listed[0] if listed else "", filters=where),
        "delete": lambda: knowledge.delete(ids=listed, document_ids=listed, sources=listed, where=where),
        "verify": lambda: knowledge.verify(repair=True),
    }
    try:
        return await calls[route]()
    except KnowledgeError as error:
        return str(error)


async def held(knowledge: Knowledge) -> list[str]:
    chunks = await knowledge.passages(document_ids=[each.document_id for each in await knowledge.list_documents()])
    return [json.dumps(chunk.to_dict(), sort_keys=True) for chunk in chunks]


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
@pytest.mark.parametrize("kind", STORES)
@settings(max_examples=15, deadline=None, phases=PHASES)
@given(script=st.lists(st.tuples(routes, words, filters, names), min_size=1, max_size=6))
def test_nothing_of_another_tenant_is_told_or_changed(
    kind: str, mode: SearchMode, script: list[tuple[str, str, Any, list[str]]]
):
    async def run(folder: str) -> None:
        store: Any = InMemoryVectorStore() if kind == "memory" else SQLiteVectorStore(Path(folder, "kb.db"))
        mine, other = made(store, "a", mode), made(store, "b", mode)
        await other.add(theirs())
        await mine.add([Document("The lamp of a.", "lamp.md"), Document("No source.", id="lamp-doc")])
        before = await held(other)
        for route, query, where, listed in script:
            told = await asked(mine, route, query, where, listed)
            assert CANARY not in str(told).replace(repr(where), "").replace(str(where), "")
            assert await held(other) == before
        await mine.refresh([], delete_missing=True)
        assert await held(other) == before
        await store.__aexit__(None, None, None)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@settings(max_examples=15, deadline=None, phases=PHASES)
@given(queries=st.lists(words, min_size=1, max_size=3), listed=names)
def test_the_handle_of_seed_003_tells_nothing_of_another_tenant(queries: list[str], listed: list[str]):
    async def run() -> None:
        store = InMemoryVectorStore()
        mine, other = (KnowledgeBase("kb", "…", HashEmbedder(32), store, "shared", {"tenant": name}) for name in "ab")
        await other.insert_document([Chunk(f"A {CANARY}.", source="zebra.md")], "zebra-doc")
        await mine.insert_document([Chunk("A lamp.", metadata={"tenant": "b"})], "lamp-doc")
        for name in listed:
            await mine.delete_document(name)
        assert CANARY not in str([await mine.search(queries, top_k=20), await mine.list_documents()])
        assert [each.document_id for each in await other.list_documents()] == ["zebra-doc"]

    asyncio.run(run())
