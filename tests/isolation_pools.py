"""Pools of the engine of tests, and waiting for what processes do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from agentkernel_kb.deadline import Deadline
from agentkernel_kb.isolation import ChildPool, Launch

MEMORY_BYTES = 200_000_000
LONG = 60.0
HOLDS_THE_LOCK = 40
"""So many letters keep a regular expression, and with it the interpreter, busy for hours."""


def launch(**options: Any) -> Launch:
    return Launch("isolation_engine", options, MEMORY_BYTES)


def ask(pool: ChildPool, *request: Any, seconds: float = LONG) -> Any:
    return pool.call(list(request), Deadline(seconds))


def pid_of(pool: ChildPool) -> int:
    return ask(pool, "facts")["pid"]


def has_ended(pid: int, seconds: float = 20.0) -> bool:
    """Tell whether a process that is nobody's child any more, or was waited for, ends within some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def appears(file: Path, seconds: float = 20.0) -> bool:
    """Tell whether there is a file within some seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not file.exists():
        time.sleep(0.02)
    return file.exists()


def run_script(script: str, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": path, "PATH": os.environ["PATH"]}
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
