"""The files that the README tells its reader to save work as files (A21); its other snippets run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_a21_the_readers_own_backend_passes_the_shipped_suite(tmp_path: Path) -> None:
    (backend,) = (block for block in blocks() if "class Notes(" in block)
    (suite,) = (block for block in blocks() if "class TestNotes(" in block)
    (tmp_path / "notes.py").write_text(backend, encoding="utf-8")
    (tmp_path / "test_notes.py").write_text(suite, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_notes.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout
    assert re.search(r"\d\d passed", ran.stdout)
    assert "skipped" not in ran.stdout
