"""What a database says about itself: tables, columns, keys, comments and bounded row counts, in as few words as will do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentkernel_kb.render import one_line
from agentkernel_kb.sql.deadline import Deadline

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Inspector
    from sqlalchemy.engine.interfaces import ReflectedColumn, ReflectedForeignKeyConstraint

COUNTED_ROWS = 10_000
COUNTING_SECONDS = 2.0
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class TableFacts:
    """One table or view.

    Attributes:
        name: Its name as the database has it.
        is_view: It is a view.
        columns: Names of its columns.
        line: Columns, types, keys and rows on one line, as a model reads it.
        fault: Why it cannot be described, `""` if it can.
    """

    name: str
    is_view: bool
    columns: tuple[str, ...] = ()
    line: str = ""
    fault: str = ""


@dataclass(frozen=True)
class Catalogue:
    """The tables and views of a database.

    Attributes:
        described: Those that are described.
        names: Names of all that may be read.
        missing: Names that were asked for and are not there.
    """

    described: tuple[TableFacts, ...] = ()
    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = field(default=())

    def schema(self) -> dict[str, Any]:
        """Return the part of a backend's schema that tells about tables and views."""
        schema: dict[str, Any] = {"tables": {quoted(fact.name): fact.line for fact in self.described if not fact.is_view}}
        if views := {quoted(fact.name): fact.line for fact in self.described if fact.is_view}:
            schema["views"] = views
        if further := len(self.names) - len(self.described):
            schema["further_tables"] = f"{further} more tables or views are not described here"
        return schema

    def diagnostics(self) -> list[str]:
        """Return what is wrong with the database's tables, a sentence each."""
        absent = [f"Table {quoted(name)} is not in the database." for name in self.missing]
        return absent + [f"{quoted(fact.name)} cannot be described: {fact.fault}" for fact in self.described if fact.fault]

    def near(self, name: str) -> list[str]:
        """Return the names of tables and columns that `name` may have been meant for, the nearest first."""
        wanted = name.rpartition(".")[2].strip('"`[] ').lower()[:128]
        known = {known.lower(): known for fact in self.described for known in fact.columns}
        known |= {known.lower(): known for known in self.names}
        return [quoted(known[match]) for match in difflib.get_close_matches(wanted, list(known), n=3, cutoff=0.6)]


def quoted(name: str) -> str:
    """Return a name as a statement has to write it: in double quotes unless it is a plain word."""
    clean = one_line(name)
    return clean if _PLAIN_NAME.fullmatch(clean) else '"' + clean.replace('"', '""') + '"'


def read_catalogue(
    connection: Connection, deadline: Deadline, *, only: Collection[str] | None, hidden: Collection[str], most: int
) -> Catalogue:
    """Return what `connection` can be asked about its tables and views.

    Args:
        connection: An open connection.
        deadline: When the look at the catalogue is over.
        only: Names of the tables and views to describe, `None` for all.
        hidden: Names of tables that the engine keeps for itself.
        most: Most tables and views to describe in full.

    Raises:
        SQLAlchemyError: The catalogue cannot be read, or not in time.
    """
    from sqlalchemy import inspect

    inspector: Inspector = inspect(connection)
    views = set(inspector.get_view_names())
    names = sorted(views.union(inspector.get_table_names()).difference(hidden))
    missing: list[str] = []
    if only is not None:
        known = {name.lower(): name for name in names}
        missing = [name for name in only if name.lower() not in known]
        names = [known[name.lower()] for name in only if name.lower() in known]
    counting = Deadline(min(COUNTING_SECONDS, deadline.left() / 2))
    described = [_describe(connection, inspector, name, name in views, deadline, counting) for name in names[:most]]
    return Catalogue(tuple(described), tuple(names), tuple(missing))


def _describe(
    connection: Connection, inspector: Inspector, name: str, is_view: bool, deadline: Deadline, counting: Deadline
) -> TableFacts:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        columns = inspector.get_columns(name)
        parts = [_columns_and_keys(inspector, name, columns)]
        if not (is_view or counting.passed()):  # The rows of a view may cost any amount of work to count.
            parts.append(_row_count(connection, name))
        if connection.dialect.supports_comments and (comment := inspector.get_table_comment(name)["text"]):
            parts.append(one_line(comment))
    except SQLAlchemyError as error:
        if deadline.passed():
            raise
        fault = one_line(str(getattr(error, "orig", None) or error))[:200]
        return TableFacts(name, is_view, line=f"cannot be described: {fault}", fault=fault)
    return TableFacts(name, is_view, tuple(column["name"] for column in columns), " | ".join(parts))


def _columns_and_keys(inspector: Inspector, name: str, columns: Sequence[ReflectedColumn]) -> str:
    """Return the inside of a CREATE TABLE, shortened: keys of one column stand with it, longer ones at the end."""
    key = inspector.get_pk_constraint(name)["constrained_columns"]
    foreign = {tuple(found["constrained_columns"]): _reference(found) for found in inspector.get_foreign_keys(name)}
    words = [
        _column(column, is_key=key == [column["name"]], reference=foreign.get((column["name"],), "")) for column in columns
    ]
    if len(key) > 1:
        words.append(f"PRIMARY KEY ({_listed(key)})")
    words += [f"FOREIGN KEY ({_listed(own)}) {reference}" for own, reference in foreign.items() if len(own) > 1]
    return ", ".join(words)


def _column(column: ReflectedColumn, *, is_key: bool, reference: str) -> str:
    from sqlalchemy.types import NullType

    kind = column["type"]
    words = [quoted(column["name"]), "" if isinstance(kind, NullType) else one_line(str(kind))]
    words.append("PRIMARY KEY" if is_key else "" if column["nullable"] else "NOT NULL")
    words.append(reference)
    if comment := column.get("comment"):
        words.append(f"({one_line(comment)})")
    return " ".join(filter(None, words))


def _reference(key: ReflectedForeignKeyConstraint) -> str:
    referred = _listed(key["referred_columns"])
    return f"REFERENCES {quoted(key['referred_table'])}" + (f"({referred})" if referred else "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def _row_count(connection: Connection, name: str) -> str:
    table = connection.dialect.identifier_preparer.quote(name)
    bounded = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {COUNTED_ROWS + 1}) AS counted"  # noqa: S608 - quoted above
    count = connection.exec_driver_sql(bounded).scalar_one()
    if count > COUNTED_ROWS:
        return f"more than {COUNTED_ROWS:,} rows"
    return f"{count:,} row" if count == 1 else f"{count:,} rows"
