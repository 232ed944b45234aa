"""What the router does about a backend that is not there: try a read again, leave the backend alone, give an old answer."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkernel_kb.base import overrides, worker_pool
from agentkernel_kb.errors import AKConfigError, KnowledgeConnectionError, KnowledgeError, KnowledgeQueryError
from agentkernel_kb.router.answer import Answer
from agentkernel_kb.router.breaker import PASS, Breaker, Kind, Ticket
from agentkernel_kb.router.failures import Refusal, left_alone, why_not_there
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.plan import Plan, Registered
from agentkernel_kb.router.stale import StaleAnswers

if TYPE_CHECKING:
    from tenacity.stop import stop_base
    from tenacity.wait import wait_base

_GOOD = ("ok", "empty", "partial")
_PING_SECONDS = 5.0


@dataclass(frozen=True)
class Resilience:
    """What is done about a backend that cannot be reached. Time is in seconds.

    Attributes:
        attempts: Most times that one read is tried, 1 for never again. Writes are never repeated.
        wait_seconds: Longest wait before the second try; doubled before each further one. How long it is, is left to chance, so
            that many callers don't come back at once.
        max_wait_seconds: Longest wait before any try.
        failures: Calls in a row that fail to reach a backend before it is left alone.
        open_seconds: How long it is left alone the first time; doubled each time that it is still not there.
        max_open_seconds: How long it is left alone at most.
        stale_seconds: How old an answer may be that is given again where the backend cannot be reached; 0 for never.
        stale_entries: Most answers kept for that.
        stale_characters: Most characters of them all.

    Raises:
        AKConfigError: A value is no number in its range, or a first time is longer than the longest.
    """

    attempts: int = 3
    wait_seconds: float = 0.2
    max_wait_seconds: float = 2.0
    failures: int = 3
    open_seconds: float = 5.0
    max_open_seconds: float = 60.0
    stale_seconds: float = 0.0
    stale_entries: int = 256
    stale_characters: int = 2_000_000

    def __post_init__(self) -> None:
        for name in ("attempts", "failures", "stale_entries", "stale_characters"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise AKConfigError(f"Resilience.{name} must be a whole number, at least 1, not {value!r}.")
        for name in ("wait_seconds", "max_wait_seconds", "open_seconds", "max_open_seconds", "stale_seconds"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not (math.isfinite(value) and value >= 0):
                raise AKConfigError(f"Resilience.{name} must be a number of seconds, not {value!r}.")
        for first, longest in (("wait_seconds", "max_wait_seconds"), ("open_seconds", "max_open_seconds")):
            if getattr(self, first) > getattr(self, longest):
                raise AKConfigError(f"Resilience.{first} must not be more than {longest}.")
        if not self.open_seconds:
            raise AKConfigError("Resilience.open_seconds must be more than 0.")


class LeftAlone(Refusal):
    """The call is not made, because the backend could not be reached lately.

    Attributes:
        kind: How it failed last.
    """

    def __init__(self, sentence: str, kind: Kind) -> None:
        super().__init__("unavailable", sentence)
        self.kind: Kind = kind


class Shield:
    """Stands between the calls of one router and its backends that may not be there.

    Args:
        policy: What to do.
        registered: The backends.
        limits: Bounds of an answer.
    """

    def __init__(self, policy: Resilience, registered: Iterable[Registered], limits: Limits) -> None:
        self._policy = policy
        self._limits = limits
        self.breakers = {
            each.name: Breaker(policy.failures, policy.open_seconds, policy.max_open_seconds) for each in registered
        }
        self._stale = (
            StaleAnswers(policy.stale_seconds, policy.stale_entries, policy.stale_characters) if policy.stale_seconds else None
        )

    def enter(self, name: str) -> Ticket:
        """Ask to call a backend.

        Raises:
            LeftAlone: Not now.
        """
        breaker = self.breakers[name]
        if not breaker.failing:
            return PASS
        ticket = breaker.enter()
        if ticket is not None:
            return ticket
        outage = breaker.outage
        if outage is None:  # It has come back since.
            return PASS
        working = [other for other, its in self.breakers.items() if other != name and its.state == "closed"]
        raise LeftAlone(left_alone(name, outage, working), outage.kind)

    def answered(self, plan: Plan, answer: Answer) -> None:
        """A call reached its backend; a good answer to a read is remembered where old ones may be given."""
        if self.breakers[plan.target.name].failing:
            self.succeeded(plan.target.name)
        if self._stale is not None and plan.operation != "write" and answer.outcome in _GOOD:
            self._stale.keep(plan, answer, self._limits.characters)

    def succeeded(self, name: str) -> None:
        """A backend was reached."""
        self.breakers[name].succeeded()

    def failed(self, target: Registered, ticket: Ticket, error: BaseException) -> None:
        """A call ended with an error: one of the way there, one of the store's own, or one that tells nothing."""
        breaker = self.breakers[target.name]
        kind = kind_of(error)
        if isinstance(error, KnowledgeQueryError):
            breaker.succeeded()
        elif kind is None:
            breaker.left(ticket)
        elif breaker.failed(ticket, kind) and kind == "timeout":
            self._ask_whether_it_hangs(target)

    def _ask_whether_it_hangs(self, target: Registered) -> None:
        """Close the breaker again, in the background, where a backend that was too slow answers a ping.

        Statements that take too long do not make a store one that is not there: without this, one agent's heavy statements
        would take it away from all others.
        """
        if not overrides(target.backend, "ping"):
            return

        def look(pinged: Future[str]) -> None:
            if not pinged.cancelled() and pinged.exception() is None:
                self.succeeded(target.name)

        try:
            worker_pool(target.backend).submit(target.backend.ping, timeout=_PING_SECONDS).add_done_callback(look)
        except KnowledgeError:  # There is no thread to ask in: it stays as it is, until the next try.
            return

    def stale(self, plan: Plan, error: BaseException) -> Answer | None:
        """Return an old answer in place of an error, where it may be given.

        Only if nobody answers. Who is not let in any more is not shown what they once were.
        """
        kind = error.kind if isinstance(error, LeftAlone) else kind_of(error)
        if self._stale is None or plan.operation == "write" or kind not in ("unreachable", "timeout"):
            return None
        return self._stale.find(plan, why_not_there(kind))

    def forget(self) -> None:
        """Forget what was answered."""
        if self._stale is not None:
            self._stale.clear()

    def may_repeat(self, plan: Plan, error: BaseException) -> bool:
        """Tell whether a call may be made again: a read that nobody heard, of a backend that is not left alone yet."""
        return (
            self._policy.attempts > 1
            and plan.operation != "write"
            and kind_of(error) == "unreachable"
            and plan.ticket == PASS
            and self.breakers[plan.target.name].state == "closed"
        )

    def repeated(self, plan: Plan, error: Exception, again: Callable[[Plan], Answer]) -> Answer:
        """Make a call again that failed with `error`, until it succeeds or fails in another way, or tries or time run out.

        Raises:
            Exception: What the last try raised.
        """
        import tenacity  # Loaded by whoever has a failure.

        first = [error]

        def attempt() -> Answer:
            if first:
                raise first.pop()
            return again(plan)

        may_repeat = tenacity.retry_if_exception(lambda raised: self.may_repeat(plan, raised))
        return tenacity.Retrying(stop=self._stop(plan), wait=self._wait(), retry=may_repeat, reraise=True)(attempt)

    async def arepeated(self, plan: Plan, error: Exception, again: Callable[[Plan], Awaitable[Answer]]) -> Answer:
        """`repeated` without blocking the event loop."""
        import tenacity

        first = [error]

        async def attempt() -> Answer:
            if first:
                raise first.pop()
            return await again(plan)

        may_repeat = tenacity.retry_if_exception(lambda raised: self.may_repeat(plan, raised))
        return await tenacity.AsyncRetrying(stop=self._stop(plan), wait=self._wait(), retry=may_repeat, reraise=True)(attempt)

    def _stop(self, plan: Plan) -> stop_base:
        from tenacity import stop_after_attempt, stop_before_delay

        return stop_after_attempt(self._policy.attempts) | stop_before_delay(plan.seconds_left())

    def _wait(self) -> wait_base:
        from tenacity import wait_random_exponential

        return wait_random_exponential(self._policy.wait_seconds, self._policy.max_wait_seconds)


def kind_of(error: BaseException) -> Kind | None:
    """Tell how an error says that a backend is not there; `None` where it says something else."""
    if isinstance(error, KnowledgeConnectionError):
        return error.state
    if isinstance(error, ConnectionError):
        return "unreachable"
    return "timeout" if isinstance(error, TimeoutError) else None


def checked_resilience(resilience: Any) -> Resilience:
    """Return the settings, the default ones for `None`.

    Raises:
        AKConfigError: They are something else.
    """
    if resilience is None:
        return Resilience()
    if not isinstance(resilience, Resilience):
        raise AKConfigError(f"resilience must be Resilience(attempts=…, failures=…, …), not {type(resilience).__name__}.")
    return resilience
