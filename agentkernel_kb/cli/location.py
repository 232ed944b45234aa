"""Which file is the configuration."""

from __future__ import annotations

import os
from pathlib import Path

from agentkernel_kb.cli.exits import Code, CommandError

DEFAULT_FILE = "kb.yaml"
CONFIG_VARIABLE = "AGENTKERNEL_KB_CONFIG"


def find(given: Path | None) -> Path:
    """Return the file: the one given, else the one that `AGENTKERNEL_KB_CONFIG` names, else `kb.yaml` in the working directory.

    Folders above are not looked through: what is found there may be another project's, and its relative paths with it.

    Raises:
        CommandError: It is not there.
    """
    named = os.environ.get(CONFIG_VARIABLE, "").strip()
    path = given or Path(named or DEFAULT_FILE)
    if path.is_file():
        return path
    if path.is_dir():
        raise CommandError(f"{path} is a folder; --config takes the file in it, such as {path / DEFAULT_FILE}.", Code.USAGE)
    if given or named:
        origin = "" if given else f", which {CONFIG_VARIABLE} names"
        raise CommandError(f"There is no configuration file {path}{origin}.", Code.USAGE)
    raise CommandError(
        f"There is no {DEFAULT_FILE} here. `agentkernel-kb init` writes one; --config or {CONFIG_VARIABLE} names another file.",
        Code.USAGE,
    )
