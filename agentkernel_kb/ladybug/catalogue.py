"""What a graph says about itself: labels, properties, keys, ends and bounded counts, in as few words as will do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.near import meant
from agentkernel_kb.render import one_line

if TYPE_CHECKING:
    from ladybug import Connection

COUNTED = 10_000
COUNTING_SECONDS = 2.0
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class TableFacts:
    """One table of nodes or relationships.

    Attributes:
        name: Its name, which is the label.
        is_relationship: It holds relationships.
        properties: Names of its properties.
        line: Ends, properties, key and count on one line, as a model reads it.
    """

    name: str
    is_relationship: bool
    properties: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class Catalogue:
    """The tables of a graph.

    Attributes:
        described: Those that are described.
        names: Names of all.
    """

    described: tuple[TableFacts, ...]
    names: tuple[str, ...]

    def schema(self) -> dict[str, Any]:
        """Return the part of a backend's schema that tells about nodes and relationships."""
        schema: dict[str, Any] = {
            "nodes": {quoted(fact.name): fact.line for fact in self.described if not fact.is_relationship},
            "relationships": {quoted(fact.name): fact.line for fact in self.described if fact.is_relationship},
        }
        if further := len(self.names) - len(self.described):
            schema["further_tables"] = f"{further} more labels are not described here"
        return schema

    def labels(self, *, relationships: bool) -> list[str]:
        """Return the labels of the described nodes or relationships as a statement writes them."""
        return [quoted(fact.name) for fact in self.described if fact.is_relationship == relationships]

    def near(self, name: str) -> list[str]:
        """Return the names of labels and properties that `name` may have been meant for, the nearest first."""
        known = {known.lower(): quoted(known) for fact in self.described for known in fact.properties}
        known |= {known.lower(): quoted(known) for known in self.names}
        return meant(name, known)


def quoted(name: str) -> str:
    """Return a name as a statement has to write it: in backticks unless it is a plain word."""
    clean = one_line(name)
    return clean if _PLAIN_NAME.fullmatch(clean) else f"`{clean}`"


def read_catalogue(connection: Connection, deadline: Deadline, most: int) -> Catalogue:
    """Return what `connection` can be asked about its tables, of which at most `most` are described."""
    tables = sorted((str(row["name"]), str(row["type"])) for row in _rows(connection, "CALL show_tables() RETURN *"))
    counting = Deadline(min(COUNTING_SECONDS, deadline.left() / 2))
    described = [_describe(connection, name, kind == "REL", counting) for name, kind in tables[:most]]
    return Catalogue(tuple(described), tuple(name for name, _ in tables))


def _describe(connection: Connection, name: str, is_relationship: bool, counting: Deadline) -> TableFacts:
    properties = _rows(connection, f"CALL table_info({_literal(name)}) RETURN *")
    ends = _ends(connection, name) if is_relationship else ""
    parts = [ends, ", ".join(_property(row) for row in properties)]
    if not counting.passed():
        parts.append(_count(connection, name, is_relationship))
    names = tuple(str(row["name"]) for row in properties)
    return TableFacts(name, is_relationship, names, " | ".join(filter(None, parts)))


def _property(row: dict[str, Any]) -> str:
    return f"{quoted(str(row['name']))} {one_line(str(row['type']))}{' PRIMARY KEY' if row.get('primary key') else ''}"


def _ends(connection: Connection, name: str) -> str:
    rows = _rows(connection, f"CALL show_connection({_literal(name)}) RETURN *")
    pairs = [(str(row["source table name"]), str(row["destination table name"])) for row in rows]
    return ", ".join(f"(:{quoted(source)})-[:{quoted(name)}]->(:{quoted(target)})" for source, target in pairs)


def _count(connection: Connection, name: str, is_relationship: bool) -> str:
    if "`" in name:  # Cannot be written in a statement.
        return ""
    pattern = f"()-[x:`{name}`]->()" if is_relationship else f"(x:`{name}`)"
    rows = _rows(connection, f"MATCH {pattern} WITH x LIMIT {COUNTED + 1} RETURN count(*) AS total")
    total = int(rows[0]["total"])
    word = "relationship" if is_relationship else "node"
    if total > COUNTED:
        return f"more than {COUNTED:,} {word}s"
    return f"{total:,} {word}{'' if total == 1 else 's'}"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _rows(connection: Connection, statement: str) -> list[dict[str, Any]]:
    """Return all rows of one of this module's own statements by column."""
    result: Any = connection.execute(statement)
    with result:
        columns = result.get_column_names()
        return [dict(zip(columns, row, strict=True)) for row in result]
