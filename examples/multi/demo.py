"""The demo: one agent of the OpenAI Agents SDK answers from four stores, and its answers are checked against the data.

Run it as `python examples/multi/demo.py`, or with questions of your own as arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import openai
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, RunConfig, Runner
from agents.exceptions import AgentsException
from multi_demo.checks import QUESTIONS, Check, Question, Told
from multi_demo.display import Screen
from multi_demo.model import choose_model, failure
from multi_demo.standin import StandIn
from multi_demo.stores import PLACEHOLDERS, Stores, make_stores

from agentkernel_kb import KnowledgeBase, KnowledgeBuilder

_EMBEDDED = {"places": "SQLite", "borders": "Ladybug, a graph", "trips": "DuckDB", "handbook": "Chroma"}
_SERVERS = {"places": "PostgreSQL", "borders": "Neo4j, a graph", "trips": "Trino", "handbook": "a Chroma server"}
_STYLE = "Answer in one or two sentences, with numbers exactly as the tools return them."
_MOST_TURNS = 12
_UNTRACED = RunConfig(tracing_disabled=True)


class Demo:
    """One agent, its stores and the screen. `folder` takes the stores' files, where they are not on servers."""

    def __init__(self, folder: Path, *, on_servers: bool) -> None:
        self.screen = Screen()
        self.driver = choose_model(os.environ)
        self.stores = _server_stores() if on_servers else make_stores(folder)
        self.router = KnowledgeBuilder(self.stores.backends(), PLACEHOLDERS, on_event=self.screen.on_event)
        self.agent = Agent(
            name="KB_Router_Agent",
            instructions=f"{self.router.instructions()}\n\n{_STYLE}",
            tools=OpenAIToolBuilder.bind(self.router.build_async()),
            model=self.driver.model,
        )
        engines = _SERVERS if on_servers else _EMBEDDED
        self.screen.intro([self.driver.label, *(_introduced(store, engines) for store in self.stores.backends())])

    async def answer(self, question: Question) -> Check | None:
        """Let the agent answer one question, and check the answer if the question has a check.

        Raises:
            OpenAIError: The model could not be reached.
        """
        before = len(self.screen.events)
        try:
            result = await Runner.run(self.agent, question.text, hooks=self.screen, run_config=_UNTRACED, max_turns=_MOST_TURNS)
            answer = str(result.final_output)
            self.screen.answer(answer)
        except AgentsException as error:  # Such as too many turns: the next question may go better.
            answer = ""
            self.screen.fault(failure(error, os.environ))
        return question.checked(Told(answer, self.screen.events[before:], self.stores))


def _server_stores() -> Stores:
    """Write what the demo needs to the servers and open them.

    Raises:
        SystemExit: A server cannot be used. What its driver says may hold a login, and only its type is shown.
    """
    from multi_demo.server_stores import Addresses, make_server_stores  # The drivers are needed with --servers alone.

    try:
        return make_server_stores(Addresses.from_environment(os.environ))
    except Exception as error:  # Each of four drivers has errors of its own.
        print(f"A server of the demo can't be used ({type(error).__name__}). `make servers` starts all four.", file=sys.stderr)
        raise SystemExit(2) from error


def _introduced(store: KnowledgeBase, engines: Mapping[str, str]) -> str:
    return f"{store.get_description()} [{engines[store.backend_name]}]"


async def run(folder: Path, asked: Sequence[str], *, on_servers: bool = False) -> int:
    """Answer the demo's questions, or the given ones, and return the exit code.

    Returns:
        0 when all is well, 1 when a check failed with the stand-in, 2 when the model can't be reached.
    """
    demo = Demo(folder, on_servers=on_servers)
    questions = [Question(text) for text in asked] or QUESTIONS
    checks: list[Check] = []
    async with demo.router, aclosing(demo.driver):
        for number, question in enumerate(questions, 1):
            demo.screen.question(number, len(questions), question.text, question.needs)
            try:
                check = await demo.answer(question)
            except openai.OpenAIError as error:
                demo.screen.fault(failure(error, os.environ))
                return 2
            checks += [check] if check else []
    if checks:
        demo.screen.checks(checks, demo.driver.label)
    failed = any(not check.passed for check in checks)
    return 1 if failed and isinstance(demo.driver.model, StandIn) else 0


def arguments() -> argparse.Namespace:
    """Return what stands on the command line; no question stands for those of the demo."""
    parser = argparse.ArgumentParser(
        description="One agent answers from four stores. Without a question it answers its own, and checks them.",
        epilog="OPENAI_API_KEY turns a language model on, OPENAI_BASE_URL is its server, KB_MODEL its name. "
        "Exit code: 0 all is well, 1 a check failed with the stand-in, 2 a server or the model can't be reached, or a wrong "
        "option.",
    )
    parser.add_argument("question", nargs="*", help="a question, in quotes; several are answered one after the other")
    parser.add_argument(
        "--servers", action="store_true", help="use PostgreSQL, Neo4j, Trino and a Chroma server; see the README"
    )
    return parser.parse_args()


def main() -> int:
    """Run the demo in a folder of its own, which goes away with it."""
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="agentkernel-kb-demo-") as folder:
        try:
            return asyncio.run(run(Path(folder), given.question, on_servers=given.servers))
        except KeyboardInterrupt:
            return 130


if __name__ == "__main__":
    sys.exit(main())
