"""An environment laid over the base of a configuration, key by key, so that each part still knows where it was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agentkernel_kb.config.faults import Key


def laid_over(base: Mapping[str, Any], overlay: Mapping[str, Any], at: Key) -> tuple[dict[str, Any], dict[Key, Key]]:
    """Return the base with an overlay applied: mappings are merged, null removes, anything else replaces.

    Args:
        base: The base.
        overlay: What is different.
        at: The key under which the overlay stands.

    Returns:
        The merged data, and where the parts that come from the overlay were written, by their key in that data.
    """
    origins: dict[Key, Key] = {}
    return _merged(base, overlay, (), at, origins), origins


def _merged(base: Mapping[str, Any], overlay: Mapping[str, Any], key: Key, at: Key, origins: dict[Key, Key]) -> dict[str, Any]:
    merged = dict(base)
    for name, value in overlay.items():
        here, there = (*key, name), (*at, name)
        below = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            inner = cast("Mapping[str, Any]", value)
            if not isinstance(below, Mapping):
                origins[here] = there
            merged[name] = _merged(
                cast("Mapping[str, Any]", below if isinstance(below, Mapping) else {}), inner, here, there, origins
            )
        else:
            merged[name] = value
            origins[here] = there
    return merged


def origin(key: Key, origins: Mapping[Key, Key]) -> Key:
    """Return where the part under `key` of merged data was written."""
    for length in range(len(key), 0, -1):
        if key[:length] in origins:
            return (*origins[key[:length]], *key[length:])
    return key
