"""Prints what indexing and searching the passages of `rag.py` cost in the two libraries that the seeds describe.

Each runs in an environment of its own, which needs nothing of this project, with Python 3.12:

    python3.12 -m venv protolink && protolink/bin/pip install protolink==0.8.3
    protolink/bin/python benchmarks/rag_peers.py protolink 10000
    python3.12 -m venv agentscope && agentscope/bin/pip install agentscope==2.0.11 qdrant-client==1.20.0
    agentscope/bin/python benchmarks/rag_peers.py agentscope 10000

protolink does what it does by default, in memory and on SQLite: it cuts, embeds with its hashing embedder and stores.
agentscope has no embedder that works alone and no words to search by: it is given vectors that cost next to nothing, so that
its figures are those of cutting and storing alone, in Qdrant's client in memory.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from passages import Passage, passages, questions

SEARCHES, DIMENSIONS, TOGETHER = 20, 384, 500


async def timed(work: Awaitable[Any]) -> tuple[float, float, Any]:
    """Return the seconds that something takes, of wall and of processor, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = await work
    return time.perf_counter() - wall, time.process_time() - cpu, result


async def measure(name: str, count: int, index: Callable[[], Awaitable[int]], search: Callable[[str], Awaitable[Any]]) -> None:
    """Index, search and print the figures."""
    wall, cpu, chunks = await timed(index())
    walls = [(await timed(search(question)))[0] * 1_000 for question in questions(SEARCHES)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024
    figures = {"indexed_per_s": round(chunks / wall), "indexed_per_cpu_s": round(chunks / cpu), "peak_mib_so_far": memory}
    print(json.dumps({"library": name, "passages": count, **figures, "search_p50_ms": round(statistics.median(walls), 1)}))


async def protolink(count: int, folder: Path) -> None:
    """Measure protolink in memory and on SQLite."""
    library: Any = importlib.import_module("protolink.rag")
    for backend, options in (("memory", {}), ("sqlite", {"path": str(folder / "peer.db")})):
        sources = [library.Document(each.text, source=each.source, metadata=each.metadata) for each in passages(count)]
        knowledge = library.create_knowledge(backend, sources=sources, **options)

        async def index(knowledge: Any = knowledge) -> int:
            return (await knowledge.ready()).chunks

        await measure(f"protolink, {backend}", count, index, knowledge.search)


async def agentscope(count: int, folder: Path) -> None:
    """Measure agentscope over Qdrant's client in memory."""
    library: Any = importlib.import_module("agentscope.rag")
    message: Any = importlib.import_module("agentscope.message")
    chunker = library.ApproxTokenChunker()
    given = list(passages(count))
    async with library.QdrantStore(location=":memory:") as store:
        base = library.KnowledgeBase("peer", "passages", cheap_embedder(), store, "peer")

        async def one(passage: Passage) -> list[Any]:
            section = library.Section(
                content=message.TextBlock(text=passage.text), source=passage.source, metadata=passage.metadata
            )
            return await chunker.chunk([section])

        async def index() -> int:
            stored = 0
            for start in range(0, count, TOGETHER):  # As large documents: it stores each with a call of its own.
                cut = [chunk for passage in given[start : start + TOGETHER] for chunk in await one(passage)]
                chunks = [chunk.model_copy(update={"chunk_index": place}) for place, chunk in enumerate(cut)]
                await base.insert_document(chunks)
                stored += len(chunks)
            return stored

        async def search(question: str) -> Any:
            return await base.search([question])

        await measure("agentscope, Qdrant in memory", count, index, search)


def cheap_embedder() -> Any:
    """Return an embedding model that draws one of a thousand vectors for each text."""
    library: Any = importlib.import_module("agentscope.embedding")
    draw = random.Random(1)
    drawn = [[draw.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(1_000)]

    class Cheap(library.EmbeddingModelBase):
        """Answers without any work."""

        async def _call_api(self, inputs: list[Any], **_: Any) -> Any:
            return library.EmbeddingResponse(embeddings=[drawn[hash(str(text)) % len(drawn)] for text in inputs])

    return Cheap(None, "cheap", DIMENSIONS, None, 8_192, TOGETHER, 0, 0.0)


if __name__ == "__main__":
    peer, size = (
        {"protolink": protolink, "agentscope": agentscope}[sys.argv[1]],
        int(sys.argv[2]) if len(sys.argv) > 2 else 10_000,
    )
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(peer(size, Path(scratch)))
