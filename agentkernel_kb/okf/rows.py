"""What the index holds of a document: made of its bytes, put into the tables, taken out of them."""

from __future__ import annotations

import json
import re
import sqlite3
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from agentkernel_kb.lexical.text import fold, index_text
from agentkernel_kb.okf import links, schema
from agentkernel_kb.okf.frontmatter import FrontmatterError, read_head, split
from agentkernel_kb.okf.model import DiagnosticCode, OKFConcept, OKFDiagnostic, TrustTier
from agentkernel_kb.okf.parser import decode, parse_document
from agentkernel_kb.okf.paths import INDEX, folder_of, has_id, name_of, reserved_kind
from agentkernel_kb.okf.times import read_instant
from agentkernel_kb.okf.versions import CURRENT, Profile

MAX_BYTES = 4 << 20
"""Most bytes of a document that are read; what comes after cannot be found or fetched, and a diagnostic says so."""

ALWAYS_STALE = -1e18
"""Deadline of a concept whose `stale_after` cannot be read."""

TAGS_JOINED = "\n"

_DATE_HEADING = re.compile(r"^##(?!#)[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?!\d)", re.ASCII)
_MOST_FAULTS = 20
_TOGETHER = 100


class Row(NamedTuple):
    """A document as the index holds it; `faults` and `edges` are JSON."""

    path: str
    kind: int
    version: str
    type: str
    title: str
    description: str
    tags: str
    trust: str
    status: str
    deadline: float | None
    body: str
    edges: str
    faults: str


_WORDS = "rowid, title, tags, type, description, body, every"
STAGED_COLUMNS = ", ".join(Row._fields)


def type_key(text: str) -> str:
    """Return the form in which types and tags are compared: folded, blanks collapsed."""
    return " ".join(fold(text).split())


def row_of(path: str, data: bytes, version: str, profile: Profile) -> Row:
    """Return the row of a document, which is a concept, a reserved document or a faulty one. Never raises.

    Args:
        path: Its path.
        data: Its bytes; more than `MAX_BYTES` are one byte more than that.
        version: What the store calls this state of it.
        profile: How the bundle is read.
    """
    oversized = len(data) > MAX_BYTES
    noted = [_oversized(path)] if oversized else []
    data = data[:MAX_BYTES]
    reserved = reserved_kind(path)
    if reserved:
        text = decode(data)[0].removeprefix("\ufeff")
        kind = schema.INDEX if reserved == "index" else schema.LOG
        return _row(
            path, kind, version, noted + _faults_of_reserved(path, text, reserved), body=text if reserved == "index" else ""
        )
    if not has_id(path):
        noted.append(OKFDiagnostic(path[:200], DiagnosticCode.UNUSABLE_PATH, "Its path is too long to be an id; skipped."))
        return _row(path, schema.FAULTY, version, noted)
    parsed = parse_document(path, data, profile)
    noted += parsed.diagnostics
    return _row(path, schema.FAULTY, version, noted) if parsed.concept is None else _concept_row(parsed.concept, version, noted)


def unreadable_row(path: str, reason: str) -> Row:
    """Return the row of a document that the store did not give; it is asked for again at the next refresh."""
    return _row(path, schema.FAULTY, "", [OKFDiagnostic(path, DiagnosticCode.UNREADABLE, f"It can't be read: {reason}.")])


def _oversized(path: str) -> OKFDiagnostic:
    message = f"It has more than {MAX_BYTES >> 20} MiB; what comes after is not read."
    return OKFDiagnostic(path, DiagnosticCode.OVERSIZED, message)


def _concept_row(concept: OKFConcept, version: str, noted: list[OKFDiagnostic]) -> Row:
    deadline = concept.deadline.timestamp() if concept.deadline else ALWAYS_STALE if concept.stale_after else None
    found = links.edges(concept)
    return Row(
        concept.path,
        schema.CONCEPT,
        version,
        concept.type,
        concept.title,
        concept.description,
        TAGS_JOINED.join(concept.tags),
        concept.trust.value,
        concept.status,
        deadline,
        concept.body,
        json.dumps(found) if found else "",
        _faults_json(noted),
    )


def _row(path: str, kind: int, version: str, noted: list[OKFDiagnostic], *, body: str = "") -> Row:
    return Row(path, kind, version, "", "", "", "", TrustTier.UNVERIFIED.value, "", None, body, "", _faults_json(noted))


def _faults_json(noted: Iterable[OKFDiagnostic]) -> str:
    faults = [(one.code.value, one.line, one.message) for one in noted][:_MOST_FAULTS]
    return json.dumps(faults) if faults else ""


def _faults_of_reserved(path: str, text: str, reserved: str) -> list[OKFDiagnostic]:
    """Return what is wrong with an index or a log. Source: OKF 0.2 §8, §9, §12."""
    parts = split(text)
    if reserved == "log":
        return list(_faults_of_log(path, text))
    if parts is None:
        return []
    if path != INDEX:
        message = "Only the index.md at the root of a bundle may have a frontmatter."
        return [OKFDiagnostic(path, DiagnosticCode.INDEX_FRONTMATTER, message, 1)]
    try:
        version = read_head(parts.head).values.get("okf_version")
    except FrontmatterError as error:
        return [
            OKFDiagnostic(
                path, DiagnosticCode.UNPARSEABLE_FRONTMATTER, f"The bundle's version is unknown: {error}.", error.line
            )
        ]
    if isinstance(version, list | dict):
        message = f"Its okf_version is no text; the bundle is read as {CURRENT}."
        return [OKFDiagnostic(path, DiagnosticCode.INVALID_VALUE, message, 1)]
    return []


def _faults_of_log(path: str, text: str) -> Iterator[OKFDiagnostic]:
    for heading in _DATE_HEADING.finditer(text):
        if not _begins_with_date(heading[1]):
            message = f"A heading of a log is a date such as 2026-05-22, not {heading[1][:40]!r}."
            yield OKFDiagnostic(path, DiagnosticCode.LOG_HEADING, message, text.count("\n", 0, heading.start()) + 1)


def _begins_with_date(heading: str) -> bool:
    """Tell whether a heading of a log is a date; what stands behind it, as in `2026-05-22: Summary`, is tolerated."""
    found = _ISO_DATE.match(heading)
    return found is not None and read_instant(found[0]).moment is not None


def put(connection: sqlite3.Connection, rows: Sequence[Row], *, new: bool, written: float | None = None) -> None:
    """Put documents into the tables, each in place of the one at its path.

    Args:
        connection: One in a transaction.
        rows: The documents, their paths all different.
        new: The tables have none of these paths.
        written: When they were written by this library; `None` where they were found.
    """
    if not new:
        take_out(connection, [row.path for row in rows])
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM document").fetchone()
    numbered = list(enumerate(rows, last + 1))
    insert = _insert_together if new else _insert_singly
    insert(connection, "OR FAIL INTO document", [_document(number, row, written or 0.0) for number, row in numbered])
    insert(connection, "OR FAIL INTO body", [(number, row.body) for number, row in numbered if row.body])
    insert(connection, f"INTO words({_WORDS})", [_words(number, row) for number, row in numbered if row.kind == schema.CONCEPT])
    insert(connection, "OR IGNORE INTO tag", list(_tags(numbered)))
    insert(connection, "OR FAIL INTO link", list(_links(numbered)))
    insert(connection, "OR FAIL INTO fault", list(_faults(rows)))


def _insert_singly(connection: sqlite3.Connection, into: str, values: list[tuple[object, ...]]) -> None:
    if values:
        connection.executemany(f"INSERT {into} VALUES {_marks(values[0])}", values)  # noqa: S608 - names of tables


def _insert_together(connection: sqlite3.Connection, into: str, values: list[tuple[object, ...]]) -> None:
    """Insert many rows with few statements, as each one has a price of its own.

    `OR FAIL` spares a savepoint, at which the full-text index writes out what it has gathered; its own rows are written out at
    each statement, which keeps little of them in memory and is worth it from about a hundred on.
    """
    width = len(values[0]) if values else 1
    together = min(_TOGETHER, connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // width)
    whole = len(values) - len(values) % together
    for start in range(0, whole, together):
        some = values[start : start + together]
        marks = ", ".join([_marks(some[0])] * together)
        connection.execute(f"INSERT {into} VALUES {marks}", list(chain.from_iterable(some)))  # noqa: S608 - names of tables
    _insert_singly(connection, into, values[whole:])


def _marks(row: tuple[object, ...]) -> str:
    return f"({', '.join('?' * len(row))})"


def take_out(connection: sqlite3.Connection, paths: Iterable[str]) -> int:
    """Take documents out of the tables and return how many there were."""
    count = 0
    for path in paths:
        found = connection.execute(
            "SELECT document.id, kind, title, tags, type, description, coalesce(body.text, '') "
            "FROM document LEFT JOIN body USING (id) WHERE path = ?",
            (path,),
        ).fetchone()
        if found is None:
            continue
        number, kind, title, tags, kind_of_thing, description, body = found
        if kind == schema.CONCEPT:  # An index without its own texts is told what to forget.
            connection.execute(
                f"INSERT INTO words(words, {_WORDS}) VALUES ('delete', ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - names of columns
                (number, *_indexed(path, title, tags, kind_of_thing, description, body)),
            )
        connection.execute("DELETE FROM body WHERE id = ?", (number,))
        connection.execute("DELETE FROM tag WHERE document = ?", (number,))
        connection.execute("DELETE FROM link WHERE source = ?", (number,))
        connection.execute("DELETE FROM fault WHERE path = ?", (path,))
        connection.execute("DELETE FROM document WHERE id = ?", (number,))
        count += 1
    return count


def set_meta(connection: sqlite3.Connection, **values: object) -> None:
    """Remember facts about the whole bundle."""
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))


def get_meta(connection: sqlite3.Connection, key: str) -> object:
    """Return a fact about the whole bundle, `None` where it is not known."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def _document(number: int, row: Row, written: float) -> tuple[object, ...]:
    nfc = None if row.path.isascii() else unicodedata.normalize("NFC", row.path)
    return (
        number,
        row.path,
        folder_of(row.path),
        row.kind,
        row.version,
        written,
        nfc,
        row.type,
        type_key(row.type),
        row.title,
        row.description,
        row.tags,
        row.trust,
        row.status,
        row.deadline,
    )


def _words(number: int, row: Row) -> tuple[object, ...]:
    return (number, *_indexed(row.path, row.title, row.tags, row.type, row.description, row.body))


def _indexed(path: str, title: str, tags: str, kind: str, description: str, body: str) -> tuple[str, ...]:
    return (
        index_text(title or name_of(path)),
        index_text(tags),
        index_text(kind),
        index_text(description),
        index_text(body),
        schema.EVERY,
    )


def _tags(numbered: Iterable[tuple[int, Row]]) -> Iterator[tuple[str, int]]:
    for number, row in numbered:
        if row.tags:
            for tag in row.tags.split(TAGS_JOINED):
                yield type_key(tag), number


def _links(numbered: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, int, int, str]]:
    for number, row in numbered:
        if row.edges:
            for index, paths in enumerate(json.loads(row.edges)):
                for place, target in enumerate(paths):
                    yield number, index, place, target


def _faults(rows: Iterable[Row]) -> Iterator[tuple[str, int, str, int | None, str]]:
    for row in rows:
        if row.faults:
            for index, (code, line, message) in enumerate(json.loads(row.faults)):
                yield row.path, index, code, line, message


def now() -> float:
    """Return the time that all processes of this machine agree on, in POSIX seconds."""
    return time.time()
