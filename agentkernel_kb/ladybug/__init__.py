"""`LadybugManager`: a property graph in a file, asked and written in Cypher. It needs the extra `ladybug`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentkernel_kb.ladybug.manager import LadybugManager

__all__ = ["LadybugManager"]


def __getattr__(name: str) -> Any:
    # Not at once: a child that runs the engine needs neither the manager nor what proves statements.
    if name != "LadybugManager":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agentkernel_kb.ladybug.manager import LadybugManager

    return LadybugManager
