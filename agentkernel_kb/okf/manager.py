"""OKFManager: a bundle of markdown in any store, searched, browsed, fetched and written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agentkernel_kb.document import DocumentKnowledgeBase
from agentkernel_kb.errors import KnowledgeCapabilityError, KnowledgeStateError, KnowledgeTimeoutError
from agentkernel_kb.model import KnowledgeCapabilities, Record
from agentkernel_kb.okf import arguments, composing, manifest, refresh
from agentkernel_kb.okf.keeper import Keeper
from agentkernel_kb.okf.location import AUTO, IndexLocation, index_path
from agentkernel_kb.okf.model import OKFBundle, OKFDiagnostic
from agentkernel_kb.okf.reading import Reader
from agentkernel_kb.okf.recording import Recorder
from agentkernel_kb.okf.records import with_notes
from agentkernel_kb.okf.writing import Writer
from agentkernel_kb.store.base import DocumentStore

DEFAULT_NAME = "okf"
_MOST_RECORDS = 1_000_000
_MAX_SHOWN_CHARS = 100
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
        writer = Writer(store, prefix, write_actor or _library(), self.backend_name)
        self._reader = Reader(self._bundle, self._keeper)
        self._recorder = Recorder(self._bundle, self._keeper, writer, self.backend_name)
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
            "okf_version": bundle.okf_version[:_MAX_SHOWN_CHARS],
            "concept_count": bundle.concept_count,
            "types": [kind[:_MAX_SHOWN_CHARS] for kind in bundle.types[:100]],
            "top_level_directories": list(bundle.top_level_directories),
            "reserved_files": {"index": list(bundle.index_files), "log": list(bundle.log_files)},
            "diagnostics": bundle.diagnostic_count,
            "truncated": bundle.truncated,
            "usage": _USAGE,
        }

    def _summarised(self, connection: sqlite3.Connection) -> OKFBundle:
        is_known = refresh.profile_of_index(connection, self._bundle).known
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
        return self._reader.search(query, _bounded(limit))

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
        return self._reader.browse(path, _bounded(limit))

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
        return self._reader.fetch(ids)

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
        return self._recorder.add(composing.drafts(records, self.backend_name))

    def __repr__(self) -> str:
        return f"OKFManager({self.store!r}, name={self.backend_name!r})"


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
