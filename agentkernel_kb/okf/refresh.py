"""The index brought up to date with the store: a listing compared in SQL, and only what changed is read. Source: row X8."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from agentkernel_kb.errors import KnowledgeConnectionError, KnowledgeError, KnowledgeStateError, KnowledgeTimeoutError
from agentkernel_kb.okf import rows
from agentkernel_kb.okf.database import Database
from agentkernel_kb.okf.frontmatter import FrontmatterError, read_head, split
from agentkernel_kb.okf.parser import decode
from agentkernel_kb.okf.paths import is_document, reserved_kind
from agentkernel_kb.okf.rows import MAX_BYTES, Row
from agentkernel_kb.okf.versions import CURRENT, Profile, profile_of
from agentkernel_kb.store.base import DocumentStore

T = TypeVar("T")

ROOT_INDEX = "index.md"
_BATCH = 200
_PORTION, _PORTION_CHARS = 500, 1 << 20
_MOST_SKIPPED = 1_000

_SEEN = "CREATE TEMP TABLE seen (path TEXT PRIMARY KEY, version TEXT NOT NULL) WITHOUT ROWID"
_STAGED = f"CREATE TEMP TABLE staged ({rows.STAGED_COLUMNS})"
_STAGE = f"INSERT INTO temp.staged VALUES ({', '.join('?' * len(Row._fields))})"  # noqa: S608 - only question marks
_CHANGED = (
    "SELECT seen.path, seen.version FROM temp.seen AS seen LEFT JOIN main.document AS known ON known.path = seen.path "
    "WHERE seen.path > ? AND (known.path IS NULL OR ? OR known.version IS NOT seen.version) ORDER BY seen.path LIMIT ?"
)
_ROOT_INDEX_CHANGED = (
    "SELECT known.version IS NOT seen.version FROM temp.seen AS seen "
    "LEFT JOIN main.document AS known ON known.path = seen.path WHERE seen.path = ?"
)
_GONE = "SELECT path FROM main.document WHERE written < ? AND path NOT IN (SELECT path FROM temp.seen)"


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is indexed.

    Attributes:
        store: Where the documents are.
        max_concepts: Most documents that may be concepts; the first ones by path are taken.
        default_type: Type of a document that has none; `""` means that such a document is no concept.
    """

    store: DocumentStore
    max_concepts: int
    default_type: str = ""


@dataclass(slots=True)
class _Listing:
    """What a walk over the store found, besides the documents."""

    truncated: bool = False
    skipped: dict[str, str] = field(default_factory=dict[str, str])

    def skip(self, path: str, reason: str) -> None:
        if len(self.skipped) < _MOST_SKIPPED:
            self.skipped[path.encode("utf-8", "replace").decode()] = reason

    def hides(self, path: str) -> bool:
        """Tell whether a document may only be out of sight, in a folder that could not be read."""
        return path in self.skipped or any(path.startswith(f"{place}/") for place in self.skipped)


def fill(connection: sqlite3.Connection, bundle: Bundle) -> None:
    """Put a whole bundle into empty tables, in the transaction that `connection` is in.

    Raises:
        KnowledgeConnectionError: The store cannot be used.
    """
    started = rows.now()
    listing = _list(connection, bundle)
    profile, _ = _profile(connection, bundle)
    # Not in a thread of its own: two that take the interpreter from each other use a third more of the processor, for little.
    for portion in _portions(_read(connection, bundle, profile, everything=True)):
        rows.put(connection, portion, new=True)
    _finish(connection, listing, profile, started)


def update(database: Database, bundle: Bundle) -> int:
    """Bring an index up to date. Until all has been read nothing changes; then everything does at once.

    Returns:
        How many documents were read or removed.

    Raises:
        KnowledgeConnectionError: The store cannot be used; the index is as it was.
    """
    started = rows.now()
    with database.staging() as connection:
        listing = _list(connection, bundle)
        profile, everything = _profile(connection, bundle)
        connection.execute(_STAGED)
        read = 0
        for batch in _portions(_read(connection, bundle, profile, everything=everything)):
            connection.execute("BEGIN")
            connection.executemany(_STAGE, batch)
            connection.execute("COMMIT")
            read += len(batch)
        with database.applying(connection):
            gone = [path for (path,) in connection.execute(_GONE, (started,)) if not listing.hides(path)]
            rows.take_out(connection, gone)
            _apply_staged(connection, started)
            _finish(connection, listing, profile, started)
        return read + len(gone)


def _list(connection: sqlite3.Connection, bundle: Bundle) -> _Listing:
    """Note all documents of the store in a temporary table."""
    connection.execute(_SEEN)
    listing = _Listing()
    found = _documents(bundle, listing)
    own_transaction = not connection.in_transaction
    if own_transaction:
        connection.execute("BEGIN")
    for batch in _batches(found, 1_000):
        connection.executemany("INSERT OR IGNORE INTO temp.seen VALUES (?, ?)", batch)
    if own_transaction:
        connection.execute("COMMIT")
    return listing


def _documents(bundle: Bundle, listing: _Listing) -> Iterator[tuple[str, str]]:
    concepts = 0
    for found in bundle.store.scan(on_skip=listing.skip):
        if not is_document(found.path):
            continue
        if not reserved_kind(found.path):
            concepts += 1
            if concepts > bundle.max_concepts:
                listing.truncated = True
                return
        yield found.path, found.version


def _profile(connection: sqlite3.Connection, bundle: Bundle) -> tuple[Profile, bool]:
    """Return how the bundle is read, and whether all of it has to be read anew because that changed."""
    known = rows.get_meta(connection, "okf_version")
    found = connection.execute(_ROOT_INDEX_CHANGED, (ROOT_INDEX,)).fetchone()
    version = CURRENT if found is None else str(known)
    if found is not None and (found[0] or known is None):
        version = declared_version(bundle.store)
    return profile_for(version, bundle), known is not None and known != version


def profile_for(version: str, bundle: Bundle) -> Profile:
    """Return how a bundle of a version is read."""
    return dataclasses.replace(profile_of(version), default_type=bundle.default_type)


def profile_of_index(connection: sqlite3.Connection, bundle: Bundle) -> Profile:
    """Return how a bundle is read, by the version that its index knows."""
    return profile_for(str(rows.get_meta(connection, "okf_version") or CURRENT), bundle)


def declared_version(store: DocumentStore) -> str:
    """Return the version that the root `index.md` of a bundle declares, or the current one. Source: OKF 0.2 §12."""
    ((_, data),) = store.read_many([ROOT_INDEX], max_bytes=MAX_BYTES)
    if isinstance(data, Exception):
        _raise_if_store_failed(data)
        return CURRENT
    parts = split(decode(data)[0])
    try:
        value = read_head(parts.head).values.get("okf_version") if parts else None
    except FrontmatterError:
        return CURRENT
    return value.strip() if isinstance(value, str) and value.strip() else CURRENT


def _read(connection: sqlite3.Connection, bundle: Bundle, profile: Profile, *, everything: bool) -> Iterator[Row]:
    versions: dict[str, str] = {}
    wanted = _noted(_changed(connection, everything=everything), versions)
    for path, data in bundle.store.read_many(wanted, max_bytes=MAX_BYTES + 1):
        version = versions.pop(path)
        if not isinstance(data, Exception):
            yield rows.row_of(path, data, version, profile)
        elif not isinstance(data, FileNotFoundError):  # It is gone since it was listed; the next listing says so.
            _raise_if_store_failed(data)
            yield rows.unreadable_row(path, reason_of(data))


def _changed(connection: sqlite3.Connection, *, everything: bool) -> Iterator[tuple[str, str]]:
    last = ""
    while found := connection.execute(_CHANGED, (last, everything, _BATCH)).fetchall():
        yield from found
        last = found[-1][0]


def _noted(found: Iterable[tuple[str, str]], versions: dict[str, str]) -> Iterator[str]:
    for path, version in found:
        versions[path] = version
        yield path


def _raise_if_store_failed(error: Exception) -> None:
    """Raise an error that is not about one document."""
    if isinstance(error, KnowledgeTimeoutError | KnowledgeStateError):
        raise error
    if isinstance(error, KnowledgeConnectionError) and error.state in ("unreachable", "missing", "untrusted"):
        raise error


def reason_of(error: Exception) -> str:
    """Return what an error says, without what only a developer may see."""
    return str(error).rstrip(".") if isinstance(error, KnowledgeError) else type(error).__name__


def _apply_staged(connection: sqlite3.Connection, started: float) -> None:
    # What was written since the walk began is newer than what the walk saw.
    connection.execute("DELETE FROM temp.staged WHERE path IN (SELECT path FROM main.document WHERE written >= ?)", (started,))
    cursor = connection.execute("SELECT * FROM temp.staged ORDER BY path")
    for batch in _portions(map(Row._make, cursor)):
        rows.put(connection, batch, new=False)


def _finish(connection: sqlite3.Connection, listing: _Listing, profile: Profile, started: float) -> None:
    connection.execute("DELETE FROM skipped")
    connection.executemany("INSERT INTO skipped VALUES (?, ?)", listing.skipped.items())
    rows.set_meta(connection, okf_version=profile.version, truncated=int(listing.truncated), refreshed=started)


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _portions(read: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield documents in portions that are worth a statement and do not fill the memory."""
    portion: list[Row] = []
    chars = 0
    for row in read:
        portion.append(row)
        chars += len(row.body)
        if len(portion) >= _PORTION or chars >= _PORTION_CHARS:
            yield portion
            portion, chars = [], 0
    if portion:
        yield portion
