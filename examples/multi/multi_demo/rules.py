"""The rules of the stand-in: which tool to call next for a question, and what to make of the answers.

They know no question and no answer of the demo, only what the loop hands over: the tool definitions, the schemas and the tools'
answers. They can choose the backend whose schema shares most words with a question, compose SQL over tables and Cypher over
relationships, take what a graph found into a table, search prose, follow a rule found in prose into a table, and report a
refusal. They understand nothing; whatever does not fit them gets a useless answer, as the README shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkernel_kb.render import NOTHING_FOUND
from multi_demo.graphs import Relation, asks_for_way, busiest, linked, way
from multi_demo.lookups import (
    Backend,
    Call,
    NotKnown,
    ToolFailed,
    best_link,
    ends_of,
    link_to,
    members,
    places_of,
    rows_of,
    shown,
    shown_row,
    statement_for,
    unlinked,
)
from multi_demo.statements import Place, Table, change, compose, target_table
from multi_demo.wording import bounds, counts, names, sentences, stems, words

_CHANGING = ("delete", "remove", "drop", "change", "update", "set", "rename")
_ADDING = ("add", "insert", "create", "note", "remember", "write")
_ENOUGH = 0.5  # Share of a question's words that a section must hold to count as an answer.

Offered = Mapping[str, Mapping[str, Any]]
"""The tools on offer: name to JSON schema of the parameters."""


Steps = Generator[Call, str, str]
"""Tool calls out, their answers in, and at the end the answer to the question."""


@dataclass(frozen=True)
class Passage:
    """One record of prose as a tool showed it."""

    text: str
    source: str


@dataclass(frozen=True)
class Rule:
    """A sentence of prose that depends on a column of a table."""

    sentence: str
    backend: Backend
    table: Table
    column: str


def answering(question: str, offered: Offered) -> Steps:
    """Answer one question; a tool that fails is reported, and is not taken for finding nothing."""
    try:
        return (yield from _answering(question, offered))
    except NotKnown as nothing:
        return str(nothing)
    except ToolFailed as failed:
        return f"There is no answer, since a tool failed: {failed}"


def _answering(question: str, offered: Offered) -> Steps:
    """Look at the schemas, choose a backend, read or write."""
    if "get_schemas" not in offered:
        return "No tool tells what the knowledge bases are, so there is nothing to go by."
    schemas: Mapping[str, Any] = json.loads((yield Call("get_schemas")))
    backends = [Backend(name, schema) for name, schema in schemas.items()]
    # A graph answers about relationships only. Where two fit alike, prose is the better guess: it takes any words.
    fitting = [backend for backend in backends if not backend.is_graph or backend.relation(question)]
    chosen = max(fitting, key=lambda backend: (backend.fitness(question), backend.is_prose), default=None)
    if chosen is None:
        return "There is no knowledge base to ask."
    if next(iter(words(question)), "") in _CHANGING + _ADDING:
        return (yield from _written(question, chosen, offered))
    if chosen.is_prose:
        return (yield from _told_by_prose(question, chosen, backends, offered))
    for graph in backends:
        if relation := graph.relation(question):
            return (yield from _told_by_graph(question, graph, relation, backends))
    return (yield from _told_by_tables(question, chosen))


def _told_by_tables(question: str, backend: Backend) -> Steps:
    places = yield from places_of(names(question), question, backend)
    table = target_table(question, backend.tables, places)
    if table is None:
        return (
            f"The question names no table and nothing that stands in one. Tables: {[table.name for table in backend.tables]}."
        )
    statement = statement_for(question, backend, table, places, table.mentioned(question))
    rows = yield from rows_of(backend, statement)
    return f"{shown(rows)}. [{backend.name}]"


def _told_by_graph(question: str, graph: Backend, relation: Relation, backends: Sequence[Backend]) -> Steps:
    """Answer from a graph alone, or take what it finds into the table that the question speaks of, too."""
    link = best_link(question, relation, backends)
    if link and names(question) and not asks_for_way(question, relation, names(question)):
        places, others = yield from members(question, graph, relation, link)
        places += yield from places_of(others, question, link.backend)
        wanted = [column for column in link.table.mentioned(question) if column != link.column]
        rows = yield from rows_of(link.backend, statement_for(question, link.backend, link.table, places, wanted))
        return f"{shown(rows)}. [{graph.name}, {link.backend.name}]"
    ends = yield from ends_of(question, graph, relation)
    if not ends.given:
        rows = yield from rows_of(graph, busiest(question, relation))
    elif asks_for_way(question, relation, ends.given):
        rows = yield from rows_of(graph, way(relation, *ends.given, dialect=graph.dialect))
    else:
        rows = yield from rows_of(graph, linked(relation, ends.other, ends.given, counted=counts(question, ends.other.topic)))
    if not rows:
        raise unlinked(graph, relation, ends)
    return f"{shown(rows)}. [{graph.name}]"


def _told_by_prose(question: str, backend: Backend, backends: Sequence[Backend], offered: Offered) -> Steps:
    named = stems(" ".join(names(question)))
    asked = stems(question) - named - stems(backend.name)
    tool = "search_kb" if _offers(offered, "search_kb", backend) else "read_kb"
    keywords = " ".join(word for word in words(question) if stems(word) & asked) or question
    answer = yield Call(tool, {"backend": backend.name, "query": keywords, "limit": 5})
    if not answer.startswith((NOTHING_FOUND, "- ", "Partial: ")):
        raise ToolFailed(answer)
    # A store returns the nearest records, however far they are: one that shares no word with the search is none.
    near = [passage for passage in _passages(answer) if set(words(passage.text)) & set(words(keywords))]
    found = [(len(asked & stems(passage.text)) / max(1, len(asked)), passage) for passage in near]
    share, passage = max(found, key=lambda pair: pair[0], default=(0.0, Passage("", "")))
    if share < _ENOUGH:
        return f"Nothing found: no section of '{backend.name}' speaks of '{keywords}'."
    told = [sentence for sentence in sentences(passage.text) if not sentence.startswith("#")]
    if named and (rule := _find_rule(told, backends)):
        return (yield from _told_by_rule(question, told, rule, backends, f"[{backend.name}: {passage.source}]"))
    return f"{max(told, key=lambda sentence: len(asked & stems(sentence)))} [{backend.name}: {passage.source}]"


def _find_rule(told: Sequence[str], backends: Sequence[Backend]) -> Rule | None:
    """Return the first sentence that speaks of a column of what a table's rows are, such as the population of a city."""
    for sentence in told:
        for backend in backends:
            for table in backend.tables:
                if column := _column_of_row(sentence, table):
                    return Rule(sentence, backend, table, column)
    return None


def _column_of_row(sentence: str, table: Table) -> str | None:
    for of in re.finditer(r"\bof\b", sentence):
        columns = table.mentioned(sentence[: of.start()])
        if columns and table.topic in stems(sentence[of.end() :]):
            return columns[-1]
    return None


def _told_by_rule(question: str, told: Sequence[str], rule: Rule, backends: Sequence[Backend], source: str) -> Steps:
    """Look up the column that a rule depends on, and return the sentence beside the rule that fits its value."""
    backend = rule.backend
    named = target_table(question, backend.tables, [])
    table = named if named and rule.column in named.columns else rule.table
    places, stores = yield from _places_for(question, rule, table, backends)
    statement = compose(question, table, backend.tables, places, [rule.column])
    rows = yield from rows_of(backend, statement)
    if not rows:
        return f"'{backend.name}' does not tell the {rule.column} that this depends on: {rule.sentence} {source}"
    fitting = [sentence for sentence in told if _fits(sentence, rows[0][rule.column])] or [rule.sentence]
    others = f" (the first of {len(rows)} that fit the question)" if len(rows) > 1 else ""
    return f"{shown_row(rows[0])}{others}. [{', '.join(stores)}] {' '.join(fitting)} {source}"


def _places_for(
    question: str, rule: Rule, table: Table, backends: Sequence[Backend]
) -> Generator[Call, str, tuple[list[Place], list[str]]]:
    """Return the places that a question is about, and the stores that told: a graph too, where it speaks of a relationship."""
    for graph in backends:
        relation = graph.relation(question)
        link = link_to(relation.target, table, rule.backend) if relation else None
        if relation and link:
            places, others = yield from members(question, graph, relation, link)
            places += yield from places_of(others, rule.sentence, rule.backend)
            return places, [graph.name, rule.backend.name]
    places = yield from places_of(names(question), rule.sentence, rule.backend)
    return places, [rule.backend.name]


def _fits(sentence: str, value: str) -> bool:
    """Tell whether a sentence is about a value: a number within its bounds, or a word that it holds."""
    if re.fullmatch(r"-?\d+(\.\d+)?", value):
        return any(limits.hold(float(value)) for limits in bounds(sentence))
    return re.search(rf"\b{re.escape(value)}\b", sentence, re.IGNORECASE) is not None


def _written(question: str, backend: Backend, offered: Offered) -> Steps:
    """Try what is ordered. What the tools answer is the answer; a statement that write_kb refuses is tried as a read."""
    if not _offers(offered, "write_kb", backend):
        return f"No tool on offer writes to '{backend.name}'."
    table = target_table(question, backend.tables, [])
    if table is None:
        if words(question)[0] not in _ADDING:
            return f"No tool on offer changes or deletes what stands in '{backend.name}'."
        text = re.split(r"\bthat\b|:", question, maxsplit=1)[-1].strip()
        return f"{(yield Call('write_kb', {'backend': backend.name, 'text': text, 'source': 'agent'}))} [{backend.name}]"
    statement = change(question, table, names(question))
    first = yield Call("write_kb", {"backend": backend.name, "query": statement, "params_json": "{}", "source": "agent"})
    if first.startswith("Written"):
        return f"{first} [{backend.name}]"
    second = yield Call("read_kb", {"backend": backend.name, "query": statement, "limit": 3})
    return f"Refused, nothing was changed. write_kb: {first} read_kb: {second}"


def _offers(offered: Offered, tool: str, backend: Backend) -> bool:
    properties: Mapping[str, Any] = offered.get(tool, {}).get("properties", {})
    return backend.name in properties.get("backend", {}).get("enum", [backend.name]) and tool in offered


def _passages(answer: str) -> list[Passage]:
    """Return the records of a tool's answer: each begins with a dash, and its further lines stand behind a bar."""
    found: list[Passage] = []
    for record in re.split(r"(?m)^- ", answer)[1:]:
        text = re.sub(r"(?m)^  \| ?", "", record).strip()
        match = re.fullmatch(r"(?s)(.*) \(source: (.*)\)", text)
        found.append(Passage(match[1], match[2]) if match else Passage(text, "no source"))
    return found
