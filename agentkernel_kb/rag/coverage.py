"""Which notes a scope answers for: its own, and those of the scopes within it, as an application's are within no scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from agentkernel_kb.rag.entry import Entry
from agentkernel_kb.rag.scope import Scope, filter_of
from agentkernel_kb.rag.where import Filter

OWN = "\x1fown"
"""No scope has this name: whoever deletes in it takes no notes back."""

Held = Callable[[Filter], Awaitable[Mapping[str, int]]]
"""Tells how many chunks each origin has that meet a filter."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Notes by scope and origin.

    Attributes:
        own: Notes of the scope itself, by origin.
        inner: Notes of the scopes within it, by their names and by origin.
    """

    own: dict[str, Entry] = field(default_factory=dict[str, Entry])
    inner: dict[str, dict[str, Entry]] = field(default_factory=dict[str, dict[str, Entry]])

    @property
    def chunks(self) -> dict[str, int]:
        """How many chunks each origin is to have. Each chunk is noted once: in the scope through which it was indexed."""
        counts: Counter[str] = Counter()
        for noted in (self.own, *self.inner.values()):
            for origin, entry in noted.items():
                counts[origin] += entry.chunks
        return dict(counts)

    async def emptied(self, origins: Iterable[str], left: Mapping[str, int], held: Held) -> dict[str, set[str]]:
        """Return the notes of deleted chunks, as origins by the name of an inner scope, and under `OWN` those of the scope.

        An inner note is one where nothing is left of it there; one of the scope, where not all is left.

        Args:
            origins: Of what chunks were deleted.
            left: How many chunks each origin has, as far as the scope sees.
            held: The same within a filter.
        """
        noted = self.chunks
        wrong = {origin for origin in origins if left.get(origin, 0) != noted.get(origin, 0)}
        found = dict[str, set[str]]()
        rest = {origin: left.get(origin, 0) for origin in wrong}
        for name, entries in self.inner.items():
            suspect = wrong & entries.keys()
            there: Mapping[str, int] = {}
            if any(map(left.get, suspect)):
                there = await held(filter_of(entries[next(iter(suspect))].within))
            found[name] = {origin for origin in suspect if not there.get(origin)}
            for origin in suspect - found[name]:
                rest[origin] -= entries[origin].chunks
        found[OWN] = {origin for origin in wrong & self.own.keys() if rest[origin] != self.own[origin].chunks}
        return found


def covered(scope: Scope, notes: Iterable[tuple[str, str, str | Entry]]) -> Coverage:
    """Return what a scope covers of notes, each with its scope and its origin; a text that is no note is left out."""
    found = Coverage()
    known: dict[str, bool] = {scope.name: True}
    for name, origin, noted in notes:
        if known.get(name) is False or (entry := Entry.read(noted) if isinstance(noted, str) else noted) is None:
            continue
        if name not in known and (entry.within or not scope):
            known[name] = scope.covers(name, entry.within)
        if known.get(name):
            (found.own if name == scope.name else found.inner.setdefault(name, {}))[origin] = entry
    return found
