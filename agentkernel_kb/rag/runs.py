"""A run of the indexer: what it knows, what it has in hand, and what it has done so far."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeError
from agentkernel_kb.rag.content import digest
from agentkernel_kb.rag.entry import Entry
from agentkernel_kb.rag.loading.items import SourceItem
from agentkernel_kb.rag.loading.paths import whole_paths
from agentkernel_kb.rag.parsers.files import shown
from agentkernel_kb.rag.units import Unit, plain
from agentkernel_kb.rag.values import MOST_LEFT_OUT, Failure, IndexReport

Progress = Callable[[IndexReport], object]
"""Called with what was done so far, after each batch."""


Claim = tuple[Unit, Mapping[str, str]]
"""A unit with passages whose ids other sources have by now, and whose each such id is."""


@dataclass(slots=True)
class Batch:
    """What was read and is embedded and stored together.

    Attributes:
        units: What was read and cut.
        renoted: New notes about origins whose content did not change.
        claims: Those units among them that take ids from other sources.
        size: How much it is: chunks, and one for each unit.
    """

    units: list[Unit] = field(default_factory=list[Unit])
    renoted: dict[str, Entry] = field(default_factory=dict[str, Entry])
    claims: list[Claim] = field(default_factory=list[Claim])
    size: int = 0

    def renote(self, name: str, entry: Entry) -> None:
        """Note something else about an origin whose content did not change."""
        self.renoted[name] = entry
        self.size += 1

    def add(self, unit: Unit) -> None:
        """Take a unit in."""
        self.units.append(unit)
        self.size += 1 + len(unit.chunks)


@dataclass(slots=True)
class Run:
    """One call of the indexer.

    Attributes:
        metadata: Metadata for all sources.
        known: What the ledger says, by origin.
        progress: Told after each batch.
        before: Names and whole paths of what was indexed before, which a run must not lose where its place is away.
        deletes: What is missing is deleted.
        batch: What is being read.
        seen: Origins that there are, whatever became of them.
        expected: How many chunks each origin has that was indexed, or was found unchanged.
        failed: What could not be indexed.
        left_out: What was skipped, and why, as far as a report names it.
        cut: Origins that were read and cut anew, and have not failed since.
        claims: What takes ids from other sources, and waits until all was read.
    """

    metadata: Mapping[str, Any]
    known: Mapping[str, Entry]
    progress: Progress | None = None
    before: AbstractSet[str] = frozenset()
    deletes: bool = False
    batch: Batch = field(default_factory=Batch)
    seen: set[str] = field(default_factory=set[str])
    expected: dict[str, int] = field(default_factory=dict[str, int])
    failed: list[Failure] = field(default_factory=list[Failure])
    left_out: list[Failure] = field(default_factory=list[Failure])
    cut: set[str] = field(default_factory=set[str])
    claims: list[Claim] = field(default_factory=list[Claim])
    stamp: str = ""
    _counts: dict[str, int] = field(default_factory=dict[str, int])
    _sources: dict[str, None] = field(default_factory=dict[str, None])
    _taken: set[str] = field(default_factory=set[str])
    _owners: dict[str, str] = field(default_factory=dict[str, str])
    _names: dict[str, str] = field(default_factory=dict[str, str])
    _places: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.stamp = digest(plain(self.metadata))
        self._names = {entry.identity: origin for origin, entry in self.known.items() if entry.identity}

    def takes(self, item: SourceItem) -> bool:
        """Tell whether an item is the first of its source, however that is spelled, and note that there is one."""
        key = item.identity or item.source
        is_first = key not in self._taken and item.source not in self._taken
        self._taken |= {key, item.source}
        return is_first

    def noted(self, item: SourceItem) -> tuple[str, Entry | None]:
        """Return what the ledger calls an item and what it notes: under its name, or under another spelling of its path."""
        entry = self.known.get(item.source)
        if item.identity is None or (entry is not None and entry.identity == item.identity):
            return item.source, entry
        if (name := self._names.get(item.identity)) is not None:
            return name, self.known[name]
        # The same name was another file's, as a relative path is from another folder: what it says of its state says nothing.
        return item.source, entry and replace(entry, version=None)

    def check_is_path(self, source: object) -> None:
        """Check that a source that is taken for a text is not the path of what was indexed before.

        Raises:
            KnowledgeBackendError: It is, and nothing is there any more.
        """
        if isinstance(source, str) and self._was_at(source):
            raise KnowledgeBackendError(f"There is no file or folder {shown(source)} any more. What is indexed of it stays.")

    def check_is_there(self, source: object) -> None:
        """Check that a source in which there is nothing to read did not hold what was indexed before.

        Raises:
            KnowledgeBackendError: It did, and its file system may be away.
        """
        if not self.deletes or not isinstance(source, str | os.PathLike):
            return
        path = os.fsdecode(cast("str | os.PathLike[str]", source))
        if self._was_at(path):
            raise KnowledgeBackendError(
                f"Nothing to read is left in {shown(path)}; is its file system there? "
                "What is indexed of it stays, unless it is left out of the sources."
            )

    def _was_at(self, source: str) -> bool:
        """Tell whether something at a path, or beneath it, was indexed before."""
        if not self._places:
            self._places = set(self.before).union(*(map(str, PurePath(name).parents) for name in self.before)) - {".", "/"}
        return not self._places.isdisjoint([str(PurePath(source)), *whole_paths(source)])

    def check_ids(self, unit: Unit) -> None:
        """Check that no other source of this run has a passage of one of the identifiers that a unit's splitter gave.

        Raises:
            AKConfigError: One has, and one of the two would be lost.
        """
        for name in sorted(unit.given_ids):
            if (owner := self._owners.setdefault(name, unit.origin)) != unit.origin:
                raise _same_id(owner)

    def settle_claims(self) -> None:
        """Take in the units with an id that its owner gives up in this run, and report the others, once all was read."""
        self.batch.claims = self._rightful(self.claims)
        for unit, _ in self.batch.claims:
            self.batch.add(unit)

    def settle_again(self, batch: Batch) -> None:
        """Leave out of a batch what takes an id from a source that failed after all was read: that one keeps what it had."""
        if batch.claims:
            self._rightful(batch.claims)
            batch.units = [unit for unit in batch.units if unit.origin in self.cut]

    def _rightful(self, claims: Sequence[Claim]) -> list[Claim]:
        """Return the claims to ids that their owners give up, and report the others."""
        present, left = self.present(self.known) if self.deletes else None, self._of_cut(claims)
        while lost := [(unit, owner) for unit, owners in left if (owner := self._keeper(owners, present))]:
            for unit, owner in lost:
                self.fail_unit(unit, _same_id(owner))
            left = self._of_cut(left)
        return left

    def _of_cut(self, claims: Iterable[Claim]) -> list[Claim]:
        return [(unit, owners) for unit, owners in claims if unit.origin in self.cut]

    def _keeper(self, owners: Mapping[str, str], present: AbstractSet[str] | None) -> str | None:
        """Return the first source of some that has the same passages after this run: it is not cut anew, and not deleted."""
        return next(
            (owner for owner in sorted(owners.values()) if owner not in self.cut and (present is None or owner in present)),
            None,
        )

    def count(self, **counts: int) -> None:
        """Add to the counts of the report."""
        for name, count in counts.items():
            self._counts[name] = self._counts.get(name, 0) + count

    def fail(self, name: str, error: Exception) -> None:
        """Note that a source failed."""
        self.failed.append(Failure(name, reason_of(error)))

    def fail_unit(self, unit: Unit, error: Exception) -> None:
        """Note that what was read and cut could not be indexed: its source keeps what it had."""
        self.fail(unit.name, error)
        self.cut.discard(unit.origin)

    def skip(self, item: SourceItem) -> None:
        """Note that an item is left out on purpose."""
        self.count(skipped=1)
        if len(self.left_out) < MOST_LEFT_OUT:
            self.left_out.append(Failure(item.source, item.reason or "is left out"))

    def store(self, units: Sequence[Unit], written: int, deleted: int) -> None:
        """Note that units are stored."""
        chunks = sum(len(unit.chunks) for unit in units)
        self.count(documents=sum(unit.documents for unit in units), chunks=chunks, added=written, deleted=deleted)
        self._sources.update((unit.name, None) for unit in units)
        self.expected.update((unit.origin, len(unit.chunks)) for unit in units)

    def next_batch(self) -> Batch:
        """Return what was read, and begin anew."""
        batch, self.batch = self.batch, Batch()
        return batch

    def present(self, known: Mapping[str, Entry]) -> set[str]:
        """Return the origins of what is known that are not missing: those that there are, and those under what failed."""
        paths = {path.rstrip("/") for failure in self.failed for path in whole_paths(failure.source)}
        under = tuple(f"{path}/" for path in paths)
        named = [(origin, entry.identity) for origin, entry in known.items() if entry.identity]
        return self.seen | {origin for origin, path in named if path in paths or path.startswith(under)}

    def report(self) -> IndexReport:
        """Return what was done so far."""
        return IndexReport(**self._counts, sources=list(self._sources), failed=list(self.failed), left_out=list(self.left_out))

    def tell(self) -> None:
        """Tell whoever wants to know what was done so far."""
        if self.progress is not None:
            self.progress(self.report())


def reason_of(error: Exception) -> str:
    """Return why a source failed: our own words, and of a foreign error its kind, for its text may hold anything."""
    return str(error) if isinstance(error, KnowledgeError | FileNotFoundError) else type(error).__name__


def _same_id(owner: str) -> AKConfigError:
    return AKConfigError(f"a passage of '{owner}' has the same id, which its chunker gave: give each one of its own")
