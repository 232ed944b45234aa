"""Reads a semantic map and its environments from a YAML file."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import yaml

from agentkernel_kb.errors import AKConfigError

_KEYS = ("semantic_map", "environments")
_SHAPE = "expected 'semantic_map: {<TOKEN>: name}' and 'environments: {prod: {semantic_map: {<TOKEN>: name}}}'"


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that refuses a key that stands twice: YAML forbids it, PyYAML keeps the last one in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = cast("object", self.construct_object(key_node, deep=True))  # pyright: ignore[reportUnknownMemberType] - partly untyped
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands twice", key_node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep)


def read_tokens(path: Path, environment: str | None) -> dict[str, str]:
    """Return the base map of a file with one environment's overlay applied.

    Raises:
        AKConfigError: The file cannot be read or has another shape, or the environment is not in it.
    """
    content = _load(path)
    if not isinstance(content, Mapping):
        raise AKConfigError(f"{path}: {_SHAPE}.")
    document = cast("Mapping[str, object]", content)
    _check_keys(path, document)
    if not set(_KEYS) & set(document):
        raise AKConfigError(f"{path}: {_SHAPE}.")
    environments = _section(path, document, "environments")
    tokens = dict(_section(path, document, "semantic_map"))
    if environment is not None:
        if environment not in environments:
            raise AKConfigError(f"{path}: no environment '{environment}'. Known: {sorted(map(str, environments))}.")
        tokens |= _section(path, environments, environment, "semantic_map")
    return cast("dict[str, str]", tokens)


def _check_keys(path: Path, document: Mapping[str, object]) -> None:
    """Refuse a key that is nearly one of ours; a file may hold other sections too."""
    for key in document:
        near = get_close_matches(str(key), _KEYS, n=1, cutoff=0.8)
        if near and key not in _KEYS:
            raise AKConfigError(f"{path}: unknown key '{key}'. Did you mean '{near[0]}'?")


def _load(path: Path) -> object:
    if path.exists() and not path.is_file():
        raise AKConfigError(f"{path}: is no file.")
    try:
        # A subclass of SafeLoader builds plain values only.
        return cast("object", yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader))  # noqa: S506
    except (OSError, UnicodeDecodeError) as error:
        raise AKConfigError(f"{path}: cannot be read ({type(error).__name__}).") from error
    except Exception as error:  # PyYAML's constructors raise whatever a wrong scalar leads to.
        mark: object = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if isinstance(mark, yaml.Mark) else ""
        problem = getattr(error, "problem", None) or type(error).__name__
        raise AKConfigError(f"{path}{where}: not valid YAML: {problem}.") from error


def _section(path: Path, document: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    section = document
    for depth, key in enumerate(keys, 1):
        value = section.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise AKConfigError(f"{path}: '{'.'.join(keys[:depth])}' must be a mapping; {_SHAPE}.")
        section = cast("Mapping[str, object]", value)
    return section
