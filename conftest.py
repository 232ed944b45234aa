"""What all tests share: snippets of the documentation run as tests, and property tests have no clock.

Real servers end with the run that started them. The folder of the tests is on the path, so that those of examples can import
`servers` too; last, so that it hides nothing installed.
"""

import importlib
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

sys.path.append(str(Path(__file__).parent / "tests"))

servers = importlib.import_module("servers")  # By name: to a type checker it would be the folder of the scripts.

# A timed assertion is a defect: how long an example takes says more about the machine than about the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "adapters/*/README.md", "examples/*/README.md"],
).pytest()


def pytest_configure(config: pytest.Config) -> None:
    """Remember which servers this run starts."""
    if not hasattr(config, "workerinput"):
        servers.begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what this run started."""
    if not hasattr(config, "workerinput"):
        servers.end_run()
