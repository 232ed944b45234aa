"""A graph whose engine runs in children: one that writes and holds the file, and a few that read it in its pauses.

The engine lets one process write a file and does not mind others that read it, as long as nothing changes under them. So reads
and writes take turns, and a child that reads opens the file anew after a write. A statement that brings its engine down takes
nothing else with it: what was written is in the file or in the engine's log of writes, from which the next child goes on.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import tempfile
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeConnectionError, KnowledgeDependencyError, KnowledgeError, KnowledgeTimeoutError
from agentkernel_kb.isolation import ChildEndedError, ChildPool, Launch
from agentkernel_kb.ladybug import owners
from agentkernel_kb.ladybug.catalogue import Catalogue, TableFacts
from agentkernel_kb.ladybug.database import checked_path
from agentkernel_kb.ladybug.runner import as_deadline
from agentkernel_kb.ladybug.session import Fetched
from agentkernel_kb.ladybug.turns import Turns

OPENING_SECONDS = 60.0
_LOG_BYTES = 250_000
"""How much may stand in the log of writes before it is brought into the file; each child that reads would do so for itself."""
_LEAST_MEMORY_BYTES = 256_000_000


class IsolatedGraph:
    """Reads from and writes to one database, in processes that a statement may bring down.

    Args:
        path: The file, made if it is missing and not `read_only`. `:memory:` is a file in a new folder for temporary files that
            goes with this object: a graph in the memory of a child would be lost with it.
        name: Name of the backend, for messages.
        read_only: Nothing is written.
        max_memory_bytes: Most memory for the pages and intermediate results of the engine in each child.
        threads: Most threads per query, 0 for one per core.

    Raises:
        AKConfigError: The path cannot be a database, or a database in memory was to be read-only.
        KnowledgeConnectionError: Somebody else has it open, or it cannot be read.
        KnowledgeDependencyError: The extra `ladybug` is missing.
    """

    def __init__(self, path: str | Path, name: str, *, read_only: bool, max_memory_bytes: int, threads: int) -> None:
        if importlib.util.find_spec("ladybug") is None:
            raise KnowledgeDependencyError("ladybug", "LadybugManager")
        place = checked_path(path, name, read_only=read_only)
        self._folder = "" if place else tempfile.mkdtemp(prefix="agentkernel-kb-")
        self._path = place or Path(self._folder, "graph.lbug")
        self._options = {
            "path": str(self._path),
            "name": name,
            "max_memory_bytes": max_memory_bytes,
            "threads": threads,
            "generation": 0,
        }
        self._most_bytes = max(_LEAST_MEMORY_BYTES, max_memory_bytes // 2)
        self._generation = 0
        self._is_logged = False
        self._turns = Turns()
        owners.claim(self._path, name, read_only=read_only)
        self._readers = ChildPool(self._launch(read_only=True), name)
        # Nothing is written twice, not even where that would do no harm.
        self._writer = None if read_only else ChildPool(self._launch(read_only=False), name, most=1, repeats=False)
        self._finalizer = weakref.finalize(
            self, _end, [*filter(None, [self._writer]), self._readers], self._path, self._folder, read_only, os.getpid()
        )
        try:
            (self._writer or self._readers).start(OPENING_SECONDS)
        except BaseException:
            self.close()
            raise

    def _launch(self, *, read_only: bool) -> Launch:
        folder = "" if read_only else self._folder
        options = {**self._options, "read_only": read_only, "folder": folder}
        return Launch("agentkernel_kb.ladybug.child", options, self._most_bytes)

    # Reading.

    def fetch(self, statement: str, most: int, until: float | Deadline) -> Fetched:
        """Return at most `most` rows of one statement, from a database that is open for reading only.

        Raises:
            KnowledgeTimeoutError: They were not there in time, or writes held the graph until then.
            KnowledgeQueryError: The engine rejected the statement, or did not survive it.
        """
        columns, rows, more = self._read(["fetch", statement, most], as_deadline(until))
        return Fetched(columns, rows, more)

    def catalogue(self, most: int, until: float | Deadline) -> Catalogue:
        """Return what the graph says about itself, at most `most` of its tables in full.

        Raises:
            KnowledgeError: What the failure of the engine means.
        """
        found = cast("dict[str, Any]", self._read(["catalogue", most], as_deadline(until)))
        return Catalogue(tuple(TableFacts(**fact) for fact in found["described"]), tuple(found["names"]))

    def _read(self, request: list[Any], deadline: Deadline) -> Any:
        try:
            with self._reading(deadline):
                return self._readers.call([*request, self._generation], deadline)
        except KnowledgeConnectionError:
            # A writer that was brought down may have left what only a writer can clear away.
            if self._writer is None:
                raise
            with self._turns.writing(deadline):
                self._writer.start(OPENING_SECONDS)
        with self._reading(deadline):
            return self._readers.call([*request, self._generation], deadline)

    @contextmanager
    def _reading(self, deadline: Deadline) -> Generator[None]:
        if self._has_long_log():
            with self._turns.writing(deadline):
                self._shorten_log(deadline)
        with self._turns.reading(deadline):
            yield

    def _has_long_log(self) -> bool:
        log = self._path.with_name(f"{self._path.name}.wal")
        return self._is_logged and log.exists() and log.stat().st_size > _LOG_BYTES

    def _shorten_log(self, deadline: Deadline) -> None:
        """Bring the log of writes into the file, unless another call has done so meanwhile."""
        if self._writer is not None and self._has_long_log():
            self._is_logged = False
            self._generation += 1
            with contextlib.suppress(KnowledgeError):  # Then those that read do it for themselves.
                self._writer.call(["checkpoint"], deadline)

    # Writing.

    def write(self, statement: str, parameters: dict[str, Any], until: float | Deadline) -> None:
        """Run one statement in a transaction of its own.

        Raises:
            KnowledgeTimeoutError: It was not done in time, or reads held the graph until then.
            KnowledgeQueryError: The engine rejected it, or did not survive it.
        """
        deadline = as_deadline(until)
        if self._writer is None:
            raise KnowledgeConnectionError(f"The graph {self._path} is open for reading only.")
        with self._turns.writing(deadline):
            self._generation += 1
            self._is_logged = True
            try:
                self._writer.call(["write", statement, parameters], deadline)
            except ChildEndedError as error:
                self._recover()
                raise ChildEndedError(f"{error} Look before you write it again: it may have been stored.") from None
            except KnowledgeTimeoutError:
                self._recover()
                raise

    def _recover(self) -> None:
        """Have the file held, and what was interrupted cleared away, before anybody reads."""
        if self._writer is not None:
            with contextlib.suppress(KnowledgeError):
                self._writer.start(OPENING_SECONDS)

    def close(self) -> None:
        """Stop what runs, close the database and give its file back. May be called twice."""
        self._finalizer()


def _end(pools: list[ChildPool], path: Path, folder: str, read_only: bool, pid: int) -> None:
    for pool in pools:
        pool.close()
    owners.release(path, read_only=read_only)
    if folder and os.getpid() == pid:  # Not in a process that was forked from the one that uses it.
        shutil.rmtree(folder, ignore_errors=True)
