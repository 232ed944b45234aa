"""`browse`: what stands at a path."""

from __future__ import annotations

from typing import Annotated

import typer

from agentkernel_kb.cli.answers import show
from agentkernel_kb.cli.arguments import Backend, Limit
from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code
from agentkernel_kb.cli.opening import opened


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, browse)


def browse(
    run: Run,
    backend: Backend,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A path; none is the root.")] = "",
    limit: Limit = 50,
) -> Code:
    r"""List what stands at a path.

    \b
    Examples:
      agentkernel-kb browse handbook
      agentkernel-kb browse handbook policies --limit 200
    """
    with opened(run) as knowledge:
        return show(run, knowledge.call("browse_kb", backend=backend, path=path, limit=limit))
