"""What a bucket does to a store: rights, outages, listings in pages, and what a request costs (A14, A15, X8)."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from buckets import READING_KEY, SECRET, Bucket, client
from loopback import proxied

from agentkernel_kb import (
    AKConfigError,
    DocumentChangedError,
    KnowledgeCapabilityError,
    KnowledgeConnectionError,
    KnowledgePathError,
    KnowledgeStateError,
    KnowledgeTimeoutError,
    LocalDocumentStore,
    S3DocumentStore,
)
from servers import Server, free_port

pytestmark = pytest.mark.server("s3")


class Requests:
    """What a client sends: how many of each kind, with which range, how many at a time."""

    def __init__(self, watched: Any) -> None:
        self.kinds: Counter[str] = Counter()
        self.ranges: list[str | None] = []
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()
        watched.meta.events.register("before-call.s3", self._begin)
        watched.meta.events.register("after-call.s3", self._end)

    def _begin(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        with self._lock:
            self.kinds[model.name] += 1
            self.ranges.append(params["headers"].get("Range"))
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)

    def _end(self, **_: Any) -> None:
        with self._lock:
            self._now -= 1


@pytest.fixture
def own_client(s3_server: Server) -> Iterator[Any]:
    """A client of one test's own, to be watched."""
    own = client(s3_server.url)
    yield own
    own.close()


MANY = sorted(f"{'abc'[number % 3]}{'-/.'[number % 3]}{number:04}.md" for number in range(1_050))


@pytest.fixture(scope="module")
def many(bucket: Bucket) -> str:
    """A prefix with more documents than one page of a listing has, which no test changes."""
    return bucket.store(dict.fromkeys(MANY, b"x")).prefix


# What it costs.


def test_x8_a_listing_of_many_pages_is_complete_and_in_order(bucket: Bucket, many: str, own_client: Any) -> None:
    requests = Requests(own_client)
    assert S3DocumentStore(bucket.name, many, client=own_client).list() == MANY
    assert requests.kinds == {"ListObjectsV2": 2}


def test_x8_a_scan_costs_the_listing_and_nothing_else(bucket: Bucket, own_client: Any) -> None:
    filled = bucket.store({"a.md": b"1", "b/c.md": b"22"})
    requests = Requests(own_client)
    found = list(S3DocumentStore(bucket.name, filled.prefix, client=own_client).scan())
    assert [(document.path, document.size) for document in found] == [("a.md", 1), ("b/c.md", 2)]
    assert requests.kinds == {"ListObjectsV2": 1}


def test_x8_many_are_read_in_parallel_and_no_more_than_allowed(bucket: Bucket, own_client: Any) -> None:
    documents = {f"{number:03}.md": b"%d" % number for number in range(60)}
    filled = bucket.store(documents)
    requests = Requests(own_client)
    store = S3DocumentStore(bucket.name, filled.prefix, client=own_client, parallelism=4)
    assert dict(store.read_many(documents)) == documents
    assert 1 < requests.most_at_once <= 4
    assert requests.kinds == {"GetObject": 60}


def test_x8_few_are_read_ahead_of_who_takes_them(bucket: Bucket, own_client: Any) -> None:
    store = S3DocumentStore(bucket.name, bucket.store({"x.md": b"x"}).prefix, client=own_client, parallelism=4)
    taken: list[int] = []

    def paths() -> Iterator[str]:
        for number in range(1_000):
            taken.append(number)
            yield "x.md"

    reading = store.read_many(paths())
    assert [next(reading) for _ in range(3)] == [("x.md", b"x")] * 3
    assert len(taken) <= 3 + 2 * 4


def test_the_beginning_of_a_document_is_all_that_is_asked_for(bucket: Bucket, own_client: Any) -> None:
    filled = bucket.store({"long.md": b"0123456789" * 1_000, "empty.md": b""})
    requests = Requests(own_client)
    store = S3DocumentStore(bucket.name, filled.prefix, client=own_client)
    assert [store.read_prefix_bytes("long.md", most) for most in (0, -5, 4)] == [b"", b"", b"0123"]
    assert [store.read_prefix_bytes("empty.md", most) for most in (0, 4)] == [b"", b""]
    assert requests.ranges == ["bytes=0-3", "bytes=0-3"]


def test_making_a_store_and_refusing_a_path_send_nothing(bucket: Bucket, own_client: Any) -> None:
    requests = Requests(own_client)
    store = S3DocumentStore(bucket.name, "x", client=own_client)
    for path in ("../x", "/x", "x" * 1_100):
        with pytest.raises(KnowledgePathError):
            store.read_bytes(path)
        with pytest.raises(KnowledgePathError):
            store.write_bytes(path, b"")
    assert not requests.kinds


# What it holds.


def test_a15_a_prefix_is_a_place_and_not_the_beginning_of_a_text(bucket: Bucket) -> None:
    bucket.put("roots/kb/in.md", b"in")
    bucket.put("roots/kb2/out.md", b"out")
    bucket.put("roots/kb.md", b"out")
    for prefix in ("roots/kb", "/roots/kb/", "roots/kb//"):
        store = S3DocumentStore(bucket.name, prefix, client=bucket.client)
        assert store.list() == ["in.md"]
        with pytest.raises(KnowledgePathError):
            store.read_bytes("../kb2/out.md")


def test_keys_that_are_no_paths_are_passed_over(bucket: Bucket) -> None:
    store = bucket.store({"good.md": b"good"})
    for key in ("folder/", "new\nline.md", ".hidden.md", ".git/config", "C:drive.md"):
        bucket.put(f"{store.prefix}/{key}", b"odd" if not key.endswith("/") else b"")
    found: dict[str, str] = {}
    assert [document.path for document in store.scan(on_skip=found.__setitem__)] == ["good.md"]
    assert sorted(found) == ["C:drive.md", "new\nline.md"]
    for path in ("folder/", "folder"):
        with pytest.raises(FileNotFoundError):
            store.read_bytes(path)


def test_a_whole_bucket_can_be_a_store(bucket: Bucket) -> None:
    bucket.put("top.md", b"top")
    store = S3DocumentStore(bucket.name, client=bucket.client)
    assert (store.read_bytes("top.md"), "top.md" in store.list(), store.list("top.md")) == (b"top", True, ["top.md"])


def test_moving_a_bundle_from_a_folder_to_a_bucket_changes_no_path(bucket: Bucket, tmp_path: Any) -> None:
    local, remote = LocalDocumentStore(tmp_path), bucket.store()
    for path in ("a-b/x.md", "a/x.md", "a.md", "\u6771/\U0001f389.md", "a0.md"):
        local.write_bytes(path, path.encode())
    for path, data in local.read_many(local.list()):
        assert isinstance(data, bytes)
        remote.write_bytes(path, data)
    assert remote.list() == local.list()
    assert list(remote.read_many(remote.list())) == list(local.read_many(local.list()))


# Rights and outages.


def test_a_store_that_is_declared_read_only_sends_no_write(bucket: Bucket, own_client: Any) -> None:
    requests = Requests(own_client)
    store = S3DocumentStore(bucket.name, "x", client=own_client, writable=False)
    with pytest.raises(KnowledgeCapabilityError):
        store.write_bytes("a.md", b"x")
    with pytest.raises(KnowledgeCapabilityError):
        store.delete("a.md")
    assert (store.writable, requests.kinds) == (False, {})


def test_a_missing_bucket_is_named_by_every_operation_and_is_no_absence(bucket: Bucket) -> None:
    store = S3DocumentStore("kb-no-such-bucket", client=bucket.client)
    for operation in (store.list, lambda: store.list("a"), lambda: store.read_bytes("a"), lambda: store.exists("a")):
        with pytest.raises(KnowledgeConnectionError, match="There is no bucket 'kb-no-such-bucket'") as caught:
            operation()
        assert caught.value.state == "missing"


@pytest.mark.parametrize(("key", "secret"), [("no-such-key", SECRET), (READING_KEY, "wrong-secret-4711")])
def test_a_wrong_login_is_told_without_its_secret(bucket: Bucket, key: str, secret: str) -> None:
    wrong = client(bucket.url, key, secret)
    store = S3DocumentStore(bucket.name, client=wrong)
    for operation in (store.list, lambda: store.read_bytes("a"), lambda: store.exists("a")):
        with pytest.raises(KnowledgeConnectionError) as caught:
            operation()
        assert caught.value.state == "unauthorized"
        assert not any(word in str(caught.value) + repr(store) for word in (key, secret))
    wrong.close()


def test_a_login_that_may_only_read_is_denied_a_write_by_name(bucket: Bucket) -> None:
    reading = client(bucket.url, READING_KEY)
    store = S3DocumentStore(bucket.name, bucket.store({"a.md": b"old"}).prefix, client=reading)
    with pytest.raises(KnowledgeConnectionError, match=r"denies this application the document 'b\.md'") as caught:
        store.write_bytes("b.md", b"new")
    assert (caught.value.state, store.list(), store.read_bytes("a.md")) == ("unauthorized", ["a.md"], b"old")
    reading.close()


def test_a_server_that_is_not_there_is_unreachable() -> None:
    store = unshared(endpoint_url=f"http://127.0.0.1:{free_port()}", max_attempts=1)
    for operation in (
        store.list,
        lambda: store.read_bytes("a"),
        lambda: store.exists("a"),
        lambda: store.write_bytes("a", b""),
    ):
        with pytest.raises(KnowledgeConnectionError, match=r"127\.0\.0\.1") as caught:
            operation()
        assert caught.value.state == "unreachable"
    ((_, error),) = store.read_many(["a"])
    assert isinstance(error, KnowledgeConnectionError)
    store.close()


def test_a_server_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = unshared(endpoint_url=f"http://127.0.0.1:{silent.getsockname()[1]}", max_attempts=1, read_timeout_s=0.3)
        with pytest.raises(KnowledgeTimeoutError):
            store.read_bytes("a")
        store.close()


def test_an_outage_in_the_middle_of_a_listing_is_a_failure_and_not_its_end(
    bucket: Bucket, many: str, s3_server: Server
) -> None:
    with proxied(s3_server.port) as proxy:
        own = client(proxy.url, retries={"total_max_attempts": 1})
        own.meta.events.register("after-call.s3.ListObjectsV2", lambda **_: proxy.close())
        with pytest.raises(KnowledgeConnectionError):
            S3DocumentStore(bucket.name, many, client=own).list()
        own.close()


def test_a_conditional_write_whose_answer_was_lost_is_not_a_conflict_with_itself(bucket: Bucket, s3_server: Server) -> None:
    """The first attempt stored the document; the SDK's second one met it."""
    with proxied(s3_server.port) as proxy:
        own = client(proxy.url, retries={"mode": "standard", "total_max_attempts": 3})
        store = S3DocumentStore(bucket.name, bucket.store().prefix, client=own)
        proxy.answers_to_lose = 1
        made = store.write_bytes("x.md", b"mine", if_missing=True)
        assert (proxy.answers_to_lose, store.read_bytes("x.md"), store.stat("x.md").version) == (0, b"mine", made.version)
        proxy.answers_to_lose = 1
        store.write_bytes("x.md", b"mine too", if_version=made.version)
        with pytest.raises(DocumentChangedError):
            store.write_bytes("x.md", b"not any more", if_version=made.version)
        own.close()


# How it is made.


def unshared(**options: Any) -> S3DocumentStore:
    """Return a store with a client of its own and a login from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "kb-test-key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        return S3DocumentStore("kb-bucket", **options)


def test_login_endpoint_and_region_come_from_the_usual_environment(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = bucket.store({"a.md": b"found"}).prefix
    for name, value in {
        "AWS_ACCESS_KEY_ID": "kb-test-key", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": bucket.url,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with S3DocumentStore.from_uri(f"s3://{bucket.name}/{prefix}") as store:
        assert (store.list(), store.read_bytes("a.md")) == (["a.md"], b"found")
        assert repr(store) == f"S3DocumentStore({bucket.name!r}, {prefix!r}, writable=True)"


def test_no_login_at_all_is_told(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with S3DocumentStore(bucket.name, endpoint_url=bucket.url) as store:
        with pytest.raises(KnowledgeConnectionError, match="No usable credentials") as caught:
            store.list()
        assert caught.value.state == "unauthorized"


def test_a_closed_store_says_so_and_a_given_client_stays_open(bucket: Bucket) -> None:
    filled = bucket.store({"a.md": b"x"})
    filled.close()
    for operation in (filled.list, lambda: filled.read_bytes("a.md"), lambda: filled.exists("a.md")):
        with pytest.raises(KnowledgeStateError, match="closed"):
            operation()
    assert S3DocumentStore(bucket.name, filled.prefix, client=bucket.client).read_bytes("a.md") == b"x"


@pytest.mark.parametrize(
    "options",
    [
        {"bucket": ""}, {"bucket": " "}, {"bucket": "b", "prefix": "a/../b"}, {"bucket": "b", "prefix": ".."},
        {"bucket": "b", "endpoint_url": "no endpoint"}, {"bucket": "b", "parallelism": 0}, {"bucket": "b", "max_attempts": 0},
    ],
    ids=str,
)  # fmt: skip
def test_a_store_that_cannot_be_made_is_a_mistake_in_the_configuration(options: dict[str, Any]) -> None:
    with pytest.raises(AKConfigError):
        S3DocumentStore(**options)


def test_a_missing_sdk_names_its_extra() -> None:
    program = (
        "import sys\n"
        "sys.modules['boto3'] = None\n"
        "from agentkernel_kb import KnowledgeDependencyError, S3DocumentStore\n"
        "try:\n"
        "    S3DocumentStore('bucket')\n"
        "except KnowledgeDependencyError as error:\n"
        "    assert error.extra == 'aws', error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
