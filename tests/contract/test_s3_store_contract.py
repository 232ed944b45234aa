"""The shipped suite of stores run on a real object store (A14, A21, X8)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from buckets import Bucket

from agentkernel_kb import DocumentStore
from agentkernel_kb.testing import DocumentStoreContract
from agentkernel_kb.testing.stores.samples import DOCUMENTS


@pytest.mark.server("s3")
class TestS3DocumentStore(DocumentStoreContract):
    declares = frozenset({"write", "delete"})

    @pytest.fixture(autouse=True)
    def _in(self, bucket: Bucket) -> None:
        self.bucket = bucket

    def make_store(self, tmp_path: Path, documents: Mapping[str, bytes]) -> DocumentStore:
        return self.bucket.store(documents)


@pytest.mark.server("s3")
class TestS3DocumentStoreThatIsReadOnly(DocumentStoreContract):
    @pytest.fixture(scope="class")
    def filled(self, bucket: Bucket) -> str:
        """The prefix that all tests read from, as none of them writes."""
        return bucket.store(DOCUMENTS).prefix

    @pytest.fixture(autouse=True)
    def _in(self, bucket: Bucket, filled: str) -> None:
        self.bucket, self.filled_prefix = bucket, filled

    def make_store(self, tmp_path: Path, documents: Mapping[str, bytes]) -> DocumentStore:
        return self.bucket.store(prefix=self.filled_prefix, writable=False)
