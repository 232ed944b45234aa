"""`agentkernel-kb init`: a first file, by flags or by asking (X10)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from cli_terminal import Terminal
from cli_world import run

from agentkernel_kb.config import check

EVERY_TYPE = (
    "handbook=okf:./handbook",
    "sales=sql:postgresql://kb@localhost/sales",
    "notes=chroma",
    "minutes=chroma:https://chroma.example.com:8443",
    "graph=neo4j:bolt://graph:7687",
    "lake=starburst:https://lake.example.com:8443/hive/web",
    "people=ladybug",
    "corpus=knowledge",
)


def test_file_of_every_type_and_role_is_valid_once_its_variables_are_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = [part for each in EVERY_TYPE for part in ("--add", each)]
    ran = run("init", *add, "--grant", "Reader", "--grant", "Editor=curator", folder=tmp_path)
    assert (ran.code, ran.out) == (0, "kb.yaml\n")
    assert "GRAPH_PASSWORD is not set" in ran.err
    monkeypatch.setenv("GRAPH_PASSWORD", "x")
    monkeypatch.setenv("LAKE_PASSWORD", "x")
    assert check(tmp_path / "kb.yaml") == []


def test_file_names_its_schema_for_editors_and_the_schema_takes_it(tmp_path: Path) -> None:
    import jsonschema

    run("init", "--add", "handbook=okf", folder=tmp_path)
    text = (tmp_path / "kb.yaml").read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=./kb.schema.json\n")
    schema = json.loads((tmp_path / "kb.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(text))


def test_schema_that_validate_prints_is_the_one_beside_the_file(tmp_path: Path) -> None:
    run("init", "--add", "handbook=okf", folder=tmp_path)
    assert json.loads(run("validate", "--schema", folder=tmp_path).out) == json.loads((tmp_path / "kb.schema.json").read_text())


def test_file_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text("mine: true\n")
    ran = run("init", "--add", "handbook=okf", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "kb.yaml is there already: --force replaces it, --config names another file.\n"
    assert (tmp_path / "kb.yaml").read_text() == "mine: true\n"
    assert not (tmp_path / "kb.schema.json").exists()


def test_force_replaces_it(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text("mine: true\n")
    assert run("init", "--add", "handbook=okf", "--force", folder=tmp_path).code == 0
    assert "backends" in yaml.safe_load((tmp_path / "kb.yaml").read_text())


def test_password_of_a_url_is_not_written(tmp_path: Path) -> None:
    ran = run("init", "--add", "sales=sql:postgresql://kb:hunter2@localhost/sales", "--json", folder=tmp_path)
    written = (tmp_path / "kb.yaml").read_text()
    assert "hunter2" not in written + ran.out + ran.err
    assert "postgresql://kb:${SALES_PASSWORD}@localhost/sales" in written
    assert "SALES_PASSWORD is not set" in ran.json["open"][0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--add", "handbook"), "--add takes NAME=TYPE[:TARGET]"),
        (("--add", "handbook=okff"), "There is no type 'okff' here. Did you mean 'okf'?"),
        (("--add", "*=okf"), "the name is reserved"),
        (("--add", "a=okf", "--add", "a=sql"), "Two backends are called 'a'."),
        (("--add", "sales=sql:sales.db"), "'sales' needs a URL such as sqlite:///sales.db"),
        (("--add", "a=okf", "--grant", "Agent=boss"), "'boss' is no role."),
        ((), "Nobody is there to ask: give --add"),
    ],
)
def test_flag_that_says_nothing_useful_is_told_apart_and_nothing_is_written(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    ran = run("init", *arguments, folder=tmp_path)
    assert ran.code == 2
    assert said in ran.err
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_it_asks_what_there_is(tmp_path: Path) -> None:
    terminal = Terminal("init", folder=tmp_path)
    for question, answer in (
        ("Name of a knowledge base", "handbook"),
        ("Type [okf]:", "okff"),
        ("Name of a knowledge base", "handbook"),
        ("Type [okf]:", ""),
        ("[./handbook]:", "./docs"),
        ("What does it hold", "Rules: all of them."),
        ("Name of a knowledge base", ""),
        ("Name of an agent", "Support_Agent"),
    ):
        terminal.wait_for(question)
        terminal.type(f"{answer}\n")
    assert terminal.ended() == 0
    assert "Did you mean 'okf'?" in terminal.shown
    assert yaml.safe_load((tmp_path / "kb.yaml").read_text()) == {
        "version": 1,
        "backends": {"handbook": {"type": "okf", "uri": "./docs", "description": "Rules: all of them."}},
        "agents": {"Support_Agent": {"handbook": "consumer"}},
    }
    assert check(tmp_path / "kb.yaml") == []


def test_interrupted_while_it_asks_it_writes_nothing(tmp_path: Path) -> None:
    terminal = Terminal("init", folder=tmp_path)
    terminal.wait_for("Name of a knowledge base")
    terminal.type("\x03")
    assert terminal.ended() == 130
    assert list(tmp_path.iterdir()) == []


def test_end_of_input_while_it_asks_is_no_traceback(tmp_path: Path) -> None:
    terminal = Terminal("init", folder=tmp_path)
    terminal.wait_for("Name of a knowledge base")
    terminal.type("\x04")
    assert terminal.ended() == 2
    assert "Traceback" not in terminal.shown
    assert list(tmp_path.iterdir()) == []
