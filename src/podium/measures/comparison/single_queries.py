"""Single queries of a comparison: hard ones, and both systems' lists of those that moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from podium.data import Judgments, Rankings
from podium.measures.comparison.result import Comparison
from podium.measures.registry import Measure

_HARD = 10
_DEPTH = 10


@dataclass(frozen=True)
class HardQuery:
    """A query on which no system does well.

    Attributes:
        query_id: The query.
        values: The value of each system.
    """

    query_id: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class ListedDocument:
    """A document of a ranked list.

    Attributes:
        document_id: Its id.
        title: Its title, or the beginning of its text; empty if unknown.
        label: Its label; None if it was not judged.
        other_rank: Its rank from 1 in the other list; None if it is not in it.
    """

    document_id: str
    title: str
    label: float | None
    other_rank: int | None


@dataclass(frozen=True)
class ListPair:
    """The first results of a query in the baseline and in another system.

    Attributes:
        query_id: The query.
        text: What was searched for; empty if unknown.
        system: The other system.
        difference: How much its value is above the baseline's.
        is_better: Whether that is a gain: of losses, smaller values are better.
        baseline: The baseline's list.
        ranked: The other system's list.
    """

    query_id: str
    text: str
    system: str
    difference: float
    is_better: bool
    baseline: tuple[ListedDocument, ...]
    ranked: tuple[ListedDocument, ...]


def hard_queries(
    comparison: Comparison, measure: Measure, *, count: int = _HARD
) -> tuple[HardQuery, ...]:
    """The queries whose best system is worst, from the hardest on.

    A query is hard if its best value is not half as good as that of the average query; of losses,
    twice as large.
    """
    table = comparison.values[measure]
    sign = 1.0 if measure.larger_is_better else -1.0
    best = sign * (sign * table).max(axis=1)
    usual = float(best.mean())
    is_hard = best < usual / 2 if measure.larger_is_better else best > usual * 2
    order = np.argsort(sign * best, kind="stable")
    return tuple(
        HardQuery(comparison.query_ids[query], tuple(table[query].tolist()))
        for query in order.tolist()
        if is_hard[query]
    )[:count]


def moved_lists(
    comparison: Comparison,
    judgments: Judgments,
    systems: Mapping[str, Rankings],
    *,
    texts: Mapping[str, str] | None = None,
    titles: Mapping[str, str] | None = None,
) -> tuple[ListPair, ...]:
    """The lists of the queries that moved most under the first measure, for each system."""
    measure = comparison.measures[0]
    depth = min(measure.cut_off or _DEPTH, _DEPTH)
    labels = _labels(judgments)
    pairs = []
    for system, outcome in comparison.against_baseline[measure].items():
        column = comparison.systems.index(system)
        values = comparison.values[measure]
        for query in outcome.moved:
            name = comparison.query_ids[query]
            old, new = (_ranked(systems[each], name) for each in (comparison.baseline, system))
            difference = float(values[query, column] - values[query, 0])
            pairs.append(
                ListPair(
                    name,
                    (texts or {}).get(name, ""),
                    system,
                    difference,
                    (difference > 0) == measure.larger_is_better,
                    _listed(old[:depth], new, labels.get(name, {}), titles or {}),
                    _listed(new[:depth], old, labels.get(name, {}), titles or {}),
                )
            )
    return tuple(pairs)


def _ranked(run: Rankings, query_id: str) -> list[str]:
    """The ids of a query's documents, best first."""
    index = run.query_ids.index(query_id).as_py()
    if index < 0:
        return []
    rows = np.arange(run.offsets[index], run.offsets[index + 1])
    best = rows[np.argsort(-run.scores[rows], kind="stable")]
    return [run.document_ids[row].as_py() for row in best.tolist()]


def _listed(
    own: list[str], other: list[str], labels: Mapping[str, float], titles: Mapping[str, str]
) -> tuple[ListedDocument, ...]:
    rank = {document: index for index, document in enumerate(other, start=1)}
    return tuple(
        ListedDocument(each, titles.get(each, ""), labels.get(each), rank.get(each)) for each in own
    )


def _labels(judgments: Judgments) -> dict[str, dict[str, float]]:
    documents = judgments.document_ids.to_pylist()
    return {
        query: {documents[row]: float(judgments.labels[row]) for row in range(begin, end)}
        for query, begin, end in zip(
            judgments.query_ids.to_pylist(),
            judgments.offsets[:-1].tolist(),
            judgments.offsets[1:].tolist(),
            strict=True,
        )
    }
