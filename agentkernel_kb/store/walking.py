"""The walk over a folder, in the order of whole paths, without recursion and with few open descriptors however deep it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeConnectionError, KnowledgePathError
from agentkernel_kb.store.base import DocumentStat, OnSkip
from agentkernel_kb.store.paths import MAX_PATH_BYTES, is_unicode, segment_fault
from agentkernel_kb.store.places import failures, open_child, open_folder, open_root, place_of

_MAX_OPEN = 64
_ALL_MAY_READ = 0o444
_EFFECTIVE_IDS = os.access in os.supports_effective_ids


def stat_of(path: str, info: os.stat_result) -> DocumentStat:
    """Return what the system says of a file; its version changes with the bytes, and with the file that holds them."""
    version = f"{info.st_mtime_ns:x}-{info.st_ctime_ns:x}-{info.st_size:x}-{info.st_ino:x}"
    return DocumentStat(path, info.st_size, info.st_mtime, version)


def walk(root: str, prefix: str, on_skip: OnSkip | None, *, leave_out: Collection[str] = ()) -> Iterator[DocumentStat]:
    """Yield the documents beneath a folder, sorted by path; hidden names, devices, loops and ways out are passed over.

    Args:
        root: Absolute path of the root.
        prefix: Normal path of the folder.
        on_skip: Is told what is passed over and why, hidden names and those of `leave_out` aside.
        leave_out: Names of folders that are not entered, wherever they stand.

    Raises:
        FileNotFoundError: There is no such folder.
        KnowledgePathError: The way to it leaves the root.
        KnowledgeConnectionError: The root cannot be opened.
        KnowledgeBackendError: The folder cannot be read.
    """
    yield from _Walk(root, on_skip or _ignore, leave_out).documents(prefix)


def _ignore(path: str, reason: str) -> None:
    pass


@dataclass(slots=True)
class _Frame:
    """A folder whose entries are being walked.

    Attributes:
        path: Its path, with a separator at the end unless it is the root.
        folder: Its descriptor, -1 where it is closed for now.
        identity: Which folder it is, whatever it is called.
        parent: The folder that it was entered from.
        is_beneath_link: The way to it leads through a link.
        entries: What is left of it, the next one last.
    """

    path: str
    folder: int
    identity: tuple[int, int]
    parent: _Frame | None
    is_beneath_link: bool
    entries: list[_Entry] = field(default_factory=list["_Entry"])

    def has_ancestor(self, identity: tuple[int, int]) -> bool:
        frame: _Frame | None = self
        while frame:
            if frame.identity == identity:
                return True
            frame = frame.parent
        return False


@dataclass(slots=True, order=True)
class _Entry:
    """A name in a folder.

    Attributes:
        key: The name, with a separator at the end for a folder: sorted by it, whole paths come in order.
        name: The name.
        is_folder: It is a folder, or a link to one.
        is_link: It is a link.
    """

    key: str
    name: str
    is_folder: bool
    is_link: bool


class _Walk:
    def __init__(self, root: str, on_skip: OnSkip, leave_out: Collection[str]) -> None:
        self._root, self._on_skip, self._leave_out = root, on_skip, leave_out
        self._stack: list[_Frame] = []

    def documents(self, prefix: str) -> Iterator[DocumentStat]:
        self._push(f"{prefix}/" if prefix else "", open_folder(self._root, prefix), None, is_beneath_link=False)
        try:
            while self._stack:
                frame = self._stack[-1]
                if not frame.entries:
                    self._pop()
                    continue
                entry = frame.entries.pop()
                if entry.is_folder:
                    self._enter(frame, entry)
                elif found := self._document(frame, entry):
                    yield found
            os.close(open_root(self._root))  # A folder that was removed meanwhile must not look like one with less in it.
        finally:
            while self._stack:
                self._pop()

    def _push(self, path: str, folder: int, parent: _Frame | None, *, is_beneath_link: bool) -> None:
        try:
            info = os.fstat(folder)
            frame = _Frame(path, folder, (info.st_dev, info.st_ino), parent, is_beneath_link)
            with failures(path, "be listed"):
                frame.entries = self._entries(frame)
        except BaseException:
            os.close(folder)
            raise
        self._stack.append(frame)
        if len(self._stack) > _MAX_OPEN:  # The way back to it is walked again where it is still needed then.
            _close(self._stack[-_MAX_OPEN - 1])

    def _pop(self) -> None:
        _close(self._stack.pop())

    def _entries(self, frame: _Frame) -> list[_Entry]:
        with os.scandir(frame.folder) as listed:
            entries = [self._entry(frame, found) for found in listed]
        return sorted((entry for entry in entries if entry), reverse=True)

    def _entry(self, frame: _Frame, found: os.DirEntry[str]) -> _Entry | None:
        name = found.name
        if name.startswith(".") or (name in self._leave_out and found.is_dir()):
            return None
        if fault := segment_fault(name) or _too_long(frame.path, name):
            return self._skip(frame, name, fault)
        if found.is_symlink():
            return self._link(frame, name)
        if found.is_dir(follow_symlinks=False):
            return _Entry(f"{name}/", name, is_folder=True, is_link=False)
        if found.is_file(follow_symlinks=False):
            return _Entry(name, name, is_folder=False, is_link=False)
        return self._skip(frame, name, "is no document, but a device, a pipe or a socket")

    def _link(self, frame: _Frame, name: str) -> _Entry | None:
        try:
            with place_of(self._root, frame.path + name) as place:
                mode = place.info.st_mode if place.info else 0
        except FileNotFoundError:
            mode = 0
        except KnowledgeConnectionError:
            raise
        except (KnowledgePathError, KnowledgeBackendError) as error:
            return self._skip(frame, name, f"is a symbolic link that is not followed: {error}")
        if stat.S_ISREG(mode):
            return _Entry(name, name, is_folder=False, is_link=True)
        if not stat.S_ISDIR(mode):
            return self._skip(frame, name, "is a symbolic link to nothing that is a document, or a folder beneath the root")
        if frame.is_beneath_link:  # A few links to one another would otherwise stand for a tree without an end.
            return self._skip(frame, name, "is a symbolic link to a folder beneath another one")
        return _Entry(f"{name}/", name, is_folder=True, is_link=True)

    def _enter(self, frame: _Frame, entry: _Entry) -> None:
        path = frame.path + entry.name
        try:
            folder = open_folder(self._root, path) if entry.is_link else self._open_child(frame, entry.name)
        except FileNotFoundError:  # It went away since it was listed.
            return
        except KnowledgeConnectionError:
            raise
        except (KnowledgePathError, KnowledgeBackendError) as error:
            self._skip(frame, entry.name, f"cannot be entered: {error}")
            return
        info = os.fstat(folder)
        if entry.is_link and frame.has_ancestor((info.st_dev, info.st_ino)):
            os.close(folder)
            self._skip(frame, entry.name, "is a symbolic link to a folder that it is in")
            return
        try:
            self._push(f"{path}/", folder, frame, is_beneath_link=frame.is_beneath_link or entry.is_link)
        except (FileNotFoundError, KnowledgeBackendError) as error:
            self._skip(frame, entry.name, f"cannot be listed: {error}")

    def _open_child(self, frame: _Frame, name: str) -> int:
        self._reopen(frame)
        with failures(frame.path + name):
            return open_child(frame.folder, name)

    def _reopen(self, frame: _Frame) -> None:
        if frame.folder < 0:
            frame.folder = open_folder(self._root, frame.path.rstrip("/"))

    def _document(self, frame: _Frame, entry: _Entry) -> DocumentStat | None:
        path = frame.path + entry.name
        try:
            if entry.is_link:
                with place_of(self._root, path) as place:
                    return self._readable(frame, entry, place.folder, place.name)
            self._reopen(frame)
            return self._readable(frame, entry, frame.folder, entry.name)
        except FileNotFoundError:  # It went away since it was listed.
            return None
        except KnowledgeConnectionError:
            raise
        except (OSError, KnowledgePathError, KnowledgeBackendError) as error:
            return self._skip(frame, entry.name, f"cannot be reached: {error}")

    def _readable(self, frame: _Frame, entry: _Entry, folder: int, name: str) -> DocumentStat | None:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(info.st_mode):  # It was replaced since it was listed.
            return None
        may_read = info.st_mode & _ALL_MAY_READ == _ALL_MAY_READ or os.access(
            name, os.R_OK, dir_fd=folder, effective_ids=_EFFECTIVE_IDS
        )
        return stat_of(frame.path + entry.name, info) if may_read else self._skip(frame, entry.name, "may not be read")

    def _skip(self, frame: _Frame, name: str, reason: str) -> None:
        self._on_skip(os.fsencode(frame.path + name).decode("utf-8", "backslashreplace"), reason)


def _close(frame: _Frame) -> None:
    if frame.folder >= 0:
        with suppress(OSError):
            os.close(frame.folder)
        frame.folder = -1


def _too_long(folder: str, name: str) -> str:
    # A character has at most four bytes.
    length = len(folder) + len(name)
    if 4 * length <= MAX_PATH_BYTES or (is_unicode(name) and len((folder + name).encode()) <= MAX_PATH_BYTES):
        return ""
    return f"has a path of more than {MAX_PATH_BYTES} bytes"
