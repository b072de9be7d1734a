"""Every model on every data set, fold by fold, resumable: what is written is not done again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from podium.cluster import Cluster
from podium.data import Dataset
from podium.errors import DataError
from podium.measures import evaluate, parse_measure
from podium.rankers import LinearRanker, TuningResult, tune
from podium.rankers.tune import with_parameters
from podium.studies.collections import Fold, at_hand, graded, load_folds
from podium.studies.entries import ENTRIES, Entry, K, Truth
from podium.studies.missing import run_missing
from podium.studies.provenance import UNNAMED, code_name

CHOSEN_BY: dict[Truth, str] = {"graded": "nDCG@10", "top-k": f"kNDCG(k={K})@10"}
"""The measure that validation queries choose by."""

STANDARD = ["nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@1", "P@3", "P@5", "P@10", "AP", "ERR"]
LETOR = ["nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "AP"]
TOP_K = [*(f"kNDCG(k={K})@{cut}" for cut in range(1, 11)), f"kERR(k={K})"]

CURVES_ON = ("MQ2007", "Yandex")
"""The data sets of the curves over beta."""


@dataclass(frozen=True)
class Task:
    """One entry on one fold of one data set."""

    collection: str
    truth: Truth
    entry: str
    fold: int

    def file(self, folder: Path) -> Path:
        """Where its result is, or will be."""
        name = "".join(c if c.isalnum() or c in "-." else "_" for c in self.entry)
        return folder / self.collection / self.truth / f"{name}.{self.fold}.json"


@dataclass(frozen=True)
class Result:
    """What a task found.

    Attributes:
        parameters: Those that validation queries chose.
        validation: What they reached on the validation queries.
        seconds: Of processor time, for all trainings and choices.
        trainings: How many rankers were trained.
        query_ids: Of the test queries.
        values: For each measure its value for each test query; LETOR's have ``letor:`` before.
        code: The version and the source that made it (``code_name``).
    """

    parameters: dict[str, Any]
    validation: float
    seconds: float
    trainings: int
    query_ids: list[str]
    values: dict[str, list[float]]
    code: str = UNNAMED


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        data: The folder with the data sets.
        results: The folder that results are written to, and found in again.
        collections: The data sets, or none for all that are there.
        entries: The entries, or none for all.
        truths: Graded, top-k, or both.
        folds: How many folds of each.
        quick: Small grids and few trees.
    """

    data: Path
    results: Path
    collections: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    truths: tuple[Truth, ...] = ("graded", "top-k")
    folds: int = 5
    quick: bool = False

    def tasks(self) -> Iterator[Task]:
        """Every task, those of one data set together."""
        names = self.collections or tuple(at_hand(self.data))
        if not names:
            raise DataError(
                "there is no data set in it", path=self.data, hint="Name the folder that has them."
            )
        for collection in names:
            for truth in self.truths:
                for entry in ENTRIES.values():
                    if self.entries and entry.name not in self.entries:
                        continue
                    curve = entry.family == "curve"
                    if curve and (self.quick or truth == "graded" or collection not in CURVES_ON):
                        continue
                    for fold in range(self.folds):
                        yield Task(collection, truth, entry.name, fold)


def run(
    plan: Plan,
    progress: Callable[[int, int, Task | None], None] | None = None,
    *,
    cluster: Cluster | None = None,
) -> list[Task]:
    """Run what has no result yet, one task a core; return all tasks.

    Args:
        plan: What to run.
        progress: Told how many tasks are done, of how many, and which was the last.
        cluster: Where to work, with the data under the same path; by default this machine.
    """
    tasks = list(plan.tasks())
    files = {task: task.file(plan.results) for task in tasks}
    waiting = {str(file): task for task, file in files.items() if not file.exists()}
    before = len(tasks) - len(waiting)

    def told(done: int, last: str | None) -> None:
        if progress is not None:
            progress(before + done, len(tasks), None if last is None else waiting[last])

    run_missing(
        partial(_result_of, plan, waiting),
        {name: files[task] for name, task in waiting.items()},
        progress=told,
        cluster=cluster,
    )
    return tasks


def _result_of(plan: Plan, tasks: Mapping[str, Task], name: str) -> dict[str, Any]:
    """Tune and test."""
    task = tasks[name]
    fold = _fold(plan.data, task.collection, task.truth, task.fold)
    entry = ENTRIES[task.entry]
    start = time.process_time()
    found = _tuned(entry, task.truth, fold, plan.quick)
    best = found.trials[0]
    seconds = time.process_time() - start
    result = Result(
        {name: _plain(value) for name, value in best.params.items()},
        best.value,
        seconds,
        len(found.trials) * (1 + len(getattr(found.best_ranker, "rerankers_", []))),
        fold.test.query_ids.to_pylist(),
        _measured(fold.test, found.best_ranker.predict(fold.test), task.truth),
        code_name(),
    )
    return asdict(result)


def read_result(task: Task, folder: Path) -> Result:
    """The result that a task has written."""
    return Result(**json.loads(task.file(folder).read_bytes()))


@lru_cache(maxsize=1)
def _folds(data: Path, collection: str) -> list[Fold]:
    return load_folds(collection, data)


def _fold(data: Path, collection: str, truth: Truth, fold: int) -> Fold:
    found = _folds(data, collection)[fold]
    if truth == "graded":
        return found.mapped(lambda part: graded(collection, part))
    return found.mapped(lambda part: part.top_k(K))


def _tuned(entry: Entry, truth: Truth, fold: Fold, quick: bool) -> TuningResult:
    measure = CHOSEN_BY[truth]
    ranker = entry.ranker(truth)
    if "measure" in ranker.get_params(deep=False):
        ranker = with_parameters(ranker, {"measure": measure})
    if isinstance(ranker, LinearRanker):
        # Validation queries choose the best of the models met on the way to the minimum, which
        # is seldom the last: the minimum itself need not be exact.
        ranker = with_parameters(ranker, {"tol": 1e-2, "max_iter": 20 if quick else 100})
    if quick and hasattr(ranker, "n_estimators"):
        ranker = with_parameters(ranker, {"n_estimators": 40})
    train = fold.train
    if entry.orders_grades and truth == "graded":
        train = train.top_k(K)
    grid = entry.grid(truth)
    trials = 1 if quick else entry.trials
    return tune(ranker, grid, train, fold.validation, measure=measure, n_trials=trials)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else repr(value)


def _measured(test: Dataset, scores: Any, truth: Truth) -> dict[str, list[float]]:
    if truth == "top-k":
        return _values(TOP_K, test, scores, "podium", "")
    return _values(STANDARD, test, scores, "podium", "") | _values(
        LETOR, test, scores, "letor4", "letor:"
    )


def _values(
    names: Sequence[str], test: Dataset, scores: Any, conventions: str, before: str
) -> dict[str, list[float]]:
    found = evaluate(names, test, scores, conventions=conventions)
    return {f"{before}{name}": np.round(found[parse_measure(name)], 9).tolist() for name in names}
