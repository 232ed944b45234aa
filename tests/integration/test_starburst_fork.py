"""A backend that came over a fork: each process speaks on connections of its own (A13, X4)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from servers import Server

FORK = """
import os, sys
from agentkernel_kb.starburst import StarburstManager

manager = StarburstManager("127.0.0.1", int(sys.argv[1]), "kb")


def answers(process):
    for number in range(12):
        (record,) = manager.query(f"SELECT {process * 100 + number} AS n", timeout=120)
        assert record["metadata"]["row"] == {"n": process * 100 + number}


answers(0)
children = []
for process in (1, 2):
    child = os.fork()
    if not child:
        status = 1
        try:
            answers(process)
            manager.close()
            status = 0
        finally:
            os._exit(status)
    children.append(child)
answers(3)
statuses = [os.waitpid(child, 0)[1] for child in children]
answers(4)
manager.close()
print(statuses)
"""


@pytest.mark.server("trino")
@pytest.mark.timeout(300)
def test_after_a_fork_each_process_gets_its_own_answers(trino_server: Server) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(trino_server.port)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=240,
    )
    assert (done.stdout.strip(), done.returncode) == ("[0, 0]", 0), done.stderr
