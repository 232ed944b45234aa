"""What the demo prints: each question, each tool call as it happens, each answer, and the checks. Plain text off a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from agents import Agent, RunContextWrapper, RunHooks, Tool
from agents.tool_context import ToolContext
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentkernel_kb import ToolEvent
from agentkernel_kb.render import clean
from multi_demo.checks import Check

_LINES = 7
_SHORT = 3
_ANSWER_CHARS = 100
_SOURCE = re.compile(r" ?\[[^\]\n]*\]")
_SHOWN = ("query", "text", "path", "ids", "arguments")
_RULE = re.compile(r"[|\s-]*")  # What separates the head of a table from its rows, and the empty lines of a text.
_STYLES = {"ok": "green", "empty": "yellow", "partial": "yellow"}


class Screen(RunHooks[Any]):
    """Prints a run of the demo. The router's events and the agent's hooks both come here, and meet by tool and backend."""

    def __init__(self) -> None:
        if isinstance(output := cast("object", sys.stdout), io.TextIOWrapper):
            output.reconfigure(errors="replace")  # An old code page must not end the demo at its first special character.
        plain = not sys.stdout.isatty() and "COLUMNS" not in os.environ
        self._console = Console(highlight=False, width=100 if plain else None)
        self._pending: list[ToolEvent] = []
        self._shown: set[str] = set()
        self.events: list[ToolEvent] = []

    def on_event(self, event: ToolEvent) -> None:
        """Take an event of the router; it is printed with its answer when the loop reports the call."""
        self._pending.append(event)
        self.events.append(event)

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        """Print one tool call: what was asked of which backend, how long it took, how it ended, what came back."""
        sent = context.tool_arguments if isinstance(context, ToolContext) else "{}"
        arguments = _arguments(sent)
        event = self._event(tool.name, str(arguments.get("backend", "")))
        self._call(tool.name, event)
        for name in _SHOWN:
            if arguments.get(name):
                self._indented(str(arguments[name]), "cyan")
        self._answer_lines(str(result))

    def intro(self, lines: Sequence[str]) -> None:
        """Print what is about to run."""
        self._console.rule(Text("agentkernel_kb: one agent, several stores", style="bold"))
        for line in lines:
            self._console.print(Text(clean(line)))

    def question(self, number: int, of: int, text: str, needs: str) -> None:
        """Print a question, and which stores it needs."""
        self._console.print()
        self._console.rule(Text(f"{number} of {of} · needs {needs}" if needs else f"{number} of {of}"), align="left")
        self._console.print(Text(clean(text), style="bold"))

    def answer(self, text: str) -> None:
        """Print the agent's answer."""
        self._console.print(Text.assemble(("Answer: ", "bold green"), clean(text)))

    def fault(self, text: str) -> None:
        """Print a failure on one line."""
        self._console.print(Text(clean(text), style="bold red"))

    def checks(self, checks: Sequence[Check], driver: str) -> None:
        """Print the table of checks, its sum, and what drove the agent."""
        self._console.print()
        table = Table(title="The answers against the data", title_justify="left", expand=True)
        table.add_column("", width=1)
        table.add_column("question", ratio=3)
        table.add_column("answer, shortened", ratio=4)
        table.add_column("expected, from the data", ratio=3)
        for check in checks:
            mark = Text("✓", style="green") if check.passed else Text("✗", style="bold red")
            table.add_row(mark, Text(check.question), Text(_shortened(check.answer)), Text(check.expected))
        self._console.print(table)
        passed = sum(check.passed for check in checks)
        self._console.print(Text(f"{passed} of {len(checks)} checks passed.", style="bold"))
        self._console.print(Text(clean(driver)))

    def _event(self, tool: str, backend: str) -> ToolEvent | None:
        for event in self._pending:
            if event.tool == tool and event.backend in ("", backend):
                self._pending.remove(event)
                return event
        return None

    def _call(self, tool: str, event: ToolEvent | None) -> None:
        line = Text.assemble("  → ", (f"{clean(tool):<12}", "bold"))
        if event:
            style = _STYLES.get(event.outcome, "red")
            line.append(f" {event.backend or 'all':<9} {event.milliseconds:>7.1f} ms  ")
            line.append(event.outcome, style=style).append(f", {event.rows} record{'' if event.rows == 1 else 's'}")
        self._console.print(line)

    def _answer_lines(self, answer: str) -> None:
        lines = [line for line in _by_key(clean(answer)).splitlines() if not _RULE.fullmatch(line)]
        if len(lines) > _SHORT and answer in self._shown:
            self._indented("… the same as before", "dim")
            return
        self._shown.add(answer)
        for line in lines[:_LINES]:
            self._indented(line, "dim", wrap=False)
        if len(lines) > _LINES:
            self._indented(f"… {len(lines) - _LINES} more lines", "dim")

    def _indented(self, text: str, style: str, *, wrap: bool = True) -> None:
        shown = Text(clean(text), style=style, no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
        self._console.print(Padding(shown, (0, 0, 0, 6), expand=False))


def _arguments(text: str) -> Mapping[str, Any]:
    try:
        arguments: Any = json.loads(text or "{}")
    except ValueError:
        return {"arguments": text}
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {"arguments": text}


def _shortened(answer: str) -> str:
    """Return the two ends of an answer without its sources, as a table has room for them."""
    plain = " ".join(_SOURCE.sub("", clean(answer)).split())
    if len(plain) <= _ANSWER_CHARS:
        return plain
    beginning, end = plain[: _ANSWER_CHARS // 2], plain[-_ANSWER_CHARS // 2 :]
    return f"{beginning.rpartition(' ')[0]} … {end.partition(' ')[2]}"


def _by_key(answer: str) -> str:
    """Return an answer that is a JSON object with one line for each of its keys, and any other as it is."""
    try:
        value: Any = json.loads(answer)
    except ValueError:
        return answer
    if not isinstance(value, dict):
        return answer
    items = cast("dict[str, Any]", value).items()
    return "\n".join(f"{key}: {json.dumps(item, ensure_ascii=False)}" for key, item in items)
