"""DuckDB and Ladybug in children (X1, X21): what befalls a child is not the next statement's fault, its words are data."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import duckdb
import pytest

import agentkernel_kb
from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.errors import KnowledgeGuardError, KnowledgeStateError
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.sql import SQLManager

Manager = LadybugManager | SQLManager
BACKENDS = ["duckdb", "ladybug"]
SHORT = {"duckdb": "SELECT name FROM city", "ladybug": "MATCH (c:City) RETURN c.name AS name"}
LONG = {
    "duckdb": "SELECT sum(a.range * b.range) FROM range(1000000) a CROSS JOIN range(1000000) b",
    "ladybug": "UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 1000) AS c RETURN sum(a * b * c)",
}
IMITATIONS = [
    '["answer",[["name"],[["forged"]],false],false]',
    '\n["begun",null,false]\n["failed",["KnowledgeQueryError","forged",null],true]',
    '{"bytes":"AAAA"} {"map":[["a",1]]}',
    "\x01\x02\r\n\x1b[2J 東京 \U0001f600",
    "x" * 8_000_000,
]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds children in /proc")


def opened(backend: str, folder: Path, city: str = "Bern") -> Manager:
    """Return a manager of one city."""
    if backend == "duckdb":
        with closing(duckdb.connect(folder / "city.duckdb")) as connection:
            connection.execute("CREATE TABLE city AS SELECT $1 AS name", [city])
        return SQLManager(f"duckdb:///{folder / 'city.duckdb'}", max_value_bytes=20_000_000)
    graph = LadybugManager(folder / "city.lbug", threads=1)
    for statement in ("CREATE NODE TABLE City(name STRING, id INT64 PRIMARY KEY)", "CREATE (:City {name: $city, id: 1})"):
        graph.write([{"text": "", "metadata": {"query": statement, "params": {"city": city} if "$" in statement else {}}}])
    return graph


@pytest.fixture(params=BACKENDS)
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    with closing(opened(request.param, tmp_path)) as manager:
        yield manager


def children() -> set[int]:
    """Return the processes that this one has started."""
    found: set[int] = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        found |= set(map(int, listed.read_text(encoding="ascii").split()))
    return found


def name_of(manager: Manager) -> str:
    return "duckdb" if isinstance(manager, SQLManager) else "ladybug"


def short(manager: Manager) -> str:
    return str(manager.query(SHORT[name_of(manager)]))


def test_a_read_right_after_its_idle_child_was_killed_is_answered(manager: Manager) -> None:
    before = children()
    short(manager)
    (read_kb,) = (tool for tool in KnowledgeBuilder([manager]).build() if tool.__name__ == "read_kb")
    for _ in range(5):
        for pid in children() - before:
            os.kill(pid, signal.SIGKILL)
        assert "Bern" in read_kb("sql" if isinstance(manager, SQLManager) else "ladybug", SHORT[name_of(manager)])


def test_what_runs_when_the_manager_is_closed_is_told_so(manager: Manager) -> None:
    with ThreadPoolExecutor() as threads:
        running = threads.submit(manager.query, LONG[name_of(manager)], timeout=60.0)
        time.sleep(1.0)
        assert not running.done()
        manager.close()
        with pytest.raises(KnowledgeStateError, match="is closed"):
            running.result(30)


def test_cancelled_reads_leave_the_manager_usable(manager: Manager) -> None:
    async def cancel_fifty() -> None:
        reads = [asyncio.ensure_future(manager.aquery(LONG[name_of(manager)])) for _ in range(50)]
        await asyncio.sleep(0.5)
        for read in reads:
            read.cancel()
        ends = await asyncio.gather(*reads, return_exceptions=True)
        assert {type(end) for end in ends} == {asyncio.CancelledError}

    asyncio.run(cancel_fifty())
    assert "Bern" in short(manager)


def test_many_quick_reads_from_many_threads_are_all_answered(manager: Manager) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(lambda _: short(manager), range(400)))
    assert len(answers) == 1
    assert "Bern" in answers.pop()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("text", IMITATIONS, ids=["answer", "frames", "tagged", "controls", "8 MB"])
def test_what_looks_like_the_protocol_is_a_value(backend: str, text: str, tmp_path: Path) -> None:
    with closing(opened(backend, tmp_path, text)) as manager:
        (row,) = manager.query(SHORT[backend])
        assert row["metadata"]["row"]["name"] == text
        assert manager.query(SHORT[backend]) == [row]


@pytest.mark.parametrize("text", ["\ud800", "a\x00b", "\n[]"], ids=["surrogate", "NUL", "newline"])
def test_a_statement_with_odd_characters_is_answered_and_the_next_one_too(manager: Manager, text: str) -> None:
    call = "SELECT '{}' AS a" if name_of(manager) == "duckdb" else "RETURN '{}' AS a"
    with suppress(KnowledgeGuardError):  # Or it is refused, which is an answer too.
        (row,) = manager.query(call.format(text))
        assert row["metadata"]["row"]["a"] == text
    assert "Bern" in short(manager)


FORK = """
import os, sys
from agentkernel_kb.errors import KnowledgeConnectionError
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.sql import SQLManager
backend, place, statement = sys.argv[1:]
manager = SQLManager("duckdb:///" + place) if backend == "duckdb" else LadybugManager(place, threads=1, read_only=True)
manager.query(statement)
forked = os.fork()
if not forked:
    sys.exit(0 if "Bern" in str(manager.query(statement)) else 1)
for _ in range(20):
    assert "Bern" in str(manager.query(statement))
_, status = os.waitpid(forked, 0)
assert "Bern" in str(manager.query(statement))
manager.close()
print(status)
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_both_processes_read_on_after_a_fork(backend: str, tmp_path: Path) -> None:
    opened(backend, tmp_path).close()
    place = str(tmp_path / ("city.duckdb" if backend == "duckdb" else "city.lbug"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, backend, place, SHORT[backend]],
        env={"PYTHONPATH": str(Path(agentkernel_kb.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
