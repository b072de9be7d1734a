"""DCGLearn: gains and discounts from preferences between rankings (Zhou et al. 2012).

C is chosen by cross-validation, and predictions are for preferences that were held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.utility.learned_utility import LearnedUtility, accuracy
from podium.utility.newton import Solution, minimize, ridge_of
from podium.utility.pair_kernels import PairArrays
from podium.utility.preferences import RankingPreferences
from podium.utility.utility_tables import (
    NoGainsError,
    as_table,
    factor,
    in_units,
    increments,
    of_discounts,
    of_gains,
)

Form = Literal["rank-one", "by-position"]

GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""The values of C to try."""

Progress = Callable[[int, int], None]
"""Called with the number of fits done and the total number."""

_ROUNDS = 500
_SETTLED = 1e-9
_IDEAL_ROUNDS = 30
_IDEAL_SETTLED = 1e-4


@dataclass
class DCGLearn:
    """Learn the utility ``w`` of each grade at each position from preferences.

    Minimizes ``w·w + C * (sum of squared slacks)`` where a preferred ranking should lead by 1, two
    tied ones should be within 1 of each other, and a higher grade is never worth less than a lower
    one at the same position (eqs 1 to 3 and 6 to 8). The solution is exact, and the time it takes
    grows in proportion to the pairs.

    Attributes:
        C: The weight of the slacks, or None to choose it by cross-validation.
        form: "rank-one" for gains times discounts, by alternating minimization that starts from
            the factors of the other form; "by-position" for gains that may differ by position,
            the paper's problem, which is convex.
        decreasing: Whether a grade must not count more further down. Preferences alone do not
            guarantee decreasing discounts.
        tie_weight: The weight of a tie's slack relative to that of a strict preference; 0
            ignores ties.
        much: The lead required by "much better", where "better" requires 1.
        normalized: Whether leads are taken relative to the best that the query's documents could
            reach, as in nDCG: a lead then means the same for queries with many good documents
            and with few.
        folds: How many folds cross-validation has.
        random_state: Seed of the folds.
        learned_: The utility that ``fit`` learned.

    Example:
        >>> random = np.random.default_rng(1)
        >>> one, other = random.integers(0, 3, (2, 500, 4))
        >>> truth = np.outer([1, 0.6, 0.5, 0.4], [0, 1, 4])
        >>> pairs = RankingPreferences.from_arrays(one, other)
        >>> pairs = pairs.with_choices(np.sign(pairs.leads(truth)))
        >>> learned = DCGLearn(C=100.0).fit(pairs).learned_
        >>> learned.gains.round(1).tolist(), learned.discounts.round(1).tolist()
        ([0.0, 0.2, 1.0], [1.0, 0.6, 0.5, 0.4])
    """

    C: float | None = None
    form: Form = "rank-one"
    decreasing: bool = False
    tie_weight: float = 1.0
    much: float = 1.0
    normalized: bool = False
    folds: int = 5
    random_state: int = 0
    learned_: LearnedUtility = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.C is not None and not 0 < self.C < np.inf:
            raise ArgumentError(f"C is {self.C}. Give a number above 0, or None.")
        if self.form not in ("rank-one", "by-position"):
            raise ArgumentError(f"form is {self.form!r}. Give 'rank-one' or 'by-position'.")
        if not 0 <= self.tie_weight < np.inf:
            raise ArgumentError(f"tie_weight is {self.tie_weight}. Give a number of at least 0.")
        if not 1 <= self.much < np.inf:
            raise ArgumentError(f"much is {self.much}. Give a number of at least 1.")

    def fit(self, preferences: RankingPreferences, *, start: LearnedUtility | None = None) -> Self:
        """Learn from preferences, and return self; the utility is ``learned_``.

        Args:
            preferences: At least one of them strict.
            start: What was learned from similar preferences, to converge faster.
        """
        model = self if self.C is not None else replace(self, C=choose_C(self, preferences))
        self.learned_ = model._learn(preferences, start)
        return self

    def _learn(
        self, preferences: RankingPreferences, start: LearnedUtility | None
    ) -> LearnedUtility:
        if not self.normalized:
            return self._fit(preferences, None, start)
        ideals = np.ones(len(preferences))
        learned = start or self._fit(preferences, None, None)
        for _ in range(_IDEAL_ROUNDS):
            before = ideals
            ideals = _ideals(preferences, learned.table)
            learned = self._fit(preferences, ideals, learned)
            if np.abs(ideals - before).max() <= _IDEAL_SETTLED:
                break
        return learned

    def _fit(
        self, preferences: RankingPreferences, ideals: Doubles | None, start: LearnedUtility | None
    ) -> LearnedUtility:
        assert self.C is not None
        depth, grades = preferences.depth, preferences.grades
        pairs = self._pairs(preferences, ideals)
        ridge = ridge_of(depth, grades)
        if self.form == "by-position" or start is None:
            solution = self._by_position(pairs, ridge, depth, grades, start)
            table = as_table(solution.utilities, depth)
            gains, discounts = factor(table)
        else:
            gains, discounts = start.gains, start.discounts
        if self.form == "rank-one":
            gains, discounts = np.maximum(gains, 0.0), np.maximum(discounts, 0.0)
            solution = self._rank_one(pairs, ridge, gains, discounts)
            table = as_table(solution.utilities, depth)
            gains, discounts = factor(table)
        return LearnedUtility(
            table, gains, discounts, self.form, self.normalized, self.C, solution.objective
        )

    def _pairs(self, preferences: RankingPreferences, ideals: Doubles | None) -> PairArrays:
        """Put the better side of each pair left; scale targets by the ideals, if there are any."""
        assert self.C is not None
        choices = preferences.choices
        flipped = (choices < 0)[:, None]
        left, right = preferences.left, preferences.right
        targets = np.where(np.abs(choices) == 2, self.much, 1.0)
        weights = self.C * preferences.pair_weights * np.where(choices == 0, self.tie_weight, 1.0)
        if ideals is not None:
            targets, weights = targets * ideals, weights / ideals**2
        if flipped.any():
            left, right = np.where(flipped, right, left), np.where(flipped, left, right)
        return PairArrays(left, right, targets, weights, choices == 0, preferences.grades)

    def _by_position(
        self,
        pairs: PairArrays,
        ridge: Doubles,
        depth: int,
        grades: int,
        start: LearnedUtility | None,
    ) -> Solution:
        shape = increments(depth, grades, decreasing=self.decreasing)
        variables = None
        if start is not None and start.form == "by-position":
            steps = np.diff(start.table, axis=1)
            if self.decreasing:
                steps[:-1] -= steps[1:]
            variables = np.maximum(steps, 0.0).ravel()
        return minimize(pairs, ridge, shape, variables)

    def _rank_one(
        self, pairs: PairArrays, ridge: Doubles, gains: Doubles, discounts: Doubles
    ) -> Solution:
        """Minimize over gains and discounts in turn; each step lowers the objective."""
        depth, grades = len(discounts), len(gains)
        best = np.inf
        rises, discount_steps = None, None
        for _ in range(_ROUNDS):
            solved = minimize(pairs, ridge, of_gains(discounts, grades), rises)
            gains = np.concatenate(([0.0], np.cumsum(solved.variables)))
            if not gains[-1] > 0:
                return solved
            gains, _ = in_units(gains, discounts)
            # Gains in units of the highest: the discounts solved for next carry the scale.
            shape = of_discounts(gains, depth, decreasing=self.decreasing)
            solved = minimize(pairs, ridge, shape, discount_steps)
            discount_steps = solved.variables
            steps = np.cumsum(discount_steps[::-1])[::-1] if self.decreasing else discount_steps
            if not steps.max() > 0:
                return solved
            scale = steps.max()
            discounts, rises = steps / scale, np.diff(gains) * scale
            if solved.objective >= best * (1 - _SETTLED):
                break
            best = solved.objective
        return solved


def _ideals(preferences: RankingPreferences, table: Doubles) -> Doubles:
    """The best utility that each pair's documents could reach, relative to the mean of all.

    The ideal takes the larger of the two lists' grades at each position once both are sorted: all
    that is known of the query's documents.
    """
    one, other = (np.sort(side, axis=1)[:, ::-1] for side in (preferences.left, preferences.right))
    best = np.maximum(one, other).astype(np.int64)
    values = table[np.arange(preferences.depth), best].sum(axis=1)
    # A query with nothing above the lowest grade has neither an ideal nor a lead.
    mean = float(values.mean())
    return np.maximum(values, 1e-3 * mean) / mean if mean > 0 else np.ones(len(values))


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
