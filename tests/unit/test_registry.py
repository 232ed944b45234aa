"""Backends by name: the table, the entry points, and what goes wrong with them (X22)."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from agentkernel_kb import AKConfigError, KnowledgeBase, KnowledgeDependencyError
from agentkernel_kb.registry import BUILT_IN, ENTRY_POINT_GROUP, backend_class, backend_names

WORKING = """
from agentkernel_kb.base import KnowledgeBase


class Backend(KnowledgeBase):
    pass
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path, such as packages are installed into."""
    monkeypatch.syspath_prepend(tmp_path)  # pyright: ignore[reportUnknownMemberType] - its annotation in pytest is partial
    return tmp_path


def install(site: Path, distribution: str, name: str, target: str, source: str = "") -> None:
    """Lay out a distribution as an installer does: its metadata and its module."""
    metadata = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{name} = {target}\n")
    (site / f"{target.partition(':')[0]}.py").write_text(source)


def test_the_backends_that_ship_are_known() -> None:
    assert {"chroma", "sql"} <= set(backend_names())
    assert backend_names() == sorted(backend_names())


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_backend_that_ships_is_found_by_name(name: str) -> None:
    found = backend_class(name)
    assert issubclass(found, KnowledgeBase)
    assert (found.__module__.startswith(BUILT_IN[name].module), found.__name__) == (True, BUILT_IN[name].class_name)


def test_the_table_names_extras_that_exist() -> None:
    extras = importlib.metadata.metadata("agentkernel-kb").get_all("Provides-Extra") or []
    assert {home.extra for home in BUILT_IN.values() if home.extra} <= set(extras)


def test_the_table_and_the_entry_points_do_not_overlap() -> None:
    own = importlib.metadata.distribution("agentkernel-kb").entry_points
    assert [point.name for point in own if point.group == ENTRY_POINT_GROUP] == []


def test_a_plugin_is_found_by_name(site: Path) -> None:
    install(site, "kb-green", "green", "kb_registry_green:Backend", WORKING)
    assert "green" in backend_names()
    assert backend_class("green").__module__ == "kb_registry_green"


def test_listing_names_imports_no_backend(site: Path) -> None:
    install(site, "kb-lazy", "lazy", "kb_registry_lazy:Backend", "raise SystemExit('imported')")
    assert "lazy" in backend_names()
    assert "kb_registry_lazy" not in sys.modules


def test_an_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(AKConfigError) as caught:
        backend_class("chrome")
    assert str(caught.value) == f"Unknown backend 'chrome'. Available: {backend_names()}. Did you mean 'chroma'?"


def test_a_name_like_none_gets_no_hint() -> None:
    with pytest.raises(AKConfigError) as caught:
        backend_class("zzzzzz")
    assert str(caught.value) == f"Unknown backend 'zzzzzz'. Available: {backend_names()}."


def test_a_plugin_cannot_shadow_a_backend_that_ships(site: Path) -> None:
    install(site, "kb-impostor", "chroma", "kb_registry_impostor:Backend", WORKING)
    with pytest.raises(AKConfigError) as caught:
        backend_class("chroma")
    assert str(caught.value) == (
        "Backend name 'chroma' is given by several distributions: 'agentkernel-kb' itself, 'kb-impostor'. "
        "Uninstall or rename all but one."
    )


def test_two_plugins_of_one_name_are_both_named(site: Path) -> None:
    install(site, "kb-twin-b", "twin", "kb_registry_twin_b:Backend", WORKING)
    install(site, "kb-twin-a", "twin", "kb_registry_twin_a:Backend", WORKING)
    with pytest.raises(AKConfigError, match="by several distributions: 'kb-twin-a', 'kb-twin-b'"):
        backend_class("twin")


def test_a_clash_hurts_nobody_who_does_not_ask_for_it(site: Path) -> None:
    install(site, "kb-impostor", "chroma", "kb_registry_impostor:Backend", WORKING)
    install(site, "kb-fine", "fine", "kb_registry_fine:Backend", WORKING)
    assert {"chroma", "fine"} <= set(backend_names())
    assert backend_class("fine").__name__ == "Backend"


@pytest.mark.parametrize(
    ("source", "cause"),
    [("import kb_registry_absent", ModuleNotFoundError), ("1 / 0", ZeroDivisionError), ("def broken(:", SyntaxError)],
)
def test_a_plugin_that_cannot_be_imported_is_named(site: Path, source: str, cause: type[Exception]) -> None:
    module = f"kb_registry_broken_{cause.__name__.lower()}"
    install(site, "kb-broken", "broken", f"{module}:Backend", source)
    with pytest.raises(AKConfigError) as caught:
        backend_class("broken")
    assert str(caught.value).startswith(
        f"Backend 'broken' of the distribution 'kb-broken' ({module}:Backend) cannot be loaded: {cause.__name__}: "
    )
    assert isinstance(caught.value.__cause__, cause)


def test_a_plugin_whose_class_is_missing_is_named(site: Path) -> None:
    install(site, "kb-empty", "empty", "kb_registry_empty:Backend")
    with pytest.raises(
        AKConfigError, match=r"Backend 'empty' of the distribution 'kb-empty' .* cannot be loaded: AttributeError"
    ):
        backend_class("empty")


@pytest.mark.parametrize("source", ["class Backend: ...", "def Backend(): ...", "Backend = None"])
def test_a_plugin_that_is_no_backend_is_named(site: Path, source: str) -> None:
    module = f"kb_registry_odd_{len(source)}"
    install(site, "kb-odd", "odd", f"{module}:Backend", source)
    with pytest.raises(AKConfigError) as caught:
        backend_class("odd")
    assert str(caught.value) == (
        f"Backend 'odd' of the distribution 'kb-odd' ({module}:Backend) is not a subclass of KnowledgeBase."
    )


def test_a_backend_that_cannot_be_imported_names_its_extra() -> None:
    program = (
        "import sys\n"
        "sys.modules['agentkernel_kb.chroma'] = None\n"
        "from agentkernel_kb.registry import backend_class\n"
        "try:\n"
        "    backend_class('chroma')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    expected = KnowledgeDependencyError("chroma", "The backend 'chroma'")
    assert result.stdout.strip() == f"KnowledgeDependencyError {expected}"


def test_importing_the_registry_scans_nothing() -> None:
    program = (
        "import importlib.metadata\n"
        "def scan(**_):\n"
        "    raise SystemExit('scanned')\n"
        "importlib.metadata.entry_points = scan\n"
        "import agentkernel_kb.registry\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
