"""Stages that work at once, each on another thing, so that waiting for one does not hold up the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()
_WAITING = 1


async def pipelined(things: AsyncGenerator[T], *stages: Callable[[T], Awaitable[object]]) -> None:
    """Send each thing through the stages in order; between two of them at most one thing waits.

    The first failure ends all of it and is raised.

    Args:
        things: What is sent; it is closed in any case.
        stages: What is done with each thing.
    """
    queues: list[asyncio.Queue[Any]] = [asyncio.Queue(_WAITING) for _ in stages]

    async def feed() -> None:
        async with aclosing(things):
            async for thing in things:
                await queues[0].put(thing)
        await queues[0].put(_END)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(feed())
            for stage, taken, given in zip(stages, queues, [*queues[1:], None], strict=True):
                group.create_task(_worked(stage, taken, given))
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def _worked(
    stage: Callable[[Any], Awaitable[object]], taken: asyncio.Queue[Any], given: asyncio.Queue[Any] | None
) -> None:
    while (thing := await taken.get()) is not _END:
        await stage(thing)
        if given is not None:
            await given.put(thing)
    if given is not None:
        await given.put(_END)


async def divided(
    things: Sequence[T],
    work: Callable[[Sequence[T]], Awaitable[object]],
    fail: Callable[[T, Exception], object],
    is_hopeless: Callable[[Exception], bool],
) -> None:
    """Do something with things together; where that fails, with either half, down to the one that is to blame.

    Args:
        things: The things.
        work: What is done.
        fail: Told of a thing with which it cannot be done, and why.
        is_hopeless: Tells whether a failure is of all things alike, so that halves are not tried.

    Raises:
        BaseException: What `is_hopeless` raised, to end it all.
    """
    if not things:
        return
    try:
        await work(things)
        return
    except Exception as error:  # noqa: BLE001 - an embedder or a store of the application may raise anything
        if is_hopeless(error) or len(things) == 1:
            for thing in things:
                fail(thing, error)
            return
    middle = len(things) // 2
    for half in (things[:middle], things[middle:]):
        await divided(half, work, fail, is_hopeless)
