"""`write_kb` over every real store side by side (A8, A11, A12, A13, X15, X16).

What takes writes gets them, with parameters; the others decline and name those that do.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

import servers
from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.ladybug import LadybugManager
from agentkernel_kb.neo4j import Neo4jManager
from agentkernel_kb.sql import SQLManager
from agentkernel_kb.starburst import StarburstManager

pytestmark = [pytest.mark.server(name) for name in ("chroma", "neo4j", "postgres", "trino")]

LABEL = f"Written{uuid4().hex[:8]}"
WRITABLE = ["chroma", "chroma_server", "neo4j", "people"]
DECLINING = ["sqlite", "duckdb", "postgres", "lake"]
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def tools(
    tmp_path_factory: pytest.TempPathFactory,
    chroma_server: servers.Server,
    neo4j_server: servers.Server,
    postgres_server: servers.Server,
    trino_server: servers.Server,
) -> Iterator[dict[str, Tool]]:
    folder = tmp_path_factory.mktemp("everywhere")
    sqlite3.connect(folder / "x.db").close()
    graph = LadybugManager(":memory:", name="people", threads=1)
    graph.write([{"text": "", "metadata": {"query": "CREATE NODE TABLE Person (name STRING PRIMARY KEY, age INT64)"}}])
    backends = [
        ChromaManager(str(folder / "chroma"), "chroma", "notes", embedding_function=HashEmbedder()),
        chroma_on(chroma_server),
        Neo4jManager(neo4j_server.url, "neo4j", servers.PASSWORD, name="neo4j"),
        graph,
        SQLManager(f"sqlite:///{folder / 'x.db'}", "sqlite"),
        SQLManager(f"duckdb:///{made_by_duckdb(folder)}", "duckdb"),
        SQLManager(postgres_server.url, "postgres"),
        lake(trino_server),
    ]
    with KnowledgeBuilder(backends) as builder:
        named = {tool.__name__: tool for tool in builder.build()}
        yield named
        with suppress(Exception):
            named["write_kb"]("neo4j", query=f"MATCH (n:{LABEL}) DELETE n")


def chroma_on(server: servers.Server) -> ChromaManager:
    return ChromaManager(
        host="127.0.0.1",
        port=server.port,
        name="chroma_server",
        collection_name=f"w{uuid4().hex}",
        embedding_function=HashEmbedder(),
    )


def made_by_duckdb(folder: Path) -> Path:
    import duckdb

    duckdb.connect(str(folder / "x.duckdb")).close()
    return folder / "x.duckdb"


def lake(server: servers.Server) -> StarburstManager:
    return StarburstManager(
        host="127.0.0.1", port=server.port, user="reader", catalog="tpch", schema="tiny", http_scheme="http", name="lake"
    )


@pytest.mark.parametrize("backend", ["chroma", "chroma_server"])
def test_a_text_is_written_to_chroma_and_found(tools: dict[str, Tool], backend: str) -> None:
    assert tools["write_kb"](backend, text="Refunds take thirty days.", source="policy").startswith(f"Written to '{backend}'.")
    assert "Refunds take thirty days." in tools["search_kb"](backend, "how long do refunds take")


@pytest.mark.parametrize(
    ("backend", "statement", "question"),
    [
        ("neo4j", f"CREATE (:{LABEL} {{name: $name, age: $age}})", f"MATCH (p:{LABEL}) RETURN p.name AS name, p.age AS age"),
        ("people", "CREATE (:Person {name: $name, age: $age})", "MATCH (p:Person) RETURN p.name AS name, p.age AS age"),
    ],
    ids=["neo4j", "people"],  # The label is random, and a test's name must not be.
)
def test_a_statement_is_run_on_a_graph_with_its_parameters(
    tools: dict[str, Tool], backend: str, statement: str, question: str
) -> None:
    name = "Ann'}) DETACH DELETE n //"
    answer = tools["write_kb"](backend, query=statement, params_json=json.dumps({"name": name, "age": 41}))
    assert answer.startswith(f"Written to '{backend}'."), answer
    assert name not in answer
    assert f"| {name} | 41 |" in tools["read_kb"](backend, question)


@pytest.mark.parametrize("backend", DECLINING)
@pytest.mark.parametrize("arguments", [{"text": "x"}, {"query": "CREATE TABLE t (a integer)"}], ids=["text", "statement"])
def test_a_store_that_takes_no_writes_declines_and_names_those_that_do(
    tools: dict[str, Tool], backend: str, arguments: dict[str, str]
) -> None:
    answer = tools["write_kb"](backend, **arguments)
    assert answer.startswith(f"Backend '{backend}' does not support write. Backends that do: {WRITABLE}."), answer
