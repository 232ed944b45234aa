"""ChromaManager (row A11) with Chroma's default model: a tiny one of the same shape, run by the real runtime."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2
from tokenizers import Tokenizer, models, pre_tokenizers

from agentkernel_kb.chroma import ChromaManager

WORDS = ["[PAD]", "[UNK]", "refund", "money", "ship", "monday"]
MEANINGS = [(0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.9, 0.1, 0.0), (0.0, 1.0, 0.0), (0.1, 0.9, 0.0)]
FLOAT, INT64 = 1, 7


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def number_field(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def bytes_field(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def tensor_of(name: str, kind: int, rank: int) -> bytes:
    shape = b"".join(bytes_field(1, bytes_field(2, f"axis{axis}")) for axis in range(rank))
    return bytes_field(1, name) + bytes_field(2, bytes_field(1, number_field(1, kind) + bytes_field(2, shape)))


def onnx_model() -> bytes:
    """Return a model that looks each token's meaning up in a table (Source: the ONNX protobuf schema)."""
    values = [value for meaning in MEANINGS for value in meaning]
    table = number_field(1, len(MEANINGS)) + number_field(1, 3) + number_field(2, FLOAT) + bytes_field(8, "table")
    table += bytes_field(9, struct.pack(f"<{len(values)}f", *values))
    node = (
        bytes_field(1, "table") + bytes_field(1, "input_ids") + bytes_field(2, "last_hidden_state") + bytes_field(4, "Gather")
    )
    graph = bytes_field(1, node) + bytes_field(2, "lookup") + bytes_field(5, table)
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        graph += bytes_field(11, tensor_of(name, INT64, 2))
    graph += bytes_field(12, tensor_of("last_hidden_state", FLOAT, 3))
    return number_field(1, 8) + bytes_field(7, graph) + bytes_field(8, number_field(2, 13))


@pytest.fixture
def model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models" / "onnx"
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.onnx").write_bytes(onnx_model())
    for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).touch()
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", folder.parent)
    return folder


@pytest.fixture
def kb(tmp_path: Path, model_folder: Path) -> Iterator[ChromaManager]:
    manager = ChromaManager(tmp_path / "db")
    yield manager
    manager.close()


def test_the_model_on_this_machine_is_used_without_asking(kb: ChromaManager, capfd: pytest.CaptureFixture[str]):
    kb.write([{"text": "refund"}, {"text": "ship"}])

    assert [found["text"] for found in kb.search("money", limit=2)] == ["refund", "ship"]
    assert [found["text"] for found in kb.search("monday", limit=1)] == ["ship"]
    assert capfd.readouterr() == ("", "")


def test_a_model_with_a_file_missing_counts_as_absent(kb: ChromaManager, model_folder: Path):
    (model_folder / "vocab.txt").unlink()

    with pytest.raises(ValueError, match="Chroma's default model is not on this machine"):
        kb.search("money")


def test_its_collections_can_be_opened_with_the_same_model_given_by_hand(kb: ChromaManager, tmp_path: Path):
    kb.write([{"text": "refund"}])

    by_hand = ChromaManager(tmp_path / "db", embedding_function=ONNXMiniLM_L6_V2())
    assert [found["text"] for found in by_hand.search("money")] == ["refund"]
    by_hand.close()
