"""What the engine's failures mean, in words that hold no parameter value."""

from __future__ import annotations

import re

from agentkernel_kb.errors import KnowledgeBackendError, KnowledgeError, KnowledgeQueryError
from agentkernel_kb.render import one_line

_MAX_CHARS = 300
_MISSING = re.compile(
    r"Table (?P<table>\S+) does not exist|Cannot find property (?P<property>\S+) for|Variable (?P<variable>\S+) is not in scope"
)
_HINTS = {
    "Only standalone table functions": "Write RETURN * after the procedure.",
    "expected rule oC_RegularQuery": "The statement cannot be parsed from there on.",
    "bad_alloc": "The statement needs more memory than it may have. Narrow it.",
    "buffer pool is full": "The statement needs more memory than it may have. Narrow it.",
}


def rejected(error: Exception) -> KnowledgeError:
    """Return what a failure of the engine means: mostly that the statement is at fault."""
    text = str(error)
    lines = text.strip().splitlines()
    first = one_line(lines[0])[:_MAX_CHARS] if lines else type(error).__name__
    hint = next((f" {hint}" for part, hint in _HINTS.items() if part in text), "")
    if not isinstance(error, RuntimeError):  # The binding's own, whose text may hold a value.
        return KnowledgeQueryError(f"The engine could not take this statement or its parameters ({type(error).__name__}).")
    if first.startswith(("IO exception", "Checkpoint failed", "Connection exception", "Connection Exception")):
        return KnowledgeBackendError(f"{first}{hint}")
    return KnowledgeQueryError(f"{first}{hint}")


def missing_name(error: KnowledgeError) -> str | None:
    """Return the name that a rejected statement uses and the graph does not have."""
    found = _MISSING.search(str(error))
    return next(filter(None, found.groups()), "").rstrip(".") or None if found else None
