"""The fingerprint of a corpus: the model, the length of its vectors and the chunking that it was made with (X19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.embedding import Embedding

CHUNKING = "chunking"
_MENDED = "search and index with those, or make the corpus anew with knowledge.reindex(sources)"


class ModelCheck:
    """Checks that a corpus is searched with the model that it was made with: once, and again when it was made anew."""

    def __init__(self) -> None:
        self._checked: object = None

    async def check(self, store: object, embedding: Embedding) -> None:
        """Check it.

        Raises:
            AKConfigError: It was made with another. The message names both, and what mends it.
        """
        while (generation := getattr(store, "generation", 1)) != self._checked:
            noted, mine = await noted_of(store), await embedding.fingerprint()
            if noted and model_of(noted) != mine:
                raise AKConfigError(different(noted, mine))
            if generation == getattr(store, "generation", 1):
                self._checked = generation


async def check_indexing(store: object, embedding: Embedding, chunking: str) -> None:
    """Check that a corpus is added to with the model and the chunking that it was made with; an empty one notes them.

    Raises:
        AKConfigError: It was made with others. The message names both, and what mends it.
    """
    noted = await noted_of(store)
    if noted is None:
        return
    mine = await fingerprint_of(embedding, chunking)
    if not noted:
        await cast("Any", store).note_fingerprint(mine)
        noted = await noted_of(store) or mine  # Another process may have been faster.
    if noted != mine:
        raise AKConfigError(different(noted, mine))


async def fingerprint_of(embedding: Embedding, chunking: str) -> dict[str, Any]:
    """Return what a corpus is known by that is made with a model and a chunker."""
    return {**await embedding.fingerprint(), CHUNKING: chunking}


async def noted_of(store: object) -> dict[str, Any] | None:
    """Return what a store noted, `None` where it notes nothing."""
    keeper: Any = store
    return await keeper.fingerprint() if hasattr(store, "fingerprint") and hasattr(store, "note_fingerprint") else None


def model_of(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a fingerprint is the model's."""
    return {key: value for key, value in fingerprint.items() if key != CHUNKING}


def different(noted: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    """Return how two fingerprints differ, and what mends it."""
    return f"The corpus was made with {_shown(noted)}, and this is {_shown(mine)}: {_MENDED}."


def _shown(fingerprint: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in fingerprint.items())
