"""One folder, several processes: when an index may be read from disk, and when it has to be read anew.

An embedded Chroma reads a collection's index from disk at the first search and keeps it. A process that reads while another one
writes the files can crash, and one that has read does not see what is written later. So reading from disk and writing exclude
each other through a file lock, and every write leaves a stamp by which the others see that they have to read again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentkernel_kb.chroma.writer_lock import new_file_lock
from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeTimeoutError

if TYPE_CHECKING:
    from filelock import BaseFileLock

FILES_LOCK = "agentkernel_kb.files.lock"
STAMP_FILE = "agentkernel_kb.stamp"

WAIT_SECONDS = 30.0
"""How long to wait for another process to finish a batch or to read an index."""

_POLL_SECONDS = 0.01


class SharedFolder:
    """What this process knows of a folder: which collections it has read, and as of which write.

    Args:
        path: The folder; it exists.
        subject: Name of the backend that opened it, for messages.
        is_read: Chroma may have read from it already, nobody knows as of which write.
    """

    def __init__(self, path: Path, subject: str, *, is_read: bool = False) -> None:
        self._path = path
        self._subject = subject
        self._turn = threading.Condition()
        self._searching = 0
        self._reading = False
        self._read: set[str] = set()
        self._seen = 0 if is_read else self._stamp()
        self._alone = threading.RLock()
        self._files: BaseFileLock | None = None

    @contextmanager
    def searching(self, collection: str, reload: Callable[[], object] | None) -> Generator[None]:
        """Search within; alone, and with the files to itself, where that reads the index from disk.

        Args:
            collection: Id of the collection.
            reload: Makes Chroma forget what it has read, `None` where nothing can.

        Raises:
            KnowledgeTimeoutError: Another process has the files for longer than 30 seconds.
        """
        if self._may_search(collection):
            try:
                yield
            finally:
                self._leave(searching=True)
            return
        try:
            with self._alone_with_files():
                self._forget_if_changed(reload)
                yield
                self._read.add(collection)
        finally:
            self._leave(searching=False)

    @contextmanager
    def storing(self, reload: Callable[[], object] | None) -> Generator[None]:
        """Write a batch within, having the files to this process. The caller is the only writer.

        Raises:
            KnowledgeTimeoutError: Another process reads from the files for longer than 30 seconds.
        """
        with self._alone_with_files():
            self._forget_if_changed(reload)  # An index from before another's writes would overwrite them.
            try:
                yield
            finally:
                self._leave_stamp()

    def _may_search(self, collection: str) -> bool:
        """Return whether the index is at hand and current; where it is not, wait until nobody searches."""
        with self._turn:
            self._turn.wait_for(lambda: not self._reading)
            if collection in self._read and self._stamp() == self._seen:
                self._searching += 1
                return True
            self._reading = True
            self._turn.wait_for(lambda: not self._searching)
            return False

    def _leave(self, *, searching: bool) -> None:
        with self._turn:
            if searching:
                self._searching -= 1
            else:
                self._reading = False
            self._turn.notify_all()

    def _forget_if_changed(self, reload: Callable[[], object] | None) -> None:
        stamp = self._stamp()
        if stamp != self._seen:
            if reload is not None:
                reload()
            self._read.clear()
            self._seen = stamp

    def _stamp(self) -> int:
        try:
            return (self._path / STAMP_FILE).stat().st_mtime_ns
        except OSError:
            return 0

    def _leave_stamp(self) -> None:
        # Under the same lock as the comparison, so that no search of this process takes its own write for another's.
        with self._turn, suppress(OSError):  # Without a stamp the others go on with what they have read.
            stamp = max(time.time_ns(), self._seen + 1)  # By itself the system would put two quick writes at one time.
            (self._path / STAMP_FILE).touch()
            os.utime(self._path / STAMP_FILE, ns=(stamp, stamp))
            self._seen = self._stamp()

    @contextmanager
    def _alone_with_files(self) -> Generator[None]:
        with self._alone:
            files = self._lock_files()
            try:
                yield
            finally:
                files.release()

    def _lock_files(self) -> BaseFileLock:
        if self._files is None:
            self._files = new_file_lock(self._path / FILES_LOCK, self._subject)
        from filelock import Timeout

        try:
            self._files.acquire(timeout=WAIT_SECONDS, poll_interval=_POLL_SECONDS)
        except Timeout as error:
            raise KnowledgeTimeoutError(
                f"'{self._subject}': another process has had the files in {str(self._path)!r} for "
                f"{WAIT_SECONDS:g} seconds; try again."
            ) from error
        except OSError as error:
            raise KnowledgeBackendError(
                f"'{self._subject}' can't lock the files in {str(self._path)!r}: {error.strerror}."
            ) from error
        return self._files
