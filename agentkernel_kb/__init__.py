"""One small, honest tool set for agents over many knowledge stores.

Names resolve lazily: importing the package loads no optional SDK. Backends with an SDK are imported from their own modules,
such as `agentkernel_kb.chroma`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentkernel_kb.base import KnowledgeBase
    from agentkernel_kb.document import DocumentKnowledgeBase
    from agentkernel_kb.errors import (
        AKConfigError,
        DocumentChangedError,
        KnowledgeBackendError,
        KnowledgeCapabilityError,
        KnowledgeConnectionError,
        KnowledgeDependencyError,
        KnowledgeError,
        KnowledgeGuardError,
        KnowledgeIdentityError,
        KnowledgeNotFoundError,
        KnowledgePathError,
        KnowledgeQueryError,
        KnowledgeStateError,
        KnowledgeTimeoutError,
        UnsupportedKnowledgeOperationError,
    )
    from agentkernel_kb.identity import Identity, acting_as, current_identity
    from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
    from agentkernel_kb.model import (
        KnowledgeCapabilities,
        KnowledgeMetadata,
        KnowledgeRecord,
        Record,
        RecordPage,
        ToolDescription,
        describe,
    )
    from agentkernel_kb.okf.manager import OKFManager
    from agentkernel_kb.okf.model import OKFBundle, OKFConcept, OKFDiagnostic, TrustTier
    from agentkernel_kb.rag.create import create_knowledge
    from agentkernel_kb.rag.knowledge import Knowledge
    from agentkernel_kb.rag.values import Citation, Document, RAGAnswer, SearchHit
    from agentkernel_kb.router.access import Access
    from agentkernel_kb.router.events import ToolEvent
    from agentkernel_kb.router.health import BackendHealth
    from agentkernel_kb.router.limits import Limits
    from agentkernel_kb.router.resilience import Resilience
    from agentkernel_kb.router.semantic_map import SemanticMap
    from agentkernel_kb.store.base import DocumentStat, DocumentStore
    from agentkernel_kb.store.local import LocalDocumentStore
    from agentkernel_kb.store.s3 import S3DocumentStore

_HOMES = {
    "base": ("KnowledgeBase",),
    "document": ("DocumentKnowledgeBase",),
    "errors": (
        "AKConfigError",
        "DocumentChangedError",
        "KnowledgeBackendError",
        "KnowledgeCapabilityError",
        "KnowledgeConnectionError",
        "KnowledgeDependencyError",
        "KnowledgeError",
        "KnowledgeGuardError",
        "KnowledgeIdentityError",
        "KnowledgeNotFoundError",
        "KnowledgePathError",
        "KnowledgeQueryError",
        "KnowledgeStateError",
        "KnowledgeTimeoutError",
        "UnsupportedKnowledgeOperationError",
    ),
    "identity": ("Identity", "acting_as", "current_identity"),
    "knowledgebuilder": ("KnowledgeBuilder",),
    "model": (
        "KnowledgeCapabilities",
        "KnowledgeMetadata",
        "KnowledgeRecord",
        "Record",
        "RecordPage",
        "ToolDescription",
        "describe",
    ),
    "okf.manager": ("OKFManager",),
    "okf.model": ("OKFBundle", "OKFConcept", "OKFDiagnostic", "TrustTier"),
    "rag.create": ("create_knowledge",),
    "rag.knowledge": ("Knowledge",),
    "rag.values": ("Citation", "Document", "RAGAnswer", "SearchHit"),
    "router.access": ("Access",),
    "router.events": ("ToolEvent",),
    "router.health": ("BackendHealth",),
    "router.limits": ("Limits",),
    "router.resilience": ("Resilience",),
    "router.semantic_map": ("SemanticMap",),
    "store.base": ("DocumentStat", "DocumentStore"),
    "store.local": ("LocalDocumentStore",),
    "store.s3": ("S3DocumentStore",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AKConfigError",
    "Access",
    "BackendHealth",
    "Citation",
    "Document",
    "DocumentChangedError",
    "DocumentKnowledgeBase",
    "DocumentStat",
    "DocumentStore",
    "Identity",
    "Knowledge",
    "KnowledgeBackendError",
    "KnowledgeBase",
    "KnowledgeBuilder",
    "KnowledgeCapabilities",
    "KnowledgeCapabilityError",
    "KnowledgeConnectionError",
    "KnowledgeDependencyError",
    "KnowledgeError",
    "KnowledgeGuardError",
    "KnowledgeIdentityError",
    "KnowledgeMetadata",
    "KnowledgeNotFoundError",
    "KnowledgePathError",
    "KnowledgeQueryError",
    "KnowledgeRecord",
    "KnowledgeStateError",
    "KnowledgeTimeoutError",
    "Limits",
    "LocalDocumentStore",
    "OKFBundle",
    "OKFConcept",
    "OKFDiagnostic",
    "OKFManager",
    "RAGAnswer",
    "Record",
    "RecordPage",
    "Resilience",
    "S3DocumentStore",
    "SearchHit",
    "SemanticMap",
    "ToolDescription",
    "ToolEvent",
    "TrustTier",
    "UnsupportedKnowledgeOperationError",
    "acting_as",
    "create_knowledge",
    "current_identity",
    "describe",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
