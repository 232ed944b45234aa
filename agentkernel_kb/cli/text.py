"""Text that is safe to show: nothing in it steers a terminal, and no secret stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentkernel_kb.render import clean

_SHORTEST_SECRET = 4

# ECMA-48: control sequences (CSI … final byte), strings (OSC, DCS, … up to their end), and the two-byte escapes; with their
# one-byte forms. A string that never ends is cut to its line.
_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
# Marks that let text run the other way: what is read is then not what stands there.
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return `text` without control characters, escape sequences and marks that turn its direction; line breaks stay."""
    return clean(_DIRECTIONS.sub("", _SEQUENCES.sub("", text)))


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with each of the secrets replaced by `***`; one that is shorter than four characters stays."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text
