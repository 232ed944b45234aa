"""`validate`: everything that is wrong with a configuration."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code
from agentkernel_kb.cli.location import find
from agentkernel_kb.config import Fault, check
from agentkernel_kb.config.faults import shown


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, validate)


def validate(
    run: Run,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of the file instead, for editors.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
) -> Code:
    r"""List what is wrong with the file.

    Everything at once, each with its line. Nothing is opened.

    Without --env, the base and every environment are checked. Warnings leave the exit code at 0, unless --strict is given.

    \b
    Examples:
      agentkernel-kb validate
      agentkernel-kb validate --config deploy/kb.yaml --env prod
      agentkernel-kb validate --strict --quiet
      agentkernel-kb validate --schema > kb.schema.json
    """
    if schema:
        from agentkernel_kb.config import json_schema  # It looks every type over, which nothing else here has to wait for.

        run.out.json(json_schema(), trusted=True)
        return Code.OK
    path = find(run.options.config)
    faults = check(path, env=run.options.env)
    errors = sum(fault.severity == "error" for fault in faults)
    failed = bool(errors or (strict and faults))
    if run.options.as_json:
        listed = [asdict(fault) for fault in faults]
        run.out.json({"ok": not failed, "command": run.name, "file": str(path), "faults": listed})
    else:
        for line in shown(faults, _line):
            run.out.text(run.out.safe(line))
    run.out.note(_summary(path, errors, len(faults) - errors))
    return Code.FAILED if failed else Code.OK


def _line(fault: Fault) -> str:
    place = fault.file if fault.line is None else f"{fault.file}:{fault.line}"
    key = f"{fault.key}: " if fault.key else ""
    return f"{place}: {fault.severity}: {key}{fault.message}"


def _summary(path: Path, errors: int, warnings: int) -> str:
    if not errors and not warnings:
        return f"{path} is valid."
    counted = [
        f"{count} {word}{'' if count == 1 else 's'}" for count, word in ((errors, "error"), (warnings, "warning")) if count
    ]
    return f"{path}: {', '.join(counted)}."
