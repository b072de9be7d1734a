"""Training beside the engines' own ranking objectives, and beside a support vector machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks._report import Report
from podium.data import Dataset, concat_datasets, read_letor
from podium.losses.names import parse_loss
from podium.rankers import LinearRanker
from podium.rankers.engines import ENGINES

_LOSSES = {
    "top-10 ListMLE": "ListMLE(k=10)",
    "FocusedNet": "Focused(ListNet(k=10), PairLogistic(k=10), beta=0.5)",
}
_LETOR = Path(__file__).parents[2] / "shared" / "data" / "letor" / "MQ2007"
_ENGINE: dict[str, float] = {"learning_rate": 0.1}
_SIZE: dict[str, dict[str, float]] = {"lightgbm": {"num_leaves": 31}, "xgboost": {"max_depth": 6}}
"""The engines' own defaults, for both sides."""


def trees(report: Report, quick: bool) -> None:
    """Time per boosting iteration, each engine's own objective and Podium's in turn."""
    rows = 60_000 if quick else 500_000
    steps = 8 if quick else 12
    random = np.random.default_rng(0)
    features = random.random((rows, 136), np.float32)
    truth = features @ random.normal(size=136) + 2 * random.normal(size=rows)
    grades = np.digitize(truth, np.quantile(truth, [0.6, 0.8, 0.93, 0.98]))
    data = Dataset.from_arrays(features, labels=grades, group=[100] * (rows // 100))
    top = data.top_k(10)
    report.note(f"{rows:,} rows x 136 features, 100 documents a query, {steps} iterations each")
    for engine, own in (("lightgbm", _lambdarank(data)), ("xgboost", _rank_ndcg(data))):
        runs: dict[str, Callable[[], object]] = {"own": own}
        for name, text in _LOSSES.items():
            runs[name] = _podium(engine, text, top)
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(steps):
            for name, step in runs.items():
                start = time.perf_counter()
                step()
                seconds[name].append(time.perf_counter() - start)
        # The first iterations allocate and, for a new machine, compile.
        typical = {name: median(values[2:]) for name, values in seconds.items()}
        for name in _LOSSES:
            report.check(
                f"{engine}: {name} against its own objective ({typical['own']:.3f} s)",
                typical[name] / typical["own"],
                1.0,
                at_least=False,
            )


def _podium(engine: str, loss_text: str, data: Dataset) -> Callable[[], object]:
    loss = parse_loss(loss_text)
    booster = ENGINES[engine].start(data, None, _ENGINE | _SIZE[engine])
    buffers = np.empty(data.rows), np.empty(data.rows)

    def step() -> None:
        evaluation = loss.evaluate(
            booster.training_scores(), data.labels, data.offsets, out=buffers
        )
        booster.grow(evaluation.gradient, evaluation.curvature)

    return step


def _lambdarank(data: Dataset) -> Callable[[], object]:
    import lightgbm

    settings = {"objective": "lambdarank", "metric": "none", "verbosity": -1, "num_threads": 2}
    settings |= {"deterministic": True, "force_row_wise": True, "lambdarank_truncation_level": 10}
    settings |= _ENGINE | _SIZE["lightgbm"]
    rows = lightgbm.Dataset(data.features, data.labels, group=data.sizes, params=settings)
    return lightgbm.Booster(settings, rows).update


def _rank_ndcg(data: Dataset) -> Callable[[], object]:
    import xgboost

    settings = {"objective": "rank:ndcg", "tree_method": "hist", "nthread": 2, **_ENGINE}
    settings |= {"disable_default_eval_metric": True, "lambdarank_num_pair_per_sample": 10}
    settings |= _SIZE["xgboost"]
    rows = xgboost.QuantileDMatrix(data.features, data.labels, group=data.sizes, nthread=2)
    booster = xgboost.Booster(settings, cache=[rows])
    return lambda: booster.update(rows, booster.num_boosted_rounds())


def support_vectors(report: Report, quick: bool) -> None:
    """The top-10 hinge on MQ2007's first training fold, beside LinearSVC on all its pairs."""
    from sklearn.svm import LinearSVC

    if not _LETOR.exists():
        report.note(f"{_LETOR} is not here: the support vector machine is left out")
        return
    parts = [read_letor(_LETOR / f"S{part}.txt.gz") for part in ((1,) if quick else (1, 2, 3))]
    data = concat_datasets(parts).top_k(10)
    penalty = 0.01
    ranker = LinearRanker("PairHinge(k=10)", alpha=penalty, tol=5e-4)
    ranker.fit(data.select(np.arange(20)))  # compiles, unless that was done before
    fits = []
    for _ in range(9):  # of some hundredths of a second each: one alone says little
        start = time.perf_counter()
        ranker.fit(data)
        fits.append(time.perf_counter() - start)
    ours = median(fits)
    differences = _differences(data)
    signs = np.where(np.arange(len(differences)) % 2, 1, -1)
    differences *= signs[:, None]
    start = time.perf_counter()
    machine = LinearSVC(
        loss="hinge", C=1 / (penalty * len(data)), fit_intercept=False, tol=1e-3, max_iter=100_000
    ).fit(differences, signs)
    theirs = time.perf_counter() - start
    differences *= signs[:, None]
    values = [
        _objective(differences, weights, penalty, len(data))
        for weights in (ranker.coef_, machine.coef_[0])
    ]
    report.note(
        f"{len(differences):,} pairs: podium {ours:.2f} s, objective {values[0]:.5f}; "
        f"LinearSVC {theirs:.2f} s, objective {values[1]:.5f}"
    )
    report.check("LinearRanker against LinearSVC on the pairs", theirs / ours, 10)
    report.check(
        "its objective above LinearSVC's", values[0] / values[1] - 1, 1e-3, at_least=False, unit=""
    )


def _differences(data: Dataset) -> np.ndarray:
    parts = []
    for query in data:
        better, worse = np.nonzero(query.labels[:, None] > query.labels[None, :])
        parts.append(query.features[better] - query.features[worse])
    return np.concatenate(parts).astype(np.float64)


def _objective(differences: np.ndarray, weights: np.ndarray, penalty: float, queries: int) -> float:
    hinge = np.maximum(0.0, 1.0 - differences @ weights).sum() / queries
    return float(penalty / 2 * weights @ weights + hinge)
