"""The suites that the documentation shows hold for the backends that it shows (A21)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CONTRACT = Path(__file__).parents[2] / "docs" / "contract.md"


def test_a21_the_documented_backends_pass_their_documented_suites(tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", CONTRACT.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "test_documented.py").write_text("\n".join(snippets), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_documented.py"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "passed" in finished.stdout
