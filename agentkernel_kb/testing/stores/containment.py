"""No path leads out of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkernel_kb.errors import KnowledgePathError
from agentkernel_kb.store.base import DocumentStore
from agentkernel_kb.testing.stores.samples import DOCUMENTS, ESCAPES, LOOK_ALIKES, StoreSamples, operations, outcome

SECRET = b"what no path may lead to"


class ContainmentTests(StoreSamples):
    """Tests of paths that attack."""

    @pytest.fixture
    def surroundings(self, tmp_path: Path, store: DocumentStore) -> Path:
        """Put a secret beside the store, where a path out of it may lead."""
        (tmp_path / "secret.md").write_bytes(SECRET)
        return tmp_path

    @pytest.mark.usefixtures("surroundings")
    def test_a_path_out_of_the_store_is_refused_by_every_operation(self, store: DocumentStore) -> None:
        """It is a `KnowledgePathError`, not an absence, and before anything else is looked at."""
        for path in ESCAPES:
            for name, operation in operations(store, path).items():
                assert outcome(operation) is KnowledgePathError, (name, path)
            with pytest.raises(KnowledgePathError):
                store.normalise_relative(path)

    @pytest.mark.usefixtures("surroundings")
    def test_what_only_looks_like_a_way_out_names_nothing(self, store: DocumentStore) -> None:
        """Nothing is decoded, expanded or matched: the path is a name that the store does not hold, or none at all."""
        expected: dict[str, tuple[object, ...]] = {
            "exists": (False, KnowledgePathError),
            "list": ([], KnowledgePathError),
            "scan": ([], KnowledgePathError),
        }
        for path in LOOK_ALIKES:
            for name, operation in operations(store, path).items():
                if name != "read_prefix_bytes of nothing":
                    found = outcome(operation)
                    assert found in expected.get(name, (FileNotFoundError, KnowledgePathError)), (name, path)

    def test_the_root_is_no_document(self, store: DocumentStore) -> None:
        """It can be listed, and neither read nor asked for."""
        for path in ("", ".", "./", ".//."):
            found = {name: outcome(operation) for name, operation in operations(store, path).items()}
            listed = {"list": sorted(DOCUMENTS), "scan": list(store.scan())}
            assert found == {name: listed.get(name, KnowledgePathError) for name in found}

    def test_a_path_is_text(self, store: DocumentStore) -> None:
        """Anything else is refused as a path is, not as a fault of the program."""
        for path in (None, b"a.md", 7, Path("a.md")):
            with pytest.raises(KnowledgePathError):
                store.normalise_relative(path)  # pyright: ignore[reportArgumentType] - what an untyped caller hands over
