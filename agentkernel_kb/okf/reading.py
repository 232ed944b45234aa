"""Reading a bundle: what a search, a browse and a fetch ask of the index, and the bodies that a fetch reads of the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeError
from agentkernel_kb.model import Record, RecordPage
from agentkernel_kb.okf import manifest, refresh, rows, schema, search
from agentkernel_kb.okf.frontmatter import split
from agentkernel_kb.okf.keeper import Keeper
from agentkernel_kb.okf.links import edges
from agentkernel_kb.okf.parser import decode, parse_document
from agentkernel_kb.okf.paths import folder_of, paths_named, places_named, reserved_kind
from agentkernel_kb.okf.query import parse
from agentkernel_kb.okf.records import concept_record, folder_record, index_record, links_of, summary_record
from agentkernel_kb.okf.refresh import Bundle
from agentkernel_kb.okf.versions import Profile


class Reader:
    """Answers what is asked of one bundle.

    Args:
        bundle: What is indexed.
        keeper: Its index.
    """

    def __init__(self, bundle: Bundle, keeper: Keeper) -> None:
        self._bundle = bundle
        self._keeper = keeper

    def search(self, query: str, most: int) -> list[Record]:
        """Return summaries of at most so many concepts that a query finds, best first."""
        wanted = parse(query)
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

    def browse(self, path: str, most: int) -> list[Record]:
        """Return at most so many entries of what stands at a path.

        Raises:
            KnowledgePathError: The path leaves the bundle.
        """
        places = places_named(path)
        return self._keeper.ask(lambda connection: _entries(connection, places, most))

    def fetch(self, ids: Sequence[str]) -> list[Record]:
        """Return concepts whole, as they are in the store now; unknown ids are left out.

        Raises:
            KnowledgePathError: An id leaves the bundle.
            KnowledgeConnectionError: The store cannot be used.
        """
        wanted = [list(paths_named(identity)) for identity in ids if isinstance(identity, str) and identity.strip()]

        def known(connection: sqlite3.Connection) -> tuple[list[manifest.Known], Profile]:
            found = [manifest.known(connection, paths) or _unindexed(paths) for paths in wanted if paths]
            return [one for one in found if one.kind != schema.LOG], refresh.profile_of_index(connection, self._bundle)

        places, profile = self._keeper.ask(known)
        return self._read(places, profile)

    def _read(self, places: list[manifest.Known], profile: Profile) -> list[Record]:
        records: list[Record] = []
        contents = self._bundle.store.read_many([place.path for place in places], max_bytes=rows.MAX_BYTES + 1)
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
            return index_record(place.path, decode(data[: rows.MAX_BYTES])[0].removeprefix("\ufeff"))
        concept = parse_document(place.path, data[: rows.MAX_BYTES], profile).concept
        if concept is None:
            return None
        found = edges(concept)
        links = self._keeper.ask(lambda connection: links_of(connection, place.path, found))
        return concept_record(concept, place.version, links, truncated=len(data) > rows.MAX_BYTES)


def _entries(connection: sqlite3.Connection, places: list[str], most: int) -> list[Record]:
    place = manifest.folder_at(connection, [folder_of(one) if reserved_kind(one) == "index" else one for one in places])
    if place is None:
        found = manifest.known(connection, [path for one in places for path in (one, f"{one}.md")])
        summary = manifest.concept_at(connection, found.path) if found else None
        return [summary_record(summary)] if summary else []
    index = manifest.index_at(connection, place)
    if index and _lists_something(index[1]):
        return [index_record(*index)]
    folders = manifest.folders_in(connection, place, most + 1)
    concepts = manifest.concepts_in(connection, place, most + 1 - len(folders)) if len(folders) <= most else []
    records = [*map(folder_record, folders), *map(summary_record, concepts)]
    if index and not records:
        return [index_record(*index)]
    return RecordPage(records[:most], more=len(records) > most)


def _lists_something(index: str) -> bool:
    """Tell whether an `index.md` is a listing, and not blank or only there for the version in its frontmatter."""
    parts = split(index)
    return bool((parts.body if parts else index).strip())


def _unindexed(paths: list[str]) -> manifest.Known:
    """Return the place of a document that the index does not have: it may be new, or beyond `max_concepts`."""
    kind = schema.LOG if reserved_kind(paths[0]) == "log" else schema.CONCEPT
    return manifest.Known(paths[0], kind, "")
