"""Parsers: files to sections."""

from agentkernel_kb.rag.parsers.base import ParserBase
from agentkernel_kb.rag.parsers.text import TextParser

__all__ = ["ParserBase", "TextParser"]
