"""A terminal for a command: what it prints there, and what somebody types."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from cli_world import environment


class Terminal:
    """A run of the command whose stdin, stdout and stderr are one terminal.

    Args:
        arguments: What stands behind the command's name.
        folder: The working directory.
        columns: Width of the terminal.
        env: Further variables of its environment.
    """

    def __init__(self, *arguments: str, folder: Path, columns: int = 100, env: Mapping[str, str] | None = None) -> None:
        self._end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agentkernel_kb", *arguments],
            cwd=folder,
            env=environment({"TERM": "xterm-256color", **(env or {})}) | {"COLUMNS": str(columns)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(theirs)
        self.shown = ""

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """Read until `text` has been shown since the last time, and return what was."""
        start, deadline = len(self.shown), time.monotonic() + seconds
        while text not in self.shown[start:]:
            assert time.monotonic() < deadline, f"{text!r} was not shown, but {self.shown[start:]!r}"
            assert self._read(0.5) or self.process.poll() is None, f"it ended: {self.shown[start:]!r}"
        return self.shown[start:]

    def shows(self, seconds: float) -> bool:
        """Read what is shown within so many seconds, and tell whether there was anything."""
        return self._read(seconds)

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._end, text.encode())

    def ended(self, seconds: float = 60) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + seconds
        while self._read(0.2) or self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end: {self.shown!r}"
        os.close(self._end)
        return self.process.wait()

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._end], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._end, 65_536)
        except OSError:  # The other end is closed.
            time.sleep(0.05)
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


def hears_interrupts() -> None:
    """Let a process that is about to start be interrupted, though whoever runs the tests may not be, as behind `nohup … &`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _own_terminal() -> None:
    """Make the terminal the process's own, so that Ctrl-C reaches it."""
    hears_interrupts()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
