"""Tables as PostgreSQL's own catalogue tells about them, in few questions however many tables there are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agentkernel_kb.guard.lexer import folded
from agentkernel_kb.sql.catalogue import Column, Reference, TableName, quoted

if TYPE_CHECKING:
    from psycopg import Connection

DEFAULT_SCHEMA = "public"
_TABLES_AT_ONCE = 64
_ENUM_LABELS = 20

_NAMES = """
SELECT c.oid::int8, n.nspname, c.relname, c.relkind IN ('m', 'v'), obj_description(c.oid, 'pg_class'), c.reltuples::int8,
    c.relkind IN ('f', 'v') OR c.relrowsecurity OR NOT has_table_privilege(c.oid, 'SELECT'),
    c.relispartition OR EXISTS (
        SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
    )
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'
AND c.relpersistence <> 't' AND (%s OR has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT'))
"""
_RESERVED = "SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')"
_COLUMNS = """
SELECT a.attrelid::int8, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
    col_description(a.attrelid, a.attnum), CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod) END, (
        SELECT array_agg(quote_literal(e.enumlabel) ORDER BY e.enumsortorder)::text[] FROM (
            SELECT enumlabel, enumsortorder FROM pg_enum WHERE enumtypid = CASE t.typelem WHEN 0 THEN t.oid ELSE t.typelem END
            ORDER BY enumsortorder LIMIT %s
        ) AS e
    )
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
WHERE a.attrelid = ANY (%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
AND (%s OR has_column_privilege(a.attrelid, a.attnum, 'SELECT'))
ORDER BY a.attrelid, a.attnum
"""
_KEYS = """
SELECT k.conrelid::int8, k.contype::text, (
        SELECT array_agg(a.attname ORDER BY place)::text[] FROM unnest(k.conkey) WITH ORDINALITY AS key (number, place)
        JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = key.number
    ), n.nspname, r.relname, (
        SELECT array_agg(a.attname ORDER BY place)::text[] FROM unnest(k.confkey) WITH ORDINALITY AS key (number, place)
        JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = key.number
    )
FROM pg_constraint AS k LEFT JOIN pg_class AS r ON r.oid = k.confrelid LEFT JOIN pg_namespace AS n ON n.oid = r.relnamespace
WHERE k.conrelid = ANY (%s::oid[]) AND k.contype IN ('f', 'p') ORDER BY k.conname
"""


class _Table(NamedTuple):
    number: int
    parts: tuple[str, str]
    comment: str
    estimate: int
    is_uncounted: bool


class PostgresTables:
    """A `TableSource` on a connection: what the login may read, in all schemas; tables of `public` by their name alone.

    Partitions and what extensions keep for themselves are left out unless they are asked for.

    Args:
        connection: The driver's connection, in a transaction.
        asked: Names that are asked for, `None` for all.
        of_all_roles: List also what the login itself may not read.
    """

    def __init__(self, connection: Connection[Any], asked: Collection[str] | None, *, of_all_roles: bool) -> None:
        self._connection = connection
        self._asked = frozenset(asked or ()) | frozenset(map(folded, asked or ()))
        self._of_all_roles = of_all_roles
        self._tables: dict[str, _Table] = {}
        self._columns: dict[int, list[Column]] = {}
        self._keys: dict[int, list[str]] = {}
        self._references: dict[int, list[Reference]] = {}
        self._reserved = frozenset(word for (word,) in self._rows(_RESERVED))

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the driver raises."""
        import psycopg

        return (psycopg.Error,)

    def names(self) -> Sequence[TableName]:
        """Return the tables and views of all schemas."""
        found: list[TableName] = []
        for number, schema, name, is_view, comment, estimate, is_uncounted, is_part in self._rows(_NAMES, self._of_all_roles):
            table = TableName(".".join(_parts(schema, name)), self._label(schema, name), is_view)
            if is_part and table.name not in self._asked:
                continue
            self._tables[table.name] = _Table(number, (schema, name), comment or "", estimate, is_uncounted)
            found.append(table)
        return found

    def _label(self, schema: str, name: str) -> str:
        return ".".join(map(self.quote, _parts(schema, name)))

    def quote(self, name: str) -> str:
        """Return a name as a statement has to write it; one with capitals needs its quotes."""
        return quoted(name, self._reserved if name == folded(name) else (name.lower(),))

    def columns(self, table: TableName) -> Sequence[Column]:
        """Return the columns in their order."""
        return self._columns[self._described(table).number]

    def key(self, table: TableName) -> Sequence[str]:
        """Return the columns of the primary key."""
        return self._keys.get(self._described(table).number, [])

    def references(self, table: TableName) -> Sequence[Reference]:
        """Return the foreign keys."""
        return self._references.get(self._described(table).number, [])

    def comment(self, table: TableName) -> str:
        """Return the comment on the table."""
        return self._tables[table.name].comment

    def count(self, table: TableName, most: int) -> int | None:
        """Return the server's estimate where there are many rows, else how many there are.

        Tables whose rows depend on who asks are not counted, nor are those of other servers: `None`.
        """
        known = self._tables[table.name]
        if known.is_uncounted:
            return None
        if known.estimate >= most:
            return known.estimate
        name = ".".join('"' + part.replace('"', '""') + '"' for part in known.parts)
        return self._rows(f"SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT {most}) AS counted")[0][0]  # noqa: S608 - quoted above

    def _described(self, table: TableName) -> _Table:
        known = self._tables[table.name]
        if known.number not in self._columns:
            names = sorted(self._tables)
            start = names.index(table.name)  # They are asked for in this order.
            self._load([self._tables[name].number for name in names[start : start + _TABLES_AT_ONCE]])
        return known

    def _load(self, numbers: list[int]) -> None:
        self._columns |= {number: [] for number in numbers}
        for number, name, kind, is_nullable, comment, base, labels in self._rows(
            _COLUMNS, _ENUM_LABELS + 1, numbers, self._of_all_roles
        ):
            words = f"{kind}{_detail(base, labels or [])}"
            self._columns[number].append(Column(name, words, is_nullable, comment or ""))
        for number, kind, columns, schema, referred, referred_columns in self._rows(_KEYS, numbers):
            if kind == "p":
                self._keys[number] = columns
            else:
                reference = Reference(tuple(columns), self._label(schema, referred), tuple(referred_columns))
                self._references.setdefault(number, []).append(reference)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement.encode(), values or None).fetchall()


def _parts(schema: str, name: str) -> tuple[str, ...]:
    return (name,) if schema == DEFAULT_SCHEMA else (schema, name)


def _detail(base: str | None, labels: Sequence[str]) -> str:
    """Return what stands behind a type's name: the type below it, or the values that it has."""
    if base:
        return f" ({base})"
    if labels:
        shown = ", ".join(labels[:_ENUM_LABELS])
        return f" ({shown}, …)" if len(labels) > _ENUM_LABELS else f" ({shown})"
    return ""
