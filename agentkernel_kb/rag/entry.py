"""Entry: what is noted about one source."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Entry:
    """What is noted about an origin: a source, or a document that has none.

    Attributes:
        version: What its loader said of its state, such as size and time; `None` where only reading it tells.
        metadata: Digest of the metadata that it was indexed with.
        content: Digest of its documents.
        chunks: How many chunks it has.
        identity: What its loader calls it however it is spelled, such as the whole path of a file.
        within: The scope through which it was indexed, as `Scope.written` has it; empty for none.
    """

    version: str | None
    metadata: str
    content: str
    chunks: int
    identity: str | None = None
    within: str = ""

    def written(self) -> str:
        """Return the entry as text."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def read(cls, text: str) -> Entry | None:
        """Return what `written` made a text of, `None` for any other text: then the source is read again."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None


def doubted(text: str) -> str:
    """Return a note as a text that still says how many chunks there are, and no more what they are of: it is read anew."""
    entry = Entry.read(text)
    return text if entry is None else replace(entry, version=None, content="").written()
