"""The real servers that tests need: taken from the environment, else started by the scripts in `servers/`.

A test asks for the fixture of its server (`neo4j_server`, `postgres_server`, …, in `conftest.py`) and is marked with
`@pytest.mark.server("neo4j")`. Its address comes from `KB_TEST_<NAME>_URL`; where that is not set, the server is started on its
usual port, once for all workers of a run, and stopped when the run has ended. Where it cannot be started, the test is skipped
with the reason; with `KB_REQUIRE_SERVERS=1`, as in CI, that is a failure.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

NAMES = ("chroma", "neo4j", "postgres", "s3", "trino")
PASSWORD = "kb-test-password"
_SCRIPTS = Path(__file__).parent.parent / "servers"
_STARTED_BY_RUN = "KB_TEST_STARTED_SERVERS"


@dataclass(frozen=True)
class Server:
    """A server that answers.

    Attributes:
        name: Which one.
        url: Its address, with the login where the server's script prints one.
    """

    name: str
    url: str

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(re.findall(r":(\d+)", self.url)[-1])


class ServerUnavailableError(Exception):
    """The server can't be started on this machine."""


def begin_run() -> None:
    """Remember which servers this run starts; called once, by the process that hands out the work."""
    os.environ[_STARTED_BY_RUN] = tempfile.mkdtemp(prefix="kb-servers-of-run-")


def end_run() -> None:
    """Stop the servers that this run started."""
    if folder := os.environ.pop(_STARTED_BY_RUN, None):
        for started in Path(folder).glob("*.started"):
            _script(started.stem, "stop")
        shutil.rmtree(folder, ignore_errors=True)


def shared(name: str) -> Server:
    """Return the server of that name that all tests share; skips or fails the test where there is none."""
    if url := os.environ.get(f"KB_TEST_{name.upper()}_URL"):
        return Server(name, url)
    lock = Path(tempfile.gettempdir()) / f"kb-test-{name}.lock"
    try:
        with FileLock(lock):
            answer = _script(name, "start")
            if "runs already" not in answer and (folder := os.environ.get(_STARTED_BY_RUN)):
                Path(folder, f"{name}.started").touch()
        return Server(name, _script(name, "url"))
    except ServerUnavailableError as error:
        reason = f"the {name} server cannot be started: {error}"
        if os.environ.get("KB_REQUIRE_SERVERS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


def minilm() -> Path:
    """Return the folder of the embedding model that tests share; skips or fails the test where it cannot be fetched."""
    if path := os.environ.get("KB_TEST_MINILM_PATH"):
        return Path(path)
    try:
        with FileLock(Path(tempfile.gettempdir()) / "kb-test-minilm.lock"):
            _script("minilm", "install")
        return Path(_script("minilm", "path"))
    except ServerUnavailableError as error:
        reason = f"the model MiniLM cannot be fetched: {error}"
        if os.environ.get("KB_REQUIRE_SERVERS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@contextmanager
def private(name: str, **settings: str) -> Generator[PrivateServer]:
    """Start a server of one's own, on a free port, which a test may kill and start again; it is stopped in the end.

    Args:
        name: Which one.
        settings: Further settings of its script, such as `KB_NEO4J_PASSWORD="…"`.
    """
    own = PrivateServer(name, settings)
    try:
        own.start()
        yield own
    except ServerUnavailableError as error:
        if os.environ.get("KB_REQUIRE_SERVERS") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
    finally:
        own.stop()


class PrivateServer:
    """A server on a port of its own, for tests that end it."""

    def __init__(self, name: str, settings: dict[str, str]) -> None:
        self.name = name
        self.port = free_port(8 if name == "s3" else 1)
        self._settings = {**settings, f"KB_{name.upper()}_PORT": str(self.port), f"KB_{name.upper()}_KEEP_DATA": "1"}

    @property
    def url(self) -> str:
        """Its address."""
        return _script(self.name, "url", self._settings)

    @property
    def pid(self) -> int:
        """The process that serves."""
        cache = Path(os.environ.get("KB_SERVERS") or Path.home() / ".cache/agentkernel-kb-servers")
        return int((cache / "run" / f"{self.name}-{self.port}" / "pid").read_text())

    def start(self) -> None:
        """Start it, or start it again with what it had."""
        _script(self.name, "start", self._settings)

    def kill(self) -> None:
        """End it and its children at once, as a crash of the machine would."""
        pid = self.pid
        ended = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
        for each in ended:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        while any(Path(f"/proc/{each}").exists() for each in ended):  # Until it is reaped it counts as alive.
            time.sleep(0.05)
        _script(self.name, "stop", self._settings)

    def pause(self) -> None:
        """Let it hang: it keeps its connections and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """Stop it and forget what it had."""
        _script(self.name, "stop", self._settings | {f"KB_{self.name.upper()}_KEEP_DATA": "0"})


def free_port(width: int = 1) -> int:
    """Return a port of loopback that is free, as are those after it up to `width`; below those that the system hands out."""
    while True:
        port = random.randrange(20_000, 31_000)
        if all(map(_is_free, range(port, port + width))):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _script(name: str, command: str, settings: dict[str, str] | None = None) -> str:
    script = _SCRIPTS / f"{name}.sh"
    done = subprocess.run(
        ["bash", str(script), command],
        env=os.environ | (settings or {}),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise ServerUnavailableError((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    return done.stdout.strip() if command in ("url", "path") else done.stderr.strip()
