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
"""The values of C that are tried."""

Progress = Callable[[int, int], None]
"""Told how many fits of how many are done."""


def choose_C(  # noqa: N802
    model: DCGLearn,
    preferences: RankingPreferences,
    grid: Sequence[float] = GRID,
    *,
    progress: Progress | None = None,
) -> float:
    """The C with the best accuracy on held-out preferences; the smallest of several.

    Whole queries are held out. While choosing, gains may differ by position: that problem is
    convex, and the best C is much the same. Where the preferences left to learn from say nothing
    of gains, no side leads, and half of what is held out counts as right whatever C is.

    Example:
        >>> from podium.utility import DCGLearn
        >>> pairs = RankingPreferences.from_arrays([[1, 0]] * 9, [[0, 1]] * 9, [1] * 9)
        >>> choose_C(DCGLearn(), pairs)
        0.001
    """
    scores = np.zeros(len(grid))
    quick = replace(model, form="by-position", normalised=False)
    parts = list(folds_of(preferences, model.folds, model.random_state))
    for number, (train, test) in enumerate(parts):
        learned: LearnedUtility | None = None
        # Every preference counts alike, whatever the fold it fell into.
        share = test.pair_weights[test.strict].sum()
        for place, C in enumerate(grid):
            learned = _learned(replace(quick, C=C), train, learned)
            leads = np.zeros(len(test)) if learned is None else test.leads(learned.table)
            scores[place] += share * accuracy(test, leads) if share else 0.0
            if progress is not None:
                progress(number * len(grid) + place + 1, len(parts) * len(grid))
    return float(grid[int(np.argmax(scores >= scores.max() * (1 - 1e-9)))])


def held_out_leads(
    model: DCGLearn,
    preferences: RankingPreferences,
    *,
    progress: Progress | None = None,
) -> Doubles:
    """How far left leads in each pair, by a utility learned from other queries only.

    Leads are in units of each fold's highest utility, so that they can be pooled; they are 0 where
    the other queries say nothing of gains.
    """
    leads = np.empty(len(preferences))
    masks = list(_held_out(preferences, model.folds, model.random_state))
    for number, held in enumerate(masks):
        learned = _learned(model, preferences.take(~held), None)
        test = preferences.take(held)
        leads[held] = 0.0 if learned is None else test.leads(learned.table) / learned.table.max()
        if progress is not None:
            progress(number + 1, len(masks))
    return leads


def _learned(
    model: DCGLearn, train: RankingPreferences, start: LearnedUtility | None
) -> LearnedUtility | None:
    """What is learned from a fold, or None where it says nothing of gains."""
    try:
        return replace(model).fit(train, start=start).learned_
    except NoGainsError:
        return None


def folds_of(
    preferences: RankingPreferences, folds: int, seed: int
) -> Iterator[tuple[RankingPreferences, RankingPreferences]]:
    """Training and held-out preferences of each fold, whole queries each."""
    for held in _held_out(preferences, folds, seed):
        yield preferences.take(~held), preferences.take(held)


def _held_out(
    preferences: RankingPreferences, folds: int, seed: int
) -> Iterator[NDArray[np.bool_]]:
    """Which pairs each fold holds out; strict preferences and ties are spread evenly."""
    numbers, query = np.unique(preferences.queries, return_inverse=True)
    if len(numbers) < max(folds, 2) or folds < 2:
        raise DataError(
            f"there are {len(numbers)} queries for {folds} folds",
            hint="Give a number for C, more preferences, or fewer folds (2 at least).",
        )
    strict = np.bincount(query, preferences.strict, len(numbers)) > 0
    order = generator(seed).permutation(len(numbers))
    order = order[np.argsort(~strict[order], kind="stable")]
    fold = np.empty(len(numbers), np.int64)
    fold[order] = np.arange(len(numbers)) % folds
    for number in range(folds):
        yield np.asarray(fold[query] == number)
