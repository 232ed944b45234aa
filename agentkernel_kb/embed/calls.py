"""Calls of somebody else's embedding function: in batches, several at once, and with what it returns checked."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError, KnowledgeBackendError, KnowledgeConnectionError, KnowledgeError

Vectors = list[list[float]]

_PASSING_STATUSES = frozenset((408, 409, 429, 500, 502, 503, 504))
_REFUSED_STATUSES = frozenset((401, 403))
_PASSING = frozenset(("APIConnectionError", "APITimeoutError"))


async def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a plain function in a thread, or await a coroutine function; neither blocks the event loop."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments, **named)
    returned = await asyncio.to_thread(function, *arguments, **named)
    return await returned if inspect.isawaitable(returned) else returned


async def in_batches(
    embed: Callable[[list[str]], Awaitable[Vectors]], texts: Sequence[str], *, size: int, concurrency: int
) -> Vectors:
    """Embed texts in batches, at most `concurrency` at once, and return their vectors in order.

    The first failure ends the others and is raised.
    """
    batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
    gate, failures_so_far = asyncio.Semaphore(concurrency), list[BaseException]()

    async def one(batch: list[str]) -> Vectors:
        async with gate:
            if failures_so_far:  # Who waited at the gate comes in before the group can end it.
                return []
            try:
                return await embed(batch)
            except BaseException as error:
                failures_so_far.append(error)
                raise

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(batch)) for batch in batches]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [vector for task in tasks for vector in task.result()]


def checked(returned: object, expected: int, subject: str, dimensions: int | None = None) -> Vectors:
    """Return what an embedding function returned, as lists of floats.

    Args:
        returned: What it returned: a sequence of sequences of numbers, or an array.
        expected: How many vectors there have to be.
        subject: What is said to have failed.
        dimensions: How long each has to be, where that is known.

    Raises:
        KnowledgeBackendError: It is something else.
    """
    try:
        vectors = [list(map(float, vector)) for vector in cast("Iterable[Iterable[Any]]", returned)]
    except (TypeError, ValueError, OverflowError):
        raise KnowledgeBackendError(f"{subject} did not return a list of vectors of numbers.") from None
    if len(vectors) != expected:
        raise KnowledgeBackendError(f"{subject} returned {len(vectors)} vectors for {expected} texts.")
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1 or 0 in lengths:
        raise KnowledgeBackendError(f"{subject} returned vectors of different lengths, or empty ones: {sorted(lengths)}.")
    if dimensions is not None and lengths and lengths != {dimensions}:
        raise KnowledgeBackendError(f"{subject} returned vectors of {lengths.pop()} dimensions in place of {dimensions}.")
    # A sum of finite numbers is finite unless they are huge; that of others never is.
    if not all(math.isfinite(sum(vector)) or all(map(math.isfinite, vector)) for vector in vectors):
        raise KnowledgeBackendError(f"{subject} returned numbers that are not finite.")
    return vectors


def failure(error: Exception, subject: str) -> KnowledgeError:
    """Return what to raise for whatever an embedding function raised, whose text may hold a key.

    Where no text can be embedded, since nobody answers, lets us in or has time for us, it is a `KnowledgeConnectionError`.
    """
    if isinstance(error, KnowledgeError):
        return error
    said = f"{subject} failed: {type(error).__name__}."
    if getattr(error, "status_code", None) in _REFUSED_STATUSES:
        return KnowledgeConnectionError(said, state="unauthorized")
    return KnowledgeConnectionError(said) if may_pass(error) else KnowledgeBackendError(said)


def may_pass(error: BaseException) -> bool:
    """Tell whether a call may do better a moment later."""
    is_known = isinstance(error, ConnectionError | TimeoutError) or type(error).__name__ in _PASSING
    return is_known or getattr(error, "status_code", None) in _PASSING_STATUSES


def check_count(subject: str, name: str, value: object, *, optional: bool = False) -> None:
    """Check that a number is whole and at least 1.

    Raises:
        AKConfigError: It is not.
    """
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise AKConfigError(f"{subject}: {name} must be a whole number of at least 1, not {value!r}.")


def texts_of(subject: str, texts: Iterable[str]) -> list[str]:
    """Return the texts as a list.

    Raises:
        AKConfigError: It is one text in place of a list, or holds something else than text.
    """
    if isinstance(texts, str):
        raise AKConfigError(f"{subject} takes a list of texts, not one text; for one, call embed_query(text).")
    listed: list[object] = list(texts)
    for text in listed:
        if not isinstance(text, str):
            raise AKConfigError(f"{subject} takes texts, not {type(text).__name__}.")
    return cast("list[str]", listed)
