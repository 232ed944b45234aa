"""Files that are read whole, within bounds, and never waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from agentkernel_kb.errors import KnowledgeBackendError

MAX_BYTES = 50_000_000
"""Most bytes of a file."""

_MOST_PATH_CHARS = 4_096
# A pipe is opened without waiting for somebody to write to it.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def file_at(text: str) -> Path | None:
    """Return the file that a text names; `None` where it is a text and names none."""
    if not text or len(text) > _MOST_PATH_CHARS or "\n" in text or "\0" in text:
        return None
    try:
        path = Path(text)
        return path if path.is_file() else None
    except (OSError, ValueError):
        return None


def read_file(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file.

    Raises:
        FileNotFoundError: There is none.
        KnowledgeBackendError: It is no plain file, has too many bytes, or may not be read.
    """
    name = os.fspath(path)
    try:
        with os.fdopen(os.open(name, _FLAGS), "rb") as stream:
            info = os.fstat(stream.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise KnowledgeBackendError(f"{shown(name)} is no file, but a folder, a device, a pipe or a socket.")
            check_size(name, info.st_size, max_bytes)
            content = stream.read(max_bytes + 1)  # It may have grown since.
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "No such file", name) from None
    except OSError as error:
        raise KnowledgeBackendError(f"{shown(name)} cannot be read: {error.strerror}.") from error
    check_size(name, len(content), max_bytes)
    return content


def check_size(name: str, size: int, max_bytes: int) -> None:
    """Refuse a file that is too large to be read whole.

    Raises:
        KnowledgeBackendError: It is.
    """
    if size > max_bytes:
        raise KnowledgeBackendError(
            f"{shown(name)} has {size:,} bytes or more; the limit is {max_bytes:,} (max_bytes). Raise it, or split the file."
        )


def shown(name: str) -> str:
    """Return a name for a message: on one line, quoted, shortened."""
    short = name if len(name) <= 200 else f"{name[:200]}…"
    return ascii(short) if any("\ud800" <= character <= "\udfff" for character in short) else repr(short)
