"""A project's report from its queries' figures: agreement, quality checks, contradictions."""

from __future__ import annotations

from functools import partial

import numpy as np

from podium.judging.agreement import Agreement, Ratings
from podium.judging.agreement.coefficients import (
    bootstrap_agreement,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
)
from podium.studio.json_types import JsonObject
from podium.studio.reporting.flags import AssessorStats, quality_flags
from podium.studio.store.enums import Mode

_MAX_LOOPS = 50
_MAX_COUPLES = 100
_MIN_SHARED = 10
"""Kappas of fewer things that two people both judged say nothing."""
_LARGEST_BOOTSTRAP = 20_000
_LATEST = 60


class ReportBuilder:
    """Builds a report, query by query.

    Example:
        >>> summary = ReportBuilder()
        >>> summary.add(7, "q1", {"units": [[0, 1, [[1, 1], [2, 1]]]], "again": {}, "gold": {},
        ...     "sides": {}, "recent": {}, "loops": []})
        >>> summary.content("pairs")["agreement"]["overall"]
        1.0
    """

    def __init__(self) -> None:
        self._units: list[int] = []
        self._raters: list[int] = []
        self._values: list[int] = []
        self._decided: list[int] = []
        self._decided_count = 0
        self._unit_count = 0
        self._again: dict[str, list[int]] = {}
        self._gold: dict[str, list[int]] = {}
        self._sides: dict[str, list[int]] = {}
        self._recent: dict[str, list[list[float]]] = {}
        self._loops: list[JsonObject] = []
        self._loop_count = 0

    def add(self, query: int, name: str, figures: JsonObject) -> None:
        """Add a query's figures."""
        units = figures["units"]
        decided = figures.get("decided", [None] * len(units))
        for (_, _, votes), decision in zip(units, decided, strict=True):
            for user, value in votes:
                self._units.append(self._unit_count)
                self._raters.append(user)
                self._values.append(value)
                self._decided.append(value if decision is None else decision)
            self._decided_count += decision is not None
            self._unit_count += 1
        for mine, theirs in (
            (self._again, figures["again"]),
            (self._gold, figures["gold"]),
            (self._sides, figures["sides"]),
        ):
            for who, counts in theirs.items():
                before = mine.get(who, [0] * len(counts))
                mine[who] = [one + other for one, other in zip(before, counts, strict=True)]
        for who, latest in figures["recent"].items():
            both = sorted([*self._recent.get(who, []), *latest])
            self._recent[who] = both[-_LATEST:]
        self._loop_count += len(figures["loops"])
        for loop in figures["loops"][: _MAX_LOOPS - len(self._loops)]:
            self._loops.append({"query": query, "query_id": name, **loop})

    def content(self, mode: str) -> JsonObject:
        """The report."""
        people = sorted({*self._again, *self._gold, *self._sides, *self._recent}, key=int)
        return {
            **self._agreement(mode),
            "care": {who: self._care(who) for who in people},
            "loops": self._loops,
            "loop_count": self._loop_count,
        }

    def _care(self, who: str) -> JsonObject:
        gold = self._gold.get(who, [0, 0])
        again = self._again.get(who, [0, 0])
        sides = self._sides.get(who, [0, 0, 0])
        recent = self._recent.get(who, [])
        flags = quality_flags(
            AssessorStats(
                (gold[0], gold[1]), (again[0], again[1]), (sides[0], sides[1], sides[2]), recent
            )
        )
        return {
            "gold": gold,
            "again": again,
            "sides": sides,
            "flags": [str(flag) for flag in flags],
            "messages": [flag.stored() for flag in flags],  # for other languages
        }

    def _agreement(self, mode: str) -> JsonObject:
        if not self._units:
            return {"agreement": None, "couples": [], "peers": {}}
        people, raters = np.unique(np.array(self._raters, np.int64), return_inverse=True)
        values = np.array(self._values, float)
        units = np.array(self._units, np.int64)
        names = tuple(str(person) for person in people)
        ballots = Ratings(units, raters, values, names)
        level = "nominal" if mode == Mode.PAIRS else "ordinal"
        agreement: JsonObject = {
            "units": self._unit_count,
            "alpha": krippendorff_alpha(ballots, level),  # type: ignore[arg-type]
            "fleiss": fleiss_kappa(ballots),
        }
        leading = "fleiss_interval" if level == "nominal" else "alpha_interval"
        agreement[leading] = None
        if self._unit_count <= _LARGEST_BOOTSTRAP:
            statistic = (
                fleiss_kappa if level == "nominal" else partial(krippendorff_alpha, level="ordinal")
            )
            interval = bootstrap_agreement(statistic, ballots, draws=200)
            agreement[leading] = [interval.low, interval.high]
        if mode == Mode.GRADES:
            agreement |= {"table": None, "overall": _same_share(ballots), "without_ties": None}
        else:
            table = Agreement.of(Ratings(units, raters, np.sign(values), names))
            strict = sum(table.ratio(ties=False))
            agreement |= {
                "table": table.table.tolist(),
                "overall": table.overall,
                "without_ties": table.without_ties if strict else None,
            }
        shared_votes = _shared_votes(ballots)
        if self._decided_count:
            after = Ratings(units, raters, np.array(self._decided, float), names)
            agreement["decided"] = {
                "units": self._decided_count,
                "overall": _same_share(after),
                "alpha": krippendorff_alpha(after, level),  # type: ignore[arg-type]
                "fleiss": fleiss_kappa(after),
            }
        return {
            "agreement": agreement,
            "couples": _couples(ballots, shared_votes),
            "peers": _peers(ballots, shared_votes),
        }


def _same_share(ballots: Ratings) -> float:
    """The share of every two votes on a thing that are the same."""
    counts = ballots.counts()
    votes = counts.sum(axis=1)
    return float((counts * (counts - 1)).sum() / (votes * (votes - 1)).sum())


_SharedVotes = dict[tuple[int, int], tuple[list[float], list[float]]]


def _shared_votes(ballots: Ratings) -> _SharedVotes:
    """The votes of every two people on the things that both judged."""
    order = np.lexsort((ballots.raters, ballots.units))
    units, raters, values = ballots.units[order], ballots.raters[order], ballots.values[order]
    shared_votes: _SharedVotes = {}
    most = int(np.bincount(units).max())
    for shift in range(1, most):
        together = np.flatnonzero(units[shift:] == units[:-shift])
        for index in together.tolist():
            couple = (int(raters[index]), int(raters[index + shift]))
            one, other = shared_votes.setdefault(couple, ([], []))
            one.append(values[index])
            other.append(values[index + shift])
    return shared_votes


def _peers(ballots: Ratings, shared_votes: _SharedVotes) -> dict[str, list[int]]:
    """For each person: votes of others on what they judged too, and how many are the same."""
    counts: dict[str, list[int]] = {}
    for couple, (one, other) in shared_votes.items():
        same = sum(bool(mine == theirs) for mine, theirs in zip(one, other, strict=True))
        for rater in couple:
            totals = counts.setdefault(str(ballots.rater_names[rater]), [0, 0])
            totals[0] += len(one)
            totals[1] += same
    return counts


def _couples(ballots: Ratings, shared_votes: _SharedVotes) -> list[JsonObject]:
    """Cohen's kappa of every two people who judged enough of the same things."""
    couples = [
        {
            "one": int(ballots.rater_names[first]),
            "other": int(ballots.rater_names[second]),
            "units": len(one),
            "kappa": cohen_kappa(one, other),
        }
        for (first, second), (one, other) in shared_votes.items()
        if len(one) >= _MIN_SHARED
    ]
    couples.sort(key=lambda couple: -couple["units"])
    return couples[:_MAX_COUPLES]
