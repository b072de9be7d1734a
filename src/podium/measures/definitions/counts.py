"""Counts of queries and documents, which are added up over queries, and their utility."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from podium.kernels import Doubles, Floats
from podium.measures.definitions._shared import Rel, count_hits, count_relevant, count_tied_hits
from podium.measures.parameters import BY_CONVENTION, Parameter, integer_from
from podium.measures.registration import measure


@measure(aliases=("num_q",), expected=True, aggregate="sum")
def NumQ(size: int) -> float:  # noqa: ARG001, N802
    r"""The number of queries that were evaluated.

    $$\mathrm{NumQ} = \sum_{q} 1$$
    """
    return 1.0


@measure(aliases=("num_ret",), expected=True, aggregate="sum")
def NumRet(size: int) -> float:  # noqa: N802
    r"""The number of documents that were ranked, over all queries.

    $$\mathrm{NumRet} = \sum_{q} n_q$$
    """
    return float(size)


@measure(aliases=("num_rel",), expected=True, aggregate="sum")
def NumRel(ideal: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""The number of relevant documents, ranked or not, over all queries.

    $$\mathrm{NumRel} = \sum_{q} \sum_{d} [y_d \ge rel]$$
    """
    return float(count_relevant(ideal, rel))


@measure(aliases=("num_rel_ret",), expected=True, aggregate="sum")
def NumRelRet(labels: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""The number of relevant documents that were ranked, over all queries.

    $$\mathrm{NumRelRet} = \sum_{q} \sum_{i} [y_i \ge rel]$$
    """
    return float(count_tied_hits(labels, rel, 0, len(labels)))


@measure(aliases=("num_nonrel_judged_ret",), expected=True, aggregate="sum")
def NumNonrelRet(labels: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""The number of ranked documents that are judged irrelevant, over all queries.

    $$\mathrm{NumNonrelRet} = \sum_{q} \sum_{i} [y_i < rel]$$
    """
    return float(np.sum(labels < rel))


def _four_numbers(value: object) -> tuple[float, ...]:
    if not isinstance(value, list | tuple) or len(value) != 4:
        raise ValueError("Give four numbers")
    if not all(isinstance(each, int | float) and abs(each) < 1e300 for each in value):
        raise ValueError("Give four numbers")
    return tuple(int(each) if each == int(each) else each for each in value)


@measure(aliases=("utility",), expected=True, monotone=True)
def SetUtility(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    size: int,
    rel: Rel = BY_CONVENTION,
    weights: Annotated[
        Doubles,
        Parameter(
            "The worth of a relevant and of another document that is ranked, and of a relevant and "
            "of another one that is not.",
            _four_numbers,
        ),
    ] = (1, -1, 0, 0),  # type: ignore[assignment]  # arrives as an array
    collection: Annotated[
        int, Parameter("The number of documents of the collection.", integer_from(0))
    ] = 0,
) -> float:
    r"""The worth of a ranking as a set: weights times the counts of the contingency table.

    $$\mathrm{SetUtility} = w_1 h + w_2 (n - h) + w_3 (R - h) + w_4 (N + h - n - R)$$

    with h relevant documents among n that are ranked, R relevant ones in all, and N documents in
    the collection.
    """
    hits = count_hits(labels, rel, len(labels))
    relevant = count_relevant(ideal, rel)
    return float(
        weights[0] * hits
        + weights[1] * (size - hits)
        + weights[2] * (relevant - hits)
        + weights[3] * (collection + hits - size - relevant)
    )
