"""What the local stores hand from their common part to the one that keeps things, and how much the vectors count."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.chunkers.headings import HEADINGS
from agentkernel_kb.rag.index.table import Metadata

SEMANTIC_SHARE = 0.7
"""The vectors' share of a hybrid score where they carry meaning."""

LEXICAL_SHARE = 0.1
"""Their share where they are hashed words, which the words themselves say better."""


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk as it is stored.

    Attributes:
        id: Its identifier.
        chunk: The chunk.
        metadata: Its metadata as it is held.
        terms: Its terms, each once.
        tallies: How often it has each of them.
        vector: Its vector, of length 1.
    """

    id: str
    chunk: Chunk
    metadata: Metadata
    terms: tuple[str, ...]
    tallies: array[int]
    vector: array[float]

    @property
    def counts(self) -> dict[str, int]:
        """How often it has each term; made each time, since those of a long source would take five times as much memory."""
        return dict(zip(self.terms, self.tallies, strict=True))


@dataclass(frozen=True, slots=True)
class Notes:
    """What is to be noted about sources.

    Attributes:
        scope: Name of the scope that the notes are of.
        by_source: The notes; `None` for chunks that are written without any, so that those of all scopes are in doubt. Of a
            deletion no note has to be taken: one whose chunks are not all there is not believed.
        generation: The generation that this is meant for; `None` for any.
    """

    scope: str = ""
    by_source: Mapping[str, str] | None = None
    generation: int | None = None


def heading_of(chunk: Chunk) -> str:
    """Return what stands above a chunk: its title and headings, which say more than its other words."""
    headings: object = chunk.metadata.get(HEADINGS)
    parts: list[object] = [chunk.metadata.get("title"), *(cast("list[object]", headings) if isinstance(headings, list) else [])]
    return " ".join(part for part in parts if isinstance(part, str))
