"""The structural hinge: SVM-MAP, TopMargin and TopSlack as losses on scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from podium.data.gains import log2_discounts
from podium.errors import ArgumentError
from podium.kernels import Doubles
from podium.losses.base import normalize_k
from podium.losses.compiled import CompiledLoss, index_memory, top, work
from podium.losses.structural_ap import average_precision_hinge
from podium.losses.structural_positions import position_hinge

CHOICES = {
    "measure": ("ndcg", "precision", "ap"),
    "scaling": ("margin", "slack"),
    "equal_labels": ("scores", "mean"),
}


@dataclass(frozen=True)
class StructuralHinge(CompiledLoss):
    """The margin by which the correct order fails to beat every other one, scaled by its loss.

    An order scores ``sum a_p s``, over positions p, of the document there, where ``a_p`` is the
    weight of position p in the measure; its loss is 1 minus the measure, 0 for a right order. With
    margin scaling the value is the largest ``loss + score - score of the right order`` (Cheng et
    al.'s TopMargin, and SVM-MAP), with slack scaling the largest ``loss * (1 + score - score of
    the right order)`` (TopSlack). Slack scaling takes the best order on the hull of all (see
    ``podium.losses.slack_search``), whose value is a lower bound of the exact one, rarely less.

    - ``"ndcg"``: gains ``2^label - 1``, ``a_p = 1 / log2(1 + p)`` up to position k.
    - ``"precision"``: the top k are relevant, ``a_p = 1 / k``. A query with fewer than k is
      measured against the best it can reach.
    - ``"ap"``: the top k are relevant; orders score by pairs, as in SVM-MAP.

    Not smooth. The curvature is a substitute for one that is 0: the size of the gradient, so that a
    Newton step is at most a margin of 1. O(n log k) for n documents, O(n k + n log n) for AP; with
    slack scaling that times the steps of the search, about eight.

    Attributes:
        measure: What the loss of an order is measured by.
        scaling: How it enters: as the margin to reach, or as a factor.
        k: The cut-off for NDCG and Precision, and how many documents are relevant for Precision
            and AP, or None for all (all above the lowest label).
        equal_labels: Which of several correct orders is the reference if labels are equal:
            the one that the ``"scores"`` prefer, which asks for no order that the labels do not ask
            for but is convex only if the labels order the first k positions fully; or the
            ``"mean"`` of all, always convex, which pulls the scores of equal labels together. (It
            makes no difference for AP.)

    Example:
        >>> value = StructuralHinge("precision", k=1).evaluate([0.0, 0.0], [1, 0], [0, 2]).total
        >>> value
        1.0
    """

    measure: Literal["ndcg", "precision", "ap"] = "ndcg"
    scaling: Literal["margin", "slack"] = "margin"
    k: int | None = None
    equal_labels: Literal["scores", "mean"] = "scores"

    smooth = False

    @property
    def convex(self) -> bool:
        """Whether it is convex whatever the labels: for AP, and if ties are taken as the mean."""
        return self.measure == "ap" or self.equal_labels == "mean"

    def __post_init__(self) -> None:
        normalize_k(self)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                allowed = " or ".join(map(repr, choices))
                raise ArgumentError(f"{name} is {getattr(self, name)!r}. Give {allowed}.")
        if self.measure == "precision" and self.k is None:
            raise ArgumentError("Precision has no cut-off. Give k.")

    @property
    def query(self) -> Callable[..., float]:
        """The compiled function."""
        return average_precision_hinge if self.measure == "ap" else position_hinge

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """k, the choices, what positions count, and work memory."""
        slack = self.scaling == "slack"
        if self.measure == "ap":
            return top(self.k), slack, index_memory(4, largest)
        graded = self.measure == "ndcg"
        discounts = self._discounts(largest)
        choices = (graded, slack, self.equal_labels == "mean")
        return top(self.k), *choices, discounts, index_memory(2, largest), work(3, largest)

    def _discounts(self, largest: int) -> Doubles:
        positions = np.arange(1.0, 1.0 + min(top(self.k), largest))
        if self.measure == "ndcg":
            return log2_discounts(positions)
        return np.full(len(positions), 1.0 / top(self.k))
