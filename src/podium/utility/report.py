"""A report on learned gains and discounts: intervals, held-out accuracy, tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from podium.data.gains import GainsName
from podium.data.seeds import generator
from podium.errors import DataError
from podium.kernels import Doubles, Ints
from podium.utility.bootstrap import Intervals, PositionTest, bootstrap_utility, position_test
from podium.utility.learn import DCGLearn, Progress, choose_C, held_out_leads
from podium.utility.learned_utility import LearnedUtility, hits
from podium.utility.preferences import RankingPreferences
from podium.utility.systems import Flips
from podium.utility.utility_tables import usual_table

LEARNED = "learned, held out"
BASELINES: dict[str, GainsName] = {"2^l - 1": "exponential", "l": "linear"}
_BANDS = 5
_FEW = 100
_SAMPLES = 2000


@dataclass(frozen=True)
class Accuracy:
    """The share of strict preferences that a utility agrees with.

    Attributes:
        name: The name of the utility.
        share: The share of all strict preferences.
        low: The lower end of its 95 % interval (over queries drawn with replacement).
        high: The upper end.
        bands: The share within each fifth of the preferences, by the size of the difference of
            the usual DCG, the smallest differences first.
        ahead: By how much the learned utility is ahead of this one, and the ends of that
            difference's 95 % interval; zeros for itself.
    """

    name: str
    share: float
    low: float
    high: float
    bands: tuple[float, ...]
    ahead: tuple[float, float, float]


@dataclass(frozen=True)
class UtilityReport:
    """A learned utility and how far to trust it.

    Attributes:
        learned: The utility learned from all preferences.
        intervals: The intervals of its gains and discounts.
        accuracies: The learned utility on held-out preferences, then the baselines.
        counts: How often each verdict was given, 2 first.
        position: The test of whether gains depend on the position, or None.
        same_documents: Whether every pair shows the same grades in two orders.
        flips: What the utility does to comparisons of systems, or None.
    """

    learned: LearnedUtility
    intervals: Intervals
    accuracies: tuple[Accuracy, ...]
    counts: tuple[int, ...]
    position: PositionTest | None
    same_documents: bool
    flips: Flips | None

    @property
    def pairs(self) -> int:
        """How many pairs were judged."""
        return sum(self.counts)

    def notes(self) -> list[str]:
        """Return notes on how to read the report, one sentence each."""
        strict = self.pairs - self.counts[2]
        ours, *others = self.accuracies
        lines = []
        for other in others:
            gain, low, high = other.ahead
            where = "clearly ahead of" if low > 0 else "not clearly different from"
            where = "clearly behind" if high < 0 else where
            lines.append(
                f"On held-out preferences the learned utility is {where} {other.name}: "
                f"{ours.share:.1%} against {other.share:.1%}, a difference of "
                f"{100 * gain:+.1f} points (95 % interval {100 * low:+.1f} to {100 * high:+.1f})."
            )
        if strict < _FEW:
            lines.append(
                f"{strict} strict preferences are too few to learn a utility from: the intervals "
                "above show how uncertain it is. Some hundreds are needed."
            )
        if self.same_documents:
            lines.append(
                "Every pair shows the same documents in two orders. Such pairs determine discounts "
                "only up to a constant added to all of them; the smallest are given here. Compare "
                "rankings of different documents too."
            )
        if self.position is not None:
            verb = "depend" if self.position.p_value < 0.05 else "are not seen to depend"
            lines.append(f"Gains {verb} on the position (p = {self.position.p_value:.3f}).")
        if self.flips is not None:
            count = len(self.flips.pairs)
            lines.append(
                f"{self.flips.share:.0%} of {count} comparisons of systems flip "
                f"if {self.flips.usual_measure} is replaced by the learned measure."
            )
        return lines


def utility_report(
    preferences: RankingPreferences,
    model: DCGLearn | None = None,
    *,
    resamples: int = 200,
    test_position: bool = True,
    flips: Callable[[LearnedUtility], Flips] | None = None,
    random_state: int = 0,
    progress: Callable[[str], Progress] | None = None,
) -> UtilityReport:
    """Learn a utility, and compare it with both usual gains on held-out preferences.

    Args:
        preferences: To learn from.
        model: How to learn; by default ``DCGLearn()``.
        resamples: How many for the intervals; the position test draws half as many.
        test_position: Whether to test that gains depend on the position, the slowest part.
        flips: Called with the learned utility to compare systems (see ``podium.utility.flips``).
        random_state: Seed of all draws.
        progress: Called with the name of each stage, returns a callback for its progress.

    Example:
        >>> random = np.random.default_rng(0)
        >>> pairs = RankingPreferences.from_arrays(*random.integers(0, 3, (2, 200, 3)))
        >>> pairs = pairs.with_choices(np.sign(pairs.leads(np.outer([3, 2, 1], [0, 1, 1.5]))))
        >>> result = utility_report(pairs, resamples=20, test_position=False)
        >>> result.accuracies[0].share > result.accuracies[1].share
        True
    """
    if not preferences.strict.any():
        raise DataError("there is no strict preference", hint="Ties alone determine no gains.")
    stage = progress or (lambda _title: lambda _done, _total: None)
    chosen = model or DCGLearn()
    if chosen.C is None:
        C = choose_C(chosen, preferences, progress=stage("Choosing C"))
        fixed = replace(chosen, C=C)
    else:
        fixed = replace(chosen)
    learned = fixed.fit(preferences).learned_
    # C is chosen anew inside each fold: held-out preferences must not influence it.
    leads = held_out_leads(chosen, preferences, progress=stage("Held-out accuracy"))
    intervals = bootstrap_utility(
        fixed,
        preferences,
        learned,
        resamples=resamples,
        random_state=random_state,
        progress=stage("Intervals"),
    )
    position = None
    if test_position:
        position = position_test(
            fixed,
            preferences,
            resamples=max(resamples // 2, 19),
            random_state=random_state,
            progress=stage("Test of positions"),
        )
    both = np.sort(preferences.left, axis=1), np.sort(preferences.right, axis=1)
    return UtilityReport(
        learned,
        intervals,
        _accuracies(preferences, leads, random_state),
        tuple(int(np.sum(preferences.choices == choice)) for choice in (2, 1, 0, -1, -2)),
        position,
        bool(np.array_equal(*both)),
        None if flips is None else flips(learned),
    )


def _accuracies(
    pairs: RankingPreferences, leads: Doubles, random_state: int
) -> tuple[Accuracy, ...]:
    tables = {
        name: usual_table(pairs.depth, pairs.grades, gains) for name, gains in BASELINES.items()
    }
    right = {LEARNED: hits(pairs, leads)}
    right |= {name: hits(pairs, pairs.leads(table)) for name, table in tables.items()}
    strict = np.flatnonzero(pairs.strict)
    usual = np.abs(pairs.leads(tables["2^l - 1"]))[strict]
    bands = np.array_split(np.argsort(usual, kind="stable"), _BANDS)
    weights = pairs.pair_weights[strict]
    shares = np.stack([each[strict] for each in right.values()])
    leads_by = shares[0] - shares
    low, high = _ends(
        pairs.queries[strict], weights, np.concatenate((shares, leads_by)), random_state
    )
    accuracies = []
    for row, name in enumerate(right):
        gap = row + len(right)
        accuracies.append(
            Accuracy(
                name,
                float(np.average(shares[row], weights=weights)),
                low[row],
                high[row],
                tuple(_mean(shares[row, band], weights[band]) for band in bands),
                (float(np.average(leads_by[row], weights=weights)), low[gap], high[gap]),
            )
        )
    return tuple(accuracies)


def _mean(values: Doubles, weights: Doubles) -> float:
    return float(np.average(values, weights=weights)) if weights.any() else np.nan


def _ends(
    queries: Ints, weights: Doubles, values: Doubles, random_state: int
) -> tuple[list[float], list[float]]:
    """Bounds of the 95 % interval of each row's weighted mean, by resampling queries."""
    numbers, query = np.unique(queries, return_inverse=True)
    count = len(numbers)
    sums = np.stack([np.bincount(query, weights * row, count) for row in (*values, values[0] ** 0)])
    random = generator(random_state)
    samples = min(_SAMPLES, max(200, 20_000_000 // count))
    shares = np.full(count, 1.0 / count)
    drawn = np.stack([sums @ random.multinomial(count, shares) for _ in range(samples)])
    means = drawn[:, :-1] / np.maximum(drawn[:, -1:], 1e-300)
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    return low.tolist(), high.tolist()
