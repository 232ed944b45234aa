"""How much memory SQLite uses in this process, so that a statement which takes too much of it can be stopped.

SQLite bounds the size of a value but not of what it collects on the way to one: rows to sort, a growing JSON text, thousands of
constants. Its own heap limits hold for the whole process and cannot be lifted again, so its counter is asked instead.
"""

from __future__ import annotations

import ctypes
import importlib
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache

MAX_WORKING_BYTES = 256_000_000
_PROBE_BYTES = 100_000

Meter = Callable[[], int]


@cache
def memory_meter() -> Meter | None:
    """Return what tells how many bytes SQLite uses, the peak of the whole process where SQLite cannot be asked, or `None`."""
    return next((meter for make in (_sqlites_counter, _peak_of_process) if (meter := make()) is not None), None)


def _sqlites_counter() -> Meter | None:
    """Return SQLite's own counter, in the library that the module `sqlite3` uses."""
    for path in (getattr(importlib.import_module("_sqlite3"), "__file__", None), None):
        with suppress(OSError, AttributeError, TypeError):  # The module is built into the interpreter, or hides its library.
            counter = ctypes.PyDLL(path).sqlite3_memory_used
            counter.argtypes, counter.restype = (), ctypes.c_int64
            if _counts(counter):
                return counter
    return None


def _counts(counter: Meter) -> bool:
    """Tell whether a counter sees what the module `sqlite3` takes: another library, or one without statistics, does not."""
    with closing(sqlite3.connect(":memory:")) as connection:
        before = counter()
        connection.execute("CREATE TABLE probe (value)")
        connection.execute("INSERT INTO probe VALUES (zeroblob(?))", (_PROBE_BYTES,))
        return counter() - before >= _PROBE_BYTES


def _peak_of_process() -> Meter | None:
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
