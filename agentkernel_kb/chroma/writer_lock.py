"""One writing process per folder: two that write to one embedded Chroma would corrupt its index."""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeDependencyError, KnowledgeStateError

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK_FILE = "agentkernel_kb.writer.lock"
OWNER_FILE = "agentkernel_kb.writer.json"


@dataclass
class _Held:
    """The lock of one folder while this process holds it, and how many users it has here."""

    lock: BaseFileLock
    users: int = 0
    writing: threading.RLock = field(default_factory=threading.RLock)


_HELD: dict[Path, _Held] = {}
_GUARD = threading.Lock()


class WriterLock:
    """One user's share in the lock of a folder. All users in one process share the lock; it is free when the last lets go.

    Args:
        folder: The folder of the embedded Chroma; it exists.
        subject: Name of the backend, for messages.
    """

    def __init__(self, folder: Path, subject: str) -> None:
        self.folder = folder
        self._subject = subject
        self._held: _Held | None = None

    def acquire(self) -> threading.RLock:
        """Become a writer of this folder, and stay it until `release`.

        Returns:
            The lock that serialises writers within this process.

        Raises:
            KnowledgeStateError: Another process writes to this folder; the message names it.
            KnowledgeBackendError: The lock file cannot be opened.
        """
        with _GUARD:
            if self._held is None:
                held = _HELD.get(self.folder)
                if held is None:
                    held = _HELD[self.folder] = _Held(self._lock_folder())
                held.users += 1
                self._held = held
            return self._held.writing

    def settled(self) -> AbstractContextManager[object]:
        """Wait until no thread of this process writes, and keep it so; does not wait where this user is no writer."""
        held = self._held
        return nullcontext() if held is None else held.writing

    def release(self) -> None:
        """Let go. May be called twice."""
        with _GUARD:
            held, self._held = self._held, None
            if held is None:
                return
            held.users -= 1
            if held.users == 0:
                _HELD.pop(self.folder, None)
                with suppress(OSError):
                    (self.folder / OWNER_FILE).unlink()
                held.lock.release()

    def _lock_folder(self) -> BaseFileLock:
        lock = new_file_lock(self.folder / LOCK_FILE, self._subject)
        from filelock import Timeout

        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise KnowledgeStateError(
                f"'{self._subject}' can't write: {self._owner()} is writing to the Chroma folder {str(self.folder)!r}. "
                "Close it there, or run a Chroma server and use host= in both."
            ) from error
        except OSError as error:
            raise KnowledgeBackendError(
                f"'{self._subject}' can't lock the Chroma folder {str(self.folder)!r} for writing: {error.strerror}."
            ) from error
        self._sign()
        return lock

    def _sign(self) -> None:
        with suppress(OSError):  # Only for the message that others get; the lock itself holds without it.
            owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
            (self.folder / OWNER_FILE).write_text(owner, encoding="utf-8")

    def _owner(self) -> str:
        try:
            raw: object = json.loads((self.folder / OWNER_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raw = None
        if not isinstance(raw, dict):
            return "another process"
        owner = cast("dict[str, Any]", raw)
        return f"process {owner.get('pid')} on {owner.get('host')}"


def new_file_lock(path: Path, subject: str) -> BaseFileLock:
    """Return a lock between processes; not bound to a thread, because one may take it and another one let go.

    Raises:
        KnowledgeDependencyError: `filelock` is not installed.
    """
    try:
        from filelock import FileLock
    except ImportError as error:
        raise KnowledgeDependencyError("chroma", f"The Chroma folder of '{subject}'") from error
    return FileLock(path, thread_local=False)
