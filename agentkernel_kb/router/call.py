"""One guarded call, end to end, used by every tool that asks one backend, in its plain and its async form.

    1 find the backend · 2 check what it declares · 3 resolve the semantic map          Planner.plan
    4 look whether it acts for somebody, and whether the backend is left alone          _plan, Shield.enter
    5 prove that a statement reads, run it within the deadline, again where that helps  run, arun: the only step with two forms
    6 bound rows and characters · 7 render                                              records_answer, written_answer
    8 observe: one event                                                                _observed

Nothing is raised into a framework: each failure becomes a sentence and an outcome of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, cast, get_args

from agentkernel_kb.base import worker_pool
from agentkernel_kb.errors import (
    KnowledgeBackendError,
    KnowledgeCapabilityError,
    KnowledgeGuardError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
)
from agentkernel_kb.identity import required_identity
from agentkernel_kb.model import Operation, Record, RecordPage
from agentkernel_kb.router.answer import Answer, records_answer, written_answer
from agentkernel_kb.router.events import ToolEvent, emit
from agentkernel_kb.router.failures import Refusal, from_exception, not_implemented, undeclared
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.plan import Plan, Planner, Request
from agentkernel_kb.router.resilience import Shield

if TYPE_CHECKING:
    import asyncio

_LOG = logging.getLogger("agentkernel_kb.router")
_SHORT_RECORDS = 20
_SHORT_CHARS = 5_000
_CLOSED_SENTENCE = "The knowledge bases are closed. No tool can reach them any more."


class Caller:
    """Runs tool calls against the backends of one router.

    Args:
        planner: Finds the backend and resolves the arguments.
        limits: Bounds of every call.
        shield: Knows which backends are not there, and what to do then.
        on_event: Told of each call once it is over.
    """

    def __init__(
        self, planner: Planner, limits: Limits, shield: Shield, on_event: Callable[[ToolEvent], object] | None
    ) -> None:
        self._planner = planner
        self.limits = limits
        self.shield = shield
        self._on_event = on_event
        self.closed = False

    def call(self, request: Request, *, offers_write: bool = True) -> str:
        """Serve a call and return what the model reads; never raises an `Exception`.

        Args:
            request: The call.
            offers_write: The agent has `write_kb` too, so that a refusal may point to it.
        """
        started = time.perf_counter()
        plan: Plan | None = None
        try:
            plan = self._plan(request)
            answer = self._asked(plan)
        except BaseException as error:
            answer = self._failed(error, plan, offers_write)
            if must_go_on(error):
                self._observed(request, plan, answer, started)
                raise
        return self._observed(request, plan, answer, started)

    async def acall(self, request: Request, *, offers_write: bool = True) -> str:
        """`call` without blocking the event loop."""
        started = time.perf_counter()
        plan: Plan | None = None
        try:
            plan = self._plan(request)
            answer = await self._aasked(plan)
        except BaseException as error:
            answer = self._failed(error, plan, offers_write)
            if must_go_on(error):
                self._observed(request, plan, answer, started)
                raise
        return self._observed(request, plan, answer, started)

    def _plan(self, request: Request) -> Plan:
        if self.closed:
            raise Refusal("closed", _CLOSED_SENTENCE)
        plan = self._planner.plan(request)
        if plan.target.backend.requires_identity:
            required_identity(plan.target.name)
        return plan

    def _asked(self, plan: Plan) -> Answer:
        """Ask the backend, if it is not left alone, and again where that is safe and may help."""
        plan.ticket = self.shield.enter(plan.target.name)
        try:
            answer = self._heard(plan)
            if not isinstance(answer, Answer):
                answer = self.shield.repeated(plan, answer, self._again)
        except BaseException as error:
            self.shield.failed(plan.target, plan.ticket, error)
            raise
        self.shield.answered(plan, answer)
        return answer

    async def _aasked(self, plan: Plan) -> Answer:
        """`_asked` without blocking the event loop."""
        plan.ticket = self.shield.enter(plan.target.name)
        try:
            answer = await self._aheard(plan)
            if not isinstance(answer, Answer):
                answer = await self.shield.arepeated(plan, answer, self._aagain)
        except BaseException as error:
            self.shield.failed(plan.target, plan.ticket, error)
            raise
        self.shield.answered(plan, answer)
        return answer

    def _heard(self, plan: Plan) -> Answer | Exception:
        """Ask once, and return an error after which the call may be made again: it is over then, and hides in no later one."""
        try:
            return self._again(plan)
        except Exception as error:
            if not self.shield.may_repeat(plan, error):
                raise
            return error

    async def _aheard(self, plan: Plan) -> Answer | Exception:
        try:
            return await self._aagain(plan)
        except Exception as error:
            if not self.shield.may_repeat(plan, error):
                raise
            return error

    def _again(self, plan: Plan) -> Answer:
        plan.attempts += 1
        return run(plan, self._serve)

    async def _aagain(self, plan: Plan) -> Answer:
        plan.attempts += 1
        return await arun(plan, self._serve, self._answer, self.limits.rows)

    def _serve(self, plan: Plan) -> Answer:
        """Run the operation and compose the answer, where what both take counts towards the deadline."""
        return self._answer(plan, _guarded(plan, self.limits.rows))

    def _answer(self, plan: Plan, returned: object) -> Answer:
        if plan.operation == "write":
            return written_answer(plan, returned, self.limits)
        return records_answer(plan, returned, self.limits)

    def _failed(self, error: BaseException, plan: Plan | None, offers_write: bool) -> Answer:
        if must_go_on(error):
            return Answer("", "cancelled")
        refusal = error if isinstance(error, Refusal) else self._refusal(error, plan)
        if plan and (stale := self.shield.stale(plan, error)):
            return stale
        sentence = refusal.sentence
        if offers_write and plan and isinstance(error, KnowledgeGuardError) and (writable := self._planner.names_taking(plan)):
            sentence += f" To write, use write_kb with: {writable}."
        return Answer(sentence[: self.limits.characters], refusal.outcome)

    def _refusal(self, error: BaseException, plan: Plan | None) -> Refusal:
        name, operation = (plan.target.name, plan.operation) if plan else ("", "call")
        log_failure(error, name, operation)
        if isinstance(error, KnowledgeCapabilityError) and plan:
            still_declared = plan.target.backend.capabilities.supports(plan.operation)  # It may know more since it was opened.
            if error.capability not in get_args(Operation) or (error.capability == plan.operation and still_declared):
                return not_implemented(name, operation)
            capable = [other for other in self._planner.names_supporting(error.capability) if other != name]
            return undeclared(name, error.capability, capable, plan.target.capabilities)
        if isinstance(error, KnowledgeStateError) and self.closed:
            return Refusal("closed", _CLOSED_SENTENCE)
        return from_exception(error, name, operation, self.limits.seconds)

    def _observed(self, request: Request, plan: Plan | None, answer: Answer, started: float) -> str:
        name, operation = (plan.target.name, plan.operation) if plan else (self._planner.known_name(request.backend), "")
        self.observe(request.tool, name, operation, answer, started, plan.attempts if plan else 0)
        return answer.text

    def observe(self, tool: str, backend: str, operation: str, answer: Answer, started: float, attempts: int) -> None:
        """Tell of a call that is over."""
        milliseconds = (time.perf_counter() - started) * 1_000
        event = ToolEvent(tool, backend, operation, answer.outcome, answer.rows, len(answer.text), milliseconds, attempts)
        emit(event, self._on_event)


def closed_answer() -> Answer:
    """Say that the router is closed."""
    return Answer(_CLOSED_SENTENCE, "closed")


def must_go_on(error: BaseException) -> bool:
    """Tell whether an error ends a task or the process: a cancellation, an interrupt, an exit.

    Anything else is an answer, also what is no `Exception`, such as the panic of a native extension.
    """
    cancelled = not isinstance(error, Exception) and type(error).__name__ == "CancelledError"  # asyncio need not be loaded.
    return cancelled or isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit)


def log_failure(error: BaseException, backend: str, operation: str) -> None:
    """Tell the operator what failed; what the error says may be confidential and is logged at DEBUG only."""
    _LOG.info("%s on '%s' failed: %s", operation, backend, type(error).__name__)
    _LOG.debug("%s on '%s' failed", operation, backend, exc_info=error)


def run(plan: Plan, serve: Callable[[Plan], Answer]) -> Answer:
    """Serve a call: in this thread if its operation promises to give up in time, else in a worker of its backend.

    Raises:
        KnowledgeTimeoutError: A worker did not answer in time; what it does goes on and is dropped.
    """
    if _gives_up_by_itself(plan):
        return serve(plan)
    future = worker_pool(plan.target.backend).submit(serve, plan)
    try:
        return future.result(plan.seconds_left())
    except TimeoutError:
        if future.done():  # The backend's own time-out, not ours.
            raise
        future.cancel()
        raise KnowledgeTimeoutError("no answer in time") from None


def _gives_up_by_itself(plan: Plan) -> bool:
    proof_is_bounded = plan.operation != "query" or not plan.target.guards or "timeout" in plan.target.guard_options
    return proof_is_bounded and "timeout" in plan.way.options


def _guarded(plan: Plan, max_rows: int) -> object:
    if plan.operation == "query":
        _prove(plan)
    operation = getattr(plan.target.backend, plan.way.method)
    returned = operation(*plan.positional, **plan.options(plan.way.options, max_rows))
    if isinstance(returned, Iterator):  # It does its work as it is read: here, and not where the answer is composed.
        taken = list(islice(cast("Iterator[Record]", returned), max_rows + 1))
        return RecordPage(taken, more=len(taken) > max_rows)
    return returned


def _prove(plan: Plan) -> None:
    timeout = plan.options(plan.target.guard_options & {"timeout"}, 0)
    plan.target.backend.check_read(plan.positional[0], allow=plan.allow, **timeout)


async def arun(plan: Plan, serve: Callable[[Plan], Answer], compose: Callable[[Plan, object], Answer], max_rows: int) -> Answer:
    """Serve a call by the operation's own twin, or in a worker; it is left behind if it does not answer in time.

    Raises:
        KnowledgeTimeoutError: It did not.
        KnowledgeBackendError: The backend cancelled its own work.
    """
    import asyncio  # Loaded by whoever runs an event loop; a program without one doesn't pay for it.

    if plan.way.native:
        work: asyncio.Future[Answer] = asyncio.ensure_future(_native(plan, compose, max_rows))
    else:
        work = asyncio.wrap_future(worker_pool(plan.target.backend).submit(serve, plan))
    try:
        await asyncio.wait({work}, timeout=plan.seconds_left())
    except asyncio.CancelledError:
        abandon(work)
        raise
    if work.cancelled():  # By something inside the backend: nobody cancelled this call.
        raise KnowledgeBackendError("the backend cancelled its own work")
    if work.done():
        return work.result()
    abandon(work)
    raise KnowledgeTimeoutError("no answer in time")


async def _native(plan: Plan, compose: Callable[[Plan, object], Answer], max_rows: int) -> Answer:
    import asyncio

    # A proof takes a parse, or a question to the server, and a long answer takes rendering: neither on the event loop.
    pool = worker_pool(plan.target.backend)
    if plan.operation == "query" and plan.target.guards:
        await asyncio.wrap_future(pool.submit(_prove, plan))
    operation = getattr(plan.target.backend, f"a{plan.way.method}")
    returned = await operation(*plan.positional, **plan.options(plan.way.async_options, max_rows))
    if _is_short(returned):
        return compose(plan, returned)
    return await asyncio.wrap_future(pool.submit(compose, plan, returned))


def _is_short(returned: object) -> bool:
    """Tell whether an answer of these records is composed faster than a thread is changed."""
    if not isinstance(returned, list) or len(cast("list[object]", returned)) > _SHORT_RECORDS:
        return False
    return sum(map(_length, cast("list[object]", returned))) <= _SHORT_CHARS


def _length(record: object) -> int:
    """Return the length of a record's text; what is no plain text counts as long."""
    text: object = cast("dict[str, object]", record).get("text") if isinstance(record, dict) else None
    return len(text) if isinstance(text, str) else _SHORT_CHARS + 1


def abandon(work: asyncio.Future[Any]) -> None:
    """Cancel work that nobody waits for any more, and see its exception, so that asyncio does not log it with its text."""
    work.cancel()
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
