"""`schemas`: what each knowledge base holds and can do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, cast

import typer

from agentkernel_kb.cli import completion
from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.opening import Opened, opened
from agentkernel_kb.cli.written import written
from agentkernel_kb.near import nearest


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, schemas)


def schemas(
    run: Run,
    backends: Annotated[
        list[str] | None,
        typer.Argument(metavar="BACKEND", help="Only these; all by default.", autocompletion=completion.backends),
    ] = None,
) -> Code:
    r"""Show what each knowledge base holds.

    Its schema and what it can do, as an agent reads them.

    \b
    Examples:
      agentkernel-kb schemas
      agentkernel-kb schemas sales --agent Support_Agent
      agentkernel-kb schemas --json | jq '.schemas | keys'
    """
    with opened(run) as knowledge, run.out.progress("Reading the schemas…"):
        found = _found(knowledge, backends or [])
    if run.options.as_json:
        run.result(schemas=found)
    else:
        for name, schema in found.items():
            _show(run, name, schema)
    failed = [f"{name}: {schema['error']}" for name, schema in found.items() if set(schema) == {"error"}]
    for sentence in failed:
        run.out.error(sentence)
    return Code.FAILED if failed else Code.OK


def _found(knowledge: Opened, wanted: list[str]) -> dict[str, dict[str, Any]]:
    """Return the schemas that are asked for.

    Raises:
        CommandError: One of the names is not known, or the schemas cannot be had.
    """
    answered = knowledge.call("get_schemas")
    try:
        every = cast("dict[str, dict[str, Any]]", json.loads(answered.text))
    except ValueError:
        raise CommandError(answered.text, answered.code or Code.FAILED) from None
    for name in wanted:
        if name not in every:
            near = nearest(name, every)
            hint = f" Did you mean '{near}'?" if near else ""
            raise CommandError(f"Unknown backend '{name}'. Available: {list(every)}.{hint}", Code.USAGE)
    return {name: schema for name, schema in every.items() if not wanted or name in wanted}


def _show(run: Run, name: str, schema: Mapping[str, Any]) -> None:
    if set(schema) == {"error"}:
        return
    rest = {key: value for key, value in schema.items() if key not in ("backend", "capabilities")}
    run.out.heading(f"{name}: {', '.join(can_do(schema.get('capabilities', {}))) or 'nothing'}")
    text = written(rest) if rest else ""
    run.out.text("".join(f"  {line}\n" for line in text.splitlines()))


def can_do(capabilities: Mapping[str, Any]) -> list[str]:
    """Return what a declaration allows, in words."""
    words = {
        "search": f"search ({capabilities.get('search_mode') or 'ranked'})",
        "query": f"query ({capabilities.get('query_language')})",
        "fetch": "fetch",
        "browse": "browse",
        "writable": "write",
    }
    return [word for key, word in words.items() if capabilities.get(key)]
