"""Comparisons of systems that a learned utility flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from podium.data import Dataset, Judgments, Rankings
from podium.errors import ArgumentError
from podium.measures import DCG, evaluate, nDCG
from podium.measures.comparison.coherence import coherence
from podium.measures.registry import Measure
from podium.utility.learned_utility import LearnedUtility


@dataclass(frozen=True)
class SystemPair:
    """Two systems under the usual measure and under the learned one.

    Attributes:
        one: A system.
        other: Another.
        usual: The mean difference by the usual measure.
        learned: The mean difference by the learned measure, in its own unit.
        queries_flipped: The share of queries on which the two measures prefer different systems,
            of those on which both prefer one.
        keeps: The share of the family of gains and discounts (``podium.measures.coherence``)
            that keeps the usual verdict.
    """

    one: str
    other: str
    usual: float
    learned: float
    queries_flipped: float
    keeps: float

    @property
    def flips(self) -> bool:
        """Whether the two measures prefer different systems."""
        return self.usual * self.learned < 0


@dataclass(frozen=True)
class Flips:
    """All comparisons of some systems.

    Attributes:
        pairs: Each two systems.
        usual_measure: Such as ``nDCG@10``.
        learned_measure: The learned one.
    """

    pairs: tuple[SystemPair, ...]
    usual_measure: Measure
    learned_measure: Measure

    @property
    def share(self) -> float:
        """The fraction of comparisons that flip."""
        return float(np.mean([pair.flips for pair in self.pairs]))


def flips(
    learned: LearnedUtility,
    truth: Judgments | Dataset,
    systems: Mapping[str, Rankings | ArrayLike],
    *,
    normalized: bool = True,
) -> Flips:
    """Find the comparisons of systems that flip under the learned gains and discounts.

    Args:
        learned: The utility.
        truth: As for ``podium.measures.compare``.
        systems: Two or more, by name.
        normalized: Whether both measures are nDCG; DCG if not.

    Example:
        >>> from podium.utility import DCGLearn, RankingPreferences
        >>> pairs = RankingPreferences.from_arrays([[1, 1]] * 3, [[2, 0]] * 3, [1] * 3)
        >>> judged = Judgments.from_columns(["q"] * 3, ["a", "b", "c"], [2, 1, 1])
        >>> columns = ["q"] * 3, ["a", "b", "c"]
        >>> result = flips(
        ...     DCGLearn(C=10.0).fit(pairs).learned_,
        ...     judged,
        ...     {
        ...         "one": Rankings.from_columns(["q"] * 2, ["a", "x"], [2, 1]),
        ...         "many": Rankings.from_columns(["q"] * 2, ["b", "c"], [2, 1]),
        ...     },
        ... )
        >>> result.share
        1.0
    """
    if len(systems) < 2:
        raise ArgumentError(f"{len(systems)} systems to compare", hint="Give at least two.")
    ours = learned.ndcg if normalized else learned.dcg
    usual = (nDCG if normalized else DCG) @ learned.depth
    values = {name: evaluate([usual, ours], truth, system) for name, system in systems.items()}
    pairs = []
    for one, other in combinations(systems, 2):
        before, after = (
            np.nan_to_num(values[one][measure] - values[other][measure])
            for measure in (usual, ours)
        )
        decided = (np.abs(before) > 1e-12) & (np.abs(after) > 1e-12)
        robustness = coherence(usual, truth, systems[one], systems[other])
        flipped = np.sign(before) != np.sign(after)
        pairs.append(
            SystemPair(
                one,
                other,
                float(before.mean()),
                float(after.mean()),
                float(np.mean(flipped[decided])) if decided.any() else 0.0,
                robustness.keeps,
            )
        )
    return Flips(tuple(pairs), usual, ours)
