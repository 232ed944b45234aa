"""Prints what a process of its own costs an embedded engine: medians, with `isolate` on and off, on the same data.

`open_ms` is the constructor together with the first read, `read_us` a short read by key afterwards, `rows_ms` a read of 1,000
rows, and for the graph `write_read_ms` a write and the read that sees it. `restart_ms` is the first read after the engine's
process was killed, and `child_mb` what an idle one keeps in memory (Linux only).
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

from agentkernel_kb import Record
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.sql import SQLManager

OPENINGS, CALLS, PAGES, WRITES = 5, 200, 20, 30
ROWS = 1_000
Manager = LadybugManager | SQLManager


def median(work: Callable[[int], object], calls: int) -> float:
    """Return the median seconds of some calls, each with a number of its own."""
    seconds: list[float] = []
    for number in range(calls):
        started = time.perf_counter()
        work(number)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def children() -> list[int]:
    """Return the processes that this one has started, `[]` where there is no `/proc`."""
    found: list[int] = []
    for listed in Path("/proc/self/task").glob("*/children"):
        found += map(int, listed.read_text(encoding="ascii").split())
    return found


def megabytes(pid: int) -> float:
    """Return how much of the machine's memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measured(open_manager: Callable[[bool], Manager], one: str, many: str, isolate: bool) -> dict[str, float]:
    """Return the figures of one engine."""

    def opening(_: int) -> None:
        with closing(open_manager(isolate)) as manager:
            manager.query(one)

    figures = {"open_ms": round(median(opening, OPENINGS) * 1e3, 1)}
    with closing(open_manager(isolate)) as manager:
        manager.query(one)
        figures["read_us"] = round(median(lambda _: manager.query(one), CALLS) * 1e6)
        figures["rows_ms"] = round(median(lambda _: manager.query(many, ROWS), PAGES) * 1e3, 1)
        if isinstance(manager, LadybugManager):
            figures["write_read_ms"] = round(median(lambda number: write_and_read(manager, number), WRITES) * 1e3, 1)
        if isolate and children():
            figures["child_mb"] = round(max(map(megabytes, children())))
            figures["restart_ms"] = round(median(lambda _: kill_and_read(manager, one), OPENINGS) * 1e3, 1)
    return figures


def kill_and_read(manager: Manager, statement: str) -> None:
    """Kill the engine's processes and read."""
    for pid in children():
        os.kill(pid, 9)
    time.sleep(0.1)
    manager.query(statement)


def record(statement: str, **parameters: Any) -> Record:
    """Return what a statement is written by."""
    return {"text": "", "metadata": {"query": statement, "params": parameters}}


def write_and_read(graph: LadybugManager, number: int) -> None:
    """Write a node and read it."""
    graph.write([record("MERGE (c:City {name: $name}) SET c.size = 1", name=f"new {number}")])
    graph.query(f"MATCH (c:City {{name: 'new {number}'}}) RETURN c")


def make_graph(path: Path) -> None:
    """Make a graph of a thousand nodes."""
    with closing(LadybugManager(path, isolate=False)) as graph:
        graph.write([record("CREATE NODE TABLE City(name STRING PRIMARY KEY, size INT64)")])
        graph.write([record("UNWIND range(1, 1000) AS i CREATE (:City {name: 'city ' + cast(i AS STRING), size: i})")])


def make_table(path: Path) -> None:
    """Make a table of a thousand rows."""
    with closing(duckdb.connect(path)) as connection:
        connection.execute("CREATE TABLE city AS SELECT 'city ' || range AS name, range AS size FROM range(1000)")


def main() -> None:
    """Print the figures of both engines, inside the process and in one of their own."""
    with tempfile.TemporaryDirectory() as folder:
        graph, table = Path(folder, "city.lbug"), Path(folder, "city.duckdb")
        make_graph(graph)
        make_table(table)

        def open_graph(isolate: bool) -> LadybugManager:
            return LadybugManager(graph, threads=1, isolate=isolate)

        def open_table(isolate: bool) -> SQLManager:
            return SQLManager(f"duckdb:///{table}", isolate=isolate)

        figures: dict[str, dict[str, float]] = {}
        for isolate in (True, False):
            suffix = "isolated" if isolate else "inside"
            figures[f"duckdb_{suffix}"] = measured(
                open_table, "SELECT size FROM city WHERE name = 'city 7'", "SELECT name, size FROM city", isolate
            )
            figures[f"ladybug_{suffix}"] = measured(
                open_graph,
                "MATCH (c:City {name: 'city 7'}) RETURN c.size",
                "MATCH (c:City) RETURN c.name, c.size LIMIT 1000",
                isolate,
            )
    print(json.dumps({"isolation": figures}))


if __name__ == "__main__":
    main()
