"""Simulated assessors: for planning, for tests, and to study an algorithm under noise.

Items have a true relevance, and a verdict is the difference of two items' relevance plus logistic
noise: Thurstone's law of comparative judgment, in Bradley and Terry's form. All amounts are in
units of relevance, whose standard deviation is 1 unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic
from zlib import crc32

from podium.data.seeds import generator
from podium.errors import ArgumentError
from podium.judging.algorithms.selection import Item, Pair
from podium.judging.entries import GRADES, Outcome, Verdict

PAIR_SECONDS = 5.51
"""Mean seconds of a verdict on a pair of web pages (Niu et al. 2012, Table 1)."""

GRADE_SECONDS = 13.87
"""Mean seconds of an absolute grade of a web page (Niu et al. 2012, Table 1)."""


@dataclass(frozen=True)
class Habits:
    """How someone judges.

    Attributes:
        noise: The scale of a verdict's logistic noise; 0 makes no mistakes.
        ties: How different two items must seem not to be a tie; with 0 only equal items tie.
        side: The bias towards the item on the left.
        flips: The share of verdicts that are reversed, whatever the difference.
        tiring: The relative growth of the noise after a hundred judgments.
        seconds: The mean seconds per verdict.
    """

    noise: float = 0.0
    ties: float = 0.0
    side: float = 0.0
    flips: float = 0.0
    tiring: float = 0.0
    seconds: float = PAIR_SECONDS

    def __post_init__(self) -> None:
        if min(self.noise, self.ties, self.tiring, self.seconds) < 0:
            raise ArgumentError(
                "noise, ties, tiring and seconds must not be negative", hint="Give >= 0."
            )
        if not 0 <= self.flips <= 1:
            raise ArgumentError(f"the share of flips is {self.flips}", hint="Give 0 to 1.")


_REAL = Habits(noise=0.50, ties=0.71, side=-0.03)

HABITS = {
    "perfect": Habits(),
    "real": _REAL,
    "crowd": Habits(noise=1.60, side=0.15),
    "tie-prone": replace(_REAL, ties=2 * _REAL.ties),
    "sided": replace(_REAL, side=0.5),
    "tired": replace(_REAL, tiring=1.0),
}
"""How some people judge, by name.

``real`` are people who compared images (Xie et al. 2020) and ``crowd`` a crowd that compared good
passages without ties (Yan et al. 2022): `podium.judging.calibrate` on their verdicts. The last
three are ``real`` with one habit made stronger.
"""


class SimulatedAssessor(Generic[Item]):
    """A simulated person who judges by true relevance and habits; callable as a `Judge`.

    Args:
        relevance: The true relevance of each item: a mapping, or a sequence for items 0, 1, ….
        habits: How they judge.
        name: Their name in the log.
        random_state: The random seed of their errors.

    Example:
        >>> ann = SimulatedAssessor({"a": 1.0, "b": -1.0}, HABITS["perfect"], name="ann")
        >>> ann("a", "b").name, ann.judgments
        ('LEFT', 1)
    """

    def __init__(
        self,
        relevance: Mapping[Item, float] | Sequence[float],
        habits: Habits = HABITS["real"],
        *,
        name: str = "simulated",
        random_state: int = 0,
    ) -> None:
        self.habits = habits
        self.name = name
        self.judgments = 0
        self._random = generator(random_state, crc32(name.encode()))
        self._relevance: Mapping[Item, float] = (
            relevance if isinstance(relevance, Mapping) else dict(enumerate(relevance))  # type: ignore[arg-type]
        )
        ranked = sorted(self._relevance.values())
        self._cuts = [ranked[len(ranked) * cut // len(GRADES)] for cut in range(1, len(GRADES))]

    def __call__(self, left: Item, right: Item) -> Outcome:
        """Compare two items."""
        habits = self.habits
        seems = self._relevance[left] - self._relevance[right] + habits.side + self._slip()
        self.judgments += 1
        if abs(seems) <= habits.ties:
            return Outcome.TIE
        outcome = Outcome.LEFT if seems > 0 else Outcome.RIGHT
        if habits.flips and self._random.random() < habits.flips:
            return outcome.flipped
        return outcome

    def grade(self, item: Item) -> int:
        """Grade an item from 0 to 4, a fifth of all items each, as well as they compare.

        A verdict takes two looks and a grade one, so a grade's noise is smaller by the root of 2.
        With flips, as many grades as verdicts are wrong: any other grade.
        """
        seems = self._relevance[item] + self._slip() / math.sqrt(2)
        self.judgments += 1
        grade = sum(seems >= cut for cut in self._cuts)
        if self.habits.flips and self._random.random() < self.habits.flips:
            return int(grade + self._random.integers(1, len(GRADES))) % len(GRADES)
        return grade

    def verdict(self, pair: Pair[str], at: float = 0.0) -> Verdict:
        """Judge a pair of a session, with the time it took."""
        outcome = self(pair.left, pair.right)  # type: ignore[arg-type]
        # People's times are skewed: log-normal, with the mean that was asked for.
        seconds = self.habits.seconds * math.exp(self._random.normal(-(0.5**2) / 2, 0.5))
        return Verdict(*pair, outcome, self.name, at, round(seconds, 2))

    def _slip(self) -> float:
        noise = self.habits.noise * (1 + self.habits.tiring * self.judgments / 100)
        return float(self._random.logistic(0, noise)) if noise else 0.0
