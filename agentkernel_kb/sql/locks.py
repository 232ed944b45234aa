"""What an engine has to offer before a model may send statements to it, and which engines do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import AKConfigError, KnowledgeError
from agentkernel_kb.sql.acting import ActingRules
from agentkernel_kb.sql.catalogue import TableSource
from agentkernel_kb.sql.duckdb import DuckDBLock
from agentkernel_kb.sql.postgres import PostgresLock
from agentkernel_kb.sql.sqlite import SQLiteLock

if TYPE_CHECKING:
    from sqlalchemy.engine import URL


class Connections(Protocol):
    """Where connections come from; a SQLAlchemy engine is one of these."""

    def connect(self) -> AbstractContextManager[Any]:
        """Hand out a connection."""
        ...

    def dispose(self) -> None:
        """Close the connections."""
        ...


class EngineLock(Protocol):
    """How one engine is opened so that it only reads, stops in time, and says what went wrong."""

    @property
    def dialect(self) -> str:
        """The guard's name of the dialect."""
        ...

    def make_engine(self, connections: int) -> Connections:
        """Return what hands out connections, at most `connections` at a time, that can only read."""
        ...

    def driver(self, connection: Any) -> Any:
        """Return the driver's own connection behind one that was handed out."""
        ...

    def reading(self, connection: Any, deadline: Deadline, *, whole: bool) -> AbstractContextManager[None]:
        """Hold a driver's connection ready for one piece of work, which the engine itself stops at the deadline.

        `whole` lets the work see the whole catalogue and not only the tables that statements may read.
        """
        ...

    def tables(self, connection: Any) -> TableSource:
        """Return what a connection that was handed out tells about the tables."""
        ...

    def rows(self, connection: Any, statement: str, most: int) -> Any:
        """Send a statement and return the driver's open cursor, which hands out rows as they are asked for.

        No more than `most` and one will be asked for; an engine that stops by itself can be told.
        """
        ...

    def translate(self, error: Exception, deadline: Deadline) -> KnowledgeError:
        """Return what a failure of the driver means."""
        ...

    def missing_name(self, error: KnowledgeError) -> str | None:
        """Return the name that a rejected statement uses and the database does not have."""
        ...


# By the name of the database in a URL.
_LOCKS: dict[str, Callable[..., EngineLock]] = {"duckdb": DuckDBLock, "postgresql": PostgresLock, "sqlite": SQLiteLock}
_WITH_ROLES = frozenset({"postgresql"})

SERVERS = frozenset({"postgres"})
"""Dialects of databases that other machines serve."""

VERSION_QUERIES = {"duckdb": "SELECT version()", "postgres": "SHOW server_version", "sqlite": "SELECT sqlite_version()"}
"""What asks an engine for its version, by dialect."""


def lock_for(
    url: URL, *, tables: Collection[str] | None, max_value_bytes: int, acting: ActingRules | None = None
) -> EngineLock:
    """Return the lock of the engine that `url` names.

    Raises:
        AKConfigError: There is no lock for it, or the URL itself is wrong, or its engine has no roles to act as.
    """
    name = url.get_backend_name()
    if name not in _LOCKS:
        raise AKConfigError(f"SQLManager has no read-only set-up for the dialect '{name}'. Supported: {sorted(_LOCKS)}")
    if not acting:
        return _LOCKS[name](url, tables=tables, max_value_bytes=max_value_bytes)
    if name not in _WITH_ROLES:
        raise AKConfigError(f"role_of and settings_prefix are for databases with roles: {sorted(_WITH_ROLES)}, not '{name}'.")
    return _LOCKS[name](url, tables=tables, max_value_bytes=max_value_bytes, acting=acting)
