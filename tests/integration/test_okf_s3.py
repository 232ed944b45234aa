"""A bundle in a bucket of a real S3 server (A16, A17, X8): the same answers, few requests, outages, two writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import buckets
import pytest
from buckets import Bucket
from loopback import proxied
from okf_bundles import concept, ids

from agentkernel_kb import DocumentChangedError, KnowledgeBuilder, KnowledgeConnectionError, OKFManager, S3DocumentStore

pytestmark = pytest.mark.server("s3")

DOCUMENTS = {
    "index.md": b'---\nokf_version: "0.2"\n---\n# Shop\n',
    "log.md": b"# Log\n",
    **{f"area{n % 5}/c{n:03}.md": concept(f"Title {n}", f"body{n} shared").encode() for n in range(60)},
    "sp ace/caf\u00e9, 知識.md": concept("Odd", "peculiar").encode(),
}


class Requests:
    """What is sent to the server, by operation, counted by the SDK's own events."""

    def __init__(self, client: Any) -> None:
        self.sent: list[str] = []
        client.meta.events.register("before-call.s3", lambda model, **_: self.sent.append(model.name))

    def counted(self) -> dict[str, int]:
        counts = {name: self.sent.count(name) for name in sorted(set(self.sent))}
        self.sent.clear()
        return counts


@pytest.fixture
def client(bucket: Bucket) -> Iterator[Any]:
    made = buckets.client(bucket.url, retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=30)
    yield made
    made.close()


def test_x8_a_bundle_in_a_bucket_answers_as_one_in_a_folder(bucket: Bucket, tmp_path: Path):
    backend = OKFManager(bucket.store(DOCUMENTS), index=tmp_path)
    assert ids(backend.search("body42")) == ["area2/c042.md"]
    assert backend.browse()[0]["text"].encode() == DOCUMENTS["index.md"]
    (odd,) = backend.search("peculiar")
    assert backend.fetch([odd["metadata"]["id"]])[0]["metadata"]["source"] == "sp ace/caf\u00e9, 知識.md"
    assert backend.bundle.concept_count == 61
    backend.close()


def test_x8_an_unchanged_refresh_costs_the_listing_and_nothing_else(bucket: Bucket, client: Any, tmp_path: Path):
    store = bucket.store(DOCUMENTS, client=client)
    requests = Requests(client)
    backend = OKFManager(store, index=tmp_path, refresh_seconds=None)
    assert requests.counted()["GetObject"] in (len(DOCUMENTS), len(DOCUMENTS) + 1)
    backend.reload()
    assert set(requests.counted()) == {"ListObjectsV2"}
    bucket.put(f"{store.prefix}/area2/c042.md", concept("New", "changed").encode())
    backend.reload()
    assert requests.counted()["GetObject"] == 1
    assert ids(backend.search("changed")) == ["area2/c042.md"]
    backend.close()


def test_x8_a_start_with_a_kept_index_costs_the_listing_and_nothing_else(bucket: Bucket, client: Any, tmp_path: Path):
    store = bucket.store(DOCUMENTS, client=client)
    OKFManager(store, index=tmp_path).close()
    again = S3DocumentStore(store.bucket, store.prefix, client=client)
    requests = Requests(client)
    backend = OKFManager(again, index=tmp_path)
    assert set(requests.counted()) == {"ListObjectsV2"}
    assert len(backend.search("shared", limit=100)) == 60
    backend.close()


def test_x8_an_outage_leaves_the_old_state_serving_and_says_so(bucket: Bucket, tmp_path: Path):
    prefix = bucket.store(DOCUMENTS).prefix
    port = int(bucket.url.rpartition(":")[2])
    with proxied(port) as proxy:
        through = buckets.client(proxy.url, retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=30)
        backend = OKFManager(S3DocumentStore(bucket.name, prefix, client=through), index=tmp_path, refresh_seconds=None)
    with pytest.raises(KnowledgeConnectionError):
        backend.reload()
    assert len(backend.search("shared", limit=100)) == 60
    with pytest.raises(KnowledgeConnectionError):
        backend.fetch(["area2/c042.md"])
    backend.close()
    through.close()


def test_x8_an_outage_in_the_middle_of_a_background_refresh_is_in_the_description(bucket: Bucket, tmp_path: Path):
    prefix = bucket.store(DOCUMENTS).prefix
    port = int(bucket.url.rpartition(":")[2])
    told = threading.Event()
    with proxied(port) as proxy:
        through = buckets.client(proxy.url, retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=30)
        backend = OKFManager(S3DocumentStore(bucket.name, prefix, client=through), index=tmp_path, refresh_seconds=0.0)
    for _ in range(200):
        assert len(backend.search("shared", limit=100)) == 60
        if any("as of" in line for line in backend.get_diagnostics()):
            told.set()
            break
        told.wait(0.05)
    assert told.is_set()
    backend.close()
    through.close()


def test_x8_an_outage_after_some_reads_of_a_refresh_changes_nothing_and_is_in_the_descriptions(bucket: Bucket, tmp_path: Path):
    prefix = bucket.store(DOCUMENTS).prefix
    with proxied(int(bucket.url.rpartition(":")[2])) as proxy:
        through = buckets.client(proxy.url, retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=30)
        store = S3DocumentStore(bucket.name, prefix, client=through, parallelism=2)
        backend = OKFManager(store, index=tmp_path, refresh_seconds=None)
        for number in range(60):
            bucket.put(f"{prefix}/area{number % 5}/c{number:03}.md", concept("New", f"changed{number}").encode())
        reads = 0

        def end_after_some(model: Any, **_: Any) -> None:
            nonlocal reads
            reads += model.name == "GetObject"
            if reads == 20:
                proxy.close()

        through.meta.events.register("before-call.s3", end_after_some)
        with pytest.raises(KnowledgeConnectionError):
            backend.reload()
    assert reads >= 20
    assert len(backend.search("shared", limit=100)) == 60
    assert list(backend.search("changed0")) == []
    (described,) = [tool() for tool in KnowledgeBuilder([backend]).build() if tool.__name__ == "get_all_kb_descriptions"]
    assert "what is shown is as of" in described
    backend.close()
    through.close()


def test_x8_a_missing_bucket_fails_at_construction(bucket: Bucket):
    with pytest.raises(KnowledgeConnectionError) as caught:
        OKFManager(S3DocumentStore(f"{bucket.name}-not-there", client=bucket.client), index=None)
    assert caught.value.state == "missing"


def test_x8_two_writers_on_one_object_are_told_apart_by_the_server(bucket: Bucket, tmp_path: Path):
    store = bucket.store(DOCUMENTS)
    one = OKFManager(store, index=tmp_path / "one", refresh_seconds=None)
    two = OKFManager(
        S3DocumentStore(store.bucket, store.prefix, client=bucket.client), index=tmp_path / "two", refresh_seconds=None
    )
    (seen_by_one,), (seen_by_two,) = one.fetch(["area2/c042.md"]), two.fetch(["area2/c042.md"])
    one.write([{**seen_by_one, "text": "by one"}])
    with pytest.raises(DocumentChangedError):
        two.write([{**seen_by_two, "text": "by two"}])
    assert two.fetch(["area2/c042.md"])[0]["text"] == "by one"
    for backend in (one, two):
        backend.close()


def test_x8_what_is_written_is_seen_by_the_next_call_and_logged(bucket: Bucket, tmp_path: Path):
    backend = OKFManager(bucket.store(DOCUMENTS), index=tmp_path, refresh_seconds=None)
    (identity,) = backend.add([{"text": "Globex pays early.", "metadata": {"source": "call"}}])
    assert ids(backend.search("globex")) == ids(backend.fetch([identity])) == [identity]
    assert backend.store.read_bytes("log.md").count(b"**Creation**") == 1
    assert backend.add([{"text": "Globex pays early.", "metadata": {"source": "call"}}]) == [identity]
    backend.close()
