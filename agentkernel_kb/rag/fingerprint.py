"""The fingerprint of a corpus: the model, the length of its vectors and the chunking that it was made with (X19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.embedding import Embedding

CHUNKING = "chunking"


async def check_model(store: object, embedding: Embedding) -> None:
    """Check that a corpus is searched with the model that it was made with.

    Raises:
        AKConfigError: It was made with another. The message names both.
    """
    if (noted := await _noted(store)) is None or not noted:
        return
    mine = await embedding.fingerprint()
    if {key: value for key, value in noted.items() if key != CHUNKING} != mine:
        raise AKConfigError(_different(noted, mine, "search with that model, or index anew in another namespace"))


async def check_indexing(store: object, embedding: Embedding, chunking: str) -> None:
    """Check that a corpus is added to with the model and the chunking that it was made with; an empty one notes them.

    Raises:
        AKConfigError: It was made with others. The message names both.
    """
    noted = await _noted(store)
    if noted is None:
        return
    mine = {**await embedding.fingerprint(), CHUNKING: chunking}
    if not noted:
        await cast("Any", store).note_fingerprint(mine)
    elif noted != mine:
        raise AKConfigError(_different(noted, mine, "use those, or index anew in another namespace"))


async def _noted(store: object) -> dict[str, Any] | None:
    """Return what a store noted, `None` where it notes nothing."""
    keeper: Any = store
    return await keeper.fingerprint() if hasattr(store, "fingerprint") and hasattr(store, "note_fingerprint") else None


def _different(noted: Mapping[str, Any], mine: Mapping[str, Any], mended: str) -> str:
    return f"The corpus was made with {_shown(noted)}, and this is {_shown(mine)}: {mended}."


def _shown(fingerprint: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in fingerprint.items())
