"""S3DocumentStore: the documents beneath a prefix of a bucket, on AWS or on another server with its protocol."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from agentkernel_kb.errors import (
    AKConfigError,
    DocumentChangedError,
    KnowledgeCapabilityError,
    KnowledgeConnectionError,
    KnowledgePathError,
    KnowledgeStateError,
)
from agentkernel_kb.store.base import DocumentStat, DocumentStore, OnSkip, check_conditions, check_version
from agentkernel_kb.store.paths import other_spellings, shown
from agentkernel_kb.store.s3_client import AddressingStyle, attempts_of, code_of, failure, is_aws, make_client

MAX_KEY_BYTES = 1_024
"""Most bytes of a key, prefix included. Source: Amazon S3 user guide, "Naming Amazon S3 objects"."""


class S3DocumentStore(DocumentStore):
    """The documents beneath a prefix of a bucket.

    Credentials, region and endpoint come from where AWS tools take them (`AWS_ACCESS_KEY_ID`, `AWS_PROFILE`, roles,
    `AWS_ENDPOINT_URL`, …). Nothing is sent when a store is made. Keys that are no paths (`a//b`, `a/../b`, hidden names, the
    `a/` that stands for a folder) are neither listed nor reached. A document whose key differs from the path only in being
    wholly composed or wholly decomposed Unicode is found.

    Whether it can be written is declared, since a probe would be a write. Conditions are checked by the server.

    Args:
        bucket: Name of the bucket.
        prefix: Beginning of all keys; a separator follows it.
        region: Its region; default from the environment.
        client: A boto3 client to use in place of an own one; it stays open.
        writable: Whether the application may write.
        endpoint_url: Another server than AWS; default from the environment.
        addressing_style: Where the bucket's name stands; default `virtual` at AWS and `path` at any other server.
        parallelism: Most reads of one `read_many` at a time.
        max_attempts: Most attempts of a request, the first included, with the SDK's pauses between them.
        connect_timeout_s: Seconds for one attempt to connect.
        read_timeout_s: Seconds for which one attempt waits for bytes.

    Raises:
        AKConfigError: An argument is not valid.
        KnowledgeDependencyError: The extra `aws` is not installed.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        region: str | None = None,
        client: Any = None,
        writable: bool = True,
        *,
        endpoint_url: str | None = None,
        addressing_style: AddressingStyle | None = None,
        parallelism: int = 8,
        max_attempts: int = 3,
        connect_timeout_s: float = 5.0,
        read_timeout_s: float = 20.0,
    ) -> None:
        if not isinstance(bucket, str) or not bucket.strip():
            raise AKConfigError("An S3 store needs the name of a bucket.")
        if parallelism < 1 or max_attempts < 1:
            raise AKConfigError("parallelism and max_attempts of an S3 store are at least 1.")
        self.bucket, self.prefix = bucket, _checked_prefix(prefix)
        self._base = f"{self.prefix}/" if self.prefix else ""
        self._writable, self._parallelism, self._owns_client = bool(writable), parallelism, client is None
        self._closed = False
        self._client: Any = client or make_client(
            region=region,
            endpoint_url=endpoint_url,
            addressing_style=addressing_style,
            connections=max(10, parallelism + 2),
            max_attempts=max_attempts,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        )
        self.identity = f"bucket {self._host} {self.bucket} {self.prefix}"
        # AWS lists by whole keys; its directory buckets and other servers may list folder by folder.
        self._lists_in_order = is_aws(self._client) and not bucket.endswith("--x-s3")

    def __repr__(self) -> str:
        return f"S3DocumentStore({self.bucket!r}, {self.prefix!r}, writable={self._writable})"

    @property
    def writable(self) -> bool:
        """As it was declared."""
        return self._writable

    def read_bytes(self, path: str) -> bytes:
        """Return a document whole.

        Raises:
            FileNotFoundError: There is none at this path.
            KnowledgePathError: The path leaves the prefix, or makes too long a key.
            KnowledgeConnectionError: The bucket is missing, may not be read, or nobody answers.
            KnowledgeTimeoutError: The server stopped in the middle of an answer.
        """
        return self._read(path, None)

    def read_prefix_bytes(self, path: str, max_bytes: int) -> bytes:
        """Return the first `max_bytes` of a document, and ask the server for no more; 0 or less sends nothing."""
        if max_bytes <= 0:
            self._key(self.document_path(path))
            return b""
        return self._read(path, max_bytes)

    def read_many(self, paths: Iterable[str], *, max_bytes: int | None = None) -> Iterator[tuple[str, bytes | Exception]]:
        """Yield each path with its bytes or its error, in the order given; several are read at a time, few are kept ready."""
        pool = ThreadPoolExecutor(self._parallelism, thread_name_prefix="kb-s3")
        ahead: deque[tuple[str, Future[bytes | Exception]]] = deque()
        try:
            for path in paths:
                ahead.append((path, pool.submit(self._read_or_error, path, max_bytes)))
                if len(ahead) >= 2 * self._parallelism:
                    yield _arrived(ahead)
            while ahead:
                yield _arrived(ahead)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def exists(self, path: str) -> bool:
        """Tell whether there is a document at this path.

        Raises:
            KnowledgeConnectionError: The bucket is missing, may not be read, or nobody answers.
        """
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def stat(self, path: str) -> DocumentStat:
        """Return size, time and ETag of a document; its path as the bucket spells it.

        Raises:
            FileNotFoundError: There is none at this path.
            KnowledgeConnectionError: The bucket is missing, may not be read, or nobody answers.
        """
        normal = self.document_path(path)
        for spelling in (normal, *other_spellings(normal)):
            try:
                head = self._request("head_object", spelling, Key=self._key(spelling))
            except FileNotFoundError:
                continue
            return _stat(spelling, head["ContentLength"], head["LastModified"].timestamp(), head["ETag"])
        self._check_bucket()  # To this question a server gives the same answer where the bucket is missing.
        raise FileNotFoundError(2, "No such document", normal)

    def list(self, prefix: str = "") -> builtins.list[str]:
        """Return the paths of all documents at or beneath `prefix`, sorted as whole texts."""
        return [found.path for found in self.scan(prefix)]

    def scan(self, prefix: str = "", *, on_skip: OnSkip | None = None) -> Iterator[DocumentStat]:
        """Yield what the bucket's listing says of all documents at or beneath `prefix`, in the order of `list`.

        One request per thousand keys, and one for a prefix. At AWS it is a stream; other servers list folder by folder, for
        which all entries are sorted here first.

        Raises:
            KnowledgePathError: The prefix leaves the store's own.
            KnowledgeConnectionError: The bucket is missing, may not be listed, or nobody answers.
        """
        normal = self.normalise_relative(prefix)
        found = self._documents(normal, on_skip)
        return found if self._lists_in_order else iter(sorted(found, key=lambda document: document.path))

    def write_bytes(self, path: str, data: bytes, *, if_version: str | None = None, if_missing: bool = False) -> DocumentStat:
        """Store a document, whole or not at all.

        Returns:
            What the server then has; its time is that of the answer, up to a second off.

        Raises:
            DocumentChangedError: A condition did not hold; nothing was changed.
            KnowledgeCapabilityError: The store is not writable.
            KnowledgePathError: The path leaves the prefix, or makes too long a key.
            KnowledgeConnectionError: The bucket is missing, may not be written, or nobody answers.
        """
        normal = self._written_path(path, "write")
        check_conditions(if_version, if_missing=if_missing)
        if not normal.isascii():
            normal = self._spelling(normal)
        content = bytes(memoryview(data))
        try:
            answer = self._request(
                "put_object", normal, Key=self._key(normal), Body=content, **_conditions(if_version, if_missing=if_missing)
            )
        except (DocumentChangedError, FileNotFoundError) as error:
            # An attempt whose answer was lost may have done it, and the next one then met its bytes.
            if attempts_of(error.__cause__) and self._holds(normal, content):
                return self.stat(normal)
            raise _unmet(normal, error, if_missing=if_missing) from error
        return _stat(normal, len(content), _answered_at(answer), answer["ETag"])

    def delete(self, path: str, *, if_version: str | None = None) -> None:
        """Remove a document.

        Raises:
            FileNotFoundError: There is none at this path.
            DocumentChangedError: It has another version.
            KnowledgeCapabilityError: The store is not writable.
            KnowledgeConnectionError: The bucket is missing, may not be written, or nobody answers.
        """
        self._written_path(path, "delete")
        found = self.stat(path)
        check_version(found.path, found.version, if_version)
        self._request("delete_object", found.path, Key=self._key(found.path), **_conditions(if_version, if_missing=False))

    def close(self) -> None:
        """Close the client, unless it was given. May be called twice."""
        if not self._closed and self._owns_client:
            self._client.close()
        self._closed = True

    def _read(self, path: str, max_bytes: int | None) -> bytes:
        normal = self.document_path(path)
        for spelling in (normal, *other_spellings(normal)):
            try:
                return self._content(spelling, max_bytes)
            except FileNotFoundError:
                continue
        raise FileNotFoundError(2, "No such document", normal)

    def _content(self, path: str, max_bytes: int | None) -> bytes:
        wanted = {} if max_bytes is None else {"Range": f"bytes=0-{max_bytes - 1}"}
        try:
            return self._request("get_object", path, _body, Key=self._key(path), **wanted)
        except Exception as error:
            if code_of(error.__cause__) in ("416", "InvalidRange"):  # An empty document has no first byte.
                return b""
            raise

    def _read_or_error(self, path: str, max_bytes: int | None) -> bytes | Exception:
        try:
            return self.read_bytes(path) if max_bytes is None else self.read_prefix_bytes(path, max_bytes)
        except Exception as error:  # noqa: BLE001 - one document that can't be read must not take the others with it
            return error

    def _documents(self, prefix: str, on_skip: OnSkip | None) -> Iterator[DocumentStat]:
        if not prefix:
            yield from self._beneath("", on_skip)
            return
        for spelling in (prefix, *other_spellings(prefix)):
            found_any = False
            for found in self._at_or_beneath(spelling, on_skip):
                found_any = True
                yield found
            if found_any:
                return

    def _at_or_beneath(self, prefix: str, on_skip: OnSkip | None) -> Iterator[DocumentStat]:
        try:
            found = self.stat(prefix)
        except FileNotFoundError:
            found = None
        if found and found.path == prefix:
            yield found
        yield from self._beneath(f"{prefix}/", on_skip)

    def _beneath(self, prefix: str, on_skip: OnSkip | None) -> Iterator[DocumentStat]:
        for entry in self._entries(self._base + prefix):
            path: str = entry["Key"][len(self._base) :]
            if _is_path(path, on_skip):
                yield _stat(path, entry["Size"], entry["LastModified"].timestamp(), entry["ETag"])

    def _entries(self, prefix: str) -> Iterator[dict[str, Any]]:
        self._check_open()
        try:
            pages: Any = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
            for page in pages:
                yield from page.get("Contents", ())
        except Exception as error:
            raise self._failure(error, "") from error

    def _spelling(self, path: str) -> str:
        """Return the spelling under which a document is there already, so that it does not get a twin."""
        try:
            return self.stat(path).path
        except FileNotFoundError:
            return path

    def _holds(self, path: str, content: bytes) -> bool:
        try:
            return self._content(path, None) == content
        except FileNotFoundError:
            return False

    def _check_bucket(self) -> None:
        try:
            self._client.head_bucket(Bucket=self.bucket)
        except Exception as error:
            if code_of(error) in ("404", "NoSuchBucket"):
                raise KnowledgeConnectionError(f"There is no bucket '{self.bucket}'.", state="missing") from error
            if code_of(error) != "403":  # Not everyone may ask for it, and then it is there.
                raise self._failure(error, "") from error

    def _written_path(self, path: str, operation: str) -> str:
        normal = self.document_path(path)
        self._key(normal)
        if not self._writable:
            raise KnowledgeCapabilityError(repr(self), operation)
        return normal

    def _key(self, path: str) -> str:
        key = self._base + path
        if len(key.encode()) > MAX_KEY_BYTES:
            raise KnowledgePathError(f"The path {shown(path)} makes a key of more than {MAX_KEY_BYTES} bytes.")
        return key

    def _request(self, operation: str, path: str, finish: Any = None, **arguments: Any) -> Any:
        self._check_open()
        try:
            answer = getattr(self._client, operation)(Bucket=self.bucket, **arguments)
            return finish(answer) if finish else answer
        except Exception as error:
            raise self._failure(error, path) from error

    def _check_open(self) -> None:
        if self._closed:
            raise KnowledgeStateError(f"{self!r} is closed.")

    def _failure(self, error: Exception, path: str) -> Exception:
        return failure(error, self.bucket, path, self._host)

    @property
    def _host(self) -> str:
        return urlsplit(str(self._client.meta.endpoint_url)).netloc.rpartition("@")[2]


def _checked_prefix(prefix: str) -> str:
    stripped = prefix.strip("/")
    if any(segment in (".", "..") for segment in stripped.split("/")):
        raise AKConfigError("The prefix of an S3 store has no segment . or .. in it.")
    return stripped


def _stat(path: str, size: int, modified: float, etag: str) -> DocumentStat:
    return DocumentStat(path, int(size), modified, etag.strip('"'))


def _conditions(if_version: str | None, *, if_missing: bool) -> dict[str, str]:
    if if_missing:
        return {"IfNoneMatch": "*"}
    return {} if if_version is None else {"IfMatch": f'"{if_version}"'}


def _unmet(path: str, error: Exception, *, if_missing: bool) -> DocumentChangedError:
    if isinstance(error, FileNotFoundError):
        return DocumentChangedError(path, "is gone")
    return DocumentChangedError(path, "exists already") if if_missing else DocumentChangedError(path)


def _answered_at(answer: dict[str, Any]) -> float:
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return parsedate_to_datetime(date).timestamp() if date else 0.0


def _body(answer: dict[str, Any]) -> bytes:
    with answer["Body"] as stream:
        return stream.read()


def _arrived(ahead: deque[tuple[str, Future[bytes | Exception]]]) -> tuple[str, bytes | Exception]:
    path, future = ahead.popleft()
    return path, future.result()


def _is_path(key: str, on_skip: OnSkip | None) -> bool:
    """Tell whether what follows the prefix in a key is the path of a document, as its one spelling."""
    if key.endswith("/") or not key:  # It stands for a folder.
        return False
    try:
        if DocumentStore.normalise_relative(key) == key:
            return True
        fault = "is not the one spelling of a path"
    except KnowledgePathError as error:
        fault = str(error)
    if on_skip and not any(segment.startswith(".") and segment.strip(".") for segment in key.split("/")):
        on_skip(key, fault)
    return False
