"""What tests of managed knowledge share: stores by name, an embedder that counts what it embeds, and small folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.rag import Knowledge, create_knowledge

STORES = ("memory", "sqlite")
PAGES = {
    "travel.md": "Trains are booked by the travel desk.\n",
    "refunds.md": "Refunds are paid within thirty days.\n",
    "sub/cats.md": "Cats sleep twelve to sixteen hours a day.\n",
}


class CountingEmbedder(HashEmbedder):
    """A real embedder that remembers what it was given."""

    def __init__(self, dimensions: int = 64) -> None:
        super().__init__(dimensions)
        self.embedded: list[str] = []

    def embed_documents(self, texts: Any) -> list[list[float]]:
        self.embedded += list(texts)
        return [super(CountingEmbedder, self).embed_query(text) for text in texts]


def made(kind: str, folder: Path, **options: Any) -> Knowledge:
    """Return knowledge in memory, or in the one file of a folder."""
    where = {"path": folder / "kb.db"} if kind == "sqlite" else {}
    return create_knowledge(kind, **where, **options)


def pages(folder: Path, texts: dict[str, str] | None = None) -> Path:
    """Write pages into a folder and return it."""
    for name, text in (texts or PAGES).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
