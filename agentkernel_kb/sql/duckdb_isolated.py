"""DuckDB in children, so that a statement may bring its engine down, or fill its memory, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, cast

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.isolation import ChildPool, Launch
from agentkernel_kb.sql.catalogue import Catalogue, TableFacts, TableName
from agentkernel_kb.sql.duckdb import DuckDBLock
from agentkernel_kb.sql.locks import EngineLock
from agentkernel_kb.sql.reader import Fetched, Reader

_SPARE_BYTES = 256_000_000
_SHARE_BEYOND_LIMIT = 1.5
_UNITS = {"K": 1_000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000}


class IsolatedReader:
    """Reads from one file in processes of its own, each of which runs one statement at a time.

    Args:
        lock: How the file is opened.
        name: Name of the backend, for messages.
    """

    def __init__(self, lock: DuckDBLock, name: str) -> None:
        options = {**lock.options, "name": name}
        self._children = ChildPool(Launch("agentkernel_kb.sql.duckdb_child", options, _most_bytes(lock.memory_limit)), name)

    def fetch(self, statement: str, most: int, until: float | Deadline) -> Fetched:
        """Return at most `most` rows of `statement`, which is sent as it is and ended as soon as they are there.

        Args:
            statement: One statement.
            most: Most rows.
            until: When it has to be over: in so many seconds, or at a deadline that the caller may end early.

        Raises:
            KnowledgeTimeoutError: They were not there in time; the engine stops.
            KnowledgeQueryError: The database rejected the statement, or did not survive it.
            KnowledgeConnectionError: The database cannot be read.
        """
        deadline = until if isinstance(until, Deadline) else Deadline(until)
        columns, rows, more = self._children.call(["fetch", statement, most], deadline)
        return Fetched(columns, [tuple(row) for row in cast("list[list[Any]]", rows)], more)

    def catalogue(self, *, only: Collection[str] | None, most: int, seconds: float) -> Catalogue:
        """Return what the database says about itself; `only` and `most` bound the tables.

        Raises:
            KnowledgeTimeoutError: It did not say so in time.
            KnowledgeConnectionError: The database cannot be read.
        """
        request = ["catalogue", None if only is None else list(only), most]
        found = cast("dict[str, Any]", self._children.call(request, Deadline(seconds)))
        return Catalogue(
            tuple(TableFacts(**fact) for fact in found["described"]),
            tuple(TableName(**table) for table in found["names"]),
            tuple(found["missing"]),
        )

    def close(self) -> None:
        """End the processes, whatever they do. May be called twice."""
        self._children.close()


def reader_for(lock: EngineLock, name: str, *, isolate: bool) -> Reader | IsolatedReader:
    """Return what reads through a lock: in processes of its own where the engine runs inside the process and may end it."""
    return IsolatedReader(lock, name) if isolate and isinstance(lock, DuckDBLock) else Reader(lock, name)


def _most_bytes(memory_limit: str) -> int:
    """Return how much memory a child may take for an engine that counts only part of what it takes."""
    found = re.match(r"([0-9.]+)\s?([KMGT])", memory_limit.upper())
    counted = float(found[1]) * _UNITS[found[2]] if found else 0.0
    return int(counted * _SHARE_BEYOND_LIMIT) + _SPARE_BYTES
