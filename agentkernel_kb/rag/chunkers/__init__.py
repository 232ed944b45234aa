"""Chunkers: sections and documents to the passages that are indexed."""

from agentkernel_kb.rag.chunkers.base import ChunkerBase, SectionSplitter, TextChunker
from agentkernel_kb.rag.chunkers.headings import HeadingChunker
from agentkernel_kb.rag.chunkers.recursive import RecursiveCharacterSplitter
from agentkernel_kb.rag.chunkers.tokens import ApproxTokenChunker

__all__ = [
    "ApproxTokenChunker",
    "ChunkerBase",
    "HeadingChunker",
    "RecursiveCharacterSplitter",
    "SectionSplitter",
    "TextChunker",
]
