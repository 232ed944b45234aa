"""The configuration of a run, opened, and its tools called as an agent calls them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentkernel_kb.cli.command import Run
from agentkernel_kb.cli.deadline import within
from agentkernel_kb.cli.exits import Code, CommandError, code_of
from agentkernel_kb.cli.location import find
from agentkernel_kb.cli.secrets import secrets_of
from agentkernel_kb.config import Configuration, load
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.model import describe
from agentkernel_kb.near import nearest
from agentkernel_kb.router.events import ToolEvent, heard

Tool = Callable[..., str]
_WHO_CAN = {"search_kb": "searched", "fetch_kb": "asked for records by their ids", "browse_kb": "browsed"}


@dataclass(frozen=True)
class Answered:
    """What came of one tool call.

    Attributes:
        tool: Name of the tool.
        arguments: What it was called with.
        text: What a model would read.
        event: How the call ended; `None` where none was told of.
    """

    tool: str
    arguments: Mapping[str, Any]
    text: str
    event: ToolEvent | None

    @property
    def outcome(self) -> str:
        """How it ended, one of the router's outcomes."""
        return self.event.outcome if self.event else "error"

    @property
    def code(self) -> Code:
        """The exit code that stands for it."""
        return code_of(self.outcome)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, as `--json` prints it."""
        event = self.event
        return {
            "tool": self.tool,
            "backend": self.arguments.get("backend", ""),
            "outcome": self.outcome,
            "rows": event.rows if event else 0,
            "attempts": event.attempts if event else 0,
            "milliseconds": round(event.milliseconds, 3) if event else 0.0,
            "answer": self.text,
        }


@dataclass(frozen=True)
class Opened:
    """A configuration that is open.

    Attributes:
        path: The file.
        configuration: What it describes.
        agent: On whose behalf; `None` for all that the file describes.
        timeout: Seconds for each call beside the file's own limits, `None` for those alone.
    """

    path: Path
    configuration: Configuration
    agent: str | None
    timeout: float | None

    @property
    def builder(self) -> KnowledgeBuilder:
        """The router.

        Raises:
            CommandError: The agent may use nothing.
        """
        return self.builder_for(self.agent)

    def builder_for(self, agent: str | None) -> KnowledgeBuilder:
        """Return the router of an agent; `None` is whoever runs the command, who may use everything.

        Raises:
            CommandError: The agent may use nothing.
        """
        builder = self.configuration.builder if agent is None else self.configuration.builder_for(agent)
        if builder is None:
            raise CommandError(self._nobody(str(agent)), Code.USAGE)
        return builder

    def tools(self, agent: str | None) -> list[Tool]:
        """Return the tools that an agent is given; none where it may use nothing."""
        return self.configuration.builder.build() if agent is None else self.configuration.tools(agent)

    def instructions(self, agent: str | None) -> str:
        """Return the prompt that an agent is given."""
        return self.configuration.builder.instructions() if agent is None else self.configuration.instructions(agent)

    def names_of(self, tool: str) -> list[str]:
        """Return the names that a tool takes for a backend; none where nobody is given the tool."""
        found = [description for each in self.builder.build() if (description := describe(each)) and description.name == tool]
        return [name for each in found for name in each.parameters["properties"].get("backend", {}).get("enum", [])]

    def call(self, tool: str, **arguments: Any) -> Answered:
        """Call a tool as an agent would.

        Raises:
            CommandError: No backend can serve it, so that no agent is given it; or there was no answer in time.
        """
        tools = {each.__name__: each for each in self.builder.build()}
        if tool not in tools:
            names = [backend.backend_name for backend in self.builder.backends]
            raise CommandError(f"None of {names} can be {_WHO_CAN.get(tool, 'used like this')}.", Code.USAGE)

        def called() -> Answered:
            with heard() as events:
                text = tools[tool](**arguments)
            return Answered(tool, arguments, text, events[-1] if events else None)

        return within(self.timeout, called)

    def _nobody(self, agent: str) -> str:
        known = self.configuration.agents
        near = nearest(agent, known)
        hint = f" Did you mean '{near}'?" if near and near != agent else ""
        return f"Agent '{agent}' may use nothing in {self.path}.{hint} Agents: {', '.join(known) or 'none'}."


@contextmanager
def opened(run: Run, *, lazy: bool = False) -> Generator[Opened]:
    """Open the configuration of a run, and close it in the end.

    Args:
        run: The run.
        lazy: Connect nothing before it is asked, whatever the file says.

    Raises:
        KnowledgeError: It is faulty, or a store that is to be connected at once cannot be.
    """
    path = find(run.options.config)
    run.out.secrets |= secrets_of(path)
    configuration = load(path, env=run.options.env, lazy=lazy)
    knowledge = Opened(path, configuration, run.options.agent, run.options.timeout)
    try:
        # They are the deployment's, and would tell an agent of backends that are not there for it; `validate` lists them.
        for warning in configuration.warnings if run.options.agent is None else ():
            run.out.warning(f"{warning}")
        yield knowledge
    finally:
        configuration.close()
