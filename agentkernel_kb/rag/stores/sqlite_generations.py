"""Generations of a corpus in the file of `SQLiteVectorStore` (X19).

Each is a namespace of the file. The one that is searched has the corpus's own name, the next one is filled under a name of its
own, and a switch renames both in one transaction. What was taken out of use is deleted in small transactions, by whoever opens
the file next where its process was killed.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeStateError
from agentkernel_kb.rag.stores.generational import State
from agentkernel_kb.rag.stores.sqlite_file import SQLiteFile

MARK = "\x1f"
"""What the name of no corpus begins with."""

_OLD = f"{MARK}old{MARK}"
_RETIRE = "UPDATE namespaces SET name = ? || number WHERE name = ?"
_PRUNE = "DELETE FROM chunks WHERE row IN (SELECT row FROM chunks WHERE namespace = ? LIMIT ?)"
_PRUNE_REST = (
    "DELETE FROM terms WHERE namespace = ?",
    "DELETE FROM gone WHERE namespace = ?",
    "DELETE FROM ledger WHERE namespace = ?",
    "DELETE FROM namespaces WHERE number = ?",
)
_DELETED_AT_ONCE = 2_000
_STATE = "SELECT number, version FROM namespaces WHERE name = ?"
_RENAME = "UPDATE namespaces SET name = ? WHERE number = ?"


def names_of(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the corpora in a file, sorted."""
    found = connection.execute("SELECT name FROM namespaces ORDER BY name")
    return [name for (name,) in found if not name.startswith(MARK)]


def next_name(namespace: str) -> str:
    """Return the name of the generation that is being made of a corpus."""
    return f"{MARK}next{MARK}{namespace}"


def switch(connection: sqlite3.Connection, namespace: str, mine: State, its: State) -> bool:
    """Give the next generation the corpus's name, within a transaction, and tell whether that was done.

    Raises:
        KnowledgeStateError: The next generation is not in the state in which it was verified.
    """
    if connection.execute(_STATE, (next_name(namespace),)).fetchone() != its:
        raise KnowledgeStateError("The new generation was changed after it was verified: somebody else indexes anew too.")
    if connection.execute(_STATE, (namespace,)).fetchone() != mine:
        return False
    retire(connection, namespace)
    connection.execute(_RENAME, (namespace, its[0]))
    return True


def retire(connection: sqlite3.Connection, namespace: str) -> None:
    """Take a namespace out of use, within a transaction."""
    connection.execute(_RETIRE, (_OLD, namespace))


def prune(file: SQLiteFile) -> None:
    """Delete what was taken out of use, in transactions that others need not wait for.

    Where that fails, as on a full disk, it is left to whoever opens the file next: nobody sees it, and what was done is done.
    """
    with suppress(KnowledgeBackendError, sqlite3.Error):
        while (number := _retired(file.connection())) is not None:
            _delete_some(file, number)


def _delete_some(file: SQLiteFile, number: int) -> None:
    with file.writing() as connection:
        gone = connection.execute(_PRUNE, (number, _DELETED_AT_ONCE))
        if gone.rowcount < _DELETED_AT_ONCE:
            for statement in _PRUNE_REST:
                connection.execute(statement, (number,))


def unfinished(connection: sqlite3.Connection, namespace: str) -> int:
    """Return how many chunks there are of a generation that nobody switched to."""
    statement = "SELECT count(*) FROM chunks JOIN namespaces ON namespace = number WHERE name = ?"
    return connection.execute(statement, (next_name(namespace),)).fetchone()[0]


def faults(connection: sqlite3.Connection, number: int) -> list[str]:
    """Return what is wrong with the file, and with the chunks of a namespace."""
    found = [f"The file: {said}." for (said,) in connection.execute("PRAGMA quick_check(5)") if said != "ok"]
    lengths = "SELECT DISTINCT length(vector) / 4 FROM chunks WHERE namespace = ? AND length(vector) > 0 ORDER BY 1"
    dimensions = [length for (length,) in connection.execute(lengths, (number,))]
    return [*found, f"Vectors of different lengths: {dimensions}."] if len(dimensions) > 1 else found


def _retired(connection: sqlite3.Connection) -> int | None:
    found = connection.execute("SELECT number FROM namespaces WHERE name GLOB ? LIMIT 1", (f"{_OLD}*",)).fetchone()
    return found[0] if found else None
