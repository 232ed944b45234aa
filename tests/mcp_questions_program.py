"""A program that serves the stores of the common questions over stdio; its argument is a folder to make them in."""

import sys
from pathlib import Path

from common_questions import asked_builder

from agentkernel_kb.serve.mcp import run_stdio

if __name__ == "__main__":
    with asked_builder(Path(sys.argv[1])) as builder:
        run_stdio(builder)
