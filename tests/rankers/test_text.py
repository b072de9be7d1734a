"""Rankers of texts: exact gradients, what is learned, files, interruptions, hostile texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
import torch

from podium.errors import ArgumentError, DataError
from podium.losses import Loss
from podium.losses.names import loss_names, parse_loss
from podium.rankers import TextRanker, out_of_fold_scores
from podium.rankers.base import FitInterrupted, NotFittedError
from podium.rankers.storage import Archive, read_archive, write_archive
from podium.rankers.text_encoder import load_cross_encoder, mini_batches, score_pairs
from podium.rankers.text_training import add_gradients
from tests.rankers.tiny_bert import (
    WORDS,
    gradients,
    one_graph_scores,
    save_tiny_bert,
    word_task,
)

pytestmark = pytest.mark.usefixtures("one_thread")

LOSSES = [name for name in loss_names() if name != "Focused"] + ["Focused(ListNet, PairLogistic)"]


@pytest.mark.parametrize("training", [True, False], ids=["dropout", "no dropout"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_one_graph(checkpoint: Path, loss: str, training: bool) -> None:
    encoder = load_cross_encoder(checkpoint, 64)
    encoder.double().train(training)  # or rounding would hide small errors
    pairs, labels, _ = word_task(queries=1, documents=11)
    parsed = parse_loss(loss)
    batches, rows = mini_batches(encoder, pairs, 3)
    assert len(batches) == 4
    torch.manual_seed(1)
    whole = torch.empty(len(pairs), dtype=torch.float64)
    whole[np.concatenate(rows)] = one_graph_scores(encoder, batches)
    value = _one_graph_loss(parsed, whole, labels)
    value.backward()  # type: ignore[no-untyped-call]
    expected = gradients(encoder)
    encoder.zero_grad()
    torch.manual_seed(1)
    total = add_gradients(encoder, parsed, pairs, labels, size=3).total
    assert total == pytest.approx(float(value.detach()), rel=1e-9)
    assert np.abs(gradients(encoder) - expected).max() <= 1e-9 * np.abs(expected).max()
    assert np.abs(expected).max() > 0


def _one_graph_loss(loss: Loss, scores: Any, labels: Any) -> Any:
    from podium.rankers import RankingLoss

    return RankingLoss(loss)(scores, labels, [0, len(labels)])


def ranker(checkpoint: Path, **parameters: Any) -> TextRanker:
    settings = {"max_length": 48, "mini_batch_size": 4, "epochs": 4, "learning_rate": 3e-3}
    return TextRanker(checkpoint, **{**settings, **parameters})


def test_a_fit_with_other_offsets_is_not_continued(checkpoint: Path, tmp_path: Path) -> None:
    pairs, labels, ids = word_task(4)
    shown = np.arange(len(pairs)) % 6
    parameters: dict[str, Any] = {"epochs": 1, "checkpoint_folder": tmp_path}
    ranker(checkpoint, **parameters).fit(pairs, labels, qid=ids, position=shown)
    for options in (
        {},
        {"position": shown[::-1]},
        {"position": shown, "position_regularization": 1},
    ):
        with pytest.raises(DataError, match="to other rows"):
            ranker(checkpoint, **parameters).fit(pairs, labels, qid=ids, **options)


def test_offsets_of_ranks_are_learned_with_the_scores(checkpoint: Path) -> None:
    pairs, labels, ids = word_task(30)
    rng = np.random.default_rng(0)
    shown = np.argsort(np.argsort(-labels.reshape(-1, 6) + rng.normal(scale=2, size=(30, 6))))
    shown = shown.ravel() + 1
    seen = labels - 2.0 * shown  # what was shown first looks good
    order = rng.permutation(len(pairs))
    rows = [pairs[row] for row in order]
    fitted = ranker(checkpoint, loss="SquaredError()", epochs=20)
    fitted.fit(rows, seen[order], qid=ids[order], position=shown[order])
    bias = list(fitted.position_bias_.values())
    assert list(fitted.position_bias_) == ["1", "2", "3", "4", "5", "6"]
    assert bias == sorted(bias, reverse=True)
    assert bias[-1] < -3  # -10 are in the labels; networks move offsets slowly
    naive = ranker(checkpoint, loss="SquaredError()", epochs=20).fit(pairs, seen, qid=ids)
    assert naive.position_bias_ == {}
    new_pairs, new_labels, new_ids = word_task(20, seed=1)
    scores = [each.score(new_pairs, new_labels, qid=new_ids) for each in (fitted, naive)]
    assert scores[0] >= scores[1]
    with pytest.raises(ArgumentError, match="offsets of ranks are regularized"):
        ranker(checkpoint).fit(pairs, labels, qid=ids, position_regularization=1.0)


def test_it_learns_what_makes_a_document_good(checkpoint: Path) -> None:
    pairs, labels, ids = word_task(30)
    fitted = ranker(checkpoint, loss="ListMLE(k=3)", epochs=8).fit(pairs, labels, qid=ids)
    new_pairs, new_labels, new_ids = word_task(20, seed=1)
    assert fitted.score(new_pairs, new_labels, qid=new_ids) > 0.93
    untrained = ranker(checkpoint, epochs=1, learning_rate=1e-12).fit(pairs, labels, qid=ids)
    assert untrained.score(new_pairs, new_labels, qid=new_ids) < 0.85


def test_steps_are_those_of_adamw(checkpoint: Path) -> None:
    """Its first step moves a weight by the rate, after its decay, whatever the gradient is."""
    pairs, labels, _ = word_task(1, 4)
    before = load_cross_encoder(checkpoint, 48).transformers_model

    def stop(_step: int, _loss: float, _value: float | None) -> None:
        raise KeyboardInterrupt

    def moved(**parameters: Any) -> tuple[float, float]:
        """How far the head moved at most, and what a weight of the layer norm has become."""
        fitted = ranker(checkpoint, learning_rate=1e-3, **parameters)
        with pytest.raises(FitInterrupted):
            fitted.fit(pairs, labels, group=[4], progress=stop)
        module = fitted.encoder_.transformers_model
        head = (module.classifier.weight - before.classifier.weight).detach().abs().max()
        norm = module.bert.embeddings.LayerNorm.weight.detach().mean()
        return float(head), float(norm)

    # One step per epoch: that is the first of as many as there are epochs.
    assert moved(epochs=1, weight_decay=0.0)[0] == pytest.approx(1e-3, rel=0.01)
    assert moved(epochs=4, weight_decay=0.0, warmup_ratio=0.75)[0] == pytest.approx(
        1e-3 / 4, rel=0.01
    )
    assert moved(epochs=1, weight_decay=100.0)[1] == pytest.approx(0.9, abs=1e-3)
    # AdamW divides by the gradient and 1e-8: one that is cut to 1e-12 hardly moves a weight.
    assert moved(epochs=1, weight_decay=0.0, max_grad_norm=1e-12)[0] < 1e-6


def test_it_stops_when_nothing_gets_better(checkpoint: Path) -> None:
    pairs, labels, ids = word_task(2, 4)
    fitted = ranker(checkpoint, epochs=9, learning_rate=1e-12, early_stopping_rounds=2)
    fitted.fit(pairs, labels, qid=ids, eval_set=[(pairs, labels)], eval_qid=[ids])
    assert len(fitted.evals_result_["valid_0"]["nDCG@10"]) == 3


def test_rows_in_any_order_and_data_frames(checkpoint: Path) -> None:
    pairs, labels, ids = word_task(4, 5)
    straight = ranker(checkpoint, epochs=1).fit(pairs, labels, qid=ids)
    # Queries in turn, those of one query still in their order.
    turns = np.argsort(np.tile(np.arange(5), 4), kind="stable")
    frame = pd.DataFrame([pairs[row] for row in turns], columns=["query", "document"])
    mixed = ranker(checkpoint, epochs=1).fit(frame, labels[turns], qid=ids[turns])
    np.testing.assert_allclose(mixed.predict(frame), straight.predict(pairs)[turns], atol=1e-6)


def test_searches_of_scikit_learn(checkpoint: Path) -> None:
    """The query of each row is routed, or it is a column."""
    from sklearn import config_context
    from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

    pairs, labels, ids = word_task(4, 4)
    frame = pd.DataFrame(pairs, columns=["query", "document"]).assign(qid=ids)
    alone = ranker(checkpoint, epochs=1)
    alone.fit(frame, labels, qid=ids)
    by_column = ranker(checkpoint, epochs=1).fit(frame, labels)
    np.testing.assert_array_equal(by_column.predict(frame), alone.predict(pairs))
    folds = GroupKFold(2)
    values = cross_val_score(alone, frame, labels, cv=folds, groups=ids, error_score="raise")
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(alone, {"epochs": [1]}, cv=folds, refit=False, error_score="raise")
        search.fit(pairs, labels, qid=ids, groups=ids)
    assert search.best_score_ == pytest.approx(values.mean())


def test_scores_do_not_depend_on_the_mini_batch(checkpoint: Path) -> None:
    pairs, labels, ids = word_task(3, 7)
    fitted = ranker(checkpoint, epochs=1).fit(pairs, labels, qid=ids)
    together = fitted.predict(pairs)
    one_by_one = np.array([fitted.predict([pair])[0] for pair in pairs])
    np.testing.assert_allclose(one_by_one, together, atol=1e-6)
    # More than are tokenized at once.
    many = fitted.set_params(mini_batch_size=1).predict(pairs * 4)
    np.testing.assert_allclose(many, np.tile(together, 4), atol=1e-6)
    assert len(set(together.round(6))) > 10


def test_saved_and_loaded(checkpoint: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    pairs, labels, ids = word_task(4, 5)
    fitted = ranker(checkpoint, loss="PairLogistic(k=2)").fit(pairs, labels, qid=ids)
    fitted.save(tmp_path / "saved")
    loaded = TextRanker.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.predict(pairs), fitted.predict(pairs))
    assert loaded.get_params() == {**fitted.get_params(), "model": str(checkpoint)}
    module = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "saved")
    tokens = tokenizer(*zip(*pairs, strict=True), padding=True, return_tensors="pt")
    with torch.inference_mode():
        scores = module(**tokens).logits[:, 0].numpy()
    np.testing.assert_allclose(scores, fitted.predict(pairs), atol=1e-6)
    assert "PairLogistic(k=2)" in (tmp_path / "saved" / "README.md").read_text()


def test_parameters_of_numpy_are_saved(checkpoint: Path, tmp_path: Path) -> None:
    """A grid of a search has them."""
    pairs, labels, ids = word_task(2, 4)
    kept = ranker(
        checkpoint, epochs=np.int64(1), learning_rate=np.float32(2**-10), random_state=np.int64(3),
        checkpoint_folder=tmp_path / "kept",
    )  # fmt: skip
    for _ in range(2):  # the second one is continued from the first's checkpoint
        kept.fit(pairs, labels, qid=ids).save(tmp_path / "saved")
    loaded = TextRanker.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.predict(pairs), kept.predict(pairs))
    assert (loaded.epochs, loaded.learning_rate, loaded.random_state) == (1, 2**-10, 3)


@pytest.mark.parametrize(
    "content",
    [
        "", "{}", '{"kind": "TextRanker"}', "[]", "[" * 100_000,
        *(
            json.dumps({"kind": "TextRanker", "parameters": {"model": "bert", **parameters}})
            for parameters in ({"device": "cpu"}, {"checkpoint_folder": "/"}, {"random_state": "x"})
        ),
    ],
)  # fmt: skip
def test_other_folders_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "podium.json").write_text(content)
    with pytest.raises(DataError, match="is not a saved TextRanker"):
        TextRanker.load(tmp_path)


def test_a_fit_that_was_stopped_is_continued(checkpoint: Path, tmp_path: Path) -> None:
    pairs, labels, ids = word_task(6, 5)
    validation: dict[str, Any] = {"eval_set": [(pairs, labels)], "eval_qid": [ids]}
    whole = ranker(checkpoint, measure="P(rel=5)@1")
    steps: list[int] = []
    whole.fit(
        pairs,
        labels,
        qid=ids,
        **validation,
        progress=lambda step, _loss, _value: steps.append(step),
    )
    assert steps == [1, 2, 3, 4]

    def stop(step: int, _loss: float, _value: float | None) -> None:
        if step == 2:
            raise KeyboardInterrupt

    def continued(step: int, _loss: float, _value: float | None) -> None:
        after.append(step)

    after: list[int] = []
    kept = ranker(checkpoint, measure="P(rel=5)@1", checkpoint_folder=tmp_path)
    with pytest.raises(FitInterrupted):
        kept.fit(pairs, labels, qid=ids, **validation, progress=stop)
    kept.fit(pairs, labels, qid=ids, **validation, progress=continued)
    assert after == [2, 3, 4]  # the second epoch had not been saved when it was stopped
    np.testing.assert_array_equal(kept.predict(pairs), whole.predict(pairs))
    assert kept.evals_result_ == whole.evals_result_
    # Without validation the last epoch is kept: it depends on what was dropped in all of them.
    kept = ranker(checkpoint, checkpoint_folder=tmp_path / "last")
    with pytest.raises(FitInterrupted):
        kept.fit(pairs, labels, qid=ids, progress=stop)
    kept.fit(pairs, labels, qid=ids)
    expected = ranker(checkpoint).fit(pairs, labels, qid=ids).predict(pairs)
    np.testing.assert_array_equal(kept.predict(pairs), expected)
    other = ranker(checkpoint, measure="P(rel=5)@1", checkpoint_folder=tmp_path, max_length=47)
    with pytest.raises(DataError, match="of a ranker with other parameters"):
        other.fit(pairs, labels, qid=ids)


def test_a_checkpoint_of_other_rows_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    pairs, labels, ids = word_task(2, 4)
    kept = ranker(checkpoint, epochs=1, checkpoint_folder=tmp_path)
    kept.fit(pairs, labels, qid=ids)
    kept.fit(pairs, labels, qid=ids)
    changed = [(query, f"{document} w1") for query, document in pairs]
    others: list[dict[str, Any]] = [
        {"y": labels[::-1]}, {"X": changed}, {"qid": np.repeat(["a", "b"], [3, 5])},
        {"eval_set": [(pairs, labels)], "eval_qid": [ids]},
    ]  # fmt: skip
    for other in others:
        with pytest.raises(DataError, match="is the checkpoint of a fit to other rows"):
            kept.fit(**{"X": pairs, "y": labels, "qid": ids, **other})


def test_what_is_not_a_checkpoint_of_a_fit_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    write_archive(Archive("", {"step": 1}), tmp_path / "checkpoint.podium")
    with pytest.raises(DataError, match="of a ranker with other parameters"):
        ranker(checkpoint, checkpoint_folder=tmp_path).fit(
            [("a", "b"), ("a", "c")], [1, 0], group=[2]
        )


def test_a_checkpoint_of_other_weights_is_refused(tmp_path: Path) -> None:
    """Their path, which is a parameter, is the same."""
    pairs, labels, ids = word_task(2, 4)
    model = save_tiny_bert(tmp_path / "bert")
    kept = ranker(model, epochs=1, checkpoint_folder=tmp_path / "kept").fit(pairs, labels, qid=ids)
    other = kept.encoder_.transformers_model.bert
    other.save_pretrained(model)
    with pytest.raises(DataError, match="of a fit that started from other weights"):
        kept.fit(pairs, labels, qid=ids)


def test_a_damaged_checkpoint_says_what_to_do(checkpoint: Path, tmp_path: Path) -> None:
    pairs, labels, ids = word_task(2, 4)
    kept = ranker(checkpoint, epochs=1, checkpoint_folder=tmp_path)
    kept.fit(pairs, labels, qid=ids)
    path = tmp_path / "checkpoint.podium"
    whole, archive = path.read_bytes(), read_archive(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"checkpoint\.podium: .*Delete it to start anew"):
        kept.fit(pairs, labels, qid=ids)
    for damaged in (
        Archive("", archive.metadata),
        Archive("", {**archive.metadata, "rng": None}, archive.arrays),
    ):
        write_archive(damaged, path)
        with pytest.raises(DataError, match=r"is not a whole checkpoint .*Delete it"):
            kept.fit(pairs, labels, qid=ids)


def test_a_fitted_ranker_has_no_dropout(checkpoint: Path) -> None:
    """The first of two threads that score would turn it on again for the other."""
    pairs, labels, ids = word_task(2, 4)
    assert not ranker(checkpoint, epochs=1).fit(pairs, labels, qid=ids).encoder_.training

    def stop(_step: int, _loss: float, _value: float | None) -> None:
        raise KeyboardInterrupt

    stopped = ranker(checkpoint)
    with pytest.raises(FitInterrupted):
        stopped.fit(pairs, labels, qid=ids, progress=stop)
    assert not stopped.encoder_.training


def test_the_best_epoch_is_kept(checkpoint: Path) -> None:
    pairs, labels, ids = word_task(6, 5)
    fitted = ranker(checkpoint, epochs=5)
    fitted.fit(pairs, labels, qid=ids, eval_set=[(pairs, labels)], eval_qid=[ids])
    history = fitted.evals_result_["valid_0"]["nDCG@10"]
    assert len(history) == 5
    assert fitted.score(pairs, labels, qid=ids) == pytest.approx(max(history), abs=1e-9)
    fitted.measure = "WKT(k=3)"  # a distance: scikit-learn's searches maximize
    assert fitted.score(pairs, labels.max() - labels, qid=ids) < 0


HOSTILE = [
    "", " ", "x" * 1_000_000, "w1 " * 400_000, "\ud83d half", "\u202eright to left", "\0",
    "שלום w3", "e\u0301" * 1000,
]  # fmt: skip


@pytest.mark.parametrize("architecture", ["cross-encoder", "bi-encoder"])
def test_hostile_texts(checkpoint: Path, architecture: str) -> None:
    pairs = [(query, document) for query in HOSTILE for document in HOSTILE]
    labels = np.tile(np.arange(len(HOSTILE)), len(HOSTILE))
    fitted = ranker(checkpoint, architecture=architecture, epochs=1)
    fitted.fit(pairs, labels, group=[len(HOSTILE)] * len(HOSTILE))
    scores = fitted.predict(pairs)
    assert np.isfinite(scores).all()
    # A text is read up to the maximum length, whatever follows.
    long = "w1 " * 100
    ends = fitted.predict([("w2", long + "w3 w4"), ("w2", long + "w5")])
    assert ends[0] == pytest.approx(ends[1], abs=1e-6)
    assert len(fitted.predict([("w1", "w2")] * 3000)) == 3000
    assert fitted.predict([]).tolist() == []


@pytest.mark.slow
@pytest.mark.long
def test_a_query_with_10000_documents(checkpoint: Path) -> None:
    """The peak of memory is that of a query with 500 documents but for texts and tokens."""
    documents = [f"{WORDS[number % 60]} w0 {WORDS[number % 7]}" for number in range(10_000)]
    pairs, labels = [("w1", document) for document in documents], np.arange(10_000) % 5
    grown = []
    for count in (500, 10_000):
        Path("/proc/self/clear_refs").write_text("5")
        before = _kibibytes("VmRSS")
        fitted = ranker(checkpoint, loss="LambdaLoss(k=10)", epochs=1)
        fitted.fit(pairs[:count], labels[:count], group=[count])
        assert np.isfinite(fitted.predict(pairs[:count])).all()
        grown.append(_kibibytes("VmHWM") - before)
    assert grown[1] - grown[0] < 200 * 1024


def _kibibytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("text", "str is not a pair"),
        ([("a", 1)], "row 0, .* is not a pair of a query and a document"),
        (["ab"], "row 0, 'ab', is not a pair"),
        ([("a", None)], "row 0"),
        (pd.DataFrame({"question": ["a"], "document": ["b"]}), "no column 'query'"),
    ],
)
def test_what_is_not_a_pair_of_texts_is_refused(checkpoint: Path, X: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ranker(checkpoint).fit(X, [1], group=[1])


def test_parameters_and_data_are_checked_before_a_model_is_loaded() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"max_length": 0}, "max_length is 0"),
        ({"warmup_ratio": 1.0}, "warmup_ratio is 1.0. Give a number below 1"),
        ({"loss": "ListMLLE"}, "There is no loss 'ListMLLE'"),
        ({"random_state": "x"}, "seed is 'x'"),
    ]
    for parameters, message in wrong:
        with pytest.raises(ArgumentError, match=message):
            TextRanker("nowhere", **parameters).fit([("a", "b")], [1], group=[1])
    with pytest.raises(DataError, match="no document of the training data is preferred"):
        TextRanker("nowhere").fit([("a", "b"), ("a", "c")], [1, 1], group=[2])
    with pytest.raises(DataError, match="2 pairs of texts for 1 labels"):
        TextRanker("nowhere").fit([("a", "b"), ("a", "c")], [1], group=[2])
    with pytest.raises(NotFittedError):
        TextRanker("nowhere").predict([("a", "b")])


def change_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("tokenizer_config.json", {"tokenizer_class": 1}), ("config.json", {"hidden_size": "x"}),
        ("config.json", {"quantization_config": {"quant_method": "gptq", "bits": 4}}),
        ("model.safetensors", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("architecture", ["cross-encoder", "bi-encoder"])
def test_a_checkpoint_that_is_none(
    tmp_path: Path, name: str, values: dict[str, Any] | None, architecture: str
) -> None:
    save_tiny_bert(tmp_path)
    if values is None:
        (tmp_path / name).write_bytes(b"junk")
    else:
        change_json(tmp_path / name, **values)
    with pytest.raises(DataError, match="is not a checkpoint that can be loaded"):
        ranker(tmp_path, architecture=architecture).fit(*word_task(1, 2)[:2], group=[2])


@pytest.mark.parametrize("architecture", ["cross-encoder", "bi-encoder"])
@pytest.mark.parametrize(
    "values", [{"num_hidden_layers": 3}, {"model_type": "distilbert"}], ids=["layers", "model"]
)
def test_weights_are_not_drawn_at_random(
    tmp_path: Path, values: dict[str, Any], architecture: str
) -> None:
    save_tiny_bert(tmp_path)
    change_json(tmp_path / "config.json", **values)
    with pytest.raises(DataError, match=r"lacks \d+ weights of its model, such as "):
        ranker(tmp_path, architecture=architecture).fit(*word_task(1, 2)[:2], group=[2])


def test_a_saved_ranker_has_its_head(checkpoint: Path, tmp_path: Path) -> None:
    pairs, labels, ids = word_task(2, 4)
    settings: list[dict[str, Any]] = [{"architecture": "bi-encoder"}, {}]
    saved = tmp_path / "saved"
    for each in settings:
        ranker(checkpoint, epochs=1, **each).fit(pairs, labels, qid=ids).save(saved)
    parameters = json.loads((saved / "podium.json").read_text())
    ranker(checkpoint, epochs=1, **settings[0]).fit(pairs, labels, qid=ids).save(saved)
    (saved / "podium.json").write_text(json.dumps(parameters))  # of a cross-encoder
    with pytest.raises(DataError, match=r"lacks 2 weights of its model, such as classifier\.bias"):
        TextRanker.load(saved)


def test_positions_after_that_of_padding(tmp_path: Path) -> None:
    """RoBERTa's table of 40 positions is for 38 tokens if its padding has number 1."""
    from transformers import RobertaConfig, RobertaModel

    save_tiny_bert(tmp_path)
    RobertaModel(
        RobertaConfig(
            vocab_size=70, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=64, max_position_embeddings=40, pad_token_id=1,
        )
    ).save_pretrained(tmp_path)  # fmt: skip
    encoder = load_cross_encoder(tmp_path, 512)
    assert encoder.max_seq_length == 38
    assert np.isfinite(score_pairs(encoder, [("w1", "w2 " * 100)], 1)).all()


def test_other_devices_are_refused(checkpoint: Path) -> None:
    with pytest.raises(ArgumentError, match="device 'tpu' cannot be used"):
        ranker(checkpoint, device="tpu").fit(*word_task(1, 2)[:2], group=[2])


def test_out_of_fold_scores_do_not_know_the_labels_of_their_queries(checkpoint: Path) -> None:
    pairs, labels, ids = word_task(4, 5)
    scores = out_of_fold_scores(ranker(checkpoint, epochs=1), pairs, labels, qid=ids, n_splits=2)
    # Two parts of two queries each: whatever the labels of one part are, its scores stay.
    for part in np.split(np.array(sorted(set(ids))), 2), np.array([["q0", "q2"], ["q1", "q3"]]):
        inside = np.isin(ids, part[0])
        changed = np.where(inside, labels[::-1], labels)
        again = out_of_fold_scores(
            ranker(checkpoint, epochs=1), pairs, changed, qid=ids, n_splits=2
        )
        if np.array_equal(again[inside], scores[inside]):
            assert not np.array_equal(again[~inside], scores[~inside])
            return
    pytest.fail("the scores of no part are independent of its labels")


def test_out_of_fold_scores_with_checkpoints(checkpoint: Path, tmp_path: Path) -> None:
    pairs, labels, ids = word_task(4, 4)
    plain, kept = (
        out_of_fold_scores(
            ranker(checkpoint, epochs=1, checkpoint_folder=folder), pairs, labels, qid=ids,
            n_splits=2,
        )
        for folder in (None, tmp_path)
    )  # fmt: skip
    np.testing.assert_array_equal(kept, plain)
    for wrong, message in (
        ({"qid": ids[1:]}, "16 pairs of texts for 15 query ids"),
        ({"y": labels[1:]}, "16 pairs of texts for 15 labels"),
        ({"n_splits": 5}, "n_splits is 5, and there are fewer queries"),
    ):
        arguments: dict[str, Any] = {"y": labels, "qid": ids, **wrong}
        with pytest.raises((ArgumentError, DataError), match=message):
            out_of_fold_scores(ranker(checkpoint), pairs, **arguments)
