"""How long a comparison takes, and which offline measure predicts what users do."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from podium.clicks import ClickLog
from podium.data import Judgments, Rankings
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.online.sequence import LEVEL, TUNED, widening
from podium.utility import RankingPreferences

_POWER = 0.8
_MOST = 1e12
_DRAWS = 2000


@dataclass(frozen=True)
class OnlinePlan:
    """What it takes to show a gain of clicks, with interleaving and with an A/B test.

    Attributes:
        gain: The gain, as a share of today's clicks.
        clicks: Today's clicks per search.
        differs: The share of clicks on documents that the two rankings show differently.
        interleaving: Searches until interleaving decides, with 80 % power; infinite if never.
        groups: Searches until an A/B test decides, both groups together.
        per_day: Searches per day; NaN where times are not known.
        by_client: Whether clients are known: otherwise searches were taken as independent.
    """

    gain: float
    clicks: float
    differs: float
    interleaving: float
    groups: float
    per_day: float
    by_client: bool


def plan_online(
    log: ClickLog | str | os.PathLike[str],
    *,
    gain: float,
    differs: float | None = None,
    level: float = LEVEL,
    tuned: int = TUNED,
) -> OnlinePlan:
    """Plan a comparison from the variance of a log.

    In an interleaved list each ranking has half of the documents where they differ: it gets half
    of the gain, and only clicks on these documents vary.

    Args:
        log: The log.
        gain: The gain to be shown, as a share of today's clicks.
        differs: The share of clicks where the rankings differ; by default that of the log, if it
            has interleaved searches, else 0.2.
        level: How often the intervals of all looks hold together.
        tuned: The number of searches at which intervals are narrowest.

    Example:
        >>> import tempfile
        >>> from podium.clicks import import_clicks
        >>> rows = {"search_id": list(range(400)), "query": ["q"] * 400, "document_id": ["a"] * 400,
        ...         "rank": [1] * 400, "clicked": [True, False] * 200}
        >>> log = import_clicks(rows, tempfile.mkdtemp() + "/log")
        >>> plan = plan_online(log, gain=0.1)
        >>> plan.clicks, plan.interleaving < plan.groups
        (0.5, True)
    """
    if not 0 < gain < 10:
        raise ArgumentError(f"the gain is {gain}", hint="Give a share of today's clicks: 2%.")
    if differs is not None and not 0 < differs <= 1:
        raise ArgumentError(f"differs is {differs}", hint="Give a share of clicks: 0.2.")
    with (log if isinstance(log, ClickLog) else ClickLog.open(log)).sql() as connection:
        columns = [each[0] for each in connection.execute("DESCRIBE clicks").fetchall()]
        credit = "credit" if "credit" in columns else "NULL"
        (row,) = connection.execute(
            f"""WITH searches AS (SELECT search_id, any_value(client) AS client, min(time) AS time,
                 sum(clicked::INT) AS clicks,
                 sum(CASE WHEN {credit} <> 0 THEN clicked::INT END) AS credited,
                 count({credit}) > 0 AS interleaved
               FROM clicks GROUP BY query, search_id),
             clients AS (SELECT count(*) AS n, sum(clicks) AS x,
                 sum(CASE WHEN interleaved THEN coalesce(credited, 0) END) AS credited,
                 sum(CASE WHEN interleaved THEN clicks END) AS interleaved
               FROM searches GROUP BY coalesce(client, search_id))
             SELECT sum(n), sum(x), sum(n * n), sum(n * x), sum(x * x), sum(credited),
               sum(interleaved), (SELECT count(client) FROM searches),
               (SELECT epoch(max(time)) - epoch(min(time)) FROM searches) FROM clients"""
        ).fetchall()
    n, x, nn, nx, xx, credited, interleaved, known, seconds = (float(each or 0) for each in row)
    if not x:
        raise DataError("has no clicks", hint="Plan from a log with clicks.")
    rate = x / n
    variance = (xx - 2 * rate * nx + rate**2 * nn) / n
    if not variance > 1e-12 * rate**2:
        raise DataError(
            "has the same clicks in all searches: how much they vary is not known",
            hint="Plan from a log that also has searches without a click.",
        )
    if differs is None:
        differs = credited / interleaved if interleaved and credited else 0.2
    target = gain * rate
    return OnlinePlan(
        gain, rate, differs,
        _searches(target / 2, differs * rate, level, tuned),
        _searches(target, 4 * variance, level, tuned),
        n / seconds * 86_400 if seconds > 0 else math.nan, known > 0,
    )  # fmt: skip


def _searches(effect: float, variance: float, level: float, tuned: int) -> float:
    """Return the searches at which an effect is decided with the planned power."""
    more = float(stats.norm.ppf(_POWER))
    low, high = 1.0, _MOST
    if effect * math.sqrt(high / variance) < widening(high, level=level, tuned=tuned) + more:
        return math.inf
    while high - low > max(1.0, 1e-6 * low):
        middle = (low + high) / 2
        reach = widening(middle, level=level, tuned=tuned) + more
        if effect * math.sqrt(middle / variance) >= reach:
            high = middle
        else:
            low = middle
    return math.ceil(high)


@dataclass(frozen=True)
class OnlineAgreement:
    """Whether offline differences of pairs of rankers predict online ones.

    Attributes:
        measure: The offline measure.
        pairs: How many pairs have both.
        left_out: How many pairs have a number missing, or no difference on one side.
        same_sign: The share of pairs on which both have the same sign.
        sign_low: The lower end of its 95 % interval (Clopper and Pearson).
        sign_high: The upper end.
        correlation: Kendall's tau of the differences.
        low: The lower end of its 95 % interval, by drawing pairs anew.
        high: The upper end.
    """

    measure: str
    pairs: int
    left_out: int
    same_sign: float
    sign_low: float
    sign_high: float
    correlation: float
    low: float
    high: float


def online_agreement(
    measures: list[str], offline: Doubles, online: Doubles, *, random_state: int = 0
) -> list[OnlineAgreement]:
    """Compare offline and online differences, the measure that agrees best first.

    Args:
        measures: The measure of each row.
        offline: The difference of a pair of rankers by that measure.
        online: The difference online of the same pair.
        random_state: Draws pairs anew.

    Example:
        >>> import numpy as np
        >>> values = np.array([1.0, 2, 3, -1, -2, 4])
        >>> (result,) = online_agreement(["nDCG@10"] * 6, values, values / 10)
        >>> result.same_sign, result.correlation, round(result.sign_low, 2)
        (1.0, 1.0, 0.54)
    """
    results = []
    for measure in dict.fromkeys(measures):
        rows = np.array([name == measure for name in measures])
        first, second = offline[rows], online[rows]
        known = np.isfinite(first) & np.isfinite(second) & (first != 0) & (second != 0)
        first, second = first[known], second[known]
        pairs = int(known.sum())
        same = int((np.sign(first) == np.sign(second)).sum())
        tau = _tau(first, second)
        random = np.random.default_rng(random_state)
        drawn: list[Any] = [random.integers(0, pairs, pairs) for _ in range(_DRAWS if pairs else 0)]
        taus = np.array([_tau(first[each], second[each]) for each in drawn])
        ends = np.nanquantile(taus, [0.025, 0.975]) if np.isfinite(taus).any() else [-1.0, 1.0]
        results.append(OnlineAgreement(
            measure, pairs, int((~known).sum()), same / pairs if pairs else math.nan,
            float(stats.beta.ppf(0.025, same, pairs - same + 1)) if same else 0.0,
            float(stats.beta.ppf(0.975, same + 1, pairs - same)) if same < pairs else 1.0,
            tau, float(ends[0]), float(ends[1]),
        ))  # fmt: skip
    return sorted(results, key=lambda each: (-each.same_sign, -each.correlation))


def online_preferences(
    outcomes: Mapping[str, tuple[int, int]],
    judgments: Judgments,
    old: Rankings,
    new: Rankings,
    *,
    depth: int = 10,
) -> tuple[RankingPreferences, list[str], dict[str, int]]:
    """Return what users preferred as pairs of graded rankings, to learn gains and discounts from.

    Each query is a pair that prefers the new ranking, weighted by the searches that it won, and
    one that prefers the old one. A document without a label counts as 0. With the pairs come the
    ids of the queries, in the order of their numbers, and counts of what was used and left out.

    Args:
        outcomes: How many searches of each query the old and the new ranking won.
        judgments: The grades, integers from 0.
        old: The old ranking.
        new: The new one.
        depth: How many documents of each count.

    Example:
        >>> from podium.data.sources import as_judgments, as_rankings
        >>> run = lambda best: as_rankings({"q": {best: 2.0, "b" if best == "a" else "a": 1.0}})
        >>> grades = as_judgments({"q": {"a": 2, "b": 0}})
        >>> pairs, queries, counts = online_preferences({"q": (1, 3)}, grades, run("b"), run("a"))
        >>> pairs.left[:, :2].tolist(), pairs.choices.tolist(), pairs.pair_weights.tolist()
        ([[2, 0], [2, 0]], [1, -1], [3.0, 1.0])
    """
    queries = judgments.query_id_of_row().to_pylist()
    labels: dict[str, dict[str, int]] = {}
    for query, document, label in zip(
        queries, judgments.document_ids.to_pylist(), judgments.labels.tolist(), strict=True
    ):
        if label != int(label) or label < 0:
            raise DataError(f"{label:g} is not a grade", hint="Give integers from 0.")
        labels.setdefault(query, {})[document] = int(label)
    counts = dict.fromkeys(
        ("queries", "queries without grades", "queries without both runs", "searches",
         "searches of queries left out", "documents without a grade"), 0,
    )  # fmt: skip
    first, second = (_best(run, depth) for run in (old, new))
    rows: list[tuple[list[int], list[int], int, int, str]] = []
    for query, wins in outcomes.items():
        if query not in labels:
            counts["queries without grades"] += 1
            counts["searches of queries left out"] += sum(wins)
            continue
        if query not in first or query not in second:
            counts["queries without both runs"] += 1
            counts["searches of queries left out"] += sum(wins)
            continue
        known, shown = labels[query], (second[query], first[query])
        counts["queries"] += 1
        counts["searches"] += sum(wins)
        counts["documents without a grade"] += sum(d not in known for each in shown for d in each)
        left, right = ([known.get(document, 0) for document in each] for each in shown)
        rows += [
            (left, right, choice, weight, query)
            for choice, weight in ((1, wins[1]), (-1, wins[0]))
            if weight
        ]
    if not rows:
        raise DataError("no query has judgments and both runs", hint="Compare the query ids.")
    lefts, rights, choices, weights, names = zip(*rows, strict=True)
    pairs = RankingPreferences.from_arrays(
        lefts, rights, choices, pair_weights=weights, queries=names, depth=depth,
        grades=max(int(judgments.labels.max()) + 1, 2),
    )  # fmt: skip
    return pairs, list(dict.fromkeys(names)), counts


def _best(run: Rankings, depth: int) -> dict[str, list[str]]:
    """Return the first documents of each query."""
    listed: dict[str, list[tuple[float, str]]] = {}
    for query, document, score in zip(
        run.query_id_of_row().to_pylist(), run.document_ids.to_pylist(), run.scores.tolist(),
        strict=True,
    ):  # fmt: skip
        listed.setdefault(query, []).append((-score, document))
    return {query: [name for _, name in sorted(each)[:depth]] for query, each in listed.items()}


def _tau(first: Doubles, second: Doubles) -> float:
    """Return Kendall's tau-b; NaN if all values of one side are equal."""
    a = np.sign(first[:, None] - first[None, :])
    b = np.sign(second[:, None] - second[None, :])
    scale = math.sqrt(float((a * a).sum()) * float((b * b).sum()))
    return float((a * b).sum()) / scale if scale else math.nan
