"""What all tests share: snippets of the documentation run as tests, and property tests have no clock.

Real servers end with the run that started them. The folder of the tests is on the path, so that those of examples can import
`servers` too; last, so that it hides nothing installed.
"""

import asyncio
import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

sys.path.append(str(Path(__file__).parent / "tests"))

servers = importlib.import_module("servers")  # By name: to a type checker it would be the folder of the scripts.

# A timed assertion is a defect: how long an example takes says more about the machine than about the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def close_loop(_: dict[str, Any]) -> None:
    """Close the event loop that a page's snippets left in this thread, as `run_sync` of pydantic-ai does.

    Else it is dropped by the next `asyncio.run`, and blamed on the test in which the collector comes to it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and 3.13 say so where they make a new one.
        try:
            loop = asyncio.get_event_loop()
        except RuntimeError:
            return
    loop.close()
    asyncio.set_event_loop(None)


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "adapters/*/README.md", "examples/*/README.md"],
    teardown=close_loop,
).pytest()


def pytest_configure(config: pytest.Config) -> None:
    """Remember which servers this run starts."""
    if not hasattr(config, "workerinput"):
        servers.begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what this run started."""
    if not hasattr(config, "workerinput"):
        servers.end_run()
