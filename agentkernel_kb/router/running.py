"""One attempt of a call, within its deadline: in this thread, in a worker of its backend, or as its own coroutine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from agentkernel_kb.base import worker_pool
from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeTimeoutError
from agentkernel_kb.model import Record, RecordPage
from agentkernel_kb.router.answer import Answer
from agentkernel_kb.router.plan import Plan

if TYPE_CHECKING:
    import asyncio

_SHORT_RECORDS = 20
_SHORT_CHARS = 5_000


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


def guarded(plan: Plan, max_rows: int) -> object:
    """Run the operation in this thread, and the proof of its statement before it."""
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
