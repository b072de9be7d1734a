"""Podium's losses in sentence-transformers, and Podium's text rankers loaded by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")
import torch

from podium.errors import DataError
from podium.rankers import CrossEncoderLoss, RankingLoss, TextRanker
from podium.rankers.text_encoder import score_scale
from tests.rankers.tiny_bert import gradients, word_task

pytestmark = pytest.mark.filterwarnings("default")


def peer(folder: Path) -> Any:
    from sentence_transformers.cross_encoder import CrossEncoder

    torch.manual_seed(0)
    return CrossEncoder(str(folder), num_labels=1, max_length=48, device="cpu")


def lists(queries: int, documents: int) -> dict[str, list[Any]]:
    pairs, labels, _ = word_task(queries, documents)
    rows = [slice(documents * query, documents * (query + 1)) for query in range(queries)]
    return {
        "query": [pairs[each][0][0] for each in rows],
        "docs": [[document for _, document in pairs[each]] for each in rows],
        "labels": [labels[each].astype(float).tolist() for each in rows],
    }


def test_the_gradient_is_that_of_one_graph(checkpoint: Path) -> None:
    model = peer(checkpoint)
    model.double().eval()  # rounding would hide small errors; no dropout
    content = lists(2, 5)
    labels = [torch.tensor(each) for each in content["labels"]]
    inputs = [content["query"], content["docs"]]
    value = CrossEncoderLoss(model, "ListMLE(k=3)", mini_batch_size=3)(inputs, labels)
    value.backward()
    ours = gradients(model)
    model.zero_grad()
    pairs = [(query, each) for query, own in zip(*inputs, strict=True) for each in own]
    scores = model(model.preprocess(pairs))["scores"].reshape(-1)
    expected = RankingLoss("ListMLE(k=3)")(scores, torch.cat(labels), [0, 5, 10])
    expected.backward()
    assert float(value.detach()) == pytest.approx(float(expected.detach()), rel=1e-9)
    np.testing.assert_allclose(ours, gradients(model), atol=1e-9 * np.abs(ours).max())


def test_labels_are_those_of_their_query(checkpoint: Path) -> None:
    loss = CrossEncoderLoss(peer(checkpoint), "ListMLE(k=3)")
    labels = [torch.tensor([1.0, 0.0, 2.0]), torch.tensor([1.0, 0.0])]
    with pytest.raises(DataError, match="a query has 2 documents and 3 labels"):
        loss([["w1", "w2"], [["w1", "w3"], ["w4", "w5", "w6"]]], labels)


def test_its_trainer_trains_with_a_loss_of_podium(checkpoint: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="of the extra weights, which CI does not install")
    Dataset = pytest.importorskip("datasets", reason="of the extra weights").Dataset
    from sentence_transformers.cross_encoder import (
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )

    model = peer(checkpoint)
    pairs, labels, _ = word_task(20, 6)
    before = np.corrcoef(model.predict(pairs), labels)[0, 1]
    arguments = CrossEncoderTrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=6, per_device_train_batch_size=4,
        learning_rate=3e-3, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_dict(lists(20, 6)),
        loss=CrossEncoderLoss(model, "ListMLE(k=3)", mini_batch_size=8),
    )  # fmt: skip
    trainer.train()
    assert np.corrcoef(model.predict(pairs), labels)[0, 1] > max(0.7, before)


def test_it_loads_what_podium_saved(checkpoint: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.cross_encoder import CrossEncoder

    pairs, labels, ids = word_task(4, 5)
    # The model itself would take 64 tokens.
    pairs[0] = ("w0 w1", "w2 w3 " * 24 + "w0 " * 24)
    for architecture in ("cross-encoder", "bi-encoder"):
        ranker = TextRanker(
            checkpoint, architecture=architecture, max_length=48, epochs=1, learning_rate=1e-3
        )
        ranker.fit(pairs, labels, qid=ids).save(tmp_path / architecture)
        expected = ranker.predict(pairs)
        if architecture == "cross-encoder":
            loaded = CrossEncoder(str(tmp_path / architecture), device="cpu")
            np.testing.assert_allclose(loaded.predict(pairs), expected, atol=1e-5)
        else:
            embedder = SentenceTransformer(str(tmp_path / architecture), device="cpu")
            queries, documents = (
                embedder.encode([pair[side] for pair in pairs]) for side in (0, 1)
            )
            cosines = score_scale(ranker.encoder_) * (queries * documents).sum(1)
            np.testing.assert_allclose(cosines, expected, atol=1e-4)
