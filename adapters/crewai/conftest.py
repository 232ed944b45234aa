"""CrewAI as its tests need it: nothing leaves the process, and what it keeps is kept in a folder that goes away."""

import os
import tempfile

import pytest

_folder = tempfile.TemporaryDirectory(prefix="crewai-")
# CrewAI reads these when it is first imported.
os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_VERSION_CHECK="true",
    CREWAI_TRACING_ENABLED="false",
    XDG_CACHE_HOME=_folder.name,
    XDG_DATA_HOME=_folder.name,
)

_OWN_WARNINGS = (
    "ignore:Cannot set an attribute on 'crewai:ImportWarning",  # Its lazy packages hide a submodule from the import system.
    # Its agent reads fields of its own that it deprecates.
    "ignore:function_calling_llm is deprecated:DeprecationWarning",
    "ignore:deprecated$:DeprecationWarning",
)


def pytest_configure(config: pytest.Config) -> None:
    """Leave out the warnings that CrewAI gives about itself."""
    for own in _OWN_WARNINGS:
        config.addinivalue_line("filterwarnings", own)


def pytest_unconfigure() -> None:
    """Remove what CrewAI kept."""
    _folder.cleanup()
