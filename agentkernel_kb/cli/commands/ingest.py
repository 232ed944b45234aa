"""`ingest`: corpora brought in step with their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, ingest)


def ingest(
    run: Run,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BACKEND|SOURCE]...",
            help="Backends of type knowledge, every one by default; with --path the sources: files, folders, addresses.",
        ),
    ] = None,
    path: Annotated[
        Path | None, typer.Option("--path", metavar="FILE", help="The file of a corpus, in place of the configuration.")
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="With --path: name of the corpus in the file.")
    ] = "knowledge",
    embedder: Annotated[
        str, typer.Option("--embedder", metavar="KIND[:PATH]", help="With --path: hash, or a model such as onnx:models/minilm.")
    ] = "hash",
    delete_missing: Annotated[
        bool, typer.Option("--delete-missing", help="Delete what is indexed and not among the sources, agents' records too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be done, and index nothing.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the corpus anew beside the old one, and switch over when it is whole.")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Compare the corpus with its notes, and index nothing.")] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="With --verify: take back notes that are not true; the next run reads these anew.")
    ] = False,
) -> Code:
    r"""Bring corpora in step with their sources.

    What did not change is not read again. A source that fails is told with its reason, the others are indexed, and the exit
    code is 1. --timeout ends the work on one corpus; the next run goes on there.

    \b
    Examples:
      agentkernel-kb ingest
      agentkernel-kb ingest handbook --dry-run --delete-missing
      agentkernel-kb ingest --path kb.db docs/ https://example.org/faq.html
      agentkernel-kb ingest handbook --verify --json
    """
    from agentkernel_kb.cli.corpora import Asked, ingest_all  # Managed knowledge, which no other command has to wait for.

    asked = Asked(names or [], path, namespace, embedder, delete_missing, dry_run, rebuild, verify, repair)
    return ingest_all(run, asked)
