"""From side-by-side verdicts to a ranker: learn what people want, train for it, and test it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data import Dataset
from podium.losses import LambdaLoss, Loss
from podium.measures import DCG, evaluate
from podium.measures.comparison.statistics import Difference, paired_difference
from podium.rankers import TreeRanker
from podium.utility import DCGLearn, RankingPreferences, simulated_choices
from podium.utility.learned_utility import LearnedUtility

# People who want many acceptable results and read all of them: far from 2^l - 1, and from l.
GAINS = (0.0, 0.8, 0.9, 1.0)
DISCOUNTS = (1.0, 0.95, 0.9, 0.85, 0.8)


@dataclass(frozen=True)
class Retrained:
    """What came of it.

    Attributes:
        learned: From the verdicts.
        usual: The mean true utility of the ranker trained for nDCG.
        ours: That of the ranker trained for what was learned.
        best: That of a ranker trained for the true utility itself.
        difference: The difference of ours and usual, query by query.
    """

    learned: LearnedUtility
    usual: float
    ours: float
    best: float
    difference: Difference


def synthetic(queries: int, seed: int, documents: int = 30) -> Dataset:
    """Documents that are fair, good, or (seldom, and by other features) perfect."""
    random = np.random.default_rng(seed)
    rows = queries * documents
    fair, perfect = random.normal(size=(2, rows))
    grades = (fair > 0.6).astype(np.int64) + (fair > 1.0)
    grades[perfect > 1.8] = 3
    features = [fair + 0.7 * random.normal(size=rows), perfect + 0.7 * random.normal(size=rows)]
    features += list(random.normal(size=(4, rows)))
    table = np.column_stack(features).astype(np.float32)
    return Dataset.from_arrays(table, labels=grades, group=[documents] * queries)


def verdicts(data: Dataset, count: int, seed: int) -> RankingPreferences:
    """Verdicts on random tops of the same query, by people who err."""
    random = np.random.default_rng(seed)
    depth = len(DISCOUNTS)
    queries = random.integers(0, len(data.offsets) - 1, count)
    sides = np.zeros((2, count, depth), np.uint8)
    for row, query in enumerate(queries.tolist()):
        grades = data.labels[data.offsets[query] : data.offsets[query + 1]]
        for side in range(2):
            drawn = random.permutation(grades)[:depth]
            sides[side, row, : len(drawn)] = drawn
    pairs = RankingPreferences.from_arrays(*sides, queries=queries, grades=len(GAINS))
    truth = np.outer(DISCOUNTS, GAINS)
    return pairs.with_choices(
        simulated_choices(pairs, truth, noise=0.1, same=0.1, much=1.0, random_state=seed)
    )


def retrain(train: Dataset, test: Dataset, count: int, trees: int) -> Retrained:
    """Learn from so many verdicts, and train with what was learned, with nDCG, with the truth."""
    learned = DCGLearn().fit(verdicts(train, count, seed=1)).learned_
    truth = DCG(gains=GAINS, discounts=DISCOUNTS) @ len(DISCOUNTS)
    values = []
    losses: tuple[Loss, ...] = (
        LambdaLoss(k=len(DISCOUNTS)),
        learned.loss,
        LambdaLoss(gains=GAINS, discounts=DISCOUNTS),
    )
    for loss in losses:
        ranker = TreeRanker(loss, n_estimators=trees, engine_params={"num_leaves": 7})
        values.append(evaluate(truth, test, ranker.fit(train).predict(test))[truth])
    usual, ours, best = (float(each.mean()) for each in values)
    return Retrained(learned, usual, ours, best, paired_difference(values[1], values[0]))
