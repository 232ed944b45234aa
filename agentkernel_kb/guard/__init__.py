"""Proof that a statement only reads, before any store sees it. It needs the extra `sql`."""

from agentkernel_kb.guard.limit import fallback_limit
from agentkernel_kb.guard.sql import ReadStatement, analyse_read, check_read_only, supported_dialects

__all__ = ["ReadStatement", "analyse_read", "check_read_only", "fallback_limit", "supported_dialects"]
