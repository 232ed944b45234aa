"""Where a document of a folder is: the way from the root to it, opened step by step so that no symbolic link leads out.

Each step opens one name in a folder that is open already and follows no link. A link is read, and where its target lies in the
root, the way begins anew at the root with the names of that target. What a link says is therefore only a hint: even where it
is swapped between two steps, no step leaves the root.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeBackendError,
    KnowledgeConnectionError,
    KnowledgeError,
    KnowledgePathError,
)
from agentkernel_kb.store.paths import is_unicode, shown

MAX_LINKS = 40
"""Most links on one way, as the kernel has it."""

_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | os.O_RDONLY
_NO_FOLDER = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
_NO_SYNC = (errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF)


@dataclass(frozen=True, slots=True)
class Place:
    """A name in an open folder.

    Attributes:
        folder: Descriptor of the folder.
        name: The name, as the disk spells it.
        path: The path that was asked for, as the disk spells it.
        info: What is there, links not followed; `None` for nothing.
    """

    folder: int
    name: str
    path: str
    info: os.stat_result | None


def check_platform() -> None:
    """Refuse a system on which a way cannot be walked step by step.

    Raises:
        AKConfigError: It has no `openat`, as Windows.
    """
    if not {os.open, os.stat, os.mkdir, os.rename, os.unlink, os.readlink} <= os.supports_dir_fd:
        raise AKConfigError("LocalDocumentStore needs a POSIX system, such as Linux or macOS.")


@contextmanager
def place_of(root: str, path: str, *, create: bool = False, follow: bool = True) -> Generator[Place]:
    """Open the folder that holds the document at a normal path.

    Args:
        root: Absolute path of the root.
        path: A normal path that is not the root.
        create: Make folders that are missing.
        follow: Go on where the document itself is a link.

    Raises:
        FileNotFoundError: A folder on the way is missing.
        KnowledgePathError: The way leaves the root, or leads through what is no folder though one is to be made.
        KnowledgeConnectionError: The root cannot be opened.
        KnowledgeBackendError: A folder cannot be opened.
    """
    with failures(path):
        place = _Way(root, path, create=create, follow=follow).walk()
    try:
        yield place
    finally:
        os.close(place.folder)


def open_folder(root: str, path: str) -> int:
    """Return a descriptor of the folder at a normal path, `""` being the root.

    Raises:
        FileNotFoundError: There is no folder there.
        KnowledgePathError: The way leaves the root.
        KnowledgeConnectionError: The root cannot be opened.
        KnowledgeBackendError: A folder cannot be opened.
    """
    if not path:
        return open_root(root)
    with place_of(root, path) as place, failures(path):
        return os.open(place.name, _FOLDER, dir_fd=place.folder)


def open_child(folder: int, name: str) -> int:
    """Return a descriptor of a folder in an open one; a link is refused with an `OSError`."""
    return os.open(name, _FOLDER, dir_fd=folder)


def open_root(root: str) -> int:
    """Return a descriptor of the root, which may be a link itself.

    Raises:
        KnowledgeConnectionError: It is gone, or may not be read.
    """
    try:
        return os.open(root, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
    except PermissionError as error:
        raise KnowledgeConnectionError(f"The folder {shown(root)} may not be read.", state="unauthorized") from error
    except OSError as error:
        raise KnowledgeConnectionError(
            f"The folder {shown(root)} cannot be opened: {error.strerror}.", state="missing"
        ) from error


def lstat(folder: int, name: str) -> os.stat_result | None:
    """Return what a name in an open folder is, links not followed; `None` for nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def missing(path: str) -> FileNotFoundError:
    """Return the error of a document that is not there."""
    return FileNotFoundError(errno.ENOENT, "No such document", path)


def sync_folder(folder: int) -> None:
    """Make the names in an open folder outlive a crash of the machine, where its file system can."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


@contextmanager
def failures(path: str, doing: str = "be reached") -> Generator[None]:
    """Turn errors of the system into ours; what is missing stays `FileNotFoundError`.

    Raises:
        FileNotFoundError: Nothing is there, or a name on the way is no folder.
        KnowledgePathError: A name is too long, or is a link that was put there this moment.
        KnowledgeBackendError: Anything else.
    """
    try:
        yield
    except KnowledgeError:  # Some of ours are errors of the system too.
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise missing(path) from error
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.EMLINK):
            raise KnowledgePathError(f"The path {shown(path)} cannot {doing}: {error.strerror}.") from error
        raise KnowledgeBackendError(f"The document {shown(path)} cannot {doing}: {error.strerror}.") from error


class _Way:
    """One walk from the root to the folder of a document."""

    def __init__(self, root: str, path: str, *, create: bool, follow: bool) -> None:
        self._root, self._create, self._follow = root, create, follow
        self._asked = path.split("/")
        self._names = list(self._asked)
        self._folder = -1

    def walk(self) -> Place:
        for _ in range(MAX_LINKS):
            self._folder = open_root(self._root)
            try:
                if place := self._descend():
                    return place
            except BaseException:
                os.close(self._folder)
                raise
            os.close(self._folder)
        raise KnowledgePathError(f"The path {self._shown} leads through more than {MAX_LINKS} symbolic links.")

    @property
    def _shown(self) -> str:
        return shown("/".join(self._asked))

    def _descend(self) -> Place | None:
        """Return the place, or `None` where a link was met: `_names` are then those of its target, and the way begins anew."""
        for index in range(len(self._names) - 1):
            info = self._look_at(index) or self._made(index)
            if stat.S_ISLNK(info.st_mode):
                return self._turn_at(index)
            if not self._entered(index, info):
                return None
        last = len(self._names) - 1
        info = self._look_at(last)
        if info and stat.S_ISLNK(info.st_mode) and self._follow:
            return self._turn_at(last)
        return Place(self._folder, self._names[last], "/".join(self._asked), info)

    def _look_at(self, index: int) -> os.stat_result | None:
        """Return what the name at `index` is. The disk may spell it in another Unicode form, which is then taken over."""
        info = lstat(self._folder, self._names[index])
        if info is None and (spelling := _spelling_on_disk(self._folder, self._names[index])):
            own = index - (len(self._names) - len(self._asked))  # The end of the way is what was asked for, also after a link.
            if own >= 0 and self._asked[own] == self._names[index]:
                self._asked[own] = spelling
            self._names[index] = spelling
            info = lstat(self._folder, spelling)
        return info

    def _made(self, index: int) -> os.stat_result:
        """Make the folder at `index` where that is wanted, so that it outlives a crash."""
        name = self._names[index]
        if not self._create:
            raise missing("/".join(self._asked))
        try:
            os.mkdir(name, dir_fd=self._folder)
            sync_folder(self._folder)
        except FileExistsError:  # Another writer was quicker.
            pass
        return os.stat(name, dir_fd=self._folder, follow_symlinks=False)

    def _entered(self, index: int, info: os.stat_result) -> bool:
        """Go into the folder at `index`; it may have become a link since it was looked at."""
        name = self._names[index]
        if not stat.S_ISDIR(info.st_mode):
            if self._create:
                raise KnowledgePathError(f"The path {self._shown} leads through {shown(name)}, which is no folder.")
            raise missing("/".join(self._asked))
        try:
            inner = open_child(self._folder, name)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            return False
        os.close(self._folder)
        self._folder = inner
        return True

    def _turn_at(self, index: int) -> None:
        target = _target(self._root, self._names[: index + 1])
        if target is None:
            raise KnowledgePathError(f"The path {self._shown} leads out of the store through a symbolic link.")
        self._names = [*target, *self._names[index + 1 :]]
        if not self._names:  # A link to the root itself.
            raise missing("/".join(self._asked))


def _target(root: str, names: Sequence[str]) -> list[str] | None:
    """Return the names beneath the root that a link leads to; `None` where it leads out."""
    real_root = os.path.realpath(root)
    target = os.path.realpath("/".join((real_root, *names)))
    if target == real_root:
        return []
    base = real_root.rstrip("/") + "/"
    return target[len(base) :].split("/") if target.startswith(base) else None


def _spelling_on_disk(folder: int, name: str) -> str | None:
    """Return the name in the folder that differs from `name` only in its Unicode form.

    Raises:
        KnowledgePathError: There are several.
    """
    if name.isascii():
        return None
    wanted = unicodedata.normalize("NFC", name)
    found = [entry for entry in os.listdir(folder) if is_unicode(entry) and unicodedata.normalize("NFC", entry) == wanted]
    if len(found) > 1:
        raise KnowledgePathError(f"The name {shown(name)} stands for {len(found)} documents that differ in their Unicode form.")
    return found[0] if found else None
