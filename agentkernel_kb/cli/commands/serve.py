"""`serve`: the tools for clients in other processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import typer

from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.opening import Opened, opened
from agentkernel_kb.serve.mcp import HTTPSettings, ServedAgent, run_http, run_stdio

_HTTP_ONLY = "--token-env, --allow-host and --allow-origin are for --transport http"
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what is asked about, and not what is listened on


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Serve the tools to clients in other processes.", no_args_is_help=True)
    add_command(group, mcp, title="serve mcp")
    group.callback()(_group)  # With one command only, typer would take the group for that command.
    app.add_typer(group, name="serve")


def _group() -> None:
    """Serve the tools to clients in other processes."""


def mcp(
    run: Run,
    transport: Annotated[Literal["stdio", "http"], typer.Option("--transport", help="How clients come.")] = "stdio",
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Over HTTP: the address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Over HTTP: the port; 0 takes a free one.")
    ] = 8000,
    token_env: Annotated[
        list[str] | None,
        typer.Option(
            "--token-env",
            metavar="[AGENT=]VARIABLE",
            help="Over HTTP: the environment variable that holds a bearer token, of that agent or of the one of --agent. "
            "Give it several times to serve several agents, each by its tokens.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", metavar="NAME", help="Over HTTP: a further Host header to accept.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option("--allow-origin", metavar="ORIGIN", help="Over HTTP: a further Origin to accept.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Leave write_kb out.")] = False,
) -> Code:
    r"""Serve the tools to any MCP client.

    MCP is the Model Context Protocol.

    Over stdio the client starts this command, and stdout belongs to the protocol. Over HTTP, tokens come from the environment
    only; without any, it listens on this machine only.

    \b
    Examples:
      agentkernel-kb serve mcp --agent Support_Agent
      agentkernel-kb serve mcp --transport http --port 8000
      agentkernel-kb serve mcp --transport http --token-env Support_Agent=SUPPORT_TOKEN --token-env Editor_Agent=EDITOR_TOKEN
    """
    if transport == "stdio":
        if token_env or allow_host or allow_origin:
            raise CommandError(f"{_HTTP_ONLY}.", Code.USAGE)
        if run.options.as_json:
            raise CommandError("Over stdio, stdout belongs to the protocol: leave --json out.", Code.USAGE)
        with opened(run) as knowledge:
            _warn_of_everything(run, knowledge, [run.options.agent])
            run_stdio(_one(knowledge, run.options.agent, (), read_only=read_only))
        return Code.OK
    if host in _EVERYWHERE and not allow_host:
        how = "say with --allow-host how it is reached, such as kb.example.com"
        raise CommandError(f"--host {host} listens on every address: {how}.", Code.USAGE)
    settings = HTTPSettings(host, port, allowed_hosts=allow_host or [], allowed_origins=allow_origin or [])
    with opened(run) as knowledge:
        tokens = _tokens(run.options.agent, token_env or []) or {run.options.agent: []}
        _warn_of_everything(run, knowledge, tokens)
        agents = [_one(knowledge, agent, own, read_only=read_only) for agent, own in tokens.items()]
        run_http(agents, settings, on_listening=lambda url: _say_where(run, url, agents))
    return Code.OK


def _warn_of_everything(run: Run, knowledge: Opened, served: Iterable[str | None]) -> None:
    if None in served and knowledge.configuration.agents:
        run.out.warning(
            "Roles of the file hold for agents, and none is named: whoever connects may use everything. "
            "Name one: --agent NAME, or --token-env NAME=VARIABLE."
        )


def _one(knowledge: Opened, agent: str | None, tokens: Sequence[str], *, read_only: bool) -> ServedAgent:
    writes = any(tool.__name__ == "write_kb" for tool in knowledge.tools(agent))
    return ServedAgent(agent or "agent", knowledge.builder_for(agent), tokens, writable=writes and not read_only)


def _tokens(agent: str | None, named: Sequence[str]) -> dict[str | None, list[str]]:
    """Return the tokens of each agent, out of the environment.

    Raises:
        CommandError: A variable is not set.
    """
    tokens: dict[str | None, list[str]] = {}
    for each in named:
        owner, equals, variable = each.rpartition("=")
        token = os.environ.get(variable, "").strip()
        if not token:
            raise CommandError(
                f"The environment variable {variable} holds no token: set it, or correct --token-env.", Code.USAGE
            )
        tokens.setdefault(owner if equals else agent, []).append(token)
    return tokens


def _say_where(run: Run, url: str, agents: Sequence[ServedAgent]) -> None:
    names = [agent.name for agent in agents]
    if run.options.as_json:
        run.result(url=url, agents=names)
        run.out.flush()
    how = "by token" if any(agent.tokens for agent in agents) else "without a token, on this machine only"
    run.out.note(f"Serving {', '.join(names)} at {url}, {how}. Ctrl-C ends.")
