"""`init`: writes a first configuration."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.location import CONFIG_VARIABLE, DEFAULT_FILE
from agentkernel_kb.cli.starter import SCHEMA_FILE, TYPES, Store, checked, composed, parsed
from agentkernel_kb.config import check
from agentkernel_kb.near import nearest

_ROLES = ("consumer", "producer", "curator")
_KINDS = "\n".join(f"  {name:<10} {kind.about}" for name, kind in TYPES.items())


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, init)


def init(
    run: Run,
    add: Annotated[
        list[str] | None,
        typer.Option("--add", metavar="NAME=TYPE[:TARGET]", help=f"A backend, without asking. Types: {', '.join(TYPES)}."),
    ] = None,
    grant: Annotated[
        list[str] | None,
        typer.Option("--grant", metavar="AGENT[=ROLE]", help=f"An agent and its role in all of them: {', '.join(_ROLES)}."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> Code:
    r"""Write a first kb.yaml.

    It asks what there is, unless flags say it, and writes the JSON schema beside the file for the editor.

    A file that is there is never replaced without --force. Passwords are never written: the file names the variable of the
    environment that each is taken from.

    \b
    Examples:
      agentkernel-kb init
      agentkernel-kb init --add handbook=okf:./handbook --add sales=sql:sqlite:///sales.db
      agentkernel-kb init --add graph=neo4j:bolt://graph:7687 --grant Support_Agent --grant Editor_Agent=curator
    """
    path = run.options.config or Path(os.environ.get(CONFIG_VARIABLE, "").strip() or DEFAULT_FILE)
    if path.exists() and not force:
        raise CommandError(f"{path} is there already: --force replaces it, --config names another file.", Code.USAGE)
    stores, agents = [parsed(text) for text in add or []], dict(map(_granted, grant or []))
    if not stores:
        stores = _asked(run)
        agents = agents or _asked_agent(run)
    _write(path, composed(stores, agents))
    _write(path.parent / SCHEMA_FILE, _schema())
    return _told(run, path)


def _schema() -> str:
    from agentkernel_kb.config import json_schema  # It looks every type over, which a mistyped flag does not have to wait for.

    return f"{json.dumps(json_schema(), indent=2)}\n"


def _granted(text: str) -> tuple[str, str]:
    agent, _, role = text.partition("=")
    if role and role not in _ROLES:
        near = nearest(role, _ROLES)
        hint = f" Did you mean '{near}'?" if near else ""
        raise CommandError(f"'{role}' is no role.{hint} Roles: {', '.join(_ROLES)}.", Code.USAGE)
    return agent.strip(), role or _ROLES[0]


def _asked(run: Run) -> list[Store]:
    """Ask for the backends.

    Raises:
        CommandError: There is nobody to ask, or none was named.
    """
    if not sys.stdin.isatty():
        raise CommandError(
            "Nobody is there to ask: give --add NAME=TYPE[:TARGET], such as --add handbook=okf:./handbook.", Code.USAGE
        )
    run.out.note(f"Each knowledge base has a type:\n{_KINDS}")
    stores = list(_asked_stores(run))
    if not stores:
        raise CommandError("No knowledge base was named, so that nothing was written.", Code.USAGE)
    return stores


def _asked_stores(run: Run) -> Iterator[Store]:
    while name := run.out.ask("Name of a knowledge base (nothing: no more):").strip():
        try:
            kind = run.out.ask(f"Type [{next(iter(TYPES))}]:").strip() or next(iter(TYPES))
            store = checked(Store(name, kind))
            target = run.out.ask(f"{TYPES[kind].asks} [{store.target}]:").strip() or store.target
            TYPES[kind].options(name, target)
        except CommandError as error:
            run.out.error(error.sentence)
            continue
        yield Store(name, kind, target, run.out.ask("What does it hold, in a sentence?").strip())


def _asked_agent(run: Run) -> dict[str, str]:
    agent = run.out.ask("Name of an agent that may read all of it (nothing: no roles):").strip()
    return {agent: _ROLES[0]} if agent else {}


def _write(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _told(run: Run, path: Path) -> Code:
    """Tell what was written, and what is still to be done before it can be loaded."""
    open_ends = [str(fault) for fault in check(path)]
    if run.options.as_json:
        run.result(file=str(path), schema=str(path.parent / SCHEMA_FILE), open=open_ends)
        return Code.OK
    run.out.text(str(path))
    for each in open_ends:
        run.out.warning(f"Still to do: {each}")
    run.out.note("Next: agentkernel-kb validate, then agentkernel-kb doctor.")
    return Code.OK
