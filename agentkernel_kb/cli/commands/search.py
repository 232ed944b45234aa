"""`search`: the records most like some words."""

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
    add_command(app, search)


def search(
    run: Run,
    backend: Backend,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What to look for, in plain words.")],
    limit: Limit = 3,
) -> Code:
    r"""Find the records most like some words, best first.

    With '*' in place of a name (quoted, or the shell replaces it) every knowledge base that can rank is asked at once.

    \b
    Examples:
      agentkernel-kb search handbook refund period
      agentkernel-kb search '*' "who approves travel" --limit 10
      agentkernel-kb search handbook refunds --json | jq -r .answer
    """
    with opened(run) as knowledge:
        return show(run, knowledge.call("search_kb", backend=backend, query=" ".join(words), limit=limit))
