"""`agentkernel-kb doctor`: each thing that can be wrong with a store, told in one line with the way to mend it (X10)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from cli_world import Ran, run, with_path, without

import servers

NEO4J = "graph:\n    type: neo4j\n    uri: {uri}\n    user: neo4j\n    password: ${{GRAPH_PASSWORD}}"
SECONDS = "60"


def diagnosis(folder: Path, backends: str, **env: str) -> tuple[list[str], Ran]:
    """Return the cells of the one line about the one backend, and the run."""
    (folder / "kb.yaml").write_text(f"backends:\n  {backends}\n", "utf-8")
    ran = run("doctor", "--timeout", SECONDS, folder=folder, env=env)
    (line,) = ran.out.splitlines()
    assert not any(secret in ran.out + ran.err for secret in env.values())
    return line.split("\t"), ran


def refused_port() -> int:
    """Return a port on which nobody listens."""
    return servers.free_port()


@pytest.mark.server("neo4j")
def test_healthy_neo4j(neo4j_server: servers.Server, tmp_path: Path) -> None:
    cells, ran = diagnosis(tmp_path, NEO4J.format(uri=neo4j_server.url), GRAPH_PASSWORD=servers.PASSWORD)
    assert (ran.code, cells[:3]) == (0, ["graph", "neo4j", "ok"])
    assert "query, write" in cells[4]


@pytest.mark.server("neo4j")
def test_wrong_password_of_neo4j_names_the_variable_that_it_comes_from(neo4j_server: servers.Server, tmp_path: Path) -> None:
    cells, ran = diagnosis(tmp_path, NEO4J.format(uri=neo4j_server.url), GRAPH_PASSWORD="not-the-password")
    assert (ran.code, cells[2]) == (3, "unauthorized")
    assert "password (GRAPH_PASSWORD) of backends.graph" in cells[4]


@pytest.mark.server("neo4j")
def test_wrong_port_of_neo4j(neo4j_server: servers.Server, tmp_path: Path) -> None:
    wrong = neo4j_server.url.replace(str(neo4j_server.port), str(refused_port()))
    cells, ran = diagnosis(tmp_path, NEO4J.format(uri=wrong), GRAPH_PASSWORD=servers.PASSWORD)
    assert (ran.code, cells[2]) == (3, "unreachable")
    assert "cannot be reached. Start the server, or correct uri of backends.graph." in cells[4]


@pytest.mark.server("postgres")
def test_healthy_postgres(postgres_server: servers.Server, tmp_path: Path) -> None:
    cells, ran = diagnosis(tmp_path, "sales: {type: sql, url: '${SALES_URL}'}", SALES_URL=postgres_server.url)
    assert (ran.code, cells[:3]) == (0, ["sales", "sql", "ok"])
    assert "postgres 1" in cells[4]


@pytest.mark.server("postgres")
def test_wrong_password_of_postgres(postgres_server: servers.Server, tmp_path: Path) -> None:
    wrong = postgres_server.url.replace(servers.PASSWORD, "not-the-password")
    cells, ran = diagnosis(tmp_path, "sales: {type: sql, url: '${SALES_URL}'}", SALES_URL=wrong)
    assert (ran.code, cells[2]) == (3, "unauthorized")
    assert "Correct url (SALES_URL) of backends.sales" in cells[4]
    assert "not-the-password" not in ran.out + ran.err


@pytest.mark.server("postgres")
def test_wrong_port_of_postgres(postgres_server: servers.Server, tmp_path: Path) -> None:
    wrong = postgres_server.url.replace(str(postgres_server.port), str(refused_port()))
    cells, ran = diagnosis(tmp_path, "sales: {type: sql, url: '${SALES_URL}'}", SALES_URL=wrong)
    assert (ran.code, cells[2]) == (3, "unreachable")


@pytest.mark.server("postgres")
def test_database_that_is_not_there(postgres_server: servers.Server, tmp_path: Path) -> None:
    wrong = f"{postgres_server.url.rpartition('/')[0]}/nowhere"
    cells, ran = diagnosis(tmp_path, "sales: {type: sql, url: '${SALES_URL}'}", SALES_URL=wrong)
    assert (ran.code, cells[2]) == (3, "missing")
    assert "Create it, or correct url (SALES_URL) of backends.sales." in cells[4]


@pytest.mark.server("trino")
def test_healthy_trino_and_one_whose_certificate_does_not_hold(trino_server: servers.Server, tmp_path: Path) -> None:
    lake = f"lake: {{type: starburst, host: 127.0.0.1, port: {trino_server.port}, user: kb, catalog: tpch, schema: tiny"
    cells, ran = diagnosis(tmp_path, f"{lake}, http_scheme: http}}")
    assert (ran.code, cells[2]) == (0, "ok")
    cells, ran = diagnosis(tmp_path, f"{lake}, http_scheme: https, password: '${{LAKE_PASSWORD}}'}}", LAKE_PASSWORD="is-secret")
    assert (ran.code, cells[2]) == (3, "untrusted")
    assert "http_scheme of backends.lake" in cells[4]


@pytest.mark.server("chroma")
def test_healthy_chroma_and_one_on_the_wrong_port(chroma_server: servers.Server, tmp_path: Path) -> None:
    notes = "notes: {{type: chroma, host: 127.0.0.1, port: {}, embedding_function: hash, collection_name: cli-doctor}}"
    cells, ran = diagnosis(tmp_path, notes.format(chroma_server.port))
    assert (ran.code, cells[2]) == (0, "ok")
    cells, ran = diagnosis(tmp_path, notes.format(refused_port()))
    assert (ran.code, cells[2]) == (3, "unreachable")
    assert "host, port of backends.notes" in cells[4]


@pytest.mark.server("neo4j")
def test_one_that_is_down_hides_no_other(neo4j_server: servers.Server, tmp_path: Path) -> None:
    (tmp_path / "handbook").mkdir()
    backends = NEO4J.format(uri=f"bolt://127.0.0.1:{refused_port()}")
    (tmp_path / "kb.yaml").write_text(f"backends:\n  {backends}\n  handbook: {{type: okf, uri: ./handbook}}\n", "utf-8")
    ran = run("doctor", "--timeout", SECONDS, "--json", folder=tmp_path, env={"GRAPH_PASSWORD": servers.PASSWORD})
    assert ran.code == 3
    assert {each["name"]: each["state"] for each in ran.json["backends"]} == {"graph": "unreachable", "handbook": "ok"}


@pytest.mark.parametrize(
    ("backend", "blocked", "extra"),
    [
        ("graph: {type: neo4j, uri: 'bolt://localhost:7687', user: neo4j, password: '${KB_WORD}'}", "neo4j", "neo4j"),
        ("sales: {type: sql, url: 'sqlite:///sales.db'}", "sqlalchemy", "sql"),
        ("sales: {type: sql, url: 'sqlite:///sales.db'}", "sqlglot", "sql"),
        ("sales: {type: sql, url: 'duckdb:///sales.duckdb'}", "duckdb", "duckdb"),
        ("sales: {type: sql, url: 'postgresql://kb@localhost/kb'}", "psycopg", "postgres"),
        ("notes: {type: chroma, persist_path: ./notes, embedding_function: hash}", "chromadb", "chroma"),
        ("lake: {type: starburst, host: localhost, user: kb, catalog: tpch, schema: tiny}", "trino", "starburst"),
        ("graph: {type: ladybug, path: ./graph.lbug}", "ladybug", "ladybug"),
        ("handbook: {type: okf, uri: 's3://bucket/prefix'}", "boto3", "aws"),
    ],
    ids=lambda value: value if " " not in value else "",
)
def test_missing_extra_is_named_with_the_command_that_installs_it(
    tmp_path: Path, backend: str, blocked: str, extra: str
) -> None:
    sqlite3.connect(tmp_path / "sales.db").close()
    (tmp_path / "sales.duckdb").touch()
    cells, ran = diagnosis(tmp_path, backend, **without(blocked, tmp_path), KB_WORD="unused-password")
    assert (ran.code, cells[2]) == (1, "missing-extra")
    assert f"pip install 'agentkernel-kb[{extra}]'" in cells[4]


def test_read_only_store_with_a_producer(tmp_path: Path) -> None:
    store = tmp_path / "read_only_folder.py"
    store.write_text(
        "from agentkernel_kb import LocalDocumentStore\n"
        "class ReadOnlyFolder(LocalDocumentStore):\n"
        "    def __init__(self, root):\n"
        "        super().__init__(root, writable=False)\n"
    )
    (tmp_path / "handbook").mkdir()
    (tmp_path / "kb.yaml").write_text(
        "okf:\n  databases:\n    handbook:\n      type: read_only_folder.ReadOnlyFolder\n      uri: ./handbook\n"
        "      description: Rules.\n      consumer: [Reader]\n      producer: [Writer]\n"
    )
    ran = run("doctor", "--timeout", SECONDS, folder=tmp_path, env=with_path(tmp_path))
    (line,) = ran.out.splitlines()
    cells = line.split("\t")
    assert (ran.code, cells[:3]) == (1, ["handbook", "okf", "read-only"])
    assert cells[4].startswith("It takes no writes, and these agents are meant to write to it: Writer.")


def test_read_only_graph_with_a_producer(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text(
        "backends:\n  graph: {type: ladybug, path: ./graph.lbug, read_only: true}\nagents:\n  Writer: {graph: producer}\n"
    )
    ran = run("doctor", "--timeout", SECONDS, folder=tmp_path)
    (line,) = ran.out.splitlines()
    assert ran.code == 1
    assert "kb.yaml:4: agents.Writer.graph: agent 'Writer' can't be producer of 'graph', which takes no writes." in line


def test_file_with_faults_is_told_fault_by_fault_in_json_too(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text("backends:\n  graph: {type: neo5j}\n  sales: {type: sql}\n")
    ran = run("doctor", "--json", folder=tmp_path)
    assert (ran.code, ran.json["ok"], ran.json["backends"]) == (1, False, [])
    assert [fault["line"] for fault in ran.json["faults"]] == [2, 3]


@pytest.mark.parametrize(
    ("backend", "told"),
    [
        ("sales: {type: sql, url: 'duckdb:///none.duckdb'}", "Check url of backends.sales; --debug shows what failed."),
        ("sales: {type: sql, url: '${SALES}'}", "Check url (SALES) of backends.sales; --debug shows what failed."),
        ("book: {type: okf, uri: ./none}", "is not there. Check uri of backends.book; --debug shows what failed."),
    ],
    ids=["duckdb", "sqlite-by-variable", "folder"],
)
def test_file_that_is_not_there_is_told_with_the_option_that_names_it(tmp_path: Path, backend: str, told: str) -> None:
    cells, ran = diagnosis(tmp_path, backend, SALES="sqlite:///none.db")
    assert (ran.code, cells[2]) == (1, "error")
    assert cells[4].endswith(told)


def test_what_an_agent_may_not_do_is_not_told_to_it(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "kb.yaml").write_text(
        "backends:\n  book: {type: okf, uri: ./book}\nagents:\n  Reader: {book: consumer}\n  Writer: {book: producer}\n"
    )
    reader, writer = (run("doctor", "--agent", agent, folder=tmp_path).out for agent in ("Reader", "Writer"))
    assert "search, fetch, browse ·" in reader
    assert "search, fetch, browse, write ·" in writer
