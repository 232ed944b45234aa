"""A bound on work that knows none of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from agentkernel_kb.cli.exits import Code, CommandError

T = TypeVar("T")


def within(seconds: float | None, work: Callable[[], T]) -> T:
    """Do the work and return what it returns, or give up on it.

    Args:
        seconds: How long to wait; `None` for as long as it takes.
        work: The work; where it is given up on, it goes on in a thread that does not keep the process alive.

    Raises:
        CommandError: It took too long.
    """
    if seconds is None:
        return work()
    done: Future[T] = Future()

    def do() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits for it
            done.set_exception(error)

    threading.Thread(target=do, daemon=True, name="agentkernel-kb-call").start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():
            raise
        raise CommandError(f"There was no answer within {seconds:g} s (--timeout).", Code.UNREACHABLE) from None
