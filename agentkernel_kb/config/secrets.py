"""Secrets belong into the environment: finds those that stand in a configuration, and leaves them out of what is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from agentkernel_kb.config.faults import Finding, Key
from agentkernel_kb.config.variables import VARIABLE, without_variables
from agentkernel_kb.router.redaction import holds_credentials, redact

_SECRET_NAME = re.compile(
    r"(?:^|[_-])(?:password|passwd|passphrase|pwd|pass|secret|secrets|token|credential|credentials|authorization|cookie"
    r"|(?:api|access|account|private|secret|shared|auth)[_-]?key)(?:[_-]|$)|(?:password|secret|apikey|accesskey)$",
    re.IGNORECASE,
)
_NOT_OPTIONS = ("type", "description", "schema")


def literal_secrets(options: Any, key: Key) -> Iterator[Finding]:
    """Find what stands in the options of a backend as text and should come from the environment.

    Args:
        options: The options as they were written, or a part of them.
        key: Where they stand.
    """
    if isinstance(options, Mapping):
        for name, value in cast("Mapping[str, Any]", options).items():
            if name not in _NOT_OPTIONS:
                yield from literal_secrets(value, (*key, name))
    elif isinstance(options, list):
        for number, value in enumerate(cast("list[Any]", options)):
            yield from literal_secrets(value, (*key, number))
    elif isinstance(options, str | int) and not isinstance(options, bool) and is_secret(str(options), key):
        name = _variable_for(key)
        message = f"a secret stands in the file. Take it from the environment: ${{{name}}}."
        if isinstance(options, str) and (used := VARIABLE.fullmatch(options)):
            message = f"a secret has a default in the file. Leave the default out: ${{{used['name']}}}."
        yield Finding(key, message, "warning")


def is_secret(text: str, key: Key) -> bool:
    """Tell whether a text, its variables left out, is a secret by its key or by its own shape."""
    literal = without_variables(text).strip()
    if not literal:
        return False
    return _is_secret_key(key) or holds_credentials(literal)


def shown(options: Any, key: Key = ()) -> Any:
    """Return options as they were written, with `***` in place of what is or may be a secret."""
    if isinstance(options, Mapping):
        return {name: shown(value, (*key, name)) for name, value in cast("Mapping[str, Any]", options).items()}
    if isinstance(options, list):
        return [shown(value, (*key, number)) for number, value in enumerate(cast("list[Any]", options))]
    if isinstance(options, bool) or not isinstance(options, str | int) or not is_secret(str(options), key):
        return options
    return "***" if _is_secret_key(key) or not isinstance(options, str) else redact(options)


def _is_secret_key(key: Key) -> bool:
    names = [step for step in key if isinstance(step, str)]
    return bool(names) and _SECRET_NAME.search(names[-1]) is not None


def _variable_for(key: Key) -> str:
    names = [str(step) for step in key if isinstance(step, str)][-2:]
    return re.sub(r"\W+", "_", "_".join(names)).upper().strip("_") or "SECRET"
