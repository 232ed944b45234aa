"""Questions that the index answers by itself: which documents there are, what stands in a folder, what is wrong."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from agentkernel_kb.okf import rows, schema
from agentkernel_kb.okf.model import DiagnosticCode, OKFBundle, OKFDiagnostic
from agentkernel_kb.okf.records import SUMMARY_COLUMNS, Summary
from agentkernel_kb.okf.versions import CURRENT

MOST_DIAGNOSTICS = 100
_MOST_FILES = 100
_LAST = "\U0010ffff"

# The columns are a constant.
_WITH_BODY = (
    f"SELECT {SUMMARY_COLUMNS}, coalesce(body.text, '') "  # noqa: S608
    "FROM document LEFT JOIN body USING (id) WHERE document.id = ?"
)
_IN_FOLDER = f"SELECT {SUMMARY_COLUMNS} FROM document WHERE folder = ? AND kind = ? ORDER BY path LIMIT ?"  # noqa: S608
_AT_PATH = f"SELECT {SUMMARY_COLUMNS} FROM document WHERE path = ? AND kind = ?"  # noqa: S608
_ANYTHING_IN = "SELECT 1 FROM document WHERE (folder = ? OR (folder > ? AND folder < ?)) AND kind IN (1, 2) LIMIT 1"
_BENEATH_NFC = "SELECT path FROM document WHERE nfc > ? AND nfc < ? AND kind IN (1, 2) ORDER BY nfc LIMIT 1"
_TYPES = "SELECT type, count(*) FROM document WHERE kind = 1 GROUP BY type_key, type ORDER BY 2 DESC, 1"


class Known(NamedTuple):
    """A document of the index."""

    path: str
    kind: int
    version: str


def known(connection: sqlite3.Connection, paths: Iterable[str]) -> Known | None:
    """Return the first document at one of `paths`, or the one whose path differs from it only in its Unicode form."""
    listed = list(paths)
    for path in listed:
        found = connection.execute("SELECT path, kind, version FROM document WHERE path = ?", (path,)).fetchone()
        if found:
            return Known(*found)
    for path in listed:
        if not path.isascii():
            composed = unicodedata.normalize("NFC", path)
            found = connection.execute(
                "SELECT path, kind, version FROM document WHERE nfc = ? ORDER BY path LIMIT 1", (composed,)
            ).fetchone()
            if found:
                return Known(*found)
    return None


def summaries(connection: sqlite3.Connection, numbers: Iterable[int]) -> list[tuple[Summary, str]]:
    """Return what the index says of concepts, with their bodies, in the order of their numbers given."""
    found = (connection.execute(_WITH_BODY, (number,)).fetchone() for number in numbers)
    return [(Summary(*row[:-1]), row[-1]) for row in found if row]


def folder_at(connection: sqlite3.Connection, places: Iterable[str]) -> str | None:
    """Return the first of `places` that is a folder with documents, or the one that differs from it only in Unicode form."""
    listed = list(places)
    for place in listed:
        if not place or connection.execute(_ANYTHING_IN, (place, f"{place}/", f"{place}/{_LAST}")).fetchone():
            return place
    for place in listed:
        if not place.isascii():
            composed = unicodedata.normalize("NFC", place)
            found = connection.execute(_BENEATH_NFC, (f"{composed}/", f"{composed}/{_LAST}")).fetchone()
            if found:
                return "/".join(found[0].split("/")[: place.count("/") + 1])
    return None


def index_at(connection: sqlite3.Connection, folder: str) -> tuple[str, str] | None:
    """Return path and text of the `index.md` of a folder."""
    statement = (
        "SELECT path, coalesce(body.text, '') FROM document LEFT JOIN body USING (id) "
        "WHERE folder = ? AND kind = ? ORDER BY path LIMIT 1"
    )
    return connection.execute(statement, (folder, schema.INDEX)).fetchone()


def concepts_in(connection: sqlite3.Connection, folder: str, limit: int) -> list[Summary]:
    """Return the concepts that stand in a folder, by path."""
    return [Summary(*row) for row in connection.execute(_IN_FOLDER, (folder, schema.CONCEPT, limit))]


def concept_at(connection: sqlite3.Connection, path: str) -> Summary | None:
    """Return the concept at a path."""
    row = connection.execute(_AT_PATH, (path, schema.CONCEPT)).fetchone()
    return Summary(*row) if row else None


def folders_in(connection: sqlite3.Connection, folder: str, limit: int) -> list[str]:
    """Return the folders in a folder that have concepts or an index anywhere beneath them, by path.

    The index over folders is stepped through from one to the next, however many documents stand in them.
    """
    prefix = f"{folder}/" if folder else ""
    found: list[str] = []
    after = prefix
    while len(found) < limit:
        (place,) = connection.execute(
            "SELECT min(folder) FROM document WHERE kind IN (1, 2) AND folder > ? AND folder < ?", (after, f"{prefix}{_LAST}")
        ).fetchone()
        if place is None:
            break
        child = prefix + place[len(prefix) :].partition("/")[0]
        found.append(child)
        after = f"{child}/{_LAST}"
    return found


def count_in(connection: sqlite3.Connection, folder: str) -> int:
    """Return how many concepts stand in a folder itself."""
    statement = "SELECT count(*) FROM document WHERE folder = ? AND kind = ?"
    return int(connection.execute(statement, (folder, schema.CONCEPT)).fetchone()[0])


def logs(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the paths of the logs that the bundle keeps."""
    return frozenset(path for (path,) in connection.execute("SELECT path FROM document WHERE kind = ?", (schema.LOG,)))


def version_of(connection: sqlite3.Connection) -> str:
    """Return the version of the format that the bundle declares."""
    return str(rows.get_meta(connection, "okf_version") or CURRENT)


def concept_count(connection: sqlite3.Connection) -> int:
    """Return how many concepts there are."""
    return int(connection.execute("SELECT count(*) FROM document WHERE kind = 1").fetchone()[0])


def bundle(connection: sqlite3.Connection, notes: list[OKFDiagnostic], *, known_version: bool, max_concepts: int) -> OKFBundle:
    """Return what the bundle holds in all.

    Args:
        connection: One that reads.
        notes: What else went wrong.
        known_version: Whether the version that the bundle declares is one that is known.
        max_concepts: For a message.
    """
    types = connection.execute(_TYPES).fetchall()
    truncated = bool(rows.get_meta(connection, "truncated"))
    version = version_of(connection)
    notes = list(notes)
    if truncated:
        message = f"There are more documents than max_concepts ({max_concepts:,}); only the first ones by path are known."
        notes.append(OKFDiagnostic("", DiagnosticCode.TRUNCATED, message))
    if not known_version:
        message = f"It declares okf_version {version[:40]!r}, which is not known; it is read as {CURRENT}."
        notes.append(OKFDiagnostic("index.md", DiagnosticCode.VERSION_MISMATCH, message))
    (count,) = connection.execute("SELECT (SELECT count(*) FROM fault) + (SELECT count(*) FROM skipped)").fetchone()
    return OKFBundle(
        version,
        sum(count for _, count in types),
        tuple(name for name, _ in types),
        tuple(folders_in(connection, "", 200)),
        *(_files(connection, kind) for kind in (schema.INDEX, schema.LOG)),
        diagnostic_count=count + len(notes),
        diagnostics=(*notes, *diagnostics(connection)),
        truncated=truncated,
    )


def diagnostics(connection: sqlite3.Connection) -> list[OKFDiagnostic]:
    """Return the first things that are wrong with documents, those that cost a document first."""
    found = [
        OKFDiagnostic(path, DiagnosticCode.UNREADABLE, f"It is passed over: {reason}.")
        for path, reason in connection.execute("SELECT path, reason FROM skipped ORDER BY path LIMIT ?", (MOST_DIAGNOSTICS,))
    ]
    statement = (
        "SELECT fault.path, code, message, line FROM fault JOIN document USING (path) "
        "ORDER BY document.kind <> 0, fault.path, number LIMIT ?"
    )
    for path, code, message, line in connection.execute(statement, (MOST_DIAGNOSTICS,)):
        found.append(OKFDiagnostic(path, DiagnosticCode(code), message, line))
    return found[:MOST_DIAGNOSTICS]


def _files(connection: sqlite3.Connection, kind: int) -> tuple[str, ...]:
    statement = "SELECT path FROM document WHERE kind = ? ORDER BY path LIMIT ?"
    return tuple(path for (path,) in connection.execute(statement, (kind, _MOST_FILES)))
