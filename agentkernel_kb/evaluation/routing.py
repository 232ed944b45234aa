"""Labelled questions put to a router: the baseline of this library, or a model with the tools of a builder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast, get_args

from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.evaluation.questions import Question
from agentkernel_kb.evaluation.results import Call, Evaluation, Result, Transcript, judged
from agentkernel_kb.evaluation.router import LexicalRouter, Route
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import KnowledgeCapabilities, Operation
from agentkernel_kb.router.events import ToolEvent, heard

Answerer = Callable[[str], Transcript]
"""Takes a question and does something about it."""

_OPERATIONS: tuple[Operation, ...] = get_args(Operation)
_NOT_ABOUT = ("name", "kb_type", "capabilities", "guarded", "error")


def evaluate(
    questions: Iterable[Question], answerer: Answerer | Callable[[str | None], Answerer], *, by_agent: bool = False
) -> Evaluation:
    """Put each question to an answerer and judge what it does.

    A question that fails is judged wrong, and the others go on.

    Args:
        questions: The labelled questions.
        answerer: Takes a question. With `by_agent`, takes the name of an agent and returns the answerer of that agent; it is
            called once for each name.
        by_agent: What `answerer` takes.
    """

    def of_agent(agent: str | None) -> Answerer:
        return cast("Callable[[str | None], Answerer]", answerer)(agent) if by_agent else cast("Answerer", answerer)

    known: dict[str | None, Answerer] = {}
    results: list[Result] = []
    for question in questions:
        if question.agent not in known:
            known[question.agent] = of_agent(question.agent)
        results.append(_asked(question, known[question.agent]))
    return Evaluation(tuple(results))


def listened(respond: Callable[[str], str | tuple[str, int]]) -> Answerer:
    """Return an answerer out of whatever answers questions with a builder's tools: an agent, a loop of a framework.

    Which backends are called is heard from the tools themselves, as `on_event` would be, in this thread and its tasks.

    Args:
        respond: Takes a question; returns the answer, or the answer and the tokens that were used for it.
    """

    def answer(question: str) -> Transcript:
        with heard() as events:
            said = respond(question)
        text, tokens = said if isinstance(said, tuple) else (said, None)
        characters = len(question) + len(text) + sum(event.characters for event in events)
        return Transcript(calls_of(events), text, characters, tokens)

    return answer


def calls_of(events: Iterable[ToolEvent]) -> tuple[Call, ...]:
    """Return the calls for records among what was told of; what only asks for schemas and descriptions is none."""
    return tuple(Call(event.backend, event.operation) for event in events if event.operation in _OPERATIONS)


def baseline(builder: KnowledgeBuilder | None, examples: Mapping[str, Sequence[str]] | None = None) -> Answerer:
    """Return the baseline as an answerer: it routes by words, and searches or browses where the question asks for that.

    A statement, ids and what to write it cannot put into words: there it only names the backend and the operation.

    Args:
        builder: The router whose backends it knows; `None` for an agent that may use nothing.
        examples: Questions to learn from, by backend.
    """
    if builder is None:
        return lambda question: Transcript(characters=len(question))
    router = LexicalRouter(routes_of(builder, examples or {}))
    tools = {tool.__name__: tool for tool in builder.build()}

    def answer(question: str) -> Transcript:
        decision = router.route(question)
        if decision.chosen is None or decision.operation is None:
            return Transcript(characters=len(question))
        said = ""
        if decision.operation == "search":
            said = tools["search_kb"](backend=decision.chosen, query=question)
        elif decision.operation == "browse":
            said = tools["browse_kb"](backend=decision.chosen, path="")
        return Transcript((Call(decision.chosen, decision.operation),), said, len(question) + len(said))

    return answer


def routes_of(builder: KnowledgeBuilder, examples: Mapping[str, Sequence[str]]) -> list[Route]:
    """Return what a builder's tools tell of its backends, and the examples of each.

    A backend whose schema cannot be had is known by its description alone.
    """
    tools = {tool.__name__: tool for tool in builder.build()}
    schemas = _mapping(_parsed(tools["get_schemas"]()))
    return [
        Route(
            backend.backend_name,
            backend.get_description(),
            tuple(examples.get(backend.backend_name, ())),
            " ".join(_words(_mapping(schemas.get(backend.backend_name)))),
            _operations(_mapping(schemas.get(backend.backend_name)), backend.capabilities),
        )
        for backend in builder.backends
    ]


def _asked(question: Question, answerer: Answerer) -> Result:
    begun = time.perf_counter()
    transcript, error = Transcript(characters=len(question.text)), ""
    try:
        transcript = answerer(question.text)
    except Exception as failure:  # noqa: BLE001 - one question's failure must not lose what came of the others
        error = str(failure) if isinstance(failure, KnowledgeError) else type(failure).__name__
    return judged(question, transcript, (time.perf_counter() - begun) * 1_000, error)


def _operations(schema: Mapping[str, Any], declared: KnowledgeCapabilities) -> frozenset[Operation]:
    """Return the operations of a backend: those that the agent may ask for, where its schema says so."""
    shown = _mapping(schema.get("capabilities"))
    if not shown:
        return frozenset(operation for operation in _OPERATIONS if declared.supports(operation))
    return frozenset(operation for operation in _OPERATIONS if shown.get("writable" if operation == "write" else operation))


def _words(schema: Mapping[str, Any]) -> list[str]:
    """Return the names and texts in a schema, what every schema has left out."""
    return [text for name, part in schema.items() if name not in _NOT_ABOUT for text in (name, *_texts(part))]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value).items()
        return [text for name, part in entries for text in (str(name), *_texts(part))]
    return [text for part in cast("list[object]", value) for text in _texts(part)] if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _parsed(answer: str) -> object:
    try:
        return json.loads(answer)
    except ValueError:
        return {}
