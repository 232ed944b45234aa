"""Runs all corpora and prints both rates: attacks that got through, which must be none, and honest reads that were refused.

A table for people, the details of what went wrong, and one JSON object on the last line. Exits with 1 if anything did.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from runner import (
    FAULT_KINDS,
    AttackReport,
    ReadReport,
    all_attacks,
    all_reads,
    dialects,
    load,
    run_unguarded,
    shown,
    unguarded_of,
    world_of,
)

T = TypeVar("T")

MAX_PERCENT = 1.0
COLUMNS = ("dialect", "proven by", "attacks", *FAULT_KINDS, "reads", "refused", "rate")


def in_a_new_folder(work: Callable[[str, Path], T], dialect: str) -> T:
    """Return what `work` makes of an empty folder, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return work(dialect, Path(folder).resolve())


def unguarded(dialect: str, folder: Path) -> AttackReport | None:
    """Run the attacks past the guard, where the dialect has an engine that allows it."""
    world = world_of(dialect)
    if world is None or unguarded_of(world) is None:
        return None
    return run_unguarded(world, load(dialect, "attacks"), folder)


def run_all() -> dict[str, tuple[AttackReport, ReadReport, AttackReport | None]]:
    """Run everything in processes of their own, as many at a time as there are processors; return the reports by dialect."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        attacks = {dialect: pool.submit(in_a_new_folder, all_attacks, dialect) for dialect in dialects()}
        past = {dialect: pool.submit(in_a_new_folder, unguarded, dialect) for dialect in dialects()}
        reads = {dialect: pool.submit(in_a_new_folder, all_reads, dialect) for dialect in dialects()}
        return {name: (attacks[name].result(), reads[name].result(), past[name].result()) for name in attacks}


def row(dialect: str, attacks: AttackReport, reads: ReadReport) -> list[str]:
    """Return a dialect's row of the table."""
    by = "the guard" if world_of(dialect) is None else "the engine"
    counts = [str(attacks.count(kind)) for kind in FAULT_KINDS]
    return [dialect, by, str(attacks.attacks), *counts, str(reads.reads), str(len(reads.refused)), f"{reads.percent:.2f} %"]


def print_table(rows: list[list[str]]) -> None:
    """Print rows under the headings, in columns."""
    table = [list(COLUMNS), *rows]
    widths = [max(len(line[index]) for line in table) for index in range(len(COLUMNS))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_details(dialect: str, attacks: AttackReport, reads: ReadReport, past: AttackReport | None) -> None:
    """Print how the attacks ended, and what went wrong."""
    print(f"\n{dialect}: attacks ended as {dict(attacks.outcomes)}")
    for fault in attacks.faults:
        print(f"  {fault.kind}: {fault.statement[:110]!r}: {fault.what}")
    for statement, answer in reads.refused:
        print(f"  honest read refused: {statement[:110]!r}: {answer[:200]}")
    if past is not None:
        print(f"Past the guard they ended as {dict(past.outcomes)}; what the engine alone would let through:")
        print(shown(past.answered) or "  nothing")
        for fault in past.faults:
            print(f"  {fault.kind}: {fault.statement[:110]!r}: {fault.what}")


def figures(attacks: AttackReport, reads: ReadReport, past: AttackReport | None) -> dict[str, Any]:
    """Return a dialect's figures for the last line."""
    faults = {kind: attacks.count(kind) for kind in FAULT_KINDS}
    own = {"attacks": attacks.attacks, **faults, "outcomes": dict(attacks.outcomes)}
    own |= {"reads": reads.reads, "refused": len(reads.refused), "refused_percent": round(reads.percent, 2)}
    if past is not None:
        own["past_the_guard"] = {"answered": len(past.answered), **{kind: past.count(kind) for kind in FAULT_KINDS[3:]}}
    return own


def is_violated(attacks: AttackReport, reads: ReadReport, past: AttackReport | None) -> bool:
    """Tell whether a promise is broken."""
    return bool(attacks.faults) or reads.percent >= MAX_PERCENT or bool(past and past.count("changed"))


def main() -> int:
    """Run everything; return the exit status."""
    results = run_all()
    print_table([row(dialect, attacks, reads) for dialect, (attacks, reads, _) in results.items()])
    for dialect, result in results.items():
        print_details(dialect, *result)
    violated = [dialect for dialect, result in results.items() if is_violated(*result)]
    print(json.dumps({"corpora": {dialect: figures(*result) for dialect, result in results.items()}, "violated": violated}))
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main())
