"""``tune`` as a sweep: a task for each choice of parameters, and a table to go on from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.cluster.checkpoints import fingerprint
from podium.cluster.connection import Cluster
from podium.cluster.sweep import SweepProgress, sweep
from podium.measures import Measure, evaluate, parse_measure

# Imported where they are used: see ``podium.cluster.fit``.
if TYPE_CHECKING:
    from podium.rankers import Ranker, Trial, Tuning
    from podium.rankers.base import Training


@dataclass(frozen=True)
class _Fit:
    """A trial's work: fit with a combination of parameters, and measure."""

    ranker: Ranker
    combinations: tuple[Mapping[str, Any], ...]
    train: Training
    validation: Training
    measure: str | Measure

    def __call__(self, trial: int, **_named: Any) -> dict[str, Any]:
        from podium.rankers.base import in_memory

        held_out = in_memory(self.validation)
        fitted = self.fitted(trial)
        value = evaluate(self.measure, held_out, fitted.predict(held_out)).means[self.measure]
        return {"value": float(value)}

    def fitted(self, trial: int) -> Ranker:
        """The ranker of a trial; the same parameters and data give the same one again."""
        from sklearn.base import clone

        from podium.rankers.base import in_memory
        from podium.rankers.tune import with_parameters

        candidate = with_parameters(clone(self.ranker), self.combinations[trial])
        return candidate.fit(self.train, validation=in_memory(self.validation))


def tune(
    ranker: Ranker,
    choices: Mapping[str, Sequence[Any]],
    train: Training,
    validation: Training,
    *,
    measure: str | Measure = "nDCG@10",
    trials: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int, Trial], None] | None = None,
    results: str | os.PathLike[str] | None = None,
    cluster: Cluster | None = None,
) -> Tuning:
    """Fit a ranker for each choice of parameters: ``podium.rankers.tune``, as a sweep.

    With a table of results or a cluster, trials are tasks of a sweep, and the best ranker is
    fitted once more at the end: a table holds values, not rankers.

    Args:
        ranker: What to tune; it is cloned, not changed.
        choices: The values to try for each parameter.
        train: What each ranker is fitted on; workers must reach the folder of a shard set.
        validation: What chooses between them.
        measure: By which measure.
        trials: Try so many combinations drawn at random; by default all of them.
        seed: Draws them.
        progress: Called after each trial with its number, their total and the trial.
        results: The Parquet table that results are kept in, and not tried again from.
        cluster: Where to work; by default this process.

    Example:
        >>> import numpy as np
        >>> from podium.data import Dataset
        >>> from podium.rankers import LinearRanker
        >>> X = np.random.default_rng(0).random((200, 2))
        >>> data = Dataset.from_arrays(X, np.round(3 * X[:, 0]), group=[20] * 10)
        >>> found = tune(LinearRanker(), {"penalty": [1e-4, 1.0]}, *data.split(0.5, 0.5))
        >>> len(found.trials)
        2
    """
    from podium.rankers import Trial, Tuning
    from podium.rankers import tune as tune_here
    from podium.rankers.tune import combinations_of

    if results is None and cluster is None:
        return tune_here(
            ranker,
            choices,
            train,
            validation,
            measure=measure,
            trials=trials,
            seed=seed,
            progress=progress,
        )
    combinations = combinations_of(choices, trials, seed)
    work = _Fit(ranker, tuple(combinations), train, validation, measure)
    named = [{name: _plain(value) for name, value in each.items()} for each in combinations]
    # A table may hold trials of other rankers and data: those are not taken for these.
    of = {} if results is None else {"of": fingerprint(ranker, measure, train, validation)}
    tasks = [{"trial": place, **each, **of} for place, each in enumerate(named)]

    def told(state: SweepProgress) -> None:
        if progress is not None and state.last is not None and state.last.error is None:
            last = state.last
            trial = Trial(combinations[last.parameters["trial"]], last.values["value"])
            progress(state.done, state.total, trial)

    found = sweep(work, tasks, results=results, progress=told, cluster=cluster)
    sign = 1.0 if parse_measure(measure).larger_is_better else -1.0
    values = [one.values["value"] for one in found]
    order = sorted(range(len(values)), key=lambda place: -sign * values[place])
    best = work.fitted(order[0])
    return Tuning(tuple(Trial(combinations[place], values[place]) for place in order), best)


def _plain(value: Any) -> Any:
    """A value as the table can hold it."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return repr(value)
    return value
