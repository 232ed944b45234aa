"""Writing to a bundle and telling its index, so that the next call sees what was written. Source: row A17."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from contextlib import suppress

from agentkernel_kb.errors import DocumentChangedError, KnowledgeError
from agentkernel_kb.okf import composing, manifest, refresh, rows
from agentkernel_kb.okf.composing import Draft
from agentkernel_kb.okf.keeper import Keeper
from agentkernel_kb.okf.model import DiagnosticCode
from agentkernel_kb.okf.paths import id_of
from agentkernel_kb.okf.refresh import Bundle
from agentkernel_kb.okf.versions import Profile
from agentkernel_kb.okf.writing import Writer, Written


class Recorder:
    """Writes to one bundle.

    Args:
        bundle: What is indexed.
        keeper: Its index.
        writer: Writes to its store.
        subject: Name of the backend, for messages.
    """

    def __init__(self, bundle: Bundle, keeper: Keeper, writer: Writer, subject: str) -> None:
        self._bundle = bundle
        self._store = bundle.store
        self._keeper = keeper
        self._writer = writer
        self._subject = subject
        self._indexing = threading.Lock()

    def add(self, drafts: list[Draft]) -> list[str]:
        """Write all drafts or none, and return their ids.

        Raises:
            KnowledgeQueryError: One can't be stored.
            KnowledgePathError: An id leaves the bundle.
            DocumentChangedError: Somebody else changed a document meanwhile.
        """
        named = [composing.named_paths(draft, self._subject) for draft in drafts if draft.id]
        seen, profile, logs = self._keeper.ask(lambda connection: self._state_for_writing(connection, named))
        written: list[Written] = []
        try:
            self._writer.write(drafts, profile, seen.get, written)
        except BaseException as error:
            changed = {error.path} if isinstance(error, DocumentChangedError) else set[str]()
            self._index_again(changed | {one.path for one in written if one.before is not None}, profile)
            raise
        self._index(written, profile, logs)
        return [id_of(one.path) for one in written]

    def _state_for_writing(
        self, connection: sqlite3.Connection, named: list[list[str]]
    ) -> tuple[dict[str, tuple[str, str]], Profile, frozenset[str]]:
        seen: dict[str, tuple[str, str]] = {}
        for paths in named:
            if found := manifest.known(connection, paths):
                seen[paths[0]] = (found.path, found.version)
        return seen, refresh.profile_of_index(connection, self._bundle), manifest.logs(connection)

    def _index(self, written: list[Written], profile: Profile, logs: frozenset[str]) -> None:
        with self._indexing:  # One after the other, so that the newer state of a log is also the one in the index.
            changed, fault = self._writer.keep_log(written, logs)
            if fault is None:
                self._keeper.forget(DiagnosticCode.LOG_NOT_WRITTEN)
            else:
                self._keeper.note(fault)
            found = {one.path: rows.row_of(one.path, one.data, one.version, profile) for one in written}
            found |= {path: rows.row_of(path, data, state, profile) for path, (data, state) in changed.items()}
            if found:
                self._keeper.put(list(found.values()))

    def _index_again(self, paths: Iterable[str], profile: Profile) -> None:
        """Put documents as they are now into the index, so that the next write knows what it goes by."""
        for path in paths:
            # What the store does not give now, the next refresh finds out.
            with suppress(KnowledgeError, OSError):
                try:
                    found = self._store.stat(path)
                    data = self._store.read_prefix_bytes(path, rows.MAX_BYTES + 1)
                except FileNotFoundError:
                    self._keeper.put([], [path])
                else:
                    self._keeper.put([rows.row_of(path, data, found.version, profile)])
