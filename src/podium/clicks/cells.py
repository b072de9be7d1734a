"""What click models need of a log: how often each pair was seen and clicked in each context.

A pair is a query and a document, a context what decides whether it is examined: its rank, or its
rank and that of the click before. Counts of files add up: a pair's searches are all in one file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.clicks.table import ClickLog, Searches
from podium.kernels import Doubles, Ints, kernel
from podium.threads import ordered_map

Counts: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True)
class Cells:
    """Counts of the pairs of one file.

    Attributes:
        begins: Where the cells of each pair begin, and their number last.
        context: The context of each cell.
        shown: How often the pair was examined or may have been, there.
        clicks: How often it was clicked.
        pair_query: The number of each pair's query; pairs of a query are together.
    """

    begins: Ints
    context: Counts
    shown: Counts
    clicks: Counts
    pair_query: Counts

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.begins) - 1

    def at_several(self) -> Cells:
        """Return the clicked pairs that were seen in more than one context."""
        clicks = np.add.reduceat(self.clicks, self.begins[:-1]) if self.pairs else np.zeros(0)
        kept = (np.diff(self.begins) > 1) & (clicks > 0)
        cells = np.repeat(kept, np.diff(self.begins))
        sizes = np.diff(self.begins)[kept]
        return Cells(
            np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            self.context[cells], self.shown[cells], self.clicks[cells], self.pair_query[kept],
        )  # fmt: skip


def count_cells(
    pair: Ints, context: Ints, clicked: NDArray[np.bool_], pair_query: Ints, contexts: int
) -> Cells:
    """Count rows by pair and context."""
    keys, inverse = np.unique(pair * contexts + context, return_inverse=True)
    pairs = keys // contexts
    sizes = np.bincount(pairs, minlength=len(pair_query))
    return Cells(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        (keys % contexts).astype(np.int32),
        np.bincount(inverse, minlength=len(keys)).astype(np.int32),
        np.bincount(inverse, clicked, minlength=len(keys)).astype(np.int32),
        pair_query.astype(np.int32),
    )


class CellFiles:
    """Cells of all files of a log, kept on disk and read as they are needed.

    Args:
        log: The log.
        of: Makes of a file's searches what is kept: cells by name.
        depth: Leave out ranks below this one.
        summary: Makes of a file's searches what is added up: an array.
    """

    def __init__(
        self,
        log: ClickLog,
        of: Callable[[Searches], dict[str, Cells]],
        depth: int | None,
        summary: Callable[[Searches], Doubles] | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="podium-clicks-")
        self._files = len(log.files)
        self._names: list[str] = []
        self.sums: Any = 0.0

        def work(item: tuple[int, Searches]) -> tuple[list[str], Any]:
            number, searches = item
            cells = of(searches)
            for name, each in cells.items():
                for part, values in vars(each).items():
                    np.save(self._path(number, name, part), values)
            return list(cells), 0.0 if summary is None else summary(searches)

        for names, sums in ordered_map(work, enumerate(log.blocks(depth))):
            self._names = names
            self.sums = self.sums + sums

    def _path(self, number: int, name: str, part: str) -> Path:
        return Path(self._folder.name) / f"{number}-{name}-{part}.npy"

    def __call__(self, name: str) -> Iterator[Cells]:
        """Read the cells of a name, one file after the other, from the disk's cache."""
        for number in range(self._files):
            parts = Cells.__dataclass_fields__
            yield Cells(
                **{part: np.load(self._path(number, name, part), mmap_mode="r") for part in parts}
            )

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()


# Contexts -----------------------------------------------------------------------------------------


@kernel
def _first_and_last(
    offsets: Ints, clicked: NDArray[np.bool_], first: Ints, last: Ints, before: Ints
) -> None:
    """Write to each row the numbers of its search's first and last click, and of the one before.

    Numbers count rows of the search from 0; -1 stands for none.
    """
    for search in range(len(offsets) - 1):
        begin, end = offsets[search], offsets[search + 1]
        one, two = -1, -1
        for row in range(begin, end):
            before[row] = two
            if clicked[row]:
                two = row - begin
                if one < 0:
                    one = two
        for row in range(begin, end):
            first[row], last[row] = one, two


@dataclass(frozen=True)
class ClickPositions:
    """Where each row is between its search's clicks; numbers of rows, -1 for none."""

    number: Ints
    first: Ints
    last: Ints
    before: Ints

    @classmethod
    def of(cls, searches: Searches) -> ClickPositions:
        """Find them."""
        rows = len(searches.pair)
        first, last, before = np.empty((3, rows), np.int64)
        first, last, before = (each.astype(np.int64) for each in (first, last, before))
        _first_and_last(searches.offsets, searches.clicked, first, last, before)
        number = np.arange(rows) - np.repeat(searches.offsets[:-1], np.diff(searches.offsets))
        return cls(number, first, last, before)


def by_rank(searches: Searches, contexts: int) -> Cells:
    """Count by rank, from 0."""
    return count_cells(
        searches.pair, searches.rank - 1, searches.clicked, searches.pair_query, contexts
    )


def chosen_cells(searches: Searches, rows: NDArray[np.bool_], clicked: NDArray[np.bool_]) -> Cells:
    """Count some rows in one context."""
    pair = searches.pair[rows]
    zeros = np.zeros(len(pair), np.int64)
    return count_cells(pair, zeros, clicked[rows], searches.pair_query, 1)


def pair_names(searches: Searches) -> tuple[pa.Array, pa.Array]:
    """Return the query and the document of each pair."""
    return searches.query_names.take(pa.array(searches.pair_query)), searches.pair_documents


# Examination by documents that moved --------------------------------------------------------------


@kernel
def conditional_sums(
    begins: Ints,
    context: Counts,
    shown: Counts,
    clicks: Counts,
    pair_query: Counts,
    log_theta: Doubles,
    score: Doubles,
    hessian: Doubles,
    meat: Doubles,
    one: Doubles,
) -> float:
    """Add up score and information of log examination, given each pair's number of clicks.

    Given its clicks, a pair's are multinomial over contexts, with weights of examination times
    impressions: the pair's attractiveness cancels, however rarely it was seen.
    """
    pairs = len(begins) - 1
    total = 0.0
    for pair in range(pairs):
        begin, end = begins[pair], begins[pair + 1]
        weight, clicked = 0.0, 0.0
        for cell in range(begin, end):
            weight += shown[cell] * np.exp(log_theta[context[cell]])
            clicked += clicks[cell]
        for cell in range(begin, end):
            k = context[cell]
            share = shown[cell] * np.exp(log_theta[k]) / weight
            residual = clicks[cell] - clicked * share
            score[k] += residual
            one[k] += residual
            hessian[k, k] += clicked * share
            if clicks[cell] > 0:
                total += clicks[cell] * np.log(share)
            for other in range(begin, end):
                m = context[other]
                hessian[k, m] -= clicked * share * shown[other] * np.exp(log_theta[m]) / weight
        if pair + 1 == pairs or pair_query[pair + 1] != pair_query[pair]:
            for k in range(len(one)):
                if one[k] != 0.0:
                    for m in range(len(one)):
                        meat[k, m] += one[k] * one[m]
            one[:] = 0.0
    return total


@kernel
def swap_sums(begins: Ints, context: Counts, shown: Counts, moved: Doubles, linked: Doubles) -> int:
    """Add up, for each two contexts, the harmonic numbers of impressions of pairs seen in both."""
    several = 0
    for pair in range(len(begins) - 1):
        begin, end = begins[pair], begins[pair + 1]
        if end - begin > 1:
            several += 1
        for cell in range(begin, end):
            for other in range(begin, end):
                k, m = context[cell], context[other]
                if k != m:
                    moved[k, m] += shown[cell] * shown[other] / (shown[cell] + shown[other])
                    linked[k, m] += 1
    return several


# Examination and attractiveness together ----------------------------------------------------------


@kernel
def joint_step(
    begins: Ints,
    context: Counts,
    shown: Counts,
    clicks: Counts,
    theta: Doubles,
    alpha: Doubles,
    seen: Doubles,
) -> None:
    """Take one EM step: new attractiveness in place, expected examinations added up by context."""
    for pair in range(len(begins) - 1):
        attracted, total = 0.0, 0.0
        for cell in range(begins[pair], begins[pair + 1]):
            k, c = context[cell], clicks[cell]
            missed = shown[cell] - c
            p = min(theta[k] * alpha[pair], 1.0 - 1e-9)
            attracted += c + missed * (alpha[pair] - p) / (1.0 - p)
            seen[k] += c + missed * (theta[k] - p) / (1.0 - p)
            total += shown[cell]
        alpha[pair] = attracted / total


@kernel
def profile_information(
    begins: Ints, context: Counts, shown: Counts, theta: Doubles, alpha: Doubles, matrix: Doubles
) -> None:
    """Add up the information about log examination, attractiveness of each pair being unknown."""
    for pair in range(len(begins) - 1):
        begin, end = begins[pair], begins[pair + 1]
        total = 0.0
        for cell in range(begin, end):
            p = min(theta[context[cell]] * alpha[pair], 0.999)
            total += shown[cell] * p / (1.0 - p)
        if total <= 0.0:
            continue
        for cell in range(begin, end):
            k = context[cell]
            p = min(theta[k] * alpha[pair], 0.999)
            weight = shown[cell] * p / (1.0 - p)
            matrix[k, k] += weight
            for other in range(begin, end):
                m = context[other]
                q = min(theta[m] * alpha[pair], 0.999)
                matrix[k, m] -= weight * shown[other] * q / (1.0 - q) / total


# Attractiveness given examination -----------------------------------------------------------------


@kernel
def posterior_sums(
    begins: Ints,
    context: Counts,
    shown: Counts,
    clicks: Counts,
    log_theta: Doubles,
    log_miss: Doubles,
    log_alpha: Doubles,
    log_prior: Doubles,
    weights: Doubles,
) -> float:
    """Add up the posteriors of attractiveness on a grid; return the log-likelihood of all pairs.

    Args:
        begins: Where each pair's cells begin; with ``context``, ``shown`` and ``clicks`` the cells.
        context: The context of each cell.
        shown: Its impressions.
        clicks: Its clicks.
        log_theta: The log examination of each context.
        log_miss: For each context and value of attractiveness the log probability of no click.
        log_alpha: The logarithms of the values of attractiveness.
        log_prior: Their log probabilities.
        weights: Adds up the posteriors.
    """
    values = len(log_alpha)
    posterior = np.empty(values)
    total = 0.0
    for pair in range(len(begins) - 1):
        for g in range(values):
            posterior[g] = log_prior[g]
        fixed, clicked = 0.0, 0.0
        for cell in range(begins[pair], begins[pair + 1]):
            k, c = context[cell], clicks[cell]
            clicked += c
            fixed += c * log_theta[k]
            missed = shown[cell] - c
            for g in range(values):
                posterior[g] += missed * log_miss[k, g]
        most = -np.inf
        for g in range(values):
            posterior[g] += clicked * log_alpha[g]
            most = max(most, posterior[g])
        norm = 0.0
        for g in range(values):
            posterior[g] = np.exp(posterior[g] - most)
            norm += posterior[g]
        for g in range(values):
            weights[g] += posterior[g] / norm
        total += fixed + most + np.log(norm)
    return total


_POINTS = 65


@kernel
def label_pairs(
    begins: Ints,
    context: Counts,
    shown: Counts,
    clicks: Counts,
    theta: Doubles,
    a: float,
    b: float,
    level: float,
    out: Doubles,
) -> None:
    """Write each pair's posterior mean of attractiveness, its interval and its deviation.

    The posterior of the logit is found on points around its mode, some deviations to each side.
    """
    density, cumulative, point = np.empty(_POINTS), np.empty(_POINTS), np.empty(_POINTS)
    for pair in range(len(begins) - 1):
        begin, end = begins[pair], begins[pair + 1]
        total = 0.0
        for cell in range(begin, end):
            total += clicks[cell]
        u = np.log((total + a) / (b + 1.0)) if total + a > 0 else -3.0
        u = min(max(u, -12.0), 6.0)
        curvature = 1.0
        for _ in range(40):
            alpha = 1.0 / (1.0 + np.exp(-u))
            slope = a * (1.0 - alpha) - b * alpha + total * (1.0 - alpha)
            curvature = (a + b + total) * alpha * (1.0 - alpha)
            for cell in range(begin, end):
                t = theta[context[cell]]
                missed = shown[cell] - clicks[cell]
                p = min(t * alpha, 1.0 - 1e-12)
                d = p * (1.0 - alpha) / (1.0 - p)  # derivative of -log(1 - p) by the logit
                slope -= missed * d
                curvature += missed * max(d * (1.0 - 2.0 * alpha) + d * d, 0.0)
            step = slope / max(curvature, 1e-6)
            u += min(max(step, -2.0), 2.0)
            if abs(step) < 1e-9:
                break
        width = 7.0 / np.sqrt(max(curvature, 1e-3))
        most = -np.inf
        for g in range(_POINTS):
            v = u + width * (2.0 * g / (_POINTS - 1) - 1.0)
            # The left side of a posterior without clicks is longer than a normal one's.
            if v < u and total == 0.0:
                v = u + 2.5 * (v - u)
            alpha = 1.0 / (1.0 + np.exp(-v))
            value = a * np.log(alpha) + b * np.log1p(-alpha) + total * np.log(alpha)
            for cell in range(begin, end):
                missed = shown[cell] - clicks[cell]
                if missed > 0:
                    value += missed * np.log1p(-min(theta[context[cell]] * alpha, 1.0 - 1e-12))
            density[g], point[g] = value, v
            most = max(most, value)
        cumulative[0] = 0.0
        mean, square, norm = 0.0, 0.0, 0.0
        for g in range(_POINTS):
            density[g] = np.exp(density[g] - most)
        for g in range(_POINTS):
            left = point[g] - point[g - 1] if g > 0 else 0.0
            right = point[g + 1] - point[g] if g + 1 < _POINTS else 0.0
            mass = density[g] * (left + right) / 2.0
            alpha = 1.0 / (1.0 + np.exp(-point[g]))
            norm += mass
            mean += mass * alpha
            square += mass * alpha * alpha
            if g > 0:
                cumulative[g] = cumulative[g - 1] + (density[g] + density[g - 1]) * left / 2.0
        out[pair, 0] = mean / norm
        last = cumulative[_POINTS - 1]
        for side in range(2):
            target = last * (0.5 - level / 2 if side == 0 else 0.5 + level / 2)
            g = 1
            while g < _POINTS - 1 and cumulative[g] < target:
                g += 1
            gap = cumulative[g] - cumulative[g - 1]
            part = (target - cumulative[g - 1]) / gap if gap > 0 else 0.5
            v = point[g - 1] + part * (point[g] - point[g - 1])
            out[pair, 1 + side] = 1.0 / (1.0 + np.exp(-v))
        out[pair, 3] = np.sqrt(max(square / norm - (mean / norm) ** 2, 0.0))
