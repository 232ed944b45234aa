"""Paths that would lead out of a bundle, through every tool, every link and every write: none does (A15, A16, A17)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from okf_bundles import concept, opened, write

from agentkernel_kb import KnowledgeBuilder, KnowledgeError, OKFManager

SECRET = "what nobody may read"
ATTACKS = {
    "up": "../secret.md",
    "up from a folder": "sub/../../secret.md",
    "without its ending": "../secret",
    "absolute": "{outside}/secret.md",
    "of the system": "/etc/passwd",
    "two slashes": "//{outside}/secret.md",
    "a file URI": "file://{outside}/secret.md",
    "encoded": "%2e%2e/secret.md",
    "encoded slash": "..%2fsecret.md",
    "encoded twice": "%252e%252e%252fsecret.md",
    "overlong UTF-8": "%c0%ae%c0%ae/secret.md",
    "look-alike slash": "..\u2215secret.md",
    "full-width dots": "\uff0e\uff0e/secret.md",
    "one-dot leader": "\u2024\u2024/secret.md",
    "full-width slash": "..\uff0fsecret.md",
    "division slash": "..\u2044secret.md",
    "backslash": "..\\secret.md",
    "drive": "C:\\secret.md",
    "drive with slash": "C:/secret.md",
    "share": "\\\\host\\share\\secret.md",
    "NUL": "a.md\0/../../secret.md",
    "encoded NUL": "a.md%00/../../secret.md",
    "blank after dots": ".. /secret.md",
    "three dots": ".../secret.md",
    "hidden": ".git/config.md",
    "home": "~/secret.md",
    "link out": "out.md",
    "folder link out": "up/secret.md",
    "link to a link": "hop/secret.md",
    "unpaired surrogate": "\udc2e\udc2e/secret.md",
    "line break": "a.md\n../secret.md",
    "very deep": "../" * 200 + "secret.md",
}

attack = pytest.mark.parametrize("path", ATTACKS.values(), ids=ATTACKS.keys())


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle with ways out of it, and a secret beside it."""
    write(tmp_path, {"secret.md": concept("Secret", SECRET)})
    folder = write(
        tmp_path / "bundle", {"a.md": concept("A"), "sub/b.md": concept("B"), ".git/config.md": concept("G", SECRET)}
    )
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "hop").symlink_to("up")
    return folder


def meant(path: str, folder: Path) -> str:
    """Return an attack with the folder that it aims at."""
    return path.replace("{outside}", str(folder.parent))


def tools(backend: OKFManager) -> dict[str, Callable[..., str]]:
    """Return the tools that an agent has, by name."""
    return {tool.__name__: tool for tool in KnowledgeBuilder([backend]).build()}


@attack
def test_a16_no_tool_leads_out_of_the_bundle(bundle: Path, path: str):
    backend = opened(bundle)
    named = tools(backend)
    for tool, argument in (("fetch_kb", "ids"), ("browse_kb", "path"), ("read_kb", "query"), ("search_kb", "query")):
        for spelled in (meant(path, bundle), f"/{meant(path, bundle)}", f"sub/{meant(path, bundle)}"):
            asked = f'path:"{spelled}"' if argument == "query" else spelled
            assert SECRET not in named[tool](backend="okf", **{argument: asked})
    backend.close()


@attack
def test_a17_no_write_leads_out_of_the_bundle(bundle: Path, path: str):
    before = names(bundle.parent)
    backend = opened(bundle)
    for spelled in (meant(path, bundle), f"sub/{meant(path, bundle)}"):
        record: dict[str, Any] = {"text": "attack", "metadata": {"id": spelled, "type": "Note"}}
        try:
            backend.add([record])
        except (KnowledgeError, ValueError):
            continue
    assert names(bundle.parent) == before
    assert SECRET in (bundle.parent / "secret.md").read_text()
    backend.close()


@attack
def test_a16_no_link_leads_out_of_the_bundle(bundle: Path, path: str):
    target = meant(path, bundle).encode("utf-8", "replace").decode()
    linked = {"resource": f'"{target}"'} if not set(target) & set('\\"\0\n') else {}
    write(bundle, {"linking.md": concept("Linking", f"See [it](<{target}>) and [it]({target}).", **linked)})
    backend = opened(bundle)
    (record,) = backend.fetch(["linking.md"])
    metadata = record["metadata"]
    for identity in [*metadata["links"], *metadata.get("broken_links", [])]:
        try:
            assert SECRET not in str(list(backend.fetch([identity])))
        except KnowledgeError:
            continue
    assert set(metadata["links"]) <= {"a.md"}
    backend.close()


def names(folder: Path) -> list[str]:
    """Return what stands beside the bundle."""
    return sorted(found.name for found in folder.iterdir())
