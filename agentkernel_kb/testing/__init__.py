"""Contract suites that any backend or adapter can run, and a fake backend for tests of what stands above backends.

The suites need pytest: `pip install 'agentkernel-kb[testing]'`. Names resolve lazily.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from agentkernel_kb.errors import KnowledgeDependencyError

if TYPE_CHECKING:
    from agentkernel_kb.testing.adapters import AdapterContract
    from agentkernel_kb.testing.contract import KnowledgeBaseContract
    from agentkernel_kb.testing.contract.samples import Samples
    from agentkernel_kb.testing.declaration import declaration_faults
    from agentkernel_kb.testing.fake import FakeKnowledgeBase
    from agentkernel_kb.testing.stores import DocumentStoreContract
    from agentkernel_kb.testing.vectors import VectorStoreContract

_HOME_OF = {
    "AdapterContract": "adapters",
    "DocumentStoreContract": "stores",
    "FakeKnowledgeBase": "fake",
    "KnowledgeBaseContract": "contract",
    "Samples": "contract.samples",
    "VectorStoreContract": "vectors",
    "declaration_faults": "declaration",
}

__all__ = [
    "AdapterContract",
    "DocumentStoreContract",
    "FakeKnowledgeBase",
    "KnowledgeBaseContract",
    "Samples",
    "VectorStoreContract",
    "declaration_faults",
]

# Pytest explains the asserts of a module other than a test's own only where it is told before that module is imported.
if _pytest := sys.modules.get("pytest"):
    _pytest.register_assert_rewrite(f"{__name__}.contract", f"{__name__}.adapters", f"{__name__}.stores", f"{__name__}.vectors")


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as missing:
        if missing.name != "pytest":
            raise
        raise KnowledgeDependencyError("testing", name) from missing
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
