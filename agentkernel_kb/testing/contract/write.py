"""What a writable backend promises."""

from __future__ import annotations

import copy

from agentkernel_kb.base import KnowledgeBase
from agentkernel_kb.model import Record
from agentkernel_kb.testing.contract.samples import Samples, ids, run
from agentkernel_kb.testing.gating import requires


class WriteTests(Samples):
    """Tests of `write`, `awrite`, `add` and `aadd`."""

    @requires("write")
    def test_what_is_written_is_found(self, backend: KnowledgeBase) -> None:
        """A record is visible on the very next call."""
        assert len(self.find_written(backend)) == 0
        self._write(backend, self.new_record)
        assert len(self.find_written(backend)) == 1

    @requires("write")
    def test_write_returns_nothing(self, backend: KnowledgeBase) -> None:
        """`write` has no answer; `add` is for ids."""
        write: object = backend.write
        assert callable(write)
        assert write([self.new_record]) is None

    @requires("write")
    def test_writing_twice_stores_once(self, backend: KnowledgeBase) -> None:
        """The same record again changes nothing."""
        self._write(backend, self.new_record)
        self._write(backend, self.new_record)
        assert len(self.find_written(backend)) == 1

    @requires("write")
    def test_write_takes_any_iterable(self, backend: KnowledgeBase) -> None:
        """A generator will do, and so will nothing at all."""
        backend.write([])
        backend.write(record for record in [self.new_record])
        assert len(self.find_written(backend)) == 1

    @requires("write")
    def test_write_leaves_the_record_alone(self, backend: KnowledgeBase) -> None:
        """The caller's mapping is not changed."""
        record = copy.deepcopy(self.new_record)
        backend.write([record])
        assert record == self.new_record

    @requires("write")
    def test_write_ignores_unknown_arguments(self, backend: KnowledgeBase) -> None:
        """Keyword arguments that the backend does not know change nothing."""
        backend.write([self.new_record], unknown="x")
        assert len(self.find_written(backend)) == 1

    @requires("write")
    def test_awrite_is_write(self, backend: KnowledgeBase) -> None:
        """The async twin stores the record too."""
        run(backend.awrite([self.new_record]))
        assert len(self.find_written(backend)) == 1

    @requires("write", "ids")
    def test_add_returns_an_id_per_record(self, backend: KnowledgeBase) -> None:
        """The ids come in the order of the records; nothing added, no ids."""
        assert list(backend.add([])) == []
        added = backend.add([self.new_record, self._other()])
        assert len(set(added)) == 2
        assert all(added)
        assert list(backend.add([self.new_record])) == added[:1]

    @requires("write", "ids")
    def test_ids_tell_text_from_source(self, backend: KnowledgeBase) -> None:
        """Records whose text and source read the same when they are put together are two records."""
        text = self.new_record["text"]
        metadata = {key: value for key, value in self.new_record.get("metadata", {}).items() if key != "id"}
        pair = [
            {"text": f"{text}b", "metadata": {**metadata, "source": "c"}},
            {"text": text, "metadata": {**metadata, "source": "bc"}},
        ]
        assert len(set(backend.add(pair))) == 2

    @requires("write", "ids")
    def test_add_stores(self, backend: KnowledgeBase) -> None:
        """What is added is found."""
        backend.add([self.new_record])
        assert len(self.find_written(backend)) == 1

    @requires("write", "ids")
    def test_aadd_is_add(self, backend: KnowledgeBase) -> None:
        """The async twin returns the same ids."""
        assert run(backend.aadd([self.new_record])) == backend.add([self.new_record])

    @requires("write", "ids", "fetch")
    def test_what_is_added_can_be_fetched(self, backend: KnowledgeBase) -> None:
        """The ids that `add` returns are those that `fetch` takes."""
        added = backend.add([self.new_record])
        assert ids(backend.fetch(added)) == added

    def _write(self, backend: KnowledgeBase, record: Record) -> None:
        backend.write([copy.deepcopy(record)])

    def _other(self) -> Record:
        """Return a record that differs from the new one in its text, and in its id if that has one."""
        metadata = dict(self.new_record.get("metadata") or {})
        if "id" in metadata:
            metadata["id"] = f"other-{metadata['id']}"
        return {"text": f"Another: {self.new_record['text']}", "metadata": metadata}
