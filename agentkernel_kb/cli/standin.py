"""What answers in place of a language model: it routes a question by the words of the descriptions, and calls one tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentkernel_kb.cli.opening import Answered, Opened
from agentkernel_kb.cli.routing import ranked

LABEL = "a stand-in routes by the words of the descriptions; it is not a language model, and writes no answer of its own"
_READING = {"sql": ("tables", "SELECT * FROM {}"), "cypher": ("nodes", "MATCH (n:{}) RETURN n")}
_LIMIT = 3


@dataclass(frozen=True)
class Turn:
    """What came of one question.

    Attributes:
        calls: The tool calls, in order.
        answer: What is said in the end; `""` where the last call says it all.
    """

    calls: list[Answered]
    answer: str


class StandIn:
    """Routes questions over an open configuration."""

    label = LABEL

    def __init__(self, knowledge: Opened) -> None:
        self._knowledge = knowledge

    def answer(self, question: str) -> Turn:
        """Call the tool that fits the question best, and return what came of it."""
        schemas = self._schemas()
        if not schemas:
            return Turn([], "There is no knowledge base to ask.")
        best = ranked(question, {name: json.dumps(schema, ensure_ascii=False) for name, schema in schemas.items()})
        if not best:
            return self._unrouted(question, schemas)
        name = best[0][0]
        call = self._reading(name, schemas[name], question)
        if call is None:
            return Turn([], f"'{name}' fits best, and takes nothing that a stand-in could ask.")
        return Turn([call], "")

    def _schemas(self) -> dict[str, dict[str, Any]]:
        """Return what each knowledge base says of itself: its schema and its description."""
        try:
            schemas = cast("dict[str, dict[str, Any]]", json.loads(self._knowledge.call("get_schemas").text))
        except ValueError:
            return {}
        backends = {backend.backend_name: backend for backend in self._knowledge.builder.backends}
        return {
            name: {"about": backends[name].get_description() if name in backends else "", **schema}
            for name, schema in schemas.items()
        }

    def _unrouted(self, question: str, schemas: Mapping[str, Mapping[str, Any]]) -> Turn:
        searchable = [name for name, schema in schemas.items() if schema.get("capabilities", {}).get("search")]
        if not searchable:
            return Turn([], f"No word of the question stands in a description or schema. There are: {', '.join(schemas)}.")
        name = "*" if len(searchable) > 1 and self._takes_all() else searchable[0]
        return Turn([self._knowledge.call("search_kb", backend=name, query=question, limit=_LIMIT)], "")

    def _takes_all(self) -> bool:
        return "*" in self._knowledge.names_of("search_kb")

    def _reading(self, name: str, schema: Mapping[str, Any], question: str) -> Answered | None:
        can: Mapping[str, Any] = schema.get("capabilities", {})
        if can.get("search"):
            return self._knowledge.call("search_kb", backend=name, query=question, limit=_LIMIT)
        if can.get("query") and (statement := _statement(schema, str(can.get("query_language")), question)):
            return self._knowledge.call("read_kb", backend=name, query=statement, limit=_LIMIT)
        if can.get("browse"):
            return self._knowledge.call("browse_kb", backend=name, path="", limit=_LIMIT)
        return None


def _statement(schema: Mapping[str, Any], language: str, question: str) -> str | None:
    """Return a statement that shows the beginning of the table or the kind of node that fits the question best."""
    if language not in _READING:
        return None
    part, form = _READING[language]
    described: object = schema.get(part)
    if not isinstance(described, Mapping) or not described:
        return None
    texts = {str(name): str(line) for name, line in cast("Mapping[object, object]", described).items()}
    best = ranked(question, texts)
    return form.format(best[0][0] if best else next(iter(texts)))
