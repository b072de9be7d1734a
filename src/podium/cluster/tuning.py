"""``tune`` as a sweep: a task for each choice of parameters, and a table to go on from."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.cluster.checkpoints import fingerprint
from podium.cluster.connection import Cluster
from podium.cluster.results_table import task_key
from podium.cluster.sweeps import SweepProgress, sweep
from podium.errors import ArgumentError
from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.measures.registry import Measure

# Imported where they are used: see ``podium.cluster.fitting``.
if TYPE_CHECKING:
    from podium.rankers import Ranker
    from podium.rankers.training_data import TrainingData
    from podium.rankers.tuning import Sampler, Trial, TuningResult


@dataclass(frozen=True)
class _Fit:
    """A trial's work: fit with a combination of parameters, and measure."""

    ranker: Ranker
    combinations: Mapping[str, Mapping[str, Any]]  # by the key of the task
    train: TrainingData
    validation: TrainingData
    measure: str | Measure

    def __call__(self, **task: Any) -> dict[str, Any]:
        from podium.rankers.training_data import in_memory

        eval_set = in_memory(self.validation)
        fitted = self.fitted(task_key(task))
        value = evaluate(self.measure, eval_set, fitted.predict(eval_set)).means[self.measure]
        return {"value": float(value)}

    def fitted(self, key: str) -> Ranker:
        """The ranker of a trial; the same parameters and data give the same one again."""
        from sklearn.base import clone

        from podium.rankers.training_data import in_memory
        from podium.rankers.tuning import with_parameters

        candidate: Ranker = with_parameters(clone(self.ranker), self.combinations[key])
        return candidate.fit(self.train, eval_set=in_memory(self.validation))


def tune(
    ranker: Ranker,
    param_grid: Mapping[str, Sequence[Any]],
    train: TrainingData,
    validation: TrainingData,
    *,
    measure: str | Measure = "nDCG@10",
    n_trials: int | None = None,
    random_state: int = 0,
    sampler: Sampler = "random",
    progress: Callable[[int, int, Trial], None] | None = None,
    results: str | os.PathLike[str] | None = None,
    cluster: Cluster | None = None,
) -> TuningResult:
    """Fit a ranker for each combination of parameters: ``podium.rankers.tune``, as a sweep.

    With a table of results or a cluster, trials are tasks of a sweep, and the best ranker is fitted
    again at the end: a table has values, not rankers.

    Args:
        ranker: The ranker to tune; it is cloned, not changed.
        param_grid: The values to try for each parameter.
        train: The training queries; workers must be able to read the folder of a shard set.
        validation: The validation queries.
        measure: The measure that chooses the best ranker.
        n_trials: The number of combinations to try; by default all.
        random_state: The seed of the search.
        sampler: As of ``podium.rankers.tune``. ``"tpe"`` chooses one trial after the other, so
            there is neither a cluster nor a table for it.
        progress: Called after each trial with its number, the number of trials, and the trial.
        results: A Parquet table that keeps results; trials in it are not repeated.
        cluster: The cluster to work on; by default this process.

    Example:
        >>> import numpy as np
        >>> from podium.data import Dataset
        >>> from podium.rankers import LinearRanker
        >>> X = np.random.default_rng(0).random((200, 2))
        >>> data = Dataset.from_arrays(X, np.round(3 * X[:, 0]), group=[20] * 10)
        >>> result = tune(LinearRanker(), {"alpha": [1e-4, 1.0]}, *data.split(0.5, 0.5))
        >>> len(result.trials)
        2
    """
    from podium.rankers import tune as tune_here
    from podium.rankers.tuning import Trial, TuningResult, parameter_combinations

    if results is None and cluster is None:
        return tune_here(
            ranker,
            param_grid,
            train,
            validation,
            measure=measure,
            n_trials=n_trials,
            random_state=random_state,
            sampler=sampler,
            progress=progress,
        )
    if sampler != "random":
        raise ArgumentError(
            f"the sampler {sampler} works in this process, one trial after the other",
            hint="Leave out the table of results and the cluster, or choose the sampler random.",
        )
    combinations = parameter_combinations(param_grid, n_trials, random_state)
    named = [{name: _plain(value) for name, value in each.items()} for each in combinations]
    # A table may have trials of other rankers and data: those are ignored.
    of = {} if results is None else {"of": fingerprint(ranker, measure, train, validation)}
    counts = Counter(map(task_key, named))
    # Values that look alike in the table, such as objects, are told apart by their number.
    tasks = [
        {**each, **of, **({"trial": index} if counts[task_key(each)] > 1 else {})}
        for index, each in enumerate(named)
    ]
    keys = list(map(task_key, tasks))
    by_key = dict(zip(keys, combinations, strict=True))
    work = _Fit(ranker, by_key, train, validation, measure)

    def report(state: SweepProgress) -> None:
        if progress is not None and state.last is not None and state.last.error is None:
            last = state.last
            trial = Trial(by_key[task_key(last.parameters)], last.values["value"])
            progress(state.done, state.total, trial)

    results_of_trials = sweep(work, tasks, results=results, progress=report, cluster=cluster)
    sign = 1.0 if parse_measure(measure).larger_is_better else -1.0
    values = [result.values["value"] for result in results_of_trials]
    order = sorted(range(len(values)), key=lambda index: -sign * values[index])
    best = work.fitted(keys[order[0]])
    return TuningResult(tuple(Trial(combinations[index], values[index]) for index in order), best)


def _plain(value: Any) -> Any:
    """Convert a value for the table."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return repr(value)
    return value
