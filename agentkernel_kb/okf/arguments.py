"""The arguments of OKFManager checked: one clear error for each that is wrong."""

from __future__ import annotations

import math
from typing import Any

from agentkernel_kb.errors import AKConfigError, KnowledgePathError
from agentkernel_kb.store.base import DocumentStore

_MAX_ACTOR_CHARS = 200


def check(
    subject: str, *, description: Any, refresh_seconds: Any, max_concepts: Any, write_actor: Any, default_type: Any
) -> None:
    """Check what is not a path.

    Raises:
        AKConfigError: An argument has the wrong type or range.
    """
    if description is not None and not isinstance(description, str):
        raise AKConfigError(f"'{subject}': description must be text, not {type(description).__name__}.")
    if refresh_seconds is not None and not _is_duration(refresh_seconds):
        raise AKConfigError(f"'{subject}': refresh_seconds must be seconds from 0, or None for never, not {refresh_seconds!r}.")
    if not isinstance(max_concepts, int) or isinstance(max_concepts, bool) or max_concepts < 1:
        raise AKConfigError(f"'{subject}': max_concepts must be a whole number from 1 on, not {max_concepts!r}.")
    if write_actor is not None and not _is_line(write_actor):
        raise AKConfigError(f"'{subject}': write_actor must be one line such as 'ingest_agent/1.0', not {write_actor!r}.")
    if default_type is not None and not _is_line(default_type):
        raise AKConfigError(f"'{subject}': default_type must be one line such as 'Page', not {default_type!r}.")


def checked_prefix(subject: str, write_prefix: Any) -> str:
    """Return the folder for concepts that name no id, `""` for the root.

    Raises:
        AKConfigError: It is no relative path.
    """
    try:
        return DocumentStore.normalise_relative(write_prefix)
    except KnowledgePathError as error:
        raise AKConfigError(f"'{subject}': write_prefix must be a folder such as 'generated': {error}") from error


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= _MAX_ACTOR_CHARS
