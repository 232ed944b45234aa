"""Plain values as YAML for people to read."""

from __future__ import annotations

from typing import Any, cast

import yaml


def written(value: object) -> str:
    """Return a plain value as YAML, in the order given, lines as long as they are."""
    dump = cast("Any", yaml.safe_dump)  # Its stubs leave the type of its widths open.
    return str(dump(value, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=False))
