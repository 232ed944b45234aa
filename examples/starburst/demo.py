"""One lake, one agent: an agent of the OpenAI Agents SDK that asks a Trino server, and can't change anything there.

Start a server (`servers/trino.sh start`), and run it as `python examples/starburst/demo.py`. The tables are those of Trino's
tpch catalog, a made-up wholesaler. With OPENAI_API_KEY (and OPENAI_BASE_URL, KB_MODEL) a real model writes the SQL, without it
a stand-in that knows the statements for the four questions by heart.
"""

from __future__ import annotations

import asyncio
import os
import sys

import openai
from agentkernel_kb_openai import OpenAIToolBuilder
from agents import Agent, Model, OpenAIChatCompletionsModel, RunConfig, Runner
from by_heart import ByHeart

from agentkernel_kb import KnowledgeBuilder, KnowledgeError, ToolEvent
from agentkernel_kb.starburst import StarburstManager

SERVER = "http://127.0.0.1:18080"
# The agent writes the token; which table it means is the deployment's business.
SEMANTIC_MAP = {"<ORDERS>": "tpch.tiny.orders", "<CUSTOMERS>": "tpch.tiny.customer"}
QUESTIONS = (
    "How many orders are there for each order status?",
    "Which customers ordered for the most money?",
    "What are the customers' market segments called?",
    "Delete all orders of 1992.",
)


def open_lake(server: str) -> StarburstManager:
    """Reach the server. Its tables are read on behalf of the user `demo`; a real one asks for a password, over https."""
    return StarburstManager(
        server,
        user="demo",
        catalog="tpch",
        schema="tiny",
        table_name="orders",
        name="lake",
        description="Orders and customers of a wholesaler, in SQL.",
        browse=True,
    ).add_schema(
        {
            "placeholders": "Write <ORDERS> and <CUSTOMERS> for the tables; keep them as they are.",
            "<CUSTOMERS>": "custkey, name, nationkey, acctbal, mktsegment",
        }
    )


def choose_model() -> Model:
    """Return the model that the environment names, or the stand-in."""
    if not os.environ.get("OPENAI_API_KEY"):
        print("No OPENAI_API_KEY: a stand-in knows the statements by heart; it is not a language model.\n")
        return ByHeart(QUESTIONS)
    return OpenAIChatCompletionsModel(os.environ.get("KB_MODEL", "gpt-4.1-mini"), openai.AsyncOpenAI(max_retries=1))


def show(event: ToolEvent) -> None:
    """Print what one tool call came to."""
    print(f"  {event.tool} on {event.backend or 'all'}: {event.outcome}, {event.rows} row(s), {event.milliseconds:.0f} ms")


async def run(server: str) -> None:
    """Let the agent answer the questions."""
    lake = open_lake(server)
    model = choose_model()
    async with KnowledgeBuilder([lake], semantic_map=SEMANTIC_MAP, on_event=show) as router:
        agent = Agent(
            "KB_Router_Agent",
            instructions=router.instructions(),
            tools=OpenAIToolBuilder.bind(router.build_async()),
            model=model,
        )
        for question in QUESTIONS:
            print(question)
            result = await Runner.run(agent, question, run_config=RunConfig(tracing_disabled=True))
            print("\n".join(f"  {line}" for line in str(result.final_output).splitlines()) + "\n")


def main() -> int:
    """Run the example against the server that KB_DEMO_TRINO_URL names."""
    server = os.environ.get("KB_DEMO_TRINO_URL", SERVER)
    try:
        asyncio.run(run(server))
    except KnowledgeError as error:
        print(f"{error} Start a server with servers/trino.sh start, or name one in KB_DEMO_TRINO_URL.")
        return 2
    except openai.OpenAIError as error:
        print(f"The model did not answer: {type(error).__name__}. Check OPENAI_API_KEY, OPENAI_BASE_URL and KB_MODEL.")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
