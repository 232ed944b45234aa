"""The command as a process: what it needs, what it finds, what it hides, what it completes and what it serves (X10, X11)."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import environment, make_world, run, without
from mcp import Client, StdioServerParameters, stdio_client
from mcp_serving import connected
from mcp_types import TextContent

import servers

TOKENS = {"SUPPORT_TOKEN": "support-token-of-a-test", "EDITOR_TOKEN": "editor-token-of-a-test"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("process"))


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_its_extra_it_says_how_to_install_it(tmp_path: Path, module: str) -> None:
    ran = run("doctor", folder=tmp_path, env=without(module, tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "The command line needs the extra 'cli': pip install 'agentkernel-kb[cli]'\n"


def test_without_the_extra_of_a_command_it_says_how_to_install_it(folder: Path, tmp_path: Path) -> None:
    ran = run("serve", "mcp", "--agent", "Support_Agent", folder=folder, env=without("mcp", tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "The MCP server needs the extra 'mcp': pip install 'agentkernel-kb[mcp]'\n"


def test_import_of_the_library_loads_nothing_of_the_command_line(tmp_path: Path) -> None:
    program = "import sys, agentkernel_kb, agentkernel_kb.cli; print({'typer', 'rich', 'mcp'} & set(sys.modules))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_without_a_file_it_says_how_to_make_one(tmp_path: Path) -> None:
    ran = run("doctor", folder=tmp_path)
    assert ran.code == 2
    assert "There is no kb.yaml here. `agentkernel-kb init` writes one" in ran.err


def test_file_of_a_folder_above_is_not_taken(folder: Path) -> None:
    assert run("validate", folder=folder / "handbook").code == 2


def test_file_is_the_one_given_else_the_variables(folder: Path, tmp_path: Path) -> None:
    file, missing = str(folder / "kb.yaml"), {"AGENTKERNEL_KB_CONFIG": "none.yaml"}
    assert "is valid" in run("validate", folder=tmp_path, env={"AGENTKERNEL_KB_CONFIG": file}).err
    assert "is valid" in run("validate", "--config", file, folder=tmp_path, env=missing).err
    assert "which AGENTKERNEL_KB_CONFIG names" in run("validate", folder=tmp_path, env=missing).err


def test_environment_comes_from_its_variable(folder: Path) -> None:
    ran = run("query", "sales", "SELECT name FROM <CLIENTS>", folder=folder, env={"AGENTKERNEL_KB_ENV": "prod"})
    assert "Initech" in ran.out


def test_option_that_does_not_exist_names_the_nearest(folder: Path) -> None:
    ran = run("search", "handbook", "refunds", "--limt", "3", folder=folder)
    assert ran.code == 2
    assert "--limit" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("options", [(), ("--json",), ("--debug",), ("--debug", "--json")])
@pytest.mark.parametrize("command", [("doctor", "--timeout", "30"), ("schemas",), ("query", "sales", "SELECT 1"), ("tools",)])
def test_secrets_of_the_file_stand_in_nothing_that_is_printed(
    tmp_path: Path, command: tuple[str, ...], options: tuple[str, ...]
) -> None:
    port = servers.free_port()
    (tmp_path / "kb.yaml").write_text(
        f"backends:\n  sales: {{type: sql, url: 'postgresql://kb:url-secret-1@127.0.0.1:{port}/kb'}}\n"
        f"  graph: {{type: neo4j, uri: 'bolt://127.0.0.1:{port}', user: neo4j, password: '${{GRAPH_WORD}}'}}\n"
        f"  lake: {{type: starburst, host: 127.0.0.1, port: {port}, catalog: c, schema: s, user: kb, "
        "password: literal-secret-3}\n"
    )
    ran = run(*command, *options, folder=tmp_path, env={"GRAPH_WORD": "variable-secret-2"})
    for secret in ("url-secret-1", "variable-secret-2", "literal-secret-3"):
        assert secret not in ran.out + ran.err


@pytest.mark.parametrize("command", ["tools", "doctor", "schemas", "validate"])
@pytest.mark.parametrize(
    "hostile",
    [
        "x-0: &a0 [x]\n" + "".join(f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20)),
        "x-0: &a [*a]\n",
        f"x-0: 0x{'f' * 6_000}\n",
        f"limits: {{rows: 0x{'f' * 6_000}}}\n",
    ],
    ids=["aliases that multiply", "alias of itself", "number without an end", "limit without an end"],
)
def test_file_that_is_meant_to_hurt_is_one_fault_with_its_line(tmp_path: Path, command: str, hostile: str) -> None:
    (tmp_path / "kb.yaml").write_text(f"{hostile}backends:\n  s: {{type: sql, url: 'sqlite:///s.db'}}\n")
    ran = run(command, folder=tmp_path)
    assert ran.code == 1
    assert "not YAML" in ran.out + ran.err


@pytest.mark.parametrize("options", [(), ("--json",), ("--debug",)])
@pytest.mark.parametrize("command", ["tools", "tools --instructions", "schemas", "doctor", "search vault x"])
def test_agent_without_a_role_on_a_backend_reads_nothing_of_it(tmp_path: Path, command: str, options: tuple[str, ...]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "kb.yaml").write_text(
        "backends:\n  notes: {type: okf, uri: ./notes}\n"
        "  graph: {type: neo4j, uri: 'bolt://g', user: kb, password: literal}\n"
        "agents:\n  Helper: {notes: consumer}\n  Boss: {graph: consumer}\n"
    )
    ran = run(*command.split(), "--agent", "Helper", *options, folder=tmp_path)
    assert "graph" not in (ran.out + ran.err).casefold()
    assert "notes" in ran.out + ran.err


def test_traceback_is_shown_to_whoever_debugs_and_to_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text("backends:\n  - not a mapping\n")
    plain, debugged = (run("search", "a", "b", *options, folder=tmp_path) for options in ((), ("--debug",)))
    assert "Traceback" not in plain.err
    assert "Traceback" in debugged.err
    assert (plain.code, debugged.code) == (1, 1)


def test_many_faults_are_one_line_and_validate_lists_them(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text("backends:\n  a: {type: nothing}\n  b: {type: sql}\n")
    ran = run("search", "a", "text", folder=tmp_path)
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert ran.err.startswith("kb.yaml:2: backends.a.type:")
    assert "`agentkernel-kb validate` lists them all." in ran.err
    listed = run("validate", folder=tmp_path)
    assert listed.code == 1
    assert [line.split(": ")[:2] for line in listed.out.splitlines()] == [["kb.yaml:2", "error"], ["kb.yaml:3", "error"]]
    assert listed.err == "kb.yaml: 2 errors.\n"


def test_warnings_fail_only_where_they_are_to(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text("backends:\n  g: {type: neo4j, uri: 'bolt://g', user: kb, password: literal}\n")
    assert run("validate", folder=tmp_path).code == 0
    strict = run("validate", "--strict", folder=tmp_path)
    assert strict.code == 1
    assert "kb.yaml:2: warning: backends.g.password:" in strict.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("search", ""), ["handbook", "sales", "lake", "notes"]),
        (("query", "sa"), ["sales"]),
        (("doctor", "--agent", ""), ["Support_Agent", "Editor_Agent"]),
        (("doctor", "--env", ""), ["prod"]),
        (("se",), ["search", "serve"]),
    ],
)
def test_shell_completes_commands_and_the_names_in_the_file(folder: Path, words: tuple[str, ...], expected: list[str]) -> None:
    line = " ".join(("agentkernel-kb", *words))
    env = {"_AGENTKERNEL_KB_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    ran = run(folder=folder, env=env)
    assert (ran.out.split(), ran.err) == (expected, "")


def test_completion_without_a_readable_file_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text("a: [\n")
    env = {"_AGENTKERNEL_KB_COMPLETE": "complete_bash", "COMP_WORDS": "agentkernel-kb search ", "COMP_CWORD": "2"}
    ran = run(folder=tmp_path, env=env)
    assert (ran.out.strip(), ran.err) == ("", "")


async def test_mcp_client_that_starts_the_command_gets_the_agents_tools(folder: Path) -> None:
    arguments = ["-m", "agentkernel_kb", "serve", "mcp", "--agent", "Support_Agent", "--quiet"]
    started = StdioServerParameters(command=sys.executable, args=arguments, cwd=str(folder), env=environment())
    async with Client(stdio_client(started)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        answered = await client.call_tool("read_kb", {"backend": "sales", "query": "SELECT name FROM clients"})
    assert "read_kb" in names
    assert isinstance(answered.content[0], TextContent)
    assert "Acme" in answered.content[0].text


async def test_mcp_over_http_gives_each_token_its_own_agent_and_says_where_it_listens(folder: Path) -> None:
    command = [sys.executable, "-m", "agentkernel_kb", "serve", "mcp", "--transport", "http", "--port", "0"]
    command += ["--token-env", "Support_Agent=SUPPORT_TOKEN", "--token-env", "Editor_Agent=EDITOR_TOKEN", "--json"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(TOKENS), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = "".join(iter(process.stdout.readline, "}\n")) + "}"
        url = json.loads(said)["url"]
        async with connected(url, TOKENS["SUPPORT_TOKEN"]) as client:
            support = {tool.name for tool in (await client.list_tools()).tools}
        async with connected(url, TOKENS["EDITOR_TOKEN"]) as client:
            editor = {tool.name for tool in (await client.list_tools()).tools}
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert editor - support == {"write_kb"}
    assert not any(token in said + out + err for token in TOKENS.values())


def test_a_port_that_another_program_has_is_told_and_nothing_is_said_to_be_served(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        where = ("--transport", "http", "--port", str(port))
        ran = run("serve", "mcp", *where, "--agent", "Support_Agent", "--json", folder=folder)
    told = f"It cannot listen on 127.0.0.1:{port}: another program does. Take another port, or 0 for a free one."
    assert (ran.code, ran.err) == (1, f"{told}\n")
    assert ran.json == {"ok": False, "command": "serve mcp", "error": {"kind": "AKConfigError", "message": told}}


@pytest.mark.parametrize("agent", [(), ("--agent", "Support_Agent")], ids=["everything", "an-agent"])
def test_whoever_serves_everything_is_told_that_roles_do_not_hold(folder: Path, agent: tuple[str, ...]) -> None:
    ran = run("serve", "mcp", *agent, folder=folder)  # Its stdin is empty: it ends at once.
    assert (ran.code, ran.out) == (0, "")
    assert ("whoever connects may use everything" in ran.err) == (not agent)


def test_http_from_elsewhere_needs_tokens(folder: Path) -> None:
    ran = run("serve", "mcp", "--transport", "http", "--host", "192.0.2.1", "--agent", "Support_Agent", folder=folder)
    assert ran.code == 1
    assert "give each a token" in ran.err


def test_what_listens_on_every_address_is_told_by_the_options_of_the_command(folder: Path) -> None:
    ran = run("serve", "mcp", "--transport", "http", "--host", "0.0.0.0", folder=folder)
    assert (ran.code, "say with --allow-host how it is reached" in ran.err) == (2, True)


def test_token_comes_from_the_environment_or_not_at_all(folder: Path) -> None:
    ran = run("serve", "mcp", "--transport", "http", "--token-env", "Support_Agent=NONE", folder=folder)
    assert (ran.code, ran.err) == (2, "The environment variable NONE holds no token: set it, or correct --token-env.\n")
