"""Bi-encoders: gradients, layout of sentence-transformers, embeddings kept on disk."""

from __future__ import annotations

import json
import sqlite3
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.version import Version

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
import torch

from podium.errors import ArgumentError, DataError
from podium.losses.names import parse_loss
from podium.rankers import LinearRanker, RankingLoss, TextEmbedder, TextRanker
from podium.rankers.text_encoder import (
    embed,
    load_bi_encoder,
    load_cross_encoder,
    mini_batches,
    save_encoder,
    score_pairs,
    score_scale,
)
from podium.rankers.text_training import add_gradients
from tests.rankers.tiny_bert import gradients, one_graph_scores, save_tiny_bert, word_task

pytestmark = pytest.mark.usefixtures("one_thread")


def vectors(checkpoint: Path, texts: list[str], pooling: str = "mean") -> Any:
    """Means of the last layer over the tokens of each text, or its first token's; of length 1."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModel.from_pretrained(checkpoint).eval()
    with torch.inference_mode():
        states = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state for text in texts]
    parts = [state[0].mean(0) if pooling == "mean" else state[0, 0] for state in states]
    pooled = np.array([part.numpy() for part in parts])
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


TEXTS = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w1", ""]


def test_scores_are_scaled_cosines(checkpoint: Path, tmp_path: Path) -> None:
    expected = vectors(checkpoint, TEXTS)
    embedder = TextEmbedder(checkpoint)
    np.testing.assert_allclose(embedder.embed([*TEXTS, "w4"])[:4], expected, atol=1e-6)
    pairs = [(TEXTS[0], text) for text in TEXTS] + [(TEXTS[1], TEXTS[2])]
    cosines = [*(expected @ expected[0]), expected[1] @ expected[2]]
    np.testing.assert_allclose(embedder.similarity(pairs), cosines, atol=1e-6)
    scores = score_pairs(load_bi_encoder(checkpoint, 64), pairs, 2)
    np.testing.assert_allclose(scores, 20 * np.array(cosines), atol=1e-4)
    # A checkpoint that says that its vectors are compared by their dot product.
    save_tiny_bert(tmp_path)
    (tmp_path / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    encoder = load_bi_encoder(tmp_path, 64)
    dots = embed(encoder, TEXTS[:2], 2)
    scores = score_pairs(encoder, [(TEXTS[0], TEXTS[1])], 2)
    np.testing.assert_allclose(scores, [dots[0] @ dots[1]], rtol=1e-5)
    assert abs(np.linalg.norm(dots[0]) - 1) > 0.1


@pytest.mark.parametrize("loss", ["ListMLE(k=3)", "LambdaLoss(k=3)", "PairLogistic()"])
def test_gradients_are_those_of_one_graph(checkpoint: Path, loss: str) -> None:
    encoder = load_bi_encoder(checkpoint, 64)
    encoder.double().train(True)
    pairs, labels, _ = word_task(queries=1, documents=8)
    batches, rows = mini_batches(encoder, pairs, 3)
    torch.manual_seed(1)
    scores = torch.empty(len(pairs), dtype=torch.float64)
    scores[np.concatenate(rows)] = one_graph_scores(encoder, batches)
    RankingLoss(loss)(scores, labels, [0, 8]).backward()
    expected = gradients(encoder)
    encoder.zero_grad()
    torch.manual_seed(1)
    add_gradients(encoder, parse_loss(loss), pairs, labels, size=3)
    assert np.abs(gradients(encoder) - expected).max() <= 1e-9 * np.abs(expected).max()
    assert encoder.log_scale.grad != 0


def test_it_learns_and_is_saved_as_sentence_transformers_do(
    checkpoint: Path, tmp_path: Path
) -> None:
    pairs, labels, ids = word_task(12)
    ranker = TextRanker(
        checkpoint, "ListMLE(k=3)", architecture="bi-encoder", max_length=48, epochs=6,
        learning_rate=3e-3,
    )  # fmt: skip
    zero_shot = TextEmbedder(checkpoint).similarity(pairs)
    fitted = ranker.fit(pairs, labels, qid=ids)
    assert np.corrcoef(fitted.predict(pairs), labels)[0, 1] > 0.7
    assert np.corrcoef(zero_shot, labels)[0, 1] < 0.6
    fitted.save(tmp_path)
    loaded = TextRanker.load(tmp_path)
    np.testing.assert_allclose(loaded.predict(pairs), fitted.predict(pairs), atol=1e-5)
    types = [part["type"] for part in json.loads((tmp_path / "modules.json").read_text())]
    assert [each.rpartition(".")[2] for each in types] == ["Transformer", "Pooling", "Normalize"]
    assert "# A bi-encoder for ranking" in (tmp_path / "README.md").read_text()
    # Its cosines are a feature of other rankers.
    cosine = TextEmbedder(tmp_path, max_length=48).similarity(pairs)
    scale = score_scale(loaded.encoder_)
    np.testing.assert_allclose(scale * cosine, loaded.predict(pairs), atol=1e-4)
    linear = LinearRanker().fit(cosine[:, None], labels, qid=ids)
    assert linear.coef_[0] > 0


def test_a_fit_that_was_stopped_is_continued(checkpoint: Path, tmp_path: Path) -> None:
    pairs, labels, ids = word_task(4, 5)
    shown = np.arange(20) * 7 % 5
    options: dict[str, Any] = {"architecture": "bi-encoder", "max_length": 48, "epochs": 3}

    def stop(step: int, _loss: float, _value: float | None) -> None:
        if step == 2:
            raise KeyboardInterrupt

    whole = TextRanker(checkpoint, **options).fit(pairs, labels, qid=ids, position=shown)
    kept = TextRanker(checkpoint, checkpoint_folder=tmp_path, **options)
    with pytest.raises(KeyboardInterrupt):
        kept.fit(pairs, labels, qid=ids, position=shown, progress=stop)
    kept.fit(pairs, labels, qid=ids, position=shown)  # its scale is an array without dimensions
    np.testing.assert_array_equal(kept.predict(pairs), whole.predict(pairs))
    assert kept.position_bias_ == whole.position_bias_


def test_embeddings_are_kept(checkpoint: Path, tmp_path: Path) -> None:
    first = TextEmbedder(checkpoint, cache_folder=tmp_path)
    texts = ["w1", "w2 w3", "half \ud83d"]
    embedded = first.embed(texts)
    (file,) = tmp_path.iterdir()
    with sqlite3.connect(file) as cache:
        assert cache.execute("SELECT count(*) FROM embeddings").fetchone() == (3,)
        # What is there is not computed again.
        cache.execute("UPDATE embeddings SET vector = ?", (np.ones(32, np.float32).tobytes(),))
    cache.close()
    again = TextEmbedder(checkpoint, cache_folder=tmp_path).embed([*texts, "w9"])
    assert (again[:3] == 1).all()
    np.testing.assert_allclose(again[3], TextEmbedder(checkpoint).embed(["w9"])[0], atol=1e-6)
    # Other lengths give other vectors, and so does another model.
    other = TextEmbedder(checkpoint, cache_folder=tmp_path, max_length=5).embed(texts)
    np.testing.assert_allclose(other[0], embedded[0], atol=1e-6)
    assert len(list(tmp_path.iterdir())) == 2
    file.write_bytes(b"not a database, but long enough to be one " * 99)
    with pytest.raises(DataError, match="is not a cache of embeddings"):
        TextEmbedder(checkpoint, cache_folder=tmp_path).embed(["w1"])
    assert first.embed([]).shape == (0, 32)


def test_embeddings_are_kept_by_all_that_they_depend_on(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    cache = tmp_path / "cache"
    config = BertConfig.from_pretrained(save_tiny_bert(tmp_path / "bert"))
    # Without a pooler, one is drawn, though nothing reads it.
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertModel(config, add_pooling_layer=False).save_pretrained(tmp_path / "bert")
    expected = TextEmbedder(tmp_path / "bert").embed(["w1 w2 w3"])
    for _ in range(2):
        torch.rand(1)
        state = torch.random.get_rng_state()
        embedder = TextEmbedder(tmp_path / "bert", cache_folder=cache)
        np.testing.assert_array_equal(embedder.embed(["w1 w2 w3"]), expected)
        assert torch.equal(torch.random.get_rng_state(), state)
    assert len(list(cache.iterdir())) == 1
    (tmp_path / "bert").rename(tmp_path / "moved")
    TextEmbedder(tmp_path / "moved", cache_folder=cache)
    assert len(list(cache.iterdir())) == 1
    # The same weights with other heads of attention are another model.
    content = json.loads((tmp_path / "moved" / "config.json").read_text())
    (tmp_path / "moved" / "config.json").write_text(
        json.dumps({**content, "num_attention_heads": 4})
    )
    other = TextEmbedder(tmp_path / "moved", cache_folder=cache).embed(["w1 w2 w3"])
    assert len(list(cache.iterdir())) == 2
    assert np.abs(other - expected).max() > 1e-6


def write_layout(folder: Path, *kinds: str, pooling: str = "1_Pooling", mode: str = "cls") -> None:
    parts = [
        {"idx": at, "name": str(at), "type": f"sentence_transformers.models.{kind}", "path": ""}
        for at, kind in enumerate(kinds)
    ]
    parts[1]["path"] = pooling
    (folder / "modules.json").write_text(json.dumps(parts))
    if mode:
        (folder / pooling).mkdir(exist_ok=True)
        modes = {f"pooling_mode_{each}": mode in each for each in ("cls_token", "mean_tokens")}
        content = {"word_embedding_dimension": 32, **modes}
        (folder / pooling / "config.json").write_text(json.dumps(content))


def test_vectors_are_normalized_if_the_layout_says_so(tmp_path: Path) -> None:
    save_tiny_bert(tmp_path)
    write_layout(tmp_path, "Transformer", "Pooling", "Normalize")
    (tmp_path / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    encoder = load_bi_encoder(tmp_path, 64)
    first = vectors(tmp_path, TEXTS, pooling="cls")
    np.testing.assert_allclose(embed(encoder, TEXTS, 2), first, atol=1e-6)
    dots = score_pairs(encoder, [(TEXTS[0], TEXTS[1])], 2)
    np.testing.assert_allclose(dots, [first[0] @ first[1]], rtol=1e-5)
    save_encoder(encoder, tmp_path / "saved")
    parts = json.loads((tmp_path / "saved" / "modules.json").read_text())
    assert parts[-1]["type"].endswith(".Normalize")


@pytest.mark.skipif(
    Version(version("huggingface_hub")) < Version("1"),
    reason="older ones copy the place of the cache at import",
)
def test_a_checkpoint_by_its_name_has_its_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0" * 40
    cached = tmp_path / "models--someone--encoder"
    folder = cached / "snapshots" / commit
    folder.mkdir(parents=True)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    save_tiny_bert(folder)
    write_layout(folder, "Transformer", "Pooling")
    (folder / "config_sentence_transformers.json").write_text("{}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    named = TextEmbedder("someone/encoder").embed(TEXTS)
    np.testing.assert_array_equal(named, TextEmbedder(folder).embed(TEXTS))
    (folder / "1_Pooling" / "config.json").write_text(
        '{"word_embedding_dimension": 32, "pooling_mode_mean_tokens": true}'
    )
    assert np.abs(named - TextEmbedder(folder).embed(TEXTS)).max() > 0.01


def test_where_the_pooling_is(tmp_path: Path) -> None:
    save_tiny_bert(tmp_path / "bert")
    for mode in ("cls", "mean"):
        write_layout(tmp_path / "bert", "Transformer", "Pooling", pooling=f"by_{mode}", mode=mode)
        assert load_bi_encoder(tmp_path / "bert", 64)[1].pooling_mode == mode
    for folder, message in (("../other", "Invalid model path"), ("9", "embedding_dimension")):
        write_layout(tmp_path / "bert", "Transformer", "Pooling", pooling=folder, mode="")
        with pytest.raises(DataError, match=message):
            load_bi_encoder(tmp_path / "bert", 64)


def test_a_cross_encoder_takes_the_folder_of_a_bi_encoder(checkpoint: Path, tmp_path: Path) -> None:
    save_encoder(load_bi_encoder(checkpoint, 48), tmp_path)
    parts = [len(json.loads((tmp_path / "modules.json").read_text()))]
    save_encoder(load_cross_encoder(tmp_path, 48), tmp_path)
    parts.append(len(json.loads((tmp_path / "modules.json").read_text())))
    assert parts == [3, 1]
    assert len(load_bi_encoder(tmp_path, 48)) == 3  # and the other way round


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "has a module Dense"),
        ("1_Pooling/config.json", {"pooling_mode": "min", "embedding_dimension": 32}, "'min'"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "euclidean"}, "euclidean"),
        ("config_sentence_transformers.json", {"podium_scale": -1}, "has the scale -1.0"),
        ("config_sentence_transformers.json", [1], "is not a checkpoint that can be loaded"),
        ("1_Pooling/config.json", [1], "is not a checkpoint that can be loaded"),
    ],
)
def test_other_layouts_are_refused(tmp_path: Path, name: str, content: Any, message: str) -> None:
    save_tiny_bert(tmp_path)
    write_layout(tmp_path, "Transformer", "Pooling")
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        TextEmbedder(tmp_path)


def test_other_architectures_are_refused(checkpoint: Path) -> None:
    with pytest.raises(ArgumentError, match="architecture is 'tri-encoder'"):
        TextRanker(checkpoint, architecture="tri-encoder").fit([("a", "b")], [1], group=[1])  # type: ignore[arg-type]


def test_what_cannot_be_embedded_is_refused(checkpoint: Path) -> None:
    embedder = TextEmbedder(checkpoint)
    for wrong in ("w1", ["w1", None]):
        with pytest.raises(DataError, match="a text that is not a string"):
            embedder.embed(wrong)  # type: ignore[arg-type]
    for name in ("max_length", "mini_batch_size"):
        wrong_sizes: dict[str, Any] = {name: 0}
        with pytest.raises(ArgumentError, match=f"{name} is 0"):
            TextEmbedder(checkpoint, **wrong_sizes)
    with pytest.raises(ArgumentError, match="device 'tpu' cannot be used"):
        TextEmbedder(checkpoint, device="tpu")
