"""A file that is faulty: all that is wrong with it, in the place of what the command would have shown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agentkernel_kb.cli.command import Run
from agentkernel_kb.cli.exits import Code
from agentkernel_kb.config import ConfigurationError
from agentkernel_kb.config.faults import shown


def show_faults(run: Run, error: ConfigurationError, sentence: str, **empty: Any) -> Code:
    """Show every fault of a file, and return the exit code.

    Args:
        run: The run.
        error: What is wrong.
        sentence: What does not happen for it.
        empty: What stands in the JSON document beside the faults, as where there were none.
    """
    if run.options.as_json:
        faults = [asdict(fault) for fault in error.faults]
        run.out.json({"ok": False, "command": run.name, **empty, "faults": faults})
    else:
        for line in shown(error.faults):
            run.out.text(run.out.safe(line))
    run.out.error(sentence)
    return Code.FAILED
