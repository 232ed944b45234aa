"""One graph, one agent: an agent of the OpenAI Agents SDK that asks a Neo4j server, and writes to it.

Start a server (`servers/neo4j.sh start`), and run it as `python examples/neo4j/demo.py`. The program first writes five
colleagues and two projects. With OPENAI_API_KEY (and OPENAI_BASE_URL, KB_MODEL) a real model writes the Cypher, without it a
stand-in that knows the statements for the five questions by heart.
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
from agentkernel_kb.neo4j import Neo4jManager

SERVER = "bolt://127.0.0.1:17687"
TEAM = (
    ("Ines", "Harbour", "lead"),
    ("Jonas", "Harbour", "designer"),
    ("Jonas", "Lantern", "lead"),
    ("Tomas", "Lantern", "engineer"),
    ("Aino", "Lantern", "tester"),
    ("Mara", None, None),
)
QUESTIONS = (
    "Who works on the project Harbour?",
    "How are Ines and Tomas connected?",
    "Remember: Mara joined the project Harbour as a tester.",
    "Who works on Harbour now?",
    "Delete all colleagues.",
)


def open_people(server: str) -> Neo4jManager:
    """Reach the server and write the team. What is there already stays as it is."""
    people = Neo4jManager(
        server,
        os.environ.get("NEO4J_USERNAME", "neo4j"),
        os.environ.get("NEO4J_PASSWORD", "kb-test-password"),
        name="people",
        description="Colleagues and the projects that they work on, as a graph.",
    )
    people.write(
        {"text": "", "metadata": {"query": statement, "params": {"name": name, "project": project, "role": role}}}
        for name, project, role in TEAM
        for statement in _statements(project)
    )
    return people


def _statements(project: str | None) -> list[str]:
    person = "MERGE (c:Colleague {name: $name})"
    return [f"{person} MERGE (p:Project {{name: $project}}) MERGE (c)-[:WORKS_ON {{role: $role}}]->(p)" if project else person]


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
    people = open_people(server)
    model = choose_model()
    async with KnowledgeBuilder([people], on_event=show) as router:
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
    """Run the example against the server that NEO4J_URI names."""
    server = os.environ.get("NEO4J_URI", SERVER)
    try:
        asyncio.run(run(server))
    except KnowledgeError as error:
        print(f"{error} Start a server with servers/neo4j.sh start, or name one in NEO4J_URI.")
        return 2
    except openai.OpenAIError as error:
        print(f"The model did not answer: {type(error).__name__}. Check OPENAI_API_KEY, OPENAI_BASE_URL and KB_MODEL.")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
