"""The okf example runs with no server and no key, from a file alone, and its bundle is a sound one (A18, A20)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentkernel_kb import LocalDocumentStore, OKFManager

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("home")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "KB_OKF"))}
    finished = subprocess.run(
        [sys.executable, str(HERE / "demo.py")],
        env={**inherited, "HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_it_says_that_no_language_model_is_at_work(output: str) -> None:
    assert output.startswith("No OPENAI_API_KEY: a stand-in knows the tools by heart; it is not a language model.")


def test_the_file_decides_who_gets_which_tools(output: str) -> None:
    desk, editor = (line for line in output.splitlines() if " has get_schemas" in line)
    assert "write_kb" not in desk
    assert "write_kb" in editor


def test_the_curated_listing_is_shown_as_it_was_written(output: str) -> None:
    assert "* [Policies](policies/) - who may join, how long a loan lasts, what a late return costs" in output


def test_a_whole_document_comes_with_its_links(output: str) -> None:
    assert "| Large-print book  | 42   |" in output
    assert "links: policies/membership.md, playbooks/long-queue.md" in output


def test_what_is_out_of_date_says_so(output: str) -> None:
    assert "(Policy; human-reviewed; STALE)" in output


def test_what_the_editor_writes_is_found_at_once_and_the_desk_cannot_write(output: str) -> None:
    assert "I can't do that: I was given no write_kb." in output
    assert "[generated/hill-is-closed-on-4-december" in output


def test_the_bundle_that_is_checked_in_has_no_faults(tmp_path: Path) -> None:
    with_index = OKFManager(LocalDocumentStore(HERE / "bundle", writable=False), index=tmp_path)
    assert list(with_index.get_diagnostics()) == []
    with_index.close()
