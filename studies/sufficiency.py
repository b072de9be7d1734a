"""Lan et al. (2013), figures 1 and 2: how much of the order is enough to train on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.data.labels import from_ranks
from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.rankers import LinearRanker, Ranker, tune
from podium.rankers.models import Model, list_mle, make_ranker, rank_boost, rank_net, rank_svm
from studies.arrays import Doubles
from studies.collections import Fold, load_folds
from studies.parts import Part
from studies.study import Setup, Study
from studies.sufficiency_page import write

LINEAR: dict[str, Model] = {
    model.name: model for model in (rank_svm, rank_boost, rank_net, list_mle)
}
TREES = {"trees ListMLE": "ListMLE", "trees ListNet": "ListNet", "trees RankNet": "PairLogistic"}
"""LightGBM with a loss of Podium's each."""

REAL = {"Yandex": "yandex", "MQ2007": "letor/MQ2007", "MQ2008": "letor/MQ2008"}
TAILS = ("clean", "shuffled", "misled")
"""What the order below the 20 best says: the truth, nothing, something else."""

ALL = 1000
"""The k of the full order."""

MEASURES = ("nDCG@5", "nDCG@10")
_TOP = 20
_DRAWS = 3
"""How often the order within a grade is drawn, to train on and to test against."""


def trained(data: Path | None, name: str, model: str, k: int, fold: int, quick: bool) -> Any:
    """Train on the top k of the order, test against the full truth, query by query."""
    draws = 1 if quick or name in TAILS else _DRAWS
    measures = [parse_measure(measure) for measure in MEASURES]
    values = []
    for draw in range(draws):
        parts = _fold(data, name, fold, quick)
        if name == "Yandex":  # labels are nearly an order of their own: ties are drawn
            parts = replace(
                parts, validation=parts.validation.full_order(random_state=draw),
                test=parts.test.full_order(random_state=draw),
            )  # fmt: skip
        ranker, grid = _ranker(model, None if k == ALL else k, quick)
        train = (
            parts.train.full_order(random_state=draw)
            if k == ALL
            else parts.train.top_k(k, random_state=draw)
        )
        tuned = tune(ranker, grid, train, parts.validation, measure="nDCG@10")
        evaluation = evaluate(measures, parts.test, tuned.best_ranker.predict(parts.test))
        values.append([evaluation[measure] for measure in measures])
    drawn: Doubles = np.array(values)
    means = np.round(drawn.mean(axis=0), 5)
    return {text: means[at].tolist() for at, text in enumerate(MEASURES)}


def _ranker(model: str, k: int | None, quick: bool) -> tuple[Ranker, Mapping[str, Sequence[Any]]]:
    if model in TREES:
        loss = f"{TREES[model]}({'' if k is None else f'k={k}'})"
        trees = 20 if quick else 150
        return make_ranker("lightgbm", loss, n_estimators=trees, num_leaves=15), {}
    ranker = LINEAR[model](k)
    if isinstance(ranker, LinearRanker):
        # Validation queries choose the best model met on the way to the minimum.
        loose = {"tol": 1e-2, "max_iter": 20 if quick else 100}
        grid = {"alpha": [1e-2] if quick else [1e-4, 1e-2, 1.0]}
        return ranker.set_params(**loose), grid
    return ranker.set_params(n_estimators=20 if quick else 150), {}


@lru_cache(maxsize=1)
def _fold(data: Path | None, name: str, fold: int, quick: bool) -> Fold:
    if name in TAILS:
        sizes = (10, 5, 10, 100) if quick else (40, 20, 100, 1000)
        return _made_up(name, fold, *sizes)
    assert data is not None  # asked only where there are data
    return load_folds(name, data)[fold]


def _made_up(tail: str, fold: int, train: int, validation: int, test: int, documents: int) -> Fold:
    """Queries whose 20 best are in their true order, and the others in that of a tail."""
    weights = np.random.default_rng(7).standard_normal(10)
    weights[-1] = 0.0  # the feature that misleads says nothing of the quality
    made = [
        _made_up_queries(tail if part < 2 else "clean", weights, count, documents, 10 * fold + part)
        for part, count in enumerate((train, validation, test))
    ]
    return Fold(*made)


def _made_up_queries(
    tail: str, weights: Doubles, queries: int, documents: int, seed: int
) -> Dataset:
    random = np.random.default_rng([seed, 1])
    features = random.standard_normal((queries, documents, len(weights)))
    quality = features @ weights + 1.5 * features[..., 0] * features[..., 1]
    quality += 2.0 * random.standard_normal(quality.shape)
    ranks = np.argsort(np.argsort(-quality, axis=1), axis=1) + 1
    other = {
        "clean": -ranks,
        "shuffled": random.random(quality.shape),
        "misled": features[..., -1] + 0.1 * random.standard_normal(quality.shape),
    }[tail]
    training_order = np.where(ranks <= _TOP, 1e6 - ranks, other)
    training_ranks = np.argsort(np.argsort(-training_order, axis=1), axis=1) + 1
    labels = np.concatenate([from_ranks(each, k=documents) for each in training_ranks])
    table = features.reshape(-1, len(weights)).astype(np.float32)
    return Dataset.from_arrays(table, labels=labels, group=[documents] * queries)


def _parts(setup: Setup) -> list[Part]:
    return [
        Part(f"{name}.{model.replace(' ', '-')}.{k}.{fold}", trained, (
            setup.data if name in REAL else None, name, model, k, fold, setup.quick,
        ))
        for name, model, k, fold in _runs(setup)
    ]  # fmt: skip


def _runs(setup: Setup) -> list[tuple[str, str, int, int]]:
    real = [name for name, folder in REAL.items() if setup.has(folder)]
    models = [*LINEAR, *TREES]
    if setup.quick:
        real = [name for name in real if name == "MQ2008"]
        models = ["RankSVM", "ListMLE", "trees ListMLE"]
    runs = []
    for name in (*real, *TAILS):
        short = (1, 10, ALL) if setup.quick else (1, 2, 3, 5, 10, 20, ALL)
        ks = (*short[:-1], 50, 100, ALL) if name in TAILS and not setup.quick else short
        folds = 2 if name in real and not setup.quick else 1
        runs += [(name, model, k, fold) for model in models for fold in range(folds) for k in ks]
    return runs


STUDY = Study(
    "sufficiency",
    "Is the top k sufficient?",
    "Lan et al. 2013, figures 1 and 2: how much of the order is enough.",
    """
Lan et al. (*Is top-k sufficient for ranking?*, CIKM 2013) train RankSVM, RankBoost, RankNet and
ListMLE on the ordered top k of MQ2007-list and MQ2008-list and test against the full order. Test
performance rises with k and is flat from 10 or 20 on; on MQ2007-list the full order is even worse,
which they attribute to noise in its tail. Those two sets are not available here. Instead we use
Yandex (3,334 queries with finely graded labels, nearly full orders of about 18 documents), MQ2007
and MQ2008 (grades; the order within a grade is random, so tests are against the grades), each the
mean of three draws of that order, and
synthetic queries of 1,000 documents whose 20 best are in their true order while the tail below is
true (*clean*), random (*shuffled*), or ordered by a feature that has nothing to do with quality
(*misled*). Trees, LightGBM with Podium's losses, are our addition.
""",
    "the first two folds of Yandex, MQ2007 and MQ2008; synthetic queries (40 to train, 20 to "
    "choose, 100 to test).",
    _parts,
    write,
)
