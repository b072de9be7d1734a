"""A DCG or nDCG under every member of a family of gains and discounts (in kernels)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, Floats, Ints, inner, lazy_kernel
from podium.measures.compiled import Booleans, Positions
from podium.measures.compiled.blocks import RankingPlan, blocks
from podium.measures.compiled.prepared import PreparedMeasure
from podium.measures.inputs import Inputs


def member_values(
    lists: Lists,
    bases: Doubles,
    own_gains: Doubles,
    discounts: NDArray[np.float64],
    highest: float,
    normalized: bool,
    nothing: float,
) -> NDArray[np.float64]:
    """The value of each query under each member: queries x gains x discounts.

    Args:
        lists: The lists of the queries.
        bases: The b of gains ``(b^label - 1) / (b - 1)``, in units of the highest label's gain.
        own_gains: The gain of each integer label, as one more kind of gains; or empty.
        discounts: A row for each kind of discounts, a column for each rank that counts. All rows
            fall and rise together.
        highest: The highest label of all queries, in units of whose gain DCG's are.
        normalized: Whether the measure is nDCG, whose gains are in units of that of each query's
            own highest label.
        nothing: The value of nDCG where the ideal DCG is 0.
    """
    values = np.empty((len(lists.sizes), len(bases) + bool(len(own_gains)), len(discounts)))
    _fill(*lists, bases, own_gains, discounts, highest, normalized, nothing, values)
    return values


@inner
def _relative_gain(label: float, base: float, highest: float) -> float:
    """The gain of a label in units of the highest one's: no base overflows."""
    if not label > 0.0:
        return 0.0
    if base == 0.0:
        return 1.0
    if base == 1.0:
        return label / highest
    step = math.log(base)
    if base < 1.0:
        return math.expm1(label * step) / math.expm1(highest * step)
    return (math.exp((label - highest) * step) - math.exp(-highest * step)) / -math.expm1(
        -highest * step
    )


@inner
def _code(grades: Floats, count: int, label: float) -> int:
    """Return the index of a label among the first ``count`` grades, largest first."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if grades[middle] > label:
            low = middle + 1
        else:
            high = middle
    return low


@lazy_kernel
def _fill(
    labels: Floats,
    ends: Positions,
    starts: Ints,
    ideal: Floats,
    ideal_starts: Ints,
    sizes: Ints,
    zero: Booleans,
    bases: Doubles,
    own_gains: Doubles,
    discounts: NDArray[np.float64],
    highest: float,
    normalized: bool,
    nothing: float,
    values: NDArray[np.float64],
) -> None:
    kinds, depth = discounts.shape
    steepest = discounts[kinds - 1]
    for query in range(len(sizes)):
        if zero[query]:
            values[query] = 0.0
            continue
        listed = labels[starts[query] : starts[query + 1]]
        after = ends[starts[query] : starts[query + 1]]
        pool = ideal[ideal_starts[query] : ideal_starts[query + 1]]
        grades = np.empty(len(pool), np.float32)
        count = 0
        for label in pool:
            if count == 0 or grades[count - 1] > label:
                grades[count] = label
                count += 1
        # What the discounts of all documents of a grade add up to, in the mean over ties.
        weights, best = np.zeros((count, kinds)), np.zeros((count, kinds))
        mean = np.empty(kinds)
        position = 0
        while position < min(len(listed), depth):
            end = after[position]
            for kind in range(kinds):
                mean[kind] = 0.0
                for rank in range(position, min(end, depth)):
                    mean[kind] += discounts[kind, rank] / (end - position)
            for other in range(position, end):
                if listed[other] >= 0.0:
                    code = _code(grades, count, listed[other])
                    for kind in range(kinds):
                        weights[code, kind] += mean[kind]
            position = end
        reach = min(max(len(pool), sizes[query]), depth)
        ranks = np.arange(reach)
        for rank in range(1, reach):
            if steepest[rank] > steepest[rank - 1]:
                ranks = np.argsort(-steepest[:reach], kind="mergesort")
                break
        for position in range(min(len(pool), reach)):
            code = _code(grades, count, pool[position])
            for kind in range(kinds):
                best[code, kind] += discounts[kind, ranks[position]]
        unit = highest
        if normalized and count:
            unit = float(grades[0])
        for row in range(len(bases)):
            total, ideal_total = np.zeros(kinds), np.zeros(kinds)
            for code in range(count):
                gain = _relative_gain(float(grades[code]), bases[row], unit)
                for kind in range(kinds):
                    total[kind] += gain * weights[code, kind]
                    ideal_total[kind] += gain * best[code, kind]
            _share(total, ideal_total, normalized, nothing, values[query, row])
        if len(own_gains):
            # These need not rise with the labels, so the ideal order may be another.
            pool_gains = np.empty(len(pool))
            for position in range(len(pool)):
                pool_gains[position] = own_gains[int(pool[position])]
            pool_gains = np.sort(pool_gains)[::-1]
            total, ideal_total = np.zeros(kinds), np.zeros(kinds)
            for kind in range(kinds):
                for code in range(count):
                    total[kind] += own_gains[int(grades[code])] * weights[code, kind]
                for position in range(min(len(pool), reach)):
                    ideal_total[kind] += pool_gains[position] * discounts[kind, ranks[position]]
            _share(total, ideal_total, normalized, nothing, values[query, len(bases)])


@inner
def _share(
    total: Doubles, best: Doubles, normalized: bool, nothing: float, values: Doubles
) -> None:
    """The totals, as a share of the best ones if they are to be."""
    for kind in range(len(values)):
        values[kind] = total[kind]
        if normalized:
            values[kind] = total[kind] / best[kind] if best[kind] > 0.0 else nothing


def add_counts(
    lists: Lists, keep: Booleans, grades: Floats, sign: float, counts: NDArray[np.float64]
) -> None:
    """Add how many documents of each grade are at each rank, in the mean over ties.

    Args:
        lists: The lists of the queries.
        keep: Which queries count.
        grades: All grades above 0, largest first.
        sign: 1 to add, -1 to subtract.
        counts: A row for each grade, a column for each rank that counts.
    """
    _add_counts(lists.labels, lists.ends, lists.starts, keep & ~lists.zero, grades, sign, counts)


@lazy_kernel
def _add_counts(
    labels: Floats,
    ends: Positions,
    starts: Ints,
    keep: Booleans,
    grades: Floats,
    sign: float,
    counts: NDArray[np.float64],
) -> None:
    depth = counts.shape[1]
    for query in range(len(keep)):
        if not keep[query]:
            continue
        begin, size = starts[query], starts[query + 1] - starts[query]
        position = 0
        while position < min(size, depth):
            end = ends[begin + position]
            for other in range(position, end):
                label = labels[begin + other]
                if label > 0.0:
                    code = _code(grades, len(grades), label)
                    for rank in range(position, min(end, depth)):
                        counts[code, rank] += sign / (end - position)
            position = end


def ahead_in_every_query(one: Lists, other: Lists, keep: Booleans, depth: int) -> tuple[bool, bool]:
    """Whether one of two systems is never behind, and whether the other never is.

    A system is not behind in a query if it has at least as many documents of each grade or above
    within each cut-off, in the mean over ties.
    """
    return _ahead(
        one.labels,
        one.ends,
        one.starts,
        ~one.zero,
        other.labels,
        other.ends,
        other.starts,
        ~other.zero,
        one.ideal,
        one.ideal_starts,
        keep,
        depth,
    )


@lazy_kernel
def _ahead(
    labels: Floats,
    ends: Positions,
    starts: Ints,
    counts: Booleans,
    other_labels: Floats,
    other_ends: Positions,
    other_starts: Ints,
    other_counts: Booleans,
    ideal: Floats,
    ideal_starts: Ints,
    keep: Booleans,
    depth: int,
) -> tuple[bool, bool]:
    first = second = True
    for query in range(len(keep)):
        if not keep[query]:
            continue
        if not (first or second):
            break
        last = np.float32(np.inf)
        for index in range(ideal_starts[query], ideal_starts[query + 1]):
            grade = ideal[index]
            if grade == last or not grade > 0.0:
                continue
            last = grade
            surplus = np.zeros(depth)
            if counts[query]:
                begin, end = starts[query], starts[query + 1]
                _add_share(labels[begin:end], ends[begin:end], grade, 1.0, surplus)
            if other_counts[query]:
                begin, end = other_starts[query], other_starts[query + 1]
                _add_share(other_labels[begin:end], other_ends[begin:end], grade, -1.0, surplus)
            total = 0.0
            for share in surplus:
                total += share
                if total < -1e-9:
                    first = False
                if total > 1e-9:
                    second = False
    return first, second


@inner
def _add_share(
    labels: Floats, ends: Positions, grade: float, sign: float, surplus: Doubles
) -> None:
    """Add the chance that the document at each rank is of a grade or above."""
    position = 0
    while position < min(len(labels), len(surplus)):
        end = ends[position]
        inside = 0
        for other in range(position, end):
            inside += labels[other] >= grade
        for rank in range(position, min(end, len(surplus))):
            surplus[rank] += sign * inside / (end - position)
        position = end


class Lists(NamedTuple):
    """Ranked and ideal lists of some queries, one after the other.

    Attributes:
        labels: The labels of the ranked documents, as far as the cut-off and all that are tied with
            the last; NaN where a document was not judged.
        ends: For each of them the position in its list after the last document that it is tied
            with, where ties are averaged over; else the next position.
        starts: Where each query's list begins, and the number of documents last.
        ideal: The labels of the pool, largest first.
        ideal_starts: Where each query's pool begins, and the number of documents last.
        sizes: How many documents were ranked for each query.
        zero: Which queries have a value of 0 because their list is too short.
    """

    labels: Floats
    ends: Positions
    starts: Ints
    ideal: Floats
    ideal_starts: Ints
    sizes: Ints
    zero: Booleans


def ranked_lists(prepared: PreparedMeasure, inputs: Inputs, first: int, last: int) -> Lists:
    """Return the lists of the queries ``first`` up to ``last``."""
    own = prepared.conventions
    plan = RankingPlan(own, prepared.depth, needs_ideal=True)
    labels, ends, ideal, kept, judged, shown = [], [], [], [], [], []
    for block in blocks(plan, inputs, first, last):
        rows, pool = int(block.kept.sum()), int(block.judged.sum())
        packed, packed_ends = np.empty(rows, np.float32), np.empty(rows, np.int32)
        packed_ideal = np.empty(pool, np.float32)
        _pack(block.ranked, block.starts, block.kept, block.ties, block.tied, packed, packed_ends)
        _pack_ideal(block.ideal, block.ideal_starts, block.judged, packed_ideal)
        labels.append(packed)
        ends.append(packed_ends)
        ideal.append(packed_ideal)
        kept.append(block.kept.copy())
        judged.append(block.judged.copy())
        sizes = np.diff(inputs.offsets[block.first : block.last + 1])
        shown.append(block.kept.copy() if own.unjudged == "drop" else sizes)
    sizes = np.concatenate(shown)
    cut = prepared.cut_off
    short = own.short_list == "zero" and cut is not None
    return Lists(
        np.concatenate(labels),
        np.concatenate(ends),
        _starts(kept),
        np.concatenate(ideal),
        _starts(judged),
        sizes,
        sizes < cut if short and cut is not None else np.zeros(len(sizes), np.bool_),
    )


def _starts(counts: list[Ints]) -> Ints:
    return np.concatenate(([0], np.cumsum(np.concatenate(counts))))


@lazy_kernel
def _pack(
    ranked: Floats,
    starts: Ints,
    kept: Ints,
    ties: Positions,
    tied: Booleans,
    labels: Floats,
    ends: Positions,
) -> None:
    target = 0
    for query in range(len(starts)):
        for position in range(kept[query]):
            labels[target] = ranked[starts[query] + position]
            ends[target] = ties[starts[query] + position] if tied[query] else position + 1
            target += 1


@lazy_kernel
def _pack_ideal(ideal: Floats, starts: Ints, judged: Ints, labels: NDArray[np.float32]) -> None:
    target = 0
    for query in range(len(starts)):
        for position in range(judged[query]):
            labels[target] = ideal[starts[query] + position]
            target += 1
