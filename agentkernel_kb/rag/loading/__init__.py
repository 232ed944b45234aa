"""Loading: sources to documents."""

from agentkernel_kb.rag.loading.addresses import Resolver
from agentkernel_kb.rag.loading.fetch import Fetched, Fetcher

__all__ = ["Fetched", "Fetcher", "Resolver"]
