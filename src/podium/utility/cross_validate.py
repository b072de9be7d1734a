"""C by cross-validation, and predictions for preferences that were held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from podium.data.seeds import generator
from podium.errors import DataError
from podium.kernels import Doubles
from podium.utility.learned_utility import LearnedUtility, accuracy
from podium.utility.preferences import RankingPreferences
from podium.utility.utility_tables import NoGainsError

if TYPE_CHECKING:
    from podium.utility.learn import DCGLearn

GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""The values of C to try."""

Progress = Callable[[int, int], None]
"""Called with the number of fits done and the total number."""


def choose_C(  # noqa: N802
    model: DCGLearn,
    preferences: RankingPreferences,
    grid: Sequence[float] = GRID,
    *,
    progress: Progress | None = None,
) -> float:
    """Choose the C with the best accuracy on held-out preferences, the smallest one if several tie.

    Whole queries are held out. While choosing, gains may differ by position: that problem is
    convex, and the best C is much the same. Where the training preferences
    determine no gains, no side leads, and half of the held-out preferences count as correct.

    Example:
        >>> from podium.utility import DCGLearn
        >>> pairs = RankingPreferences.from_arrays([[1, 0]] * 9, [[0, 1]] * 9, [1] * 9)
        >>> choose_C(DCGLearn(), pairs)
        0.001
    """
    grid = sorted(grid)
    scores = np.zeros(len(grid))
    quick = replace(model, form="by-position", normalized=False)
    parts = list(folds_of(preferences, model.folds, model.random_state))
    for number, (train, test) in enumerate(parts):
        learned: LearnedUtility | None = None
        # Every preference counts the same, whichever fold it is in.
        share = test.pair_weights[test.strict].sum()
        for index, C in enumerate(grid):
            learned = _learned(replace(quick, C=C), train, learned)
            leads = np.zeros(len(test)) if learned is None else test.leads(learned.table)
            scores[index] += share * accuracy(test, leads) if share else 0.0
            if progress is not None:
                progress(number * len(grid) + index + 1, len(parts) * len(grid))
    return float(grid[int(np.argmax(scores >= scores.max() * (1 - 1e-9)))])


def held_out_leads(
    model: DCGLearn,
    preferences: RankingPreferences,
    *,
    progress: Progress | None = None,
) -> Doubles:
    """Compute how far left leads in each pair by a utility learned from other queries only.

    Leads are in units of each fold's highest utility, so that they can be pooled; they are 0 where
    the other queries determine no gains.
    """
    leads = np.empty(len(preferences))
    masks = list(_held_out(preferences, model.folds, model.random_state))
    for number, held_out in enumerate(masks):
        train = preferences.take(~held_out)
        # C is chosen by cross-validation within, which has fewer queries to make folds of.
        folds = max(min(model.folds, len(np.unique(train.queries))), 2)
        learned = _learned(replace(model, folds=folds), train, None)
        test = preferences.take(held_out)
        leads[held_out] = (
            0.0 if learned is None else test.leads(learned.table) / learned.table.max()
        )
        if progress is not None:
            progress(number + 1, len(masks))
    return leads


def _learned(
    model: DCGLearn, train: RankingPreferences, start: LearnedUtility | None
) -> LearnedUtility | None:
    """Learn from one fold's training pairs; None if they determine no gains."""
    try:
        return replace(model).fit(train, start=start).learned_
    except NoGainsError:
        return None


def folds_of(
    preferences: RankingPreferences, folds: int, random_state: int
) -> Iterator[tuple[RankingPreferences, RankingPreferences]]:
    """Yield training and held-out preferences of each fold; no query is split."""
    for held_out in _held_out(preferences, folds, random_state):
        yield preferences.take(~held_out), preferences.take(held_out)


def _held_out(
    preferences: RankingPreferences, folds: int, random_state: int
) -> Iterator[NDArray[np.bool_]]:
    """Yield the mask of each fold's held-out pairs; strict ones and ties are spread evenly."""
    numbers, query = np.unique(preferences.queries, return_inverse=True)
    if len(numbers) < max(folds, 2) or folds < 2:
        raise DataError(
            f"there are {len(numbers)} queries for {folds} folds",
            hint="Give a number for C, more preferences, or fewer folds (2 at least).",
        )
    strict = np.bincount(query, preferences.strict, len(numbers)) > 0
    order = generator(random_state).permutation(len(numbers))
    order = order[np.argsort(~strict[order], kind="stable")]
    fold = np.empty(len(numbers), np.int64)
    fold[order] = np.arange(len(numbers)) % folds
    for number in range(folds):
        yield np.asarray(fold[query] == number)
