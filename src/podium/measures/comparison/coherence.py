"""Whether the better of two systems stays ahead under other sensible gains and discounts.

DCG's gains and discounts are conventions, and with more than two grades two sensible choices can
disagree on which system is better (Zhou et al. 2012, section 3). Here a result is checked over
a documented family around the measure that was evaluated:

- gains ``(b^label - 1) / (b - 1)``: b = 0 counts every relevant document alike, 1 is linear, 2 is
  the usual exponential, 4 makes the highest grades count nearly alone; and the measure's own gains
  if they are given one by one;
- the measure's own discounts to the power a: a = 0 is none, 1 is the measure's, 3 looks at little
  but the top.

Everything else is as in the measure: its cut-off, its pool, how ties are broken or averaged over,
what a query with nothing relevant counts. The measure itself is a member, and its difference is
that of the table.

The fraction of the family that keeps the result is how much of it is the systems and how much
the parameters; the nearest member that flips it has the parameters that would do so. Sometimes
there is a stronger statement: no increasing gains and decreasing discounts put the other system
ahead. For DCG that is so if the better system has, over all queries, at least as many documents of
each grade or above within each cut-off. nDCG divides each query by a number of its own that changes
with gains and discounts, so there the same must hold in every single query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.data import Dataset, Judgments, Rankings
from podium.data.gains import exponential_gains
from podium.errors import ArgumentError
from podium.kernels import Doubles, Floats
from podium.measures.arguments import EXPONENTIAL, LINEAR, TABLE
from podium.measures.comparison.gain_family import (
    Lists,
    add_counts,
    ahead_in_every_query,
    member_values,
    ranked_lists,
)
from podium.measures.compiled import Booleans
from podium.measures.compiled.prepared import PreparedMeasure
from podium.measures.conventions import Conventions
from podium.measures.evaluating import measure_all
from podium.measures.inputs import Inputs, comparable_scores, inputs_of
from podium.measures.presets import resolve_measure
from podium.measures.registry import Measure
from podium.threads import ordered_map

BASES = tuple(step / 4 for step in range(17))
STEEPNESS = tuple(step / 4 for step in range(13))
_OWN_STEEPNESS = STEEPNESS.index(1.0)
# Queries at a time: their values under all members are a few megabytes per system.
_CHUNK = 512
# A table of more grades and ranks is not made to find out whether DCG's result is unanimous.
_MOST_COUNTS = 1 << 22
_TIE = 1e-12


@dataclass(frozen=True)
class FamilyMember:
    """One choice of gains and discounts.

    Attributes:
        base: The base of the gains; None means the measure's own, given one by one.
        steepness: The power of the measure's discounts.
        discounts: The name of the measure's discounts; "given" if given one by one.
    """

    base: float | None
    steepness: float
    discounts: str = "log2"

    def __str__(self) -> str:
        gains = {None: "its own gains", 0.0: "binary gains", 1.0: "linear gains"}.get(
            self.base, f"gains of base {self.base:g}" if self.base is not None else ""
        )
        if self.steepness == 0.0:
            return f"{gains} and no discount"
        formula = {"log2": "1/log2(1 + rank)", "reciprocal": "(1/rank)"}.get(self.discounts)
        if formula is not None:
            return f"{gains} and discount {formula}^{self.steepness:g}"
        return f"{gains} and its own discounts to the power {self.steepness:g}"


@dataclass(frozen=True)
class Coherence:
    """How much a comparison's result depends on gains and discounts.

    Attributes:
        difference: The mean difference under the measure itself, as in the table.
        keeps: The fraction of the family under which the same system is ahead; 0 if none is ahead
            under the measure itself.
        keeps_clearly: The fraction under which it is ahead with p < 0.05 (paired t-test).
        turns: The fraction under which the other system is ahead with p < 0.05.
        nearest: The member nearest to the measure itself under which the other system is ahead.
        unanimous: Whether it is certain that no increasing gains and decreasing discounts put the
            other system ahead.
        differences: The mean difference of each member, a row for each base (and last the measure's
            own gains if they are given one by one), a column for each steepness. For DCG they are
            in units of the highest label's gain.
    """

    difference: float
    keeps: float
    keeps_clearly: float
    turns: float
    nearest: FamilyMember | None
    unanimous: bool
    differences: NDArray[np.float64]


def coherence(
    measure: Measure | str,
    truth: Judgments | Dataset,
    ours: Rankings | ArrayLike,
    theirs: Rankings | ArrayLike,
    *,
    conventions: Conventions | str | None = None,
) -> Coherence:
    """Compare two systems by a DCG or nDCG under a whole family of gains and discounts.

    Args:
        measure: A DCG or nDCG with any parameters and cut-off.
        truth: Judgments, for rankings; or a data set, for scores of its rows.
        ours: What one system returned.
        theirs: What the other one returned.
        conventions: What to do where tools disagree, as ``evaluate`` takes it.

    Example:
        >>> judgments = Judgments.from_columns(["q"] * 3, ["a", "b", "c"], [2, 1, 1])
        >>> one = Rankings.from_columns(["q"], ["a"], [1])
        >>> other = Rankings.from_columns(["q"] * 2, ["b", "c"], [2, 1])
        >>> result = coherence("nDCG@3", judgments, one, other)
        >>> result.difference > 0, result.unanimous, str(result.nearest)
        (True, False, 'gains of base 0.75 and discount 1/log2(1 + rank)^0.5')
    """
    parsed, chosen = resolve_measure(measure, conventions)
    inputs = [inputs_of(truth, each) for each in (theirs, ours)]
    values = [measure_all([parsed], chosen, each)[parsed] for each in inputs]
    keep = np.asarray(~np.isnan(np.column_stack(values)).any(axis=1))
    results = coherences(parsed, chosen, inputs, keep)
    if results is None:
        raise ArgumentError(
            f"{parsed!r} has no gains and discounts to change",
            hint="Give a DCG or nDCG whose discounts are at least 0.",
        )
    return results[0]


def coherences(
    measure: Measure, conventions: Conventions, systems: Sequence[Inputs], keep: Booleans
) -> list[Coherence] | None:
    """Return the coherence of each other system against the first; None if there is no family.

    Args:
        measure: What was evaluated.
        conventions: What it followed.
        systems: What each system returned, for the same queries.
        keep: Which queries count.
    """
    if measure.name not in ("DCG", "nDCG") or not keep.any():
        return None
    family = _Family.of(measure, conventions, systems)
    if np.any(family.discounts[_OWN_STEEPNESS] < 0.0):
        return None

    def sums(first: int) -> _Sums:
        return family.sums(first, min(first + _CHUNK, len(keep)), keep)

    # Chunks are the same however many threads there are, and so are their sums.
    total = reduce(_Sums.plus, ordered_map(sums, range(0, len(keep), _CHUNK)))
    return [family.coherence(total, system, int(keep.sum())) for system in range(len(systems) - 1)]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over chunks of queries, for each system but the first."""

    differences: NDArray[np.float64]
    squares: NDArray[np.float64]
    counts: NDArray[np.float64]
    ahead: NDArray[np.bool_]

    def plus(self, other: _Sums) -> _Sums:
        return _Sums(
            self.differences + other.differences,
            self.squares + other.squares,
            self.counts + other.counts,
            self.ahead & other.ahead,
        )


@dataclass(frozen=True, eq=False)
class _Family:
    """A measure, the family around it, and the systems to evaluate."""

    prepared: PreparedMeasure
    systems: list[Inputs]
    own_gains: Doubles
    own_row: int
    discounts: NDArray[np.float64]
    highest: float
    grades: Floats

    @classmethod
    def of(cls, measure: Measure, conventions: Conventions, systems: Sequence[Inputs]) -> _Family:
        longest = max(systems, key=lambda each: each.longest)
        prepared = PreparedMeasure.of(measure, conventions, longest)
        precision = prepared.conventions.score_precision
        ready = [
            replace(each, scores=comparable_scores(each.scores, precision)) for each in systems
        ]
        arguments = prepared.arguments
        row = {EXPONENTIAL: BASES.index(2.0), LINEAR: BASES.index(1.0), TABLE: len(BASES)}
        plain = arguments.discounts
        # A rank that does not count does not count under any power.
        powers = [np.where(plain > 0, np.abs(plain) ** power, 0.0) for power in STEEPNESS]
        discounts = np.stack(powers)
        discounts[_OWN_STEEPNESS] = plain
        labels: list[Any] = [
            each.labels if prepared.conventions.pool == "retrieved" else each.judged_labels
            for each in ready
        ]
        grades = np.unique(np.concatenate([each[each > 0] for each in labels]))[::-1]
        return cls(
            prepared,
            ready,
            arguments.gains if arguments.curve == TABLE else np.zeros(0),
            row[arguments.curve],
            discounts,
            float(grades[0]) if len(grades) else 0.0,
            np.ascontiguousarray(grades, np.float32),
        )

    @property
    def normalized(self) -> bool:
        return self.prepared.measure.name == "nDCG"

    @property
    def regular(self) -> bool:
        """Whether the measure's own gains rise from 0, and its discounts fall."""
        gains, discounts = self.own_gains, self.discounts[_OWN_STEEPNESS]
        rises = not len(gains) or (gains[0] == 0.0 and bool(np.all(np.diff(gains) >= 0)))
        return rises and bool(np.all(np.diff(discounts) <= 0))

    @property
    def counts_grades(self) -> bool:
        cells = len(self.grades) * self.discounts.shape[1]
        return not self.normalized and self.regular and cells <= _MOST_COUNTS

    def sums(self, first: int, last: int, keep: Booleans) -> _Sums:
        """The sums over some queries."""
        own, depth = keep[first:last], self.discounts.shape[1]
        lists = [ranked_lists(self.prepared, each, first, last) for each in self.systems]
        values = [self._values(each)[own] for each in lists]
        others = range(1, len(lists))
        differences = [values[system] - values[0] for system in others]
        shape = (len(self.grades), depth) if self.counts_grades else (0, 0)
        counts = np.zeros((len(lists) - 1, *shape))
        ahead = np.zeros((len(lists) - 1, 2), np.bool_)
        for system in others:
            if self.counts_grades:
                add_counts(lists[system], own, self.grades, 1.0, counts[system - 1])
                add_counts(lists[0], own, self.grades, -1.0, counts[system - 1])
            # With a pool of what was retrieved the two are divided by different ideals.
            elif self.regular and self.normalized and self.prepared.conventions.pool == "judged":
                ahead[system - 1] = ahead_in_every_query(lists[system], lists[0], own, depth)
        return _Sums(
            np.stack([each.sum(axis=0) for each in differences]),
            np.stack([np.sum(each**2, axis=0) for each in differences]),
            counts,
            ahead,
        )

    def _values(self, lists: Lists) -> NDArray[np.float64]:
        nothing = self.prepared.conventions.nothing_relevant
        return member_values(
            lists,
            np.array(BASES),
            self.own_gains,
            self.discounts,
            self.highest,
            self.normalized,
            0.0 if isinstance(nothing, str) else nothing,
        )

    def coherence(self, sums: _Sums, system: int, queries: int) -> Coherence:
        """Return the coherence of one system against the first."""
        mean = sums.differences[system] / queries
        variance = np.maximum(sums.squares[system] / queries - mean**2, 0.0)
        spread = np.sqrt(variance * queries / max(queries - 1, 1))
        own_difference = float(mean[self.own_row, _OWN_STEEPNESS])
        sign = float(np.sign(own_difference)) if abs(own_difference) > _TIE else 0.0
        ahead = np.where(np.abs(mean) < _TIE, 0.0, mean * sign)
        clear = _clear(mean, spread, queries)
        return Coherence(
            difference=own_difference * self._unit if sign else 0.0,
            keeps=float(np.mean(ahead > 0)),
            keeps_clearly=float(np.mean((ahead > 0) & clear)),
            turns=float(np.mean((ahead < 0) & clear)),
            nearest=self._nearest(ahead < 0),
            unanimous=sign != 0.0 and self._unanimous(sums, system, sign),
            differences=mean,
        )

    @property
    def _unit(self) -> float:
        """The unit of DCG's own gains."""
        if self.normalized or self.prepared.arguments.curve == TABLE:
            return 1.0
        if self.prepared.arguments.curve == LINEAR:
            return self.highest
        return float(exponential_gains(np.array(min(self.highest, 1023.0))))

    def _unanimous(self, sums: _Sums, system: int, sign: float) -> bool:
        if self.normalized:
            return bool(sums.ahead[system, 0 if sign > 0 else 1])
        if not self.counts_grades:
            return False
        surplus = sign * np.cumsum(np.cumsum(sums.counts[system], axis=0), axis=1)
        return bool(np.all(surplus > -1e-9))

    def _nearest(self, turned: NDArray[np.bool_]) -> FamilyMember | None:
        if not turned.any():
            return None
        bases = np.array(BASES)
        # Both ranges count alike, though bases go to 4 and steepness to 3.
        if self.own_row < len(BASES):
            away = (bases - bases[self.own_row]) / BASES[-1]
        else:  # gains given one by one have no base: any other gains are further than they are
            away = np.append(1.0 + np.abs(bases - 2.0) / BASES[-1], 0.0)
        steps = (np.array(STEEPNESS) - 1.0) / STEEPNESS[-1]
        distance = np.where(turned, away[:, None] ** 2 + steps[None, :] ** 2, np.inf)
        row, column = np.unravel_index(int(np.argmin(distance)), turned.shape)
        discounts = self.prepared.measure["discounts"] or self.prepared.conventions.discounts
        return FamilyMember(
            BASES[row] if row < len(BASES) else None,
            STEEPNESS[column],
            discounts if isinstance(discounts, str) else "given",
        )


def _clear(
    mean: NDArray[np.float64], spread: NDArray[np.float64], queries: int
) -> NDArray[np.bool_]:
    """Which mean differences have p < 0.05 by the paired t-test."""
    from scipy import stats

    if queries < 2:
        return np.zeros(mean.shape, bool)
    bound = float(stats.t.ppf(0.975, queries - 1)) / np.sqrt(queries)
    return np.asarray(np.abs(mean) > bound * spread)
