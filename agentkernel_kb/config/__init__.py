"""Configuration: from a file to backends, tools and instructions."""

from __future__ import annotations

from agentkernel_kb.config.okf import OKFConfiguration, load_okf

__all__ = ["OKFConfiguration", "load_okf"]
