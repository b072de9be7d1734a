"""How likely each label is for a document that nobody judged, learned from those that were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, Ints

_LAST_RANK = 100
"""Further down, ranks say no more than that a run does not have the document."""
_USUAL_RANK = 10.0
"""Where the logarithm is 0, so that coefficients of levels and of ranks have little in common."""
_PRIOR_STEP, _PRIOR_SLOPE = 3.0, 1.5
"""Standard deviations of the coefficients before anything is known."""
_PRIOR_SPREAD = 0.5
"""The variance between queries to begin with, which weighs as much as one query."""
_ROUNDS = 100
_CLOSE = 1e-3
_FEW = 10
_JUDGED = 0.95
"""The share of queries in which a rank is judged, of a run that is judged down to this rank."""
_DEEPER, _BEYOND = -1.645, 2.576
"""Normal quantiles: 5 % below the one, 1 % beyond the other on both sides."""


def features_of(ranks: Ints) -> NDArray[np.float64]:
    """What is known of documents: the logarithms of their ranks, and which runs lack them.

    Args:
        ranks: Ranks from 1, a row per document and a column per run; 0 if a run lacks it.
    """
    lacks = (ranks == 0) | (ranks > _LAST_RANK)
    return np.column_stack([np.log(np.where(lacks, _LAST_RANK + 1, ranks) / _USUAL_RANK), lacks])


def why_unknown(
    ranks: Ints, query: Ints, judged: NDArray[np.bool_], levels: Ints, depth: int
) -> str:
    """Say why nothing can be learned from the judged documents about the others; "" if it can.

    What is learned holds for the others if those that were judged are a sample of the documents
    at these ranks. Pools of other runs are none: their documents are those on which runs agree,
    and they are better than what one run alone has at the same rank. Nor are documents that were
    chosen because their labels matter: with 100 of these, 95 % intervals hold in 87 %.

    Args:
        ranks: As ``features_of`` takes them, of documents among the first of either run.
        query: The query of each.
        judged: Whether it was judged.
        levels: The levels of those that were, 0 for irrelevant.
        depth: How many ranks are among the first.
    """
    if not (levels == 0).any():
        return "no irrelevant document among the first was judged"
    first = (ranks > 0) & (ranks <= depth)
    depths = [_judged_depth(column, judged, depth) for column in ranks.T]
    rest = ~((ranks > 0) & (ranks <= depths)).any(axis=1)
    if len({(each > 0, each == depth) for each in depths}) > 1:
        return "the first documents of one run were judged, and those of the other were not"
    for side in (0, 1):
        alone = rest & first[:, side] & ~first[:, 1 - side]
        if int(np.sum(alone & judged)) < min(_FEW, int(np.sum(alone & ~judged))):
            return (
                f"fewer than {_FEW} judged documents are returned by one run alone, below the "
                "ranks that are judged throughout"
            )
    if judged[rest].any() and not judged[rest].all():
        logs = features_of(ranks)[:, :2]
        columns = np.column_stack([logs.min(axis=1), logs.max(axis=1), logs[:, 0] - logs[:, 1]])
        by_rank, deeper, one_sided = _trends(
            judged[rest].astype(np.float64), columns[rest], query[rest]
        )
        if by_rank < -_BEYOND:
            return "documents at the first ranks were judged more often: they are not a sample"
        if deeper < _DEEPER or abs(one_sided) > _BEYOND:
            return (
                "documents that both runs return, or that one of them does, were judged more "
                "often: they are not a sample, but look like a pool of other runs"
            )
    return ""


def _judged_depth(ranks: Ints, judged: NDArray[np.bool_], depth: int) -> int:
    """Down to which rank a run's documents are judged in nearly every query."""
    for rank in range(1, depth + 1):
        at = ranks == rank
        if at.any() and judged[at].mean() < _JUDGED:
            return rank - 1
    return depth


def _trends(values: Doubles, columns: NDArray[np.float64], query: Ints) -> Doubles:
    """Regress values on columns within queries; return each coefficient over its error."""
    _, query, sizes = np.unique(query, return_inverse=True, return_counts=True)
    table = np.column_stack([columns, values])
    means = np.stack([np.bincount(query, each) for each in table.T], axis=1) / sizes[:, None]
    *within, outcome = (table - means[query]).T
    design = np.column_stack(within)
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ design.T @ outcome
    scores = design * (outcome - design @ coefficients)[:, None]
    # Documents of one query are not independent: errors are those of queries.
    sums = np.stack([np.bincount(query, each) for each in scores.T], axis=1)
    variances = np.diag(inverse @ (sums.T @ sums) @ inverse)
    errors = np.sqrt(np.maximum(variances, 0.0))  # rounding may leave less
    return np.asarray(coefficients / np.maximum(errors, np.finfo(np.float64).tiny))


@dataclass(frozen=True, eq=False)
class LabelModel:
    """The chance to be better than each level, given that a document is at least that good.

    A logistic regression on the features of documents, with an effect of each query, which is
    normal with a variance that is estimated; the posterior is taken as normal (Laplace).

    Attributes:
        coefficients: One for each level but the highest, then one per feature.
        covariance: Theirs.
        effects: That of each query.
        variances: Theirs, given the coefficients.
        slopes: How each query's effect falls as coefficients rise.
    """

    coefficients: Doubles
    covariance: NDArray[np.float64]
    effects: Doubles
    variances: Doubles
    slopes: NDArray[np.float64]

    @classmethod
    def fit(
        cls, features: NDArray[np.float64], query: Ints, levels: Ints, count: int, queries: int
    ) -> LabelModel:
        """Learn from judged documents.

        Args:
            features: A row per document.
            query: The query of each.
            levels: The level of each, from 0.
            count: How many levels there are.
            queries: How many queries there are.
        """
        from scipy.special import (
            expit,
        )  # takes as long to import as all of an evaluation

        document, step = np.nonzero(levels[:, None] >= np.arange(count - 1))
        better = (levels[document] > step).astype(np.float64)
        design = np.column_stack([np.eye(count - 1)[step], features[document]])
        query = query[document]
        spread = np.repeat([_PRIOR_STEP, _PRIOR_SLOPE], [count - 1, features.shape[1]])
        coefficients, effects = np.zeros(len(spread)), np.zeros(queries)
        between = _PRIOR_SPREAD
        for _ in range(_ROUNDS):
            chance = expit(design @ coefficients + effects[query])
            weight = chance * (1.0 - chance)
            gradient = design.T @ (better - chance) - coefficients / spread**2
            pulls = np.bincount(query, better - chance, minlength=queries) - effects / between
            variances = 1.0 / (np.bincount(query, weight, minlength=queries) + 1.0 / between)
            weighted = design * weight[:, None]
            cross = np.stack([np.bincount(query, each, minlength=queries) for each in weighted.T])
            slopes = (cross * variances).T
            covariance = np.linalg.inv(weighted.T @ design + np.diag(spread**-2.0) - cross @ slopes)
            change = covariance @ (gradient - slopes.T @ pulls)
            own = variances * pulls - slopes @ change
            # Far from the solution, a whole step may lead away from it.
            size = max(1.0, np.abs(change).max(), np.abs(own).max(initial=0.0))
            coefficients, effects = coefficients + change / size, effects + own / size
            marginal = variances + np.einsum("qa,ab,qb->q", slopes, covariance, slopes)
            before = between
            between = (np.sum(effects**2 + marginal) + _PRIOR_SPREAD) / (queries + 1)
            if max(abs(between - before), np.abs(change).max()) < _CLOSE:
                break
        return cls(
            coefficients,
            np.asarray(covariance, np.float64),
            effects,
            np.asarray(variances, np.float64),
            slopes,
        )

    def draw(
        self,
        features: NDArray[np.float64],
        query: Ints,
        count: int,
        random: np.random.Generator,
    ) -> tuple[Ints, NDArray[np.float64]]:
        """Draw levels for documents; all of a draw from one model of the posterior.

        Returns:
            Levels, a row per draw; and the mean chance of each level, a row per document.
        """
        from scipy.special import expit  # imported here, as in `fit`

        steps = len(self.coefficients) - features.shape[1]
        levels = np.empty((count, len(query)), np.int64)
        chances = np.zeros((len(query), steps + 1))
        root = np.linalg.cholesky(self.covariance)
        for row in levels:
            change = root @ random.normal(size=len(root))
            own = np.sqrt(self.variances) * random.normal(size=len(self.effects))
            effects = self.effects - self.slopes @ change + own
            drawn = self.coefficients + change
            height = features @ drawn[steps:] + effects[query]
            reached = np.cumprod(expit(height[:, None] + drawn[:steps]), axis=1)
            row[:] = (random.random(len(query))[:, None] < reached).sum(axis=1)
            chances += -np.diff(reached, axis=1, prepend=1.0, append=0.0)
        return levels, chances / count
