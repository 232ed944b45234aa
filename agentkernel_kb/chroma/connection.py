"""The ways to a Chroma on this machine: a folder, or a client that the application made; opened, shared and closed."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from agentkernel_kb.chroma.failures import translated
from agentkernel_kb.chroma.sharing import SharedFolder
from agentkernel_kb.chroma.unpublished import open_folders, reloader
from agentkernel_kb.chroma.writer_lock import WriterLock
from agentkernel_kb.errors import (
    AKConfigError,
    KnowledgeConnectionError,
    KnowledgeDependencyError,
    KnowledgeStateError,
)

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

# Chroma keeps one system per folder and process, and does not guard that table against threads.
_EMBEDDED = threading.RLock()

# Weak, so that a folder is forgotten with the last connection to it.
_FOLDERS: WeakValueDictionary[Path, SharedFolder] = WeakValueDictionary()


class Connection:
    """An open Chroma client, and how to search and write through it without harm to others.

    Args:
        client: The client.
        close: What gives it back.
        lock: The right to write to the folder behind it, where there is one.
        folder: What this process knows of that folder.
    """

    def __init__(
        self,
        client: ClientAPI,
        close: Callable[[], None],
        lock: WriterLock | None = None,
        folder: SharedFolder | None = None,
    ) -> None:
        self.client = client
        self._close = close
        self._lock = lock
        self._folder = folder
        self._reload = reloader(client) if folder is not None else None
        self._own_writing = threading.RLock()
        self._pid = os.getpid()

    def writing(self) -> threading.RLock:
        """Return the lock under which this process writes here, after making sure that no other process does.

        Raises:
            KnowledgeStateError: Another process writes to the folder.
        """
        return self._own_writing if self._lock is None else self._lock.acquire()

    def searching(self, collection: str) -> AbstractContextManager[None]:
        """Return the context in which to search a collection, given by its id."""
        return nullcontext() if self._folder is None else self._folder.searching(collection, self._reload)

    def storing(self) -> AbstractContextManager[None]:
        """Return the context in which to write a batch, under the lock that `writing` returns."""
        return nullcontext() if self._folder is None else self._folder.storing(self._reload)

    def check_process(self, subject: str) -> None:
        """Refuse a client that came over a fork, whose threads stayed behind: it would wait for ever.

        Raises:
            KnowledgeStateError: This is another process than the one that connected.
        """
        if self._pid != os.getpid():
            raise KnowledgeStateError(f"'{subject}' was connected before this process was forked; construct it after the fork.")

    def close(self) -> None:
        """Release the client and then the folder, once what this process writes there has been written."""
        if self._pid != os.getpid():
            return
        if self._lock is None:
            self._close()
            return
        with self._lock.settled():
            try:
                self._close()
            finally:
                self._lock.release()


@dataclass(frozen=True)
class Folder:
    """An embedded Chroma in a folder of this machine."""

    path: Path
    options: Mapping[str, str]

    def give_up(self) -> None:
        """Nothing is under way: opening it is waited for."""

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return repr(str(self.path))

    def open(self, subject: str) -> Connection:
        """Open the folder, which is made where it is missing.

        Raises:
            AKConfigError: The process has opened this folder with other settings of Chroma.
            KnowledgeConnectionError: The folder cannot be opened.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise KnowledgeConnectionError(f"'{subject}' can't open the folder {self.place}: {error.strerror}.") from error
        with _EMBEDDED, translated(subject, self.place, "open it"):
            fresh = SharedFolder(self.path, subject)
            client, is_new = self._client(subject)
            shared = fresh if is_new else _FOLDERS.get(self.path) or SharedFolder(self.path, subject, is_read=True)
            _FOLDERS[self.path] = shared
        return Connection(client, lambda: _close_embedded(client), WriterLock(self.path, subject), shared)

    def _client(self, subject: str) -> tuple[ClientAPI, bool]:
        """Return a client, and whether it is known to be the first of this process on the folder."""
        import chromadb

        systems = open_folders()
        # Two systems on one folder would not see each other's writes, so one that is open under another spelling is used.
        path = next((known for known in systems or () if Path(known).resolve() == self.path), str(self.path))
        is_new = systems is not None and path not in systems
        try:
            return chromadb.PersistentClient(path, settings=new_settings(), **self.options), is_new
        except Exception as error:
            # chromadb 1.5.9 keeps a system that failed to start, so that every later attempt would fail as well.
            if is_new and systems:
                systems.pop(path, None)
            if "different settings" not in str(error):
                raise
            raise AKConfigError(
                f"'{subject}': this process has opened {self.place} with other settings of Chroma; pass that client as client=."
            ) from error


@dataclass(frozen=True)
class Given:
    """A client that the application made, and closes itself."""

    client: Any = field(repr=False)

    def give_up(self) -> None:
        """Nothing is under way: opening it takes no time."""

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return "the given client"

    def open(self, subject: str) -> Connection:
        """Use the client.

        Raises:
            AKConfigError: It is no client of Chroma, or an asynchronous one.
        """
        for method in ("get_collection", "create_collection", "get_max_batch_size"):
            found = getattr(self.client, method, None)
            if not callable(found) or inspect.iscoroutinefunction(found):
                raise AKConfigError(
                    f"'{subject}': client must be a synchronous Chroma client, not {type(self.client).__name__}."
                )
        folder = self._folder()
        if folder is None:
            return Connection(self.client, lambda: None)
        with _EMBEDDED:
            shared = _FOLDERS.get(folder) or SharedFolder(folder, subject, is_read=True)
            _FOLDERS[folder] = shared
        return Connection(self.client, lambda: None, WriterLock(folder, subject), shared)

    def _folder(self) -> Path | None:
        settings = self.client.get_settings() if callable(getattr(self.client, "get_settings", None)) else None
        directory: object = getattr(settings, "persist_directory", None)
        if getattr(settings, "is_persistent", False) is not True or not isinstance(directory, str):
            return None
        return Path(directory).resolve()


def require_chroma(subject: str) -> None:
    """Make sure that Chroma is installed.

    Raises:
        KnowledgeDependencyError: It is not.
    """
    try:
        import_module("chromadb")
    except ImportError as error:
        raise KnowledgeDependencyError("chroma", f"ChromaManager '{subject}'") from error


def new_settings() -> Any:
    """Return settings of Chroma that tell nobody of its use."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _close_embedded(client: ClientAPI) -> None:
    with _EMBEDDED:
        cast("Any", client).close()
