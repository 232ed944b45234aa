"""Fills the servers of compose.yaml with the demo's sample data, and a bucket of the S3 server with the bundle of examples/okf.

Run by the service `sample-data`, or by hand against the servers that `make servers` starts: `python docker/sample_data.py`.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

_EXAMPLES = Path(__file__).parent.parent / "examples"
sys.path.append(str(_EXAMPLES / "multi"))

BUCKET = "kb-demo"
_S3_URL = "http://127.0.0.1:18333"


def upload_bundle(url: str, folder: Path) -> int:
    """Put the files of a folder into the bucket under `library/`, and return how many there are."""
    import boto3
    from botocore.config import Config

    sdk: Any = boto3
    client = sdk.client(
        "s3",
        endpoint_url=url,
        region_name="local",
        aws_access_key_id=os.environ.get("KB_S3_ACCESS_KEY", "kb-test-key"),
        aws_secret_access_key=os.environ.get("KB_S3_SECRET_KEY", "kb-test-secret"),
        config=Config(s3={"addressing_style": "path"}),
    )
    if BUCKET not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
        client.create_bucket(Bucket=BUCKET)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in files:
        client.put_object(Bucket=BUCKET, Key=f"library/{path.relative_to(folder).as_posix()}", Body=path.read_bytes())
    return len(files)


def main() -> None:
    """Fill all five servers and say what is where."""
    demo: Any = importlib.import_module("multi_demo.server_stores")  # Beside the demo, and not installed.
    for store in demo.make_server_stores(demo.Addresses.from_environment(os.environ)).backends():
        print(store.get_description())
        store.close()
    files = upload_bundle(os.environ.get("KB_DEMO_S3_URL", _S3_URL), _EXAMPLES / "okf" / "bundle")
    print(f"{files} files in s3://{BUCKET}/library")


if __name__ == "__main__":
    main()
