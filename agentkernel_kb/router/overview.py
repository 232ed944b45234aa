"""The two tools that ask every backend: their schemas and their descriptions. One that fails does not spoil the others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar, cast

from agentkernel_kb.base import KnowledgeBase, worker_pool
from agentkernel_kb.errors import KnowledgeError, KnowledgeTimeoutError
from agentkernel_kb.render import encode, one_line, to_text
from agentkernel_kb.router.answer import Answer
from agentkernel_kb.router.call import Caller, abandon, closed_answer, log_failure, must_go_on
from agentkernel_kb.router.failures import from_exception
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.plan import Registered, Request

T = TypeVar("T")

# (most items of a list or mapping, most characters of a text) tried in turn until the schemas fit.
_SHRINKING = ((200, 2_000), (60, 400), (20, 160), (6, 60))
_MOST_DIAGNOSTICS = 5

Asked = Mapping[str, "Future[Any]"]


class Overview:
    """Serves `get_schemas` and `get_all_kb_descriptions`.

    Args:
        registered: The backends.
        caller: The router's caller, whose limits, listener and end these tools share.
    """

    def __init__(self, registered: list[Registered], caller: Caller) -> None:
        self._registered = registered
        self._caller = caller

    def call(self, request: Request) -> str:
        """Ask every backend at once and compose the answer; never raises an `Exception`."""
        started = time.perf_counter()
        if (refused := self._refused(request)) is not None:
            return self._observed(request.tool, refused, started)
        asked = self._ask(request.tool)
        wait(asked.values(), timeout=self._caller.limits.seconds)
        return self._observed(request.tool, self._answer(request.tool, asked), started)

    async def acall(self, request: Request) -> str:
        """Ask every backend at once without blocking the event loop."""
        import asyncio

        started = time.perf_counter()
        if (refused := self._refused(request)) is not None:
            return self._observed(request.tool, refused, started)
        asked = self._ask(request.tool)
        waiting = [asyncio.wrap_future(future) for future in asked.values()]
        try:
            if waiting:
                await asyncio.wait(waiting, timeout=self._caller.limits.seconds)
        except asyncio.CancelledError:
            self._observed(request.tool, Answer("", "cancelled"), started)
            raise
        finally:
            for future in waiting:
                abandon(future)
        return self._observed(request.tool, self._answer(request.tool, asked), started)

    def _refused(self, request: Request) -> Answer | None:
        if request.fault:
            return Answer(request.fault[: self._caller.limits.characters], "bad_argument")
        return closed_answer() if self._caller.closed else None

    def _ask(self, tool: str) -> dict[str, Future[Any]]:
        question = _schema if tool == "get_schemas" else _description_of
        return {each.name: ask(each.backend, question) for each in self._registered}

    def _answer(self, tool: str, asked: Asked) -> Answer:
        compose = schemas_answer if tool == "get_schemas" else descriptions_answer
        return compose(asked, self._caller.limits)

    def _observed(self, tool: str, answer: Answer, started: float) -> str:
        self._caller.observe(tool, "", "schema" if tool == "get_schemas" else "describe", answer, started)
        return answer.text


def ask(backend: KnowledgeBase, question: Callable[[KnowledgeBase], T]) -> Future[T]:
    """Ask a backend something in one of its workers; a pool that gives none is an answer like any other failure."""
    try:
        return worker_pool(backend).submit(question, backend)
    except KnowledgeError as error:
        failed: Future[T] = Future()
        failed.set_exception(error)
        return failed


def _schema(backend: KnowledgeBase) -> object:
    return encode(backend.schema())


def _description_of(backend: KnowledgeBase) -> tuple[str, list[str]]:
    diagnostics = [one_line(to_text(diagnostic)) for diagnostic in backend.get_diagnostics()]
    return described(backend), diagnostics


def described(backend: KnowledgeBase) -> str:
    """Return a backend's description on one line, without its name and a colon in front, which whoever shows it puts there."""
    description: object = backend.get_description()
    if not isinstance(description, str):
        raise KnowledgeError(f"get_description() answered with {type(description).__name__} in place of text")
    return one_line(description).strip().removeprefix(f"{backend.backend_name}: ")


def schemas_answer(asked: Asked, limits: Limits) -> Answer:
    """Compose the JSON of all schemas; a backend without one stands there with its error."""
    results = {name: _result(name, future, "schema", limits) for name, future in asked.items()}
    schemas = {name: {"error": result} if failed else result for name, (result, failed) in results.items()}
    failed = any(failed for _, failed in results.values())
    text, shrunk = _fitting(schemas, limits.characters)
    return Answer(text, "partial" if failed or shrunk else "ok", len(schemas))


def descriptions_answer(asked: Asked, limits: Limits) -> Answer:
    """Compose one line on each backend, followed by its diagnostics; those that don't fit are shortened alike."""
    results = {name: _result(name, future, "describe", limits) for name, future in asked.items()}
    lines = [_description(name, result, failed) for name, (result, failed) in results.items()]
    text = "\n".join(lines) or "No knowledge bases are registered."
    failed = any(failed for _, failed in results.values())
    if len(text) <= limits.characters:
        return Answer(text, "partial" if failed else "ok", len(lines))
    note = f"Partial: descriptions are cut to fit {limits.characters:,} characters. More: get_schemas."
    share = max(1, (limits.characters - len(note)) // len(lines) - 1)
    lines = [line if len(line) <= share else f"{line[: share - 1]}…" for line in lines]
    return Answer("\n".join([note, *lines])[: limits.characters], "partial", len(lines))


def _result(name: str, future: Future[Any], operation: str, limits: Limits) -> tuple[Any, bool]:
    """Return what a finished backend answered, or the sentence on why it did not, and whether it is that."""
    try:
        if not future.done():
            future.cancel()
            raise KnowledgeTimeoutError("no answer in time")
        return future.result(), False
    except BaseException as error:
        if must_go_on(error):
            raise
        log_failure(error, name, operation)
        return from_exception(error, name, operation, limits.seconds).sentence, True


def _description(name: str, result: Any, failed: bool) -> str:
    if failed:
        return f"- {name}: (no description: {result})"
    text, diagnostics = cast("tuple[str, list[str]]", result)
    shown = [f"\n  | {diagnostic}" for diagnostic in diagnostics[:_MOST_DIAGNOSTICS]]
    if len(diagnostics) > _MOST_DIAGNOSTICS:
        shown.append(f"\n  | and {len(diagnostics) - _MOST_DIAGNOSTICS} more diagnostics")
    return f"- {name}: {text}{''.join(shown)}"


def _fitting(schemas: Mapping[str, Any], characters: int) -> tuple[str, bool]:
    """Return the JSON of all schemas, the largest ones shortened as far as it takes to fit."""
    text = _json(schemas)
    for items, length in _SHRINKING:
        if len(text) <= characters:
            break
        share = characters // max(1, len(schemas))
        schemas = {
            name: schema if len(_json(schema)) <= share else _shrunk(schema, items, length) for name, schema in schemas.items()
        }
        text = _json(schemas)
    else:
        if len(text) > characters:
            short = {name: {"error": "The schemas are too long for one answer."} for name in schemas}
            text = _json(short)
            if len(text) > characters:
                text = _json({"error": f"The schemas of {len(short)} knowledge bases are too long for one answer."})
            return text[:characters], True
    return text, any(isinstance(schema, dict) and "truncated" in schema for schema in schemas.values())


def _shrunk(schema: Any, items: int, length: int) -> Any:
    shorter = _shorter(schema, items, length)
    if isinstance(schema, dict) and isinstance(shorter, dict):
        whole = cast("dict[str, Any]", schema)
        kept = {"capabilities": whole["capabilities"]} if "capabilities" in whole else {}
        return {**cast("dict[str, Any]", shorter), "truncated": "Parts are left out, marked by …", **kept}
    return shorter


def _shorter(value: Any, items: int, length: int) -> Any:
    if isinstance(value, dict):
        pairs = list(cast("dict[str, Any]", value).items())
        shorter = {key[:length]: _shorter(item, items, length) for key, item in pairs[:items]}
        return shorter if len(pairs) <= items else {**shorter, "…": f"{len(pairs) - items} more"}
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        rest = [f"… {len(listed) - items} more"] if len(listed) > items else []
        return [_shorter(item, items, length) for item in listed[:items]] + rest
    if isinstance(value, str) and len(value) > length:
        return f"{value[:length]}…"
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=None)
