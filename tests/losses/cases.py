"""The losses under test, and queries to test them on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from podium.kernels import Doubles
from podium.losses import (
    Focused,
    LambdaLoss,
    ListMLE,
    ListNet,
    Loss,
    PairExponential,
    PairHinge,
    PairLogistic,
    PairRounded,
    RankCosine,
    SquaredError,
    StructuralHinge,
)
from podium.losses.base import LossValues

Query = tuple[Doubles, Doubles]

PAIRS: list[Loss] = [
    *(PairHinge(k=k) for k in (None, 1, 3)),
    *(PairLogistic(k=k) for k in (None, 1, 3)),
    *(PairExponential(k=k) for k in (None, 1, 3)),
    *(PairRounded(k=k, width=0.3) for k in (None, 3)),
    PairHinge(k=3, pairs="across"),
    PairRounded(k=3, pairs="across", width=2.0),
    PairLogistic(k=3, pairs="across"),
    PairExponential(k=3, pairs="across"),
]
SCALED: list[Loss] = [PairHinge(scaled=True), PairHinge(k=2, pairs="across", scaled=True)]
LISTS: list[Loss] = [
    *(ListMLE(k=k) for k in (None, 1, 3)),
    *(ListNet(k=k) for k in (None, 1, 3)),
    *(ListNet(k=k, permutations=True) for k in (None, 1, 3)),
    *(RankCosine(k=k) for k in (None, 1, 3)),
    *(SquaredError(k=k) for k in (None, 1, 3)),
]
STRUCTURAL: list[Loss] = [
    *(StructuralHinge("ndcg", scaling, k) for scaling in ("margin", "slack") for k in (None, 3)),
    *(StructuralHinge("ap", scaling, k) for scaling in ("margin", "slack") for k in (None, 3)),
    *(StructuralHinge("precision", scaling, 3) for scaling in ("margin", "slack")),
    *(StructuralHinge(measure, "margin", 3, "mean") for measure in ("ndcg", "precision")),
]
LAMBDAS: list[Loss] = [
    LambdaLoss(),
    LambdaLoss(k=2, steepness=2.0),
    LambdaLoss(gains="linear", k=3),
    LambdaLoss(gains=(0, 1, 3, 4, 9), discounts=(1, 0.5, 0.1)),
    LambdaLoss(table=((0, 1, 2, 3, 4), (0, 0.5, 1, 1.5, 3)), k=2),
]
FOCUSED: list[Loss] = [
    Focused(ListNet(permutations=True), PairLogistic(), k=3),
    Focused(ListMLE(), PairExponential(), beta=0.2, k=2),
    Focused(StructuralHinge("ap", k=2), PairHinge(scaled=True), beta=0.7, k=4),
    Focused(ListNet(), ListMLE(), k=3),
]
LOSSES = [*PAIRS, *SCALED, *LISTS, *STRUCTURAL, *LAMBDAS, *FOCUSED]

NOT_EXACT = (PairHinge, PairRounded, RankCosine, StructuralHinge)
"""Losses whose curvature stands in for the true one."""


def has_exact_curvature(loss: Loss) -> bool:
    if isinstance(loss, Focused):
        return all(map(has_exact_curvature, (loss.list_loss, loss.pair_loss)))
    return not isinstance(loss, NOT_EXACT)


def is_exact(loss: Loss) -> bool:
    """Whether the value is exact: a search for the slack-scaled maximum may fall short of it."""
    return not (isinstance(loss, StructuralHinge) and loss.scaling == "slack")


def one_query(loss: Loss, scores: object, labels: object) -> LossValues:
    scores = np.asarray(scores, np.float64)
    return loss.evaluate(scores, np.asarray(labels, np.float64), [0, len(scores)])


def random_query(random: np.random.Generator, *, most: int = 8, scale: float = 2.0) -> Query:
    """Scores without ties, grades with many."""
    size = int(random.integers(1, most + 1))
    return scale * random.normal(size=size), random.integers(0, 5, size).astype(np.float64)


def strict_query(random: np.random.Generator, size: int, *, scale: float = 2.0) -> Query:
    """Scores and a full order, both without ties."""
    return scale * random.normal(size=size), 1.0 + random.permutation(size)


@st.composite
def queries(draw: st.DrawFn, *, most: int = 8, ties: bool = False) -> Query:
    """Grades with ties, and scores on a grid, with ties if asked for."""
    size = draw(st.integers(1, most))
    scores = draw(st.lists(st.integers(-60, 60), min_size=size, max_size=size, unique=not ties))
    labels = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    # An odd step, so that no difference of scores is exactly a margin of 1.
    return 0.137 * np.array(scores, np.float64), np.array(labels, np.float64)


def top(labels: Doubles, k: int | None) -> list[int]:
    """Documents with fewer than k better ones, those preferred to nothing left out."""
    return [
        row
        for row, label in enumerate(labels)
        if label > min(labels) and (k is None or sum(labels > label) < k)
    ]
