"""What the engine's failures mean, in words that hold no parameter value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

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


def without_values(text: str, parameters: Mapping[str, Any]) -> str:
    """Return a message in which the values of parameters are replaced by the parameters' names."""
    values = sorted(_scalars("", parameters), key=lambda pair: -len(pair[1]))
    for name, value in values:
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"${name}", text)
    return text


def _scalars(name: str, value: object) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return [pair for key, item in items for pair in _scalars(name or str(key), item)]
    if isinstance(value, list | tuple):
        return [pair for item in cast("list[object]", value) for pair in _scalars(name, item)]
    text = one_line(str(value))
    return [(name, text)] if text and value is not None else []
