"""Bi-encoders: gradients, layout of sentence-transformers, embeddings kept on disk."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
import torch

from podium.errors import ArgumentError, DataError
from podium.losses import parse_loss
from podium.rankers import LinearRanker, RankingLoss, TextEmbedder, TextRanker
from podium.rankers.text_bi_encoder import BiEncoder
from podium.rankers.text_cross_encoder import CrossEncoder
from podium.rankers.text_gradients import accumulate_gradients, mean_loss
from tests.rankers.tiny_bert import save_tiny_bert, word_task


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def vectors(checkpoint: Path, texts: list[str]) -> Any:
    """Means of the last layer over the tokens of each text alone, of length 1."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModel.from_pretrained(checkpoint).eval()
    with torch.inference_mode():
        states = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state for text in texts]
    means = np.array([state[0].mean(0).numpy() for state in states])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


TEXTS = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w1", ""]


def test_scores_are_scaled_cosines(checkpoint: Path, tmp_path: Path) -> None:
    expected = vectors(checkpoint, TEXTS)
    embedder = TextEmbedder(checkpoint)
    np.testing.assert_allclose(embedder.embed([*TEXTS, "w4"])[:4], expected, atol=1e-6)
    pairs = [(TEXTS[0], text) for text in TEXTS] + [(TEXTS[1], TEXTS[2])]
    cosines = [*(expected @ expected[0]), expected[1] @ expected[2]]
    np.testing.assert_allclose(embedder.similarity(pairs), cosines, atol=1e-6)
    encoder = BiEncoder.load(checkpoint, 64)
    np.testing.assert_allclose(encoder.predict(pairs, 2), 20 * np.array(cosines), atol=1e-4)
    # A checkpoint that says that its vectors are compared by their dot product.
    save_tiny_bert(tmp_path)
    (tmp_path / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    dots = BiEncoder.load(tmp_path, 64).embed(TEXTS[:2], 2)
    np.testing.assert_allclose(
        BiEncoder.load(tmp_path, 64).predict([(TEXTS[0], TEXTS[1])], 2), [dots[0] @ dots[1]],
        rtol=1e-5,
    )  # fmt: skip
    assert abs(np.linalg.norm(dots[0]) - 1) > 0.1


@pytest.mark.parametrize("loss", ["ListMLE(k=3)", "LambdaLoss(k=3)", "PairLogistic()"])
def test_gradients_are_those_of_one_graph(checkpoint: Path, loss: str) -> None:
    encoder = BiEncoder.load(checkpoint, 64)
    encoder.module.double().train(True)
    pairs, labels, _ = word_task(queries=1, documents=8)
    batches, rows = encoder.mini_batches(pairs, 3)
    torch.manual_seed(1)
    scores = torch.empty(len(pairs), dtype=torch.float64)
    scores[np.concatenate(rows)] = torch.cat([encoder.score(batch) for batch in batches])
    RankingLoss(loss)(scores, labels, [0, 8]).backward()
    expected = _gradients(encoder)
    encoder.module.zero_grad()
    torch.manual_seed(1)
    accumulate_gradients(
        encoder.score, batches, rows, mean_loss(parse_loss(loss), labels, [0, 8], 1)
    )
    assert np.abs(_gradients(encoder) - expected).max() <= 1e-9 * np.abs(expected).max()
    assert encoder.module.log_scale.grad != 0


def _gradients(encoder: BiEncoder) -> Any:
    gradients = [each.grad for each in encoder.module.parameters() if each.grad is not None]
    return np.concatenate([gradient.numpy().reshape(-1) for gradient in gradients])


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
    scale = float(loaded.encoder_.module.log_scale.detach().exp())
    np.testing.assert_allclose(scale * cosine, loaded.predict(pairs), atol=1e-4)
    linear = LinearRanker().fit(cosine[:, None], labels, qid=ids)
    assert linear.coef_[0] > 0


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


def test_a_cross_encoder_takes_the_folder_of_a_bi_encoder(checkpoint: Path, tmp_path: Path) -> None:
    BiEncoder.load(checkpoint, 48).save(tmp_path)
    assert (tmp_path / "modules.json").is_file()
    CrossEncoder.load(checkpoint, 48, seed=0).save(tmp_path)
    assert not (tmp_path / "modules.json").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "has a module Dense"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "pools by max"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "euclidean"}, "euclidean"),
        ("config_sentence_transformers.json", {"podium_scale": -1}, "has the scale -1.0"),
    ],
)
def test_other_layouts_are_refused(tmp_path: Path, name: str, content: Any, message: str) -> None:
    save_tiny_bert(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        TextEmbedder(tmp_path)


def test_other_architectures_are_refused(checkpoint: Path) -> None:
    with pytest.raises(ArgumentError, match="architecture is 'tri-encoder'"):
        TextRanker(checkpoint, architecture="tri-encoder").fit([("a", "b")], [1], group=[1])  # type: ignore[arg-type]
