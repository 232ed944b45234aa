"""The shipped contract suite run on backends with one fault each, by pytest in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

COMMON = '''
"""Backends with one fault each."""
import itertools
import threading
from agentkernel_kb import KnowledgeBase, KnowledgeCapabilities
from agentkernel_kb.errors import KnowledgePathError
from agentkernel_kb.identity import required_identity
from agentkernel_kb.testing import FakeKnowledgeBase, KnowledgeBaseContract

RECORDS = [
    {"text": "Returns are free for thirty days.", "metadata": {"id": "policies/returns"}},
    {"text": "The guarantee covers parts for two years.", "metadata": {"id": "policies/guarantee"}},
    {"text": "Parts ship on two days a week.", "metadata": {"id": "shipping"}},
]


class Contract(KnowledgeBaseContract):
    declares = {"search", "query", "guard", "fetch", "browse", "write", "ids"}
    search_query, search_expects = "what does the guarantee cover: parts?", "two years"
    read_statement, read_expects = "parts", "guarantee"
    empty_statement, bad_statement = "bicycles", "the customer's"
    write_statements = ["DELETE parts"]
    fetch_ids = ["policies/guarantee", "shipping"]
    browse_path, browse_expects = "policies", "policies/returns"
    new_record = {"text": "Repairs take eleven weekdays.", "metadata": {}}
    backend_class = FakeKnowledgeBase

    def make_backend(self, tmp_path):
        has = self.declares
        return self.backend_class(
            "wrong",
            RECORDS,
            search="search" in has,
            query_language="text" if "query" in has else None,
            refused_words={"delete"} if "guard" in has else None,
            fetch="fetch" in has,
            browse="browse" in has,
            writable="write" in has,
            filters="filters" in has,
        )
'''
"""How each file of wrong backends begins."""


@dataclass(frozen=True)
class Outcome:
    """How many tests ran for each class of wrong backends, and what each failed test says."""

    ran: dict[str, int]
    failed: dict[str, dict[str, str]]


def outcome_of(backends: str, folder: Path) -> Outcome:
    """Run the suite on classes that derive from `Contract` of `COMMON`; some of its tests have to fail."""
    (folder / "test_wrong.py").write_text(f"{COMMON}\n\n{backends}", encoding="utf-8")
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "test_wrong.py"]
    bare = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # The suite needs pytest and no plugin of it.
    result = subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stdout + result.stderr
    ran: dict[str, int] = defaultdict(int)
    failed: dict[str, dict[str, str]] = defaultdict(dict)
    for case in ElementTree.parse(report).iter("testcase"):
        subject = case.attrib["classname"].rpartition(".")[2]
        assert case.find("skipped") is None
        ran[subject] += 1
        if len(case):
            failed[subject][case.attrib["name"].partition("[")[0]] = "".join(case.itertext())
    return Outcome(dict(ran), dict(failed))
