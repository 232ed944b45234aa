"""DocumentStore: what a store of documents is. Subclass it; `read_bytes` and `list` are enough for one that only reads."""

from __future__ import annotations

import builtins
import functools
import hashlib
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from agentkernel_kb.errors import AKConfigError, DocumentChangedError, KnowledgeCapabilityError, KnowledgePathError
from agentkernel_kb.store import paths as _paths

OnSkip = Callable[[str, str], None]
"""Is told the path and the reason of what a walk leaves out; the path may be one that no operation takes."""


@dataclass(frozen=True, slots=True)
class DocumentStat:
    """What a store knows of a document without reading it.

    Attributes:
        path: Its path.
        size: Bytes.
        modified: When it was last changed, in POSIX seconds; 0 where the store cannot tell.
        version: Text that is another one whenever the bytes are; it says nothing else.
    """

    path: str
    size: int
    modified: float
    version: str


class DocumentStore(ABC):
    """Bytes at relative paths, whose segments are joined by `/`.

    Every operation takes a path in any of its spellings (`normalise_relative`) and raises `KnowledgePathError` for one that
    leaves the store. A document that is not there is a `FileNotFoundError`, a folder is not a document, and a store that
    cannot be used raises `KnowledgeConnectionError`. Operations may run in several threads at once.

    A subclass has to implement `read_bytes` and `list`, and for writing `write_bytes` and `writable`. Everything else has a
    default in terms of these. A `write_bytes` that takes only path and data is given the conditions by the base: they then
    hold between the threads of one process, and no further.

    Attributes:
        identity: Text that is the same for every store object over the same documents and no other, by which an index of them
            is found again; `None` where that can't be known. No credentials stand in it.
    """

    identity: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give a plain `write_bytes(path, data)` of a subclass the conditions."""
        super().__init_subclass__(**kwargs)
        own = vars(cls).get("write_bytes")
        if callable(own) and not _takes_conditions(own):
            cls.write_bytes = _with_conditions(own)

    # What every store implements.

    @abstractmethod
    def read_bytes(self, path: str) -> bytes:
        """Return a document whole.

        Raises:
            FileNotFoundError: There is none at this path.
            KnowledgePathError: The path leaves the store, or names what is no document, such as a device.
        """

    @abstractmethod
    def list(self, prefix: str = "") -> builtins.list[str]:
        """Return the paths of all documents at or beneath `prefix`, sorted as whole texts.

        Args:
            prefix: A place in the namespace, not the beginning of a text: `a` is not the prefix of `ab/c`. A separator at its
                end changes nothing. `""` is the root; one that is not there gives nothing.

        Raises:
            KnowledgePathError: The prefix leaves the store.
        """

    # What a store that can be written implements.

    @property
    def writable(self) -> bool:
        """Whether `write_bytes` and `delete` can be used at all."""
        return False

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None, if_missing: bool = False) -> DocumentStat:
        """Store a document, whole or not at all; missing folders come into being.

        Args:
            path: Where.
            data: Its bytes.
            if_version: Only where the document has this version now.
            if_missing: Only where there is no document now.

        Returns:
            What the store then knows of it.

        Raises:
            DocumentChangedError: A condition did not hold; nothing was changed.
            KnowledgeCapabilityError: The store is not writable.
        """
        raise KnowledgeCapabilityError(type(self).__name__, "write")

    def delete(self, path: str, *, if_version: str | None = None) -> None:
        """Remove a document.

        Args:
            path: Which.
            if_version: Only where the document has this version now.

        Raises:
            FileNotFoundError: There is none at this path.
            DocumentChangedError: It has another version.
            KnowledgeCapabilityError: The store is not writable, or cannot delete.
        """
        raise KnowledgeCapabilityError(type(self).__name__, "delete")

    # What has a default.

    def read_prefix_bytes(self, path: str, max_bytes: int) -> bytes:
        """Return the first `max_bytes` of a document, or all of a shorter one; 0 or less gives nothing and reads nothing."""
        if max_bytes <= 0:
            self.document_path(path)
            return b""
        return self.read_bytes(path)[:max_bytes]

    def exists(self, path: str) -> bool:
        """Tell whether there is a document at this path."""
        try:
            self.read_prefix_bytes(path, 1)
        except FileNotFoundError:
            return False
        return True

    def stat(self, path: str) -> DocumentStat:
        """Return what the store knows of a document. The default reads it; its version is a digest.

        Raises:
            FileNotFoundError: There is none at this path.
        """
        data = self.read_bytes(path)
        return DocumentStat(self.document_path(path), len(data), 0.0, hashlib.sha256(data).hexdigest())

    def scan(self, prefix: str = "", *, on_skip: OnSkip | None = None) -> Iterator[DocumentStat]:
        """Yield what the store knows of all documents at or beneath `prefix`, in the order of `list`.

        Args:
            prefix: As for `list`.
            on_skip: Is told what is left out and why, such as a folder that cannot be read.
        """
        for path in self.list(prefix):
            try:
                yield self.stat(path)
            except FileNotFoundError:  # It went away since it was listed.
                continue

    def read_many(self, paths: Iterable[str], *, max_bytes: int | None = None) -> Iterator[tuple[str, bytes | Exception]]:
        """Yield each path as it was given with its bytes, or with the error that reading it met, in the order given.

        Args:
            paths: Which documents; taken as they are needed.
            max_bytes: Only that many bytes of the beginning of each.
        """
        for path in paths:
            try:
                yield path, self.read_bytes(path) if max_bytes is None else self.read_prefix_bytes(path, max_bytes)
            except Exception as error:  # noqa: BLE001 - one document that can't be read must not take the others with it
                yield path, error

    def close(self) -> None:  # noqa: B027 - many stores have nothing to release
        """Release what the store holds. May be called twice."""

    # What the base provides.

    @staticmethod
    def normalise_relative(path: str) -> str:
        """Return the one spelling of a relative path: segments joined by `/`, no `.`, no empty one, `""` for the root.

        Nothing is decoded and no Unicode form is changed.

        Raises:
            KnowledgePathError: It is absolute, has a `..` or a hidden segment (one that begins with a dot), or characters that
                no identity can have.
        """
        return _paths.normalise(path)

    @staticmethod
    def document_path(path: str) -> str:
        """Return the one spelling of the path of a document, which the root is not.

        Raises:
            KnowledgePathError: As `normalise_relative`, or the path is the root.
        """
        normal = _paths.normalise(path)
        if not normal:
            raise KnowledgePathError("The root of a store is not a document.")
        return normal

    @staticmethod
    def from_uri(uri: str | Path, **options: Any) -> DocumentStore:
        """Return the store that a line of configuration names.

        Args:
            uri: A path, `file:///srv/kb`, `s3://bucket/prefix`, or `python:package.module.Class`.
            options: Keyword arguments for the store's constructor.

        Raises:
            AKConfigError: The scheme is unknown, or the store cannot be made of this.
            KnowledgeDependencyError: It needs an extra that is not installed.
        """
        from agentkernel_kb.store.uri import store_from_uri  # It knows the stores, which know this class.

        return store_from_uri(uri, **options)

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def check_conditions(if_version: str | None, *, if_missing: bool) -> None:
    """Refuse two conditions that can never hold together.

    Raises:
        AKConfigError: Both are asked for.
    """
    if if_missing and if_version is not None:
        raise AKConfigError("if_version and if_missing exclude each other.")


def check_version(path: str, now: str | None, if_version: str | None, *, if_missing: bool = False) -> None:
    """Raise where a condition does not hold for a document that has the version `now`, `None` where there is none.

    Raises:
        DocumentChangedError: A condition does not hold.
    """
    if if_missing and now is not None:
        raise DocumentChangedError(path, "exists already")
    if if_version is not None and now != if_version:
        raise DocumentChangedError(path, "is gone" if now is None else "was changed by somebody else")


def _takes_conditions(write: Callable[..., Any]) -> bool:
    parameters = inspect.signature(write).parameters
    return {"if_version", "if_missing"} <= set(parameters) or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _with_conditions(plain: Callable[[Any, str, bytes], object]) -> Callable[..., DocumentStat]:
    @functools.wraps(plain)
    def write_bytes(
        self: DocumentStore, path: str, data: bytes, *, if_version: str | None = None, if_missing: bool = False
    ) -> DocumentStat:
        check_conditions(if_version, if_missing=if_missing)
        with vars(self).setdefault("_kb_conditions", threading.RLock()):
            if if_missing or if_version is not None:
                check_version(path, _version(self, path), if_version, if_missing=if_missing)
            plain(self, path, data)
            return self.stat(path)

    return write_bytes


def _version(store: DocumentStore, path: str) -> str | None:
    try:
        return store.stat(path).version
    except FileNotFoundError:
        return None
