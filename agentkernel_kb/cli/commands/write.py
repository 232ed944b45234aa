"""`write`: store something, once it is confirmed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agentkernel_kb.cli.answers import show
from agentkernel_kb.cli.arguments import Backend, or_stdin
from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.opening import opened


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, write)


def write(
    run: Run,
    backend: Backend,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to store; - reads it from stdin.")] = "",
    source: Annotated[str, typer.Option("--source", metavar="TEXT", help="Where it comes from.")] = "agentkernel-kb",
    statement: Annotated[
        str, typer.Option("--query", metavar="STATEMENT", help="A writing statement in the backend's language.")
    ] = "",
    params: Annotated[str, typer.Option("--params", metavar="JSON", help="The statement's parameters, a JSON object.")] = "{}",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> Code:
    r"""Store a text, or run a writing statement.

    It is asked for confirmation first, with the name of the knowledge base.

    \b
    Examples:
      agentkernel-kb write notes "Acme moved to Oslo." --source meeting-2026-05-04
      agentkernel-kb write graph --query "MERGE (c:Client {name: $name})" --params '{"name": "Acme"}'
      cat note.md | agentkernel-kb write notes - --yes
    """
    what = or_stdin(text)
    with opened(run) as knowledge:
        if not (yes or _confirmed(run, backend, what, statement)):
            raise CommandError("Nothing was written.")
        arguments = {"text": what, "source": source, "query": statement, "params_json": params}
        return show(run, knowledge.call("write_kb", backend=backend, **arguments))


def _confirmed(run: Run, backend: str, text: str, statement: str) -> bool:
    """Ask whether to write.

    Raises:
        CommandError: There is nobody to ask.
    """
    if not sys.stdin.isatty():
        raise CommandError("Nobody is there to confirm the write: give --yes to write without asking.", Code.USAGE)
    environment = f" (environment '{run.options.env}')" if run.options.env else ""
    what = f"Run {statement!r} on" if statement else f"Write {len(text):,} characters to"
    return run.out.ask(f"{what} '{backend}'{environment}? [y/N]").strip().casefold() in ("y", "yes")
