"""Keeps the parser's log quiet during a proof: its warnings quote the statement, which may hold what no log should."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_PROVING: ContextVar[bool] = ContextVar("agentkernel_kb_proving", default=False)


def _is_not_of_a_proof(_: logging.LogRecord) -> bool:
    return not _PROVING.get()


@contextmanager
def quiet_parser() -> Generator[None]:
    """Drop what sqlglot logs in this context; what others do with it meanwhile is logged as ever."""
    logging.getLogger("sqlglot").addFilter(_is_not_of_a_proof)  # Adding it again changes nothing.
    token = _PROVING.set(True)
    try:
        yield
    finally:
        _PROVING.reset(token)
