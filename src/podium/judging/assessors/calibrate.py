"""Habits of real people, from their verdicts on the same pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from podium.data.preferences import Preferences
from podium.errors import DataError
from podium.judging.assessors.simulated import Habits
from podium.judging.bradley_terry import Duels, fit_bradley_terry, update_tie_width
from podium.kernels import Doubles

_ROUNDS = 12


@dataclass(frozen=True)
class Calibration:
    """What verdicts say about those who gave them, in units of a verdict's noise.

    Attributes:
        spread: The standard deviation of items' strengths within a query.
        tie: How different two items must seem not to be a tie.
        side: How much better the item on the left seems for being there.
    """

    spread: float
    tie: float
    side: float

    def habits(self) -> Habits:
        """The same for items whose strengths have standard deviation 1."""
        return Habits(1 / self.spread, self.tie / self.spread, self.side / self.spread)


def calibrate(preferences: Preferences) -> Calibration:
    """Estimate noise, ties and bias to a side, together with the items' strengths.

    Pairs must be judged several times, directly or through other items; from unconnected single
    verdicts, noise cannot be distinguished from small differences.

    Example:
        >>> random = np.random.default_rng(0)
        >>> strengths = 2 * random.standard_normal(60)
        >>> left, right = random.integers(0, 60, (2, 5000))
        >>> left, right = left[left != right], right[left != right]
        >>> seems = strengths[left] - strengths[right] + random.logistic(size=len(left))
        >>> verdicts = np.sign(seems) * (abs(seems) > 1)
        >>> calibration = calibrate(
        ...     Preferences.from_columns(["q"] * len(left), left, right, verdicts.astype(int))
        ... )
        >>> bool(abs(calibration.spread - strengths.std()) < 0.2 and abs(calibration.tie - 1) < 0.1)
        True
    """
    queries = _queries(preferences)
    spread, tie, side = 1.5, 0.5, 0.0
    starts = [np.zeros(items) for items, _ in queries]
    for _ in range(_ROUNDS):
        squares = total = 0.0
        leads, outcomes = [], []
        for index, (items, duels) in enumerate(queries):
            posterior = fit_bradley_terry(
                items, duels, spread=spread, tie=tie, side=side, start=starts[index]
            )
            starts[index] = posterior.means
            variances = np.diag(np.linalg.inv(posterior.precision))
            squares += float((posterior.means**2 + variances).sum())
            total += items
            leads.append(posterior.means[duels.left] - posterior.means[duels.right])
            outcomes.append(duels.outcomes)
        spread = float(np.sqrt(squares / total))
        tie, side = _better_widths(np.concatenate(leads), np.concatenate(outcomes), tie, side)
    return Calibration(spread, tie, side)


def _queries(preferences: Preferences) -> list[tuple[int, Duels]]:
    if not preferences.rows:
        raise DataError("there are no verdicts", hint="Give at least one.")
    queries = []
    left, right = preferences.left.to_pylist(), preferences.right.to_pylist()
    verdicts = preferences.verdicts.astype(np.int64)
    for begin, end in zip(preferences.offsets[:-1], preferences.offsets[1:], strict=True):
        index_of: dict[str, int] = {}
        rows = [
            (
                index_of.setdefault(left[row], len(index_of)),
                index_of.setdefault(right[row], len(index_of)),
            )
            for row in range(begin, end)
        ]
        pairs = np.array(rows)
        size = end - begin
        queries.append(
            (
                len(index_of),
                Duels(pairs[:, 0], pairs[:, 1], verdicts[begin:end], np.zeros(size, np.int64)),
            )
        )
    return queries


def _better_widths(
    leads: Doubles, outcomes: Doubles, tie: float, side: float
) -> tuple[float, float]:
    """Newton steps for the tie width and the bias, given the strengths."""
    for _ in range(5):
        missed_left = expit(tie - leads - side) * (outcomes >= 0)
        missed_right = expit(tie + leads + side) * (outcomes <= 0)
        gradient = float((missed_left - missed_right).sum())
        curve = float((missed_left * (1 - missed_left) + missed_right * (1 - missed_right)).sum())
        side += gradient / max(curve, 1e-9)
        missed = float(missed_left.sum() + missed_right.sum())
        tie = update_tie_width(tie, int((outcomes == 0).sum()), missed, curve)
    return tie, side
