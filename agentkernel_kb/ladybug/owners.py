"""Who has which database file open: one that writes, or any number that read.

The engine does not see to it by itself. It lets one process open a file twice for writing, which destroys it. A reader takes no
lock at all and may crash when a writer of another process moves pages under it (LadybugDB/ladybug#666, #1007; this module can
go once those are closed and released). So a reader holds a shared lock on the file, which keeps the engine's writers out, and
each process keeps a list.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from agentkernel_kb.errors import KnowledgeConnectionError

try:
    import fcntl
except ImportError:  # Windows, where an open file is locked against others anyway.
    fcntl = None

_LOCK = threading.Lock()


@dataclass
class _Owner:
    """The open handles of this process on one file."""

    writer: str = ""
    readers: int = 0
    descriptor: int | None = None


_OWNERS: dict[str, _Owner] = {}


def claim(path: Path, name: str, *, read_only: bool) -> None:
    """Take the file at `path` for a backend called `name`, before the engine opens it.

    Raises:
        KnowledgeConnectionError: Somebody else has it, in a way that excludes this one.
    """
    with _LOCK:
        owner = _OWNERS.get(_key(path), _Owner())
        if owner.writer or (owner.readers and not read_only):
            holder = f"the backend '{owner.writer}'" if owner.writer else "a read-only backend"
            raise KnowledgeConnectionError(
                f"The graph {path} is already open in this process by {holder}. Share that backend, or close it first."
            )
        if read_only:
            if not owner.readers:
                owner.descriptor = _open_shared(path)
            owner.readers += 1
        else:
            owner.writer = name
        _OWNERS[_key(path)] = owner


def confirm(path: Path) -> None:
    """Take the shared lock of this process's readers again, where it has any.

    The operating system drops all locks of a process on a file when the process closes any handle of it.
    """
    with _LOCK:
        owner = _OWNERS.get(_key(path))
        if owner is not None and owner.descriptor is not None:
            _lock_shared(owner.descriptor, path)


def release(path: Path, *, read_only: bool) -> None:
    """Give the file back, after the engine has closed it."""
    with _LOCK:
        owner = _OWNERS.get(_key(path))
        if owner is None:
            return
        if read_only:
            owner.readers -= 1
        else:
            owner.writer = ""
        if not owner.readers and not owner.writer:
            del _OWNERS[_key(path)]
            if owner.descriptor is not None:
                os.close(owner.descriptor)
        elif owner.descriptor is not None:
            with contextlib.suppress(KnowledgeConnectionError):
                _lock_shared(owner.descriptor, path)


def _key(path: Path) -> str:
    return os.path.realpath(path)


def _open_shared(path: Path) -> int | None:
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _lock_shared(descriptor, path)
    except KnowledgeConnectionError:
        os.close(descriptor)
        raise
    return descriptor


def _lock_shared(descriptor: int, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        raise KnowledgeConnectionError(
            f"The graph {path} is open for writing in another process. Close it there, or ask that process."
        ) from error
