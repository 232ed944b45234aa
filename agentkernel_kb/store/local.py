"""LocalDocumentStore: the documents of a folder."""

from __future__ import annotations

import builtins
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from agentkernel_kb.errors import AKConfigError, KnowledgeCapabilityError, KnowledgePathError
from agentkernel_kb.store import writing
from agentkernel_kb.store.base import DocumentStat, DocumentStore, OnSkip, check_conditions, check_version
from agentkernel_kb.store.paths import shown
from agentkernel_kb.store.places import Place, check_platform, failures, missing, place_of
from agentkernel_kb.store.walking import stat_of, walk

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CHUNK_BYTES = 1 << 20
_MOST_SWEPT = 10_000


class LocalDocumentStore(DocumentStore):
    """The documents of a folder.

    Symbolic links that stay in the folder are followed, all others refused, also where one is swapped while it is used. A link
    that a write meets stays a link, and its target is written. Names that begin with a dot are hidden: neither listed nor
    reached. Only plain files are documents. A document whose name differs from the path only in its Unicode form is found.

    A write is whole or not there at all, and has reached the disk when it returns. Conditions hold between processes.

    Args:
        root: The folder, which has to be there; it may be a link itself.
        writable: Whether it can be written; `None` asks the file system.
        lock_timeout_s: Seconds for which a write waits for other writers of the same folder.

    Attributes:
        root: Absolute path of the folder.

    Raises:
        AKConfigError: `root` is no folder, or this system is not POSIX.
    """

    def __init__(self, root: str | os.PathLike[str], writable: bool | None = None, *, lock_timeout_s: float = 10.0) -> None:
        check_platform()
        self.root = Path(root).absolute()
        if not self.root.is_dir():
            found = "no folder" if self.root.exists() else "not there"
            raise AKConfigError(f"The root of a store has to be a folder; {shown(str(self.root))} is {found}.")
        self.identity = f"folder {self.root.resolve()}"
        self._root = str(self.root)
        self._writable = _may_write(self._root) if writable is None else bool(writable)
        self._lock_timeout_s = lock_timeout_s
        self._swept: set[tuple[int, int]] = set()

    def __repr__(self) -> str:
        return f"LocalDocumentStore({self._root!r}, writable={self._writable})"

    @property
    def writable(self) -> bool:
        """As it was declared, or as the file system said when the store was made."""
        return self._writable

    def read_bytes(self, path: str) -> bytes:
        """Return a document whole.

        Raises:
            FileNotFoundError: There is none at this path.
            KnowledgePathError: The path leaves the folder, or names what is no plain file.
            KnowledgeBackendError: It may not be read.
        """
        return self._read(path, None)

    def read_prefix_bytes(self, path: str, max_bytes: int) -> bytes:
        """Return the first `max_bytes` of a document; 0 or less gives nothing and reads nothing."""
        if max_bytes <= 0:
            self.document_path(path)
            return b""
        return self._read(path, max_bytes)

    def exists(self, path: str) -> bool:
        """Tell whether there is a document at this path."""
        try:
            with place_of(self._root, self.document_path(path)) as place:
                return place.info is not None and stat.S_ISREG(place.info.st_mode)
        except FileNotFoundError:
            return False

    def stat(self, path: str) -> DocumentStat:
        """Return size, time and version of a document; its path as the disk spells it.

        Raises:
            FileNotFoundError: There is none at this path.
            KnowledgePathError: The path leaves the folder, or names what is no plain file.
        """
        with place_of(self._root, self.document_path(path)) as place:
            return stat_of(place.path, _document(place))

    def list(self, prefix: str = "") -> builtins.list[str]:
        """Return the paths of all documents at or beneath `prefix`, sorted as whole texts."""
        return [found.path for found in self.scan(prefix)]

    def scan(self, prefix: str = "", *, on_skip: OnSkip | None = None) -> Iterator[DocumentStat]:
        """Yield what the disk knows of all documents at or beneath `prefix`, in the order of `list`, while it is walked.

        Raises:
            KnowledgePathError: The prefix leaves the folder.
            KnowledgeConnectionError: The root is gone, or may not be read.
        """
        normal = self.normalise_relative(prefix)
        if not normal:
            return walk(self._root, "", on_skip)
        try:
            with place_of(self._root, normal) as place:
                mode = place.info.st_mode if place.info else 0
                if place.info and stat.S_ISREG(mode):
                    return iter([stat_of(place.path, place.info)])
                return walk(self._root, place.path, on_skip) if stat.S_ISDIR(mode) else iter(())
        except FileNotFoundError:
            return iter(())

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None, if_missing: bool = False) -> DocumentStat:
        """Store a document, whole or not at all; it has reached the disk when this returns.

        Raises:
            DocumentChangedError: A condition did not hold; nothing was changed.
            KnowledgeCapabilityError: The store is not writable.
            KnowledgePathError: The path leaves the folder, or names what is no plain file.
            KnowledgeTimeoutError: Other writers hold the folder for too long.
            KnowledgeBackendError: The system refused, such as a full disk; nothing was changed.
        """
        normal = self._written_path(path, "write")
        check_conditions(if_version, if_missing=if_missing)
        if if_version is not None:  # Before folders are made for what is then not written.
            check_version(normal, self._version(normal), if_version)

        def check(now: os.stat_result | None) -> None:
            check_version(normal, stat_of(normal, now).version if now else None, if_version, if_missing=if_missing)

        conditional = if_missing or if_version is not None
        with place_of(self._root, normal, create=True) as place, failures(normal, "be written"):
            self._sweep(place.folder)
            info = writing.replace(place, data, check, conditional=conditional, lock_timeout_s=self._lock_timeout_s)
            return stat_of(place.path, info)

    def delete(self, path: str, *, if_version: str | None = None) -> None:
        """Remove a document. Where a link stands for it, the link is removed and its target stays.

        Raises:
            FileNotFoundError: There is none at this path.
            DocumentChangedError: It has another version.
            KnowledgeCapabilityError: The store is not writable.
            KnowledgePathError: The path leaves the folder, or names what is no plain file.
            KnowledgeTimeoutError: Other writers hold the folder for too long.
            KnowledgeBackendError: The system refused.
        """
        normal = self._written_path(path, "delete")

        def check(_: os.stat_result | None) -> None:
            check_version(normal, self.stat(normal).version, if_version)

        self.stat(normal)
        with place_of(self._root, normal, follow=False) as place, failures(normal, "be removed"):
            writing.remove(place, check, conditional=if_version is not None, lock_timeout_s=self._lock_timeout_s)

    def _read(self, path: str, max_bytes: int | None) -> bytes:
        normal = self.document_path(path)
        with place_of(self._root, normal) as place:
            _document(place)  # A pipe or a device is not even opened.
            with failures(normal, "be read"):
                descriptor = os.open(place.name, _READ, dir_fd=place.folder)
                try:
                    size = _document(place, os.fstat(descriptor)).st_size
                    return _bytes_of(descriptor, size, max_bytes)
                finally:
                    os.close(descriptor)

    def _written_path(self, path: str, operation: str) -> str:
        normal = self.document_path(path)
        if not self._writable:
            raise KnowledgeCapabilityError(repr(self), operation)
        return normal

    def _version(self, path: str) -> str | None:
        try:
            return self.stat(path).version
        except FileNotFoundError:
            return None

    def _sweep(self, folder: int) -> None:
        """Clean a folder once of what killed writers left in it."""
        info = os.fstat(folder)
        if (info.st_dev, info.st_ino) in self._swept:
            return
        if len(self._swept) >= _MOST_SWEPT:
            self._swept.clear()
        self._swept.add((info.st_dev, info.st_ino))
        writing.sweep(folder)


def _may_write(root: str) -> bool:
    return os.access(root, os.R_OK | os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)


def _document(place: Place, info: os.stat_result | None = None) -> os.stat_result:
    """Return what is at a place, if that is a document.

    Raises:
        FileNotFoundError: Nothing is there, or a folder.
        KnowledgePathError: It is something else, such as a device.
    """
    found = info or place.info
    if found is None or stat.S_ISDIR(found.st_mode):
        raise missing(place.path)
    if not stat.S_ISREG(found.st_mode):
        raise KnowledgePathError(f"The path {shown(place.path)} names no document, but a device, a pipe or a socket.")
    return found


def _bytes_of(descriptor: int, size: int, max_bytes: int | None) -> bytes:
    """Return what an open file holds; most have the size that the system says, and are read at once."""
    chunks: list[bytes] = []
    left = max_bytes
    wanted = min(size + 1, _CHUNK_BYTES)
    while left is None or left > 0:
        chunk = os.read(descriptor, wanted if left is None else min(left, wanted))
        chunks.append(chunk)
        if not chunk or (len(chunks) == 1 and len(chunk) == size < wanted):
            break
        wanted = _CHUNK_BYTES
        left = None if left is None else left - len(chunk)
    return b"".join(chunks)
