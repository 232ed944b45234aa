"""The engine in a process of its own: what it is asked for by `agentkernel_kb.ladybug.isolated`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeBackendError
from agentkernel_kb.ladybug.database import GraphDatabase
from agentkernel_kb.ladybug.parser import prepare
from agentkernel_kb.ladybug.session import Job, Session


def open_engine(options: Mapping[str, Any]) -> GraphEngine:
    """Open the database that the parent has claimed.

    Raises:
        KnowledgeError: It cannot be opened.
    """
    return GraphEngine(options)


class GraphEngine:
    """Reads from a database, or writes to it, and opens it anew where another process has written meanwhile.

    Args:
        options: The arguments of `GraphDatabase` by name; `generation`, which counts the writes at the time of opening; and
            `folder`, which goes together with the database, or `""`.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._generation: int = options["generation"]
        self._session = self._opened()
        self._job = Job()

    def _opened(self) -> Session:
        options = self._options
        if not options["read_only"]:
            prepare()  # Now, as later the memory for it would be missing.
        return Session(
            GraphDatabase(
                options["path"],
                options["name"],
                read_only=options["read_only"],
                max_memory_bytes=options["max_memory_bytes"],
                threads=options["threads"],
                is_claimed=True,
            )
        )

    def answer(self, request: list[Any], seconds: float) -> object:
        """Read rows, read the catalogue, write, or bring the log of writes into the database.

        Raises:
            KnowledgeError: What the failure of the engine means.
        """
        deadline = Deadline(seconds)
        match request:
            case ["fetch", statement, most, generation]:
                self._renew(generation)
                return list(self._session.fetch(statement, most, deadline, self._job))
            case ["catalogue", most, generation]:
                self._renew(generation)
                return asdict(self._session.catalogue(most, deadline, self._job))
            case ["write", statement, parameters]:
                return self._session.write(statement, parameters, deadline, self._job)
            case ["checkpoint"]:
                return self._session.write("CHECKPOINT", {}, deadline, self._job)
            case _:
                raise KnowledgeBackendError("The engine was asked for something that it does not know.")

    def _renew(self, generation: int) -> None:
        """Open the database anew if it has been written to since it was opened: what is in memory is not what is there."""
        if generation != self._generation:
            self._session.close()
            self._session = self._opened()
            self._generation = generation

    def interrupt(self) -> None:
        """Ask the engine to stop what runs."""
        self._job.interrupt()

    def close(self) -> None:
        """Close the database, and remove the folder that was made for it."""
        self._session.close()
        if folder := self._options["folder"]:
            shutil.rmtree(folder, ignore_errors=True)
