"""What all tests share: the snippets of README and documentation run as tests, and property tests have no clock."""

from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

# A timed assertion is a defect: how long an example takes says more about the machine than about the code.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "adapters/*/README.md", "examples/*/README.md"],
).pytest()
