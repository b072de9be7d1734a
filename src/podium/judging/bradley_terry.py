"""Items' strengths from verdicts that may be wrong: Bradley and Terry's model with ties.

An item's strength w is normal with a mean and a standard deviation, the *spread*; the unit is the
noise of one verdict. With d = slope (w_left - w_right), left wins with probability s(d - t), right
with s(-d - t), and a tie takes the rest (Rao and Kupper 1967), s being the logistic function. A
person whose slope is 1 is average, one whose slope is 0 guesses. The most probable strengths are
found by Newton's method; around them the posterior is nearly normal (Laplace's approximation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv, dtrtrs

from podium.data.seeds import generator
from podium.errors import DataError
from podium.judging.algorithms.prior_beliefs import quantiles
from podium.kernels import Doubles, Ints, kernel

SPREAD = 1.6
"""The assumed standard deviation of items of a query, in units of a verdict's noise.

People who compared images show 2.0 (see `podium.judging.calibrate`); being a little too uncertain
costs less than being certain too soon.
"""

_ROUNDS = 30
_CLOSE_ENOUGH = 1e-3
_LONGEST_STEP = 3.0


@dataclass(frozen=True, eq=False)
class Duels:
    """Verdicts on items 0, 1, …, one row each.

    Attributes:
        left: The item on the left.
        right: The item on the right.
        outcomes: 1 if left is better, -1 if right is, 0 for a tie.
        raters: The number of the person who judged.
    """

    left: Ints
    right: Ints
    outcomes: Ints
    raters: Ints

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, int]]) -> Duels:
        """Duels from rows of left, right, outcome, rater."""
        return cls(*np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 4).T))

    @property
    def columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        """All four, as kernels take them."""
        return self.left, self.right, self.outcomes, self.raters


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of items' strengths.

    Attributes:
        means: The most probable strengths.
        precision: The inverse of their covariance.
        tie: The difference at which the better of two items wins half of the verdicts.
        slopes: For each person, how much of a difference shows in their verdicts.
    """

    means: Doubles
    precision: Doubles
    tie: float
    slopes: Doubles

    def draws(self, count: int, random_state: int) -> Doubles:
        """Strengths drawn from the posterior: one row per item, one column per draw."""
        noise = generator(random_state).standard_normal((len(self.means), count))
        spread, _ = dtrtrs(np.linalg.cholesky(self.precision), noise, lower=1, trans=1)
        drawn: Doubles = self.means[:, None] + spread
        return drawn

    def covariance(self, items: Ints) -> Doubles:
        """The covariance of some items' strengths."""
        _, columns, _ = dposv(self.precision, np.eye(len(self.means))[:, items])
        covariance: Doubles = columns[items]
        return covariance


def fit_bradley_terry(
    items: int,
    duels: Duels,
    *,
    means: Doubles | None = None,
    spread: float | Doubles = SPREAD,
    tie: float | None = None,
    side: float = 0.0,
    reliability: bool = False,
    start: Doubles | None = None,
) -> Posterior:
    """Estimate items' strengths.

    Args:
        items: How many there are.
        duels: The verdicts.
        means: The prior mean of each item; by default 0.
        spread: The prior standard deviation, per item or for all.
        tie: How different items must seem not to be a tie; estimated by default.
        side: The bias towards the item on the left.
        reliability: Whether to estimate each person's slope, or take all to be 1.
        start: Initial values of the search, such as the means of the last fit.

    Example:
        >>> rows = [(0, 1, 1, 0), (1, 2, 1, 0), (0, 2, 1, 0)]
        >>> posterior = fit_bradley_terry(3, Duels.of(rows))
        >>> posterior.means.argsort().tolist()
        [2, 1, 0]
    """
    if len(duels.left) and max(duels.left.max(), duels.right.max()) >= items:
        raise DataError("a verdict names an item that does not exist", hint="Check `items`.")
    prior = np.zeros(items) if means is None else means
    weights = np.broadcast_to(1 / np.asarray(spread, float) ** 2, items)
    slopes = np.ones(int(duels.raters.max(initial=0)) + 1)
    values = prior.copy() if start is None else start.copy()
    ties = int((duels.outcomes == 0).sum())
    width = 0.5 if tie is None else tie
    for _ in range(_ROUNDS):
        gradient = weights * (prior - values)
        precision = np.diag(weights)
        missed, curve = _add_duels(*duels.columns, values, slopes, width, side, gradient, precision)
        _, step, _ = dposv(precision, gradient)
        longest = float(np.abs(step).max(initial=0))
        values = values + step * min(1.0, _LONGEST_STEP / max(longest, 1e-9))
        if tie is None:
            width = update_tie_width(width, ties, missed, curve)
        if reliability and len(duels.left):
            slopes = _better_slopes(*duels.columns, values, slopes, width, side)
        if longest < _CLOSE_ENOUGH:
            break
    return Posterior(values, precision, width, slopes)


def prior_strengths(items: int, trust: float, spread: float = SPREAD) -> tuple[Doubles, float]:
    """The means and the spread that a prior ranking of some correlation with the truth gives.

    Example:
        >>> means, spread = prior_strengths(3, trust=0.8, spread=1.0)
        >>> means.round(2).tolist(), round(spread, 2)
        ([0.77, 0.0, -0.77], 0.6)
    """
    return trust * spread * quantiles(items), spread * float(np.sqrt(1 - trust**2))


def update_tie_width(tie: float, ties: int, missed: float, curve: float) -> float:
    """A Newton step for the tie width; half a tie more than there are keeps it above 0.

    Args:
        tie: The width so far.
        ties: How many verdicts are ties.
        missed: The sum, over all that verdicts say, of how improbable it was.
        curve: The sum of that times how probable it was.
    """
    odds = -math.expm1(-2 * tie)
    gradient = (ties + 0.5) * 2 / odds - missed - 1.5
    curve += (ties + 0.5) * 4 * math.exp(-2 * tie) / odds**2
    return min(max(tie + gradient / curve, tie / 3), tie * 3)


@kernel
def _missed(lead: float, tie: float, outcome: int) -> tuple[float, float]:
    """How improbable it was that left, and that right, is not the worse; a tie says both."""
    left = 1 / (1 + math.exp(lead - tie)) if outcome >= 0 else 0.0
    right = 1 / (1 + math.exp(-lead - tie)) if outcome <= 0 else 0.0
    return left, right


@kernel
def _add_duels(
    lefts: Ints,
    rights: Ints,
    outcomes: Ints,
    raters: Ints,
    values: Doubles,
    slopes: Doubles,
    tie: float,
    side: float,
    gradient: Doubles,
    precision: Doubles,
) -> tuple[float, float]:
    """Add the verdicts' terms to the log posterior's gradient and curvature at some strengths."""
    missed = bend = 0.0
    for row in range(len(lefts)):
        left, right, slope = lefts[row], rights[row], slopes[raters[row]]
        lead = slope * (values[left] - values[right]) + side
        missed_left, missed_right = _missed(lead, tie, outcomes[row])
        pull = slope * (missed_left - missed_right)
        gradient[left] += pull
        gradient[right] -= pull
        curve = missed_left * (1 - missed_left) + missed_right * (1 - missed_right)
        missed += missed_left + missed_right
        bend += curve
        curve *= slope * slope
        precision[left, left] += curve
        precision[right, right] += curve
        precision[left, right] -= curve
        precision[right, left] -= curve
    return missed, bend


@kernel
def _better_slopes(
    lefts: Ints,
    rights: Ints,
    outcomes: Ints,
    raters: Ints,
    values: Doubles,
    slopes: Doubles,
    tie: float,
    side: float,
) -> Doubles:
    """A Newton step for each person's slope, which is about 1 give or take a half."""
    gradients = -4 * (slopes - 1)
    curves = np.full(len(slopes), 4.0)
    for row in range(len(lefts)):
        rater = raters[row]
        gap = values[lefts[row]] - values[rights[row]]
        missed_left, missed_right = _missed(slopes[rater] * gap + side, tie, outcomes[row])
        gradients[rater] += gap * (missed_left - missed_right)
        curve = missed_left * (1 - missed_left) + missed_right * (1 - missed_right)
        curves[rater] += gap * gap * curve
    better = np.empty(len(slopes))
    for rater in range(len(slopes)):
        step = min(max(gradients[rater] / curves[rater], -0.5), 0.5)
        better[rater] = min(max(slopes[rater] + step, -1.0), 3.0)
    # Only the slopes' ratios are identifiable, so the mean verdict has slope 1.
    total = 0.0
    for row in range(len(raters)):
        total += better[raters[row]]
    return better / max(total / len(raters), 0.1)
