"""A configuration with more faults than anybody reads: told in good time, the first written out, the others counted (X10)."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb.config import ConfigurationError, check, load

MANY = 500
ONE = "backends:\n  shop: {type: sql, url: 'sqlite:///shop.db'}\n"
LONG = {
    "types": "backends:\n" + "".join(f"  b{number}: {{type: sqll{number}}}\n" for number in range(MANY)),
    "sections": ONE + "".join(f"limit{number}: 1\n" for number in range(MANY)),
    "agents": ONE + "agents:\n" + "".join(f"  A{number}: {{shpo: consumer}}\n" for number in range(MANY)),
    "placeholders": ONE + "semantic_map:\n" + "".join(f"  <T{number}>: {{shpo: x}}\n" for number in range(MANY)),
}


@pytest.mark.parametrize("kind", list(LONG))
def test_thousands_of_faults_are_listed_by_code_and_counted_in_a_message(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "kb.yaml"
    path.write_text(LONG[kind])
    faults = check(path)
    assert len(faults) == MANY
    assert "Did you mean" in faults[0].message
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    assert (lines[0], len(lines), lines[-1]) == (f"{path} has 500 faults:", 102, "  … and 400 more.")
    assert len(caught.value.faults) == MANY


def test_what_is_installed_is_looked_through_once_however_many_types_a_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[str] = []
    scan: Any = importlib.metadata.entry_points

    def counted(**wanted: str) -> Any:
        scans.append(wanted["group"])
        return scan(**wanted)

    monkeypatch.setattr(importlib.metadata, "entry_points", counted)
    (tmp_path / "kb.yaml").write_text(LONG["types"])
    check(tmp_path / "kb.yaml")
    assert len(scans) <= 1


def test_many_declared_names_are_not_repeated_in_each_fault(tmp_path: Path) -> None:
    backends = "".join(f"  shop{number}: {{type: okf, uri: ./shop}}\n" for number in range(100))
    (tmp_path / "kb.yaml").write_text(f"backends:\n{backends}agents:\n  A: {{shpo7: consumer}}\n")
    (fault,) = check(tmp_path / "kb.yaml")
    assert "Did you mean 'shop7'?" in fault.message
    assert fault.message.endswith(", shop28, shop29 and 70 more.")
