"""Lan et al. (2013): losses of the top k bound 1 - NDCG@k, in the form in which it is true.

Their eq. (17) needs a loss of at least 1 for a tie, which the logistic loss has in base 2 only.
Their eq. (18) is false: an item with m inversions costs ListMLE at least ln(1 + m), not m ln 2.
"""

import math

import numpy as np
import pytest

from podium.kernels import Doubles
from podium.losses import ListMLE, Loss, PairExponential, PairHinge, PairLogistic
from tests.losses.cases import one_query, strict_query

# The factor of each loss in eq. (17).
PAIR_BOUNDS = [(PairHinge, 1.0), (PairExponential, 1.0), (PairLogistic, 1 / math.log(2))]
CASES = 1500


class Case:
    """Scores of documents in their right order, the measure, and weighted Kendall's tau."""

    def __init__(self, random: np.random.Generator) -> None:
        size = int(random.integers(2, 10))
        self.size, self.k = size, int(random.integers(1, size + 1))
        self.scores, _ = strict_query(random, size, scale=float(random.choice([0.1, 1.0, 5.0])))
        self.labels = np.arange(size, 0, -1.0)
        position = np.arange(1, size + 1)
        discount = np.where(position <= self.k, 1 / np.log2(1 + position), 0.0)
        gain = 2.0 ** (size - position) - 1
        rank = np.array([1 + np.sum(self.scores > score) for score in self.scores])
        self.ideal = float(gain @ discount)
        self.error = 1 - float(gain @ discount[rank - 1]) / self.ideal if self.ideal else 0.0
        self.alpha = (gain * discount)[: self.k]
        self.tau = float(self.alpha @ self.inversions()[: self.k])

    def inversions(self) -> Doubles:
        """How many worse documents score higher than each."""
        return np.array(
            [np.sum(self.scores[row + 1 :] > self.scores[row]) for row in range(self.size)]
        )

    def loss(self, loss: Loss) -> float:
        return one_query(loss, self.scores, self.labels).total


def _cases(seed: int) -> list[Case]:
    random = np.random.default_rng(seed)
    return [case for case in (Case(random) for _ in range(CASES)) if case.ideal > 0]


def test_weighted_kendalls_tau_bounds_the_error_of_ndcg() -> None:
    for case in _cases(0):
        assert case.error <= case.tau / case.ideal + 1e-12


@pytest.mark.parametrize(("kind", "factor"), PAIR_BOUNDS)
def test_pair_losses_bound_tau_and_ndcg(kind: type[PairHinge], factor: float) -> None:
    for case in _cases(1):
        bound = factor * case.alpha.max() * case.loss(kind(k=case.k))
        assert case.tau <= bound * (1 + 1e-12)
        assert case.error <= bound / case.ideal + 1e-12
        # The top-k loss is the tighter bound.
        assert case.loss(kind(k=case.k)) <= case.loss(kind()) * (1 + 1e-12)


def test_the_natural_logarithm_is_too_small_for_the_bound() -> None:
    """A pair that is wrong by almost nothing is one inversion but costs only ln 2."""
    scores, labels = np.array([0.0, 1e-9]), np.array([2.0, 1.0])
    loss = one_query(PairLogistic(k=1), scores, labels).total
    assert loss == pytest.approx(math.log(2))
    assert loss < 1


def test_list_mle_bounds_tau_with_the_corrected_factor() -> None:
    for case in _cases(2):
        loss = case.loss(ListMLE(k=case.k))
        corrected = (case.size - 1) / math.log(case.size) * case.alpha.max() * loss
        assert case.tau <= corrected * (1 + 1e-12)


def test_list_mle_bounds_ndcg_as_the_paper_concludes() -> None:
    for case in _cases(3):
        loss = case.loss(ListMLE(k=case.k))
        assert case.error <= case.alpha.max() * loss / math.log(2) / case.ideal + 1e-12
        assert loss <= case.loss(ListMLE()) * (1 + 1e-12)


def test_each_inversion_does_not_cost_list_mle_ln_2() -> None:
    """The counter-example to eq. (18): m inversions of one item for the price of ln(1 + m)."""
    inversions = 9
    scores = np.array([0.0] + [1e-9] * inversions)
    labels = np.arange(len(scores), 0, -1.0)
    loss = one_query(ListMLE(k=1), scores, labels).total
    assert loss == pytest.approx(math.log(1 + inversions))
    assert inversions > loss / math.log(2)  # tau with alpha = 1 exceeds the printed bound
