"""Runs what may end or stall a process in processes of our own, which can be ended: `ChildPool` and what it starts."""

from agentkernel_kb.isolation.failures import ChildEndedError
from agentkernel_kb.isolation.launch import Launch
from agentkernel_kb.isolation.pool import ChildPool

__all__ = ["ChildEndedError", "ChildPool", "Launch"]
