"""OKFManager: a bundle of markdown in any store, searched, browsed, fetched and written."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agentkernel_kb.document import DocumentKnowledgeBase
from agentkernel_kb.errors import (
    DocumentChangedError,
    KnowledgeBackendError,
    KnowledgeCapabilityError,
    KnowledgeError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.model import KnowledgeCapabilities, Record, RecordPage
from agentkernel_kb.okf import arguments, composing, manifest, refresh, rows, schema, search
from agentkernel_kb.okf.keeper import Keeper
from agentkernel_kb.okf.links import edges
from agentkernel_kb.okf.location import AUTO, IndexLocation, index_path
from agentkernel_kb.okf.model import DiagnosticCode, OKFBundle, OKFDiagnostic
from agentkernel_kb.okf.parser import decode, parse_document
from agentkernel_kb.okf.paths import folder_named, id_of, paths_named, reserved_kind
from agentkernel_kb.okf.query import parse
from agentkernel_kb.okf.records import (
    concept_record,
    folder_record,
    index_record,
    links_of,
    summary_record,
    with_notes,
)
from agentkernel_kb.okf.versions import Profile
from agentkernel_kb.okf.writing import Writer, Written
from agentkernel_kb.store.base import DocumentStore

DEFAULT_NAME = "okf"
_MOST_RECORDS = 1_000_000
DEFAULT_DESCRIPTION = "Concepts written in markdown, with what is known of where they come from and who checked them."
_USAGE = (
    'Search with words, "phrases" and beginnings*, narrowed by type:, tag: or path:; as in refund type:Policy tag:billing. '
    "Browse from the root. Hits and entries are summaries; fetch by id for the whole text and its links."
)


class OKFManager(DocumentKnowledgeBase):
    """A bundle of the Open Knowledge Format: search, browse, fetch, and writing where its store can be written.

    The bundle is indexed when the manager is constructed, which reads what changed since an index of it was last kept. Later
    changes are picked up by a refresh in the background. A document that cannot be read is skipped with a diagnostic.

    Args:
        store: Where the documents are; closed with the manager.
        name: Name of this backend; empty means `okf`.
        description: What the bundle holds, for whoever chooses between backends.
        refresh_seconds: Age at which the index is due for a refresh; `None` is never, and `reload()` is up to you.
        max_concepts: Most documents that are indexed; of more the first ones by path are.
        write_actor: Who is named in `generated.by` of what is written; `None` means this library and its version.
        write_prefix: Folder for what is written without an id.
        index: Where the index is kept: a folder; `auto` for the cache folder of this user; `None` or `:memory:` for nowhere, so
            that each start reads the whole bundle.
        default_type: Type of documents that have none, for a tree of documentation that is no bundle; `None` means that
            such a document is skipped, as the format says.

    Raises:
        AKConfigError: An argument is wrong.
        KnowledgeConnectionError: The store cannot be used.
        KnowledgeBackendError: Python's SQLite has no full-text search.
    """

    def __init__(
        self,
        store: DocumentStore,
        name: str = "",
        description: str | None = None,
        refresh_seconds: float | None = 300.0,
        max_concepts: int = 10_000,
        write_actor: str | None = None,
        write_prefix: str = "generated",
        *,
        index: IndexLocation = AUTO,
        default_type: str | None = None,
    ) -> None:
        capabilities = KnowledgeCapabilities(
            kinds=["document"], search=True, search_mode="lexical", fetch=True, browse=True, writable=True, derives_schema=True
        )
        super().__init__(store, capabilities, name or DEFAULT_NAME)
        arguments.check(
            self.backend_name,
            description=description,
            refresh_seconds=refresh_seconds,
            max_concepts=max_concepts,
            write_actor=write_actor,
            default_type=default_type,
        )
        self._description = description or DEFAULT_DESCRIPTION
        self._max_concepts = max_concepts
        self._bundle = refresh.Bundle(store, max_concepts, default_type or "")
        path = index_path(index, store, (max_concepts, default_type or ""), self.backend_name)
        self._keeper = Keeper(self._bundle, path, refresh_seconds, self.backend_name)
        prefix = arguments.checked_prefix(self.backend_name, write_prefix)
        self._writer = Writer(store, prefix, write_actor or _library(), self.backend_name)
        self._writing = threading.Lock()
        self.connect()

    @property
    def backend_name(self) -> str:
        """The name by which tools and schemas refer to this backend."""
        return self._given_name

    def connect(self, **kwargs: Any) -> None:
        """Open the index and bring it up to date; does nothing while it is open, and opens it again after `close`.

        Raises:
            KnowledgeConnectionError: The store cannot be used.
        """
        self._keeper.open()

    def reload(self) -> OKFBundle:
        """Bring the index up to date now, and return what the bundle holds.

        Raises:
            KnowledgeConnectionError: The store cannot be used; the old state goes on serving.
            KnowledgeStateError: The backend is closed.
        """
        self._keeper.refresh()
        return self.bundle

    @property
    def bundle(self) -> OKFBundle:
        """What the bundle holds in all."""
        return self._keeper.ask(self._summarised)

    def close(self) -> None:
        """Release the index and the store. May be called twice."""
        self._keeper.close()
        super().close()

    def ping(self, *, timeout: float | None = None) -> str:
        """Reach the store and return the version of the format that its bundle declares.

        Args:
            timeout: Seconds within which to answer.

        Raises:
            KnowledgeConnectionError: The store cannot be used.
            KnowledgeTimeoutError: It did not answer in time.
            KnowledgeStateError: The backend is closed.
        """
        if not self._keeper.is_open:
            raise KnowledgeStateError(f"'{self.backend_name}' is closed; call connect() to open it again.")
        reached = self._kb_workers().submit(refresh.declared_version, self.store)
        try:
            return reached.result(timeout)
        except TimeoutError as error:
            if isinstance(error, KnowledgeTimeoutError):
                raise
            raise KnowledgeTimeoutError(f"The store of '{self.backend_name}' did not answer within {timeout:g} s.") from error

    # Describing.

    def get_description(self) -> str:
        """Return the backend's name, what the bundle holds, and how many concepts that are."""
        bundle = self.bundle
        faults = f" {_counted(bundle.diagnostic_count, 'diagnostic')}." if bundle.diagnostic_count else ""
        return f"{self.backend_name}: {self._description.rstrip('.')}. {_counted(bundle.concept_count, 'concept')}.{faults}"

    def get_diagnostics(self) -> Sequence[str]:
        """Return what is wrong with the bundle, a sentence each, with file and line; at most 100 of them."""
        bundle = self.bundle
        more = bundle.diagnostic_count - len(bundle.diagnostics)
        return [*map(str, bundle.diagnostics), *([f"… and {more:,} more."] if more > 0 else [])]

    def _derived_schema(self) -> Mapping[str, Any]:
        bundle = self.bundle
        return {
            "okf_version": bundle.okf_version,
            "concept_count": bundle.concept_count,
            "types": list(bundle.types[:100]),
            "top_level_directories": list(bundle.top_level_directories),
            "reserved_files": {"index": list(bundle.index_files), "log": list(bundle.log_files)},
            "diagnostics": bundle.diagnostic_count,
            "truncated": bundle.truncated,
            "usage": _USAGE,
        }

    def _summarised(self, connection: sqlite3.Connection) -> OKFBundle:
        is_known = self._profile(connection).known
        return manifest.bundle(connection, self._keeper.notes, known_version=is_known, max_concepts=self._max_concepts)

    def format_results(self, rows: Iterable[Record]) -> str:
        """Return records as text for a model, with type, trust, age, tags, links and sources of each."""
        return super().format_results(map(_noted, rows))

    # Reading.

    def search(self, query: str, limit: int = 3, **kwargs: Any) -> list[Record]:
        """Return the concepts that `query` finds, best first.

        Args:
            query: Words, of which the more a concept has the better; `"phrases"` that it has to have; beginnings of words with
                `*`; and the filters `type:`, `tag:` and `path:`, whose values may be quoted. Blank text finds nothing.
            limit: Most records to return; less than 1 means 1.
            kwargs: Unknown arguments are ignored.

        Returns:
            Summaries with `metadata["score"]`, BM25 weighted by field, never rising, and `metadata["snippet"]`, the place that
            shows why; a query of filters alone gives paths in their order.

        Raises:
            KnowledgeStateError: The backend is closed.
        """
        wanted, most = parse(query), _bounded(limit)
        if wanted.is_blank:
            return []

        def find(connection: sqlite3.Connection) -> list[Record]:
            hits = search.find(connection, wanted, most + 1)
            scores = {hit.number: hit.score for hit in hits}
            found = manifest.summaries(connection, [hit.number for hit in hits[:most]])
            records = [
                summary_record(summary, score=scores[summary.number], body=body, needles=wanted.needles)
                for summary, body in found
            ]
            return RecordPage(records, more=len(hits) > most)

        return self._keeper.ask(find)

    def browse(self, path: str = "", limit: int = 50, **kwargs: Any) -> list[Record]:
        """Return what stands at a path: its `index.md` verbatim, or its folders and concepts where it has none.

        Args:
            path: A folder, or a concept; `""` is the root.
            limit: Most entries to return; less than 1 means 1.
            kwargs: Unknown arguments are ignored.

        Raises:
            KnowledgePathError: The path leaves the bundle.
            KnowledgeStateError: The backend is closed.
        """
        place, most = folder_named(path), _bounded(limit)
        return self._keeper.ask(lambda connection: _entries(connection, place, most))

    def fetch(self, ids: Sequence[str], **kwargs: Any) -> list[Record]:
        """Return concepts whole, as they are in the store now: the body as text, frontmatter and links as metadata.

        Args:
            ids: Ids as shown by search and browse; `.md` may be missing, and a link's leading `/` is taken. Unknown ones are
                left out.
            kwargs: Unknown arguments are ignored.

        Raises:
            KnowledgePathError: An id leaves the bundle.
            KnowledgeConnectionError: The store cannot be used.
            KnowledgeStateError: The backend is closed.
        """
        wanted = [list(paths_named(identity)) for identity in ids if isinstance(identity, str) and identity.strip()]

        def known(connection: sqlite3.Connection) -> tuple[list[manifest.Known], Profile]:
            found = [manifest.known(connection, paths) or _unindexed(paths) for paths in wanted if paths]
            return [one for one in found if one.kind != schema.LOG], self._profile(connection)

        places, profile = self._keeper.ask(known)
        return self._read(places, profile)

    def _read(self, places: list[manifest.Known], profile: Profile) -> list[Record]:
        records: list[Record] = []
        contents = self.store.read_many([place.path for place in places], max_bytes=rows.MAX_BYTES + 1)
        for place, (_, data) in zip(places, contents, strict=True):
            if isinstance(data, FileNotFoundError):
                continue
            if isinstance(data, KnowledgeError):
                raise data
            if isinstance(data, Exception):
                raise KnowledgeBackendError(f"{place.path!r} can't be read ({refresh.reason_of(data)}).") from data
            if (record := self._record(place, data, profile)) is not None:
                records.append(record)
        return records

    def _record(self, place: manifest.Known, data: bytes, profile: Profile) -> Record | None:
        if reserved_kind(place.path):
            return index_record(place.path, decode(data[: rows.MAX_BYTES])[0])
        concept = parse_document(place.path, data[: rows.MAX_BYTES], profile).concept
        if concept is None:
            return None
        found = edges(concept)
        links = self._keeper.ask(lambda connection: links_of(connection, place.path, found))
        return concept_record(concept, place.version, links, truncated=len(data) > rows.MAX_BYTES)

    def _profile(self, connection: sqlite3.Connection) -> Profile:
        return refresh.profile_for(manifest.version_of(connection), self._bundle)

    # Writing.

    def write(self, records: Iterable[Record], **kwargs: Any) -> None:
        """Store records; see `add`."""
        self.add(records)

    def add(self, records: Iterable[Record], **kwargs: Any) -> list[str]:
        """Store records as concepts, all of them or none; what is written is found by the next call.

        A record without `metadata["id"]` becomes a concept beneath `write_prefix`, titled from the first line of its text and
        stamped with `generated`. One with an id is written there as given: its text is the body, or a whole document where it
        begins with a frontmatter; keys of its metadata that differ from what a fetch shows are changed, and every other byte of
        the frontmatter stays. With `metadata["version"]`, as a fetch gives it, it is only written where nobody changed the
        document since.

        Args:
            records: The records.
            kwargs: Unknown arguments are ignored.

        Returns:
            The ids of what was stored, in order.

        Raises:
            KnowledgeCapabilityError: The store is not writable.
            KnowledgeQueryError: A record can't be stored; nothing was written.
            KnowledgePathError: An id leaves the bundle; nothing was written.
            DocumentChangedError: Somebody else changed a document meanwhile; nothing was written.
        """
        if not self.capabilities.writable:
            raise KnowledgeCapabilityError(self.backend_name, "write")
        drafts = composing.drafts(records, self.backend_name)
        named = [composing.named_paths(draft, self.backend_name) for draft in drafts if draft.id]
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
        return seen, self._profile(connection), manifest.logs(connection)

    def _index(self, written: list[Written], profile: Profile, logs: frozenset[str]) -> None:
        with self._writing:  # One after the other, so that the newer state of a log is also the one in the index.
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
                    found = self.store.stat(path)
                    data = self.store.read_prefix_bytes(path, rows.MAX_BYTES + 1)
                except FileNotFoundError:
                    self._keeper.put([], [path])
                else:
                    self._keeper.put([rows.row_of(path, data, found.version, profile)])

    def __repr__(self) -> str:
        return f"OKFManager({self.store!r}, name={self.backend_name!r})"


def _entries(connection: sqlite3.Connection, place: str, most: int) -> list[Record]:
    if reserved_kind(place) == "index":
        place = place.rpartition("/")[0]
    if index := manifest.index_at(connection, place):
        return [index_record(*index)]
    folders = manifest.folders_in(connection, place, most + 1)
    concepts = manifest.concepts_in(connection, place, most + 1 - len(folders)) if len(folders) <= most else []
    if not folders and not concepts:
        found = manifest.known(connection, [place, f"{place}.md"]) if place else None
        summary = manifest.concept_at(connection, found.path) if found else None
        return [summary_record(summary)] if summary else []
    records = [*map(folder_record, folders), *map(summary_record, concepts)]
    return RecordPage(records[:most], more=len(records) > most)


def _unindexed(paths: list[str]) -> manifest.Known:
    """Return the place of a document that the index does not have: it may be new, or beyond `max_concepts`."""
    kind = schema.LOG if reserved_kind(paths[0]) == "log" else schema.CONCEPT
    return manifest.Known(paths[0], kind, "")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _bounded(limit: int) -> int:
    return min(max(1, limit), _MOST_RECORDS)


def _noted(record: Record) -> Record:
    try:
        return with_notes(record)
    except Exception:  # noqa: BLE001 - what can't be noted is shown without
        return record


def _library() -> str:
    try:
        return f"agentkernel-kb/{version('agentkernel-kb')}"
    except PackageNotFoundError:
        return "agentkernel-kb/unknown"


__all__ = ["DEFAULT_DESCRIPTION", "DEFAULT_NAME", "OKFDiagnostic", "OKFManager"]
