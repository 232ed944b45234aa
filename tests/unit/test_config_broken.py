"""Each broken `kb.yaml` is told with its line and what to do about it (X10).

A file of `tests/config/broken/` holds one kind of mistake; beside it stands what `check` says. `KB_UPDATE_EXPECTED=1` writes
that anew, for whoever changes a sentence and reads the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agentkernel_kb.config import ConfigurationError, check, load

FOLDER = Path(__file__).parent.parent / "config" / "broken"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))
PLUGIN = re.compile(r"'?\bnotes'?, (?='?okf)")
"""The test suite's own plugin, in the list of types where it is installed."""


def told(name: str) -> str:
    return "".join(f"{fault.severity} {PLUGIN.sub('', str(fault))}\n" for fault in check(name))


@pytest.fixture(autouse=True)
def _in_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(FOLDER)
    for variable in ("AGENTKERNEL_KB_ENV", "NEO4J_PASSWORD", "NOTES_FOLDER"):
        monkeypatch.delenv(variable, raising=False)


def test_x10_there_are_at_least_forty_kinds_of_mistakes():
    assert len(FILES) >= 40


@pytest.mark.parametrize("name", FILES)
def test_x10_a_broken_file_is_told_as_expected(name: str):
    expected = FOLDER / f"{Path(name).stem}.expected"
    if os.environ.get("KB_UPDATE_EXPECTED"):
        expected.write_text(told(name), encoding="utf-8")
    assert told(name) == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_x10_one_mistake_is_one_fault_with_a_line(name: str):
    (fault,) = check(name)
    assert fault.file == name
    assert fault.line
    assert str(fault) == ": ".join(filter(None, [f"{name}:{fault.line}", fault.key, fault.message]))


@pytest.mark.parametrize("name", FILES)
def test_x10_what_check_calls_an_error_is_not_loaded(name: str):
    (fault,) = check(name)
    if fault.severity == "error" and "environment" not in f"{fault.key} {fault.message}":
        with pytest.raises(ConfigurationError) as caught:
            load(name)
        assert caught.value.faults == (fault,)
        assert str(caught.value) == str(fault)


@pytest.mark.parametrize("name", FILES)
def test_x10_no_secret_is_repeated(name: str):
    assert "letmein123" not in told(name)
    assert "abcdefgh12345678" not in told(name)
