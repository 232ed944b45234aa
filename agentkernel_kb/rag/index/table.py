"""What is known of each chunk but its text: who it is, whose it is, and which of them a filter lets through."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.chunkers.base import END, START
from agentkernel_kb.rag.where import CHUNK_KEYS, Filter

OWN_KEYS = (START, END)
"""Metadata that differs from chunk to chunk, and is held apart, so that all else is held once for a document."""

_MOST_FILTERS = 32


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a chunk as it is held.

    Attributes:
        shared: What it has in common with others of its document, as JSON with sorted keys.
        own: The values of `OWN_KEYS`, `None` for those that it does not have.
    """

    shared: str
    own: tuple[Any, ...]

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Metadata:
        """Take metadata apart.

        Raises:
            AKConfigError: It holds what JSON cannot.
        """
        rest = {key: value for key, value in metadata.items() if key not in OWN_KEYS}
        try:
            shared = json.dumps(rest, sort_keys=True, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise AKConfigError(f"Metadata must be JSON values with text as keys: {type(error).__name__}.") from None
        return cls(shared, tuple(metadata.get(key) for key in OWN_KEYS))


@dataclass(slots=True)
class _Flags:
    """What meets a filter: as far as it was asked, for what a chunk is never changes.

    Attributes:
        places: For each distinct metadata 1 where it does.
        slots: For each slot 1 where its chunk does.
    """

    places: bytearray = field(default_factory=bytearray)
    slots: bytearray = field(default_factory=bytearray)


class ChunkTable:
    """Identity and metadata by slot. A slot is never used twice; those of chunks that are gone are not alive."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.document_ids: list[str] = []
        self.sources: list[str | None] = []
        self.alive = bytearray()
        self.count = 0
        self._slot_of: dict[str, int] = {}
        self._of_document: dict[str, set[int]] = {}
        self._of_source: dict[str, set[int]] = {}
        self._own: list[tuple[Any, ...]] = []
        self._shared: list[dict[str, Any]] = []
        self._place_of: dict[str, int] = {}
        self._places: array[int] = array("I")
        self._flags: dict[str, _Flags] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, chunk_id: str, document_id: str, source: str | None, metadata: Metadata) -> int:
        """Add a chunk and return its slot. There must be none of that id."""
        slot = len(self.ids)
        self.ids.append(chunk_id)
        self.document_ids.append(document_id)
        self.sources.append(source)
        self.alive.append(1)
        self.count += 1
        self._slot_of[chunk_id] = slot
        self._of_document.setdefault(document_id, set()).add(slot)
        if source is not None:
            self._of_source.setdefault(source, set()).add(slot)
        self._own.append(metadata.own)
        self._places.append(self._place(metadata.shared))
        return slot

    def drop(self, slot: int) -> None:
        """Take a chunk out."""
        self.alive[slot] = 0
        self.count -= 1
        del self._slot_of[self.ids[slot]]
        _discard(self._of_document, self.document_ids[slot], slot)
        _discard(self._of_source, self.sources[slot], slot)

    def slot_of(self, chunk_id: str) -> int | None:
        """Return the slot of a chunk, `None` where there is none."""
        return self._slot_of.get(chunk_id)

    def of_document(self, document_id: str) -> frozenset[int]:
        """Return the slots of a document's chunks."""
        return frozenset(self._of_document.get(document_id, ()))

    def of_source(self, source: str) -> frozenset[int]:
        """Return the slots of a source's chunks."""
        return frozenset(self._of_source.get(source, ()))

    def slots(self) -> Iterable[int]:
        """Return the slots that are alive, in order."""
        return (slot for slot, alive in enumerate(self.alive) if alive)

    def metadata(self, slot: int) -> dict[str, Any]:
        """Return the metadata of a chunk, for the caller to keep."""
        own = {key: value for key, value in zip(OWN_KEYS, self._own[slot], strict=True) if value is not None}
        return {**deepcopy(self._shared[self._places[slot]]), **own}

    def held(self, slot: int) -> Metadata:
        """Return the metadata of a chunk as it is held."""
        shared = json.dumps(self._shared[self._places[slot]], sort_keys=True, ensure_ascii=False)
        return Metadata(shared, self._own[slot])

    def meets(self, slot: int, where: Filter) -> bool:
        """Tell whether a chunk meets a filter."""
        metadata = self._shared[self._places[slot]]
        if any(self._own[slot]) or 0 in self._own[slot]:
            metadata = self.metadata(slot)
        return where.matches(metadata, chunk_id=self.ids[slot], document_id=self.document_ids[slot], source=self.sources[slot])

    def mask(self, where: Filter) -> bytes | bytearray:
        """Return for each slot 1 where it is alive and meets the filter, else 0. The caller must not change it."""
        if not where:
            return self.alive
        flags = self._flags.pop(repr(where), None) or _Flags()
        self._flags[repr(where)] = flags  # At the end: the one that was not asked for longest is the first.
        if len(self._flags) > _MOST_FILTERS:
            del self._flags[next(iter(self._flags))]
        self._extend(flags, where)
        both = int.from_bytes(flags.slots, "little") & int.from_bytes(self.alive, "little")
        return both.to_bytes(len(self.alive), "little")

    def _extend(self, flags: _Flags, where: Filter) -> None:
        """Ask a filter about what was added since it was asked last."""
        new = range(len(flags.slots), len(self.alive))
        if any(condition.key in CHUNK_KEYS or condition.key.split(".")[0] in OWN_KEYS for condition in where.conditions):
            flags.slots.extend(self.meets(slot, where) for slot in new)
            return
        flags.places.extend(where.matches(metadata) for metadata in islice(self._shared, len(flags.places), None))
        flags.slots.extend(map(flags.places.__getitem__, islice(self._places, new.start, None)))

    def _place(self, shared: str) -> int:
        """Return where metadata is held, once for all chunks that have the same."""
        place = self._place_of.get(shared)
        if place is None:
            place = self._place_of[shared] = len(self._shared)
            self._shared.append(json.loads(shared))
        return place


def _discard(slots_of: dict[str, set[int]], name: str | None, slot: int) -> None:
    if name is not None and (slots := slots_of.get(name)):
        slots.discard(slot)
        if not slots:
            del slots_of[name]
