"""The commands over real stores: an OKF folder, SQLite, DuckDB and Chroma on disk (X10)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import Command, Ran, make_world, run

from agentkernel_kb.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("cli"))


@pytest.fixture
def kb(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, in the folder; stdin is no terminal."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("AGENTKERNEL_KB_CONFIG", raising=False)
    monkeypatch.delenv("AGENTKERNEL_KB_ENV", raising=False)

    def call(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


EVERY = {
    "init": ("--add", "handbook=okf:./handbook", "--config", "new/kb.yaml"),
    "validate": (),
    "doctor": ("--timeout", "60"),
    "schemas": (),
    "search": ("handbook", "refunds"),
    "query": ("sales", "SELECT name FROM <CLIENTS>"),
    "fetch": ("handbook", "refunds.md"),
    "browse": ("handbook",),
    "write": ("notes", "Acme moved to Oslo.", "--yes"),
    "ask": ("what do refunds take",),
    "tools": (),
}
FAILING = {
    "init": ((), 2),
    "validate": (("--env", "nope"), 1),
    "doctor": (("--config", "nope.yaml"), 2),
    "schemas": (("nope",), 2),
    "search": (("nope", "refunds"), 2),
    "query": (("sales", "DELETE FROM clients"), 1),
    "fetch": (("sales", "1"), 2),
    "browse": (("sales",), 2),
    "write": (("sales", "text", "--yes"), 2),
    "ask": (("--agent", "Nobody", "refunds"), 2),
    "tools": (("--agent", "Support_Agent", "--all-agents"), 2),
    "serve mcp": (("--token-env", "NONE"), 2),
}


@pytest.mark.parametrize("command", [*EVERY, "serve mcp"])
def test_help_of_each_command_says_what_it_does_and_gives_examples(kb: Command, command: str) -> None:
    ran = kb(*command.split(), "--help")
    assert ran.code == 0
    assert "Examples:" in ran.out
    assert f"agentkernel-kb {command}" in ran.out
    assert "--json" in ran.out
    assert ran.err == ""


@pytest.mark.parametrize(("command", "arguments"), EVERY.items())
def test_json_is_one_document_that_says_that_it_went_well_and_of_what(
    kb: Command, folder: Path, command: str, arguments: tuple[str, ...]
) -> None:
    (folder / "new").mkdir(exist_ok=True)
    ran = kb(command, *arguments, "--json", *(["--force"] if command == "init" else []))
    assert (ran.code, ran.json["ok"], ran.json["command"]) == (0, True, command)


@pytest.mark.parametrize(("command", "arguments", "code"), [(command, *rest) for command, rest in FAILING.items()])
def test_failure_is_one_line_on_stderr_and_an_exit_code(
    kb: Command, command: str, arguments: tuple[str, ...], code: int
) -> None:
    ran = kb(*command.split(), *arguments, "--quiet")
    assert ran.code == code
    assert "Traceback" not in ran.err
    said = ran.out if command == "validate" else ran.err
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(("command", "arguments", "code"), [(command, *rest) for command, rest in FAILING.items()])
def test_failure_in_json_is_one_document_as_well(kb: Command, command: str, arguments: tuple[str, ...], code: int) -> None:
    ran = kb(*command.split(), *arguments, "--json")
    assert (ran.code, ran.json["ok"]) == (code, False)


def test_search_prints_what_an_agent_reads(kb: Command) -> None:
    ran = kb("search", "handbook", "refunds", "--limit", "1")
    assert ran.code == 0
    assert ran.out.startswith("- [refunds.md] Refunds")
    assert ran.err == ""


def test_search_with_a_star_asks_every_knowledge_base_that_ranks(kb: Command) -> None:
    kb("write", "notes", "Refunds were discussed on Monday.", "--yes")
    ran = kb("search", "*", "refunds", "--json")
    assert ran.code == 0
    assert "handbook" in ran.json["answer"]
    assert "notes" in ran.json["answer"]


def test_finding_nothing_is_no_failure(kb: Command) -> None:
    ran = kb("search", "handbook", "zymurgy", "--json")
    assert (ran.code, ran.json["outcome"], ran.json["rows"]) == (0, "empty", 0)


def test_query_resolves_placeholders_of_the_environment(kb: Command) -> None:
    assert "Acme" in kb("query", "sales", "SELECT name FROM <CLIENTS>").out
    assert "Initech" in kb("query", "sales", "SELECT name FROM <CLIENTS>", "--env", "prod").out


def test_query_reads_duckdb(kb: Command) -> None:
    assert "Globex" in kb("query", "lake", "SELECT client FROM orders WHERE amount < 10").out


def test_query_takes_its_statement_from_stdin(folder: Path) -> None:
    ran = run("query", "sales", "-", folder=folder, typed="SELECT max(budget) AS most FROM clients")
    assert ran.code == 0
    assert "90" in ran.out


def test_statement_that_writes_is_refused(kb: Command) -> None:
    ran = kb("query", "sales", "DELETE FROM clients")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Refused: read_kb only reads.")


def test_fetch_prints_whole_records_and_names_what_is_missing(kb: Command) -> None:
    ran = kb("fetch", "handbook", "refunds.md", "nope.md", "--json")
    assert (ran.code, ran.json["outcome"]) == (0, "partial")
    assert "within 30 days" in ran.json["answer"]
    assert "nope.md" in ran.json["answer"]


def test_browse_lists_ids_that_fetch_takes(kb: Command) -> None:
    assert "[refunds.md]" in kb("browse", "handbook").out


def test_write_asks_for_a_confirmation_and_there_is_nobody_to_give_it(folder: Path) -> None:
    ran = run("write", "notes", "Never stored.", folder=folder)
    assert (ran.code, ran.out) == (2, "")
    assert "--yes" in ran.err
    assert "Never stored." not in run("search", "notes", "never stored", folder=folder).out


def test_what_is_written_is_found(kb: Command) -> None:
    assert kb("write", "notes", "Initech moved to Bergen.", "--source", "phone", "--yes").code == 0
    assert "Initech moved to Bergen. (source: phone)" in kb("search", "notes", "where is Initech").out


def test_agent_sees_only_what_it_may_use(kb: Command) -> None:
    hidden = kb("search", "notes", "Acme", "--agent", "Support_Agent")
    unknown = kb("search", "nonsense", "Acme", "--agent", "Support_Agent")
    assert (hidden.code, unknown.code) == (2, 2)
    assert (
        hidden.err.replace("notes", "X").split(" Did")[0].rstrip()
        == unknown.err.replace("nonsense", "X").split(" Did")[0].rstrip()
    )
    assert "notes" not in kb("schemas", "--agent", "Support_Agent").out


def test_agent_that_only_reads_cannot_write(kb: Command) -> None:
    ran = kb("write", "handbook", "New rule.", "--yes", "--agent", "Support_Agent")
    assert ran.code != 0
    assert "New rule" not in kb("search", "handbook", "new rule").out


def test_agent_that_the_file_does_not_name_is_told_who_it_names(kb: Command) -> None:
    ran = kb("search", "handbook", "refunds", "--agent", "Suport_Agent")
    assert ran.code == 2
    assert "Did you mean 'Support_Agent'?" in ran.err


def test_schemas_shows_tables_and_what_can_be_done(kb: Command) -> None:
    ran = kb("schemas", "sales", "handbook")
    assert "sales: query (sql)" in ran.out
    assert "budget INTEGER" in ran.out
    assert "lake" not in ran.out


def test_tools_are_given_as_json_schemas_for_each_agent(kb: Command) -> None:
    agents = {each["agent"]: each for each in kb("tools", "--all-agents", "--json").json["agents"]}
    support = {tool["name"]: tool for tool in agents["Support_Agent"]["tools"]}
    assert support["read_kb"]["parameters"]["properties"]["backend"]["enum"] == ["handbook", "sales"]
    assert support["read_kb"]["read_only"] is True
    assert "write_kb" not in support
    assert "write_kb" in {tool["name"] for tool in agents["Editor_Agent"]["tools"]}
    assert "handbook" in agents["Support_Agent"]["instructions"]


def test_tools_of_one_agent_are_a_line_each_when_piped(kb: Command) -> None:
    ran = kb("tools", "--agent", "Support_Agent")
    assert "read_kb\treads\thandbook, sales\tquery, limit" in ran.out.splitlines()


def test_tools_of_an_agent_that_nobody_named_are_none_with_the_nearest_name(kb: Command) -> None:
    ran = kb("tools", "--agent", "Suport_Agent")
    assert ran.out == "Agent 'Suport_Agent'\nNo tools: no knowledge base names this agent. Did you mean 'Support_Agent'?\n"


def test_doctor_tells_of_each_store_in_one_line(kb: Command) -> None:
    ran = kb("doctor", "--timeout", "60")
    lines = {line.split("\t")[0]: line.split("\t") for line in ran.out.splitlines()}
    assert ran.code == 0
    assert {name: line[2] for name, line in lines.items()} == dict.fromkeys(("handbook", "sales", "lake", "notes"), "ok")
    assert ran.err == "4 of 4 backends can be used.\n"
