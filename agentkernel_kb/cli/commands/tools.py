"""`tools`: what each agent is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from agentkernel_kb.cli.command import Run, add_command
from agentkernel_kb.cli.exits import Code, CommandError
from agentkernel_kb.cli.opening import Opened, opened
from agentkernel_kb.model import ToolDescription, describe
from agentkernel_kb.near import hint


def register(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, tools)


def tools(
    run: Run,
    all_agents: Annotated[bool, typer.Option("--all-agents", help="Every agent that the file names.")] = False,
    instructions: Annotated[bool, typer.Option("--instructions", help="Show the prompt as well.")] = False,
) -> Code:
    r"""Show the tools that an agent is given.

    With --json, their JSON schemas and the prompt.

    \b
    Examples:
      agentkernel-kb tools --agent Support_Agent
      agentkernel-kb tools --all-agents
      agentkernel-kb tools --json | jq '.agents[0].tools[].parameters'
    """
    if all_agents and run.options.agent:
        raise CommandError("--agent and --all-agents exclude each other.", Code.USAGE)
    with opened(run) as knowledge:
        agents = knowledge.configuration.agents if all_agents else [run.options.agent]
        given = [_given(knowledge, agent) for agent in agents]
        known = knowledge.configuration.agents
    if run.options.as_json:
        run.result(agents=given)
        return Code.OK
    for each in given:
        _show(run, each, known, instructions=instructions)
    return Code.OK


def _given(knowledge: Opened, agent: str | None) -> dict[str, Any]:
    descriptions = [found for tool in knowledge.tools(agent) if (found := describe(tool))]
    return {"agent": agent, "instructions": knowledge.instructions(agent), "tools": [_plain(each) for each in descriptions]}


def _plain(description: ToolDescription) -> dict[str, Any]:
    return {
        "name": description.name,
        "description": description.description,
        "parameters": description.parameters,
        "read_only": description.read_only,
    }


def _show(run: Run, given: Mapping[str, Any], known: Sequence[str], *, instructions: bool) -> None:
    run.out.heading(f"Agent '{given['agent']}'" if given["agent"] else "Without roles")
    rows = [
        (tool["name"], "reads" if tool["read_only"] else "writes", _backends(tool), _others(tool)) for tool in given["tools"]
    ]
    if rows:
        run.out.table(("Tool", "Does", "Knowledge bases", "Further arguments"), rows)
    else:
        meant = hint(given["agent"] or "", [name for name in known if name != given["agent"]])
        run.out.text(f"No tools: no knowledge base names this agent.{meant}")
    if instructions:
        run.out.text(f"\n{given['instructions']}")


def _backends(tool: Mapping[str, Any]) -> str:
    return ", ".join(tool["parameters"]["properties"].get("backend", {}).get("enum", ["all"]))


def _others(tool: Mapping[str, Any]) -> str:
    return ", ".join(name for name in tool["parameters"]["properties"] if name != "backend")
