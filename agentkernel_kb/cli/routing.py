"""Which knowledge base a question belongs to, by the words that they share."""

from __future__ import annotations

from collections.abc import Mapping

from agentkernel_kb.lexical import FUNCTION_WORDS, variants, words_of
from agentkernel_kb.lexical.bm25 import BM25Index
from agentkernel_kb.lexical.terms import split_names


def ranked(question: str, documents: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the documents that share words with the question, the best first, as BM25 ranks them.

    Args:
        question: In plain words; those of English that say little do not count.
        documents: Name to text; the words of the name count too.

    Returns:
        Name and score above zero; ties by name. Empty where no word is shared.
    """
    index = BM25Index()
    for name, text in documents.items():
        index.add(name, {"text": _terms(f"{name} {text}")})
    asked = {form for word in _terms(question) for form in variants(word)}
    return [(found.id, found.score) for found in index.rank(asked, len(documents))]


def _terms(text: str) -> list[str]:
    """Return the words of a text, those that an identifier is joined of as well."""
    return [word for word in words_of(split_names(text)) if word not in FUNCTION_WORDS]
