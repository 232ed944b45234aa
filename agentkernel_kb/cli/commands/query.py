"""`query`: read by a statement."""

from __future__ import annotations

from typing import Annotated

import typer

from agentkernel_kb.cli.answers import show
from agentkernel_kb.cli.arguments import Backend, Limit, or_stdin
from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code
from agentkernel_kb.cli.opening import opened


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, query)


def query(
    run: Run,
    backend: Backend,
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="In the backend's language; - reads it from stdin.")],
    limit: Limit = 3,
) -> Code:
    r"""Read by a statement.

    In SQL, Cypher, whatever the knowledge base takes. Only reads pass, as for an agent. Placeholders such as <CLIENTS> are
    replaced. The statement's own LIMIT wins over --limit.

    \b
    Examples:
      agentkernel-kb query sales "SELECT name, budget FROM <CLIENTS>" --limit 20
      agentkernel-kb query graph "MATCH (p:Person) RETURN p.name"
      agentkernel-kb query sales - < report.sql
    """
    with opened(run) as knowledge:
        return show(run, knowledge.call("read_kb", backend=backend, query=or_stdin(statement), limit=limit))
