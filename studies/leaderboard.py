"""Every model on every data set, fold by fold; a stopped run continues where it was stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from podium.cluster import Cluster, sweep
from podium.cluster.results_table import read_results
from podium.cluster.sweeps import SweepProgress
from podium.data import Dataset
from podium.errors import DataError
from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.rankers import LinearRanker, tune
from podium.rankers.tuning import TuningResult
from podium.threads import thread_count
from studies.collections import Fold, available, graded, load_folds
from studies.leaderboard_models import ENTRIES, Entry, K, Truth
from studies.provenance import leaderboard_code

CHOSEN_BY: dict[Truth, str] = {"graded": "nDCG@10", "top-k": f"kNDCG(k={K})@10"}
"""The measure that validation queries choose by."""

STANDARD = ["nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@1", "P@3", "P@5", "P@10", "AP", "ERR"]
LETOR = ["nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "AP"]
TOP_K = [*(f"kNDCG(k={K})@{cut}" for cut in range(1, 11)), f"kERR(k={K})"]

CURVES_ON = ("MQ2007", "Yandex")
"""The data sets of the curves over beta."""


@dataclass(frozen=True)
class LeaderboardTask:
    """One entry on one fold of one data set."""

    collection: str
    truth: Truth
    entry: str
    fold: int


@dataclass(frozen=True)
class LeaderboardResult:
    """The result of a task.

    Attributes:
        parameters: Those chosen on the validation queries.
        validation: The value of the measure on the validation queries.
        seconds: Processor time of all trainings.
        trainings: How many rankers were trained.
        query_ids: Ids of the test queries.
        values: For each measure its value for each test query; LETOR's start with ``letor:``.
        code: The version and the source that computed it (``leaderboard_code``).
    """

    parameters: dict[str, Any]
    validation: float
    seconds: float
    trainings: int
    query_ids: list[str]
    values: dict[str, list[float]]
    code: str


@dataclass(frozen=True)
class LeaderboardPlan:
    """What to run.

    Attributes:
        data: The folder with the data sets.
        results: The folder of the result tables, one per data set and truth.
        collections: The data sets; by default all that are in the folder.
        entries: The entries; by default all.
        ground_truths: Graded, top-k, or both.
        folds: How many folds of each.
        quick: Small grids and few trees.
    """

    data: Path
    results: Path
    collections: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    ground_truths: tuple[Truth, ...] = ("graded", "top-k")
    folds: int = 5
    quick: bool = False

    def tasks(self) -> Iterator[LeaderboardTask]:
        """Every task, those of one data set together."""
        names = self.collections or tuple(available(self.data))
        if not names:
            raise DataError(
                "there is no data set in this folder",
                path=self.data,
                hint="Name the folder that has letor/MQ2007, yandex, ….",
            )
        for collection in names:
            for truth in self.ground_truths:
                for entry in ENTRIES.values():
                    if self.entries and entry.name not in self.entries:
                        continue
                    curve = entry.family == "curve"
                    if curve and (self.quick or collection not in CURVES_ON):
                        continue
                    for fold in range(self.folds):
                        yield LeaderboardTask(collection, truth, entry.name, fold)


def results_file(folder: Path, collection: str, truth: Truth) -> Path:
    """The table with the results of a data set and truth."""
    return folder / f"{collection}-{truth}.parquet"


def run(
    plan: LeaderboardPlan,
    progress: Callable[[int, int], None] | None = None,
    *,
    cluster: Cluster | None = None,
) -> list[LeaderboardTask]:
    """Run the tasks that have no result yet, one per core; return all tasks.

    Args:
        plan: What to run.
        progress: Called with the number of finished tasks and of all tasks.
        cluster: Where to run them, with the data under the same path; by default this machine.
    """
    tasks = list(plan.tasks())
    finished = 0
    for (collection, truth), group in groupby(tasks, lambda task: (task.collection, task.truth)):
        grouped = list(group)

        def report(state: SweepProgress, before: int = finished) -> None:
            if progress is not None:
                progress(before + state.done, len(tasks))

        sweep(
            _TuneAndTest(plan.data, plan.quick),
            [asdict(task) for task in grouped],
            results=results_file(plan.results, collection, truth),
            progress=report,
            processes=min(thread_count(), len(grouped)),
            cluster=cluster,
        )
        finished += len(grouped)
    return tasks


@dataclass(frozen=True)
class _TuneAndTest:
    """Runs one task."""

    data: Path
    quick: bool

    def __call__(self, collection: str, truth: Truth, entry: str, fold: int) -> dict[str, Any]:
        """Tune on the training and validation queries, then measure on the test queries."""
        queries = _fold(self.data, collection, truth, fold)
        start = time.process_time()
        tuning = _tune(ENTRIES[entry], truth, queries, self.quick)
        seconds = time.process_time() - start
        best = tuning.trials[0]
        result = LeaderboardResult(
            {name: _plain(best.params[name]) for name in ENTRIES[entry].grid(truth)},
            best.value,
            seconds,
            len(tuning.trials) * (1 + len(getattr(tuning.best_ranker, "rerankers_", []))),
            queries.test.query_ids.to_pylist(),
            _measure(queries.test, tuning.best_ranker.predict(queries.test), truth),
            leaderboard_code(),
        )
        # As text, because a measure may be NaN for a query.
        return {**asdict(result), "values": json.dumps(result.values)}


def read_leaderboard(
    folder: Path, collection: str, truth: Truth
) -> dict[LeaderboardTask, LeaderboardResult]:
    """Read the results that there are of a data set and truth."""
    file = results_file(folder, collection, truth)
    return {
        LeaderboardTask(**result.parameters): LeaderboardResult(
            **{**result.values, "values": json.loads(result.values["values"])}
        )
        for result in (read_results(file) if file.exists() else [])
        if result.error is None
    }


@lru_cache(maxsize=1)
def _folds(data: Path, collection: str) -> list[Fold]:
    return load_folds(collection, data)


def _fold(data: Path, collection: str, truth: Truth, fold: int) -> Fold:
    queries = _folds(data, collection)[fold]
    if truth == "graded":
        return queries.map(lambda part: graded(collection, part))
    return queries.map(lambda part: part.top_k(K))


def _tune(entry: Entry, truth: Truth, fold: Fold, quick: bool) -> TuningResult:
    measure = CHOSEN_BY[truth]
    ranker = entry.ranker(truth)
    fixed: dict[str, Any] = {}
    if "measure" in ranker.get_params(deep=False):
        fixed["measure"] = measure
    if isinstance(ranker, LinearRanker):
        # Validation queries choose the best of the models on the way to the minimum, which is
        # seldom the last one: the minimum itself need not be exact.
        fixed |= {"tol": 1e-2, "max_iter": 20 if quick else 100}
    if quick:
        fixed |= {"n_estimators": 40} if hasattr(ranker, "n_estimators") else {}
    train = fold.train
    if entry.orders_grades and truth == "graded":
        train = train.top_k(K)
    return tune(
        ranker,
        {**entry.grid(truth), **{name: [value] for name, value in fixed.items()}},
        train,
        fold.validation,
        measure=measure,
        n_trials=1 if quick else entry.trials,
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else repr(value)


def _measure(test: Dataset, scores: Any, truth: Truth) -> dict[str, list[float]]:
    if truth == "top-k":
        return _values(TOP_K, test, scores, "podium", "")
    return _values(STANDARD, test, scores, "podium", "") | _values(
        LETOR, test, scores, "letor4", "letor:"
    )


def _values(
    names: Sequence[str], test: Dataset, scores: Any, conventions: str, prefix: str
) -> dict[str, list[float]]:
    evaluation = evaluate(names, test, scores, conventions=conventions)
    return {
        f"{prefix}{name}": np.round(evaluation[parse_measure(name)], 9).tolist() for name in names
    }
