"""Writes to a folder that are whole or not there at all, also where the machine stops in the middle of one.

The bytes go to a hidden file beside the document and reach the disk before that file takes the document's name. Writers of all
processes exclude each other by a lock on the folder itself (`flock`), which the system frees when its holder ends, and hold it
only from the check of a condition to the change of the name. Nobody holds two locks, so nobody waits in a circle.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgePathError, KnowledgeTimeoutError
from agentkernel_kb.store.paths import shown
from agentkernel_kb.store.places import Place, lstat, sync_folder

Check = Callable[[os.stat_result | None], None]
"""Looks at what is there while all other writers wait, and raises where the change is not to be made."""

_TEMPORARY = re.compile(r"\.kb-[0-9a-f]{16}\.tmp")
_LEFT_BEHIND_S = 60.0
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF, errno.ENOSYS, errno.EINVAL)


def replace(place: Place, data: bytes, check: Check, *, conditional: bool, lock_timeout_s: float) -> os.stat_result:
    """Put a document in its place and return what it then is.

    Args:
        place: Where.
        data: Its bytes.
        check: Decides, under the lock.
        conditional: A lock is indispensable.
        lock_timeout_s: Seconds to wait for other writers.

    Raises:
        KnowledgeTimeoutError: Other writers hold the folder for longer.
        KnowledgePathError: What is there is no document.
        KnowledgeBackendError: It is read-only, or the folder cannot be locked though that is indispensable.
        OSError: The system refused.
    """
    _check_replaceable(place, place.info)
    temporary = f".kb-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(
        temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=place.folder
    )
    try:
        _fill(descriptor, data, place.info)
        with locked(place.folder, needed=conditional, timeout_s=lock_timeout_s):
            now = lstat(place.folder, place.name)
            _check_replaceable(place, now)
            check(now)
            os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            info = os.fstat(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=place.folder)
        raise
    finally:
        os.close(descriptor)
    sync_folder(place.folder)
    return info


def remove(place: Place, check: Check, *, conditional: bool, lock_timeout_s: float) -> None:
    """Take a document, or the link that stands for it, out of its folder.

    Raises:
        KnowledgeTimeoutError: Other writers hold the folder for too long.
        KnowledgeBackendError: The folder cannot be locked though that is indispensable.
        OSError: The system refused.
    """
    with locked(place.folder, needed=conditional, timeout_s=lock_timeout_s):
        check(lstat(place.folder, place.name))
        os.unlink(place.name, dir_fd=place.folder)
    sync_folder(place.folder)


@contextmanager
def locked(folder: int, *, needed: bool, timeout_s: float) -> Generator[None]:
    """Hold the lock of an open folder against all other writers, those of this process included.

    Args:
        folder: Its descriptor, which nobody else may hold.
        needed: Raise where the file system has no locks; without it, go on without one.
        timeout_s: Seconds to wait.

    Raises:
        KnowledgeTimeoutError: It is not free in time.
        KnowledgeBackendError: The file system has no locks.
    """
    deadline, pause = time.monotonic() + timeout_s, 0.0005
    while not _taken(folder, needed=needed):
        if time.monotonic() >= deadline:
            raise KnowledgeTimeoutError(f"Another writer holds the folder for more than {timeout_s:g} s.")
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    try:
        yield
    finally:
        with suppress(OSError):
            _flock(folder, "LOCK_UN")


def sweep(folder: int) -> None:
    """Remove what writers that were killed have left in an open folder; what a living writer fills is locked by it."""
    for name in os.listdir(folder):
        if _TEMPORARY.fullmatch(name):
            with suppress(OSError):
                _sweep_one(folder, name)


def _fill(descriptor: int, data: bytes, replaced: os.stat_result | None) -> None:
    with suppress(OSError):  # Only the sweep asks for it, and takes nothing that is young.
        _flock(descriptor, "LOCK_EX", "LOCK_NB")
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    if replaced is not None:
        os.fchmod(descriptor, stat.S_IMODE(replaced.st_mode) & 0o777)
    os.fsync(descriptor)


def _check_replaceable(place: Place, info: os.stat_result | None) -> None:
    if info is None:
        return
    if not stat.S_ISREG(info.st_mode):
        raise KnowledgePathError(f"The path {shown(place.path)} names something that is no document.")
    if not os.access(place.name, os.W_OK, dir_fd=place.folder, effective_ids=os.access in os.supports_effective_ids):
        raise KnowledgeBackendError(f"The document {shown(place.path)} is read-only.")


def _flock(descriptor: int, *operations: str) -> None:
    import fcntl  # There is none on Windows, where this module must not stop an import of the package.

    fcntl.flock(descriptor, sum(getattr(fcntl, operation) for operation in operations))


def _taken(folder: int, *, needed: bool) -> bool:
    try:
        _flock(folder, "LOCK_EX", "LOCK_NB")
    except BlockingIOError:
        return False
    except OSError as error:
        if needed or error.errno not in _NO_LOCKS:
            raise KnowledgeBackendError(
                f"The folder cannot be locked: {error.strerror}; conditional writes need it."
            ) from error
    return True


def _sweep_one(folder: int, name: str) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        if time.time() - os.fstat(descriptor).st_mtime > _LEFT_BEHIND_S:
            _flock(descriptor, "LOCK_EX", "LOCK_NB")
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(descriptor)
