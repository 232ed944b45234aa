"""The Chroma backend: text found by meaning, in a folder, behind a server or through a client of the application."""

from agentkernel_kb.chroma.manager import ChromaManager

__all__ = ["ChromaManager"]
