"""What the server says about its catalogs, schemas, tables and columns, asked for in statements of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.guard.trino import TRINO
from agentkernel_kb.model import Record, RecordPage
from agentkernel_kb.render import one_line
from agentkernel_kb.starburst.failures import failure_in
from agentkernel_kb.starburst.names import identifier, literal, parts_of, path_of, qualified, written

Ask = Callable[[str, int], Sequence[Sequence[Any]]]
"""Runs one of our own statements and returns at most so many rows."""

NOT_FOUND = frozenset(
    ["CATALOG_NOT_FOUND", "SCHEMA_NOT_FOUND", "TABLE_NOT_FOUND", "MISSING_CATALOG_NAME", "MISSING_SCHEMA_NAME"]
)
_HIDDEN_CATALOGS = frozenset(parts[0] for parts in TRINO.hidden_schemas)  # Statements may not read them either.
_MAX_TYPE_CHARS = 200
_MAX_COMMENT_CHARS = 200
_MAX_PARTS = 3
_MAX_PATH_CHARS = 1_000


class Column(NamedTuple):
    """A column: its name, its type, and the comment on it, `""` if there is none."""

    name: str
    kind: str
    comment: str

    @property
    def line(self) -> str:
        """Name, type and comment, as a model reads them."""
        kind = self.kind if len(self.kind) <= _MAX_TYPE_CHARS else f"{self.kind[:_MAX_TYPE_CHARS]}…"
        return one_line(f"{written(self.name)} {kind}{_in_brackets(self.comment)}")


def columns_of(table: Sequence[str], ask: Ask, most: int) -> list[Column]:
    """Return the columns of a table, named by its catalog, schema and name."""
    rows = ask(f"SHOW COLUMNS FROM {qualified(table)}", most)
    return [Column(str(row[0]), str(row[1]), str(row[3] or "")) for row in rows]


def comment_on(table: Sequence[str], ask: Ask) -> str:
    """Return the comment on a table, `""` where there is none or it cannot be had."""
    return _comments(table[0], table[1], [table[2]], ask).get(table[2], "")


def entries_at(path: str, limit: int, ask: Ask, source: str) -> RecordPage:
    """Return what stands at a path: catalogs at the root, then schemas, tables, columns; nothing at an unknown one.

    Args:
        path: Names with slashes between them, as entries show them.
        limit: Most entries.
        ask: Runs a statement.
        source: The backend's name.
    """
    parts = parts_of(path)
    if len(parts) > _MAX_PARTS or len(path) > _MAX_PATH_CHARS or not _can_be_sent(path) or parts[:1] in _HIDDEN:
        return RecordPage()
    try:
        entries = _LEVELS[len(parts)](parts, limit + 1, ask)
    except KnowledgeError as error:
        if failure_in(error).name in NOT_FOUND:
            return RecordPage()
        raise
    records = [_record(text, kind, source) for text, kind in entries]
    return RecordPage(records[:limit], more=len(records) > limit)


_HIDDEN = [[name] for name in sorted(_HIDDEN_CATALOGS)]
_Entries = list[tuple[str, str]]


def _record(text: str, kind: str, source: str) -> Record:
    return {"text": text, "metadata": {"kind": kind, "source": source}}


def _can_be_sent(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _catalogs(parts: Sequence[str], most: int, ask: Ask) -> _Entries:
    rows = ask("SHOW CATALOGS", most + len(_HIDDEN_CATALOGS))
    return [(f"{path_of([row[0]])}/", "folder") for row in rows if row[0] not in _HIDDEN_CATALOGS]


def _schemas(parts: Sequence[str], most: int, ask: Ask) -> _Entries:
    rows = ask(f"SHOW SCHEMAS FROM {identifier(parts[0])}", most)
    return [(f"{path_of([parts[0], row[0]])}/", "folder") for row in rows]


def _tables(parts: Sequence[str], most: int, ask: Ask) -> _Entries:
    catalog, schema = parts
    names = [str(row[0]) for row in ask(f"SHOW TABLES FROM {qualified(parts)}", most)]
    comments = _comments(catalog, schema, names, ask)
    return [(f"{path_of([*parts, name])}/{_in_brackets(comments.get(name, ''))}", "folder") for name in names]


def _columns(parts: Sequence[str], most: int, ask: Ask) -> _Entries:
    return [(column.line, "column") for column in columns_of(parts, ask, most)]


_LEVELS = (_catalogs, _schemas, _tables, _columns)


def _comments(catalog: str, schema: str, names: Sequence[str], ask: Ask) -> dict[str, str]:
    if not names:
        return {}
    listed = ", ".join(map(literal, names))
    statement = (  # Of literals that are quoted by the one rule that Trino has.
        "SELECT table_name, comment FROM system.metadata.table_comments "  # noqa: S608
        f"WHERE catalog_name = {literal(catalog)} AND schema_name = {literal(schema)} AND table_name IN ({listed})"
    )
    try:
        return {str(row[0]): str(row[1]) for row in ask(statement, len(names)) if row[1]}
    except KnowledgeError:  # The catalog of the system may be closed to this user; names alone will do.
        return {}


def _in_brackets(comment: str) -> str:
    text = one_line(comment).strip()
    text = text if len(text) <= _MAX_COMMENT_CHARS else f"{text[:_MAX_COMMENT_CHARS]}…"
    return f" ({text})" if text else ""
