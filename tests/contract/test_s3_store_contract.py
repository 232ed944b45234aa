"""The shipped suite of stores run on a real object store (A14, A21, X8)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from buckets import Bucket

from agentkernel_kb import DocumentStore
from agentkernel_kb.testing import DocumentStoreContract


@pytest.mark.server("s3")
class TestS3DocumentStore(DocumentStoreContract):
    declares = frozenset({"write", "delete"})

    @pytest.fixture(autouse=True)
    def _in(self, bucket: Bucket) -> None:
        self.bucket = bucket

    def make_store(self, tmp_path: Path, documents: Mapping[str, bytes]) -> DocumentStore:
        return self.bucket.store(documents)
