"""Writers in processes of their own, which are killed at a random moment, again and again.

They are forked of one process that has imported what they need: an import takes longer than all that a writer does until it
is killed, and a thousand kills take minutes in this way.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import IO, Self

# A writer says each line in one piece, and all it ever said stands in the pipe before it is known to have ended.
_PARENT = """
import json, os, sys, traceback

def run(name, arguments):
    os.write(1, f"{name} {os.getpid()}\\n".encode())
    try:
        write(lambda said: os.write(1, f"{name} {said}\\n".encode()), *arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)

while line := sys.stdin.readline():
    children = {}
    for name, arguments in json.loads(line).items():
        child = os.fork()
        if child == 0:
            run(name, arguments)
        children[child] = name
    for _ in range(len(children)):
        os.write(1, f"{children[os.wait()[0]]} ended\\n".encode())
"""


class KilledWriters:
    """Starts writers and kills them.

    Args:
        program: Python that defines `write(say, *arguments)`, which writes until it is killed and says what it has done.
    """

    def __init__(self, program: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._parent = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program) + _PARENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            process_group=0,
        )

    def run(self, writers: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Start writers, wait until each has said something, kill all of them within a tenth of a second.

        Args:
            writers: The arguments of each, by its name.

        Returns:
            What each said, line by line.
        """
        print(json.dumps(writers), file=_open(self._parent.stdin), flush=True)
        said: dict[str, list[str]] = {name: [] for name in writers}
        alive = set(writers)
        while not all(len(lines) > 1 for lines in said.values()):  # The first line of each is the number of its process.
            self._hear(said, alive)
        time.sleep(random.random() * 0.1)
        for process, *_ in said.values():
            os.kill(int(process), signal.SIGKILL)
        while alive:
            self._hear(said, alive)
        return {name: lines[1:] for name, lines in said.items()}

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, whatever they are at."""
        os.killpg(self._parent.pid, signal.SIGKILL)
        self._parent.communicate()

    def _hear(self, said: dict[str, list[str]], alive: set[str]) -> None:
        name, _, line = self._line().partition(" ")
        if line == "ended":
            assert len(said[name]) > 1, f"The writer {name} ended by itself."
            alive.remove(name)
        else:
            said[name].append(line)

    def _line(self) -> str:
        line = _open(self._parent.stdout).readline()
        assert line, "The writers' parent ended."
        return line.rstrip("\n")


def _open(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
