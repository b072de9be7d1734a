"""As much of a column as requirements allow: margin or freshness beside relevance.

The column gets a growing share of the weight. Requirements are tested at one share after the other,
on queries that did not choose the other weights, up to the first that is not shown: so however many
shares there are, one that breaks a requirement ships at most as often as the level says
(fixed-sequence testing).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from podium.data import Judgments, Rankings
from podium.data.preferences import Preferences
from podium.data.sources import TableSource
from podium.errors import ArgumentError, DataError
from podium.hybrid.fusion import Fusion
from podium.hybrid.tuning import (
    Chooser,
    Columns,
    JudgedLists,
    coverage_warnings,
    held_out_parts,
)
from podium.kernels import Doubles
from podium.measures import Conventions, require
from podium.measures.comparison.decision import Decision, Requirement
from podium.measures.comparison.slices import QueryProperties
from podium.measures.comparison.statistics import Difference, paired_difference
from podium.measures.registry import Measure

SHARES = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)
_OBJECTIVE = re.compile(r"\s*mean\(\s*([^()]{1,200}?)\s*\)\s*@\s*([1-9]\d{0,3})\s*")


@dataclass(frozen=True)
class ColumnShare:
    """What a share of the weight for the column does on held-out queries.

    Attributes:
        share: The share.
        objective: The mean of the objective.
        gain: Its difference from the baseline.
        value: The mean of the measure.
        price: The measure's difference from the baseline.
        decision: Whether the requirements are shown; None after the first share where they are not.
    """

    share: float
    objective: float
    gain: Difference
    value: float
    price: Difference
    decision: Decision | None

    @property
    def shown(self) -> bool:
        """Whether all requirements are shown."""
        return self.decision is not None and self.decision.shown


@dataclass(frozen=True, eq=False)
class Balance:
    """A fusion with as much of a column as the requirements allow.

    Attributes:
        fusion: The fusion, its other weights chosen on all queries.
        column: The column.
        depth: The depth of the objective's mean.
        measure: The measure that the other weights were chosen for.
        baseline: The objective's mean, and the measure's, of the baseline.
        shares: The frontier, by growing share.
        chosen: The share that ships; None if the requirements are not shown for the smallest.
        counts: How many queries and documents were used and left out, in words.
        coverage: What there is to know of the baseline's unjudged documents.
    """

    fusion: Fusion
    column: str
    depth: int
    measure: Measure
    baseline: tuple[float, float]
    shares: tuple[ColumnShare, ...]
    chosen: ColumnShare | None
    counts: Mapping[str, int]
    coverage: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """What ships, in a sentence."""
        if self.chosen is None:
            return f"No share of {self.column} is shown to meet the requirements: it is left out."
        gain, price = self.chosen.gain, self.chosen.price
        ends = f" ({gain.low:+.4g} to {gain.high:+.4g})" if np.isfinite(gain.low) else ""
        return (
            f"A share of {self.chosen.share:g} for {self.column}: {gain.mean:+.4g}{ends} for "
            f"{price.mean:+.4f} {self.measure!r}."
        )


def balance_fusion(
    truth: Judgments | Preferences | TableSource,
    runs: Mapping[str, Rankings | TableSource],
    maximize: str,
    requirements: Sequence[str],
    columns: Columns,
    *,
    measure: str | Measure = "nDCG@10",
    conventions: Conventions | str | None = None,
    baseline: Fusion | None = None,
    properties: QueryProperties | None = None,
    level: float = 0.05,
    folds: int = 10,
    depth: int | None = None,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Balance:
    """Give a column of the documents as much weight as the requirements allow.

    Args:
        truth: Judgments or preferences.
        runs: What each list returned, by its name: result lists, or the run of any ranker.
        maximize: ``"mean(margin)@10"``: the mean of a column over the first 10 documents that
            have a number.
        requirements: In the language of ``require``: ``"nDCG@10 >= baseline - 0.5%"``.
        columns: The column, and others that are lists.
        measure: What the other weights are chosen for.
        conventions: What to do where tools disagree.
        baseline: What the requirements call ``baseline``; by default what is chosen for the
            measure alone.
        properties: Properties of the queries, for requirements of slices.
        level: How often what ships may break a requirement.
        folds: How many parts of the queries are held out in turn.
        depth: How many documents of each list count; all by default.
        random_state: The seed of the folds.
        progress: Called with the number of folds done, and all.

    Example:
        >>> truth = {f"q{number}": {"a": 1, "b": 0, "c": 0} for number in range(60)}
        >>> run = {query: {"a": 3.0, "b": 2.0, "c": 1.0} for query in truth}
        >>> margin = {"margin": {"a": 1.0, "b": 2.0, "c": 9.0}}
        >>> requirement = ["nDCG@2 >= baseline - 20%"]
        >>> result = balance_fusion(truth, {"bm25": run}, "mean(margin)@2", requirement, margin)
        >>> result.chosen.gain.mean > 0, round(result.chosen.price.mean, 3)
        (True, 0.0)
    """
    match = _OBJECTIVE.fullmatch(maximize)
    if match is None:
        raise ArgumentError(
            f"{maximize[:60]!r} is not an objective", hint="Write mean(COLUMN)@10, of --column."
        )
    column, top = match[1], int(match[2])
    if column not in columns:
        raise ArgumentError(f"there is no column {column!r}", hint=f"Give {column}=TABLE.")
    if not requirements:
        raise ArgumentError(
            f"{maximize} without a requirement would be all that counts",
            hint="Add one, such as 'nDCG@10 >= baseline - 0.5%'.",
        )
    parsed = [Requirement.parse(text) for text in requirements]
    others = {name: values for name, values in columns.items() if name != column}
    base = JudgedLists.of(truth, runs, measure, conventions, others, least_lists=1)
    assert base.inputs.document_ids is not None
    documents = base.inputs.document_ids.to_pylist()
    numbers = np.array([columns[column].get(each, np.nan) for each in documents], np.float64)
    counts = base.counts | {f"documents without {column}": int(np.isnan(numbers).sum())}
    if np.isnan(numbers).all():
        raise DataError(f"no document of the lists has a {column}", hint="Compare the ids.")
    judged = replace(
        base, lists=(*base.lists, column), columns=(*base.columns, column),
        votes=np.column_stack([base.votes, numbers]), known={},
    )  # fmt: skip
    # Weights of other means are not shares of the score.
    choose = Chooser(
        base, combinations=("arithmetic", "rrf"), depth=depth, random_state=random_state
    ).choice
    scores = {share: np.full(base.rows, np.nan) for share in (0.0, *SHARES)}
    parts = held_out_parts(base.usable, folds, random_state)
    for number, part in enumerate(parts):
        rows = base.rows_of(part)
        fusion = choose(np.setdiff1d(base.usable, part))
        for share, of_rows in scores.items():
            of_rows[rows] = judged.scores(_with_share(fusion, column, share))[rows]
        if progress is not None:
            progress(number + 1, len(parts))
    if baseline is not None:
        scores[0.0] = judged.scores(_of_lists(baseline, judged))
    first = judged.rankings(scores[0.0], judged.usable, "baseline")
    before = _objective(judged, numbers, scores[0.0], top)
    shares: list[ColumnShare] = []
    values = (float("nan"), float("nan"))
    coverage: tuple[str, ...] = ()
    for share in SHARES:
        name = f"{column} {share:g}"
        run = judged.rankings(scores[share], judged.usable, name)
        measures = [each.measure for each in parsed]
        comparison = judged.compare({"baseline": first, name: run}, random_state, measures)
        decision = None
        if not shares or shares[-1].shown:
            decision = require(comparison, *parsed, properties=properties, level=level)
        after = _objective(judged, numbers, scores[share], top)
        both = ~np.isnan(before) & ~np.isnan(after)
        if not both.any():
            raise DataError(f"no list has a {column} in its first {top}", hint="Compare the ids.")
        summaries = comparison.summaries[judged.measure]
        price = comparison.against_baseline[judged.measure][name].difference
        gain = paired_difference(after[both], before[both], random_state=random_state)
        shares.append(
            ColumnShare(
                share, float(after[both].mean()), gain, summaries[name].mean, price, decision
            )
        )
        values = float(before[both].mean()), summaries["baseline"].mean
        coverage = coverage_warnings(comparison, "baseline")
    shown = [each for each in shares if each.shown]
    fusion = choose(base.usable)
    if shown:
        fusion = _with_share(fusion, column, shown[-1].share)
    elif baseline is not None:
        fusion = baseline
    return Balance(
        fusion, column, top, base.measure, values, tuple(shares),
        shown[-1] if shown else None, counts, coverage,
    )  # fmt: skip


def _with_share(fusion: Fusion, column: str, share: float) -> Fusion:
    """Return a fusion that gives a column a share of the weight."""
    weights = (*((1.0 - share) * each for each in fusion.weights), share)
    return replace(
        fusion, lists=(*fusion.lists, column), weights=weights, columns=(*fusion.columns, column)
    )


def _of_lists(fusion: Fusion, judged: JudgedLists) -> Fusion:
    """Return a fusion with weight 0 for the lists that it does not have."""
    unknown = [name for name in fusion.lists if name not in judged.lists]
    if unknown:
        raise DataError(
            f"the baseline has a list {unknown[0]!r}", hint=f"Give {unknown[0]}=RUN, too."
        )
    weights = dict(zip(fusion.lists, fusion.weights, strict=True))
    every = tuple(weights.get(name, 0.0) for name in judged.lists)
    return replace(fusion, lists=judged.lists, weights=every, columns=judged.columns)


def _objective(judged: JudgedLists, numbers: Doubles, scores: Doubles, top: int) -> Doubles:
    """Return the mean of a column over the first documents of each query that have a number."""
    offsets = judged.inputs.offsets
    values = np.full(len(offsets) - 1, np.nan)
    for query in judged.usable:
        rows = slice(offsets[query], offsets[query + 1])
        shown = numbers[rows][np.argsort(-scores[rows], kind="stable")[:top]]
        known = shown[~np.isnan(shown)]
        if len(known):
            values[query] = known.mean()
    return values
