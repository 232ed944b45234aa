"""A program that serves the house over stdio, as a client starts it; it also prints, which must not get among the frames."""

import asyncio
import os
import subprocess
import sys

from agentkernel_kb import KnowledgeBuilder, Record
from agentkernel_kb.serve.mcp import run_stdio
from agentkernel_kb.testing import FakeKnowledgeBase
from agentkernel_kb.testing.house import new_house, record


def chatter(query: str, **_: object) -> list[Record]:
    """Print in every way there is, and answer."""
    print("printed by a backend")
    sys.stdout.flush()
    os.write(1, b"written by a backend\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
    return [record("1", f"about {query}")]


class Slow(FakeKnowledgeBase):
    """A backend that never answers, and says when it was asked."""

    async def asearch(self, query: str, limit: int = 3, **kwargs: object) -> list[Record]:
        print("asked", file=sys.stderr, flush=True)
        await asyncio.sleep(600)
        return []


if __name__ == "__main__":
    if "--slow" in sys.argv:
        run_stdio(KnowledgeBuilder([Slow("handbook")]))
        sys.exit()
    house = new_house()
    if "--chatter" in sys.argv:
        house.handbook.on("search", chatter)
    with house.builder:
        run_stdio(house.builder)
