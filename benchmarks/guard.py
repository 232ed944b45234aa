"""Prints what the guard costs: statements a second, and what the router adds to a query with it.

`cold` parses each statement anew, `cached` meets one that it has seen; for a SELECT of one line and for one of 100 lines, in
each dialect that the guard can prove. `driver_us` is a trivial SELECT on SQLite through Python's bare driver, `router_us` the
same through `read_kb`: resolved, proven, sent through the locked engine, bounded and rendered. Medians.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.guard import check_read_only, supported_dialects
from agentkernel_kb.sql import SQLManager

CALLS, ROUNDS = 1_000, 7
LINES = 100
SECONDS_PER_FIGURE = 1.0
ONE_LINE = "SELECT name, population FROM cities WHERE country = 'CH' AND population > {} ORDER BY population DESC LIMIT 5"
TRIVIAL = "SELECT 1 AS one"


def long_select(number: int) -> str:
    """Return a SELECT of 100 lines: a sum, a case and a condition in turn, over a join of two expressions."""
    columns = [
        f"  sum(CASE WHEN o.month = {line} AND o.status <> 'open' THEN o.total ELSE 0 END) AS total_{line},"
        for line in range(LINES - 12)
    ]
    return "\n".join(
        [
            "WITH recent AS (",
            f"  SELECT customer_id, month, status, total FROM orders WHERE year > {number}",
            "), named AS (",
            "  SELECT id, name FROM customers WHERE name LIKE 'A%' OR name LIKE 'B%'",
            ")",
            "SELECT",
            *columns,
            "  count(*) AS orders",
            "FROM recent AS o",
            "JOIN named AS c ON c.id = o.customer_id",
            "GROUP BY c.id",
            "HAVING count(*) > 3",
            "ORDER BY orders DESC LIMIT 20",
        ]
    )


def per_second(check: Callable[[int], object]) -> int:
    """Return how many calls fit into a second, each with a number of its own."""
    calls, started = 0, time.perf_counter()
    while (took := time.perf_counter() - started) < SECONDS_PER_FIGURE:
        check(calls)
        calls += 1
    return round(calls / took)


def rates(dialect: str) -> dict[str, int]:
    """Return the guard's rates in one dialect."""
    check_read_only(TRIVIAL, dialect=dialect)  # Loads the parser.
    return {
        f"{dialect}_{name}_{state}_per_s": per_second(lambda number, make=make: check_read_only(make(number), dialect=dialect))
        for name, statement in (("one_line", ONE_LINE.format), (f"{LINES}_lines", long_select))
        for state, make in (("cold", statement), ("cached", always(statement(0))))
    }


def always(statement: str) -> Callable[[int], str]:
    """Return a function that returns the statement whatever the number."""
    return lambda number: statement


def median_us(call: Callable[[], object]) -> float:
    """Return the median over the rounds of the mean time of a call, in microseconds."""
    rounds: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - started) / CALLS * 1e6)
    return round(statistics.median(rounds), 1)


def overhead(path: Path) -> dict[str, float]:
    """Return the time of a trivial query through the driver and through the router."""
    with closing(sqlite3.connect(path)) as driver:
        driver.execute("CREATE TABLE cities (name TEXT)")
        driver_us = median_us(lambda: driver.execute(TRIVIAL).fetchall())
    with KnowledgeBuilder([SQLManager(f"sqlite:///{path}", name="cities")]) as builder:
        read_kb = {tool.__name__: tool for tool in builder.build()}["read_kb"]
        router_us = median_us(lambda: read_kb("cities", TRIVIAL))
    return {"driver_us": driver_us, "router_us": router_us, "added_us": round(router_us - driver_us, 1)}


def main() -> None:
    """Measure and print one JSON object."""
    figures: dict[str, float] = {}
    for dialect in supported_dialects():
        figures |= rates(dialect)
    with tempfile.TemporaryDirectory() as folder:
        figures |= overhead(Path(folder, "cities.db"))
    print(json.dumps({"benchmark": "guard", **figures}))


if __name__ == "__main__":
    main()
