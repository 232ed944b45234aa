"""Links: which a document has, and what each may mean (A16)."""

from __future__ import annotations

import pytest

from agentkernel_kb.okf.links import candidates, edges, targets
from agentkernel_kb.okf.parser import parse_document


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("see [a](x.md) and [b](/y.md)", ["x.md", "/y.md"]),
        ("[a](x.md) [a again](x.md)", ["x.md"]),
        ("[a](x.md 'title')", ["x.md"]),
        ("[a](<x y.md>)", ["x y.md"]),
        ("[a](x(1).md)", ["x(1).md"]),
        ("[a](x.md#part)", ["x.md#part"]),
        ("[a [b] c](x.md)", ["x.md"]),
        ("[a][ref]\n\n[ref]: x.md\n", ["x.md"]),
        ("[Ref][]\n\n[ref]: <x.md> 'title'\n", ["x.md"]),
        ("[unused]: x.md\n", []),
        ("claim[^n]\n\n[^n]: x.md\n", []),
        ("![image](x.md)", []),
        (r"\[a](x.md)", []),
        ("`[a](x.md)`", []),
        ("``[a](x.md) ` ``", []),
        ("```\n[a](x.md)\n```\n[b](y.md)", ["y.md"]),
        ("~~~ md\n[a](x.md)\n~~~\n", []),
        ("```\n[a](x.md)\nnever closed", []),
        ("text\n\n    [a](x.md)\n\n[b](y.md)", ["y.md"]),
        ("- item\n\n    [a](x.md)\n", ["x.md"]),
        ("<!-- [a](x.md) -->", []),
        ("[a](x.md", ["x.md"]),
        ("[a] (x.md)", []),
        ("[a]()", []),
        ("no links", []),
        ("[wiki]] [[x.md]]", []),
    ],
)
def test_a16_links_are_what_markdown_takes_for_links_and_code_has_none(body: str, found: list[str]):
    assert targets(body) == found


@pytest.mark.parametrize(
    ("target", "paths"),
    [
        ("/tables/x.md", ["tables/x.md"]),
        ("/x.md#part", ["x.md"]),
        ("x.md", ["a/b/x.md", "x.md"]),
        ("./x.md", ["a/b/x.md"]),
        ("../x.md", ["a/x.md"]),
        ("../../x.md", ["x.md"]),
        ("../../../x.md", []),
        ("/../x.md", []),
        ("x%20y.md", ["a/b/x%20y.md", "a/b/x y.md", "x%20y.md", "x y.md"]),
        ("%2e%2e/x.md", ["a/b/%2e%2e/x.md", "a/x.md", "%2e%2e/x.md"]),
        ("x", ["a/b/x.md", "x.md"]),
        ("x.py", []),
        ("sub/", []),
        ("#part", []),
        ("https://x.y/z.md", []),
        ("mailto:a@b.md", []),
        ("//host/x.md", []),
        ("file:///etc/x.md", []),
        ("C:/x.md", []),
        ("a\\x.md", []),
        (".hidden/x.md", []),
        ("x.md\x00", []),
        ("", []),
    ],
)
def test_a16_a_link_is_tried_from_the_document_and_then_from_the_root_and_never_leaves(target: str, paths: list[str]):
    assert candidates(target, "a/b/c.md") == paths


def test_a16_path_valued_fields_are_links_too_and_scopes_are_not():
    head = (
        "type: Attested Computation\nruntime: x\nresource: https://x.y\ncomputation: lib/x.md\n"
        "executor: {resource: ../run.md}\nattester: {resource: check.py}\n"
        "sources: [{resource: /s.md}, {resource: all queries in project X}, {resource: dashboards/exec}]"
    )
    concept = parse_document("a/c.md", f"---\n{head}\n---\n[b](b.md)\n".encode()).concept

    assert concept is not None
    assert edges(concept) == [["a/b.md", "b.md"], ["a/lib/x.md", "lib/x.md"], ["s.md"], ["run.md"]]


@pytest.mark.parametrize("body", ["[" * 50_000, "](" * 50_000, "`" * 50_000, "[a](x" * 20_000, "![" * 50_000, "<!--" * 20_000])
def test_a16_hostile_markdown_ends_soon(body: str):
    assert isinstance(targets(body), list)
