"""What the local stores have in common where a corpus is made anew beside the one that is searched (X19)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentkernel_kb.rag.content import content_digest
from agentkernel_kb.rag.stores.arguments import names_of
from agentkernel_kb.rag.stores.indexed import IndexedStore
from agentkernel_kb.rag.stores.rows import Notes

State = tuple[int, int]
"""Number of a generation, and how often it was changed."""


class GenerationalStore(IndexedStore):
    """A local store that can hold a second generation of its corpus, which nobody sees before it is switched to."""

    @abstractmethod
    async def begin_generation(self, fingerprint: Mapping[str, Any]) -> GenerationalStore:
        """Return a store for the next generation: what was begun under the same fingerprint, else an empty one."""

    @abstractmethod
    async def switch_to(self, generation: GenerationalStore, *, mine: State, its: State) -> bool:
        """Put a generation in the place of this one in one step, and throw this one away.

        Args:
            generation: What `begin_generation` returned.
            mine: The state of this store that the generation takes over from.
            its: The state in which the generation was verified.

        Returns:
            Whether that was done; not where this store was changed since.

        Raises:
            KnowledgeStateError: Somebody else has changed the generation, or thrown it away.
        """

    @abstractmethod
    async def unfinished(self) -> int:
        """Return how many chunks there are of a generation that was begun and not switched to."""

    @abstractmethod
    async def discard_generations(self) -> None:
        """Throw away what was begun and not switched to, and what is left of older generations."""

    @abstractmethod
    async def faults(self) -> list[str]:
        """Return what is wrong with what is stored, in words."""

    async def state(self) -> State:
        """Return the generation and how often it was changed, as it is stored now."""
        return await self._read(lambda: (self.generation, self._changes()))

    async def vectors(self, *, document_ids: Sequence[str], sources: Sequence[str]) -> dict[str, list[float]]:
        """Return the vectors of what these documents and sources have, by the digest of the content that each is of."""
        documents, origins = names_of("document_ids", document_ids), names_of("sources", sources)

        def found() -> dict[str, list[float]]:
            slots = self._named(frozenset(), documents or frozenset(), origins or frozenset())
            pairs = zip(self._chunks(slots), map(self._index.vector, slots), strict=True)
            return {content_digest(chunk.content): list(vector) for chunk, vector in pairs if any(vector)}

        return await self._read(found)

    async def every_note(self) -> list[tuple[str, str, str]]:
        """Return all that is noted, whatever the scope: scope, source and note."""
        return await self._read(self._all_noted)

    async def other_scopes(self, scope: str) -> list[tuple[str, str, str]]:
        """Return one note of each scope but the one that is named: scope, source and note."""
        return await self._read(lambda: self._noted_elsewhere(scope))

    async def forget(self, scope: str, sources: Iterable[str]) -> None:
        """Take back what is noted about sources in a scope, so that they are read anew."""
        names = list(sources)
        if not names:
            return

        def forgotten() -> None:
            with self._transaction():
                self._refresh()
                self._note_sources(Notes(scope, {}), names)

        await self._run(forgotten)

    @abstractmethod
    def _changes(self) -> int:
        """Return how often the generation was changed, as far as it was seen."""

    @abstractmethod
    def _all_noted(self) -> list[tuple[str, str, str]]:
        """Return all that is noted."""

    @abstractmethod
    def _noted_elsewhere(self, scope: str) -> list[tuple[str, str, str]]:
        """Return one note of each other scope."""
