"""How the command ends: its exit codes, and the error that ends it with one of them."""

from __future__ import annotations

from enum import IntEnum

from agentkernel_kb.router.events import Outcome


class Code(IntEnum):
    """Exit codes.

    Attributes:
        OK: Done; finding nothing is no failure.
        FAILED: Faults were found, or the answer is a failure: refused, rejected by the store, broken.
        USAGE: The command cannot be run as it was given: an option, a name, an argument.
        UNREACHABLE: A store cannot be reached, does not let this application in, or does not answer in time.
        INTERRUPTED: Ctrl-C.
        CLOSED_PIPE: Whoever read the output stopped reading, as `head` does.
    """

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130
    CLOSED_PIPE = 141


_OF_OUTCOME: dict[Outcome, Code] = {
    "ok": Code.OK,
    "empty": Code.OK,
    "partial": Code.OK,
    "stale": Code.OK,
    "bad_argument": Code.USAGE,
    "unknown_backend": Code.USAGE,
    "undeclared": Code.USAGE,
    "unknown_token": Code.USAGE,
    "timeout": Code.UNREACHABLE,
    "unavailable": Code.UNREACHABLE,
    "cancelled": Code.INTERRUPTED,
}


def code_of(outcome: str) -> Code:
    """Return the exit code of a tool call that ended like this; what is not listed is a failure."""
    return {str(name): code for name, code in _OF_OUTCOME.items()}.get(outcome, Code.FAILED)


class CommandError(Exception):
    """The end of a command, with one sentence for whoever typed it.

    Attributes:
        sentence: What is wrong and what would be right.
        code: The exit code.
    """

    def __init__(self, sentence: str, code: Code = Code.FAILED) -> None:
        super().__init__(sentence)
        self.sentence, self.code = sentence, code
