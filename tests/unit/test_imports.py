"""Importing the package, or any name of its root, loads no optional SDK; names resolve lazily (A6)."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import agentkernel_kb
from agentkernel_kb import testing

HEAVY = ["boto3", "chromadb", "neo4j", "numpy", "pydantic", "sqlalchemy", "sqlglot", "trino"]


def loaded_after(program: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded at the end of a program."""
    source = f"import json, sys\n{program}\nprint(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


@pytest.mark.parametrize(
    "program",
    [
        "import agentkernel_kb",
        "import agentkernel_kb\nfor name in agentkernel_kb.__all__: getattr(agentkernel_kb, name)",
        "from agentkernel_kb import *",
        "import agentkernel_kb.registry\nagentkernel_kb.registry.backend_names()",
        "from agentkernel_kb.testing import FakeKnowledgeBase, declaration_faults",
    ],
    ids=["the package", "every name", "a star import", "the names of backends", "the fake backend"],
)
def test_nothing_heavy_is_loaded(program: str) -> None:
    assert [module for module in HEAVY if module in loaded_after(program)] == []


def test_importing_the_package_loads_none_of_its_modules() -> None:
    assert {module for module in loaded_after("import agentkernel_kb") if module.startswith("agentkernel_kb.")} == set()


@pytest.mark.parametrize("package", [agentkernel_kb, testing], ids=lambda package: package.__name__)
def test_public_names_are_sorted_and_complete(package: object) -> None:
    names = vars(package)["__all__"]
    assert names == sorted(set(names)) == dir(package)


@pytest.mark.parametrize("name", agentkernel_kb.__all__)
def test_a_public_name_is_the_one_of_its_home(name: str) -> None:
    value = getattr(agentkernel_kb, name)
    homes = vars(agentkernel_kb)["_HOMES"]
    (home,) = (module for module, names in homes.items() if name in names)
    assert value is getattr(importlib.import_module(f"agentkernel_kb.{home}"), name)
    assert vars(agentkernel_kb)[name] is value


def test_the_seeds_names_that_exist_already_come_from_the_root() -> None:
    assert {"KnowledgeBase", "KnowledgeBuilder", "KnowledgeCapabilities", "Record"} <= set(agentkernel_kb.__all__)


def test_managers_with_an_sdk_are_not_exported_from_the_root() -> None:
    assert {name for name in agentkernel_kb.__all__ if name.endswith("Manager")} == {"OKFManager"}


@pytest.mark.parametrize("package", [agentkernel_kb, testing], ids=lambda package: package.__name__)
def test_an_unknown_name_is_an_attribute_error(package: object) -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'NoSuchName'"):
        getattr(package, "NoSuchName")  # noqa: B009 - the checker would see the mistake that is made here on purpose


def test_a_suite_without_pytest_names_its_extra() -> None:
    program = (
        "sys.modules['pytest'] = None\n"
        "from agentkernel_kb import KnowledgeDependencyError\n"
        "import agentkernel_kb.testing\n"
        "try:\n"
        "    agentkernel_kb.testing.KnowledgeBaseContract\n"
        "except KnowledgeDependencyError as error:\n"
        "    assert error.extra == 'testing', error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    assert "agentkernel_kb.testing" in loaded_after(program)
