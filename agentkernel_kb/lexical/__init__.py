"""Text to index terms, and back to the place that shows why it was found. Standard library only; no index of its own."""

from agentkernel_kb.lexical.text import fold, index_text, words_of
from agentkernel_kb.lexical.words import FUNCTION_WORDS, variants

__all__ = ["FUNCTION_WORDS", "fold", "index_text", "variants", "words_of"]
