"""SentenceTransformerEmbedder with the library itself (P4): a small model made here, saved as people save theirs, and opened.

The library brings PyTorch, several gigabytes that CI does not install; so these tests run where the extra is installed:
`pip install 'agentkernel-kb[sentence-transformers]'`. Last seen with the versions that `constraints.txt` names.
"""

from __future__ import annotations

import importlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

from agentkernel_kb.embed import OnnxEmbedder, SentenceTransformerEmbedder
from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.rag import Document, create_knowledge

library: Any = pytest.importorskip("sentence_transformers", reason="CI does not install PyTorch: see above")
pytestmark = pytest.mark.filterwarnings("default")  # Those of PyTorch and its friends are no faults of ours.

TEXT = "cat dog wing the a is on of puppy lift angle query passage : refund thirty days"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TEXT.split()]
MOST_TOKENS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the library wrote: a small BERT with random weights, and prompts for questions and passages."""
    return saved(tmp_path_factory.mktemp("model"), "mean", {"query": "query : ", "document": "passage : "}, None)


def saved(place: Path, pooling: str, prompts: dict[str, str], default_prompt: str | None) -> Path:
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    modules = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    torch.manual_seed(7)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    bert: Any = transformers.BertModel(transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, **shape))
    bert.save_pretrained(place / "bert")
    transformers.BertTokenizerFast(vocab={word: place for place, word in enumerate(WORDS)}).save_pretrained(place / "bert")
    words = modules.Transformer(str(place / "bert"), max_seq_length=MOST_TOKENS)
    parts = [words, modules.Pooling(16, pooling)]
    model = library.SentenceTransformer(modules=parts, device="cpu", prompts=prompts, default_prompt_name=default_prompt)
    model.save_pretrained(str(place / "saved"))
    return place / "saved"


def nearly(vector: list[float]) -> Any:
    return pytest.approx(vector, abs=1e-5)


def encoded(folder: Path, *texts: str) -> list[list[float]]:
    """Return what the library itself makes of texts, without a prompt of its own."""
    model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return model.encode(list(texts), prompt="", normalize_embeddings=True).tolist()


async def test_vectors_are_those_of_the_library_with_the_prompts_of_the_model(folder: Path):
    embedder = SentenceTransformerEmbedder(folder)
    question, passage = encoded(folder, "query : the cat", "passage : the cat")
    assert await embedder.embed_query("the cat") == nearly(question)
    assert await embedder.embed_documents(["a wing", "the cat", ""]) == [nearly(each) for each in encoded(
        folder, "passage : a wing", "passage : the cat", "passage : "
    )]  # fmt: skip
    assert (passage == nearly(question), embedder.dimensions) == (False, 16)


@pytest.mark.parametrize("default", [None, "query"])
async def test_prefixes_stand_in_place_of_every_prompt_of_the_model(tmp_path: Path, default: str | None):
    folder = saved(tmp_path, "mean", {"query": "query : ", "document": "passage : "}, default)
    embedder = SentenceTransformerEmbedder(folder, query_prefix="lift ", passage_prefix="wing ")
    question, passage = encoded(folder, "lift the cat", "wing the cat")
    assert await embedder.embed_query("the cat") == nearly(question)
    assert await embedder.embed_documents(["the cat"]) == [nearly(passage)]


async def test_lengths_and_tokens_are_as_asked_for(folder: Path):
    raw, short = SentenceTransformerEmbedder(folder, normalize=False), SentenceTransformerEmbedder(folder, max_tokens=7)
    assert math.hypot(*await raw.embed_query("cat")) > 1.1
    one, other = await short.embed_documents(["cat dog wing the", "cat dog wing puppy"])
    assert math.hypot(*one) == pytest.approx(1)
    assert one == nearly(other)
    assert len({SentenceTransformerEmbedder(folder).name, raw.name, short.name}) == 3


async def test_any_text_is_embedded_and_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]):
    vectors = await SentenceTransformerEmbedder(folder).embed_documents(["", "cat " * 5_000, "caf\udce9", "猫が寝ている", "\0"])
    assert [math.hypot(*each) for each in vectors] == [pytest.approx(1)] * 5
    assert capfd.readouterr() == ("", "")


async def test_a_corpus_is_searched_by_it_and_knows_the_model_by_its_files(folder: Path, tmp_path: Path):
    sources = [Document("the cat is on the dog", "cat.md"), Document("refund thirty days", "refund.md")]
    path, embedder = tmp_path / "kb.db", SentenceTransformerEmbedder(folder)
    async with create_knowledge("sqlite", path=path, sources=sources, embedder=embedder) as knowledge:
        assert [hit.source for hit in await knowledge.search("refund days", k=1)] == ["refund.md"]
    other = saved(tmp_path, "cls", {}, None)
    async with create_knowledge("sqlite", path=path, embedder=SentenceTransformerEmbedder(other)) as knowledge:
        with pytest.raises(AKConfigError, match=r"sentence-transformers:\w+.*reindex"):
            await knowledge.search("refund")


async def test_files_that_are_no_model_are_told_when_it_is_loaded(folder: Path, tmp_path: Path):
    (tmp_path / "modules.json").write_text("[]")
    (tmp_path / "torn").mkdir()
    for file in folder.glob("*.json"):
        (tmp_path / "torn" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "torn/model.safetensors").write_text("nothing")
    for place in (tmp_path / "torn", tmp_path):
        with pytest.raises(AKConfigError, match="is no model that can be loaded"):
            await SentenceTransformerEmbedder(place).embed_query("cat")


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_an_export_of_a_folder_that_it_writes_is_pooled_as_that_says(tmp_path: Path, pooling: str):
    folder = saved(tmp_path, pooling, {}, None)
    (folder / "model.onnx").write_text("{}")
    assert OnnxEmbedder(folder).name.split("|")[1:] == [pooling, "unit", str(MOST_TOKENS)]
    assert "pooling_mode" in json.loads((folder / "1_Pooling/config.json").read_text())
