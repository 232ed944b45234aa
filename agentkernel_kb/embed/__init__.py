"""Texts to vectors: what works without a model, a download or a dependency, and doors to what the application has."""

from agentkernel_kb.embed.callable import CallableEmbedder
from agentkernel_kb.embed.hashed import HashEmbedder
from agentkernel_kb.embed.model2vec import Model2VecEmbedder
from agentkernel_kb.embed.named import named_embedder
from agentkernel_kb.embed.onnx import OnnxEmbedder
from agentkernel_kb.embed.openai import OpenAIEmbedder
from agentkernel_kb.embed.sentence import SentenceTransformerEmbedder

__all__ = [
    "CallableEmbedder",
    "HashEmbedder",
    "Model2VecEmbedder",
    "OnnxEmbedder",
    "OpenAIEmbedder",
    "SentenceTransformerEmbedder",
    "named_embedder",
]
