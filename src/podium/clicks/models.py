"""Click models: how likely each rank is examined, and how attractive documents are for a query.

All are fitted on counts that add up over files. Attractiveness has a beta prior that is learned
from all pairs (empirical Bayes), so that a pair that was seen twice is not called perfect.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from scipy import stats

from podium.clicks.cells import (
    CellFiles,
    Cells,
    ClickPositions,
    by_rank,
    chosen_cells,
    conditional_sums,
    count_cells,
    joint_step,
    label_pairs,
    pair_names,
    posterior_sums,
    profile_information,
)
from podium.clicks.table import ClickLog, Searches
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.threads import ordered_map

ModelName: TypeAlias = Literal["ctr", "coec", "pbm", "pbm-em", "cascade", "dcm", "sdbn", "ubm"]
"""Click-through rate, clicks over expected clicks, the position-based model by documents that moved
(``pbm``) or by expectation maximisation (``pbm-em``), cascade, dependent click model, simplified
dynamic Bayesian network, user browsing model."""

DEPTH = 20
_GRID = np.linspace(-9.0, 7.0, 129)
_ALPHA = 1.0 / (1.0 + np.exp(-_GRID))
_LOG_ALPHA, _LOG_REST = np.log(_ALPHA), np.log1p(-_ALPHA)
_START = (0.5, 4.0)
_ENOUGH_PAIRS = 1_000_000
_MOST_CONTEXTS = 1024
_Z = 1.959963984540054
_WEAK = 1.0 / 9.0
"""The precision of a prior of log examination: with no data, a deviation of 3."""


@dataclass(frozen=True)
class Examination:
    """The probability that a rank is examined, relative to the first.

    Attributes:
        ranks: The ranks.
        values: The probability of each; that of the first is 1 by definition.
        low: The lower end of its 95 % interval; NaN where nothing is known.
        high: The upper end.
        impressions: How many documents were shown there.
    """

    ranks: Ints
    values: Doubles
    low: Doubles
    high: Doubles
    impressions: Ints


@dataclass(frozen=True)
class ClickModel:
    """A click model that was fitted to a log.

    Attributes:
        name: Its name.
        log: The log.
        depth: The last rank that was taken.
        examination: Examination by rank, if the model has one.
        parameters: Other parameters by name.
        prior: The two parameters of the beta prior of attractiveness.
        log_likelihood: The log-likelihood of clicks, attractiveness integrated out; NaN for models
            without one.
        pairs: How many pairs of query and document there are.
        iterations: How many passes over the counts the fit took.

    Example:
        >>> import tempfile
        >>> from podium.clicks import import_clicks
        >>> rows = {"search_id": [*"aabb"], "query": ["tv"] * 4, "document_id": [*"xyyx"],
        ...         "rank": [1, 2, 1, 2], "clicked": [True, False, True, False]}
        >>> model = fit_clicks(import_clicks(rows, tempfile.mkdtemp() + "/log"), "ctr")
        >>> table = model.labels()
        >>> table["document_id"].to_pylist(), table["clicks"].to_pylist()
        (['x', 'y'], [1, 1])
    """

    name: ModelName
    log: ClickLog
    depth: int
    examination: Examination | None
    parameters: Mapping[str, Doubles]
    prior: tuple[float, float]
    log_likelihood: float
    pairs: int
    iterations: int
    theta: Doubles = field(repr=False)

    def label_batches(self, level: float = 0.95) -> Iterator[pa.Table]:
        """Yield the labels of one file after the other: see `labels`."""
        for searches in self.log.blocks(self.depth):
            if len(searches.pair):
                yield self._labels(searches, level)

    def labels(self, level: float = 0.95) -> pa.Table:
        """Return a label for each query and document, with its interval.

        Columns are ``query``, ``document_id``, ``label`` (how likely a user who examines the
        document clicks it; with ``sdbn`` clicks and is satisfied; with ``coec`` clicks over
        expected clicks), ``low``, ``high``, ``deviation``, ``shown`` and ``clicks``.

        Args:
            level: The confidence of the intervals.
        """
        return pa.concat_tables(self.label_batches(level))

    def _labels(self, searches: Searches, level: float) -> pa.Table:
        query, document = pair_names(searches)
        pairs = len(searches.pair_query)
        shown = np.bincount(searches.pair, minlength=pairs)
        clicks = np.bincount(searches.pair, searches.clicked, minlength=pairs).astype(np.int64)
        if self.name == "coec":
            out = _clicks_over_expected(searches, self.parameters["ctr"])
        else:
            cells = _cells(self.name, searches, self.depth)
            out = _posterior(cells["attracted"], self.theta, self.prior, level)
            if "satisfied" in cells:
                kept = _posterior(cells["satisfied"], np.ones(1), self._satisfaction_prior(), level)
                out = _product(out, kept)
        return pa.table(
            {
                "query": query, "document_id": document, "label": out[:, 0], "low": out[:, 1],
                "high": out[:, 2], "deviation": out[:, 3], "shown": shown, "clicks": clicks,
            }
        )  # fmt: skip

    def _satisfaction_prior(self) -> tuple[float, float]:
        a, b = self.parameters["satisfaction_prior"].tolist()
        return a, b


def fit_clicks(
    log: ClickLog | str | os.PathLike[str],
    model: ModelName = "pbm",
    *,
    depth: int = DEPTH,
    max_iter: int = 200,
    tol: float = 1e-4,
) -> ClickModel:
    """Fit a click model to a log.

    Args:
        log: The log, or its folder.
        model: The model.
        depth: The last rank to take.
        max_iter: The most passes over the counts.
        tol: The change of a log examination probability below which a fit ends.

    Example:
        >>> import tempfile
        >>> from podium.clicks import import_clicks
        >>> rows = {"search_id": [*"aabb"], "query": ["tv"] * 4, "document_id": [*"xyyx"],
        ...         "rank": [1, 2, 1, 2], "clicked": [True, False, True, True]}
        >>> model = fit_clicks(import_clicks(rows, tempfile.mkdtemp() + "/log"))
        >>> model.examination.values.round(2).tolist()
        [1.0, 0.55]
    """
    if model not in get_args(ModelName):
        raise ArgumentError(
            f"there is no click model {model!r}",
            hint=f"There are {', '.join(get_args(ModelName))}.",
        )
    if depth < 1 or max_iter < 1 or not tol > 0:
        raise ArgumentError("depth, max_iter and tol are above 0", hint="Leave them out.")
    opened = log if isinstance(log, ClickLog) else ClickLog.open(log)
    files = CellFiles(
        opened, lambda each: _cells(model, each, depth), depth, lambda each: _rank_sums(each, depth)
    )
    try:
        return _fit(opened, model, depth, files, max_iter, tol)
    finally:
        files.close()


def _fit(
    log: ClickLog, model: ModelName, depth: int, files: CellFiles, max_iter: int, tol: float
) -> ClickModel:
    impressions, clicks, last_clicks = files.sums
    if not clicks.sum():
        raise DataError("has no click", path=log.folder, hint="Nothing can be learned from it.")
    pairs = sum(cells.pairs for cells in files("attracted"))
    parameters: dict[str, Doubles] = {}
    examination = None
    with np.errstate(all="ignore"):
        ctr = np.where(impressions > 0, clicks / impressions, np.nan)
    iterations = 1
    if model == "coec":
        parameters["ctr"] = ctr
        return ClickModel(
            model, log, depth, None, parameters, (math.nan, math.nan), math.nan, pairs, 1, ctr
        )
    theta = np.ones(depth if model == "ctr" else 1)
    if model == "pbm":
        theta, low, high, iterations = examine_moved(files, depth, max_iter, tol)
        examination = _examination(theta, low, high, impressions)
    elif model in ("pbm-em", "ubm"):
        start = np.clip(np.nan_to_num(ctr / np.nanmax(ctr), nan=1.0), 0.02, 1.0)
        start = start if model == "pbm-em" else np.repeat(start, depth + 1)
        theta, low, high, iterations = _expectation_maximisation(files, start, max_iter, tol)
        if model == "pbm-em":
            examination = _examination(theta, low, high, impressions)
        else:
            for name, values in (("", theta), ("_low", low), ("_high", high)):
                parameters[f"examination{name}"] = values.reshape(depth, depth + 1)
    prior, value, theta = _fit_prior(files, "attracted", theta, max_iter)
    if model == "dcm":
        with np.errstate(all="ignore"):
            parameters["continuation"] = np.where(clicks > 0, 1.0 - last_clicks / clicks, np.nan)
    if model == "sdbn":
        kept, _, _ = _fit_prior(files, "satisfied", np.ones(1), max_iter)
        parameters["satisfaction_prior"] = np.array(kept)
    return ClickModel(
        model, log, depth, examination, parameters, prior, value, pairs, iterations, theta
    )


def _examination(theta: Doubles, low: Doubles, high: Doubles, impressions: Doubles) -> Examination:
    ranks = np.flatnonzero(impressions) + 1
    at = ranks - 1
    return Examination(ranks, theta[at], low[at], high[at], impressions[at].astype(np.int64))


def _rank_sums(searches: Searches, depth: int) -> Doubles:
    """Return impressions, clicks and last clicks of a search, by rank."""
    rank, last = searches.rank - 1, np.zeros(len(searches.rank), bool)
    positions = ClickPositions.of(searches)
    last = positions.number == positions.last
    weights = (None, searches.clicked, last)
    return np.array([np.bincount(rank, each, minlength=depth)[:depth] for each in weights], float)


def _cells(model: ModelName, searches: Searches, depth: int) -> dict[str, Cells]:
    """Count what a model needs: in which contexts pairs were seen, and which satisfied."""
    clicked = searches.clicked
    if model in ("pbm", "pbm-em", "coec"):
        return {"attracted": by_rank(searches, depth)}
    every = np.ones(len(clicked), bool)
    if model == "ctr":
        return {"attracted": chosen_cells(searches, every, clicked)}
    positions = ClickPositions.of(searches)
    if model == "cascade":
        rows = (positions.first < 0) | (positions.number <= positions.first)
        return {"attracted": chosen_cells(searches, rows, clicked)}
    if model in ("dcm", "sdbn"):
        rows = (positions.last < 0) | (positions.number <= positions.last)
        cells = {"attracted": chosen_cells(searches, rows, clicked)}
        if model == "sdbn":
            cells["satisfied"] = chosen_cells(searches, clicked, positions.number == positions.last)
        return cells
    begins = np.repeat(searches.offsets[:-1], np.diff(searches.offsets))
    before = np.where(
        positions.before >= 0, searches.rank[begins + np.maximum(positions.before, 0)], 0
    )
    context = (searches.rank - 1) * (depth + 1) + before
    return {
        "attracted": count_cells(
            searches.pair, context, clicked, searches.pair_query, depth * (depth + 1)
        )
    }


# Examination by documents that moved --------------------------------------------------------------


@dataclass(frozen=True)
class Information:
    """Sums of a conditional fit at some examination: see `conditional_sums`."""

    score: Doubles
    hessian: Doubles
    meat: Doubles
    log_likelihood: float


def information(moved: list[Cells], log_theta: Doubles) -> Information:
    """Add up score and information of log examination over files."""
    contexts = len(log_theta)

    def work(cells: Cells) -> Information:
        score, one = np.zeros((2, contexts))
        hessian, meat = np.zeros((2, contexts, contexts))
        total = conditional_sums(
            cells.begins, cells.context, cells.shown, cells.clicks, cells.pair_query, log_theta,
            score, hessian, meat, one,
        )  # fmt: skip
        return Information(score, hessian, meat, float(total))

    parts = list(ordered_map(work, moved))
    return Information(*(sum(getattr(each, name) for each in parts) for name in vars(parts[0])))


def examine_moved(
    files: CellFiles, depth: int, max_iter: int, tol: float
) -> tuple[Doubles, Doubles, Doubles, int]:
    """Estimate examination from pairs that were shown at several ranks (intervention harvesting).

    Given how often such a pair was clicked in all, at which rank it was depends on examination
    alone. Newton's method finds where the score is 0; intervals allow for clicks of one query
    that depend on each other. What no pair connects with rank 1 is NaN.
    """
    moved = [cells.at_several() for cells in files("attracted")]
    theta, low, high = np.full((3, depth), np.nan)
    linked = information(moved, np.zeros(depth)).hessian
    # Rank 1, or the first that was shown, is examined for sure: a scale has to be chosen.
    reference = int(np.argmax(files.sums[0] > 0))
    free = np.array(sorted(connected(linked, reference) - {reference}), np.int64)
    theta[reference] = low[reference] = high[reference] = 1.0
    steps = 0
    if len(free):
        log_theta = np.zeros(depth)
        # A weak prior keeps finite what hardly any click is about; its intervals stay wide.
        weight = np.full(len(free), _WEAK)
        current = information(moved, log_theta)
        value = current.log_likelihood
        for _ in range(max_iter):
            steps += 1
            matrix = current.hessian[np.ix_(free, free)] + np.diag(weight)
            slope = current.score[free] - weight * log_theta[free]
            step = np.clip(np.linalg.solve(matrix, slope), -2.0, 2.0)
            while True:
                trial = log_theta.copy()
                trial[free] += step
                after = information(moved, trial)
                reached = after.log_likelihood - 0.5 * float(weight @ trial[free] ** 2)
                if reached >= value - 1e-9 or np.abs(step).max() < 1e-8:
                    break
                step /= 2
            log_theta, current, value = trial, after, reached
            if np.abs(step).max() < tol * 1e-2:
                break
        inverse = np.linalg.inv(current.hessian[np.ix_(free, free)] + np.diag(weight))
        groups = max(sum(len(np.unique(cells.pair_query)) for cells in moved), 2)
        meat = current.meat[np.ix_(free, free)] * groups / (groups - 1) + np.diag(weight)
        deviation = np.sqrt(np.diag(inverse @ meat @ inverse))
        half = float(stats.t.ppf(0.975, groups - 1)) * deviation
        theta[free] = np.exp(log_theta[free])
        low[free], high[free] = np.exp(log_theta[free] - half), np.exp(log_theta[free] + half)
    return theta, low, high, steps


def connected(links: Doubles, start: int) -> set[int]:
    """Return the contexts that links connect with one."""
    seen, waiting = {start}, [start]
    while waiting:
        for other in np.flatnonzero(links[waiting.pop()]).tolist():
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


# Examination by the likelihood --------------------------------------------------------------------


def _expectation_maximisation(
    files: CellFiles, start: Doubles, max_iter: int, tol: float
) -> tuple[Doubles, Doubles, Doubles, int]:
    """Maximise the likelihood over examination and the attractiveness of every pair.

    The first context is examined for sure. Intervals are those of the likelihood's curvature, with
    a weak prior for contexts that are hardly seen; they hold where pairs were seen often.
    """
    theta = start.copy()
    theta[0] = 1.0
    alphas = [np.full(cells.pairs, 0.5) for cells in files("attracted")]
    impressions = np.zeros(len(theta))
    for cells in files("attracted"):
        impressions += np.bincount(cells.context, cells.shown, minlength=len(theta))

    def work(item: tuple[Cells, Doubles]) -> Doubles:
        cells, alpha = item
        seen = np.zeros(len(theta))
        joint_step(cells.begins, cells.context, cells.shown, cells.clicks, theta, alpha, seen)
        return seen

    passes = 0
    for _ in range(max_iter):
        passes += 1
        seen = sum(ordered_map(work, zip(files("attracted"), alphas, strict=True)), np.zeros(1))
        new = np.divide(seen, impressions, out=theta.copy(), where=impressions > 0)
        new[0] = 1.0
        new = np.clip(new, 1e-6, 1.0)
        change = float(np.abs(np.log(new / theta)).max())
        theta = new
        if change < tol:
            break
    contexts = len(theta)
    deviation = np.full(contexts, np.nan)
    if contexts <= _MOST_CONTEXTS:
        matrix = np.zeros((contexts, contexts))
        for cells, alpha in zip(files("attracted"), alphas, strict=True):
            profile_information(cells.begins, cells.context, cells.shown, theta, alpha, matrix)
        free = np.flatnonzero(impressions > 0)
        free = free[free != 0]
        inverse = np.linalg.inv(matrix[np.ix_(free, free)] + _WEAK * np.eye(len(free)))
        deviation[free] = np.sqrt(np.diag(inverse))
        deviation[0] = 0.0
    return theta, theta * np.exp(-_Z * deviation), theta * np.exp(_Z * deviation), passes


# The prior of attractiveness ----------------------------------------------------------------------


def _fit_prior(
    files: CellFiles, name: str, theta: Doubles, max_iter: int
) -> tuple[tuple[float, float], float, Doubles]:
    """Learn the beta prior by the marginal likelihood of pairs of the first files."""
    from scipy import optimize

    # A rank without any estimate has the least one. More than 1 is an estimate's noise.
    theta = np.clip(np.where(np.isfinite(theta), theta, np.nanmin(theta)), 1e-6, 1.0)
    chosen = list(_some(files(name)))

    def objective(point: Doubles) -> tuple[float, Doubles]:
        prior = (float(np.exp(point[0])), float(np.exp(point[1])))
        weights, value = _posteriors(chosen, theta, prior)
        away = weights - np.exp(_log_prior(prior)) * weights.sum()
        slope = np.array([prior[0] * (away @ _LOG_ALPHA), prior[1] * (away @ _LOG_REST)])
        return -value / weights.sum(), -slope / weights.sum()

    result = optimize.minimize(
        objective, np.log(_START), jac=True, method="L-BFGS-B", bounds=[(-6, 6), (-6, 9)],
        options={"maxfun": max_iter},
    )  # fmt: skip
    prior = (float(np.exp(result.x[0])), float(np.exp(result.x[1])))
    return prior, _posteriors(files(name), theta, prior)[1], theta


def _posteriors(
    files: Iterable[Cells], theta: Doubles, prior: tuple[float, float]
) -> tuple[Doubles, float]:
    """Return the sum of the posteriors on the grid, and the log-likelihood."""
    log_prior, log_theta = _log_prior(prior), np.log(theta)
    log_miss = np.log1p(-np.minimum(theta[:, None] * _ALPHA, 1.0 - 1e-12))

    def work(cells: Cells) -> tuple[Doubles, float]:
        weights = np.zeros(len(_ALPHA))
        total = posterior_sums(
            cells.begins, cells.context, cells.shown, cells.clicks, log_theta, log_miss,
            _LOG_ALPHA, log_prior, weights,
        )  # fmt: skip
        return weights, float(total)

    parts = list(ordered_map(work, files))
    return sum((each for each, _ in parts), np.zeros(len(_ALPHA))), sum(each for _, each in parts)


def _some(files: Iterable[Cells]) -> Iterator[Cells]:
    """Yield files, each with a random part of the queries, until there are enough pairs."""
    pairs = 0
    for cells in files:
        yield cells
        pairs += cells.pairs
        if pairs >= _ENOUGH_PAIRS:
            break


def _log_prior(prior: tuple[float, float]) -> Doubles:
    a, b = prior
    values = a * _LOG_ALPHA + b * _LOG_REST  # a density of the logit
    most = values.max()
    return np.asarray(values - most - np.log(np.exp(values - most).sum()))


# Labels -------------------------------------------------------------------------------------------


def _posterior(cells: Cells, theta: Doubles, prior: tuple[float, float], level: float) -> Doubles:
    out = np.empty((cells.pairs, 4))
    label_pairs(cells.begins, cells.context, cells.shown, cells.clicks, theta, *prior, level, out)
    return out


def _product(attracted: Doubles, satisfied: Doubles) -> Doubles:
    """Return the label of two independent factors, its interval on the scale of logarithms."""
    mean = attracted[:, 0] * satisfied[:, 0]
    out = np.empty_like(attracted)
    out[:, 0] = mean
    for side in (1, 2):
        parts = [np.log(each[:, side] / each[:, 0]) ** 2 for each in (attracted, satisfied)]
        out[:, side] = mean * np.exp((-1 if side == 1 else 1) * np.sqrt(sum(parts)))
    out[:, 2] = np.minimum(out[:, 2], 1.0)
    squares = [each[:, 3] ** 2 + each[:, 0] ** 2 for each in (attracted, satisfied)]
    out[:, 3] = np.sqrt(np.maximum(squares[0] * squares[1] - mean**2, 0.0))
    return out


def _clicks_over_expected(searches: Searches, ctr: Doubles) -> Doubles:
    """Return COEC as the Search Relevance Workbench computes it.

    All impressions of a document count at the best rank that it ever had for its query.
    """
    pairs = len(searches.pair_query)
    best = np.full(pairs, np.iinfo(np.int64).max)
    np.minimum.at(best, searches.pair, searches.rank)
    shown = np.bincount(searches.pair, minlength=pairs)
    clicks = np.bincount(searches.pair, searches.clicked, minlength=pairs)
    expected = shown * ctr[best - 1]
    out = np.full((pairs, 4), np.nan)
    out[:, 0] = np.divide(clicks, expected, out=np.zeros(pairs), where=expected > 0)
    return out
