"""How every backend is, found out at once and in bounded time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from agentkernel_kb.base import KnowledgeBase, overrides
from agentkernel_kb.errors import AKConfigError, KnowledgeStateError, KnowledgeTimeoutError
from agentkernel_kb.model import KnowledgeCapabilities
from agentkernel_kb.render import one_line, to_text
from agentkernel_kb.router.breaker import BreakerState
from agentkernel_kb.router.failures import message_of
from agentkernel_kb.router.overview import ask, failed
from agentkernel_kb.router.plan import Registered
from agentkernel_kb.router.resilience import Shield, kind_of

HealthState = Literal["ok", "unreachable", "unauthorized", "missing", "untrusted", "timeout", "closed", "error"]
"""`ok`: it answers. `unreachable`: nobody does. `unauthorized`: the login is wrong. `missing`: what it was told to open, such
as a database, is not there. `untrusted`: its certificate does not hold. `timeout`: it did not answer in time. `closed`: it was
closed. `error`: it failed in another way.
"""

_MAX_VERSION = 200


@dataclass(frozen=True)
class BackendHealth:
    """How one backend is. Nothing in it is confidential.

    Attributes:
        name: Its name.
        state: Whether it can be used, and what is in the way.
        detail: A sentence on that; `""` where there is nothing to say.
        latency_ms: Milliseconds until it answered, or failed to.
        version: The store's version, `""` where it tells none.
        capabilities: What it declares.
        breaker: `open` while calls are answered at once because it could not be reached, `half-open` once the next call may
            find out, else `closed`.
        next_try: When a call may; `None` where any may, or one is at it.
    """

    name: str
    state: HealthState
    detail: str
    latency_ms: float
    version: str
    capabilities: KnowledgeCapabilities
    breaker: BreakerState
    next_try: datetime | None

    @property
    def is_ok(self) -> bool:
        """It can be used."""
        return self.state == "ok"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values that JSON can hold."""
        return asdict(self) | {
            "capabilities": self.capabilities.model_dump(),
            "next_try": self.next_try and self.next_try.isoformat(timespec="seconds"),
        }


@dataclass(frozen=True)
class _Pinged:
    """What came of a ping, and when."""

    version: str = ""
    error: BaseException | None = None
    at: float = field(default_factory=time.perf_counter)


Pings = Mapping[str, "Future[_Pinged]"]


def check(registered: Iterable[Registered], shield: Shield, timeout: float, *, closed: bool) -> dict[str, BackendHealth]:
    """Ask every backend at once, and wait at most `timeout` seconds.

    Raises:
        AKConfigError: `timeout` is no positive number.
    """
    targets = list(registered)
    started, pings = time.perf_counter(), _asked(targets, timeout, closed=closed)
    wait(pings.values(), timeout=timeout)
    return _found(targets, shield, pings, started)


async def acheck(
    registered: Iterable[Registered],
    shield: Shield,
    timeout: float,
    *,
    closed: bool,
) -> dict[str, BackendHealth]:
    """`check` without blocking the event loop."""
    import asyncio

    targets = list(registered)
    started, pings = time.perf_counter(), _asked(targets, timeout, closed=closed)
    waiting = [asyncio.wrap_future(future) for future in pings.values()]
    try:
        if waiting:
            await asyncio.wait(waiting, timeout=timeout)
    finally:
        found = _found(targets, shield, pings, started)
        for future in waiting:
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return found


def _asked(targets: Iterable[Registered], timeout: float, *, closed: bool) -> dict[str, Future[_Pinged]]:
    supplied: object = timeout
    if not isinstance(supplied, int | float) or isinstance(supplied, bool) or not (math.isfinite(supplied) and supplied > 0):
        raise AKConfigError(f"timeout must be a positive number of seconds, not {supplied!r}.")
    if closed:
        return {each.name: failed(KnowledgeStateError("The knowledge bases are closed.")) for each in targets}

    def ping(backend: KnowledgeBase) -> _Pinged:
        try:
            version: object = backend.ping(timeout=timeout)
        except Exception as error:  # noqa: BLE001 - whatever it raises says how the backend is
            return _Pinged(error=error)
        return _Pinged(one_line(to_text(version))[:_MAX_VERSION])

    return {each.name: ask(each.backend, ping) for each in targets}


def _found(targets: Iterable[Registered], shield: Shield, pings: Pings, started: float) -> dict[str, BackendHealth]:
    return {each.name: _one(each, shield, pings[each.name], started) for each in targets}


def _one(each: Registered, shield: Shield, ping: Future[_Pinged], started: float) -> BackendHealth:
    pinged = _result(ping)
    state, detail = ("ok", _welcome(each, shield)) if pinged.error is None else _trouble(pinged.error)
    breaker = shield.breakers[each.name]
    outage = breaker.outage
    return BackendHealth(
        name=each.name,
        state=state,
        detail=detail,
        latency_ms=round((pinged.at - started) * 1_000, 3),
        version=pinged.version,
        capabilities=each.capabilities,
        breaker=breaker.state,
        next_try=outage and outage.next_try,
    )


def _result(ping: Future[_Pinged]) -> _Pinged:
    if not ping.done():
        ping.cancel()
        return _Pinged(error=KnowledgeTimeoutError("It did not answer in time."))
    error = ping.exception()
    return ping.result() if error is None else _Pinged(error=error)


def _welcome(each: Registered, shield: Shield) -> str:
    """Let calls pass to a backend that has just answered; one without a ping of its own has not said anything."""
    if not overrides(each.backend, "ping"):
        return "Not asked: this backend has no ping of its own."
    shield.succeeded(each.name)
    return ""


def _trouble(error: BaseException) -> tuple[HealthState, str]:
    """Return the state, and the message of one of our errors; of any other only its type, as its message may hold anything."""
    state: HealthState = "closed" if isinstance(error, KnowledgeStateError) else kind_of(error) or "error"
    return state, message_of(error) or f"It failed with {type(error).__name__}."
