"""NotesBackend: a folder of plain text notes as a knowledge base, written by somebody who only has the published contract."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agentkernel_kb import KnowledgeBase, KnowledgeCapabilities, Record

__all__ = ["NotesBackend"]


class NotesBackend(KnowledgeBase):
    """Notes are the `.txt` files of one folder; a note's id is its file's name.

    Args:
        folder: The folder; it is made when the first note is written.
        name: The backend's name.
    """

    def __init__(self, folder: str | Path, name: str = "notes") -> None:
        self._name = name
        self._folder = Path(folder)
        super().__init__(
            KnowledgeCapabilities(
                kinds=["document"], search=True, search_mode="lexical", fetch=True, writable=True, derives_schema=True
            )
        )

    @property
    def backend_name(self) -> str:
        """The name given."""
        return self._name

    def connect(self, **kwargs: Any) -> None:
        """Do nothing: files are opened when they are read."""

    def get_description(self) -> str:
        """Return what the backend holds."""
        return f"{self._name} holds short notes in plain text."

    def _derived_schema(self) -> dict[str, Any]:
        return {"notes": len(self._paths())}

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Return the notes with most of the query's words."""
        asked = _words(query)
        notes = [self._note(path) for path in self._paths()]
        scored = [(len(asked & _words(note["text"])), note) for note in notes]
        ranked = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
        return [note for _, note in ranked[:limit]]

    def fetch(self, ids: Sequence[str], **kwargs: Any) -> list[Record]:
        """Return the notes of these names."""
        paths = {path.name: path for path in self._paths()}
        return [self._note(paths[name]) for name in ids if name in paths]

    def write(self, records: Iterable[Record], **kwargs: Any) -> None:
        """Store notes."""
        self.add(records)

    def add(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
        """Store notes and return their names, which follow from their text."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return [self._save(record["text"]) for record in records]

    def _save(self, text: str) -> str:
        content = text.encode()
        path = self._folder / f"{hashlib.sha256(content).hexdigest()[:16]}.txt"
        path.write_bytes(content)
        return path.name

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.txt"))

    def _note(self, path: Path) -> Record:
        return {"text": path.read_bytes().decode(), "metadata": {"id": path.name, "source": path.name}}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
