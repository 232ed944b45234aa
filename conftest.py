"""Runs the Python snippets of the README and the documentation as tests."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "adapters/*/README.md", "examples/*/README.md"],
).pytest()
