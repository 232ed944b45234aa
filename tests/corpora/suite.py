"""What holds for the corpora of every dialect on its engine; a class per engine, so that engines are run beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from corpora.runner import all_attacks, all_reads, load, run_unguarded, world_of

MAX_PERCENT = 1.0


@pytest.mark.timeout(900)  # Hundreds of statements, each with a look at the data before and after.
class CorporaSuite:
    """No attack gets through (X1), and hardly an honest read is refused (X20)."""

    dialect: ClassVar[str]

    def test_no_attack_gets_through(self, tmp_path: Path) -> None:
        report = all_attacks(self.dialect, tmp_path)
        assert report.faults == []
        assert report.attacks == len(load(self.dialect, "attacks"))

    def test_hardly_an_honest_read_is_refused(self, tmp_path: Path) -> None:
        report = all_reads(self.dialect, tmp_path)
        assert report.percent < MAX_PERCENT, report.refused


class LockedCorporaSuite(CorporaSuite):
    """The same, and the engine's own lock keeps the data where the guard is taken away."""

    def test_the_engine_alone_keeps_its_data(self, tmp_path: Path) -> None:
        world = world_of(self.dialect)
        assert world is not None
        report = run_unguarded(world, load(self.dialect, "attacks"), tmp_path)
        assert [fault for fault in report.faults if fault.kind == "changed"] == []
