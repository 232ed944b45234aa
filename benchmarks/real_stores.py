"""Prints what the router adds on real servers, what a huge result costs in memory, and how long an outage is felt.

    python benchmarks/real_stores.py [calls|memory|outage …]

Servers are taken as the tests take them: from `KB_TEST_<NAME>_URL`, else the scripts in `servers/` start them; an outage is
always that of a server of its own. `calls`: `read_kb` against the same statement through the bare driver, warm, medians of
pairs that alternate, in milliseconds. `memory`: growth of this process's peak, in a process of its own, while 3 rows of 10
million are read. `outage`: seconds from `kill -9` to the sentence, and from the server's return to the next answer.
"""

from __future__ import annotations

import importlib
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from agentkernel_kb import KnowledgeBase, KnowledgeBuilder, Limits
from agentkernel_kb.neo4j import Neo4jManager
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.starburst import StarburstManager

sys.path.append(str(Path(__file__).parent.parent / "tests"))
servers: Any = importlib.import_module("servers")
SHORT_CALLS, LONG_CALLS = 200, 15
SECONDS = 120.0
Run = Callable[[str], object]


@dataclass(frozen=True)
class Engine:
    """A server, how the router and how its bare driver reach it, and statements of three kinds.

    Attributes:
        name: Which server.
        backend: Opens the backend on a URL.
        driver: Opens the bare driver on a URL and returns what runs a statement and reads its rows.
        short: A statement that does next to nothing.
        long: One that takes 100 ms or more.
        huge: One that would return 10 million rows.
    """

    name: str
    backend: Callable[[str], KnowledgeBase]
    driver: Callable[[str], Run]
    short: str
    long: str
    huge: str


def postgres_driver(url: str) -> Run:
    """Return what runs a statement through psycopg, in a transaction each."""
    import psycopg

    connection: Any = psycopg.connect(url)

    def run(statement: str) -> object:
        with connection.transaction(), connection.cursor() as cursor:
            return cursor.execute(statement).fetchmany(3)

    return run


def neo4j_driver(url: str) -> Run:
    """Return what runs a statement through Neo4j's driver, in a session each."""
    import neo4j

    sdk: Any = neo4j.GraphDatabase
    driver = sdk.driver(url, auth=("neo4j", servers.PASSWORD))

    def run(statement: str) -> object:
        with driver.session(default_access_mode="READ", fetch_size=3) as session:
            return session.run(statement).fetch(3)

    return run


def trino_driver(url: str) -> Run:
    """Return what runs a statement through Trino's client."""
    import trino.dbapi

    address, sdk = urlsplit(url), cast("Any", trino.dbapi)
    connection = sdk.connect(host=address.hostname, port=address.port, user="bench", catalog="tpch", schema="tiny")

    def run(statement: str) -> object:
        cursor = connection.cursor()
        rows = cursor.execute(statement).fetchmany(3)
        cursor.cancel()
        return rows

    return run


def starburst(url: str) -> StarburstManager:
    """Open the backend on Trino without a login."""
    address = urlsplit(url)
    return StarburstManager(
        host=address.hostname, port=address.port, user="reader", catalog="tpch", schema="tiny", http_scheme="http"
    )


ENGINES = (
    Engine(
        "postgres",
        lambda url: SQLManager(url, name="postgres"),
        postgres_driver,
        "SELECT 1 AS one",
        "SELECT count(*) AS n FROM generate_series(1, 1500000) AS s(n) WHERE n % 7 = 3",
        "SELECT n FROM generate_series(1, 10000000) AS s(n)",
    ),
    Engine(
        "neo4j",
        lambda url: Neo4jManager(url, "neo4j", servers.PASSWORD),
        neo4j_driver,
        "RETURN 1 AS one",
        "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b WITH a * b AS n WHERE n % 7 = 3 RETURN count(*) AS n",
        "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 10) AS c RETURN a * b * c AS n",
    ),
    Engine(
        "trino",
        starburst,
        trino_driver,
        "SELECT 1 AS one",
        "SELECT count(*) AS n FROM tpch.tiny.lineitem WHERE orderkey % 7 = 3",
        "SELECT l.orderkey FROM tpch.sf10.lineitem AS l LIMIT 10000000",
    ),
)


def calls(engine: Engine, url: str) -> dict[str, object]:
    """Time the router against the bare driver, alternating, so that a slow moment of the machine hits both."""
    figures: dict[str, object] = {"benchmark": "calls", "engine": engine.name}
    with KnowledgeBuilder([engine.backend(url)], limits=Limits(seconds=SECONDS)) as builder:
        bare, read = engine.driver(url), reader(builder)
        for kind, statement, rounds in (("short", engine.short, SHORT_CALLS), ("long", engine.long, LONG_CALLS)):
            for _ in range(3):
                bare(statement)
                read(statement)
            pairs = [(timed(bare, statement), timed(read, statement)) for _ in range(rounds)]
            driver_ms, router_ms = (statistics.median(each) for each in zip(*pairs, strict=True))
            figures |= {
                f"{kind}_driver_ms": round(driver_ms, 2),
                f"{kind}_router_ms": round(router_ms, 2),
                f"{kind}_added_ms": round(router_ms - driver_ms, 2),
                f"{kind}_ratio": round(router_ms / driver_ms, 2),
            }
    return figures


def memory(engine: Engine, url: str) -> dict[str, object]:
    """Measure how far the peak of this process grows by a statement of 10 million rows of which 3 are read."""
    with KnowledgeBuilder([engine.backend(url)], limits=Limits(seconds=SECONDS)) as builder:
        read = reader(builder)
        read(engine.short)
        idle = peak_mib()
        milliseconds = timed(read, engine.huge)
    grown = round(peak_mib() - idle, 1)
    return {"benchmark": "memory", "engine": engine.name, "grown_mib": grown, "ms": round(milliseconds, 1)}


def outage(engine: Engine) -> dict[str, object]:
    """Kill the server while the router uses it, and start it again."""
    with (
        servers.private(engine.name) as server,
        KnowledgeBuilder([engine.backend(server.url)], limits=Limits(seconds=10)) as builder,
    ):
        reader(builder)(engine.short)
        server.kill()
        killed_ms, sentence = timed_with(builder, engine.short)
        server.start()
        started = time.perf_counter()
        while "| one |" not in ask(builder, engine.short):
            time.sleep(0.05)
        healed = time.perf_counter() - started
    return {
        "benchmark": "outage",
        "engine": engine.name,
        "seconds_to_sentence": round(killed_ms / 1_000, 2),
        "seconds_to_answer": round(healed, 2),
        "sentence": sentence[:200],
    }


def reader(builder: KnowledgeBuilder) -> Run:
    """Return what reads through the router, and fails where the router answers with a failure."""

    def read(statement: str) -> object:
        answer = ask(builder, statement)
        if "| " not in answer:
            raise SystemExit(f"{builder}: {answer}")
        return answer

    return read


def ask(builder: KnowledgeBuilder, statement: str) -> str:
    """Return what a model would read."""
    read_kb = next(tool for tool in builder.build() if tool.__name__ == "read_kb")
    return read_kb(builder.backends[0].backend_name, statement, 3)


def timed(run: Run, statement: str) -> float:
    """Return the milliseconds of one call."""
    started = time.perf_counter()
    run(statement)
    return (time.perf_counter() - started) * 1_000


def timed_with(builder: KnowledgeBuilder, statement: str) -> tuple[float, str]:
    """Return the milliseconds of one call and what it answered."""
    started = time.perf_counter()
    answer = ask(builder, statement)
    return (time.perf_counter() - started) * 1_000, answer


def peak_mib() -> float:
    """Return the most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def main(asked: Sequence[str]) -> None:
    """Print the figures; `memory <engine>` is what a process of its own is started with."""
    if len(asked) == 2 and asked[0] == "memory":
        engine = next(each for each in ENGINES if each.name == asked[1])
        print(json.dumps(memory(engine, servers.shared(engine.name).url)))
        return
    servers.begin_run()
    try:
        for engine in ENGINES:
            if not asked or "calls" in asked:
                print(json.dumps(calls(engine, servers.shared(engine.name).url)), flush=True)
            if not asked or "memory" in asked:
                subprocess.run([sys.executable, __file__, "memory", engine.name], check=True)
            if not asked or "outage" in asked:
                print(json.dumps(outage(engine)), flush=True)
    finally:
        servers.end_run()


if __name__ == "__main__":
    main(sys.argv[1:])
