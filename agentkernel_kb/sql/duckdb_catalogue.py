"""Tables as DuckDB's own catalogue functions tell about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentkernel_kb.sql.catalogue import Column, Reference, TableName, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DEFAULT_SCHEMA = "main"

_NAMES = """
SELECT schema_name, table_name, comment, false FROM duckdb_tables() WHERE NOT internal AND database_name = current_database()
UNION ALL
SELECT schema_name, view_name, comment, true FROM duckdb_views() WHERE NOT internal AND database_name = current_database()
"""
_RESERVED = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
_COLUMNS = """
SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = ? AND table_name = ? ORDER BY column_index
"""
_CONSTRAINTS = """
SELECT constraint_type, constraint_column_names, referenced_table, referenced_column_names FROM duckdb_constraints()
WHERE database_name = current_database() AND schema_name = ? AND table_name = ?
AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') ORDER BY constraint_index
"""


class DuckDBTables:
    """A `TableSource` on a DuckDB connection: tables of all schemas, the default one's by their name alone.

    Args:
        connection: An open connection.
    """

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self._parts: dict[str, tuple[str, str]] = {}
        self._comments: dict[str, str] = {}
        self._reserved = frozenset(word for (word,) in self._rows(_RESERVED))

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the driver raises."""
        import duckdb

        return (duckdb.Error,)

    def names(self) -> Sequence[TableName]:
        """Return the tables and views of all schemas."""
        found: list[TableName] = []
        for schema, name, comment, is_view in self._rows(_NAMES):
            parts = (name,) if schema == DEFAULT_SCHEMA else (schema, name)
            table = TableName(".".join(parts), ".".join(map(self.quote, parts)), is_view)
            self._parts[table.name] = (schema, name)
            self._comments[table.name] = comment or ""
            found.append(table)
        return found

    def quote(self, name: str) -> str:
        """Return a name as a statement has to write it."""
        return quoted(name, self._reserved)

    def columns(self, table: TableName) -> Sequence[Column]:
        """Return the columns in their order."""
        rows = self._rows(_COLUMNS, *self._parts[table.name])
        return [Column(name, kind, is_nullable, comment or "") for name, kind, is_nullable, comment in rows]

    def key(self, table: TableName) -> Sequence[str]:
        """Return the columns of the primary key."""
        constraints = self._rows(_CONSTRAINTS, *self._parts[table.name])
        keys: list[list[str]] = [columns for kind, columns, *_ in constraints if kind == "PRIMARY KEY"]
        return keys[0] if keys else []

    def references(self, table: TableName) -> Sequence[Reference]:
        """Return the foreign keys; DuckDB does not name the schema of what they refer to, which is the table's own."""
        schema, name = self._parts[table.name]
        prefix = "" if schema == DEFAULT_SCHEMA else f"{self.quote(schema)}."
        return [
            Reference(tuple(columns), prefix + self.quote(referred), tuple(referred_columns))
            for kind, columns, referred, referred_columns in self._rows(_CONSTRAINTS, schema, name)
            if kind == "FOREIGN KEY"
        ]

    def comment(self, table: TableName) -> str:
        """Return the comment on the table."""
        return self._comments[table.name]

    def count(self, table: TableName, most: int) -> int:
        """Return how many rows it has, counted up to `most`."""
        name = ".".join('"' + part.replace('"', '""') + '"' for part in self._parts[table.name])
        return self._rows(f"SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT {most})")[0][0]  # noqa: S608 - quoted above

    def _rows(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()
