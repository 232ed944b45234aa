"""Texts to vectors: what works without a model, a download or a dependency, and doors to what the application has."""

from agentkernel_kb.embed.callable import CallableEmbedder
from agentkernel_kb.embed.hashed import HashEmbedder
from agentkernel_kb.embed.openai import OpenAIEmbedder

__all__ = ["CallableEmbedder", "HashEmbedder", "OpenAIEmbedder"]
