"""FocusedRank: a list loss on the order of the top k, a pair loss between them and the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from podium.errors import ArgumentError
from podium.kernels import Doubles, Ints, kernel
from podium.losses.base import Batch, Loss, normalize_k
from podium.losses.compiled import PairLoss
from podium.losses.orders import top_documents


@kernel
def _combine(
    offsets: Ints,
    values: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    starts: Ints,
    list_values: Doubles,
    list_gradient: Doubles,
    list_curvature: Doubles,
    chosen: Ints,
    scales: Doubles,
    beta: float,
) -> None:
    """Add the list terms to the pair terms, each divided by its scale."""
    for query in range(len(starts) - 1):
        begin, end = offsets[query], offsets[query + 1]
        size = starts[query + 1] - starts[query]
        pairs = size * (end - begin - size)
        by_pair = (1.0 - beta) / pairs if pairs > 0 else 0.0
        by_list = beta / scales[query] if scales[query] > 0.0 else 0.0
        values[query] = by_pair * values[query] + by_list * list_values[query]
        for row in range(begin, end):
            gradient[row] *= by_pair
            curvature[row] *= by_pair
        for index in range(starts[query], starts[query + 1]):
            gradient[chosen[index]] += by_list * list_gradient[index]
            curvature[chosen[index]] += by_list * list_curvature[index]


@dataclass(frozen=True)
class Focused(Loss):
    """A list loss among the top k plus a pair loss of the top k against the rest (Niu et al. 2012).

    ``beta * list + (1 - beta) * pair``, each scaled to a comparable range for each query: the
    pair term divided by its number of pairs, the list term by its value for scores of 0. FocusedNet
    is ``Focused(ListNet(permutations=True), PairLogistic(), k=10)``, or faster with ``ListNet()``;
    FocusedSVM is ``Focused(StructuralHinge("ap", k=5), PairHinge(scaled=True), k=10)``.

    It is as smooth and as convex as both terms are, and costs what they cost: the list loss on k
    documents (twice, once for its scale, unless it knows that by a formula), the pair loss on all.

    Attributes:
        list_loss: Evaluated on the top k documents alone.
        pair_loss: The loss over pairs. Only the pairs across the edge of the top k count; any
            other loss is given label 1 for the top k and 0 for the rest.
        beta: The weight of the list term, from 0 to 1.
        k: How many documents are the top, ties with the last included; or None for all above the
            lowest label, right for labels that are top-k orders.

    Example:
        >>> from podium.losses import ListMLE, PairHinge
        >>> loss = Focused(ListMLE(), PairHinge(), beta=0.5, k=2)
        >>> loss.evaluate([0.0, 0.0, 0.0, 0.0], [2, 1, 0, 0], [0, 4]).total
        1.0
    """

    list_loss: Loss
    pair_loss: Loss
    beta: float = 0.5
    k: int | None = None

    def __post_init__(self) -> None:
        normalize_k(self)
        for term in (self.list_loss, self.pair_loss):
            if not isinstance(term, Loss):
                raise ArgumentError(
                    f"{term!r} is not a loss. Give two, as ListNet() and PairHinge()."
                )
        if not 0 <= self.beta <= 1:
            raise ArgumentError(f"beta is {self.beta}. Give a number from 0 to 1.")

    @property
    def smooth(self) -> bool:
        """Whether both terms are."""
        return self.list_loss.smooth and self.pair_loss.smooth

    @property
    def convex(self) -> bool:
        """Whether both terms are."""
        return self.list_loss.convex and self.pair_loss.convex

    def evaluate_range(self, batch: Batch, first: int, last: int) -> None:
        """Write values, gradient and curvature of the queries from ``first`` up to ``last``."""
        part = batch.part(first, last)
        chosen, starts = top_documents(part.labels, part.offsets, self.k)
        queries = last - first
        lists = part._replace(labels=part.labels[chosen], offsets=starts).fresh(part.scores[chosen])
        self.list_loss.check(lists)
        self.list_loss.evaluate_range(lists, 0, queries)
        scales = self.list_loss.values_at_zero(lists)
        self._evaluate_pairs(part, chosen)
        _combine(*part[2:], *lists[2:], chosen, scales, float(self.beta))

    def _evaluate_pairs(self, part: Batch, chosen: Ints) -> None:
        loss = self.pair_loss
        if isinstance(loss, PairLoss):
            loss = replace(loss, k=self.k, pairs="across")
        else:
            membership = np.zeros(len(part.labels))
            membership[chosen] = 1
            part = part._replace(labels=membership)
        loss.check(part)
        loss.evaluate_range(part, 0, len(part.values))
