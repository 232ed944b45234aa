"""The `okf:` block is checked whole before anything is opened (A18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agentkernel_kb.config import load_okf
from agentkernel_kb.errors import AKConfigError


def block(**databases: Mapping[str, Any]) -> dict[str, Any]:
    return {"okf": {"databases": databases}}


def database(**changes: Any) -> dict[str, Any]:
    return {"type": "local", "uri": "./nowhere", "consumer": ["Reader"], **changes}


def fault_of(configuration: Mapping[str, Any]) -> str:
    with pytest.raises(AKConfigError) as caught:
        load_okf(configuration)
    return str(caught.value)


def test_a18_a_database_that_names_no_agent_is_an_error():
    assert "'wiki' names no agent" in fault_of(block(wiki=database(consumer=[])))


def test_a18_one_agent_as_producer_and_curator_of_one_database_is_an_error():
    fault = fault_of(block(wiki=database(producer=["Writer"], curator=["Writer"])))
    assert "agent 'Writer' is both producer and curator of 'wiki'" in fault


def test_a18_producer_of_one_and_curator_of_another_is_fine():
    configuration = load_okf(block(wiki=database(producer=["Writer"]), notes=database(curator=["Writer"])))
    assert configuration.roles_of("Writer") == {"wiki": "producer", "notes": "curator"}


@pytest.mark.parametrize(
    ("kind", "uri"),
    [
        ("local", "s3://bucket/wiki"),
        ("local", "python:stores.Git"),
        ("local", "https://host/wiki"),
        ("s3", "./wiki"),
        ("s3", "file:///wiki"),
        ("s3", "bucket/wiki"),
    ],
)
def test_a18_a_type_that_disagrees_with_its_uri_is_an_error_that_names_all_three(kind: str, uri: str):
    fault = fault_of(block(wiki=database(type=kind, uri=uri)))
    assert "'wiki'" in fault
    assert kind in fault
    assert uri in fault


def test_a18_credentials_in_a_uri_are_not_shown():
    assert "hunter2" not in fault_of(block(wiki=database(type="s3", uri="https://me:hunter2@host/wiki")))


@pytest.mark.parametrize("kind", ["lokal", "", "S3", "my-package.Store"])
def test_a18_a_type_is_local_or_s3_or_a_dotted_path(kind: str):
    assert "dotted path" in fault_of(block(wiki=database(type=kind)))


def test_a18_an_unknown_key_is_told_with_the_nearest():
    assert "Did you mean 'consumer'?" in fault_of(block(wiki=database(consumers=["Reader"])))


@pytest.mark.parametrize(
    "changes",
    [
        {"refresh_seconds": -1},
        {"refresh_seconds": "soon"},
        {"max_concepts": 0},
        {"consumer": "Reader"},
        {"consumer": [1]},
        {"uri": ""},
        {"description": ["x"]},
    ],
)
def test_a18_a_value_of_the_wrong_kind_is_told_with_its_key(changes: dict[str, Any]):
    (key,) = changes
    assert f"okf.databases.wiki.{key}" in fault_of(block(wiki=database(**changes)))


def test_a18_all_faults_are_told_at_once():
    fault = fault_of(block(wiki=database(consumer=[]), notes={"type": "s3", "uri": "./x", "consumer": ["A"], "typo": 1}))
    assert "has 3 faults" in fault


@pytest.mark.parametrize("configuration", [{}, {"okf": None}, {"okf": {}}, {"okf": {"databases": {}}}, {"okf": ["x"]}])
def test_a18_a_block_without_databases_is_an_error(configuration: dict[str, Any]):
    assert fault_of(configuration)


def test_a18_the_database_of_all_cannot_be_named():
    assert "'*'" in fault_of(block(**{"*": database()}))
