"""Tables as SQLAlchemy's inspector sees them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from agentkernel_kb.sql.catalogue import Column, Reference, TableName, quoted

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Inspector


class ReflectedTables:
    """A `TableSource` on a SQLAlchemy connection.

    Args:
        connection: An open connection.
        hidden: Names of tables that the engine keeps for itself.
    """

    def __init__(self, connection: Connection, hidden: Collection[str]) -> None:
        from sqlalchemy import inspect

        self._connection = connection
        self._inspector: Inspector = inspect(connection)
        self._hidden = hidden

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What SQLAlchemy raises."""
        from sqlalchemy.exc import SQLAlchemyError

        return (SQLAlchemyError,)

    def names(self) -> Sequence[TableName]:
        """Return the tables and views of the default schema."""
        views = set(self._inspector.get_view_names())
        names = views.union(self._inspector.get_table_names()).difference(self._hidden)
        return [TableName(name, self.quote(name), name in views) for name in names]

    def quote(self, name: str) -> str:
        """Return a name as a statement has to write it."""
        return quoted(name, self._connection.dialect.identifier_preparer.reserved_words)

    def columns(self, table: TableName) -> Sequence[Column]:
        """Return the columns in their order."""
        from sqlalchemy.types import NullType

        return [
            Column(
                column["name"],
                "" if isinstance(column["type"], NullType) else str(column["type"]),
                column["nullable"],
                column.get("comment") or "",
            )
            for column in self._inspector.get_columns(table.name)
        ]

    def key(self, table: TableName) -> Sequence[str]:
        """Return the columns of the primary key."""
        return self._inspector.get_pk_constraint(table.name)["constrained_columns"]

    def references(self, table: TableName) -> Sequence[Reference]:
        """Return the foreign keys."""
        return [
            Reference(tuple(key["constrained_columns"]), self.quote(key["referred_table"]), tuple(key["referred_columns"]))
            for key in self._inspector.get_foreign_keys(table.name)
        ]

    def comment(self, table: TableName) -> str:
        """Return the comment on the table."""
        if not self._connection.dialect.supports_comments:
            return ""
        return self._inspector.get_table_comment(table.name)["text"] or ""

    def count(self, table: TableName, most: int) -> int:
        """Return how many rows it has, counted up to `most`."""
        name = self._connection.dialect.identifier_preparer.quote(table.name)
        bounded = f"SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT {most}) AS counted"  # noqa: S608 - quoted above
        return self._connection.exec_driver_sql(bounded).scalar_one()
