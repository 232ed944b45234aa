"""What a database says about itself: tables, columns, keys, comments and bounded row counts, in as few words as will do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.guard.lexer import folded
from agentkernel_kb.near import meant
from agentkernel_kb.render import one_line

COUNTED_ROWS = 10_000
COUNTING_SECONDS = 2.0
_MAX_TYPE_CHARS = 200
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class TableName:
    """A table or view that there is.

    Attributes:
        name: Its name as the database has it, behind its schema and a dot where that is not the default one.
        label: The same as a statement has to write it.
        is_view: It is a view.
    """

    name: str
    label: str
    is_view: bool


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its type (`""` if it has none), and what is known about its values."""

    name: str
    kind: str
    is_nullable: bool = True
    comment: str = ""


@dataclass(frozen=True)
class Reference:
    """A foreign key: the columns, the label of the table that they refer to, and that table's columns."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...] = ()


class TableSource(Protocol):
    """An open connection that can be asked about the tables."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What it raises where one table cannot be described."""
        ...

    def names(self) -> Sequence[TableName]:
        """Return the tables and views that there are, in any order."""
        ...

    def quote(self, name: str) -> str:
        """Return a name as a statement has to write it."""
        ...

    def columns(self, table: TableName) -> Sequence[Column]:
        """Return the columns in their order."""
        ...

    def key(self, table: TableName) -> Sequence[str]:
        """Return the columns of the primary key, none if there is no key."""
        ...

    def references(self, table: TableName) -> Sequence[Reference]:
        """Return the foreign keys."""
        ...

    def comment(self, table: TableName) -> str:
        """Return the comment on the table, `""` if there is none."""
        ...

    def count(self, table: TableName, most: int) -> int | None:
        """Return how many rows it has, counted up to `most` or estimated beyond it; `None` where that is not told."""
        ...


@dataclass(frozen=True)
class TableFacts:
    """One table or view.

    Attributes:
        label: Its name as a statement has to write it.
        is_view: It is a view.
        columns: Its columns by name, each as a statement has to write it.
        line: Columns, types, keys and rows on one line, as a model reads it.
        fault: Why it cannot be described, `""` if it can.
    """

    label: str
    is_view: bool
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    line: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Catalogue:
    """The tables and views of a database.

    Attributes:
        described: Those that are described.
        names: All that may be read.
        missing: Names that were asked for and are not there.
    """

    described: tuple[TableFacts, ...] = ()
    names: tuple[TableName, ...] = ()
    missing: tuple[str, ...] = field(default=())

    def schema(self) -> dict[str, Any]:
        """Return the part of a backend's schema that tells about tables and views."""
        schema: dict[str, Any] = {"tables": {fact.label: fact.line for fact in self.described if not fact.is_view}}
        if views := {fact.label: fact.line for fact in self.described if fact.is_view}:
            schema["views"] = views
        if further := len(self.names) - len(self.described):
            schema["further_tables"] = f"{further} more tables or views are not described here"
        return schema

    def labels(self) -> list[str]:
        """Return the names of all that may be read, as statements have to write them."""
        return [table.label for table in self.names]

    def diagnostics(self) -> list[str]:
        """Return what is wrong with the database's tables, a sentence each."""
        absent = [f"Table {quoted(name)} is not in the database." for name in self.missing]
        return absent + [f"{fact.label} cannot be described: {fact.fault}" for fact in self.described if fact.fault]

    def near(self, name: str) -> list[str]:
        """Return the names of tables and columns that `name` may have been meant for, the nearest first."""
        known = {column.lower(): label for fact in self.described for column, label in fact.columns.items()}
        known |= {table.name.rpartition(".")[2].lower(): table.label for table in self.names}
        return meant(name.rpartition(".")[2].strip('"`[] '), known)


def quoted(name: str, reserved: Collection[str] = ()) -> str:
    """Return a name as a statement has to write it: in double quotes unless it is a plain word that is not `reserved`."""
    clean = one_line(name)
    is_plain = _PLAIN_NAME.fullmatch(clean) and clean.lower() not in reserved
    return clean if is_plain else '"' + clean.replace('"', '""') + '"'


def read_catalogue(source: TableSource, deadline: Deadline, *, only: Collection[str] | None, most: int) -> Catalogue:
    """Return what `source` says about its tables and views.

    Args:
        source: An open connection.
        deadline: When the look at the catalogue is over.
        only: Names of the tables and views to describe, `None` for all.
        most: Most tables and views to describe in full.

    Raises:
        Exception: One of `source.errors`: the catalogue cannot be read, or not in time.
    """
    tables = sorted(source.names(), key=lambda table: table.name)
    missing: list[str] = []
    if only is not None:
        known = {folded(table.name): table for table in tables} | {table.name: table for table in tables}
        asked = {name: known.get(name) or known.get(folded(name)) for name in only}
        missing = [name for name, table in asked.items() if table is None]
        tables = [table for table in asked.values() if table is not None]
    counting = Deadline(min(COUNTING_SECONDS, deadline.left() / 2))
    described = [_describe(source, table, deadline, counting) for table in tables[:most]]
    return Catalogue(tuple(described), tuple(tables), tuple(missing))


def _describe(source: TableSource, table: TableName, deadline: Deadline, counting: Deadline) -> TableFacts:
    try:
        columns = source.columns(table)
        parts = [_columns_and_keys(source, table, columns)]
        if not (table.is_view or counting.passed()):  # The rows of a view may cost any amount of work to count.
            parts += _rows_in_words(source.count(table, COUNTED_ROWS + 1))
        if comment := source.comment(table):
            parts.append(one_line(comment))
    except source.errors as error:
        if deadline.passed():
            raise
        fault = one_line(str(getattr(error, "orig", None) or error))[:200]
        return TableFacts(table.label, table.is_view, line=f"cannot be described: {fault}", fault=fault)
    labels = {column.name: source.quote(column.name) for column in columns}
    return TableFacts(table.label, table.is_view, labels, " | ".join(parts))


def _columns_and_keys(source: TableSource, table: TableName, columns: Sequence[Column]) -> str:
    """Return the inside of a CREATE TABLE, shortened: keys of one column stand with it, longer ones at the end."""

    def listed(names: Iterable[str]) -> str:
        return ", ".join(map(source.quote, names))

    def referred(reference: Reference) -> str:
        return f"REFERENCES {reference.table}" + (f"({listed(reference.referred)})" if reference.referred else "")

    key = list(source.key(table))
    references = source.references(table)
    single = {found.columns[0]: referred(found) for found in references if len(found.columns) == 1}
    words = [
        _column(column, source.quote(column.name), is_key=key == [column.name], reference=single.get(column.name, ""))
        for column in columns
    ]
    if len(key) > 1:
        words.append(f"PRIMARY KEY ({listed(key)})")
    words += [f"FOREIGN KEY ({listed(found.columns)}) {referred(found)}" for found in references if len(found.columns) > 1]
    return ", ".join(words)


def _column(column: Column, label: str, *, is_key: bool, reference: str) -> str:
    kind = one_line(column.kind)
    words = [label, kind if len(kind) <= _MAX_TYPE_CHARS else f"{kind[:_MAX_TYPE_CHARS]}…"]
    words.append("PRIMARY KEY" if is_key else "" if column.is_nullable else "NOT NULL")
    words.append(reference)
    if column.comment:
        words.append(f"({one_line(column.comment)})")
    return " ".join(filter(None, words))


def _rows_in_words(count: int | None) -> list[str]:
    if count is None:
        return []
    if count > COUNTED_ROWS + 1:
        return [f"about {count:,} rows"]
    if count > COUNTED_ROWS:
        return [f"more than {COUNTED_ROWS:,} rows"]
    return [f"{count:,} row" if count == 1 else f"{count:,} rows"]
