"""A folder of markdown, two agents with different roles: nothing to run, and no line of code about knowledge bases.

Run it as `python examples/okf/demo.py`. Which agent may do what stands in kb.yaml. The bundle is copied to a temporary folder
first, as one agent writes to it. With OPENAI_API_KEY (and OPENAI_BASE_URL, KB_MODEL) a real model chooses the tools, without it
a stand-in that knows them by heart.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import openai
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, Model, OpenAIChatCompletionsModel, RunConfig, Runner
from by_heart import ByHeart, Step

from agentkernel_kb.config import OKFConfiguration, load_okf

HERE = Path(__file__).parent
QUESTIONS: Mapping[tuple[str, str], Sequence[Step]] = {
    ("Desk_Agent", "What is in the library's handbook?"): [("browse_kb", {"backend": "library"})],
    ("Desk_Agent", "For how long may somebody keep a large-print book?"): [
        ("search_kb", {"backend": "library", "query": "large-print loan", "limit": 2}),
        ("fetch_kb", {"backend": "library", "ids": "policies/loans.md"}),
    ],
    ("Desk_Agent", "Is what we say about data protection still up to date?"): [
        ("search_kb", {"backend": "library", "query": '"data protection" type:Policy', "limit": 1})
    ],
    ("Desk_Agent", "Note that the Hill branch is closed on 4 December."): [
        ("write_kb", {"backend": "library", "text": "Hill is closed on 4 December"})
    ],
    ("Editor_Agent", "Note that the Hill branch is closed on 4 December."): [
        ("write_kb", {"backend": "library", "text": "Hill is closed on 4 December\n\nBecause of works on the heating."}),
        ("search_kb", {"backend": "library", "query": "hill closed december", "limit": 1}),
    ],
}


def choose_model() -> Model:
    """Return the model that the environment names, or the stand-in."""
    if not os.environ.get("OPENAI_API_KEY"):
        print("No OPENAI_API_KEY: a stand-in knows the tools by heart; it is not a language model.\n")
        return ByHeart({f"{agent}: {question}": steps for (agent, question), steps in QUESTIONS.items()})
    return OpenAIChatCompletionsModel(os.environ.get("KB_MODEL", "gpt-4.1-mini"), openai.AsyncOpenAI(max_retries=1))


def make_agent(name: str, knowledge: OKFConfiguration, model: Model) -> Agent[None]:
    """Make an agent that gets its tools and its instructions from the configuration alone."""
    tools = OpenAIToolBuilder.bind(knowledge.async_tools_for(name))
    return Agent[None](name, instructions=knowledge.instructions_for(name), tools=tools, model=model)


async def run(bundle: Path) -> None:
    """Let each agent answer its questions."""
    os.environ["KB_OKF_BUNDLE"] = str(bundle)
    model = choose_model()
    with load_okf(HERE / "kb.yaml") as knowledge:
        agents = {name: make_agent(name, knowledge, model) for name in dict.fromkeys(agent for agent, _ in QUESTIONS)}
        for name, agent in agents.items():
            print(f"{name} has {', '.join(tool.name for tool in agent.tools)}\n")
        for name, question in QUESTIONS:
            print(f"{name}: {question}")
            result = await Runner.run(agents[name], f"{name}: {question}", run_config=RunConfig(tracing_disabled=True))
            print("\n".join(f"  {line}" for line in str(result.final_output).splitlines()) + "\n")


def main() -> int:
    """Run the example on a copy of the bundle."""
    with tempfile.TemporaryDirectory(prefix="agentkernel-kb-okf-") as folder:
        bundle = shutil.copytree(HERE / "bundle", Path(folder) / "bundle")
        try:
            asyncio.run(run(bundle))
        except openai.OpenAIError as error:
            print(f"The model did not answer: {type(error).__name__}. Check OPENAI_API_KEY, OPENAI_BASE_URL and KB_MODEL.")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
