"""How a child is started: the same interpreter, the same modules, hardly any environment, no terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkernel_kb.errors import AKConfigError

_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv.pop()); sys.dont_write_bytecode = {}; "
    "from agentkernel_kb.isolation.child import main; main()"
)
# What a loader, a library of the system or a time zone needs. The rest may hold what no statement should be able to get at.
_ENVIRONMENT = frozenset(
    """
    COMSPEC DYLD_FALLBACK_LIBRARY_PATH DYLD_LIBRARY_PATH HOME LANG LD_LIBRARY_PATH LOCALAPPDATA PATH PATHEXT PYTHONHOME
    PYTHONPLATLIBDIR PYTHONPYCACHEPREFIX PYTHONTZPATH SYSTEMDRIVE SYSTEMROOT TEMP TMP TMPDIR TZ USERPROFILE WINDIR
    """.split()  # noqa: SIM905 - a list of words reads better than a word a line
)


@dataclass(frozen=True)
class Launch:
    """What a child runs.

    Attributes:
        module: Name of a module of ours with a function `open_engine(options)`.
        options: What that function is given.
        most_bytes: How much memory it may take on top of what it has once its engine is open.
    """

    module: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    most_bytes: int = 1_000_000_000

    def start(self) -> tuple[subprocess.Popen[bytes], int, int]:
        """Start a process; return it with the descriptors by which it is asked and answers.

        Raises:
            AKConfigError: This program has no interpreter of its own that could be started.
            OSError: The system gives no process.
        """
        if not sys.executable or getattr(sys, "frozen", False):
            raise AKConfigError("This program has no Python interpreter to start children with; pass isolate=False.")
        asking, asked = os.pipe()
        answered, answering = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter with our own text
                _command(),
                stdin=asking,
                stdout=answering,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name.upper() in _ENVIRONMENT},
                start_new_session=True,  # An interrupt typed at the terminal is for the parent.
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError:
            os.close(asked)
            os.close(answered)
            raise
        finally:
            os.close(asking)
            os.close(answering)
        return process, asked, answered


def _command() -> list[str]:
    # Without `site`, whose work is done: the child gets the path that it and others have made of this process's.
    return [sys.executable, "-S", "-s", "-c", _BOOT.format(sys.dont_write_bytecode), json.dumps(_module_path())]


def _module_path() -> list[str]:
    """Return the places where this process finds modules, and last the one of this package, where an import hook finds it."""
    places = [os.path.abspath(place) for place in sys.path]  # noqa: PTH100 - "" is the working directory
    package = str(Path(__file__).parents[2])
    return places if package in places else [*places, package]
