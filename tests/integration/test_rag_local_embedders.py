"""Embedders of models on this machine (P4): MiniLM in ONNX's format, as a package ships it, and a Model2Vec model made here."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path

import pytest

from agentkernel_kb.config import load
from agentkernel_kb.embed import (
    CallableEmbedder,
    HashEmbedder,
    Model2VecEmbedder,
    OnnxEmbedder,
    SentenceTransformerEmbedder,
    named_embedder,
)
from agentkernel_kb.errors import AKConfigError, KnowledgeDependencyError
from agentkernel_kb.rag import Document, RAGManager, create_knowledge

WORDS = {"[UNK]": [0.0, 0.0], "cat": [1.0, 0.0], "dog": [0.8, 0.6], "wing": [0.0, 1.0]}
PETS, WINGS = "A puppy is asleep.", "The lift of a wing grows with its angle."


@pytest.fixture(scope="module")
def minilm(minilm_model: Path) -> OnnxEmbedder:
    return OnnxEmbedder(minilm_model, max_tokens=64, threads=1)


@pytest.fixture
def static(tmp_path: Path) -> Path:
    """A folder that Model2Vec wrote: the vector of a text is the mean of those of its words."""
    import numpy
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()  # pyright: ignore[reportAttributeAccessIssue] - its stubs know no setter
    StaticModel(numpy.array(list(WORDS.values()), numpy.float32), tokenizer).save_pretrained(tmp_path / "static")
    return tmp_path / "static"


def files(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


def likeness(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.server("minilm")
async def test_a_model_finds_what_means_the_same_in_other_words(minilm: OnnxEmbedder) -> None:
    pets, wings = await minilm.embed_documents([PETS, WINGS])
    asked = await minilm.embed_query("young dogs that sleep")
    assert likeness(asked, pets) > 0.5 > 0.2 > likeness(asked, wings)
    assert (len(pets), minilm.dimensions) == (384, 384)
    assert likeness(pets, pets) == pytest.approx(1)


@pytest.mark.server("minilm")
async def test_a_text_has_one_vector_whatever_it_is_embedded_with(minilm: OnnxEmbedder) -> None:
    texts = [WINGS * 5, PETS, "", f"\ud800 {PETS}", "翼"]
    together = await minilm.embed_documents(texts)
    for text, vector in zip(texts, together, strict=True):
        assert await minilm.embed_query(text) == pytest.approx(vector, abs=1e-5)


@pytest.mark.server("minilm")
async def test_what_is_longer_than_the_model_takes_is_cut(minilm: OnnxEmbedder) -> None:
    long = "wing " * 62  # And two marks, one at each end.
    cut, longer = await minilm.embed_documents([long, f"{long} {PETS * 1_000}"])
    assert longer == pytest.approx(cut, abs=1e-5)


@pytest.mark.server("minilm")
async def test_prefixes_and_pooling_decide_the_vectors(minilm: OnnxEmbedder, minilm_model: Path) -> None:
    prefixed = OnnxEmbedder(minilm_model, max_tokens=64, threads=1, query_prefix="query: ", passage_prefix="passage: ")
    assert await prefixed.embed_query("wing") == pytest.approx(await minilm.embed_query("query: wing"), abs=1e-5)
    assert (await prefixed.embed_documents(["wing"]))[0] == pytest.approx(await minilm.embed_query("passage: wing"), abs=1e-5)
    first = OnnxEmbedder(minilm_model / "model.onnx", pooling="cls", max_tokens=64, threads=1)
    assert likeness(await first.embed_query(WINGS), await minilm.embed_query(WINGS)) < 0.99


@pytest.mark.server("minilm")
async def test_a_corpus_is_searched_by_meaning_and_refuses_another_model(minilm: OnnxEmbedder, tmp_path: Path) -> None:
    sources = [Document(PETS, "pets.md"), Document(WINGS, "wings.md")]
    async with create_knowledge("sqlite", path=tmp_path / "kb.db", sources=sources, embedder=minilm) as knowledge:
        hits = await knowledge.search("young dogs that sleep", k=1)
        assert [hit.source for hit in hits] == ["pets.md"]
        assert knowledge.search_mode == "semantic"
    async with create_knowledge("sqlite", path=tmp_path / "kb.db", embedder=HashEmbedder()) as other:
        with pytest.raises(AKConfigError, match=r"onnx:.*hash-384"):
            await other.search("wing")


async def test_static_vectors_are_those_of_the_library(static: Path) -> None:
    embedder = Model2VecEmbedder(static)
    texts = ["dog wing", "cat", "nobody knows this", ""]
    assert await embedder.embed_documents(texts) == [pytest.approx(each) for each in ([0.4, 0.8], [1, 0], [0, 0], [0, 0])]
    assert await embedder.embed_queries(["cat"]) == [[1.0, 0.0]]
    assert await Model2VecEmbedder(static, max_tokens=1).embed_query("cat wing") == [1.0, 0.0]
    assert embedder.dimensions == 2


async def test_an_object_that_encodes_is_a_function_for_the_callable_embedder(static: Path) -> None:
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(static)
    assert await CallableEmbedder(model.encode, model_id="pets-1").embed_documents(["cat", "wing"]) == [[1, 0], [0, 1]]


def test_a_model_is_known_by_its_files_and_settings_and_not_by_its_place(tmp_path: Path) -> None:
    one = files(tmp_path / "one", "model.onnx", "tokenizer.json")
    other = files(tmp_path / "other/onnx", "model.onnx").parent
    files(other, "tokenizer.json")
    assert OnnxEmbedder(one).name == OnnxEmbedder(other).name
    different = [
        OnnxEmbedder(one, pooling="cls"),
        OnnxEmbedder(one, normalize=False),
        OnnxEmbedder(one, max_tokens=128),
        OnnxEmbedder(one, query_prefix="query: "),
        OnnxEmbedder(one, passage_prefix="query: "),
    ]
    (one / "model.onnx_data").write_text("weights")
    different.append(OnnxEmbedder(one))
    assert len({each.name for each in different} | {OnnxEmbedder(other).name}) == 7


def test_static_vectors_are_known_by_all_of_their_files(static: Path) -> None:
    before = Model2VecEmbedder(static).name
    (static / "README.md").write_text("changed")
    assert Model2VecEmbedder(static).name == before
    (static / "config.json").write_text("{}")
    assert Model2VecEmbedder(static).name != before


@pytest.mark.parametrize(("modes", "found"), [({"mean_tokens": True}, "mean"), ({"cls_token": True}, "cls"), ({}, "mean")])
def test_a_folder_says_how_its_vectors_are_pooled_and_where_texts_end(tmp_path: Path, modes, found) -> None:
    folder = files(tmp_path, "model.onnx", "tokenizer.json", "1_Pooling/config.json")
    said = ", ".join(f'"pooling_mode_{mode}": true' for mode in modes)
    (folder / "1_Pooling/config.json").write_text(f"{{{said}}}")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 256}')
    assert OnnxEmbedder(folder).name.split("|")[1:] == [found, "unit", "256"]


@pytest.mark.parametrize(
    ("made", "options", "message"),
    [
        ((), {}, "no model.onnx and no onnx/model.onnx"),
        (("model.onnx",), {}, "no tokenizer at"),
        (("model.onnx", "tokenizer.json"), {"tokenizer": "nowhere.json"}, "no tokenizer at nowhere.json"),
        (("model.onnx", "tokenizer.json"), {"pooling": "max"}, "mean, cls"),
        (("model.onnx", "tokenizer.json"), {"batch_size": 0}, "batch_size"),
        (("model.onnx", "tokenizer.json"), {"threads": 0}, "threads"),
        (("model.onnx", "tokenizer.json"), {"max_tokens": True}, "max_tokens"),
    ],
    ids=["no model", "no tokenizer", "other tokenizer", "pooling", "batch", "threads", "tokens"],
)
def test_a_model_that_is_not_there_is_refused_before_anything_is_embedded(tmp_path: Path, made, options, message) -> None:
    with pytest.raises(AKConfigError, match=message):
        OnnxEmbedder(files(tmp_path, *made), **options)


@pytest.mark.parametrize(("mode", "limit", "found"), [("cls", 24, ["cls", "24"]), ("mean", 10**30, ["mean", "512"])])
def test_a_folder_says_so_in_the_words_of_later_versions_too(tmp_path: Path, mode: str, limit: int, found: list[str]) -> None:
    folder = files(tmp_path, "model.onnx", "tokenizer.json", "1_Pooling/config.json")
    (folder / "1_Pooling/config.json").write_text(json.dumps({"embedding_dimension": 16, "pooling_mode": mode}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": limit}))
    assert OnnxEmbedder(folder).name.split("|")[1::2] == found


@pytest.mark.parametrize("said", [{"pooling_mode_lasttoken": True}, {"pooling_mode": "lasttoken"}], ids=["old", "new"])
def test_a_way_of_pooling_that_is_not_known_is_refused_by_name(tmp_path: Path, said: dict[str, object]) -> None:
    folder = files(tmp_path, "model.onnx", "tokenizer.json", "1_Pooling/config.json")
    (folder / "1_Pooling/config.json").write_text(json.dumps(said))
    with pytest.raises(AKConfigError, match="pools by lasttoken"):
        OnnxEmbedder(folder)
    assert OnnxEmbedder(folder, pooling="mean").dimensions is None


async def test_files_that_are_no_model_are_told_when_it_is_loaded(static: Path, tmp_path: Path) -> None:
    with pytest.raises(AKConfigError, match=r"model\.onnx is no ONNX model"):
        OnnxEmbedder(files(tmp_path / "one", "model.onnx", "tokenizer.json")).load()
    (static / "model.safetensors").write_text("nothing")
    with pytest.raises(AKConfigError, match="no model of Model2Vec"):
        await Model2VecEmbedder(static).embed_query("cat")


@pytest.mark.parametrize("kind", [OnnxEmbedder, Model2VecEmbedder, SentenceTransformerEmbedder])
def test_a_file_that_cannot_be_read_is_named(kind, tmp_path: Path) -> None:
    folder = files(tmp_path, "tokenizer.json", "modules.json")
    for name in ("model.onnx", "model.safetensors"):
        (folder / name).symlink_to("/proc/self/mem")  # A file that is there, and whose beginning nobody may read.
    with pytest.raises(AKConfigError, match=rf"The model's file {folder}/model\.\w+ cannot be read: Input/output error"):
        _ = kind(folder).name


@pytest.mark.parametrize("kind", [OnnxEmbedder, Model2VecEmbedder, SentenceTransformerEmbedder])
def test_a_name_of_a_published_model_is_never_downloaded(kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AKConfigError, match="never downloaded"):
        kind("minishlab/potion-base-8M")
    (tmp_path / "minishlab/potion-base-8M").mkdir(parents=True)
    with pytest.raises(AKConfigError, match="has no"):
        kind("minishlab/potion-base-8M")


@pytest.mark.parametrize(
    ("kind", "package", "extra"),
    [
        (OnnxEmbedder, "onnxruntime", "onnx"),
        (Model2VecEmbedder, "model2vec", "model2vec"),
        (SentenceTransformerEmbedder, "sentence_transformers", "sentence-transformers"),
    ],
    ids=["onnx", "model2vec", "sentence-transformers"],
)
async def test_a_missing_library_names_its_extra(kind, package, extra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = files(tmp_path, "model.onnx", "tokenizer.json", "model.safetensors", "modules.json")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(KnowledgeDependencyError, match=rf"agentkernel-kb\[{extra}\]"):
        await kind(folder).embed_documents(["text"])


def test_an_embedder_has_a_short_name(static: Path, tmp_path: Path) -> None:
    assert isinstance(named_embedder("hash"), HashEmbedder)
    assert isinstance(named_embedder(f"model2vec:{static}"), Model2VecEmbedder)
    assert isinstance(named_embedder(f"onnx:{files(tmp_path / 'm', 'model.onnx', 'tokenizer.json')}"), OnnxEmbedder)
    for wrong, message in (("onxx:m", "Did you mean 'onnx'"), ("onnx", "onnx:PATH"), ("hash:5", "Known"), ("", "Known")):
        with pytest.raises(AKConfigError, match=message):
            named_embedder(wrong)


def test_a_model_is_copied_with_its_folder(static: Path, tmp_path: Path) -> None:
    shutil.copytree(static, tmp_path / "copy")
    assert Model2VecEmbedder(tmp_path / "copy").name == Model2VecEmbedder(static).name


def test_kb_yaml_names_a_model_by_a_path_from_its_own_folder(static: Path, tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text(
        f"backends:\n  pets: {{type: knowledge, embedder: 'model2vec:{static.name}', sources: ['a cat', 'a wing']}}\n"
    )
    with load(tmp_path / "kb.yaml") as loaded:
        tools = {tool.__name__: tool for tool in loaded.tools()}
        assert json.loads(tools["get_schemas"]())["pets"]["capabilities"]["search_mode"] == "semantic"
        assert tools["search_kb"]("pets", "wing", 1).startswith("- ")


def test_a_manager_tells_which_embedders_there_are() -> None:
    with pytest.raises(AKConfigError, match=r"'onx:.*Did you mean 'onnx'\?"):
        RAGManager(embedder="onx:model")
