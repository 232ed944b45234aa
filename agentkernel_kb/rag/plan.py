"""What a synchronisation would do, before it is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agentkernel_kb.rag.ingest import Indexer
from agentkernel_kb.rag.values import Failure


@dataclass(frozen=True)
class SyncPlan:
    """What `Knowledge.refresh` would do.

    Attributes:
        added: Sources that are new.
        changed: Sources whose content is another one.
        removed: Sources, and documents without one, that would be deleted.
        unchanged: How many are as they were.
        skipped: How many are left out on purpose.
        failed: Sources that cannot be read.
    """

    added: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    unchanged: int = 0
    skipped: int = 0
    failed: list[Failure] = field(default_factory=list[Failure])

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return dict(vars(self), failed=[dict(vars(each)) for each in self.failed])


async def planned(indexer: Indexer, sources: Iterable[Any], *, delete_missing: bool) -> SyncPlan:
    """Read sources as an indexer would, and return what it would then do."""
    run, names = await indexer.read(sources, delete_missing=delete_missing)
    removed = [name for group in await indexer.missing(run, run.known) for name in group] if delete_missing else []
    report = run.report()
    return SyncPlan(
        added=[name for name, is_known in names.items() if not is_known],
        changed=[name for name, is_known in names.items() if is_known],
        removed=sorted(removed),
        unchanged=report.unchanged,
        skipped=report.skipped,
        failed=report.failed,
    )
