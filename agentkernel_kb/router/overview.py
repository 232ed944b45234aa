"""The two tools that ask every backend: their schemas and their descriptions. One that fails does not spoil the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from agentkernel_kb.base import KnowledgeBase, keywords_of, worker_pool
from agentkernel_kb.errors import KnowledgeError, KnowledgeIdentityError, KnowledgeTimeoutError
from agentkernel_kb.identity import current_identity, required_identity
from agentkernel_kb.render import encode, one_line, to_text
from agentkernel_kb.router.answer import Answer
from agentkernel_kb.router.breaker import Ticket
from agentkernel_kb.router.call import Call, Caller, closed_answer, log_failure
from agentkernel_kb.router.failures import Refusal, from_exception
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.plan import Registered, Request
from agentkernel_kb.router.running import abandon

T = TypeVar("T")

# (most items of a list or mapping, most characters of a text) tried in turn until the schemas fit.
_SHRINKING = ((200, 2_000), (60, 400), (20, 160), (6, 60))
_MOST_DIAGNOSTICS = 5

Asked = Mapping[str, "Future[Any]"]


class _Round(NamedTuple):
    """One question to every backend: what each was asked, and how the question went through to it."""

    asked: dict[str, Future[Any]]
    tickets: dict[str, Ticket]


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
        call = self._begin(request)
        try:
            if (refused := self._refused(request)) is not None:
                call.answer = refused
            else:
                asking = self._ask(request.tool)
                wait(asking.asked.values(), timeout=self._caller.limits.seconds)
                call.answer = self._answer(request.tool, asking)
        finally:
            self._caller.end(call)
        return call.answer.text

    async def acall(self, request: Request) -> str:
        """Ask every backend at once without blocking the event loop."""
        call = self._begin(request)
        try:
            refused = self._refused(request)
            call.answer = await self._awaited(request.tool) if refused is None else refused
        finally:
            self._caller.end(call)
        return call.answer.text

    async def _awaited(self, tool: str) -> Answer:
        import asyncio

        asking = self._ask(tool)
        waiting = [asyncio.wrap_future(future) for future in asking.asked.values()]
        try:
            if waiting:
                await asyncio.wait(waiting, timeout=self._caller.limits.seconds)
        except asyncio.CancelledError:
            for name, ticket in asking.tickets.items():
                self._caller.shield.breakers[name].left(ticket)
            raise
        finally:
            for future in waiting:
                abandon(future)
        return self._answer(tool, asking)

    def _begin(self, request: Request) -> Call:
        call = self._caller.begin(request)
        call.operation = "schema" if request.tool == "get_schemas" else "describe"
        return call

    def _refused(self, request: Request) -> Answer | None:
        if request.fault:
            return Answer(request.fault[: self._caller.limits.characters], "bad_argument")
        return closed_answer() if self._caller.closed else None

    def _ask(self, tool: str) -> _Round:
        if tool != "get_schemas":
            return _Round({each.name: ask(each.backend, partial(_description_of, each)) for each in self._registered}, {})
        asking = _Round({}, {})
        for each in self._registered:
            asking.asked[each.name] = self._ask_for_schema(each, asking.tickets)
        return asking

    def _ask_for_schema(self, each: Registered, tickets: dict[str, Ticket]) -> Future[Any]:
        """Ask for a schema; where it comes out of the store, under the rules of any other call to it."""
        if each.capabilities.derives_schema:
            try:
                if each.backend.requires_identity:
                    required_identity(each.name)
                tickets[each.name] = self._caller.shield.enter(each.name)
            except (KnowledgeIdentityError, Refusal) as error:
                return failed(error)
        return ask(each.backend, partial(_schema, each))

    def _answer(self, tool: str, asking: _Round) -> Answer:
        for each in self._registered:
            if each.name in asking.tickets:
                self._tell(each, asking.tickets[each.name], asking.asked[each.name])
        compose = schemas_answer if tool == "get_schemas" else descriptions_answer
        return compose(asking.asked, self._caller.limits)

    def _tell(self, each: Registered, ticket: Ticket, future: Future[Any]) -> None:
        """Tell the breaker how a backend failed to be there; a schema that came may have been at hand, and tells nothing."""
        error = _error_of(future)
        if error is None:
            self._caller.shield.breakers[each.name].left(ticket)
        else:
            self._caller.shield.failed(each, ticket, error)


def ask(backend: KnowledgeBase, question: Callable[[KnowledgeBase], T]) -> Future[T]:
    """Ask a backend something in one of its workers; a pool that gives none is an answer like any other failure."""
    try:
        return worker_pool(backend).submit(question, backend)
    except KnowledgeError as error:
        return failed(error)


def failed(error: Exception) -> Future[Any]:
    """Return a future of what can't be asked for."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _error_of(future: Future[Any]) -> BaseException | None:
    """Return why there is no answer, `None` where there is one."""
    if not future.done() or future.cancelled():
        return KnowledgeTimeoutError("no answer in time")
    return future.exception()


def _schema(each: Registered, backend: KnowledgeBase) -> object:
    schema = _schema_for(each, backend)
    schema["capabilities"] = each.capabilities.model_dump()  # As far as the agent may use them.
    return encode(schema)


def _schema_for(each: Registered, backend: KnowledgeBase) -> dict[str, Any]:
    """Return a schema that tells an agent with a row scope nothing of other records."""
    if not each.filters:
        return backend.schema()
    if "filters" in keywords_of(backend.schema):
        return backend.schema(filters=dict(each.filters))
    return {"backend": each.name}


def _description_of(each: Registered, backend: KnowledgeBase) -> tuple[str, list[str]]:
    # A description is the deployment's; faults are the content's, and so not for everybody.
    hidden = each.filters or (backend.requires_identity and current_identity() is None)
    found = () if hidden else backend.get_diagnostics()
    return described(backend), [one_line(to_text(diagnostic)) for diagnostic in found]


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
    error = _error_of(future)
    if error is None:
        return future.result(), False
    future.cancel()
    if isinstance(error, Refusal):
        return error.sentence, True
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
