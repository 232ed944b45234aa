"""An exception as one sentence and an exit code."""

from __future__ import annotations

from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.config import ConfigurationError
from agentkernel_kb.errors import KnowledgeConnectionError, KnowledgeDependencyError, KnowledgeError, KnowledgeTimeoutError
from agentkernel_kb.render import one_line
from agentkernel_kb.router.redaction import redact


def explained(error: Exception) -> CommandError:
    """Return what to tell whoever ran the command.

    The messages of this library's errors help; those of others may hold anything, so that only their type is told.
    """
    if isinstance(error, CommandError):
        return error
    if isinstance(error, KnowledgeConnectionError | KnowledgeTimeoutError):
        return CommandError(_sentence(error), Code.UNREACHABLE)
    if isinstance(error, KnowledgeDependencyError):
        return CommandError(_sentence(error), Code.USAGE)
    if isinstance(error, ConfigurationError):
        return CommandError(_of_faults(error))
    if isinstance(error, KnowledgeError):
        return CommandError(_sentence(error))
    if isinstance(error, EOFError):
        return CommandError("The input ended where an answer was needed, so that nothing was done.", Code.USAGE)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return CommandError(f"{where}{error.strerror}.")
    return CommandError(f"Something went wrong that should not ({type(error).__name__}). --debug shows where.")


def _sentence(error: KnowledgeError) -> str:
    return redact(one_line(str(error))) or f"It failed with {type(error).__name__}."


def _of_faults(error: ConfigurationError) -> str:
    """Return the first fault, and the way to the others; faults hold no secrets by themselves."""
    first, *others = map(str, error.faults) if error.faults else [str(error)]
    more = f" There are {len(others)} more: `agentkernel-kb validate` lists them all." if others else ""
    return one_line(first) + more
