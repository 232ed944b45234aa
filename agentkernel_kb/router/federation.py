"""One question to every backend that can rank: asked at once, within one deadline, and answered by one fused ranking."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any

from agentkernel_kb.errors import KnowledgeError
from agentkernel_kb.render import NOTHING_FOUND
from agentkernel_kb.router.answer import Answer
from agentkernel_kb.router.events import Outcome
from agentkernel_kb.router.failures import from_exception, why_not_there
from agentkernel_kb.router.fusion import Fused, fuse
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.plan import Plan
from agentkernel_kb.workers import WorkerPool

_MOST_WAITING = 32
"""Most searches of all that wait for one backend at a time; those of a backend that hangs give up with their deadline."""

_SHORTEST = 200
"""Characters to which a record is cut at most, so that more of them fit."""

_SHOWN_OTHERS = 4
_ANSWERED: tuple[Outcome, ...] = ("ok", "empty", "partial", "stale")
_WHY: dict[Outcome, str] = {
    "refused": "refused",
    "identity": "refused: this call acts for nobody, or for somebody it does not take",
    "rejected": "rejected the question",
    "closed": "closed",
}


@dataclass(frozen=True, slots=True)
class Part:
    """What came of one backend.

    Attributes:
        plan: What it was asked.
        answer: Its hits, or how it failed.
        seconds: How long it took.
    """

    plan: Plan
    answer: Answer
    seconds: float

    @property
    def answered(self) -> bool:
        """It said what it has, be that nothing or an old answer."""
        return self.answer.outcome in _ANSWERED


class Federation:
    """Asks several backends at once, each by the guarded call that any other search of it goes through.

    Args:
        limits: Bounds of a call.
        ask: Asks one backend; failures are answers.
        aask: The same as a coroutine.
    """

    def __init__(
        self, limits: Limits, ask: Callable[[Plan], Answer], aask: Callable[[Plan], Coroutine[Any, Any, Answer]]
    ) -> None:
        self._limits = limits
        self._ask = ask
        self._aask = aask
        # Whoever waits for a backend waits in a thread of its own, so that one that hangs takes no thread from the others.
        self._waiting: dict[str, WorkerPool] = {}

    def ask(self, plans: Sequence[Plan]) -> list[Part]:
        """Ask all at once, and wait as long as the deadline allows."""
        started = time.perf_counter()
        futures = [self._submitted(plan) for plan in plans]
        wait(futures, timeout=max((plan.seconds_left() for plan in plans), default=0))
        return [self._part(plan, future, started) for plan, future in zip(plans, futures, strict=True)]

    async def aask(self, plans: Sequence[Plan]) -> list[Part]:
        """`ask` without blocking the event loop; where the caller gives up, so does every search."""
        import asyncio

        async def one(plan: Plan) -> Part:
            started = time.perf_counter()
            return Part(plan, await self._aask(plan), time.perf_counter() - started)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(plan)) for plan in plans]
        return [task.result() for task in tasks]

    def _submitted(self, plan: Plan) -> Future[Part]:
        def work() -> Part:
            started = time.perf_counter()
            return Part(plan, self._ask(plan), time.perf_counter() - started)

        name = plan.target.name
        pool = self._waiting.setdefault(name, WorkerPool(_MOST_WAITING, f"kb-all-{name}"))
        try:
            return pool.submit(work)
        except KnowledgeError as error:  # The system gives no thread.
            failed: Future[Part] = Future()
            failed.set_exception(error)
            return failed

    def _part(self, plan: Plan, future: Future[Part], started: float) -> Part:
        if future.done() and not future.exception():
            return future.result()
        future.cancel()
        error = future.exception() if future.done() and not future.cancelled() else TimeoutError()
        refusal = from_exception(error or TimeoutError(), plan.target.name, plan.operation, self._limits.seconds)
        kind = "timeout" if refusal.outcome == "timeout" else None
        return Part(plan, Answer(refusal.sentence, refusal.outcome, kind=kind), time.perf_counter() - started)

    def close(self) -> None:
        """Let the threads end."""
        for pool in list(self._waiting.values()):
            pool.release()


def fused_answer(parts: Sequence[Part], limit: int, limits: Limits) -> Answer:
    """Compose what all backends found: the best records first, each once, under a word on who did not answer.

    Args:
        parts: What came of each backend.
        limit: Most records to show.
        limits: Bounds of an answer.
    """
    answered = [part for part in parts if part.answered]
    if not answered:
        return _nobody(parts, limits)
    fused = fuse([part.answer.hits for part in answered])
    notes = [_silent(parts, limits), *(part.answer.text.strip() for part in answered)]
    notes = [note for note in notes if note]
    more = len(fused) > limit or any(part.answer.more for part in answered)
    if not fused:
        text = "\n".join([*notes, NOTHING_FOUND])
        return Answer(text[: limits.characters], _outcome(parts, answered, "empty"))
    lines, cut = _fitting(fused[:limit], limits.characters - sum(len(note) + 1 for note in notes) - _ROOM_FOR_NOTE)
    if cut or more:
        unseen = any(part.answer.more or len(part.answer.hits) >= part.plan.limit for part in answered)
        notes.insert(0, _partial(len(lines), len(fused), limit, limits, unseen=unseen, cut=cut))
    text = "\n".join([*notes, *lines])
    return Answer(text[: limits.characters], _outcome(parts, answered, "partial" if cut or more else "ok"), len(lines))


_ROOM_FOR_NOTE = 160


def _outcome(parts: Sequence[Part], answered: Sequence[Part], otherwise: Outcome) -> Outcome:
    if len(answered) < len(parts):
        return "partial"
    return "stale" if any(part.answer.outcome == "stale" for part in answered) else otherwise


def _nobody(parts: Sequence[Part], limits: Limits) -> Answer:
    outcomes: set[Outcome] = {part.answer.outcome for part in parts}
    said = f"{_silent(parts, limits)} This is not an empty result. Try again later, or ask one of them in another way."
    return Answer(said[: limits.characters], outcomes.pop() if len(outcomes) == 1 else "error")


def _silent(parts: Sequence[Part], limits: Limits) -> str:
    """Say in one line which backends did not answer, and why."""
    silent = [f"'{part.plan.target.name}' ({_why(part, limits)})" for part in parts if not part.answered]
    return f"No answer from {', '.join(silent)}." if silent else ""


def _why(part: Part, limits: Limits) -> str:
    if part.answer.kind == "timeout" and part.plan.attempts:
        return f"not within {limits.seconds:g} s"
    if part.answer.kind is not None:
        return why_not_there(part.answer.kind)
    return _WHY.get(part.answer.outcome, "failed")


def _partial(shown: int, known: int, limit: int, limits: Limits, *, unseen: bool, cut: bool) -> str:
    of = f"{shown} of {'more than ' if unseen else ''}{known:,} record{'' if known == 1 else 's'}"
    if cut:
        return f"Partial: {of}, cut at {limits.characters:,} characters. Lower the limit, or fetch whole records by their ids."
    if limit >= limits.rows:
        return f"Partial: {of}, limited by rows. Narrow the query for the rest."
    return f"Partial: {of}, limited by limit. More: limit={min(max(known, 10 * limit), limits.rows)}."


def _fitting(fused: Sequence[Fused], room: int) -> tuple[list[str], bool]:
    """Return as many lines as fit, and whether anything is left out.

    Long records are cut before any is left out, all to the same length, so that none of them takes the place of others.
    """
    heads, bodies, tails = zip(*((f"- [{one.first.label}] ", one.first.line, _others(one)) for one in fused), strict=True)
    fixed = [len(head) + len(tail) + 1 for head, tail in zip(heads, tails, strict=True)]
    count = len(fused)
    while count > 1 and sum(fixed[:count]) + sum(min(len(body), _SHORTEST) for body in bodies[:count]) > room:
        count -= 1
    most = _common_length([len(body) for body in bodies[:count]], max(0, room - sum(fixed[:count])))
    lines = [f"{head}{_shortened(body, most)}{tail}" for head, body, tail in zip(heads[:count], bodies, tails, strict=False)]
    return lines, count < len(fused) or any(len(body) > most for body in bodies[:count])


def _others(one: Fused) -> str:
    labels = list(dict.fromkeys(hit.label for hit in one.others))
    shown = ", ".join(f"[{label}]" for label in labels[:_SHOWN_OTHERS])
    more = f" and {len(labels) - _SHOWN_OTHERS} more" if len(labels) > _SHOWN_OTHERS else ""
    return f" = {shown}{more}" if shown else ""


def _shortened(body: str, most: int) -> str:
    return body if len(body) <= most else f"{body[: max(0, most - 1)].rstrip()}…"


def _common_length(lengths: Sequence[int], room: int) -> int:
    """Return the greatest length to which all can be cut so that together they fit."""
    left, most = room, 0
    for number, length in enumerate(sorted(lengths)):
        most = left // (len(lengths) - number)
        if length > most:
            return most
        left -= length
    return max(lengths)
