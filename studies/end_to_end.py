"""Ours: what hours of judging buy, by five grades and by pairs, measured at the ranker's end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.data.labels import from_ranks, to_full_order
from podium.judging import HABITS, Outcome, Session, SimulatedAssessor, Verdict
from podium.judging.active_sampling import by_expected_gain, expected_gains
from podium.judging.algorithms import ALGORITHMS
from podium.judging.algorithms.selection import run_selection
from podium.judging.assessors.simulated import GRADE_SECONDS, PAIR_SECONDS
from podium.judging.bradley_terry import Duels, fit_bradley_terry
from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.rankers import LinearRanker, Ranker, TreeRanker
from studies.arrays import Doubles, Floats
from studies.end_to_end_page import write
from studies.parts import Part
from studies.study import Setup, Study

DOCUMENTS, K, FEATURES = 50, 10, 12
CAREFUL = 90
"""Judgments per query of a careful session, about as many as the default needs."""

Labeled = tuple[Floats, float]
"""The labels of a query's documents, and the seconds they took."""


def graded(relevance: Doubles, seed: int) -> Labeled:
    """Every document gets one of five grades, from one person."""
    judge = SimulatedAssessor[int](relevance.tolist(), HABITS["real"], random_state=seed)
    grades = [judge.grade(item) for item in range(DOCUMENTS)]
    return np.array(grades, np.float32), DOCUMENTS * GRADE_SECONDS


def selected(algorithm: str) -> Callable[[Doubles, int], Labeled]:
    """The ordered top k by a selection algorithm, as all verdicts together make it likeliest."""

    def label(relevance: Doubles, seed: int) -> Labeled:
        judge = SimulatedAssessor[int](relevance.tolist(), HABITS["real"], random_state=seed)
        rows: list[tuple[int, int, int, int]] = []

        def answer(left: int, right: int) -> Outcome:
            outcome = judge(left, right)
            rows.append((left, right, int(outcome), 0))
            return outcome

        run_selection(ALGORITHMS[algorithm], DOCUMENTS, K, answer)
        order = by_expected_gain(expected_gains(fit_bradley_terry(DOCUMENTS, Duels.of(rows)), K))
        return _top(order.tolist()), len(rows) * PAIR_SECONDS

    return label


def careful(relevance: Doubles, seed: int) -> Labeled:
    """The ordered top k by careful questions, each answered by another person."""
    names = [str(item) for item in range(DOCUMENTS)]
    judge = SimulatedAssessor(dict(zip(names, relevance.tolist(), strict=True)), random_state=seed)
    session = Session(names, K, algorithm="careful", budget=CAREFUL, random_state=seed)
    for spent in range(CAREFUL):
        pair = session.open_pairs()[0]
        session.add(Verdict(*pair, judge(*pair), str(spent)))
    return _top([int(item) for item in session.result().top]), CAREFUL * PAIR_SECONDS


def _top(order: Sequence[int]) -> Floats:
    ranks = np.full(DOCUMENTS, DOCUMENTS)
    ranks[list(order[:K])] = np.arange(1, min(K, len(order)) + 1)
    return from_ranks(ranks, k=K)


WAYS: dict[str, Callable[[Doubles, int], Labeled]] = {
    "five grades": graded,
    "pairs, heap": selected("heap"),
    "pairs, Podium's default": selected("adaptive"),
    "pairs, Podium's careful": careful,
}
RANKERS: dict[str, Callable[[], Ranker]] = {
    "linear, ListMLE": lambda: LinearRanker("ListMLE(k=10)", alpha=1e-2),
    "linear, all pairs": lambda: LinearRanker("PairLogistic()", alpha=1e-2),
    "trees, ListMLE": lambda: TreeRanker(
        "ListMLE(k=10)", n_estimators=300, engine_params={"num_leaves": 7}
    ),
}
"""How many trees are enough, judged queries that are held out say."""
MEASURES = (f"kNDCG(k={K})@10", "nDCG@10")
"""Against the true order of the top 10, and against quintiles of true relevance as five grades."""


def queries(count: int, seed: int) -> tuple[Doubles, Floats]:
    """Draw relevance and features, which explain half of its variance, partly non-linearly."""
    random = np.random.default_rng([seed, 3])
    features = random.standard_normal((count, DOCUMENTS, FEATURES))
    weights = np.random.default_rng(11).standard_normal(FEATURES)
    signal = features @ weights + 1.5 * features[..., 0] * features[..., 1]
    signal /= signal.std()
    relevance = np.sqrt(0.6) * signal + np.sqrt(0.4) * random.standard_normal(signal.shape)
    return relevance, features.astype(np.float32)


def hours_bought(repeat: int, hours: Sequence[float], tests: int) -> dict[str, Any]:
    """Judge queries until each number of hours is spent, train, and test on new queries."""
    most = int(max(hours) * 3600 / (DOCUMENTS * PAIR_SECONDS)) + 1
    relevance, features = queries(most, repeat)
    test_relevance, test_features = queries(tests, 10_000 + repeat)
    truth = {measure: _truth(measure, test_relevance) for measure in MEASURES}
    results: dict[str, Any] = {}
    for way, label in WAYS.items():
        labels: list[Floats] = []
        spent = [0.0]
        for number, query_relevance in enumerate(relevance):
            if spent[-1] > 3600 * max(hours):
                break
            query_labels, seconds = label(query_relevance, 1000 * repeat + number)
            labels.append(query_labels)
            spent.append(spent[-1] + seconds)
        for budget in hours:
            # At least two queries; the last one is judged to its end.
            judged = max(2, int(np.searchsorted(spent, 3600 * budget)))
            judged = min(judged, len(labels))
            for name, make in RANKERS.items():
                ranker = _trained(make(), features[:judged], np.array(labels[:judged]))
                scores = ranker.predict(_dataset(test_features, truth[MEASURES[0]]))
                results[f"{way}.{name}.{budget:g}"] = {
                    "queries": judged,
                    **{measure: _mean(measure, truth[measure], scores) for measure in MEASURES},
                    "first": _first(test_relevance, scores),
                }
    return results


def _trained(ranker: Ranker, features: Floats, labels: Floats) -> Ranker:
    """Train on all judged queries; every fifth one first says how many trees are enough."""
    if isinstance(ranker, TreeRanker):
        held = np.arange(len(features)) % 5 == 1
        shown, unseen = (_dataset(features[each], labels[each].ravel()) for each in (~held, held))
        ranker.fit(shown, eval_set=unseen)
        ranker = ranker.set_params(n_estimators=ranker.best_iteration_)
    return ranker.fit(_dataset(features, labels.ravel()))


def _dataset(features: Floats, labels: Floats) -> Dataset:
    rows = features.reshape(-1, FEATURES)
    return Dataset.from_arrays(rows, labels=labels, group=[DOCUMENTS] * len(features))


def _truth(measure: str, relevance: Doubles) -> Floats:
    offsets = np.arange(0, relevance.size + 1, DOCUMENTS)
    order = to_full_order(relevance.ravel().astype(np.float32), offsets)
    if measure == "nDCG@10":
        fifths: Floats = np.floor((order - 1) * 5 / DOCUMENTS).astype(np.float32)
        return fifths
    top: Floats = np.maximum(order - (DOCUMENTS - K), 0).astype(np.float32)
    return top


def _mean(measure: str, labels: Floats, scores: Doubles) -> float:
    parsed = parse_measure(measure)
    group = [DOCUMENTS] * (len(labels) // DOCUMENTS)
    return float(np.mean(evaluate(parsed, labels, scores, group=group)[parsed]))


def _first(relevance: Doubles, scores: Doubles) -> float:
    """The mean true relevance of the document ranked first, in standard deviations."""
    chosen = scores.reshape(relevance.shape).argmax(axis=1)
    return float(relevance[np.arange(len(relevance)), chosen].mean())


def _parts(setup: Setup) -> list[Part]:
    repeats, hours, tests = (
        (1, (1.0, 2.0), 50) if setup.quick else (12, (1.0, 2.0, 5.0, 10.0, 20.0), 500)
    )
    return [Part(f"repeat-{each}", hours_bought, (each, hours, tests)) for each in range(repeats)]


def _write(results: Mapping[str, Any], setup: Setup, images: Path) -> Any:
    return write(results, setup, images, tuple(WAYS), tuple(RANKERS), MEASURES)


STUDY = Study(
    "end-to-end",
    "What an hour of judging buys",
    "Ours: what hours of judging buy, by grades and by pairs.",
    """
No paper asks this question, and every team does: given a number of hours of judging, are they
better spent on five grades for every document, or on pairs for the ordered top 10? Simulated people
with the noise and ties of real ones judge queries of 50 documents one after the other until the
hours are over, at the seconds per judgment that Niu et al. (2012) measured (5.51 per pair, 13.87
per grade). The same rankers are trained from each (every fifth judged query says how many trees are
enough, then all of them train), and tested on new queries against the true
relevance of documents, which nobody has seen: by κ-NDCG@10 of the true top 10, by nDCG@10 with
quintiles of true relevance as grades (the scale that graders were asked for), and by the relevance
of the first result.
""",
    "",
    _parts,
    _write,
)
