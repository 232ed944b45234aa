"""What libraries log and warn of while a command runs: ours is told as a warning, that of others only to whoever debugs."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections.abc import Generator
from contextlib import contextmanager

from agentkernel_kb.cli.output import Output

_OURS = "agentkernel_kb"


class _ToOutput(logging.Handler):
    """Prints warnings of this library; for whoever debugs, those of others and the tracebacks of failed calls as well."""

    def __init__(self, out: Output, *, debug: bool) -> None:
        super().__init__()
        self._out, self._debug = out, debug

    def emit(self, record: logging.LogRecord) -> None:
        ours = record.name.partition(".")[0] == _OURS
        if record.levelno >= logging.WARNING and (ours or self._debug):
            self._out.warning(record.getMessage())
        if self._debug and record.exc_info:
            self._out.traceback("".join(traceback.format_exception(*record.exc_info)).rstrip())


@contextmanager
def listening(out: Output, *, debug: bool) -> Generator[None]:
    """Print what is logged inside the block through `out`; without it, Python would print it as it comes."""
    handler, root, ours = _ToOutput(out, debug=debug), logging.getLogger(), logging.getLogger(_OURS)
    level = ours.level
    root.addHandler(handler)
    if debug:
        ours.setLevel(logging.DEBUG)
    with warnings.catch_warnings():
        if not (debug or sys.warnoptions):
            warnings.simplefilter("ignore")
        try:
            yield
        finally:
            root.removeHandler(handler)
            ours.setLevel(level)
