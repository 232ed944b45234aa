"""One guarded call, end to end, used by every tool that asks for records, in its plain and its async form.

    1 find the backend, or all that can rank · 2 check what it declares and the agent may do ·
    3 resolve the semantic map                                                          Planner.plan, plan_all
    4 look whether it acts for somebody, and whether the backend is left alone          _permit, Shield.enter
    5 prove that a statement reads, run it within the deadline and the agent's row
      scope, again where that helps                                                     run, arun: the only step with two forms
    6 bound rows and characters · 7 render, or fuse what several backends found         records_answer, …, fused_answer
    8 observe: an event and a span for the call and for each backend                    begin, end

Nothing is raised into a framework: each failure becomes a sentence and an outcome of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

from agentkernel_kb.errors import KnowledgeCapabilityError, KnowledgeGuardError, KnowledgeStateError
from agentkernel_kb.identity import required_identity
from agentkernel_kb.model import Operation
from agentkernel_kb.router.answer import Answer, hits_answer, records_answer, written_answer
from agentkernel_kb.router.events import ToolEvent, emit
from agentkernel_kb.router.failures import Refusal, from_exception, not_implemented, undeclared
from agentkernel_kb.router.federation import Federation, Part, fused_answer
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.plan import ALL, Plan, Planner, Request
from agentkernel_kb.router.resilience import LeftAlone, Shield, kind_of
from agentkernel_kb.router.running import arun, guarded, run
from agentkernel_kb.router.telemetry import Open, Telemetry

_LOG = logging.getLogger("agentkernel_kb.router")
_CLOSED_SENTENCE = "The knowledge bases are closed. No tool can reach them any more."
_CANCELLED = Answer("", "cancelled")


@dataclass(slots=True)
class Call:
    """A tool call that is being served.

    Attributes:
        request: The call as it arrived.
        opened: Its span.
        started: When it began, by `time.perf_counter()`.
        plans: What its backends are asked, as far as that is known.
        operation: The operation, for a tool that asks every backend something else than for records.
        answer: How it ended.
    """

    request: Request
    opened: Open | None
    started: float = field(default_factory=time.perf_counter)
    plans: list[Plan] = field(default_factory=list[Plan])
    operation: str = ""
    answer: Answer = _CANCELLED


class Caller:
    """Runs tool calls against the backends of one router.

    Args:
        planner: Finds the backend and resolves the arguments.
        limits: Bounds of every call.
        shield: Knows which backends are not there, and what to do then.
        on_event: Told of each call once it is over.
        telemetry: Told as well, from the beginning.
    """

    def __init__(
        self,
        planner: Planner,
        limits: Limits,
        shield: Shield,
        on_event: Callable[[ToolEvent], object] | None,
        telemetry: Telemetry,
    ) -> None:
        self._planner = planner
        self.limits = limits
        self.shield = shield
        self._on_event = on_event
        self.telemetry = telemetry
        self._federation = Federation(limits, self.ask, self.aask)
        self.closed = False

    def call(self, request: Request, *, offers_write: bool = True) -> str:
        """Serve a call and return what the model reads; never raises an `Exception`.

        Args:
            request: The call.
            offers_write: The agent has `write_kb` too, so that a refusal may point to it.
        """
        call = self.begin(request)
        try:
            call.plans = self._plans(request)
            if self._planner.asks_all(request):
                call.answer = self._fused(request, self._federation.ask(call.plans))
            else:
                call.answer = self.ask(call.plans[0], offers_write=offers_write)
        except BaseException as error:
            if must_go_on(error):
                raise
            call.answer = self._failed(error, None)
        finally:
            self.end(call)
        return call.answer.text

    async def acall(self, request: Request, *, offers_write: bool = True) -> str:
        """`call` without blocking the event loop."""
        call = self.begin(request)
        try:
            call.plans = self._plans(request)
            if self._planner.asks_all(request):
                call.answer = self._fused(request, await self._federation.aask(call.plans))
            else:
                call.answer = await self.aask(call.plans[0], offers_write=offers_write)
        except BaseException as error:
            if must_go_on(error):
                raise
            call.answer = self._failed(error, None)
        finally:
            self.end(call)
        return call.answer.text

    def _plans(self, request: Request) -> list[Plan]:
        if self.closed:
            raise Refusal("closed", _CLOSED_SENTENCE)
        return self._planner.plan_all(request) if self._planner.asks_all(request) else [self._planner.plan(request)]

    def _fused(self, request: Request, parts: list[Part]) -> Answer:
        for part in parts:
            plan, answer = part.plan, part.answer
            self._tell(request.tool, plan.target.name, plan.operation, answer, part.seconds, plan.attempts)
        return fused_answer(parts, self._planner.limit_of(request), self.limits)

    def ask(self, plan: Plan, *, offers_write: bool = False) -> Answer:
        """Ask one backend; what goes wrong becomes an answer, but for what must go on."""
        opened = self.telemetry.start_backend(plan.target.backend, plan.target.name, plan.operation)
        started, answer = time.perf_counter(), _CANCELLED
        try:
            answer = self._asked(plan)
        except BaseException as error:
            if must_go_on(error):
                raise
            answer = self._failed(error, plan, offers_write)
        finally:
            self.telemetry.end_backend(opened, answer.outcome, answer.rows, plan.attempts, time.perf_counter() - started)
        return answer

    async def aask(self, plan: Plan, *, offers_write: bool = False) -> Answer:
        """`ask` without blocking the event loop."""
        opened = self.telemetry.start_backend(plan.target.backend, plan.target.name, plan.operation)
        started, answer = time.perf_counter(), _CANCELLED
        try:
            answer = await self._aasked(plan)
        except BaseException as error:
            if must_go_on(error):
                raise
            answer = self._failed(error, plan, offers_write)
        finally:
            self.telemetry.end_backend(opened, answer.outcome, answer.rows, plan.attempts, time.perf_counter() - started)
        return answer

    def _asked(self, plan: Plan) -> Answer:
        """Ask the backend, if it is not left alone, and again where that is safe and may help."""
        _permit(plan)
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
        _permit(plan)
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
        opened = self.telemetry.start_attempt(plan)
        failure: BaseException | None = None
        try:
            return run(plan, self._serve)
        except BaseException as error:
            failure = error
            raise
        finally:
            self.telemetry.end_attempt(opened, failure)

    async def _aagain(self, plan: Plan) -> Answer:
        plan.attempts += 1
        opened = self.telemetry.start_attempt(plan)
        failure: BaseException | None = None
        try:
            return await arun(plan, self._serve, self._answer, self.limits.rows)
        except BaseException as error:
            failure = error
            raise
        finally:
            self.telemetry.end_attempt(opened, failure)

    def _serve(self, plan: Plan) -> Answer:
        """Run the operation and compose the answer, where what both take counts towards the deadline."""
        return self._answer(plan, guarded(plan, self.limits.rows))

    def _answer(self, plan: Plan, returned: object) -> Answer:
        if plan.operation == "write":
            return written_answer(plan, returned, self.limits)
        if plan.as_hits:
            return hits_answer(plan, returned, self.limits)
        return records_answer(plan, returned, self.limits)

    def _failed(self, error: BaseException, plan: Plan | None, offers_write: bool = False) -> Answer:
        refusal = error if isinstance(error, Refusal) else self._refusal(error, plan)
        if plan and (stale := self.shield.stale(plan, error)):
            return stale
        sentence = refusal.sentence
        if offers_write and plan and isinstance(error, KnowledgeGuardError) and (writable := self._planner.names_taking(plan)):
            sentence += f" To write, use write_kb with: {writable}."
        kind = error.kind if isinstance(error, LeftAlone) else kind_of(error)
        return Answer(sentence[: self.limits.characters], refusal.outcome, kind=kind)

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

    def begin(self, request: Request) -> Call:
        """Begin to observe a call."""
        return Call(request, self.telemetry.start_tool(request.tool))

    def end(self, call: Call) -> None:
        """Tell of a call that is over."""
        name, operation = self._about(call)
        attempts = sum([plan.attempts for plan in call.plans])
        seconds = time.perf_counter() - call.started
        event = self._tell(call.request.tool, name, operation, call.answer, seconds, attempts)
        self.telemetry.end_tool(call.opened, event)

    def _about(self, call: Call) -> tuple[str, str]:
        """Return whom a call asks, and for what."""
        if call.operation:
            return "", call.operation
        operation = call.plans[0].operation if call.plans else ""
        if self._planner.asks_all(call.request):
            return ALL, operation
        return call.plans[0].target.name if call.plans else self._planner.known_name(call.request.backend), operation

    def _tell(self, tool: str, backend: str, operation: str, answer: Answer, seconds: float, attempts: int) -> ToolEvent:
        event = ToolEvent(tool, backend, operation, answer.outcome, answer.rows, answer.size, seconds * 1_000, attempts)
        emit(event, self._on_event)
        return event

    def close(self) -> None:
        """Serve no call any more."""
        self.closed = True
        self._federation.close()


def _permit(plan: Plan) -> None:
    if plan.target.backend.requires_identity:
        required_identity(plan.target.name)


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
