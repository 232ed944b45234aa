"""What forms of a word have in common: the Snowball stemmers, by language and script."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError
from agentkernel_kb.lexical.memo import Memo
from agentkernel_kb.lexical.text import PLAIN
from agentkernel_kb.near import nearest

Stem = Callable[[str], str]

_MOST_CACHED = 100_000
_LONGEST_STEMMED = 64
# Scripts that one language's stemmer is meant for; all other letters go to the stemmer that was asked for.
_SCRIPTS = {
    "russian": re.compile(r"[\u0400-\u04ff]"),
    "greek": re.compile(r"[\u0370-\u03ff]"),
    "arabic": re.compile(r"[\u0600-\u06ff]"),
    "armenian": re.compile(r"[\u0530-\u058f]"),
    "hindi": re.compile(r"[\u0900-\u097f]"),
    "tamil": re.compile(r"[\u0b80-\u0bff]"),
}
_SAME_SCRIPT = {"serbian": "russian", "nepali": "hindi"}


def stems_of(language: str | None, extra: str) -> Memo[str]:
    """Return the stems of words without accents as a mapping, all of it folded; words as they stand where no language is named.

    Args:
        language: As Snowball calls it.
        extra: The extra that is said to be missing where the library is.

    Raises:
        AKConfigError: There is no such algorithm.
        KnowledgeDependencyError: The library is not installed.
    """
    if language is None:
        return Memo(str, 1)
    try:
        return _stems(language)
    except ImportError as error:
        raise KnowledgeDependencyError(extra, "Stemming") from error


@lru_cache(maxsize=8)
def _stems(language: str) -> Memo[str]:
    import snowballstemmer

    known, made = sorted(snowballstemmer.algorithms()), cast("Callable[[str], Any]", snowballstemmer.stemmer)
    if language not in known:
        near = nearest(language, known)
        raise AKConfigError(
            f"Nothing stems '{language}'.{f' Did you mean {near!r}?' if near else ''} Known: {', '.join(known)}."
        )
    scripts = {name: script for name, script in _SCRIPTS.items() if name in known}
    stemmers: dict[str, Any] = {}
    one_at_a_time = threading.Lock()  # A stemmer keeps its word in itself while it works.

    def stem(word: str) -> str:
        if len(word) > _LONGEST_STEMMED:
            return word.translate(PLAIN)
        name = language if word.isascii() else _language(word, scripts, language)
        with one_at_a_time:
            if name not in stemmers:
                stemmers[name] = made(name)
            return str(stemmers[name].stemWord(word)).translate(PLAIN)

    return Memo(stem, _MOST_CACHED)


def _language(word: str, scripts: dict[str, re.Pattern[str]], usual: str) -> str:
    """Return whose stemmer a word goes to: a language with the same script goes before the one that its script stands for."""
    name = next((name for name, script in scripts.items() if script.search(word)), usual)
    return usual if _SAME_SCRIPT.get(usual) == name else name
