"""A configuration is read with the places of its parts, and every fault is told where it stands (X10)."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from agentkernel_kb.config.faults import Finding, Key
from agentkernel_kb.config.source import Source, read
from agentkernel_kb.errors import AKConfigError

BOMB = "".join(f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True))
"""Nine of the former in each line: sixty lines that would be millions of values."""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "kb.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def place(source: Source, key: Key) -> str:
    return str(source.placed(Finding(key, "!"))).removesuffix(": !")


def test_x10_data_and_lines_of_a_file(tmp_path: Path):
    source = read(written(tmp_path, "# what it is\nokf:\n  databases:\n    wiki:\n      uri: ./wiki\n      consumer: [A, B]\n"))
    assert source.data == {"okf": {"databases": {"wiki": {"uri": "./wiki", "consumer": ["A", "B"]}}}}
    assert place(source, ("okf", "databases", "wiki", "uri")).endswith("kb.yaml:5: okf.databases.wiki.uri")
    assert place(source, ("okf", "databases", "wiki", "typ")).endswith("kb.yaml:4: okf.databases.wiki.typ")
    assert source.folder == tmp_path


def test_x10_one_error_lists_all_faults_in_the_order_of_their_lines(tmp_path: Path):
    source = read(written(tmp_path, "a: 1\nb: 2\nc: 3\n"))
    error = source.error([Finding(("c",), "third."), Finding(("a",), "first.")])
    assert isinstance(error, AKConfigError)
    assert [line.strip().partition("kb.yaml")[2] for line in str(error).splitlines()] == [
        " has 2 faults:",
        ":1: a: first.",
        ":3: c: third.",
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: [1, 2", "kb.yaml:1: not YAML"),
        ("a: b: c", "kb.yaml:1: not YAML"),
        ("- a\n- b\n", "not a mapping"),
        ("", "not a mapping"),
        ("just words", "not a mapping"),
        ("a: !!python/object/apply:os.system ['true']", "kb.yaml:1: not YAML"),
        ("a: 1\n---\nb: 2\n", "not YAML"),
        (b"a: 1\nb: \xff\n", "kb.yaml:2: the file is not UTF-8"),
        ("a: " + "[" * 200 + "]" * 200, "not YAML"),
        ("a: &a [x, x, x, x, x, x, x, x]\n" + BOMB, "its aliases repeat too much"),
        ("a: [" + "x," * 100_000 + "]", "too many values"),
        ("a: 0x" + "f" * 6_000, "too long for a number"),
        ("a: 1" + ":1" * 300_000, "too long for a number"),
        ("a: -" + "9" * 400, "too long for a number"),
        ("a: 1" + ":1" * 400 + ".5", "too long for a number"),
    ],
)
def test_x10_what_is_no_configuration_is_told_in_one_line(tmp_path: Path, text: str | bytes, part: str):
    with pytest.raises(AKConfigError) as caught:
        read(written(tmp_path, text))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        "!swordfish",
        "*swordfish",
        "!sword!fish",
        "&swordfish 1\nb: &swordfish 2",
        "!it'swordfish",
        "!swordfish {c: 1}",
        "!swordfish [1]",
    ],
)
def test_x10_a_secret_that_looks_like_a_mark_of_yaml_is_not_repeated(tmp_path: Path, value: str):
    with pytest.raises(AKConfigError) as caught:
        read(written(tmp_path, f"password: {value}\n"))
    assert "sword" not in str(caught.value)


def test_x10_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(AKConfigError, match=r"There is no configuration file .*nothing\.yaml"):
        read(tmp_path / "nothing.yaml")


def test_x10_variables_of_the_environment_are_put_in(tmp_path: Path):
    text = "host: ${HOST}\nport: ${PORT:-80}\nboth: ${HOST}:${PORT:-80}\nempty: ${NONE:-}\nprice: $$5 and $5\n"
    source = read(written(tmp_path, text), {"HOST": "db"})
    assert source.data == {"host": "db", "port": "80", "both": "db:80", "empty": "", "price": "$5 and $5"}
    assert not source.findings


def test_x10_what_a_variable_holds_is_not_looked_into(tmp_path: Path):
    assert read(written(tmp_path, "a: ${A}\n"), {"A": "${B}: [x]"}).data == {"a": "${B}: [x]"}


def test_x10_a_variable_that_is_not_set_is_a_fault_with_its_place(tmp_path: Path):
    source = read(written(tmp_path, "a:\n  - ${NOWHERE}\n"), {})
    (fault,) = source.findings
    assert "NOWHERE is not set" in fault.message
    assert place(source, fault.key).endswith("kb.yaml:2: a.0")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", ["${A:-" * 100_000, "${" * 200_000, "$" * 400_000])
def test_x10_openings_of_variables_without_an_end_are_told_and_not_looked_at_for_ever(text: str):
    with contextlib.suppress(AKConfigError):
        read({"okf": text})


def test_x10_a_key_that_stands_twice_is_a_fault(tmp_path: Path):
    (fault,) = read(written(tmp_path, "a: 1\nb: 2\na: 3\n")).findings
    assert "lines 1 and 3" in fault.message


def test_x10_a_mapping_is_taken_as_it_is():
    source = read({"a": {"b": "${B:-c}"}}, {})
    assert source.data == {"a": {"b": "c"}}
    assert place(source, ("a", "b")) == "configuration: a.b"
