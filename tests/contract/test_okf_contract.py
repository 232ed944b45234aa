"""The shipped suite run on OKF bundles: in a folder with an index on disk, and with one in memory (A16, A17, A21)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from agentkernel_kb import KnowledgeBase, LocalDocumentStore, OKFManager, Record
from agentkernel_kb.testing import KnowledgeBaseContract

DOCUMENTS = {
    "rules/refunds.md": "---\ntype: Policy\ntitle: Refunds\n---\nRefunds are granted within thirty days of delivery.\n",
    "rules/returns.md": "---\ntype: Policy\ntitle: Returns\n---\nReturns are free. See [refunds](refunds.md).\n",
    "rules/parts, spare.md": "---\ntype: Policy\n---\nThe guarantee on spare parts is two years.\n",
    "people/anna.md": "---\ntype: Person\ntitle: Anna\n---\nAnna repairs lamps.\n",
}


def bundle(folder: Path) -> LocalDocumentStore:
    for path, text in DOCUMENTS.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return LocalDocumentStore(folder)


class TestOKFManager(KnowledgeBaseContract):
    declares = frozenset({"search", "fetch", "browse", "write", "ids"})
    search_query, search_expects = "How many days for refunds?", "thirty days"
    fetch_ids = ("rules/refunds.md", "rules/parts%2C spare.md", "people/anna.md")
    browse_path, browse_expects = "rules", "rules/returns.md"
    new_record: ClassVar[Record] = {"text": "Repairs take eleven weekdays.", "metadata": {"source": "test"}}

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return OKFManager(bundle(tmp_path / "bundle"), name="handbook", index=tmp_path / "index")


class TestOKFManagerInMemory(TestOKFManager):
    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        return OKFManager(bundle(tmp_path / "bundle"), name="handbook", index=None, refresh_seconds=0.0)
