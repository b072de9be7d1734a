"""How often another ranking would have been clicked, estimated from a log.

A document at a rank counts if the log shows it there, the more the less often the log does: by the
probability that it was shown there, its propensity. Each document of the log is a round of a bandit
whose action is what stands at this rank.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import stats

from podium.clicks.models import DEPTH, fit_clicks
from podium.clicks.table import ClickLog
from podium.data import Rankings
from podium.errors import DataError
from podium.kernels import Doubles

LEAST_OVERLAP = 0.98
_FEWEST_GROUPS = 5
_SURE = 0.999


@dataclass(frozen=True)
class PolicyValue:
    """An estimate of the clicks per search that a ranking would have.

    Attributes:
        value: The estimate.
        low: The lower end of its interval.
        high: The upper end.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PolicyEvaluation:
    """How often another ranking would have been clicked.

    Attributes:
        logged: Clicks per search of the log's own ranking.
        ips: Inverse propensity scoring: unbiased if propensities are right, and noisy.
        self_normalized: Clicks over weights that add up to one: less noise, a little bias.
        doubly_robust: Expected clicks of a click model, corrected by inverse propensity: right if
            either propensities or the model are.
        overlap: The share of the clicks that a click model expects of the ranking which are on
            documents that the log shows at their ranks; up to chance where propensities are known.
        effective: How many documents of equal weight are worth as much.
        searches: Searches for queries that are ranked.
        left_out: Searches for queries that are not.
        groups: How many clients, or queries if clients are not known, intervals are clustered by.
        clustered_by: ``client`` or ``query``.
        known: Whether the log has propensities; otherwise they are shares of a query's searches.
    """

    logged: PolicyValue
    ips: PolicyValue
    self_normalized: PolicyValue
    doubly_robust: PolicyValue
    overlap: float
    effective: float
    searches: int
    left_out: int
    groups: int
    clustered_by: str
    known: bool


def evaluate_policy(
    log: ClickLog | str | os.PathLike[str],
    rankings: Rankings,
    *,
    names: Mapping[str, str] | None = None,
    depth: int = DEPTH,
    level: float = 0.95,
) -> PolicyEvaluation:
    """Estimate how often users would click if other rankings were shown.

    Intervals are clustered by client, or by query where clients are not known; they are about other
    clients, or queries, like these, and hold if propensities are right.

    Args:
        log: The log, or its folder. Its column ``propensity`` has the probability with which a
            document was shown at its rank; if it is null anywhere, propensities are the shares of
            the query's searches in which it was.
        rankings: What would be shown, by the queries of the log.
        names: To the texts of queries in the log their ids in the rankings; by default they are
            equal.
        depth: The last rank to take.
        level: The confidence of the intervals.

    Raises:
        DataError: If the log shows too little of the rankings to say anything about them.

    Example:
        >>> import tempfile
        >>> from podium.clicks import import_clicks
        >>> queries = [f"q{n // 4}" for n in range(20)]
        >>> rows = {"search_id": [f"s{n // 2}" for n in range(20)], "query": queries,
        ...         "document_id": [*"abba"] * 5, "rank": [1, 2] * 10,
        ...         "clicked": [True, False, False, True] * 5}
        >>> log = import_clicks(rows, tempfile.mkdtemp() + "/log")
        >>> ranked = Rankings.from_columns(queries[::2], [*"ab"] * 5, [2.0, 1.0] * 5)
        >>> result = evaluate_policy(log, ranked)
        >>> result.logged.value, result.ips.value, result.overlap
        (1.0, 1.0, 1.0)
    """
    opened = log if isinstance(log, ClickLog) else ClickLog.open(log)
    model = fit_clicks(opened, "pbm", depth=depth)
    with opened.sql() as connection:
        connection.register("targets", _targets(rankings, names, depth))
        connection.register("attraction", model.labels().select(["query", "document_id", "label"]))
        ranks = np.arange(1, len(model.theta) + 1)
        connection.register("examination", pa.table({"rank": ranks, "theta": model.theta}))
        a, b = model.prior
        unknown, without_client, left_out = connection.execute(_COUNTS, {"depth": depth}).fetchone()
        by = "query" if without_client else "client"
        columns = connection.execute(
            _SUMS.format(
                propensity="shares.share" if unknown else "shown.propensity", group=f"shown.{by}"
            ),
            {"depth": depth, "prior": a / (a + b)},
        ).fetchnumpy()
    sums = {name: np.asarray(values, np.float64) for name, values in columns.items()}
    if len(sums["searches"]) < _FEWEST_GROUPS:
        raise DataError(
            f"has searches of {len(sums['searches'])} {by} for queries that are ranked",
            path=opened.folder,
            hint=f"Intervals need {_FEWEST_GROUPS}; compare the names of queries.",
        )
    return _evaluation(opened, sums, level, int(left_out), by, known=not unknown)


def _evaluation(
    log: ClickLog, sums: Mapping[str, Doubles], level: float, left_out: int, by: str, *, known: bool
) -> PolicyEvaluation:
    searches, rounds, weight = sums["searches"], sums["rounds"], sums["weight"]
    overlap = _ratio(sums["seen"], sums["expected"], _SURE)
    # With known propensities, what is rarely shown may be missing by chance.
    share = overlap.high if known else overlap.value
    if not share >= LEAST_OVERLAP:
        raise DataError(
            f"shows at their ranks the documents with {overlap.value:.0%} of the clicks that are "
            f"expected of this ranking, and {LEAST_OVERLAP:.0%} are needed",
            path=log.folder,
            hint="Log searches that swap documents, or evaluate a ranking that is closer.",
        )
    ips = _ratio(sums["weighted_clicks"], searches, level)
    # Clicks over weights, times documents per search.
    share_of_clicks = float(sums["weighted_clicks"].sum() / weight.sum())
    per_search = float(rounds.sum() / searches.sum())
    away = (sums["weighted_clicks"] - share_of_clicks * weight) * float(rounds.sum() / weight.sum())
    away += share_of_clicks * (rounds - per_search * searches)
    return PolicyEvaluation(
        logged=_ratio(sums["clicks"], searches, level),
        ips=ips,
        self_normalized=_interval(share_of_clicks * per_search, away, searches, level),
        doubly_robust=_ratio(sums["doubly_robust"], searches, level),
        overlap=overlap.value,
        effective=float(weight.sum() ** 2 / sums["squares"].sum()),
        searches=int(searches.sum()),
        left_out=left_out,
        groups=len(searches),
        clustered_by=by,
        known=known,
    )


def _ratio(values: Doubles, sizes: Doubles, level: float) -> PolicyValue:
    mean = float(values.sum() / sizes.sum())
    return _interval(mean, values - mean * sizes, sizes, level)


def _interval(value: float, away: Doubles, sizes: Doubles, level: float) -> PolicyValue:
    """Return an estimate with the interval of a ratio of sums over independent groups."""
    groups = len(away)
    deviation = np.sqrt(groups / (groups - 1) * float(away @ away)) / float(sizes.sum())
    half = float(stats.t.ppf(0.5 + level / 2, groups - 1)) * deviation
    return PolicyValue(value, value - half, value + half)


def _targets(rankings: Rankings, names: Mapping[str, str] | None, depth: int) -> pa.Table:
    """Return the documents of the rankings by query of the log, with their ranks."""
    order = np.lexsort((-rankings.scores, rankings.query_of_row))
    rank = np.arange(rankings.rows) - rankings.offsets[rankings.query_of_row] + 1
    kept = rank <= depth
    ids = rankings.query_id_of_row().cast(pa.string())
    documents = rankings.document_ids.cast(pa.string())
    table = pa.table(
        {
            "id": ids.take(pa.array(order[kept])),
            "document_id": documents.take(pa.array(order[kept])),
            "rank": rank[kept],
        }
    )
    if names is None:
        return table.rename_columns(["query", "document_id", "rank"])
    texts = pa.table({"id": list(names.values()), "query": list(names)})
    return texts.join(table, "id", join_type="inner").select(["query", "document_id", "rank"])


_COUNTS = """
SELECT
    coalesce(sum((propensity IS NULL)::INT), 0),
    coalesce(sum((client IS NULL)::INT), 0),
    (SELECT count(DISTINCT (query, search_id)) FROM clicks
        WHERE query NOT IN (SELECT query FROM targets))
FROM clicks WHERE rank <= $depth AND query IN (SELECT query FROM targets)
"""

_SUMS = """
WITH shown AS (
    FROM clicks WHERE rank <= $depth AND query IN (SELECT query FROM targets)
), sizes AS (
    SELECT query, count(DISTINCT search_id) AS searches FROM shown GROUP BY query
), shares AS (
    SELECT query, document_id, rank, count(*) / any_value(sizes.searches) AS share
    FROM shown JOIN sizes USING (query) GROUP BY query, document_id, rank
), rounds AS (
    SELECT
        {group} AS unit, (shown.query, shown.search_id) AS search, shown.clicked::INT AS click,
        CASE WHEN targets.document_id = shown.document_id THEN 1 / {propensity} ELSE 0 END
            AS weight,
        examination.theta * coalesce(here.label, $prior) AS expected,
        CASE WHEN targets.document_id IS NULL THEN 0
            ELSE examination.theta * coalesce(there.label, $prior) END AS expected_there
    FROM shown
    JOIN examination USING (rank)
    JOIN shares USING (query, document_id, rank)
    LEFT JOIN targets ON targets.query = shown.query AND targets.rank = shown.rank
    LEFT JOIN attraction AS here
        ON here.query = shown.query AND here.document_id = shown.document_id
    LEFT JOIN attraction AS there
        ON there.query = shown.query AND there.document_id = targets.document_id
)
SELECT
    count(DISTINCT search) AS searches, count(*) AS rounds, sum(click) AS clicks,
    sum(weight) AS weight, sum(weight * weight) AS squares, sum(weight * click) AS weighted_clicks,
    sum(weight * expected) AS seen, sum(expected_there) AS expected,
    sum(expected_there + weight * (click - expected)) AS doubly_robust
FROM rounds GROUP BY unit ORDER BY unit
"""
