"""SQL that the stand-in composes from the tables, columns and keys of a schema, and the reading of what comes back.

A model writes whole statements, values and all, and so does this (hence the lint exceptions): that only reads pass is what the
demo shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from multi_demo.wording import Bounds, bounds, counts, direction, stem, stems, words

Place = tuple[str, str, str]
"""Where a name stands: table, column, and the name."""


_COMMA = re.compile(r",\s*(?![^(]*\))")  # Not the ones within parentheses.
_REFERENCES = re.compile(r"\bREFERENCES (\w+)\((\w+)\)")


@dataclass(frozen=True)
class Table:
    """One table as `get_schemas` describes it.

    Attributes:
        name: Its physical name.
        alias: What a statement calls it: the placeholder that stands for it, or its name.
        columns: Column to SQL type, in order.
        keys: Columns that identify a row here or in another table.
        references: Own column to the table and the column that it refers to.
        meaning: Column to words that explain it.
    """

    name: str
    alias: str
    columns: Mapping[str, str]
    keys: frozenset[str]
    references: Mapping[str, tuple[str, str]]
    meaning: Mapping[str, str]

    @property
    def rows(self) -> str:
        """What the rows are, such as `cities`: the last word of the name."""
        return self.name.split("_")[-1]

    @property
    def topic(self) -> str:
        """The stem of what one row is, `cit` for a table of cities."""
        return stem(self.rows)

    @property
    def label(self) -> str:
        """The column that names a row: the first text that is no key."""
        return next(iter(self.texts()), next(iter(self.columns)))

    def texts(self) -> list[str]:
        """Return the columns of text that are no keys."""
        return [column for column, kind in self.columns.items() if _is_text(kind) and column not in self.keys]

    def dates(self) -> list[str]:
        """Return the columns of dates and times."""
        return [column for column, kind in self.columns.items() if _is_date(kind)]

    def numbers(self) -> list[str]:
        """Return the columns of numbers that are no keys."""
        others = self.keys.union(self.dates(), self.texts())
        return [column for column in self.columns if column not in others]

    def mentioned(self, text: str) -> list[str]:
        """Return the columns that a text speaks of, by their names or by the words that explain them."""
        asked = stems(text) - {self.topic}
        told = {column: stems(f"{column.replace('_', ' ')} {self.meaning.get(column, '')}") for column in self.columns}
        return [column for column, said in told.items() if said & asked and column not in self.keys and column != self.label]


def tables_of(schema: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a backend's schema; the placeholder that stands for a table is what statements call it."""
    aliases = {name: token for token, name in schema.get("placeholders", {}).items()}
    meaning: Mapping[str, str] = schema.get("meaning", {})
    lines: Mapping[str, str] = schema.get("tables", {})
    return [_table(name, aliases.get(name, name), line, meaning) for name, line in lines.items()]


def _table(name: str, alias: str, line: str, meaning: Mapping[str, str]) -> Table:
    """Read one table from its line in the schema: the inside of a CREATE TABLE, and after a bar what else there is to tell."""
    columns: dict[str, str] = {}
    keys: set[str] = set()
    references: dict[str, tuple[str, str]] = {}
    for part in _COMMA.split(line.partition(" | ")[0]):
        column, _, rest = part.strip().partition(" ")
        if column in ("PRIMARY", "FOREIGN"):  # A key of several columns.
            continue
        columns[column] = rest
        refers = _REFERENCES.search(rest)
        if refers:
            references[column] = (refers[1], refers[2])
        if refers or "PRIMARY KEY" in rest:
            keys.add(column)
    return Table(name, alias, columns, frozenset(keys), references, meaning)


def _is_text(kind: str) -> bool:
    return bool(re.match(r"(?i)(var)?char|text|string|clob", kind))


def _is_date(kind: str) -> bool:
    return bool(re.match(r"(?i)date|time", kind))


def locate(tables: Sequence[Table], sought: Sequence[str], *, labels: bool) -> str:
    """Return a statement that tells where these names stand: in columns that name a row, or in the other columns of text."""
    statement = "\nUNION ".join(
        f"SELECT '{table.name}.{column}' AS found_in, {column}{'' if column == 'name' else ' AS name'} "  # noqa: S608 - see above
        f"FROM {table.alias} WHERE {_is_one_of(column, sought)}"
        for table in tables
        for column in table.texts()
        if labels == (column == table.label)
    )
    return statement if "\nUNION " in statement else statement.replace("SELECT ", "SELECT DISTINCT ", 1)


def choose_place(places: Sequence[Place], tables: Sequence[Table], name: str, text: str) -> Place | None:
    """Return the place of a name that fits a text best: in a table the text speaks of, as the label of a row."""
    by_name = {table.name: table for table in tables}
    referred = {target for table in tables for target, _ in table.references.values()}

    def fitness(place: Place) -> tuple[bool, bool, bool]:
        table = by_name[place[0]]
        return table.topic in stems(text), place[1] == table.label, table.name in referred

    return max((place for place in places if place[2] == name), key=fitness, default=None)


def compose(question: str, table: Table, tables: Sequence[Table], places: Sequence[Place], wanted: Sequence[str]) -> str:
    """Return the statement that answers a question about the rows of a table: a count, an extreme, or columns of some rows."""
    order = direction(question)
    prefix, source, conditions = restricted(table, tables, places)
    numbers = [column for column in wanted if column in table.numbers()] or table.numbers()[:1]
    conditions += [part for limits in bounds(question) for column in numbers[:1] for part in within(prefix + column, limits)]
    tail = source + (f"\nWHERE {' AND '.join(conditions)}" if conditions else "")
    if counts(question, table.topic):
        return f"SELECT COUNT(*) AS {table.rows} {tail}"
    columns: list[str] = [table.label, *wanted, *(numbers if order else [])]
    shown = ", ".join(prefix + column for column in dict.fromkeys(columns))
    ordered = f" ORDER BY {prefix}{numbers[0]} {order or 'DESC'}" if numbers else ""
    return f"SELECT {shown} {tail}{ordered}" + (" LIMIT 1" if order else "")


def within(column: str, limits: Bounds) -> list[str]:
    """Return the conditions that hold a column to a range."""
    equal = "=" if limits.closed else ""
    low = [f"{column} >{equal} {limits.low:.0f}"] if limits.low > -math.inf else []
    return low + ([f"{column} <{equal} {limits.high:.0f}"] if limits.high < math.inf else [])


def target_table(question: str, tables: Sequence[Table], places: Sequence[Place]) -> Table | None:
    """Return the table whose rows are asked for: the one named first, else one that holds a name, or most of what is said."""
    asked = [next(iter(stems(word)), "") for word in words(question)]
    named = [table for table in tables if table.topic in asked]
    holding = [table for place in places for table in tables if table.name == place[0]]
    speaking = [table for table in tables if table.mentioned(question)]
    holding += sorted(speaking, key=lambda table: len(table.mentioned(question)), reverse=True)
    return min(named, key=lambda table: asked.index(table.topic), default=next(iter(holding), None))


def restricted(table: Table, tables: Sequence[Table], places: Sequence[Place]) -> tuple[str, str, list[str]]:
    """Return the FROM of a statement about the rows of a table, and the conditions that hold it to the places of the names.

    Returns:
        What stands before the table's columns (nothing, if it stands alone), the FROM with its joins, and the conditions.
    """
    several = any(place[0] != table.name for place in places)
    prefix = f"{table.rows}." if several else ""
    joins: dict[str, str] = {}
    values: dict[str, list[str]] = {}
    for name, column, value in places:
        other = next(candidate for candidate in tables if candidate.name == name)
        if other is not table:
            joins[name] = f"\nJOIN {other.alias} AS {other.rows} ON {_link(table, other)}"
        values.setdefault(f"{other.rows}.{column}" if several else column, []).append(value)
    source = f"FROM {table.alias}{f' AS {table.rows}' if several else ''}{''.join(joins.values())}"
    return prefix, source, [_is_one_of(column, sought) for column, sought in values.items()]


def _link(table: Table, other: Table) -> str:
    for left, right in ((table, other), (other, table)):
        for own, (target, theirs) in left.references.items():
            if target == right.name:
                return f"{left.rows}.{own} = {right.rows}.{theirs}"
    return "TRUE"


def change(question: str, table: Table, sought: Sequence[str]) -> str:
    """Return the statement that does what a question orders: delete, insert or update the rows of these names."""
    verb = words(question)[0]
    where = f" WHERE {_is_one_of(table.label, sought)}" if sought else ""
    if verb in ("delete", "remove", "drop"):
        return f"DELETE FROM {table.alias}{where}"  # noqa: S608 - see above
    if verb in ("add", "insert", "create"):
        rows = ", ".join(f"({_quoted(name)})" for name in sought)
        return f"INSERT INTO {table.alias} ({table.label}) VALUES {rows}"  # noqa: S608 - see above
    column = next(iter(table.mentioned(question)), table.label)
    number = re.search(r"\bto (\d[\d,]*)", question)
    value = number[1].replace(",", "") if number else "NULL"
    return f"UPDATE {table.alias} SET {column} = {value}{where}"  # noqa: S608 - see above


def _is_one_of(column: str, values: Sequence[str]) -> str:
    quoted = [_quoted(value) for value in values]
    return f"{column} = {quoted[0]}" if len(quoted) == 1 else f"{column} IN ({', '.join(quoted)})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def read_table(answer: str) -> list[dict[str, str]]:
    """Return the rows of the Markdown table in a tool's answer; none where it holds no table."""
    lines = [line for line in answer.splitlines() if line.startswith("| ")]
    cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line[1:-1])] for line in lines]
    return [dict(zip(cells[0], row, strict=False)) for row in cells[2:]]
