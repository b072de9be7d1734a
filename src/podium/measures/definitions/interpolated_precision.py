"""Interpolated precision at levels of recall."""

from __future__ import annotations

from math import floor, nan
from typing import Annotated

from podium.kernels import Doubles, Floats, inner
from podium.measures.definitions._shared import Rel, count_relevant
from podium.measures.parameters import BY_CONVENTION, Parameter
from podium.measures.registration import measure


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("Give a number from 0 to 1")
    return int(value) if value == int(value) else value


def _shares(value: object) -> tuple[float, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("Give a list of numbers from 0 to 1")
    return tuple(map(_share, value))


@inner
def _precision_from(
    labels: Floats, relevant: int, recall: float, nearest: bool, rel: float
) -> float:
    """Return the largest precision at any rank that has the recall."""
    share = recall * relevant
    needed = floor(share + 0.5) if nearest else int(share + 0.9)
    hits, best = 0, 0.0
    for position in range(len(labels)):
        if labels[position] >= rel:
            hits += 1
            if hits >= needed:
                best = max(best, hits / (position + 1))
    return best


@measure(aliases=("iprec_at_recall",), monotone=True)
def IPrec(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    nearest_recall: bool,
    recall: Annotated[
        float,
        Parameter(
            "The level of recall, from 0 to 1.", _share, suffix_of=("iprec", "iprec_at_recall")
        ),
    ] = 0.0,
    rel: Rel = BY_CONVENTION,
) -> float:
    r"""Interpolated precision: the largest precision at any rank that reaches a level of recall.

    $$\mathrm{IPrec@}r = \max \{ \mathrm{P@}i : \textstyle\sum_{j \le i} [y_j \ge rel] \ge
    \lceil r R \rceil \}$$

    and 0 if no rank reaches it, with R relevant documents. `IPrec@0.1` is `IPrec(recall=0.1)`. How
    $r R$ is rounded is a convention.
    """
    relevant = count_relevant(ideal, rel)
    return _precision_from(labels, relevant, recall, nearest_recall, rel) if relevant else nan


@measure(aliases=("11pt_avg",), monotone=True)
def AvgIPrec(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    nearest_recall: bool,
    recalls: Annotated[Doubles, Parameter("The levels of recall.", _shares)] = (  # type: ignore[assignment]  # arrives as an array
        *(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    ),
    rel: Rel = BY_CONVENTION,
) -> float:
    r"""The mean of the interpolated precision over levels of recall, by default 11 of them.

    $$\mathrm{AvgIPrec} = \frac{1}{11} \sum_{r = 0, 0.1, \ldots, 1} \mathrm{IPrec@}r$$
    """
    relevant = count_relevant(ideal, rel)
    if not relevant:
        return nan
    total = 0.0
    for level in range(len(recalls)):
        total += _precision_from(labels, relevant, recalls[level], nearest_recall, rel)
    return total / len(recalls)
