"""Rerankers of BM25's passages on TREC's Deep Learning track of 2021, five folds by topic.

    python -m benchmarks._text_quality [METHOD...]

Trains what is missing and prints the comparison. It needs the extra ``weights``. Scores of each
method and fold are kept in ``build/text``: a run that was stopped goes on. Rows to rank are the
judged passages of BM25's top 100; nDCG@10 has linear gains, as at TREC, and counts all judgments of
a topic. Every trained method starts from all-MiniLM-L6-v2 and takes the same steps on the same
passages: 16 judged ones per training topic, as evenly as possible from each grade.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._assessor_data import judged_passages
from podium.data import Dataset, Rankings
from podium.data.atomic import atomic_write
from podium.data.normalize import normalize_features
from podium.kernels import Doubles
from podium.measures import compare, plan_queries
from podium.measures.comparison.result import Comparison
from podium.rankers import LinearRanker, TextRanker
from podium.rankers.text_encoder import load_bi_encoder, score_pairs
from studies.texts import minilm

KEPT = Path(__file__).parents[1] / "build" / "text"
FOLDS = 5
_PER_TOPIC = 16
_EPOCHS = 2
_BATCH_QUERIES = 2
_LEARNING_RATE = 5e-5
_MEASURE = "nDCG(gains='linear')@10"

Scores = dict[str, dict[str, float]]
"""A score for each passage of each topic."""


@cache
def candidates() -> Scores:
    """BM25's scores of the judged passages among its first 100, by topic."""
    data = judged_passages()
    run = data.runs()["p_bm25"]
    lists: Scores = {}
    for query, topic in enumerate(run.query_ids.to_pylist()):
        if topic not in data.grades:
            continue
        first, last = run.offsets[query], run.offsets[query + 1]
        rows = zip(run.document_ids[first:last].to_pylist(), run.scores[first:last], strict=True)
        known = {document: float(score) for document, score in rows if document in data.texts}
        lists[topic] = {each: score for each, score in known.items() if each in data.grades[topic]}
    return lists


def fold_of() -> dict[str, int]:
    """Return the fold that each topic is tested in."""
    return {topic: index % FOLDS for index, topic in enumerate(sorted(candidates()))}


def training_rows(fold: int) -> tuple[list[tuple[str, str]], list[int], list[str]]:
    """Return pairs, labels and topics to train on for a fold."""
    data, folds = judged_passages(), fold_of()
    pairs: list[tuple[str, str]] = []
    labels: list[int] = []
    topics: list[str] = []
    for topic in sorted(topic for topic, own in folds.items() if own != fold):
        rng = np.random.default_rng(int(topic))
        grades = data.grades[topic]
        known = sorted(each for each in grades if each in data.texts)
        shuffled = [known[index] for index in rng.permutation(len(known))]
        turn = {
            each: sum(grades[other] == grades[each] for other in shuffled[:index])
            for index, each in enumerate(shuffled)
        }
        for each in sorted(shuffled, key=lambda each: turn[each])[:_PER_TOPIC]:
            pairs.append((data.queries[topic], data.texts[each]))
            labels.append(grades[each])
            topics.append(topic)
    return pairs, labels, topics


def test_rows(fold: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the ids of the topics and passages of a fold, and their texts."""
    data, folds = judged_passages(), fold_of()
    ids = [
        (topic, each) for topic, own in folds.items() if own == fold for each in candidates()[topic]
    ]
    return ids, [(data.queries[topic], data.texts[each]) for topic, each in ids]


def _podium(loss: str, architecture: Any) -> Callable[[int], Doubles]:
    def scores(fold: int) -> Doubles:
        ranker = TextRanker(
            minilm(), loss, architecture=architecture, max_length=192, mini_batch_size=8,
            batch_queries=_BATCH_QUERIES, epochs=_EPOCHS, learning_rate=_LEARNING_RATE,
        )  # fmt: skip
        pairs, labels, topics = training_rows(fold)
        return ranker.fit(pairs, labels, qid=topics).predict(test_rows(fold)[1])

    return scores


def _peer(fold: int) -> Doubles:
    """Train by sentence-transformers' LambdaLoss, with its defaults, at the same steps."""
    from sentence_transformers.cross_encoder import CrossEncoder
    from sentence_transformers.cross_encoder.losses import LambdaLoss

    torch.manual_seed(0)
    pairs, labels, topics = training_rows(fold)
    model = CrossEncoder(minilm(), num_labels=1, max_length=192, device="cpu")
    criterion = LambdaLoss(model, mini_batch_size=8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_LEARNING_RATE, weight_decay=0.01)
    queries = list(dict.fromkeys(topics))
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(queries)) for _ in range(_EPOCHS)]
    batches = [
        order[first : first + _BATCH_QUERIES]
        for order in orders
        for first in range(0, len(order), _BATCH_QUERIES)
    ]
    warmup = len(batches) // 10
    model.train()
    for done, batch in enumerate(batches):
        share = (done + 1) / (warmup + 1)
        if done >= warmup:
            share = (len(batches) - done) / (len(batches) - warmup)
        optimizer.param_groups[0]["lr"] = _LEARNING_RATE * share
        rows = [
            [row for row, topic in enumerate(topics) if topic == queries[each]] for each in batch
        ]
        optimizer.zero_grad()
        criterion(
            [[pairs[own[0]][0] for own in rows], [[pairs[row][1] for row in own] for own in rows]],
            [torch.tensor([float(labels[row]) for row in own]) for own in rows],
        ).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return np.asarray(
        model.predict(test_rows(fold)[1], activation_fn=torch.nn.Identity(), batch_size=16),
        np.float64,
    )


def _cosine(fold: int) -> Doubles:
    return score_pairs(load_bi_encoder(minilm(), 256), test_rows(fold)[1], 16)


METHODS: dict[str, Callable[[int], Doubles]] = {
    "cosine": _cosine,
    "bi-encoder LambdaLoss": _podium("LambdaLoss(k=10)", "bi-encoder"),
    "cross-encoder LambdaLoss": _podium("LambdaLoss(k=10)", "cross-encoder"),
    "cross-encoder pointwise": _podium("SquaredError()", "cross-encoder"),
    "sentence-transformers LambdaLoss": _peer,
}


def kept_scores(method: str, fold: int, *, train: bool = True) -> Scores | None:
    """Return a method's scores in a fold; None if they are not there and must not be made."""
    path = KEPT / f"{method.replace(' ', '-')}-{fold}.json"
    if path.exists():
        scores: Scores = json.loads(path.read_text())
        return scores
    if not train:
        return None
    values = METHODS[method](fold)
    scores = {}
    for (topic, document), value in zip(test_rows(fold)[0], values.tolist(), strict=True):
        scores.setdefault(topic, {})[document] = value
    KEPT.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        stream.write(json.dumps(scores).encode())
    return scores


def all_scores(method: str) -> Scores | None:
    """Return a method's scores of all topics; None if a fold is missing."""
    parts = [kept_scores(method, fold, train=False) for fold in range(FOLDS)]
    if any(part is None for part in parts):
        return None
    return {topic: scores for part in parts if part is not None for topic, scores in part.items()}


def stacked(methods: list[Scores]) -> Scores:
    """Combine scores by a linear ranker: those of a fold by weights learned from the others.

    The text scores of training topics come from models that were fitted without them, but with the
    topics of the test fold: a few weights are all that could learn from it.
    """
    data, folds = judged_passages(), fold_of()
    rows = [(topic, each) for topic in folds for each in candidates()[topic]]
    features = np.array([[scores[topic][each] for scores in methods] for topic, each in rows])
    labels = np.array([data.grades[topic][each] for topic, each in rows])
    sizes = [len(candidates()[topic]) for topic in folds]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    features = normalize_features(features.astype(np.float32), offsets, "z-score")
    topics = np.array([topic for topic, _ in rows])
    fold = np.array([folds[topic] for topic in topics])
    result: Scores = {}
    for test in range(FOLDS):
        known, new = fold != test, fold == test
        ranker = LinearRanker("LambdaLoss(k=10)").fit(
            Dataset.from_arrays(features[known], labels[known], qid=topics[known])
        )
        predicted = ranker.predict(features[new]).tolist()
        for row, value in zip(np.flatnonzero(new), predicted, strict=True):
            topic, each = rows[row]
            result.setdefault(topic, {})[each] = value
    return result


def comparison() -> Comparison:
    """Compare everything that is there with the zero-shot cosine."""
    cosine = all_scores("cosine")
    if cosine is None:
        raise FileNotFoundError("run python -m benchmarks._text_quality first")
    systems = {"cosine": cosine, "BM25": candidates(), "random order": _random_scores()}
    systems["BM25 + cosine"] = stacked([candidates(), cosine])
    for method in METHODS:
        scores = all_scores(method)
        if method == "cosine" or scores is None:
            continue
        systems[method] = scores
        systems[f"BM25 + cosine + {method}"] = stacked([candidates(), cosine, scores])
    runs = {name: _rankings(scores) for name, scores in systems.items()}
    return compare(_MEASURE, judged_passages().judgments, runs)


def _random_scores() -> Scores:
    random = np.random.default_rng(0)
    return {
        topic: {each: float(random.random()) for each in own} for topic, own in candidates().items()
    }


def _rankings(scores: Scores) -> Rankings:
    rows = [(topic, each, value) for topic, own in scores.items() for each, value in own.items()]
    return Rankings.from_columns(*zip(*rows, strict=True))


def table(compared: Comparison) -> list[str]:
    """Return a line for each system: its mean, and how it differs from the cosine."""
    lines = []
    summaries, outcomes = compared.summaries[_MEASURE], compared.against_baseline[_MEASURE]
    for name in compared.systems:
        line = f"{name}: {summaries[name].mean:.4f}"
        if name in outcomes:
            difference = outcomes[name].difference
            deviation = difference.mean / difference.effect if difference.effect else np.nan
            needed = _needed(compared, name, difference.mean)
            line += (
                f" ({difference.mean:+.4f}, 95 % {difference.low:+.4f} to {difference.high:+.4f}, "
                f"p {difference.p_values['randomization']:.3f}, wins {difference.wins}, losses "
                f"{difference.losses}, deviation {deviation:.3f}, topics for 80 % power: {needed})"
            )
        lines.append(line)
    return lines


def _needed(compared: Comparison, system: str, difference: float) -> str:
    if difference == 0:
        return "-"
    plans = plan_queries(compared, difference=abs(difference), power=0.8, level=0.05)
    needed = next(plan.needed for plan in plans if plan.system == system)
    return "-" if needed is None else f"{needed:,}"


def main() -> None:
    """Train what is missing, one fold of all methods after the other, and print the comparison."""
    torch.set_num_threads(1)
    chosen = sys.argv[1:] or list(METHODS)
    for fold in range(FOLDS):
        for method in chosen:
            kept_scores(method, fold)
            print(f"fold {fold}: {method}", file=sys.stderr, flush=True)
    print("\n".join(table(comparison())))


if __name__ == "__main__":
    main()
