"""How often requirements and intervals are wrong where a few values decide."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

import numpy as np
from scipy import stats

from benchmarks._gates import TREC
from benchmarks._null_queries import Doubles
from podium.data import read_qrels, read_run
from podium.measures import evaluate
from podium.measures.comparison.one_sided import mean_above
from podium.measures.comparison.prediction_powered import powered_mean
from podium.measures.comparison.statistics import weighted_interval

Row = tuple[str, str, int, Sequence[float], Sequence[float], Sequence[float], bool]
"""What, its data, how many queries, the shares with what they may be, whether that is a target."""
_LEVEL = 0.05
_SHIFT = 2.6
"""Standard errors that systems are beyond the margin where power is compared: some 80 % by t."""


def _requirements(repeats: int) -> Iterator[Row]:
    """All ordered pairs of the twelve runs, with topics drawn anew.

    The margin is the loss over all topics, so whatever passes does so falsely.
    """
    if not TREC.exists():
        return
    judgments = read_qrels(TREC / "qrels.dl21-passage.txt.gz")
    measures = ["P@1", "RR", "AP", "nDCG@10"]
    runs = sorted((TREC / "dl21-runs").glob("*.run.gz"))
    results = [evaluate(measures, judgments, read_run(path)) for path in runs]
    random = np.random.default_rng(21)
    for measure in measures:
        table = np.column_stack([result[measure] for result in results])
        pairs = list(permutations(range(table.shape[1]), 2))
        for queries in (5, 10, 20, 50, 200):
            passed, shown, by_t = [], 0, 0
            for old, new in pairs:
                differences = table[:, new] - table[:, old]
                margin = float(differences.mean())
                further = margin - _SHIFT * float(differences.std()) / math.sqrt(queries)
                false = 0
                for rows in random.integers(0, len(table), (repeats, queries)):
                    values, least = differences[rows], -float(table[rows, old].max())
                    false += mean_above(values, margin, _LEVEL, least).p_value < _LEVEL
                    if queries == 200 and measure in ("AP", "nDCG@10"):
                        shown += mean_above(values, further, _LEVEL, least).p_value < _LEVEL
                        # Nothing can be unseen where the least value is the bound itself.
                        by_t += mean_above(values, further, _LEVEL, further).p_value < _LEVEL
                passed.append(false / repeats)
            data = f"DL21, {measure}"
            most = _most(0.05, repeats * len(pairs))
            mean = float(np.mean(passed))
            yield "false passes at the margin, mean", data, queries, [mean], [0.0], [most], True
            if repeats >= 100:
                most = _most(0.10, repeats, 0.95)
                yield "false passes, worst pair", data, queries, [max(passed)], [0.0], [most], True
            if by_t:
                share = [shown / by_t]
                yield (
                    "power against the t-test alone",
                    data,
                    queries,
                    share,
                    [0.9],
                    [math.inf],
                    True,
                )


def _most(share: float, repeats: int, confidence: float = 0.999) -> float:
    return float(stats.binom.ppf(confidence, repeats, share)) / repeats


def _powered(repeats: int) -> Iterator[Row]:
    """Values by people, and by a machine that is mostly right, of 200 other queries.

    People's values are 0 and 1, or 1 for most queries and anything between 0 and 1 for the others,
    where the machine's are never equal.
    """
    cases = [(rate, right, False) for rate, right in ((0.1, 0.8), (0.1, 0.95), (0.3, 0.9))]
    cases += [(rate, right, True) for rate, right in ((0.8, 0.95), (0.95, 0.95), (0.95, 0.5))]
    for (rate, right, mixed), queries in product(cases, (10, 20, 50)):
        random = np.random.default_rng([22, queries, int(100 * right)])
        average = rate + (1 - rate) / 2 if mixed else rate
        covered, means = 0, np.empty(repeats)
        for number in range(repeats):
            truth = (random.random(queries + 200) < rate).astype(float)
            if mixed:
                truth = np.where(truth == 1, 1.0, random.random(len(truth)))
                guess = truth + (1 - right) * random.standard_normal(len(truth))
            else:
                guess = np.where(random.random(len(truth)) < right, truth, 1.0 - truth)
            result = powered_mean(truth[:queries], guess[:queries], guess[queries:])
            covered += result.low <= average <= result.high
            means[number] = result.mean
        least = float(stats.binom.ppf(0.001, repeats, 0.92)) / repeats
        data = f"{rate:.0%} of values 1, {'noise ' if mixed else 'wrong in '}{1 - right:.2g}"
        what = "prediction-powered intervals"
        yield what, data, queries, [covered / repeats], [least], [1.0], True
        bias = float(means.mean()) / average
        error = 3.3 * float(means.std()) / math.sqrt(repeats) / average
        ends = [0.97 - error], [1.03 + error]
        yield "prediction-powered mean over the truth", data, queries, [bias], *ends, True


def _weighted(repeats: int) -> Iterator[Row]:
    """Means of weighted queries with just these weights, and of queries drawn at random.

    The values vary alike; or as much more as queries are heavier; or the heaviest twentieth loses,
    of which a random sample may have none: what it says of all has no target.
    """
    for weights, relation in product(
        _WEIGHTS, ("vary alike", "heavy ones vary more", "heavy ones lose")
    ):
        for drawn in (False, True) if relation == "heavy ones lose" else (False,):
            for queries in (10, 20, 50, 200):
                random = np.random.default_rng([23, queries])
                data = f"{weights}, {relation}{', drawn at random' if drawn else ''}"
                every = _WEIGHTS[weights](2000 if drawn else queries)
                means, deviations = np.zeros(len(every)), np.ones(len(every))
                if relation == "heavy ones vary more":
                    deviations = every / every.max()
                elif relation == "heavy ones lose":
                    heavy = max(1, len(every) // 20)
                    means[:heavy], means[heavy:], deviations = -0.3, 0.05, 0.1 * deviations
                truth = float(every @ means / every.sum())
                covered = passed = 0
                for _ in range(repeats):
                    rows = random.integers(0, 2000, queries) if drawn else np.arange(queries)
                    values: Doubles = means[rows] + deviations[rows] * random.standard_normal(
                        queries
                    )
                    _, low, high = weighted_interval(values, every[rows])
                    covered += not high < truth and not low > truth
                    passed += mean_above(values, truth, _LEVEL, -0.6, every[rows]).p_value < _LEVEL
                least = float(stats.binom.ppf(0.001, repeats, 0.93)) / repeats
                what = "interval of a weighted mean"
                yield what, data, queries, [covered / repeats], [least], [1.0], not drawn
                if relation == "heavy ones lose":
                    most = _most(0.05, repeats)
                    what = "false passes at the margin, weighted"
                    yield what, data, queries, [passed / repeats], [0.0], [most], not drawn


def _log_normal(queries: int) -> Doubles:
    return np.exp(stats.norm.isf((np.arange(queries) + 0.5) / queries))


def _zipf(queries: int) -> Doubles:
    return 1.0 / np.arange(1, queries + 1)


def _half_by_few(queries: int) -> Doubles:
    few = max(1, queries // 20)
    return np.repeat([queries / few - 1.0, 1.0], [few, queries - few])


_WEIGHTS = {"log-normal": _log_normal, "Zipf": _zipf, "5 % have half": _half_by_few}
"""Weights of so many queries, the heaviest first."""


GATES: dict[str, Callable[[bool], Iterator[Row]]] = {
    "requirements": lambda quick: _requirements(15 if quick else 600),
    "prediction-powered means": lambda quick: _powered(150 if quick else 5_000),
    "weighted intervals": lambda quick: _weighted(150 if quick else 3_000),
}
"""Requirements at the margin, prediction-powered means, and weighted intervals."""
