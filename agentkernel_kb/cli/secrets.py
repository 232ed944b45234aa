"""The secrets that a configuration names, so that no message of this command shows one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from agentkernel_kb.config import ConfigurationError, yaml_file
from agentkernel_kb.config.faults import Key
from agentkernel_kb.config.secrets import is_secret
from agentkernel_kb.config.variables import VARIABLE


def secrets_of(path: Path) -> set[str]:
    """Return what stands under keys such as `password`, and the passwords of URLs, variables put in; nothing of no YAML."""
    try:
        written = yaml_file.read(path).data  # Within its bounds: aliases that repeat one another have no end.
    except ConfigurationError:
        return set()
    return {secret for text, key in _texts(written, ()) for secret in _secrets(text, key) if secret}


def _texts(value: object, key: Key) -> Iterator[tuple[str, Key]]:
    if isinstance(value, Mapping):
        for name, item in cast("Mapping[object, object]", value).items():
            yield from _texts(item, (*key, str(name)))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item, key)
    elif isinstance(value, str | int):
        yield str(value), key


def _secrets(text: str, key: Key) -> Iterator[str]:
    full = VARIABLE.sub(lambda found: os.environ.get(found["name"] or "", "") or found["default"] or "", text)
    if is_secret("x", key):
        yield full
    try:
        password = urlsplit(full).password or ""
    except ValueError:
        return
    yield from {password, unquote(password)}
