"""The portable subset of JSON schema: each departure is found, and sound definitions pass (X17)."""

from __future__ import annotations

from typing import Any

import pytest

from agentkernel_kb.testing.portable import portability_faults

TEXT = {"type": "string", "description": "Some text."}


def faults(properties: dict[str, Any], **schema: Any) -> list[str]:
    parameters = {"type": "object", "properties": properties, **schema}
    return portability_faults([{"name": "look", "description": "Looks.", "parameters": parameters}])


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"a": TEXT},
        {"a": {**TEXT, "enum": ["x", "y"]}},
        {"a": {"type": "integer", "description": "n"}, "b": {"type": "boolean", "description": "?"}},
        {"a": {"type": "array", "items": {"type": "string"}, "description": "Several."}},
    ],
)
def test_the_subset_passes(properties: dict[str, Any]) -> None:
    assert faults(properties, required=list(properties), additionalProperties=False) == []


@pytest.mark.parametrize(
    ("properties", "fault"),
    [
        ({"a": {**TEXT, "default": ""}}, "look: a uses ['default']."),
        ({"a": {**TEXT, "const": "x"}}, "look: a uses ['const']."),
        ({"a": {**TEXT, "enum": []}}, "look: a must have an enum of different, non-empty strings."),
        ({"a": {**TEXT, "enum": ["x", "x"]}}, "look: a must have an enum of different, non-empty strings."),
        ({"a": {"type": "string"}}, "look: a has no description."),
        ({"config": TEXT}, "look: config is a name that a framework takes for its own, or no plain one."),
        ({"a-b": TEXT}, "look: a-b is a name that a framework takes for its own, or no plain one."),
        (
            {"a": {**TEXT, "type": ["string", "null"]}},
            "look: a must be a string, an integer, a boolean or an array of strings, not ['string', 'null'].",
        ),
        (
            {"a": {**TEXT, "type": "object"}},
            "look: a must be a string, an integer, a boolean or an array of strings, not 'object'.",
        ),
        (
            {"a": {"type": "array", "items": {"type": "integer"}, "description": "n"}},
            "look: a must be a string, an integer, a boolean or an array of strings, not 'array'.",
        ),
    ],
)
def test_a_property_outside_of_the_subset_is_named(properties: dict[str, Any], fault: str) -> None:
    assert faults(properties) == [fault]


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"$defs": {}}, "look: the parameters use ['$defs']."),
        ({"additionalProperties": True}, "look: additionalProperties can only be false."),
        ({"required": ["b"]}, "look: ['b'] are required and not defined."),
        ({"type": "array"}, "look: the parameters must be an object with properties."),
    ],
)
def test_parameters_outside_of_the_subset_are_named(schema: dict[str, Any], fault: str) -> None:
    parameters = {"type": "object", "properties": {"a": TEXT}, **schema}
    assert portability_faults([{"name": "look", "description": "Looks.", "parameters": parameters}]) == [fault]


@pytest.mark.parametrize(
    ("name", "description", "fault"),
    [
        ("look here", "Looks.", "look here: the name must be 1 to 64 letters, digits, _ or -."),
        ("look", "", "look: the description must have 1 to 1024 characters."),
        ("look", "x" * 1_025, "look: the description must have 1 to 1024 characters."),
    ],
)
def test_a_name_or_description_that_a_provider_refuses_is_named(name: str, description: str, fault: str) -> None:
    definition: dict[str, Any] = {"name": name, "description": description, "parameters": {"type": "object", "properties": {}}}
    assert portability_faults([definition]) == [fault]
