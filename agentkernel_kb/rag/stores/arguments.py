"""What a store is asked, checked before anything is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast, get_args

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag.chunk import VectorRecord
from agentkernel_kb.rag.protocols import SearchMode

MODES: tuple[SearchMode, ...] = get_args(SearchMode)
MOST_HITS = 10_000


def check_search(k: object, mode: object, score_threshold: object, fetch_k: object, mmr_lambda: object) -> None:
    """Check how a search is asked for.

    Raises:
        AKConfigError: A value is out of range, or `fetch_k` is given without `mmr_lambda`.
    """
    check_hits("k", k)
    if mode not in MODES:
        raise AKConfigError(f"mode must be one of {', '.join(MODES)}, not {mode!r}.")
    check_share("score_threshold", score_threshold)
    check_share("mmr_lambda", mmr_lambda)
    if fetch_k is not None:
        if mmr_lambda is None:
            raise AKConfigError("fetch_k says how many candidates mmr_lambda chooses from: give mmr_lambda too.")
        check_hits("fetch_k", fetch_k)
        if cast("int", fetch_k) < cast("int", k):
            raise AKConfigError(f"fetch_k must be at least k ({k}), not {fetch_k}.")


def check_hits(name: str, value: object) -> None:
    """Check a number of hits.

    Raises:
        AKConfigError: It is no whole number from 1 to 10,000.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_HITS:
        raise AKConfigError(f"{name} must be a whole number from 1 to {MOST_HITS:,}, not {value!r}.")


def check_share(name: str, value: object) -> None:
    """Check a number that may be missing.

    Raises:
        AKConfigError: It is not in [0, 1].
    """
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise AKConfigError(f"{name} must be a number from 0 to 1, not {value!r}.")


def names_of(name: str, values: Sequence[str] | None) -> frozenset[str] | None:
    """Return a selector's values; `None` where it is not given.

    Raises:
        AKConfigError: It is one text in place of a list, or holds something else than texts.
    """
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise AKConfigError(f"{name} must be a list of texts, not {type(values).__name__}.")
    found = frozenset[object](values)
    if not all(isinstance(value, str) for value in found):
        raise AKConfigError(f"{name} must hold texts only.")
    return cast("frozenset[str]", found)


def check_records(records: Sequence[VectorRecord]) -> None:
    """Check that records can be stored together.

    Raises:
        AKConfigError: One is no record, two have one id, or their vectors differ in length. The message names both lengths.
    """
    for record in cast("Sequence[object]", records):
        if not isinstance(record, VectorRecord):
            raise AKConfigError(f"A store takes VectorRecord objects, not {type(record).__name__}.")
    lengths = {len(record.embedding) for record in records if len(record.embedding)}
    if len(lengths) > 1:
        raise AKConfigError(f"The vectors of one store must all be of one length, not {sorted(lengths)}.")
