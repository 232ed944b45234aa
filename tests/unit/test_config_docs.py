"""Every `kb.yaml` that the documentation shows is one without a fault (X10)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from agentkernel_kb.config import check, json_schema

DOCS = Path(__file__).parent.parent.parent / "docs"
SHOWN = [
    pytest.param(text, id=f"{page}-{number}")
    for page in ("kb-yaml.md", "roles.md")
    for number, text in enumerate(
        re.findall(r"^```yaml\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    )
]


@pytest.mark.parametrize("text", SHOWN)
def test_x10_a_file_of_the_documentation_has_no_fault(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in set(re.findall(r"\$\{(\w+)\}", text)):
        monkeypatch.setenv(name, "postgresql+psycopg://db/shop" if name.endswith("URL") else "given")
    path = tmp_path / "kb.yaml"
    path.write_text(text, encoding="utf-8")
    assert [str(fault) for fault in check(path)] == []


@pytest.mark.parametrize("text", SHOWN)
def test_x10_a_file_of_the_documentation_is_valid_in_an_editor(text: str):
    data: Any = yaml.safe_load(text)
    assert [error.message for error in Draft202012Validator(json_schema()).iter_errors(data)] == []
