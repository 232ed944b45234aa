"""The moment by which a call has to be over; it stands at `agentkernel_kb.deadline`."""

from agentkernel_kb.deadline import Deadline

__all__ = ["Deadline"]
