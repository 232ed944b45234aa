"""Proof that a statement only reads, before any store sees it. The SQL half needs the extra `sql`, the Cypher half nothing."""

from agentkernel_kb.guard.cypher import check_read_only_cypher
from agentkernel_kb.guard.limit import fallback_limit, with_limit
from agentkernel_kb.guard.sql import ReadStatement, analyse_read, check_read_only, supported_dialects

__all__ = [
    "ReadStatement",
    "analyse_read",
    "check_read_only",
    "check_read_only_cypher",
    "fallback_limit",
    "supported_dialects",
    "with_limit",
]
