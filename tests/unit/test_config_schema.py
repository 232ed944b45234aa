"""Editors are told the same as `check` tells, by a JSON Schema (X10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from agentkernel_kb.config import json_schema

ROOT = Path(__file__).parent.parent.parent
BROKEN = sorted((ROOT / "tests" / "config" / "broken").glob("*.yaml"))
SEEN_BY_CHECK_ALONE = {
    "agent_filters_not_declared": "what a backend can do",
    "agent_named_twice": "two sections that contradict each other",
    "agent_operation_not_there": "what a backend can do",
    "agent_unknown_backend": "a name that is declared elsewhere",
    "agent_writes_where_nobody_can": "what a backend can do",
    "bad_url": "a constructor's own check",
    "cache_range": "a range",
    "constructor_refuses": "a constructor's own check",
    "duplicate_key": "the text itself",
    "embedding_function_unknown": "what stands in a text",
    "environment_changes_type": "what comes out of base and overlay",
    "environment_removes_what_agents_use": "what comes out of base and overlay",
    "environment_removes_nothing": "what comes out of base and overlay",
    "environment_unknown_option": "what comes out of base and overlay",
    "broken_variable": "what stands in a text",
    "key_twice_on_a_line": "the text itself",
    "knowledge_embedder_unknown": "what stands in a text",
    "knowledge_embedder_without_model": "what stands in a text",
    "knowledge_scope_operator": "a language of its own",
    "limits_infinite": "a number that JSON does not have",
    "limits_range": "a range",
    "literal_password": "a warning",
    "missing_password": "the environment",
    "missing_variable": "the environment",
    "okf_agent_misspelt": "a warning",
    "okf_both_roles": "two lists that contradict each other",
    "okf_collision": "two sections that contradict each other",
    "okf_uri_bucket": "what stands in a text",
    "okf_database_bucket": "what stands in a text",
    "okf_uri_scheme": "what stands in a text",
    "okf_type_disagrees": "two values that contradict each other",
    "on_failure_contradiction": "two values that contradict each other",
    "password_default": "a warning",
    "password_in_url": "a warning",
    "python_class_no_backend": "what is imported",
    "python_class_not_there": "what is imported",
    "python_object_not_there": "what is imported",
    "token_in_header": "a warning",
    "token_with_credentials": "what stands in a text",
    "token_without_bracket": "what stands in a text",
    "variable_in_default": "what stands in a text",
    "variable_in_environment_name": "what stands in a text",
    "variable_in_name": "what stands in a text",
    "variable_without_end": "what stands in a text",
}
"""What a schema can't see, and why."""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(json_schema())


def parsed(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError):
        return None


def test_x10_the_schema_is_one_of_draft_2020_12():
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", [ROOT / "examples" / "multi" / "kb.yaml", ROOT / "examples" / "okf" / "kb.yaml"], ids=str)
def test_x10_the_shipped_examples_are_valid(path: Path, validator: Draft202012Validator):
    assert [error.message for error in validator.iter_errors(parsed(path))] == []


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_x10_a_broken_file_is_marked_in_an_editor_too(path: Path, validator: Draft202012Validator):
    assert validator.is_valid(parsed(path)) == (path.stem in SEEN_BY_CHECK_ALONE)


@pytest.mark.parametrize(
    "backend",
    [
        {"type": "sql", "url": "${SHOP_URL}", "isolate": "${ISOLATE:-true}", "tables": ["orders"]},
        {"type": "starburst", "host": "lake", "port": 8080, "schema": "sales", "add_schema": {"meaning": {"cost": "euros"}}},
        {"type": "neo4j", "uri": "neo4j://graph", "search_index": "texts", "embedding_function": "hash"},
        {"type": "neo4j", "uri": "neo4j://graph", "database_of": {"acme": "db1"}},
        {"type": "chroma", "host": "vectors", "port": "${PORT}", "headers": {"X-Token": "${TOKEN}"}, "min_score": None},
        {"type": "okf", "uri": "s3://bucket/book", "refresh_seconds": None, "connect": "eager"},
        {"type": "python:shop.search:Search", "anything": [1, 2]},
    ],
    ids=lambda backend: backend["type"],
)
def test_x10_what_is_right_is_valid(backend: dict[str, Any], validator: Draft202012Validator):
    assert [error.message for error in validator.iter_errors({"backends": {"one": backend}})] == []
