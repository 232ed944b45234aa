"""Local stores: memory, and one SQLite file for several corpora."""

from agentkernel_kb.rag.stores.memory import InMemoryVectorStore
from agentkernel_kb.rag.stores.rows import LEXICAL_SHARE, SEMANTIC_SHARE
from agentkernel_kb.rag.stores.sqlite import SQLiteVectorStore

__all__ = ["LEXICAL_SHARE", "SEMANTIC_SHARE", "InMemoryVectorStore", "SQLiteVectorStore"]
