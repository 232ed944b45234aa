"""`fetch`: whole records by their ids."""

from __future__ import annotations

from typing import Annotated

import typer

from agentkernel_kb.cli.answers import show
from agentkernel_kb.cli.arguments import Backend
from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code
from agentkernel_kb.cli.opening import opened


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, fetch)


def fetch(
    run: Run,
    backend: Backend,
    ids: Annotated[list[str], typer.Argument(metavar="IDS", help="Ids, which other commands show in square brackets.")],
) -> Code:
    r"""Print whole records by their ids.

    \b
    Examples:
      agentkernel-kb fetch handbook policies/refunds.md
      agentkernel-kb fetch handbook policies/refunds.md faq/returns.md --json
    """
    with opened(run) as knowledge:
        return show(run, knowledge.call("fetch_kb", backend=backend, ids=",".join(ids)))
