"""Configuration: from a file to backends, tools and instructions. Names resolve lazily."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentkernel_kb.config.backends import DeclaredBackend
    from agentkernel_kb.config.configuration import Configuration
    from agentkernel_kb.config.faults import ConfigurationError, Fault
    from agentkernel_kb.config.loading import check, load
    from agentkernel_kb.config.okf import OKFConfiguration, load_okf
    from agentkernel_kb.config.schema import json_schema

_HOME_OF = {
    "Configuration": "configuration",
    "ConfigurationError": "faults",
    "DeclaredBackend": "backends",
    "Fault": "faults",
    "OKFConfiguration": "okf",
    "check": "loading",
    "json_schema": "schema",
    "load": "loading",
    "load_okf": "okf",
}

__all__ = [
    "Configuration",
    "ConfigurationError",
    "DeclaredBackend",
    "Fault",
    "OKFConfiguration",
    "check",
    "json_schema",
    "load",
    "load_okf",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
