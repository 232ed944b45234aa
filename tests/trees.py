"""Reads documentation with frontmatter out of packages of the npm registry, thousands of files, and tells how that went.

`python tests/trees.py [FOLDER [PACKAGE …]]` fetches the packages with `npm pack` into FOLDER, or a temporary one, or takes what
is there already; a folder with documents can stand for a package. It reads each as a bundle, searches and fetches in it, and
prints one JSON object per tree: files, concepts, seconds, and what is wrong by kind with an example of each. It fails where a
tree raises, or where a diagnostic names no file, or no line though its kind has one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from agentkernel_kb import LocalDocumentStore, OKFManager
from agentkernel_kb.okf.model import DiagnosticCode, OKFDiagnostic
from agentkernel_kb.okf.parser import parse_document
from agentkernel_kb.okf.paths import is_document, reserved_kind

PACKAGES = ("openclaw@2026.9.6", "ecc-universal@2.0.0", "specweave@1.0.593", "bmad-method@6.12.0")
WITHOUT_LINE = (DiagnosticCode.INVALID_TEXT, DiagnosticCode.UNREADABLE, DiagnosticCode.OVERSIZED, DiagnosticCode.UNUSABLE_PATH)


def fetched(package: str, folder: Path) -> Path:
    """Return the folder of a package, unpacked; its scripts are not run."""
    name, _, version = package.rpartition("@")
    archive = folder / f"{name.strip('@').replace('/', '-')}-{version}.tgz"
    if not archive.exists():
        subprocess.run(
            ["npm", "pack", "--silent", "--ignore-scripts", package], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
    tree = folder / archive.stem
    if not tree.exists():
        with tarfile.open(archive) as packed:
            packed.extractall(tree, filter="data")
    return tree


def read(tree: Path, default_type: str | None) -> dict[str, Any]:
    """Read a tree as a bundle and return what that gave."""
    started = time.perf_counter()
    backend = OKFManager(LocalDocumentStore(tree, writable=False), index=None, max_concepts=100_000, default_type=default_type)
    seconds = round(time.perf_counter() - started, 2)
    bundle = backend.bundle
    found = backend.search("how to use", limit=20)
    assert len(backend.fetch([record["metadata"]["id"] for record in found])) == len(found)
    backend.browse()
    assert all(one.path for one in bundle.diagnostics), "a diagnostic names no file"
    backend.close()
    return {"concepts": bundle.concept_count, "seconds": seconds, "wrong": bundle.diagnostic_count}


def faults(tree: Path) -> dict[str, Any]:
    """Return what is wrong with the documents of a tree: how often of each kind, and an example."""
    store, kinds = LocalDocumentStore(tree, writable=False), dict[str, list[OKFDiagnostic]]()
    paths = [path for path in store.list() if is_document(path)]
    for path in paths:
        if not reserved_kind(path):
            for one in parse_document(path, store.read_bytes(path)).diagnostics:
                assert one.path == path, one
                assert one.line or one.code in WITHOUT_LINE, one
                kinds.setdefault(one.code.value, []).append(one)
    return {"files": len(paths), "faults": {kind: [len(all_), str(all_[0])] for kind, all_ in sorted(kinds.items())}}


def main() -> None:
    """Fetch and read all packages."""
    with tempfile.TemporaryDirectory(prefix="kb-trees-") as scratch:
        folder = Path(sys.argv[1] if sys.argv[1:] else scratch).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for package in sys.argv[2:] or PACKAGES:
            tree = Path(package) if Path(package).is_dir() else fetched(package, folder)
            figures = {"as a bundle": read(tree, None), "with a default type": read(tree, "Page")}
            print(json.dumps({"tree": package, **faults(tree), **figures}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
