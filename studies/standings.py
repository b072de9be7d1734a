"""What the results of the leaderboard say: means, intervals, paired tests, claims."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from podium.measures.comparison.statistics import mean_interval, paired_difference
from studies.arrays import Doubles
from studies.leaderboard import (
    CHOSEN_BY,
    LeaderboardResult,
    LeaderboardTask,
    read_leaderboard,
)
from studies.leaderboard_models import ENTRIES, K, Truth

ERR: dict[Truth, str] = {"graded": "ERR", "top-k": f"kERR(k={K})"}


@dataclass(frozen=True)
class Row:
    """One entry on one data set: the values of every test query of every fold.

    Attributes:
        entry: Its name.
        values: For each measure its values; the queries are the same for all entries.
        validation: What it reached on validation queries, the mean of the folds.
        seconds: Seconds of processor time, over all folds.
        codes: What code made the result of each fold.
    """

    entry: str
    values: Mapping[str, Doubles]
    validation: float
    seconds: float
    codes: tuple[str, ...]

    def mean(self, measure: str) -> float:
        """The mean of a measure over all test queries."""
        return float(self.values[measure].mean())

    @property
    def family(self) -> str:
        """The part of the table it is in."""
        return ENTRIES[self.entry].family


@dataclass(frozen=True)
class Standing:
    """All entries on one data set and truth."""

    collection: str
    truth: Truth
    rows: Mapping[str, Row]

    @property
    def measure(self) -> str:
        """What entries were chosen by, and are ordered by."""
        return CHOSEN_BY[self.truth]

    def best(self, *families: str) -> Row | None:
        """The entry of some families that the validation queries would choose."""
        among = [row for row in self.rows.values() if row.family in families]
        return max(among, key=lambda row: row.validation, default=None)

    def strongest(self, measure: str) -> Row | None:
        """The peer that does best on the test queries, by a measure."""
        peers = [row for row in self.rows.values() if row.family == "peers"]
        return max(peers, key=lambda row: row.mean(measure), default=None)

    def against(self, one: str, other: str, measure: str | None = None) -> tuple[float, float]:
        """The mean difference of two entries, and the p-value of a paired t-test."""
        name = measure or self.measure
        difference = paired_difference(
            self.rows[one].values[name], self.rows[other].values[name], tests=("t",)
        )
        return difference.mean, difference.p_values["t"]

    def interval(self, entry: str, measure: str) -> tuple[float, float, float]:
        """The mean over queries and the ends of its 95 % interval."""
        return mean_interval(self.rows[entry].values[measure])


def collect(tasks: Iterable[LeaderboardTask], folder: Path) -> list[Standing]:
    """The standings of all tasks that have results; an entry counts when all its folds have one."""
    tables: dict[tuple[str, Truth], dict[str, list[LeaderboardTask]]] = {}
    for task in tasks:
        entries = tables.setdefault((task.collection, task.truth), defaultdict(list))
        entries[task.entry].append(task)
    standings = []
    for (collection, truth), entries in tables.items():
        results = read_leaderboard(folder, collection, truth)
        rows = {
            entry: _row(entry, [results[task] for task in folds])
            for entry, folds in entries.items()
            if all(task in results for task in folds)
        }
        if rows:
            standings.append(Standing(collection, truth, rows))
    return standings


def _row(entry: str, folds: list[LeaderboardResult]) -> Row:
    return Row(
        entry,
        {
            measure: np.concatenate([fold.values[measure] for fold in folds])
            for measure in folds[0].values
        },
        float(np.mean([fold.validation for fold in folds])),
        sum(fold.seconds for fold in folds),
        tuple(fold.code for fold in folds),
    )


@dataclass(frozen=True)
class Published:
    """A published figure beside ours.

    Attributes:
        collection: The data set.
        entry: Our entry.
        source: Where the figure is from.
        figures: By measure (with LETOR's conventions).
    """

    collection: str
    entry: str
    source: str
    figures: Mapping[str, float]


def _at(first: float, third: float, tenth: float) -> dict[str, float]:
    return {"letor:nDCG@1": first, "letor:nDCG@3": third, "letor:nDCG@10": tenth}


PUBLISHED = [
    Published("OHSUMED-2", "RankBoost", "LETOR 2.0", _at(0.4977, 0.4726, 0.4356)),
    Published("OHSUMED-2", "RankSVM", "LETOR 2.0", _at(0.4952, 0.4649, 0.4411)),
    Published("OHSUMED-2", "ListNet", "LETOR 2.0", _at(0.5231, 0.4777, 0.4489)),
    Published("OHSUMED-2", "AdaRank", "LETOR 2.0", _at(0.5420, 0.4803, 0.4385)),
    Published("OHSUMED-2", "ListMLE", "Xia et al. 2009", _at(0.548, 0.473, 0.446)),
    Published("OHSUMED-2", "top-1 ListMLE", "Xia et al. 2009", _at(0.529, 0.482, 0.447)),
    Published("OHSUMED-2", "top-3 ListMLE", "Xia et al. 2009", _at(0.535, 0.484, 0.445)),
    Published("OHSUMED-2", "top-10 ListMLE", "Xia et al. 2009", _at(0.558, 0.473, 0.444)),
    Published("MQ2007", "RankSVM", "LETOR 4.0", {"letor:nDCG@10": 0.444}),
    Published("MQ2007", "RankBoost", "LETOR 4.0", {"letor:nDCG@10": 0.446}),
    Published("MQ2007", "ListNet", "LETOR 4.0", {"letor:nDCG@10": 0.444}),
    Published("MQ2007", "AdaRank", "LETOR 4.0", {"letor:nDCG@10": 0.434}),
    Published("MQ2007", "FocusedNet", "Niu et al. 2012", {"letor:nDCG@10": 0.4459}),
    Published("MQ2007", "top-10 ListMLE", "Niu et al. 2012", {"letor:nDCG@10": 0.4443}),
]
"""Published figures on graded truth, by LETOR's own script."""


class Beside(NamedTuple):
    """A published figure, and the mean of ours with the ends of its 95 % interval."""

    published: Published
    measure: str
    figure: float
    mean: float
    low: float
    high: float


def beside_published(standings: Iterable[Standing]) -> Iterator[Beside]:
    """Every published figure that there are results beside."""
    graded = {each.collection: each for each in standings if each.truth == "graded"}
    for published in PUBLISHED:
        standing = graded.get(published.collection)
        if standing is not None and published.entry in standing.rows:
            for measure, figure in published.figures.items():
                yield Beside(
                    published, measure, figure, *standing.interval(published.entry, measure)
                )


class Choice(NamedTuple):
    """Podium's entry as validation queries choose it, and the peer best on the test queries."""

    standing: Standing
    measure: str
    ours: Row
    theirs: Row
    difference: float
    p: float


def choices(standings: Iterable[Standing]) -> Iterator[Choice]:
    """Podium's choice beside the best peer, by the measure it was chosen by and by ERR."""
    for standing in standings:
        for measure in (standing.measure, ERR[standing.truth]):
            ours, theirs = standing.best("literature", "trees"), standing.strongest(measure)
            if ours is not None and theirs is not None:
                against = standing.against(ours.entry, theirs.entry, measure)
                yield Choice(standing, measure, ours, theirs, *against)


COMPONENTS = {
    "FocusedSVM": ("SVMMAP", "RankSVM"),
    "FocusedBoost": ("AdaRank", "RankBoost"),
    "FocusedNet": ("ListNet", "RankNet"),
}
"""The list and the pair model that each FocusedRank is made of."""
