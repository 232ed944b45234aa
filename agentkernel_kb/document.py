"""DocumentKnowledgeBase: base of the backends that read a format out of a store."""

from __future__ import annotations

import dataclasses

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.model import KnowledgeCapabilities
from agentkernel_kb.store.base import DocumentStore


class DocumentKnowledgeBase(KnowledgeBase):
    """A backend over a store of documents. The store supplies bytes at paths; a subclass decides what they mean.

    The backend is writable where both it and its store are: the more restrictive side wins.

    Args:
        store: Where the documents are; `close()` closes it.
        capabilities: What the format can do.
        name: Name of the backend, for messages until `backend_name` can be read.

    Attributes:
        store: Where the documents are.

    Raises:
        ValueError: `store` is no store, or the declaration contradicts itself once the store's writability is folded in.
    """

    def __init__(self, store: DocumentStore, capabilities: KnowledgeCapabilities, name: str | None = None) -> None:
        if not isinstance(store, DocumentStore):
            raise AKConfigError(
                f"{type(self).__name__} takes a DocumentStore, not {type(store).__name__}; "
                "DocumentStore.from_uri(…) makes one of a path or a URI."
            )
        self.store = store
        if isinstance(capabilities, KnowledgeCapabilities):  # The base complains of anything else.
            capabilities = dataclasses.replace(capabilities, writable=capabilities.writable and store.writable)
        super().__init__(capabilities, name)

    def close(self) -> None:
        """Close the store. May be called twice."""
        self.store.close()
