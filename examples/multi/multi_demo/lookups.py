"""The steps that the stand-in's rules are made of: a tool call, and what its answer tells of rows, names and links."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkernel_kb.render import NOTHING_FOUND
from multi_demo.aggregates import aggregate
from multi_demo.graphs import Node, Relation, known, linked, relations_of
from multi_demo.statements import Place, Table, choose_place, compose, locate, read_table, tables_of
from multi_demo.wording import counts, direction, names, stems

_MOST_ROWS = 50


@dataclass(frozen=True)
class Call:
    """One tool call that the rules ask for."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


class Backend:
    """One knowledge base as `get_schemas` describes it: its name, its words, and its tables or relationships, if it has any."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.name = name
        capabilities: Mapping[str, Any] = schema.get("capabilities", {})
        language = capabilities.get("query_language")
        told = {key: value for key, value in schema.items() if key not in ("capabilities", "notes")}
        self.words = stems(json.dumps(told, ensure_ascii=False))
        self.dialect = str(schema.get("dialect", ""))
        self.is_graph = language == "cypher"
        self.tables: list[Table] = tables_of(schema) if language == "sql" else []
        self.relations: list[Relation] = relations_of(schema) if self.is_graph else []

    @property
    def is_prose(self) -> bool:
        """It has neither tables nor relationships."""
        return not self.tables and not self.is_graph

    def fitness(self, question: str) -> int:
        """Return how many words of a question the schema holds, and one more for rows that can be counted as it asks."""
        return len(self.words & stems(question)) + any(counts(question, table.topic) for table in self.tables)

    def relation(self, question: str) -> Relation | None:
        """Return the first type of relationships that a question speaks of."""
        asked = stems(question)
        return next((relation for relation in self.relations if relation.topics & asked), None)


@dataclass(frozen=True)
class Link:
    """Where a table tells more about the nodes of a graph: its column that holds one of their properties."""

    backend: Backend
    table: Table
    column: str
    attribute: str


@dataclass(frozen=True)
class Ends:
    """The names that a graph knows of those in a question, the label at which they stand, and the one at the other end."""

    given: list[str]
    other: Node


class ToolFailed(Exception):  # noqa: N818 - not an error of the rules: a tool said so
    """A tool answered neither with what was asked for nor that there is nothing; the message is its answer."""


class NotKnown(Exception):  # noqa: N818 - nothing found is no error
    """A store does not know what a question is about; the message is the answer."""


def rows_of(backend: Backend, statement: str) -> Generator[Call, str, list[dict[str, str]]]:
    """Send a statement and return its rows."""
    answer = yield Call("read_kb", {"backend": backend.name, "query": statement, "limit": _MOST_ROWS})
    rows = read_table(answer)
    if not rows and not answer.startswith(NOTHING_FOUND):
        raise ToolFailed(answer)
    return rows


def statement_for(question: str, backend: Backend, table: Table, places: Sequence[Place], wanted: Sequence[str]) -> str:
    """Return the statement that answers a question about a table's rows, as far as the backend's dialect goes."""
    found = aggregate(question, table, backend.tables, places, dialect=backend.dialect)
    return found or compose(question, table, backend.tables, places, wanted)


def places_of(sought: Sequence[str], text: str, backend: Backend) -> Generator[Call, str, list[Place]]:
    """Find where each name stands in a backend's tables, as a text asks for it.

    Raises:
        NotKnown: A name stands nowhere.
    """
    found: list[Place] = []
    for labels in (True, False):
        missing = [name for name in sought if name not in {place[2] for place in found}]
        statement = locate(backend.tables, missing, labels=labels)
        if missing and statement:
            rows = yield from rows_of(backend, statement)
            found += [(*_table_and_column(row["found_in"]), row["name"]) for row in rows]
    places = [choose_place(found, backend.tables, name, text) for name in sought]
    if unknown := [name for name, place in zip(sought, places, strict=True) if not place]:
        raise not_known(unknown, backend)
    return [place for place in places if place]


def _table_and_column(place: str) -> tuple[str, str]:
    table, _, column = place.rpartition(".")
    return table, column


def not_known(unknown: Sequence[str], backend: Backend) -> NotKnown:
    """Return what says that a backend does not know these names."""
    return NotKnown(f"Nothing found: '{backend.name}' knows no {' and no '.join(unknown)}, so there is no answer to this.")


def ends_of(question: str, graph: Backend, relation: Relation) -> Generator[Call, str, Ends]:
    """Find which names of a question stand at an end of a relationship. Others may be for another store to know.

    Raises:
        NotKnown: None of the names does.
    """
    sought = names(question)
    rows = (yield from rows_of(graph, known(relation, sought))) if sought else []
    if sought and not rows:
        raise not_known(sought, graph)
    asked = stems(question)
    # Where names could stand at both ends, what is asked for stands at the other end than they do.
    label = min((row["label"] for row in rows), key=lambda label: Node(label, ("",), "").topic in asked, default="")
    here = next((node for node in relation.nodes if node.label == label), relation.source)
    given = {row["name"] for row in rows if row["label"] == label}
    return Ends([name for name in sought if name in given], relation.other(here))


def members(
    question: str, graph: Backend, relation: Relation, link: Link
) -> Generator[Call, str, tuple[list[Place], list[str]]]:
    """Ask a graph what is linked to the names of a question.

    Returns:
        The places of what it found in the table of the link, and the names that the graph did not know.

    Raises:
        NotKnown: The graph knows none of the names, or nothing that is linked to them.
    """
    ends = yield from ends_of(question, graph, relation)
    rows = yield from rows_of(graph, linked(relation, ends.other, ends.given, link.attribute))
    if not rows:
        raise unlinked(graph, relation, ends)
    places = [(link.table.name, link.column, row[link.attribute]) for row in rows]
    return places, [name for name in names(question) if name not in ends.given]


def unlinked(graph: Backend, relation: Relation, ends: Ends) -> NotKnown:
    """Return what says that known names have no such relationship."""
    return NotKnown(f"Nothing found: '{graph.name}' knows {' and '.join(ends.given)}, and no {relation.name} that fits.")


def link_to(node: Node, table: Table, backend: Backend) -> Link | None:
    """Return how a table tells about the nodes with a label: by a column that they share, or one named like the label."""
    if table.topic == node.topic:
        shared = next((one for one in (node.key, *node.properties) if one in table.columns), None)
        return Link(backend, table, shared, shared) if shared else None
    column = next((column for column in table.columns if column.casefold() == node.label.casefold()), None)
    return Link(backend, table, column, node.name) if column else None


def best_link(question: str, relation: Relation, backends: Sequence[Backend]) -> Link | None:
    """Return the link to the table that a question speaks of besides a relationship; `None` if it speaks of none."""
    links = [
        link
        for backend in backends
        for table in backend.tables
        for node in relation.nodes
        if (link := link_to(node, table, backend))
    ]

    def spoken_of(link: Link) -> int:
        columns = {column for column in link.table.mentioned(question) if column != link.column}
        topics = {node.topic for node in relation.nodes}
        # A superlative is about a number, even if none is named: the largest neighbour.
        ranked = link.table.topic in topics and bool(direction(question))
        return len(columns) + (link.table.topic in stems(question) - topics) + ranked

    best = max(links, key=spoken_of, default=None)
    return best if best and spoken_of(best) else None


def shown(rows: Sequence[Mapping[str, str]]) -> str:
    """Return rows as a person reads them."""
    more = [f"and more than these {len(rows)}"] if len(rows) >= _MOST_ROWS else []
    if rows and len(rows[0]) == 1:
        return f"{_spaced(next(iter(rows[0])))}: {', '.join([*(_plain(cell) for row in rows for cell in row.values()), *more])}"
    return "; ".join([*map(shown_row, rows), *more]) or NOTHING_FOUND.rstrip(".")


def shown_row(row: Mapping[str, str]) -> str:
    """Return a row as `label: column value, column value`, and a single cell as `column: value`."""
    cells = {_spaced(column): _plain(value) for column, value in row.items()}
    if len(cells) == 1:
        return ": ".join(next(iter(cells.items())))
    label, *rest = cells.items()
    return f"{label[1]}: {', '.join(f'{column} {value}' for column, value in rest)}"


def _spaced(column: str) -> str:
    return column.replace("_", " ")


def _plain(value: str) -> str:
    """Return a number with separated thousands, the items of a list as a way, and any other value as it is."""
    if number := re.fullmatch(r"(\d+)(?:\.0+|(\.\d+))?", value):
        return f"{int(number[1]):,}{number[2] or ''}"
    return " – ".join(json.loads(value)) if re.fullmatch(r"\[\".*\"\]", value) else value
