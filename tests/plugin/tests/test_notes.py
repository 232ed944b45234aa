"""A backend from outside: found by name, and held to the suite that ships in the wheel (A21, X22)."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import ClassVar

from kb_notes_plugin import NotesBackend

from agentkernel_kb import KnowledgeBase, Record
from agentkernel_kb.registry import backend_class, backend_names
from agentkernel_kb.testing import KnowledgeBaseContract

SAMPLES = {
    "returns.txt": "Returns are free for thirty days.",
    "guarantee.txt": "The guarantee covers parts for two years.",
    "shipping.txt": "Parts ship on two days a week.",
}


class TestNotesBackend(KnowledgeBaseContract):
    declares = frozenset({"search", "fetch", "write", "ids"})
    search_query, search_expects = "what does the guarantee cover: parts?", "two years"
    fetch_ids = ("shipping.txt", "returns.txt")
    new_record: ClassVar[Record] = {"text": "Repairs take eleven weekdays.", "metadata": {}}

    def make_backend(self, tmp_path: Path) -> KnowledgeBase:
        for name, text in SAMPLES.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return NotesBackend(tmp_path, "team notes")


def test_an_installed_plugin_is_found_by_name() -> None:
    assert "notes" in backend_names()
    assert backend_class("notes") is NotesBackend


def test_the_core_does_not_know_the_plugin() -> None:
    assert not [point for point in importlib.metadata.distribution("agentkernel-kb").entry_points if "notes" in point.name]
