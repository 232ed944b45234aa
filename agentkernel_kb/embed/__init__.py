"""Texts to vectors: what works without a model, a download or a dependency."""

from agentkernel_kb.embed.hashed import HashEmbedder

__all__ = ["HashEmbedder"]
