"""InMemoryVectorStore: a corpus for one process, gone with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from agentkernel_kb.errors import KnowledgeStateError
from agentkernel_kb.rag.chunk import Chunk
from agentkernel_kb.rag.content import Content
from agentkernel_kb.rag.index.analysis import Analysis
from agentkernel_kb.rag.stores.generational import GenerationalStore, State
from agentkernel_kb.rag.stores.rows import SEMANTIC_SHARE, Notes, Row


class InMemoryVectorStore(GenerationalStore):
    """Holds chunks in memory and ranks all of them exactly. Safe to use from several tasks and threads.

    Args:
        analysis: How texts become terms; English by default.
        vector_share: The vectors' share of a hybrid score, in [0, 1]; the words have the rest.

    Raises:
        AKConfigError: `vector_share` is out of range.
    """

    def __init__(self, *, analysis: Analysis | None = None, vector_share: float = SEMANTIC_SHARE) -> None:
        super().__init__(analysis, vector_share)
        self._held: dict[str, tuple[Content, int, int]] = {}
        self._notes: dict[tuple[str, str], str] = {}
        self._fingerprint: dict[str, Any] = {}
        self._generation, self._version = 1, 0

    @property
    def generation(self) -> int:
        """Number of the generation: another one where the corpus was made anew."""
        return self._generation

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is held that has to be given back; the chunks stay."""

    async def make(self) -> None:
        """Do nothing: it is there."""

    async def fingerprint(self) -> dict[str, Any]:
        """Return what was noted with `note_fingerprint`: under which model and chunking the corpus was made."""
        return dict(self._fingerprint)

    async def note_fingerprint(self, fingerprint: Mapping[str, Any]) -> None:
        """Note under which model and chunking the corpus is made. What is noted already stays."""
        self._fingerprint = self._fingerprint or dict(fingerprint)

    async def begin_generation(self, fingerprint: Mapping[str, Any]) -> InMemoryVectorStore:
        """Return an empty store for the next generation."""
        made = InMemoryVectorStore(analysis=self._analysis, vector_share=self._vector_share)
        await made.note_fingerprint(fingerprint)
        return made

    async def switch_to(self, generation: GenerationalStore, *, mine: State, its: State) -> bool:
        """Hold what a generation holds, in one step. See `GenerationalStore.switch_to`."""

        def switched() -> bool:
            if not isinstance(generation, InMemoryVectorStore) or its != (generation._generation, generation._version):
                raise KnowledgeStateError("The new generation was changed after it was verified.")
            if mine != (self._generation, self._version):
                return False
            self._index, self._held, self._notes = generation._index, generation._held, generation._notes
            self._fingerprint = generation._fingerprint
            self._generation += 1
            return True

        return await self._run(switched)

    async def unfinished(self) -> int:
        """Return 0: whoever makes a generation holds it."""
        return 0

    async def discard_generations(self) -> None:
        """Do nothing: a generation is gone with whoever made it."""

    async def faults(self) -> list[str]:
        """Return nothing: there is no file that could be damaged."""
        return []

    def __repr__(self) -> str:
        return f"InMemoryVectorStore({self._index.table.count} chunks)"

    def _transaction(self) -> AbstractContextManager[object]:
        return nullcontext()

    def _refresh(self) -> None:
        """Nobody else changes it."""

    def _keep(self, rows: Sequence[Row], gone: Sequence[str]) -> None:
        for name in gone:
            del self._held[name]
        for row in rows:
            self._held[row.id] = (row.chunk.content, row.chunk.chunk_index, row.chunk.total_chunks)

    def _note_sources(self, notes: Notes, touched: Iterable[str]) -> None:
        stale = set(touched)
        everywhere = notes.by_source is None
        for key in [key for key in self._notes if key[1] in stale and (everywhere or key[0] == notes.scope)]:
            del self._notes[key]
        for source, entry in (notes.by_source or {}).items():
            self._notes[notes.scope, source] = entry

    def _noted(self, scope: str) -> dict[str, str]:
        return {source: entry for (name, source), entry in self._notes.items() if name == scope}

    def _kept(self) -> None:
        self._version += 1

    def _changes(self) -> int:
        return self._version

    def _all_noted(self) -> list[tuple[str, str, str]]:
        return [(scope, source, entry) for (scope, source), entry in self._notes.items()]

    def _noted_elsewhere(self, scope: str) -> list[tuple[str, str, str]]:
        found = {name: (name, source, entry) for (name, source), entry in self._notes.items() if name != scope}
        return list(found.values())

    def _moved(self, old: int, new: int) -> None:
        """Chunks are found by their ids."""

    def _chunks(self, slots: Sequence[int]) -> list[Chunk]:
        return [self._chunk(slot) for slot in slots]

    def _chunk(self, slot: int) -> Chunk:
        table = self._index.table
        name = table.ids[slot]
        content, index, total = self._held[name]
        metadata = table.metadata(slot)
        return Chunk(content, table.document_ids[slot], index, table.sources[slot], metadata, name, total_chunks=total)
