"""A bucket of one's own on the real S3 server, for the tests of one worker; each store in it has a prefix of its own."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config

from agentkernel_kb import S3DocumentStore

KEY, READING_KEY, SECRET = "kb-test-key", "kb-read-key", "kb-test-secret"


class Bucket:
    """A bucket and the client that made it."""

    def __init__(self, url: str) -> None:
        self.url, self.name = url, f"kb-test-{uuid.uuid4().hex[:12]}"
        self.client = client(url)
        self.client.create_bucket(Bucket=self.name)

    def store(self, documents: Mapping[str, bytes] = {}, prefix: str | None = None, **options: Any) -> S3DocumentStore:
        """Return a store over a prefix of its own, whose documents were put there by other means than a store's."""
        prefix = f"stores/{uuid.uuid4().hex}" if prefix is None else prefix
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda path: self.put(f"{prefix}/{path}".lstrip("/"), documents[path]), documents))
        return S3DocumentStore(self.name, prefix, client=options.pop("client", self.client), **options)

    def put(self, key: str, data: bytes) -> None:
        """Put an object."""
        self.client.put_object(Bucket=self.name, Key=key, Body=data)

    def remove(self) -> None:
        """Empty and remove it."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        keys = [{"Key": entry["Key"]} for page in pages for entry in page.get("Contents", ())]
        for start in range(0, len(keys), 1_000):
            self.client.delete_objects(Bucket=self.name, Delete={"Objects": keys[start : start + 1_000], "Quiet": True})
        self.client.delete_bucket(Bucket=self.name)
        self.client.close()


def client(url: str, key: str = KEY, secret: str = SECRET, **settings: Any) -> Any:
    """Return a client with a login of the test server, or another."""
    config = Config(s3={"addressing_style": "path"}, max_pool_connections=32, **settings)
    sdk: Any = boto3
    return sdk.session.Session().client(
        "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret, config=config
    )


@contextmanager
def new_bucket(url: str) -> Generator[Bucket]:
    """Make a bucket, and remove it in the end."""
    made = Bucket(url)
    try:
        yield made
    finally:
        made.remove()
