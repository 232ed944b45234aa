"""The graph on which the Neo4j corpora run: on a server of its own, which nothing else uses and which an attack may end.

One server serves all runs of a process; each run empties it first. It is stopped when the process ends.
"""

from __future__ import annotations

import atexit
import hashlib
import sys
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import LiteralString, cast

import yaml
from neo4j import Driver, GraphDatabase, Record

from agentkernel_kb import KnowledgeBase, KnowledgeGuardError
from agentkernel_kb.deadline import Deadline
from agentkernel_kb.neo4j import Neo4jManager
from agentkernel_kb.neo4j.arguments import Scope, Target
from agentkernel_kb.neo4j.failures import translated
from agentkernel_kb.neo4j.link import Link
from agentkernel_kb.neo4j.sessions import read
from agentkernel_kb.neo4j.verdicts import Verdicts

sys.path.append(str(Path(__file__).parents[1]))  # `make attack` runs without pytest and its configuration.

import servers

LOGIN = ("neo4j", servers.PASSWORD)
UNGUARDED_SECONDS = 1.0
UNGUARDED_ROWS = 100
SETUP = Path(__file__).with_name("neo4j.setup.cypher")
ATTACKS = Path(__file__).with_name("neo4j.attacks.yaml")

# Data, schema, users and databases, and what runs: an attack whose call ended may go on on the server.
_STATE = [
    "MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties",
    "MATCH (a)-[r]->(b) RETURN properties(a) AS start, type(r) AS type, properties(r) AS properties, properties(b) AS end",
    "SHOW INDEXES YIELD name, type, labelsOrTypes, properties RETURN name, type, labelsOrTypes, properties",
    "SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties RETURN name, type, labelsOrTypes, properties",
    "CALL db.labels()",
    "CALL db.propertyKeys()",
    "CALL db.relationshipTypes()",
    "SHOW SETTINGS YIELD name, value, isDynamic WHERE isDynamic RETURN name, value",
]
_ADMINISTERED = ["SHOW USERS YIELD user, suspended RETURN user, suspended", "SHOW DATABASES YIELD name, requestedStatus"]


@cache
def _server() -> servers.PrivateServer:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(servers.private("neo4j"))


def _ask(driver: Driver, statement: str, database: str | None = None) -> list[Record]:
    """Run one of this module's statements."""
    return driver.execute_query(cast("LiteralString", statement), database_=database).records


def _driver(url: str) -> Driver:
    return GraphDatabase.driver(url, auth=LOGIN, notifications_min_severity="OFF")


def build(folder: Path) -> Path:
    """Empty the server, fill it with the sample graph, and make in `folder` a file that holds its address; return its path."""
    url = _server().url
    with _driver(url) as driver:
        _ask(driver, "MATCH (n) DETACH DELETE n")
        for (name,) in _ask(driver, "SHOW CONSTRAINTS YIELD name"):
            _ask(driver, f"DROP CONSTRAINT `{name}`")
        for (name,) in _ask(driver, "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name"):
            _ask(driver, f"DROP INDEX `{name}`")
        for statement in SETUP.read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                _ask(driver, statement)
        _ask(driver, "CALL db.awaitIndexes(60)")
    path = folder / "graph.url"
    path.write_text(url, encoding="utf-8")
    return path


def open_backend(path: Path) -> KnowledgeBase:
    """Open the graph as an application would, by a login that may do all."""
    return Neo4jManager(path.read_text(), *LOGIN, name="people")


def fingerprint(path: Path) -> str:
    """Return a hash of all data and of what else an attack could change."""
    with _driver(path.read_text()) as driver:
        state = [sorted(map(str, _ask(driver, statement))) for statement in _STATE]
        state += [sorted(map(str, _ask(driver, statement, "system"))) for statement in _ADMINISTERED]
    return hashlib.sha256(repr(state).encode()).hexdigest()


@cache
def _left_to_the_guard() -> frozenset[str]:
    entries = yaml.safe_load(ATTACKS.read_text(encoding="utf-8"))
    return frozenset(entry["statement"] for entry in entries if entry["reason"].startswith("Stalls"))


def run_unguarded(path: Path, statement: str) -> str:
    """Send a statement past the guard to the server's own locks: its word on what it does, and a transaction in READ mode.

    Raises:
        KnowledgeError: The server refused or rejected it, or stopped it at the deadline; or only the guard can stop it.
    """
    if statement in _left_to_the_guard():
        raise KnowledgeGuardError("Only the guard can stop this one")
    target = Target(path.read_text(), *LOGIN)
    scope, deadline = Scope(None, None), Deadline(UNGUARDED_SECONDS)
    with closing(Link(target, "unguarded")) as link:
        try:
            rows = link.run(lambda driver: read(driver, scope, statement, UNGUARDED_ROWS, deadline, Verdicts()), deadline)
        except Exception as error:
            raise translated(error, target, scope) from error
    return str(rows)
