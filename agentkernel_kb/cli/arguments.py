"""Arguments that several commands take."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agentkernel_kb.cli import completion

Backend = Annotated[
    str, typer.Argument(metavar="BACKEND", help="Name of the knowledge base.", autocompletion=completion.backends)
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="Most records to return.")]


def or_stdin(text: str) -> str:
    """Return `text`, or what stands on stdin where it is `-`."""
    return sys.stdin.read() if text == "-" else text
