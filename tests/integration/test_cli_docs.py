"""What docs/cli.md shows is what the command does: each console block is run, in order, in one folder (X10)."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import environment

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, str]]:
    """Return each command of the page with what is shown below it."""
    found: list[tuple[str, str]] = []
    for block in _BLOCK.findall(PAGE.read_text("utf-8")):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            found.append((command, shown))
    return found


def test_console_blocks_of_the_page_run_as_they_are_shown(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.fail("the page is written for a shell")
    prelude = f'agentkernel-kb() {{ "{sys.executable}" -m agentkernel_kb "$@"; }}; python() {{ "{sys.executable}" "$@"; }}; '
    checker, commands = doctest.OutputChecker(), steps()
    assert len(commands) > 12
    for command, shown in commands:
        done = subprocess.run(
            [bash, "-c", f"exec 2>&1; {prelude}{command}"],
            cwd=tmp_path,
            env=environment({"TERM": "dumb", "PATH": os.environ["PATH"]}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        # Notes may come before or after what they are about: stderr and stdout are two streams.
        expected, printed = (sorted(map(str.rstrip, text.splitlines())) for text in (shown, done.stdout))
        assert len(expected) == len(printed), f"{command}\n{done.stdout}"
        wanted, got = ("\n".join(lines) + "\n" for lines in (expected, printed))
        assert checker.check_output(wanted.replace("…", "..."), got, doctest.ELLIPSIS), f"{command}\n{done.stdout}"
