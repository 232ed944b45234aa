"""What a section or a chunk holds: a text, or a block of other data such as an image."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A text.

    Attributes:
        text: The text itself.

    Raises:
        AKConfigError: `text` is not a string.
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise AKConfigError(f"TextBlock.text must be a string, not {type(self.text).__name__}.")

    def to_dict(self) -> dict[str, Any]:
        """Return the block as plain JSON values."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class DataBlock:
    """Data that is no text: its bytes, or the address where they are.

    Attributes:
        data: The bytes; empty where `url` says where they are.
        media_type: IANA media type, such as `image/png`.
        url: Where the bytes are, if they are not here. Nothing in this library fetches it.
        name: What to call it, for people.

    Raises:
        AKConfigError: Both or neither of `data` and `url` are given, or one of the values is of the wrong type.
    """

    data: bytes = field(default=b"", repr=False)
    media_type: str = "application/octet-stream"
    url: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise AKConfigError(f"DataBlock.data must be bytes, not {type(self.data).__name__}.")
        if not isinstance(self.media_type, str) or "/" not in self.media_type:
            raise AKConfigError(f"DataBlock.media_type must be a media type such as 'image/png', not {self.media_type!r}.")
        if bool(self.data) == bool(self.url):
            raise AKConfigError("DataBlock needs either data or url, and not both.")

    def to_dict(self) -> dict[str, Any]:
        """Return the block as plain JSON values, its bytes in base64."""
        held = {"url": self.url} if self.url else {"data": base64.b64encode(self.data).decode("ascii")}
        return {"type": "data", **held, "media_type": self.media_type, "name": self.name}


Content = TextBlock | DataBlock


def as_content(value: object, subject: str) -> Content:
    """Return `value` as a block; a plain string becomes a `TextBlock`.

    Raises:
        AKConfigError: It is neither text nor a block.
    """
    if isinstance(value, TextBlock | DataBlock):
        return value
    if isinstance(value, str):
        return TextBlock(value)
    raise AKConfigError(f"{subject} must be a string, a TextBlock or a DataBlock, not {type(value).__name__}.")


def content_from(value: object, subject: str) -> Content:
    """Return the block that `to_dict()` made, or a plain string as a text.

    Raises:
        AKConfigError: It is no such mapping.
    """
    if not isinstance(value, Mapping):
        return as_content(value, subject)
    fields = cast("Mapping[str, Any]", value)
    if fields.get("type") == "text":
        return TextBlock(fields.get("text", ""))
    if fields.get("type") == "data":
        return DataBlock(
            _decoded(fields.get("data"), subject), fields.get("media_type", ""), fields.get("url"), fields.get("name")
        )
    raise AKConfigError(f"{subject} must have the type 'text' or 'data', not {fields.get('type')!r}.")


def content_digest(content: Content) -> str:
    """Return a digest of a block that depends on nothing but what it holds (BLAKE2b, 128 bits, in hexadecimal)."""
    if isinstance(content, TextBlock):
        return digest("text", content.text)
    return digest("data", content.media_type, content.url or "", content.data)


def digest(*parts: str | bytes) -> str:
    """Return a digest of parts in their order, in which ("a", "b") and ("ab", "") differ."""
    summary = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        held = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        summary.update(len(held).to_bytes(8, "little"))
        summary.update(held)
    return summary.hexdigest()


def _decoded(value: object, subject: str) -> bytes:
    if value is None:
        return b""
    try:
        return base64.b64decode(cast("str", value), validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise AKConfigError(f"{subject}.data must be base64.") from None
