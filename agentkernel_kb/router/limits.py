"""What one tool call may return and how long it may take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agentkernel_kb.errors import AKConfigError


@dataclass(frozen=True)
class Limits:
    """Bounds of every tool call.

    Attributes:
        rows: Most records in one answer, whatever `limit` or statement asks for.
        characters: Most characters of one answer, notes included.
        seconds: Longest time that a call waits for its backend.

    Raises:
        AKConfigError: A bound is not a positive number.
    """

    rows: int = 200
    characters: int = 20_000
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, kinds in (("rows", int), ("characters", int), ("seconds", int | float)):
            value = getattr(self, name)
            if not isinstance(value, kinds) or isinstance(value, bool) or not (math.isfinite(value) and value > 0):
                raise AKConfigError(f"Limits.{name} must be a positive number, not {value!r}.")
