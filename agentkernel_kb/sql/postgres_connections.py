"""Connections to one PostgreSQL database: a few that are kept, each lent for one read-only transaction that ends in time."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.errors import KnowledgeTimeoutError
from agentkernel_kb.sql.postgres_types import teach

if TYPE_CHECKING:
    import psycopg
    from psycopg import Connection

CONNECT_SECONDS = 10.0
_KEPT_SECONDS = 300.0
_CANCEL_SECONDS = 1.0
# A deadline may be brought forward, by a caller that gives up.
_SECONDS_BETWEEN_LOOKS = 0.25
# The server stops a statement by itself a little before the deadline, so that the connection is good for another one.
_MARGIN_SECONDS, _MARGIN_SHARE = 0.05, 0.1
_LOCK_SHARE = 0.8
_IDLE_SECONDS = 5.0
MAX_TEMPORARY_FILES = "4GB"

# Names without a schema mean PostgreSQL's own objects first, then those of `public`, then what the login's path adds.
_FACTS = """
SELECT concat_ws(', ', 'pg_catalog', 'public', string_agg(quote_ident(name), ', ' ORDER BY place)
    FILTER (WHERE name NOT IN ('pg_catalog', 'public')), 'pg_temp'), {bounds_files}
FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (name, place)
"""
# Where the login may bound the temporary files of a statement, and nobody has.
_BOUNDS_FILES = "current_setting('temp_file_limit') = '-1' AND has_parameter_privilege('temp_file_limit', 'SET')"
_PRIVILEGES_OF_PARAMETERS, _TRANSACTION_TIMEOUT = 150_000, 170_000
_PINNED = {
    "standard_conforming_strings": "on",  # What the guard takes for the end of a string is the end of it.
    "row_security": "on",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "client_min_messages": "error",
}


@dataclass
class Kept:
    """A connection, and what is known about it.

    Attributes:
        connection: The driver's connection.
        settings: Settings of its transactions, by name.
        types: Numbers of the types that it was taught.
        since: When it was last given back.
    """

    connection: Connection[Any]
    settings: Mapping[str, str]
    types: set[int] = field(default_factory=set[int])
    since: float = 0.0


class PostgresConnections:
    """Lends sessions, and keeps the connections below them for the next ones.

    Args:
        parameters: How to connect, by libpq's names.
        most: Most connections that are kept.
    """

    def __init__(self, parameters: Mapping[str, str], most: int) -> None:
        self._parameters = dict(parameters)
        self._most = most
        self._lock = threading.Lock()
        self._idle: list[Kept] = []
        self._pid = os.getpid()
        self._generation = 0

    @contextmanager
    def connect(self) -> Generator[PostgresSession]:
        """Lend a session, which connects when it begins."""
        session = PostgresSession(self)
        try:
            yield session
        finally:
            session.end()

    def dispose(self) -> None:
        """Close what is kept; what is lent is closed when it is given back. The next session connects again."""
        with self._lock:
            self._generation += 1
            idle, self._idle = self._idle, []
        if self._pid == os.getpid():
            _close_all(idle)

    @property
    def generation(self) -> int:
        """How often everything was closed."""
        return self._generation

    def take(self) -> Kept | None:
        """Return a connection that was kept, the one used last."""
        with self._lock:
            if self._pid != os.getpid():  # A fork shares the parent's sockets and may neither use nor end them.
                self._pid, self._idle = os.getpid(), []
            fresh = [kept for kept in self._idle if time.monotonic() - kept.since < _KEPT_SECONDS]
            old = [kept for kept in self._idle if kept not in fresh]
            self._idle = fresh
            taken = self._idle.pop() if self._idle else None
        _close_all(old)
        return taken

    def open(self, deadline: Deadline) -> Kept:
        """Return a new connection.

        Raises:
            psycopg.Error: It cannot be had.
            KnowledgeTimeoutError: No time is left.
        """
        import psycopg
        from psycopg.conninfo import make_conninfo

        if deadline.passed():
            raise KnowledgeTimeoutError("There is no time left for this call.")
        own = float(self._parameters.get("connect_timeout") or CONNECT_SECONDS)
        seconds = max(1, round(min(own if own > 0 else CONNECT_SECONDS, deadline.left())))
        address = make_conninfo("", **{**self._parameters, "connect_timeout": str(seconds)})
        connection = psycopg.connect(address, autocommit=True, prepare_threshold=None)
        try:
            teach(connection)
            return Kept(connection, _settings(connection))
        except BaseException:
            connection.close()
            raise

    def give_back(self, kept: Kept, generation: int) -> None:
        """Keep a connection that nothing is left on, if there is room."""
        with self._lock:
            has_room = generation == self._generation and len(self._idle) < self._most and self._pid == os.getpid()
            if has_room:
                kept.since = time.monotonic()
                self._idle.append(kept)
        if not has_room:
            _close_all([kept])


def _settings(connection: Connection[Any]) -> Mapping[str, str]:
    has_privileges = connection.info.server_version >= _PRIVILEGES_OF_PARAMETERS
    facts = _FACTS.format(bounds_files=_BOUNDS_FILES if has_privileges else "false")
    connection.execute("BEGIN READ ONLY")
    path, bounds_files = connection.execute(facts.encode()).fetchone() or ("pg_catalog, public, pg_temp", False)
    connection.execute("ROLLBACK")
    files = {"temp_file_limit": MAX_TEMPORARY_FILES} if bounds_files else {}
    return {**_PINNED, "search_path": path, **files}


def _close_all(idle: list[Kept]) -> None:
    for kept in idle:
        with suppress(Exception):  # It is given up, however that ends.
            kept.connection.close()


class PostgresSession:
    """One read-only transaction, which is interrupted at its deadline.

    Args:
        connections: Where its connection comes from.
    """

    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections
        self._generation = connections.generation
        self._kept: Kept | None = None
        self._ended = threading.Event()
        self._interrupted = False
        self._watch: threading.Thread | None = None

    @property
    def connection(self) -> Connection[Any]:
        """The driver's connection, in a transaction."""
        return self._begun.connection

    @property
    def types(self) -> set[int]:
        """Numbers of the types that the connection was taught; a caller that teaches more adds them."""
        return self._begun.types

    @property
    def _begun(self) -> Kept:
        if self._kept is None:
            raise RuntimeError("the session has not begun")
        return self._kept

    def begin(self, deadline: Deadline, settings: Mapping[str, str]) -> None:
        """Begin the transaction.

        A kept connection may have died since; another one takes its place, as nothing was sent yet.

        Args:
            deadline: When it has to be over.
            settings: Further settings of the transaction, by name.

        Raises:
            psycopg.Error: No connection can be had, or a setting is not taken.
            KnowledgeTimeoutError: No time is left.
        """
        import psycopg

        self._watch = threading.Thread(target=self._interrupt_at, args=(deadline,), name="postgres-deadline", daemon=True)
        self._watch.start()
        self._kept = self._connections.take()
        if self._kept is not None:
            try:
                self._begin(deadline, settings)
            except psycopg.OperationalError as error:
                if self._interrupted or not _has_ended(error):
                    raise
                _close_all([self._kept])
                self._connections.dispose()  # Whatever ended this one has ended the others too.
                self._generation = self._connections.generation
            else:
                return
        self._kept = self._connections.open(deadline)
        self._begin(deadline, settings)

    def _begin(self, deadline: Deadline, settings: Mapping[str, str]) -> None:
        if deadline.passed():
            raise KnowledgeTimeoutError("There is no time left for this call.")
        connection = self.connection
        wanted = {**self._begun.settings, **_timeouts(deadline, connection.info.server_version), **settings}
        connection.execute("BEGIN READ ONLY")
        calls = ", ".join(["set_config(%s, %s, true)"] * len(wanted))
        # The first query of a transaction fixes that it only reads; nothing can change it after that.
        connection.execute(f"SELECT {calls}".encode(), [part for setting in wanted.items() for part in setting])

    def take_role(self, role: str) -> None:
        """Go on as another role until the transaction ends.

        Raises:
            psycopg.Error: There is no such role, or the login may not become it.
        """
        self.connection.execute("SELECT set_config('role', %s, true)", [role])

    def end(self) -> None:
        """End the transaction, and leave nothing of it on the connection."""
        is_clean = self._kept is not None and self._clean()
        self._ended.set()
        if self._watch is not None:
            self._watch.join()
        if self._kept is None:
            return
        if is_clean and not self._interrupted:
            self._connections.give_back(self._kept, self._generation)
        else:
            _close_all([self._kept])
        self._kept = None

    def _clean(self) -> bool:
        import psycopg

        if self._interrupted:
            return False
        try:
            self.connection.execute("ROLLBACK")
            self.connection.execute("DISCARD ALL")  # Advisory locks and prepared statements outlive a transaction.
        except psycopg.Error:
            return False
        return True

    def _interrupt_at(self, deadline: Deadline) -> None:
        while not self._ended.wait(min(deadline.left(), _SECONDS_BETWEEN_LOOKS)):
            if deadline.passed():
                self._interrupt()
                return

    def _interrupt(self) -> None:
        """Ask the server to stop; if that does not help, as it may hang itself, hang up."""
        self._interrupted = True
        while (kept := self._kept) is None:  # It still connects, which has a time-out of its own.
            if self._ended.wait(_SECONDS_BETWEEN_LOOKS):
                return
        with suppress(Exception):  # Whatever the reason: hanging up needs no answer.
            kept.connection.cancel_safe(timeout=_CANCEL_SECONDS)
        if not self._ended.wait(_CANCEL_SECONDS):
            _hang_up(kept.connection)


def _has_ended(error: psycopg.OperationalError) -> bool:
    """Tell whether an error is the end of a connection."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def _hang_up(connection: Connection[Any]) -> None:
    """End the connection's traffic, so that whoever waits for it stops; closing it is left to them."""
    with suppress(Exception), socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as line:
        line.shutdown(socket.SHUT_RDWR)


def _timeouts(deadline: Deadline, version: int) -> dict[str, str]:
    left = deadline.left()
    statement = max(0.001, left - min(_MARGIN_SECONDS, left * _MARGIN_SHARE))
    seconds = {
        "statement_timeout": statement,
        "lock_timeout": max(0.001, statement * _LOCK_SHARE),
        "idle_in_transaction_session_timeout": left + _IDLE_SECONDS,  # If this process dies or hangs.
    }
    if version >= _TRANSACTION_TIMEOUT:
        seconds["transaction_timeout"] = left + _IDLE_SECONDS
    return {name: str(max(1, int(value * 1000))) for name, value in seconds.items()}
