"""The life of an index: opened or made when the backend is, refreshed in the background, made anew when it is damaged."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.okf import database as db
from agentkernel_kb.okf import refresh, rows
from agentkernel_kb.okf.model import DiagnosticCode, OKFDiagnostic
from agentkernel_kb.okf.refresh import Bundle
from agentkernel_kb.okf.rows import Row

T = TypeVar("T")

GRACE_S = 0.25
"""Seconds for which a call that is due for a refresh waits for it: small bundles are fresh then, large ones hold up nobody."""

_LOCK_WAIT_S = 600.0
_RETRY_S = 15.0
_KEPT_DAYS = 30.0
_LOG = logging.getLogger("agentkernel_kb.okf")


class Keeper:
    """Owns the index of one bundle.

    Args:
        bundle: What is indexed.
        path: The file, `None` for memory.
        refresh_seconds: Age at which the index is due for a refresh; `None` is never.
        subject: Name of the backend, for messages.
    """

    def __init__(self, bundle: Bundle, path: Path | None, refresh_seconds: float | None, subject: str) -> None:
        self._bundle = bundle
        self._path = path
        self._refresh_seconds = refresh_seconds
        self._subject = subject
        self._lock = threading.RLock()
        self._refreshing = threading.Lock()  # For an index in memory; one on disk has a lock between processes.
        self._database: db.Database | None = None
        self._due = 0.0
        self._thread: threading.Thread | None = None
        self._as_of = time.time()
        self._notes: dict[DiagnosticCode, OKFDiagnostic] = {}

    @property
    def is_open(self) -> bool:
        """Whether there is an index to ask."""
        return self._database is not None

    def open(self) -> None:
        """Open the index, or make it, and bring it up to date; does nothing while it is open.

        Raises:
            KnowledgeConnectionError: The store cannot be used.
            KnowledgeBackendError: This SQLite has no full-text search.
            KnowledgeTimeoutError: Another process has been making the index for ten minutes.
        """
        with self._lock:
            if self._database is None:
                self._database = self._in_memory() if self._path is None else self._on_disk(self._path)
                self._fresh()

    def close(self) -> None:
        """Let go of the index; one on disk stays there. May be called twice."""
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    def ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Return what a question to one state of the index gives; a refresh that is due begins.

        Raises:
            KnowledgeStateError: It is closed.
            KnowledgeBackendError: The index failed.
        """
        self._refresh_if_due()
        database = self._opened()
        try:
            with database.reading() as connection:
                return question(connection)
        except sqlite3.Error as error:
            self._mend(database, error)
        try:
            with self._opened().reading() as connection:
                return question(connection)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def put(self, written: list[Row], gone: list[str] | None = None) -> None:
        """Put documents into the index that were just written, so that the next call sees them.

        The documents are stored already. Where the index can't take them, it is brought up to date from the store instead.
        """
        database = self._opened()
        try:
            with database.writing() as connection:
                rows.take_out(connection, gone or [])
                rows.put(connection, written, new=False, written=rows.now())
        except sqlite3.Error as error:
            self._mend(database, error)
            self.refresh()

    def refresh(self) -> None:
        """Bring the index up to date now; until that is done the old state goes on serving.

        Raises:
            KnowledgeStateError: It is closed.
            KnowledgeConnectionError: The store cannot be used; the index is as it was.
        """
        database = self._opened()
        try:
            self._update(database, wait_s=_LOCK_WAIT_S)
        except sqlite3.Error as error:
            self._mend(database, error)
        except (KnowledgeConnectionError, KnowledgeTimeoutError) as error:
            self._failed(error)  # Who asks the old state next is to know how old it is.
            raise
        self._fresh()

    def note(self, diagnostic: OKFDiagnostic) -> None:
        """Remember something that went wrong, in place of what was remembered of its kind."""
        self._notes[diagnostic.code] = diagnostic

    def forget(self, code: DiagnosticCode) -> None:
        """Forget what is remembered of a kind."""
        self._notes.pop(code, None)

    @property
    def notes(self) -> list[OKFDiagnostic]:
        """What went wrong with keeping the index, apart from what is in it."""
        return list(self._notes.values())

    # Opening.

    def _in_memory(self) -> db.Database:
        database = db.MemoryDatabase()
        try:
            refresh.update(database, self._bundle)
        except BaseException:
            database.close()
            raise
        return database

    def _on_disk(self, path: Path) -> db.Database:
        try:
            with self._held(path):
                return self._open_or_make(path)
        except (OSError, sqlite3.OperationalError) as error:
            if isinstance(error, KnowledgeError):
                raise
            reason = getattr(error, "strerror", None) or str(error)
            message = f"The index can't be kept in {str(path.parent)!r} ({reason}); it is in memory, made anew at each start."
            self.note(OKFDiagnostic("", DiagnosticCode.INDEX_UNAVAILABLE, message))
            _LOG.warning("%s: %s", self._subject, message)
            self._path = None
            return self._in_memory()

    def _open_or_make(self, path: Path) -> db.Database:
        if db.is_sound(path):
            with suppress(OSError):
                os.utime(path)  # So that it is known to be in use.
            database = db.FileDatabase(path)
            try:
                refresh.update(database, self._bundle)
                return database
            except sqlite3.DatabaseError as error:
                database.close()
                if not db.is_damage(error):
                    raise
                _LOG.warning("%s: the index is damaged (%s); it is made anew.", self._subject, type(error).__name__)
            except BaseException:
                database.close()
                raise
        db.make(path, lambda connection: refresh.fill(connection, self._bundle))
        db.prune(path.parent, _KEPT_DAYS)
        return db.FileDatabase(path)

    # Refreshing.

    def _refresh_if_due(self) -> None:
        if self._refresh_seconds is None or time.monotonic() < self._due:
            return
        with self._lock:
            thread = self._thread
            if thread is None or not thread.is_alive():
                if time.monotonic() < self._due:
                    return
                thread = self._thread = threading.Thread(
                    target=self._in_background, name=f"kb-{self._subject}-refresh", daemon=True
                )
                thread.start()
        thread.join(GRACE_S)

    def _in_background(self) -> None:
        database = self._database
        if database is None:
            return
        try:
            self._update(database, wait_s=0.0, unless_younger_than=self._refresh_seconds or 0.0)
        except sqlite3.Error as error:
            self._mended_in_background(database, error)
        except Exception as error:  # noqa: BLE001 - the old state goes on serving, whatever the store did
            self._failed(error)
        else:
            self._fresh()

    def _mended_in_background(self, database: db.Database, error: sqlite3.Error) -> None:
        try:
            self._mend(database, error)
        except Exception as second:  # noqa: BLE001 - the next call is told what is wrong by itself
            self._failed(second)
        else:
            self._fresh()

    def _update(self, database: db.Database, *, wait_s: float, unless_younger_than: float = 0.0) -> None:
        if self._path is None:
            with self._refreshing:
                refresh.update(database, self._bundle)
            return
        with db.locked(self._path, wait_s=wait_s) as held:
            if not held:
                if wait_s:
                    raise self._locked()
                return  # Another process is at it, and what it finds is seen here too.
            if isinstance(database, db.FileDatabase) and not database.is_current():
                self._replace(database, self._open_or_make(self._path))
                return
            if unless_younger_than and self._age(database) < unless_younger_than:
                return
            refresh.update(database, self._bundle)

    def _age(self, database: db.Database) -> float:
        with database.reading() as connection:
            refreshed = rows.get_meta(connection, "refreshed")
        return time.time() - refreshed if isinstance(refreshed, float) else float("inf")

    def _fresh(self) -> None:
        self._as_of = time.time()
        self._due = time.monotonic() + (self._refresh_seconds or 0.0)
        self.forget(DiagnosticCode.REFRESH_FAILED)

    def _failed(self, error: Exception) -> None:
        as_of = datetime.fromtimestamp(self._as_of, UTC)
        message = f"The store can't be read ({refresh.reason_of(error)}); what is shown is as of {as_of:%Y-%m-%d %H:%M} UTC."
        self.note(OKFDiagnostic("", DiagnosticCode.REFRESH_FAILED, message))
        _LOG.warning("%s: a refresh failed (%s); the old state goes on serving.", self._subject, type(error).__name__)
        self._due = time.monotonic() + min(_RETRY_S, self._refresh_seconds or _RETRY_S)

    # Mending.

    def _mend(self, damaged: db.Database, error: sqlite3.Error) -> None:
        """Make the index anew where it is damaged; raise what else is wrong with it."""
        if isinstance(error, sqlite3.ProgrammingError) and self._database is None:
            raise self._closed() from error
        if not db.is_damage(error) and not self._is_lost():
            raise self._broken(error) from error
        with self._lock:
            if self._database is not damaged:
                return  # Another thread was here first.
            _LOG.warning("%s: the index is damaged (%s); it is made anew.", self._subject, type(error).__name__)
            self._replace(damaged, self._made_anew(damaged))

    def _broken(self, error: sqlite3.Error) -> KnowledgeBackendError:
        return KnowledgeBackendError(f"The index of '{self._subject}' failed ({type(error).__name__}: {error}).")

    def _is_lost(self) -> bool:
        return self._path is not None and not self._path.exists()

    def _made_anew(self, damaged: db.Database) -> db.Database:
        if self._path is None:
            return self._in_memory()
        with self._held(self._path):
            if not isinstance(damaged, db.FileDatabase) or damaged.is_current():
                db.remove(self._path)
            return self._open_or_make(self._path)

    def _replace(self, old: db.Database, new: db.Database) -> None:
        with self._lock:
            if self._database is old:
                self._database = new
                old.close()
            else:  # It was closed meanwhile.
                new.close()

    def _held(self, path: Path) -> AbstractContextManager[None]:
        return db.held(path, _LOCK_WAIT_S, self._locked)

    def _locked(self) -> KnowledgeTimeoutError:
        waited = f"{_LOCK_WAIT_S:.0f} seconds"
        return KnowledgeTimeoutError(f"Another process has been making the index of '{self._subject}' for {waited}.")

    def _opened(self) -> db.Database:
        database = self._database
        if database is None:
            raise self._closed()
        return database

    def _closed(self) -> KnowledgeStateError:
        return KnowledgeStateError(f"'{self._subject}' is closed; call connect() to open it again.")
