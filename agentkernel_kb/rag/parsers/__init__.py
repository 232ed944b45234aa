"""Parsers: files to sections."""

from agentkernel_kb.rag.parsers.base import Cut, ParserBase, Reading, TextFormatParser
from agentkernel_kb.rag.parsers.code import CodeParser, PythonParser
from agentkernel_kb.rag.parsers.html_page import HTMLParser
from agentkernel_kb.rag.parsers.jsons import JSONLinesParser, JSONParser, NotebookParser
from agentkernel_kb.rag.parsers.markdown import MarkdownParser, RSTParser
from agentkernel_kb.rag.parsers.registry import ParserRegistry, parser_for, register
from agentkernel_kb.rag.parsers.tables import CSVParser
from agentkernel_kb.rag.parsers.text import PlainParser, TextParser
from agentkernel_kb.rag.parsers.xmls import XMLParser

__all__ = [
    "CSVParser",
    "CodeParser",
    "Cut",
    "HTMLParser",
    "JSONLinesParser",
    "JSONParser",
    "MarkdownParser",
    "NotebookParser",
    "ParserBase",
    "ParserRegistry",
    "PlainParser",
    "PythonParser",
    "RSTParser",
    "Reading",
    "TextFormatParser",
    "TextParser",
    "XMLParser",
    "parser_for",
    "register",
]
