"""A type of backends: its class, its options, and what becomes of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.config.faults import Severity
from agentkernel_kb.config.kinds import Parameter
from agentkernel_kb.model import KnowledgeCapabilities

Declares = Callable[[Mapping[str, Any]], KnowledgeCapabilities]

Check = Callable[[Any], tuple[str, Severity] | None]
"""Says of a value that was placed what is wrong with it, `None` for nothing, and whether the backend can still be made."""


@dataclass(frozen=True)
class BackendType:
    """One type of backends.

    Attributes:
        name: Its name, as written.
        make: Its class.
        parameters: Its options by name: the constructor's, but for those that the configuration sets itself.
        named: The constructor takes the name.
        lazy: The constructor can be told not to connect.
        declares: What one with given arguments can do, where that is known before it is constructed.
        opens: Tells for given arguments whether the constructor opens the store, whatever it is told.
        placers: What is made of an option before the constructor gets it.
        checks: What says what is wrong with an option's value before it is opened, where its type does not say it.
    """

    name: str
    make: type[KnowledgeBase]
    parameters: Mapping[str, Parameter]
    named: bool
    lazy: bool
    declares: Declares | None = None
    opens: Callable[[Mapping[str, Any]], bool] | None = None
    placers: Mapping[str, Callable[[Any, Path], Any]] = field(default_factory=dict[str, Callable[[Any, Path], Any]])
    checks: Mapping[str, Check] = field(default_factory=dict[str, Check])

    def connects(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether constructing one with these arguments opens its store."""
        return not self.lazy or (self.opens is not None and self.opens(arguments))

    def placed(self, parameter: Parameter, value: Any, folder: Path) -> Any:
        """Return a value as the constructor takes it: relative paths are relative to the folder of the file."""
        if parameter.name in self.placers:
            return self.placers[parameter.name](value, folder)
        return placed_paths(value, folder) if parameter.kind.takes_path else value


def placed_paths(value: Any, folder: Path) -> Any:
    """Return a path, or a list of paths, that no longer depends on the working directory."""
    if isinstance(value, list):
        return [placed_paths(each, folder) for each in value]  # pyright: ignore[reportUnknownVariableType] - of any kind
    return str(folder / Path(value).expanduser()) if isinstance(value, str) else value
