"""A store is named by one line of configuration: four forms, and everything else is an error (A14)."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentkernel_kb import AKConfigError, DocumentStore, LocalDocumentStore, S3DocumentStore


class GitStore(DocumentStore):
    """A store of an application."""

    def __init__(self, origin: str = "", *, branch: str = "main") -> None:
        self.origin, self.branch = origin, branch

    def read_bytes(self, path: str) -> bytes:
        raise FileNotFoundError(path)

    def list(self, prefix: str = "") -> builtins.list[str]:
        return []


class Unfinished(DocumentStore):
    """One that lacks what has to be implemented."""


@pytest.fixture(autouse=True)
def application(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module `mypkg.stores`, and one that cannot be imported."""
    package, module = ModuleType("mypkg"), ModuleType("mypkg.stores")
    vars(module).update(GitStore=GitStore, Unfinished=Unfinished, NotAStore=dict, not_a_class=7)
    monkeypatch.setitem(sys.modules, "mypkg", package)
    monkeypatch.setitem(sys.modules, "mypkg.stores", module)
    return iter((None,))


def local_root(uri: Any, **options: Any) -> Path:
    """Return the root of the local store that a URI names."""
    store = DocumentStore.from_uri(uri, **options)
    assert isinstance(store, LocalDocumentStore)
    return store.root


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}", "file://localhost{}", "FILE://{}", "file:{}"])
def test_a14_a_path_and_a_file_uri_name_a_folder(tmp_path: Path, form: str) -> None:
    assert local_root(form.format(tmp_path)) == tmp_path


def test_a14_a_relative_path_starts_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bundle").mkdir()
    monkeypatch.chdir(tmp_path)
    assert local_root("./bundle") == local_root("bundle") == local_root(Path("bundle")) == tmp_path / "bundle"


def test_a_file_uri_is_decoded_and_a_path_is_not(tmp_path: Path) -> None:
    for name in ("with blank", "100%25", "a#b?c", "caf\u00e9"):
        (tmp_path / name).mkdir()
    assert local_root(f"file://{tmp_path}/with%20blank") == tmp_path / "with blank"
    assert local_root(f"file://{tmp_path}/100%2525") == local_root(f"{tmp_path}/100%25") == tmp_path / "100%25"
    assert local_root(f"file://{tmp_path}/a%23b%3Fc") == local_root(f"{tmp_path}/a#b?c") == tmp_path / "a#b?c"
    assert local_root(f"file://{tmp_path}/caf%C3%A9") == tmp_path / "caf\u00e9"


def test_the_home_folder_is_written_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kb").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_root("~/kb") == tmp_path / "kb"


def test_a_path_with_a_colon_is_written_so_that_it_is_no_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes:2026").mkdir()
    monkeypatch.chdir(tmp_path)
    assert local_root("./notes:2026") == tmp_path / "notes:2026"
    with pytest.raises(AKConfigError, match=r"\./a:b"):
        DocumentStore.from_uri("notes:2026")


@pytest.mark.parametrize("path", ["C:\\kb", "C:/kb", "c:kb"])
def test_a_windows_drive_is_not_a_scheme(path: str) -> None:
    with pytest.raises(AKConfigError, match="The root of a store has to be a folder"):
        DocumentStore.from_uri(path)


@pytest.mark.parametrize(
    ("uri", "bucket", "prefix"),
    [
        ("s3://my-bucket/bundles/warehouse", "my-bucket", "bundles/warehouse"),
        ("s3://my-bucket/bundles/warehouse/", "my-bucket", "bundles/warehouse"),
        ("s3://my-bucket", "my-bucket", ""),
        ("S3://my.bucket/", "my.bucket", ""),
        ("s3://my-bucket/100%25/a b", "my-bucket", "100%25/a b"),
    ],
)
def test_a14_an_s3_uri_names_bucket_and_prefix(uri: str, bucket: str, prefix: str) -> None:
    with DocumentStore.from_uri(uri, region="eu-central-1", writable=False) as store:
        assert isinstance(store, S3DocumentStore)
        assert (store.bucket, store.prefix, store.writable) == (bucket, prefix, False)


@pytest.mark.parametrize(
    "name", ["python:mypkg.stores.GitStore", "python:mypkg.stores:GitStore", "PYTHON: mypkg.stores.GitStore"]
)
def test_a14_a_python_uri_names_a_class_of_the_application(name: str) -> None:
    store = DocumentStore.from_uri(name, origin="git@host:kb.git", branch="draft")
    assert isinstance(store, GitStore)
    assert (store.origin, store.branch) == ("git@host:kb.git", "draft")


def test_a14_a_dotted_path_alone_is_a_folder_and_never_a_class() -> None:
    with pytest.raises(AKConfigError, match="not there"):
        DocumentStore.from_uri("mypkg.stores.GitStore")


@pytest.mark.parametrize(
    ("uri", "fault"),
    [
        ("", "A store needs"),
        ("  ", "A store needs"),
        (None, "A store needs"),
        (7, "A store needs"),
        ("s4://bucket/prefix", "Unknown scheme 's4'.*Did you mean 's3'"),
        ("pythonic:mypkg.stores.GitStore", "Did you mean 'python'"),
        ("files:///srv/kb", "Did you mean 'file'"),
        ("https://example.org/kb", "Unknown scheme 'https'"),
        ("gs://bucket/kb", "Unknown scheme 'gs'"),
        ("s3:bucket/prefix", "s3://bucket/prefix"),
        ("s3:///prefix", "s3://bucket/prefix"),
        ("s3://", "s3://bucket/prefix"),
        ("s3://b/prefix", "s3://bucket/prefix"),
        ("file://server/srv/kb", "of this machine"),
        ("file:relative", "absolute path"),
        ("file:///srv/kb?x=1", "%3F"),
        ("file:///srv/kb#x", "%23"),
        ("file:///srv/no-such-folder-7d0f", "not there"),
        ("file:///srv/%00", "absolute path"),
        ("python:", "package.module.Class"),
        ("python:GitStore", "package.module.Class"),
        ("python:mypkg..GitStore", "package.module.Class"),
        ("python:mypkg.stores.No_Such", "cannot be loaded: AttributeError"),
        ("python:no_such_package_7d0f.GitStore", "cannot be loaded: ModuleNotFoundError"),
        ("python:mypkg.stores.NotAStore", "not a subclass of DocumentStore"),
        ("python:mypkg.stores.not_a_class", "not a subclass of DocumentStore"),
        ("python:mypkg.stores.Unfinished", r"does not implement \['list', 'read_bytes'\]"),
    ],
)
def test_a14_anything_else_is_a_mistake_that_says_what_would_be_right(uri: Any, fault: str) -> None:
    with pytest.raises(AKConfigError, match=fault):
        DocumentStore.from_uri(uri)


@pytest.mark.parametrize("uri", ["s3://key:hunter2@bucket/x", "postgres://u:hunter2@host/x", "file://u:hunter2@host/x"])
def test_a_uri_is_not_repeated_as_it_may_hold_a_password(uri: str) -> None:
    with pytest.raises(AKConfigError) as caught:
        DocumentStore.from_uri(uri)
    assert "hunter2" not in str(caught.value)


def test_an_option_that_the_store_does_not_take_is_named(tmp_path: Path) -> None:
    for uri in (str(tmp_path), "s3://bucket/x", "python:mypkg.stores.GitStore"):
        with pytest.raises(AKConfigError, match="colour"):
            DocumentStore.from_uri(uri, colour="red")
