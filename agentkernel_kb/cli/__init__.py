"""The `agentkernel-kb` command: a configuration from the terminal.

What it is made of (typer, rich) comes with the extra `cli`, and is imported when the command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; the entry point of `agentkernel-kb` and of `python -m agentkernel_kb`.

    Args:
        arguments: What stands behind the command's name; `sys.argv` by default.
    """
    try:
        import rich
        import typer
    except ImportError:
        from agentkernel_kb.errors import KnowledgeDependencyError

        print(KnowledgeDependencyError("cli", "The command line"), file=sys.stderr)
        return 2
    del rich, typer
    from agentkernel_kb.cli.app import run

    return run(sys.argv[1:] if arguments is None else list(arguments))
