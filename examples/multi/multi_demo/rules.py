"""The rules of the stand-in: which tool to call next for a question, and what to make of the answers.

They know no question and no answer of the demo, only what the loop hands over: the tool definitions, the schemas and the tools'
answers. They can choose the backend whose schema shares most words with a question, compose SQL over two tables, search prose,
follow a rule found in prose into a table, and report a refusal. They understand nothing; whatever does not fit them gets a
useless answer, as the README shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkernel_kb.render import NOTHING_FOUND
from multi_demo.statements import Place, Table, change, choose_place, compose, locate, read_table, tables_of, target_table
from multi_demo.wording import bounds, names, sentences, stems, words

_CHANGING = ("delete", "remove", "drop", "change", "update", "set", "rename")
_ADDING = ("add", "insert", "create", "note", "remember", "write")
_ENOUGH = 0.5  # Share of a question's words that a section must hold to count as an answer.

Offered = Mapping[str, Mapping[str, Any]]
"""The tools on offer: name to JSON schema of the parameters."""


@dataclass(frozen=True)
class Call:
    """One tool call that the rules ask for."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


Steps = Generator[Call, str, str]
"""Tool calls out, their answers in, and at the end the answer to the question."""


@dataclass(frozen=True)
class Passage:
    """One record of prose as a tool showed it."""

    text: str
    source: str


class Backend:
    """One knowledge base as `get_schemas` describes it: its name, its words, and its tables if it speaks SQL."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.name = name
        capabilities: Mapping[str, Any] = schema.get("capabilities", {})
        told = {key: value for key, value in schema.items() if key != "capabilities"}
        self.words = stems(json.dumps(told, ensure_ascii=False))
        self.searches = bool(capabilities.get("search"))
        self.tables: list[Table] = tables_of(schema) if capabilities.get("query_language") == "sql" else []


@dataclass(frozen=True)
class Rule:
    """A sentence of prose that depends on a column of a table."""

    sentence: str
    backend: Backend
    table: Table
    column: str


class ToolFailed(Exception):  # noqa: N818 - not an error of the rules: a tool said so
    """A tool answered neither with what was asked for nor that there is nothing; the message is its answer."""


def answering(question: str, offered: Offered) -> Steps:
    """Answer one question; a tool that fails is reported, and is not taken for finding nothing."""
    try:
        return (yield from _answering(question, offered))
    except ToolFailed as failed:
        return f"There is no answer, since a tool failed: {failed}"


def _answering(question: str, offered: Offered) -> Steps:
    """Look at the schemas, choose a backend, read or write."""
    if "get_schemas" not in offered:
        return "No tool tells what the knowledge bases are, so there is nothing to go by."
    schemas: Mapping[str, Any] = json.loads((yield Call("get_schemas")))
    backends = [Backend(name, schema) for name, schema in schemas.items()]
    # Where two fit alike, prose is the better guess: it answers anything that it holds words for.
    chosen = max(backends, key=lambda backend: (len(backend.words & stems(question)), not backend.tables), default=None)
    if chosen is None:
        return "There is no knowledge base to ask."
    if next(iter(words(question)), "") in _CHANGING + _ADDING:
        return (yield from _written(question, chosen, offered))
    if chosen.tables:
        return (yield from _told_by_tables(question, chosen))
    return (yield from _told_by_prose(question, chosen, backends, offered))


def _told_by_tables(question: str, backend: Backend) -> Steps:
    places, unknown = yield from _located(question, question, backend)
    if unknown:
        return _not_known(unknown, backend)
    table = target_table(question, backend.tables, places)
    if table is None:
        return (
            f"The question names no table and nothing that stands in one. Tables: {[table.name for table in backend.tables]}."
        )
    statement = compose(question, table, backend.tables, places, table.mentioned(question))
    rows = yield from _rows(backend, statement)
    return f"{'; '.join(map(_shown, rows)) or NOTHING_FOUND.rstrip('.')}. [{backend.name}]"


def _rows(backend: Backend, statement: str) -> Generator[Call, str, list[dict[str, str]]]:
    """Send a statement and return its rows."""
    answer = yield Call("read_kb", {"backend": backend.name, "query": statement, "limit": 20})
    rows = read_table(answer)
    if not rows and not answer.startswith(NOTHING_FOUND):
        raise ToolFailed(answer)
    return rows


def _located(question: str, text: str, backend: Backend) -> Generator[Call, str, tuple[list[Place], list[str]]]:
    """Find where each name of a question stands, as a text asks for it; return the places, and the names that stand nowhere."""
    sought, found = names(question), list[Place]()
    for labels in (True, False):
        missing = [name for name in sought if name not in {place[2] for place in found}]
        statement = locate(backend.tables, missing, labels=labels)
        if missing and statement:
            rows = yield from _rows(backend, statement)
            found += [(*_table_and_column(row["found_in"]), row["name"]) for row in rows]
    places = [choose_place(found, backend.tables, name, text) for name in sought]
    return [place for place in places if place], [name for name, place in zip(sought, places, strict=True) if not place]


def _table_and_column(place: str) -> tuple[str, str]:
    table, _, column = place.rpartition(".")
    return table, column


def _not_known(unknown: Sequence[str], backend: Backend) -> str:
    return f"Nothing found: '{backend.name}' knows no {' and no '.join(unknown)}, so there is no answer to this."


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
        return (yield from _told_by_rule(question, told, rule, f"[{backend.name}: {passage.source}]"))
    return f"{max(told, key=lambda sentence: len(asked & stems(sentence)))} [{backend.name}: {passage.source}]"


def _find_rule(told: Sequence[str], backends: Sequence[Backend]) -> Rule | None:
    """Return the first sentence that speaks of a column and of what the rows of its table are, such as a city's population."""
    for sentence in told:
        for backend in backends:
            for table in backend.tables:
                columns = table.mentioned(sentence) if table.topic in stems(sentence) else []
                if columns:
                    return Rule(sentence, backend, table, columns[0])
    return None


def _told_by_rule(question: str, told: Sequence[str], rule: Rule, source: str) -> Steps:
    """Look up the column that a rule depends on, and return the sentence beside the rule that fits its value."""
    backend = rule.backend
    places, unknown = yield from _located(question, rule.sentence, backend)
    if unknown:
        return _not_known(unknown, backend)
    named = target_table(question, backend.tables, [])
    table = named if named and rule.column in named.columns else rule.table
    statement = compose(question, table, backend.tables, places, [rule.column])
    rows = yield from _rows(backend, statement)
    if not rows:
        return f"'{backend.name}' does not tell the {rule.column} that this depends on: {rule.sentence} {source}"
    fitting = [sentence for sentence in told if _fits(sentence, rows[0][rule.column])] or [rule.sentence]
    namesakes = f" (the first of {len(rows)} of that name)" if len(rows) > 1 else ""
    return f"{_shown(rows[0])}{namesakes}. [{backend.name}] {' '.join(fitting)} {source}"


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


def _shown(row: Mapping[str, str]) -> str:
    """Return a row as `label: column value, column value`, and a single cell as `column: value`."""
    cells = {
        column.replace("_", " "): f"{int(value):,}" if re.fullmatch(r"\d+", value) else value for column, value in row.items()
    }
    if len(cells) == 1:
        return ": ".join(next(iter(cells.items())))
    label, *rest = cells.items()
    return f"{label[1]}: {', '.join(f'{column} {value}' for column, value in rest)}"
