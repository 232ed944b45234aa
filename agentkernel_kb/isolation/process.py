"""One child: asked one thing at a time, interrupted and ended from other threads."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from typing import Any

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeConnectionError
from agentkernel_kb.isolation import wire
from agentkernel_kb.isolation.failures import ChildEndedError, NotBegunError, rebuilt
from agentkernel_kb.isolation.launch import Launch

_ENDING_SECONDS = 2.0


class Child:
    """A process that runs an engine, which is open once this is made.

    Args:
        launch: What it runs.

    Raises:
        KnowledgeError: The engine could not be opened.
        KnowledgeBackendError: The process could not be started.
    """

    def __init__(self, launch: Launch) -> None:
        self._pid = os.getpid()
        self._number = 0
        self._sending = threading.Lock()
        try:
            self._process, self._asked, self._answered = launch.start()
        except OSError as error:
            raise KnowledgeBackendError(f"No process could be started ({type(error).__name__}).") from error
        self.is_worn = False
        try:
            wire.send(self._asked, [launch.module, dict(launch.options), launch.most_bytes])
        except OSError:
            raise self._unopened() from None
        try:
            self._reply()
        except ChildEndedError:
            raise self._unopened() from None
        except BaseException:
            self.end(0)
            raise

    def _unopened(self) -> KnowledgeConnectionError:
        return KnowledgeConnectionError(f"The engine ended while it was opened ({self._ending()}).")

    @property
    def is_alive(self) -> bool:
        """It can be asked, as far as one can know."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, request: list[Any], seconds: float) -> Any:
        """Return the answer to a request.

        Args:
            request: What the engine understands.
            seconds: How long it may take; the child ends itself some time after that.

        Raises:
            KnowledgeError: What the engine's failure means.
            ChildEndedError: The process ended, by what was asked of it or because it was ended.
            NotBegunError: The process ended before it began with it.
            TypeError: The request holds a value that cannot be handed over.
        """
        with self._sending:
            self._number += 1
            frame = wire.encoded(["request", self._number, request, seconds])
            try:
                wire.send_frame(self._asked, frame)
            except OSError:
                has_ended = True
            else:
                has_ended = False
        if has_ended or not self._begins():
            raise NotBegunError(self._ending())
        return self._reply()

    def _begins(self) -> bool:
        """Wait until the process says that it begins; return whether it lives to say so."""
        try:
            self._received("begun")
        except (EOFError, OSError):
            return False
        return True

    def _reply(self) -> Any:
        try:
            kind, content = self._received("opened", "answer", "failed")
        except (EOFError, OSError):
            raise self._ended() from None
        if kind == "failed":
            raise content
        return content

    def _received(self, *kinds: str) -> tuple[str, Any]:
        """Return the kind of the next message, which is to be one of these, and what it holds.

        Raises:
            KnowledgeBackendError: It is not.
            OSError: There is none.
            EOFError: There is none.
        """
        try:
            kind, content, self.is_worn = wire.receive(self._answered, wire.MAX_REPLY_BYTES)
            if kind not in kinds:
                raise ValueError("a message comes out of turn")
            return kind, rebuilt(content) if kind == "failed" else content
        except (ValueError, TypeError) as error:
            self.kill()
            raise KnowledgeBackendError("The process of the engine sent what cannot be read.") from error

    def _ended(self) -> ChildEndedError:
        return ChildEndedError(
            f"The statement ended the engine ({self._ending()}), which is started again; nothing else was affected. "
            "Write it in another way, with less data or without NULL where a value is needed."
        )

    def _ending(self) -> str:
        """Tell how the process ended, and see to it that it has."""
        self.end(_ENDING_SECONDS)
        code = self._process.returncode
        if code is None:
            return "it does not answer"
        if code < 0:
            with contextlib.suppress(ValueError):
                return signal.Signals(-code).name
        return f"exit status {code}"

    def interrupt(self) -> None:
        """Ask what runs to end; it may also do so by itself meanwhile."""
        if self._sending.acquire(blocking=False):  # A request that is not even taken is not interrupted but ended.
            with contextlib.suppress(OSError):
                wire.send(self._asked, ["interrupt", self._number])
            self._sending.release()

    def kill(self) -> None:
        """End the process at once."""
        if os.getpid() == self._pid:
            self._process.kill()

    def wait(self) -> None:
        """Wait until the process, which was killed, has ended and let go of its files; not for ever."""
        if os.getpid() == self._pid:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_SECONDS)

    def end(self, seconds: float) -> None:
        """Let the process close its engine, for at most so many seconds, and end it then. May be called twice."""
        if os.getpid() != self._pid:
            return
        self._hang_up()
        for patience in (seconds, _ENDING_SECONDS):
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
            else:
                break
        self._forget_answers()

    def abandon(self) -> None:
        """Let go of a process that belongs to the one from which this one was forked."""
        for descriptor in (self._asked, self._answered):  # Without the lock, which a thread may have held when it was left.
            if descriptor >= 0:
                os.close(descriptor)
        self._asked = self._answered = -1
        self._process.returncode = 0  # It is no child of this process, and nothing to warn of.

    def _hang_up(self) -> None:
        with self._sending:
            asked, self._asked = self._asked, -1
        if asked >= 0:
            os.close(asked)

    def _forget_answers(self) -> None:
        answered, self._answered = self._answered, -1
        if answered >= 0:
            os.close(answered)
