"""Frontmatter written: a new one, or one whose other keys stay byte for byte as their author wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from agentkernel_kb.okf.frontmatter import FrontmatterError, Head, Parts, read_head
from agentkernel_kb.okf.records import comparable
from agentkernel_kb.render import encode

_WIDTH = 4_096


class RenderingError(Exception):
    """A frontmatter that cannot be written so that it reads as what was meant."""


def new_document(values: Mapping[str, Any], body: str) -> str:
    """Return a document with this frontmatter and body.

    Raises:
        RenderingError: A value cannot stand in a frontmatter.
    """
    head = _yaml(values)
    _check(head, _as_read(values))
    return f"---\n{head}---\n{body}"


def edited(parts: Parts, head: Head, changes: Mapping[str, Any], body: str) -> str:
    """Return a document with some keys of its frontmatter changed and every other byte of it kept.

    Args:
        parts: The document.
        head: Its frontmatter as it was read.
        changes: New values; `None` takes a key out.
        body: The body.

    Raises:
        RenderingError: A value cannot stand in a frontmatter.
    """
    if not changes:
        return f"{parts.opening}{parts.head}{parts.closing}{body}"
    wanted = {key: value for key, value in head.values.items() if changes.get(key, value) is not None or key not in changes}
    wanted |= _as_read({key: value for key, value in changes.items() if value is not None})
    newline = "\r\n" if parts.opening.endswith("\r\n") else "\n"
    yaml_text = _spliced(parts.head, head, changes, newline)
    if yaml_text is None or not _reads_as(yaml_text, wanted):
        # In flow style, or with keys twice, nothing can be taken out alone.
        yaml_text = _yaml(wanted).replace("\n", newline)
        _check(yaml_text, wanted)
    return f"{parts.opening}{yaml_text}{parts.closing}{body}"


def _spliced(yaml_text: str, head: Head, changes: Mapping[str, Any], newline: str) -> str | None:
    if head.values and not head.spans:
        return None
    lines = yaml_text.splitlines(keepends=True)
    for key in sorted((key for key in changes if key in head.spans), key=lambda key: head.spans[key], reverse=True):
        start, end = head.spans[key]
        end = _without_what_follows(lines, start, len(lines) if end < 0 else end)
        lines[start:end] = [] if changes[key] is None else [_yaml({key: changes[key]}).replace("\n", newline)]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    added = {key: value for key, value in changes.items() if key not in head.spans and value is not None}
    return "".join(lines) + (_yaml(added).replace("\n", newline) if added else "")


def _without_what_follows(lines: list[str], start: int, end: int) -> int:
    """Return where a value ends, so that blank lines and comments at the margin that follow it stay."""
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end


def _yaml(values: Mapping[str, Any]) -> str:
    return yaml.dump(  # pyright: ignore[reportUnknownMemberType] - a dumper's type argument is missing in the stubs
        encode(dict(values)), Dumper=_Dumper, allow_unicode=True, default_flow_style=False, sort_keys=False, width=_WIDTH
    )


class _Dumper(yaml.CSafeDumper):
    """Writes text so that every reader of YAML takes it for text, and never an alias."""

    def ignore_aliases(self, data: object) -> bool:
        """Write what occurs twice out twice."""
        return True


def _written_text(dumper: Any, value: str) -> Any:
    """Write text with a carriage return in double quotes: in others libyaml writes it bare, which reads as a line feed."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if "\r" in value else None)


_Dumper.add_representer(str, _written_text)


def _as_read(values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return read_head(_yaml(values)).values
    except FrontmatterError as error:
        raise RenderingError(str(error)) from error


def _reads_as(yaml_text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return comparable(read_head(yaml_text).values) == comparable(dict(wanted))
    except FrontmatterError:
        return False


def _check(yaml_text: str, wanted: Mapping[str, Any]) -> None:
    if "\n---" in f"\n{yaml_text}" or not _reads_as(yaml_text, wanted):
        raise RenderingError("a value of its metadata cannot stand in a frontmatter")
