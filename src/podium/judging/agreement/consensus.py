"""Estimate the true answers behind several people's answers, and how reliable each person is.

Dawid and Skene 1979: where the true answer is j, each person answers l with their own
probability. True answers and probabilities are estimated in turn (expectation maximization).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from podium.errors import DataError
from podium.judging.agreement.ratings import Ratings
from podium.kernels import Doubles

_SMOOTHING = 0.01


@dataclass(frozen=True, eq=False)
class Consensus:
    """What Dawid and Skene's model makes of votes.

    Attributes:
        categories: The values that occur, in order.
        probabilities: Probability of each category, one row per unit.
        confusion: For each person, what they say (last axis) given what is true (middle axis).
        shares: How often each category is the true one.
    """

    categories: Doubles
    probabilities: Doubles
    confusion: Doubles
    shares: Doubles

    @property
    def values(self) -> Doubles:
        """The most likely value of each unit."""
        likeliest: Doubles = self.categories[self.probabilities.argmax(axis=1)]
        return likeliest

    @property
    def reliability(self) -> Doubles:
        """How often each person is right."""
        hits: Doubles = np.einsum("rjj,j->r", self.confusion, self.shares)
        return hits


def dawid_skene(ballots: Ratings, *, max_iter: int = 100, tol: float = 1e-6) -> Consensus:
    """Estimate the truth and each person's reliability.

    Unlike a majority it weighs people: three who guess do not outvote two who know.

    Args:
        ballots: The votes; single votes count too.
        max_iter: Maximum number of iterations.
        tol: Stop when the mean log-likelihood of a vote improves by less than this.

    Example:
        >>> votes = [[1, 1, -1], [-1, -1, 1], [1, 1, 1], [-1, -1, 1]] * 5
        >>> consensus = dawid_skene(Ratings.from_table(votes))
        >>> consensus.values[:4].tolist()
        [1.0, -1.0, 1.0, -1.0]
        >>> consensus.reliability.round(2).tolist()
        [1.0, 1.0, 0.25]
    """
    if not len(ballots.values):
        raise DataError("there are no votes", hint="Give at least one.")
    units, raters = ballots.units, ballots.raters
    answers = np.searchsorted(ballots.categories, ballots.values)
    counts = ballots.counts().astype(float)
    voted = counts.sum(axis=1) > 0
    size = len(ballots.categories)
    truth: Doubles = np.full(counts.shape, 1 / size)
    truth[voted] = counts[voted] / counts[voted].sum(axis=1, keepdims=True)
    before = -np.inf
    for _ in range(max_iter):
        shares = truth[voted].mean(axis=0)
        confusion = np.full((len(ballots.rater_names), size, size), _SMOOTHING)
        np.add.at(confusion.transpose(0, 2, 1), (raters, answers), truth[units])
        confusion /= confusion.sum(axis=2, keepdims=True)
        logs = np.tile(np.log(np.maximum(shares, 1e-300)), (len(counts), 1))
        np.add.at(logs, units, np.log(confusion.transpose(0, 2, 1)[raters, answers]))
        totals = logsumexp(logs, axis=1, keepdims=True)
        truth = np.exp(logs - totals)
        likelihood = float(totals[voted].sum()) / len(units)
        if likelihood - before < tol:
            break
        before = likelihood
    return Consensus(ballots.categories, truth, confusion, shares)
