"""One store, one agent: an agent of the OpenAI Agents SDK that reads from Chroma and writes to it.

Run it as `python examples/chromadb/demo.py`. With OPENAI_API_KEY (and OPENAI_BASE_URL, KB_MODEL) a real model drives the agent,
without it a stand-in that chooses the tool by one rule.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile

import openai
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, Model, OpenAIChatCompletionsModel, RunConfig, Runner
from one_rule import OneRule

from agentkernel_kb import KnowledgeBuilder, ToolEvent
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder

FACTS = (
    ("The printer on the second floor takes A3 paper and prints in colour.", "printers.md"),
    ("Bins are emptied on Tuesday and on Friday, before eight in the morning.", "cleaning.md"),
    ("The meeting room Birch seats twelve people; book it in the calendar.", "rooms.md"),
    ("Visitors sign in at the porter's desk and wear a badge.", "visitors.md"),
)
QUESTIONS = (
    "When are the bins emptied?",
    "How many people does the meeting room Birch seat?",
    "Remember: the lift is out of order until Monday.",
    "Until when is the lift out of order?",
)


def open_office(folder: str) -> ChromaManager:
    """Open a store on disk and write the facts into it. HashEmbedder needs no download; a real one finds synonyms, too."""
    office = ChromaManager(
        persist_path=folder,
        name="office",
        description="Facts about the office: rooms, printers, cleaning, visitors.",
        embedding_function=HashEmbedder(),
    ).add_schema({"content": "One fact in each record.", "written by": "the office team, and by agents"})
    office.write({"text": text, "metadata": {"source": source}} for text, source in FACTS)
    return office


def choose_model() -> Model:
    """Return the model that the environment names, or the stand-in."""
    if not os.environ.get("OPENAI_API_KEY"):
        print("No OPENAI_API_KEY: a stand-in with one rule chooses the tool; it is not a language model.\n")
        return OneRule()
    return OpenAIChatCompletionsModel(os.environ.get("KB_MODEL", "gpt-4.1-mini"), openai.AsyncOpenAI(max_retries=1))


def show(event: ToolEvent) -> None:
    """Print what one tool call came to."""
    print(f"  {event.tool} on {event.backend or 'all'}: {event.outcome}, {event.rows} record(s), {event.milliseconds:.1f} ms")


async def run(folder: str) -> None:
    """Let the agent answer the questions."""
    model = choose_model()
    async with KnowledgeBuilder([open_office(folder)], on_event=show) as router:
        agent = Agent(
            "KB_Router_Agent",
            instructions=router.instructions(),
            tools=OpenAIToolBuilder.bind(router.build_async()),
            model=model,
        )
        for question in QUESTIONS:
            print(question)
            result = await Runner.run(agent, question, run_config=RunConfig(tracing_disabled=True))
            print(f"  {result.final_output}\n")


def main() -> int:
    """Run the example in a folder of its own, which goes away with it."""
    with tempfile.TemporaryDirectory(prefix="agentkernel-kb-office-") as folder:
        try:
            asyncio.run(run(folder))
        except openai.OpenAIError as error:
            print(f"The model did not answer: {type(error).__name__}. Check OPENAI_API_KEY, OPENAI_BASE_URL and KB_MODEL.")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
