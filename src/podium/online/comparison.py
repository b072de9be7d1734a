"""What users do with two rankings: interleaved searches and A/B tests, from tables of any size.

DuckDB adds up what each client did; from there on only sums are needed, one set for each ranking,
slice and stretch of time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from podium.clicks.importing import milliseconds
from podium.clicks.sources import MACROS
from podium.clicks.table import ClickLog, connect, quoted
from podium.data.files import plain_suffix
from podium.errors import ArgumentError, DataError
from podium.online.sequence import (
    LEVEL,
    TUNED,
    ClientSums,
    OnlineInterval,
    difference,
    preference,
    relative_difference,
    sample_ratio_evidence,
    without_past,
)

PREFERENCE = "preference"
BROKEN = 1_000.0
"""The evidence of another split of clients from which on the assignment counts as broken."""
_STRETCHES = 60
_MOST_SLICES = 50
_LARGEST = 1e50
"""Larger numbers are not added up: sums of their powers would overflow."""
_WEEK = 7 * 86_400_000
_ACTIONS = ("clicked", "add_to_cart", "purchase")
_LOG_METRICS = {
    "click_rate": "max(clicked::INT)",
    "abandonment": "1 - max(clicked::INT)",
    "clicks": "sum(clicked::INT)",
    "reciprocal_rank": "coalesce(max(CASE WHEN clicked THEN 1.0 / rank END), 0)",
    "add_to_cart_rate": "max(add_to_cart::INT)",
    "purchase_rate": "max(purchase::INT)",
}
"""What a log of clicks says of a search."""
_NOT_METRICS = {"search_id", "time", "timestamp", "client", "query", "query_id", "policy", "team"}

_SUMS = {
    "clients": "CASE WHEN {n} > 0 THEN 1 ELSE 0 END",
    "size": "{n}",
    "outcome": "{x}",
    "size_squares": "{n} * {n}",
    "products": "{n} * {x}",
    "outcome_squares": "{x} * {x}",
    "alone": "{a}",
    "fourth_0": "{x} * {x} * {x} * {x}",
    "fourth_1": "{x} * {x} * {x} * {n}",
    "fourth_2": "{x} * {x} * {n} * {n}",
    "fourth_3": "{x} * {n} * {n} * {n}",
    "fourth_4": "{n} * {n} * {n} * {n}",
    "past": "CASE WHEN {n} > 0 THEN {b} ELSE 0 END",
    "past_squares": "CASE WHEN {n} > 0 THEN {b} * {b} ELSE 0 END",
    "past_size": "{b} * {n}",
    "past_outcome": "{b} * {x}",
}
"""The sums of `ClientSums`, of a client's size n, outcome x, single squares a and past b."""


@dataclass(frozen=True)
class OnlineResult:
    """One metric, over all clients or in a slice.

    Attributes:
        metric: Its name; ``preference`` of interleaved searches.
        slice_name: The slice; empty for all.
        old: The old ranking's mean; NaN for a preference.
        new: The new one's.
        difference: How much larger the new one's is. A preference is the share of searches that
            prefer the new ranking minus the share that prefer the old one; of the balanced method,
            the difference of clicks per search.
        relative: The difference as a share of the old mean; None for a preference.
        gain: By how much what clients did before reduces the variance; 0 if it is not known.
        sums: What all this is computed from, of the old and the new ranking.
    """

    metric: str
    slice_name: str
    old: float
    new: float
    difference: OnlineInterval
    relative: OnlineInterval | None
    gain: float
    sums: tuple[ClientSums, ClientSums]


class Moment(NamedTuple):
    """A look in the course of time: when, in seconds since 1970, and what was known then."""

    time: float
    difference: OnlineInterval


@dataclass(frozen=True)
class OnlineReport:
    """Two rankings as users see them.

    Attributes:
        kind: ``interleaving`` or ``A/B test``.
        experiment: The name of the experiment; empty if it has none.
        old: The name of the ranking of before.
        new: The name of the other one.
        results: Metrics over all clients, the first one first; then slices.
        course: The first metric over time; empty if times are not known.
        counts: What became of the searches or rows: they add up to ``read``.
        level: How often all intervals over time hold, for each metric; those of slices hold
            together as often.
        tuned: The number of searches at which intervals are narrowest.
        slices: The column that slices are of; empty for none.
        clients: Clients of the old and the new ranking; equal for interleaving.
        evidence: How much likelier another split of clients is than the planned one: from 1,000 on
            the assignment counts as broken. NaN for interleaving.
        by_client: Whether clients are known; otherwise each search counts as one.
        novelty: The first week's difference minus the later one's, if there is more than a week.
        warnings: What makes the results doubtful, one sentence each.
        imported: What the import of a log counted, by ledger and reason.
    """

    kind: Literal["interleaving", "A/B test"]
    experiment: str
    old: str
    new: str
    results: tuple[OnlineResult, ...]
    course: tuple[Moment, ...]
    counts: Mapping[str, int]
    level: float
    tuned: int
    slices: str = ""
    clients: tuple[int, int] = (0, 0)
    evidence: float = math.nan
    by_client: bool = True
    novelty: OnlineInterval | None = None
    warnings: tuple[str, ...] = ()
    imported: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def first(self) -> OnlineResult:
        """The first metric, over all clients."""
        return self.results[0]

    @property
    def is_broken(self) -> bool:
        """Whether clients are split otherwise than planned, so that nothing can be trusted."""
        return self.evidence >= BROKEN

    @property
    def verdict(self) -> str:
        """Who wins, or who has the higher first metric, in a sentence."""
        value = self.first.difference
        units = f"{value.clients:,} {'clients' if self.by_client else 'searches'}"
        if self.is_broken:
            return f"The split of clients is not the planned one: nothing can be said ({units})."
        if value.decided:
            winner, loser = (self.new, self.old) if value.low > 0 else (self.old, self.new)
            if self.kind == "A/B test":
                return f"{self.first.metric} is higher with {winner} than with {loser} ({units})."
            return f"{winner} is ahead of {loser} ({self.first.metric}, {units})."
        if math.isinf(value.low):
            return f"There is too little to say anything yet ({units})."
        return f"Not decided after {units}: more searches may decide it."


class _Source(NamedTuple):
    """A table as relations of SQL, each with whole searches, and the types of its columns."""

    connection: Any
    relations: list[str]
    types: dict[str, str]
    name: Any
    imported: Mapping[str, Mapping[str, int]]

    def first(self, name: str) -> str:
        """Return a column of a search, whose rows all have the same value or none."""
        return f"any_value(CAST({_name(name)} AS VARCHAR))" if name in self.types else "NULL"

    @property
    def moment(self) -> str:
        """The time of a row in milliseconds since 1970."""
        name = "time" if "time" in self.types else "timestamp"
        if name not in self.types:
            return "CAST(NULL AS BIGINT)"
        return milliseconds(name, self.types[name])

    def require(self, *names: str) -> None:
        for name in names:
            if name not in self.types:
                raise DataError(
                    f"has no column {name!r}", path=self.name,
                    hint=f"There are {', '.join(list(self.types)[:12])}.",
                )  # fmt: skip

    def query(self, select: str) -> list[tuple[Any, ...]]:
        """Query all rows, the view ``every``."""
        rows: list[tuple[Any, ...]] = self.connection.execute(select).fetchall()
        return rows


def compare_interleaved(
    source: Any,
    *,
    experiment: str | None = None,
    pair: tuple[str, str] | None = None,
    action: Literal["clicked", "add_to_cart", "purchase"] = "clicked",
    slices: str | None = None,
    level: float = LEVEL,
    tuned: int = TUNED,
) -> OnlineReport:
    """Compare two rankings by interleaved searches; valid at every look.

    A search counts if a document was clicked that says something: the ranking with the larger sum
    of credits wins it. Searches of one client count together. Of the balanced method, whose credits
    are estimates of clicks, all searches count with their sums.

    Args:
        source: A log of clicks or its folder, a Parquet or CSV file, or a table in memory with
            ``search_id``, the ``team`` or the ``credit`` of each document, ``clicked``, and where
            known ``client``, ``time`` and ``policy``, the name of the experiment.
        experiment: Which experiment; by default the latest.
        pair: The names of the old and the new ranking; by default as in the log.
        action: What counts.
        slices: A column to slice by.
        level: How often the intervals of all looks hold together.
        tuned: The number of searches at which intervals are narrowest.

    Example:
        >>> rows = {"search_id": list(range(400)), "team": ["new", "new", "new", "old"] * 100,
        ...         "clicked": [True] * 400}
        >>> report = compare_interleaved(rows, pair=("old", "new"))
        >>> report.first.difference.value, report.verdict
        (0.5, 'new is ahead of old (preference, 400 searches).')
    """
    if action not in _ACTIONS:
        raise ArgumentError(f"action is {action!r}", hint=f"Give one of {', '.join(_ACTIONS)}.")
    with _opened(source) as data:
        data.require("search_id", action, *([] if slices is None else [slices]))
        old, new = _pair(data, pair, experiment)
        lost = 0
        run = data.connection.execute
        policy = _policy(data)
        clients = "true, false"
        if "client" in data.types:
            clients = "count(client) = 0, coalesce(min(client) < max(client), false)"
        run(
            "CREATE TABLE searches (search UBIGINT, unit UBIGINT, moment BIGINT, slice VARCHAR, "
            "experiment VARCHAR, differs BOOLEAN, acted BOOLEAN, says BOOLEAN, credit DOUBLE, "
            "problem VARCHAR, nameless BOOLEAN, several BOOLEAN)"
        )
        for relation in data.relations:
            run(
                f"""INSERT INTO searches SELECT hash(search_id), {_unit(data)},
                      min({data.moment}), {data.first(slices) if slices else "''"},
                      max({policy}), count(_value) > 0, bool_or(_acted),
                      bool_or(_acted AND _value <> 0), {_CREDITS},
                      {_PROBLEM.format(policy)}, {clients}
                    FROM {_rows(data, relation, old, new, action, named=pair is not None)}
                    WHERE search_id IS NOT NULL GROUP BY search_id"""
            )
            ((rows,),) = data.query(f"SELECT count(*) FROM {relation} WHERE search_id IS NULL")
            lost += rows
        chosen = experiment if experiment is not None else _latest(data)
        mine = "true" if chosen is None else f"experiment = {quoted(chosen)}"
        whole = chosen is not None and chosen.startswith("balanced")
        counted = "true" if whole else "says"
        fates = data.query(
            f"""SELECT CASE WHEN problem = '{_SEVERAL}' THEN problem
                  WHEN differs AND NOT coalesce({mine}, false) THEN 'other experiment'
                  WHEN problem IS NOT NULL THEN problem
                  WHEN NOT differs THEN 'not interleaved'
                  WHEN NOT acted THEN 'no action'
                  WHEN NOT says THEN 'action on what both would show'
                  WHEN credit > 0 THEN 'new preferred' WHEN credit < 0 THEN 'old preferred'
                  ELSE 'tied' END, count(*) FROM searches GROUP BY 1 ORDER BY 2 DESC"""
        )
        counts = {"read": lost + sum(count for _, count in fates), **dict(fates)}
        if lost:
            counts["rows without a search id"] = lost
        outcome = "credit" if whole else "sign(credit)"
        run(
            "CREATE VIEW counted AS FROM searches "
            f"WHERE problem IS NULL AND differs AND coalesce({mine}, false) "
            f"AND {counted}"
        )
        time = _Time.range(data, "counted", "moment")
        _create_parts(data, 1)
        run(
            f"""INSERT INTO parts SELECT 'both', unit, slice, {time.stretch}, {time.later}, 1,
                  {outcome}, {outcome} * {outcome}, 0 FROM counted"""
        )
        sums = _all_sums(data, 1, time, sliced=slices is not None)
        ((nameless, several),) = data.query(
            "SELECT count(*) FILTER (nameless), count(*) FILTER (several) FROM counted"
        )
        by_client = "client" in data.types and _has_clients(data)
    if not sums.whole:
        detail = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
        raise DataError(
            f"has no search that says something ({detail})", path=data.name,
            hint="Wait for clicks, or check that events have the search ids of the log.",
        )  # fmt: skip

    def value(arms: _Arms, level: float = level) -> OnlineInterval:
        estimate = preference(arms["both"][0], level=level, tuned=tuned)
        if whole or math.isinf(estimate.low):
            return estimate
        return replace(estimate, low=max(estimate.low, -1.0), high=min(estimate.high, 1.0))

    results = [
        OnlineResult(
            PREFERENCE, name, math.nan, math.nan, value(arms, each), None, 0.0,
            (ClientSums(), arms["both"][0]),
        )
        for name, arms, each in sums.with_levels(level)
    ]  # fmt: skip
    total = results[0].difference.clients
    return OnlineReport(
        "interleaving", chosen or "", old, new, tuple(results),
        tuple(Moment(moment, value(arms)) for moment, arms in sums.course), counts, level,
        tuned, slices or "", (total, total), by_client=by_client, novelty=_novelty(sums, value),
        warnings=_doubts(by_client, sums, "searches", nameless, several), imported=data.imported,
    )  # fmt: skip


def compare_groups(
    source: Any,
    *,
    assignment: str = "policy",
    metrics: Sequence[str] = (),
    pair: tuple[str, str] | None = None,
    since: datetime | None = None,
    past: str | None = None,
    slices: str | None = None,
    share: float = 0.5,
    level: float = LEVEL,
    tuned: int = TUNED,
) -> OnlineReport:
    """Compare two groups of clients, an A/B test; valid at every look.

    Means are over rows: searches, or clients where a table has one row for each. Rows of one client
    count together.

    Args:
        source: A log of clicks or its folder, a Parquet or CSV file, or a table in memory with the
            assignment, metrics, and where known ``client`` and ``time``.
        assignment: The column with the group.
        metrics: Columns of numbers; by default all. Of a log of clicks ``click_rate``,
            ``abandonment``, ``clicks``, ``reciprocal_rank``, ``add_to_cart_rate`` and
            ``purchase_rate``.
        pair: The old and the new group; by default in the order of their names.
        since: When the comparison began: rows before it are what clients did before, which
            explains differences between them (CUPED).
        past: Or a column with what each client did before.
        slices: A column to slice by.
        share: The planned share of clients in the new group.
        level: How often the intervals of all looks hold together, for each metric.
        tuned: The number of rows at which intervals are narrowest.

    Example:
        >>> rows = {"group": ["a", "b"] * 500, "click_rate": [0, 1] * 100 + [0, 0] * 400,
        ...         "client": list(range(1000))}
        >>> report = compare_groups(rows, assignment="group")
        >>> round(report.first.difference.value, 6), report.verdict
        (0.2, 'click_rate is higher with b than with a (1,000 clients).')
    """
    if not 0 < share < 1:
        raise ArgumentError(f"share is {share}", hint="Give a number in (0, 1), such as 0.5.")
    if since is not None and past is not None:
        raise ArgumentError("since and past are both given", hint="Give one of them.")
    with _opened(source) as data:
        data.require(assignment, *(name for name in (past, slices) if name is not None))
        is_log = {"search_id", "document_id", "rank", "clicked"} <= set(data.types)
        chosen = _metrics(data, metrics, {assignment, past, slices}, is_log=is_log)
        old, new = pair or _groups(data, assignment)
        _require_two(old, new)
        by_client = "client" in data.types and _has_clients(data)
        if since is not None and not by_client:
            raise DataError("has no clients, whose past could be known", path=data.name)
        start = None if since is None else round(1000 * since.timestamp())
        run = data.connection.execute
        numbers = range(len(chosen))
        time = _Time.range(data, "every", data.moment, start)
        _create_parts(data, len(chosen))
        run(
            "CREATE TABLE fates (fate VARCHAR, rows BIGINT);"
            "CREATE TABLE before (unit UBIGINT, rows BIGINT, "
            + ", ".join(f"b{at} DOUBLE" for at in numbers) + ")"
        )  # fmt: skip
        names = f"{quoted(old)}, {quoted(new)}"
        early = "false" if start is None else f"moment < {start}"
        for relation in data.relations:
            _stage_rows(data, relation, assignment, chosen, past, slices, is_log=is_log)
            run(
                f"""CREATE OR REPLACE VIEW judged AS SELECT *, CASE WHEN {early}
                      THEN 'before the comparison' WHEN several THEN 'several groups'
                      WHEN arm IS NULL THEN 'no group' WHEN arm NOT IN ({names})
                      THEN 'other group' WHEN ({early}) IS NULL THEN 'no time'
                      ELSE 'compared' END AS fate FROM staged"""
            )
            run("INSERT INTO fates SELECT fate, count(*) FROM judged GROUP BY 1")
            values = ", ".join(
                f"count(x{at}), coalesce(sum(x{at}), 0), coalesce(sum(x{at} * x{at}), 0), 0"
                for at in numbers
            )
            run(
                f"""INSERT INTO parts SELECT CASE arm WHEN {quoted(new)} THEN 'new' ELSE 'old' END,
                      unit, slice, {time.stretch} AS stretch, {time.later} AS later, {values}
                    FROM judged WHERE fate = 'compared' GROUP BY arm, unit, slice, stretch, later"""
            )
            if start is not None or past is not None:
                totals = ", ".join("avg(past)" if past else f"sum(x{at})" for at in numbers)
                fate = "compared" if past else "before the comparison"
                run(
                    f"INSERT INTO before SELECT unit, count(*), {totals} FROM judged "
                    f"WHERE fate = '{fate}' GROUP BY unit"
                )
        rows = data.query("SELECT fate, sum(rows) FROM fates GROUP BY 1 ORDER BY 2 DESC")
        counts = {"read": sum(int(count) for _, count in rows)}
        counts |= {fate: int(count) for fate, count in rows}
        if start is not None or past is not None:
            _add_past(data, len(chosen), of_column=past is not None)
        sums = _all_sums(data, len(chosen), time, sliced=slices is not None)
        # A client without a number for a metric is assigned, too.
        ((mixed, *clients),) = data.query(
            "SELECT count(*) FILTER (old AND new), count(*) FILTER (old), count(*) FILTER (new) "
            "FROM (SELECT bool_or(arm = 'old') AS old, bool_or(arm = 'new') AS new FROM parts "
            "GROUP BY unit)"
        )
        pastless = 0
        if past is not None:
            ((pastless,),) = data.query(
                "SELECT coalesce(sum(rows) FILTER (b0 IS NULL), 0) FROM before"
            )
        nameless = 0
        if by_client:
            ((nameless,),) = data.query("SELECT count(*) FROM every WHERE client IS NULL")
    for arm, name in (("old", old), ("new", new)):
        if arm not in sums.whole:
            detail = ", ".join(f"{fate}: {count:,}" for fate, count in counts.items())
            raise DataError(
                f"has no row of the group {name!r} to compare ({detail})", path=data.name,
                hint="Check the names of the groups, and the times if --since is given.",
            )  # fmt: skip

    def result(metric: int, name: str, arms: _Arms, level: float) -> OnlineResult:
        both = arms["old"][metric], arms["new"][metric]
        rest = without_past(*both)
        value = difference(*both, level=level, tuned=tuned)
        center = (both[0] + both[1]).ratio
        plain = sum(each.variance(center) for each in both)
        return OnlineResult(
            chosen[metric], name, rest[0].ratio, rest[1].ratio, value,
            relative_difference(*both, level=level, tuned=tuned),
            1 - value.deviation**2 / plain if rest != both and plain > 0 else 0.0, both,
        )  # fmt: skip

    results = [
        result(at, name, arms, each)
        for name, arms, each in sums.with_levels(level)
        for at in numbers
    ]
    evidence = sample_ratio_evidence((clients[0], clients[1]), share)

    def value(arms: _Arms) -> OnlineInterval:
        empty = [ClientSums()]
        return difference(
            arms.get("old", empty)[0], arms.get("new", empty)[0], level=level, tuned=tuned
        )

    warnings = list(_doubts(by_client, sums, "rows", nameless))
    if evidence >= BROKEN:
        warnings.insert(
            0, f"The split of clients is not the planned one ({clients[0]:,} and {clients[1]:,} "
            f"where {share:.0%} were to see {new}): something loses clients of one group, and "
            "nothing here can be trusted until it is known what.",
        )  # fmt: skip
    if mixed and by_client:
        warnings.append(
            f"{mixed:,} clients are in both groups, and count in each: what they do in one may "
            "come from the other."
        )
    if pastless:
        warnings.append(
            f"Clients of {pastless:,} rows have no number in {past}: they count as the others do "
            "on average."
        )
    for at, name in enumerate(chosen):
        missing = counts.get("compared", 0) - int(sum(sums.whole[a][at].size for a in sums.whole))
        if missing:
            warnings.append(
                f"{missing:,} rows have no number for {name}, or one beyond {_LARGEST:g}, and do "
                "not count for it."
            )
    return OnlineReport(
        "A/B test", "", old, new, tuple(results),
        tuple(Moment(moment, value(arms)) for moment, arms in sums.course), counts, level,
        tuned, slices or "", (clients[0], clients[1]), evidence, by_client, _novelty(sums, value),
        tuple(warnings), data.imported,
    )  # fmt: skip


# Tables -------------------------------------------------------------------------------------------


@contextmanager
def _opened(source: Any) -> Iterator[_Source]:
    with connect() as connection:
        connection.execute(MACROS)
        name = None
        if isinstance(source, str | os.PathLike):
            name = Path(source)
            if name.is_dir():
                source = ClickLog.open(name)
        if isinstance(source, ClickLog):
            name = source.folder
            relations = [f"read_parquet({quoted(path)})" for path in source.paths]
            every = f"read_parquet([{', '.join(map(quoted, source.paths))}])"
        elif name is not None:
            if not name.exists():
                raise DataError("does not exist", path=name, hint="Check the path.")
            suffix = plain_suffix(name)
            if suffix not in (".parquet", ".csv", ".tsv"):
                raise DataError(
                    "is not a table", path=name,
                    hint="Give .parquet or .csv, or a folder from podium clicks import.",
                )  # fmt: skip
            reader = "read_parquet" if suffix == ".parquet" else "read_csv"
            every = f"{reader}({quoted(str(name))})"
            relations = [every]
        else:
            connection.register("given", pa.table(source))
            every, relations = "given", ["given"]
        try:
            connection.execute(f"CREATE VIEW every AS SELECT * FROM {every}")
            types = dict(
                connection.execute(
                    "SELECT column_name, column_type FROM (DESCRIBE every)"
                ).fetchall()
            )
            imported = source.counts if isinstance(source, ClickLog) else {}
            yield _Source(connection, relations, types, name, imported)
        except Exception as error:
            if type(error).__module__.startswith(("duckdb", "_duckdb")):
                raise DataError(
                    f"cannot be read ({str(error).splitlines()[0]})", path=name, hint="Check it."
                ) from error
            raise


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _number(column: str) -> str:
    """Return a column as numbers whose powers can be added up; null where it has none."""
    number = f"TRY_CAST({_name(column)} AS DOUBLE)"
    return f"CASE WHEN abs({number}) <= {_LARGEST} THEN {number} END"


def _unit(data: _Source, search: str = "any_value(CAST(search_id AS VARCHAR))") -> str:
    """Return what counts as one: a client, or a search where it is not known."""
    if "client" not in data.types:
        return f"hash({search})"
    client = data.first("client") if search.startswith("any") else "CAST(client AS VARCHAR)"
    return f"CASE WHEN {client} IS NULL THEN hash({search}) ELSE hash({client}, 1) END"


def _has_clients(data: _Source) -> bool:
    return bool(data.query("SELECT 1 FROM every WHERE client IS NOT NULL LIMIT 1"))


def _latest(data: _Source) -> str | None:
    rows = data.query(
        "SELECT experiment FROM searches WHERE differs AND experiment IS NOT NULL "
        "GROUP BY 1 ORDER BY max(moment) DESC NULLS LAST, count(*) DESC LIMIT 1"
    )
    return rows[0][0] if rows else None


def _teams(data: _Source, experiment: str | None) -> tuple[str, str]:
    """Return the names of the old and the new ranking."""
    if "team" not in data.types:
        return "old", "new"
    where = "true"
    if experiment is not None and "policy" in data.types:
        where = f"policy = {quoted(experiment)}"
    order = "avg(sign(credit))" if "credit" in data.types else "1"
    names = [
        name
        for (name,) in data.query(
            f"SELECT CAST(team AS VARCHAR) FROM every WHERE team IS NOT NULL AND {where} "
            f"GROUP BY 1 ORDER BY {order}, 1 LIMIT 3"
        )
    ]
    if len(names) == 2:
        return ("old", "new") if names == ["new", "old"] else (names[0], names[1])
    if len(names) == 1 and "credit" in data.types:
        return ("old", names[0]) if names[0] != "old" else ("old", "new")
    raise DataError(
        f"has {'no teams' if not names else 'the teams ' + ', '.join(names)}", path=data.name,
        hint="Name the old and the new ranking: --pair old,new, or one --experiment.",
    )  # fmt: skip


def _require_teams(data: _Source, pair: tuple[str, str]) -> None:
    """Raise a DataError if a ranking has no document: its name may be mistyped."""
    rows = data.query(
        "SELECT DISTINCT CAST(team AS VARCHAR) FROM every WHERE team IS NOT NULL ORDER BY 1"
    )
    teams = [name for (name,) in rows]
    for name in pair:
        if name not in teams:
            raise DataError(
                f"has no document of {name!r}", path=data.name,
                hint=f"There are the teams {', '.join(teams[:10])}.",
            )  # fmt: skip


def _pair(data: _Source, pair: tuple[str, str] | None, experiment: str | None) -> tuple[str, str]:
    """Return the names of the old and the new ranking of interleaved searches."""
    if not {"team", "credit"} & set(data.types):
        raise DataError(
            "has neither teams nor credits", path=data.name,
            hint="Name the groups of an A/B test: --assignment COLUMN.",
        )  # fmt: skip
    if experiment is not None and "policy" in data.types:
        names = [
            name
            for (name,) in data.query(
                "SELECT DISTINCT CAST(policy AS VARCHAR) FROM every WHERE policy IS NOT NULL "
                "ORDER BY 1"
            )
        ]
        if experiment not in names:
            raise DataError(
                f"has no experiment {experiment!r}", path=data.name,
                hint=f"There are {', '.join(names[:10])}." if names else "None has a name.",
            )  # fmt: skip
    if pair is not None:
        _require_two(*pair)
        if "team" in data.types:
            _require_teams(data, pair)
    return pair or _teams(data, experiment)


def _credit(data: _Source, old: str, new: str, *, named: bool) -> str:
    """Return what a click on a document says: for the new ranking, or against it."""
    sign = (
        f"CASE CAST(team AS VARCHAR) WHEN {quoted(new)} THEN 1.0 WHEN {quoted(old)} THEN -1.0 END"
    )
    # An imported log has both columns, whichever is known.
    if "credit" not in data.types or (
        "team" in data.types and data.query("SELECT count(credit) FROM every") == [(0,)]
    ):
        return sign
    credit = _number("credit")
    return f"abs({credit}) * ({sign})" if named and "team" in data.types else credit


_CREDITS = "round(sum(CASE WHEN _acted THEN _value ELSE 0 END), 9)"
"""What the clicks of a search say together. Rounded: 0.1 + 0.2 - 0.3 prefers nothing."""


_SEVERAL = "several experiments"
_PROBLEM = f"coalesce(max(_problem), CASE WHEN min({{0}}) < max({{0}}) THEN '{_SEVERAL}' END)"
"""Why a search cannot count."""


def _policy(data: _Source) -> str:
    """Return the experiment of a row that says something: other rows may have another policy."""
    if "policy" not in data.types:
        return "NULL"
    return "CASE WHEN _value IS NOT NULL THEN CAST(policy AS VARCHAR) END"


def _rows(data: _Source, relation: str, old: str, new: str, action: str, *, named: bool) -> str:
    """Return the rows of a relation with what an action says, and why they cannot count."""
    others, unreadable = "false", "false"
    if "team" in data.types:
        others = f"CAST(team AS VARCHAR) NOT IN ({quoted(old)}, {quoted(new)})"
    if "credit" in data.types:
        unreadable = f"credit IS NOT NULL AND {_number('credit')} IS NULL"
    return (
        f"(SELECT {_credit(data, old, new, named=named)} AS _value, "
        f"{_flag(data, action)} AS _acted, "
        f"CASE WHEN {unreadable} THEN 'credit is not a number' "
        f"WHEN {others} THEN 'other team' END AS _problem, * FROM {relation})"
    )


def query_outcomes(
    source: Any,
    *,
    experiment: str | None = None,
    pair: tuple[str, str] | None = None,
    action: Literal["clicked", "add_to_cart", "purchase"] = "clicked",
) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """Return how many interleaved searches of each query the old and the new ranking won.

    And how many others there are, by the reason why they do not count.

    Args:
        source: As in ``compare_interleaved``, with the ``query`` of each row.
        experiment: Which experiment, where there are several.
        pair: The names of the old and the new ranking; by default as in the log.
        action: What counts.
    """
    with _opened(source) as data:
        data.require("search_id", "query", action)
        old, new = _pair(data, pair, experiment)
        policy = _policy(data)
        mine = "true" if experiment is None else f"experiment = {quoted(experiment)}"
        rows = data.query(
            f"""SELECT CASE WHEN problem = '{_SEVERAL}' THEN problem
                  WHEN differs AND NOT coalesce({mine}, false) THEN 'other experiment'
                  WHEN problem IS NOT NULL THEN problem
                  WHEN NOT differs THEN 'not interleaved'
                  WHEN queries = 0 THEN 'no query' WHEN queries > 1 THEN 'several queries'
                  WHEN NOT acted THEN 'no action'
                  WHEN NOT says THEN 'action on what both would show'
                  WHEN credit = 0 THEN 'tied' END AS reason,
                  CASE WHEN reason IS NULL THEN experiment END,
                  CASE WHEN reason IS NULL THEN query END,
                  count(*) FILTER (credit < 0), count(*) FILTER (credit > 0), count(*)
                FROM (SELECT min(CAST(query AS VARCHAR)) AS query,
                        count(DISTINCT CAST(query AS VARCHAR)) AS queries,
                        max({policy}) AS experiment,
                        count(_value) > 0 AS differs, bool_or(_acted) AS acted,
                        bool_or(_acted AND _value <> 0) AS says,
                        {_CREDITS} AS credit, {_PROBLEM.format(policy)} AS problem
                      FROM {_rows(data, "every", old, new, action, named=pair is not None)}
                      WHERE search_id IS NOT NULL GROUP BY search_id)
                GROUP BY ALL ORDER BY ALL"""
        )
        ((lost,),) = data.query("SELECT count(*) FROM every WHERE search_id IS NULL")
        name = data.name
    wins = [row for row in rows if row[0] is None]
    left_out = {f"searches left out: {row[0]}": row[-1] for row in rows if row[0] is not None}
    if lost:
        left_out["rows without a search id"] = lost
    if len(names := {row[1] for row in wins}) > 1:
        listed = ", ".join(sorted(str(each) for each in names if each is not None))
        raise DataError(f"has {len(names)} experiments", path=name, hint=f"Choose one: {listed}.")
    if not wins:
        detail = ", ".join(f"{reason}: {count:,}" for reason, count in left_out.items())
        raise DataError(
            "has no query with a search that says something" + (f" ({detail})" if detail else ""),
            path=name, hint="Wait for clicks.",
        )  # fmt: skip
    return {row[2]: (row[3], row[4]) for row in wins}, left_out


def _flag(data: _Source, name: str) -> str:
    """Return whether an action was taken, which tables say by truth values, numbers or words."""
    if data.types[name] == "BOOLEAN":
        return f"coalesce({name}, false)"
    number = f"TRY_CAST({name} AS DOUBLE)"
    return (
        f"coalesce(CASE WHEN {number} IS NULL THEN lower(CAST({name} AS VARCHAR)) IN "
        f"('true', 't', 'yes') ELSE {number} > 0 AND NOT isnan({number}) END, false)"
    )


def _require_two(old: str, new: str) -> None:
    if old == new:
        raise ArgumentError(f"{old!r} is both the old and the new one", hint="Name two.")


def _groups(data: _Source, assignment: str) -> tuple[str, str]:
    names = [
        name
        for (name,) in data.query(
            f"SELECT CAST({_name(assignment)} AS VARCHAR) FROM every "
            f"WHERE {_name(assignment)} IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT 10"
        )
    ]
    if len(names) != 2:
        raise DataError(
            f"has the groups {', '.join(names) or '(none)'} in {assignment}", path=data.name,
            hint="Name two: --pair old,new.",
        )  # fmt: skip
    return names[0], names[1]


def _metrics(
    data: _Source, metrics: Sequence[str], others: set[str | None], *, is_log: bool
) -> list[str]:
    numeric = [
        name
        for name, kind in data.types.items()
        if kind.startswith(("DOUBLE", "FLOAT", "DECIMAL", "BOOLEAN"))
        or kind.rstrip("0123456789") in ("INTEGER", "BIGINT", "SMALLINT", "TINYINT", "HUGEINT",
                                         "UINTEGER", "UBIGINT", "USMALLINT", "UTINYINT")
    ]  # fmt: skip
    known = [n for n in numeric if n not in _NOT_METRICS | others]
    if is_log:
        absent = {
            f"{action}_rate"
            for action in _ACTIONS
            if action not in data.types
            or not (
                metrics or data.query(f"SELECT 1 FROM every WHERE {_flag(data, action)} LIMIT 1")
            )
        }
        known = [name for name in _LOG_METRICS if name not in absent]
    chosen = list(dict.fromkeys(metrics)) or known
    for name in chosen:
        if name not in known:
            raise DataError(
                f"has no metric {name!r}", path=data.name,
                hint=f"There are {', '.join(known)}." if known else "It has no column of numbers.",
            )  # fmt: skip
    if not chosen:
        raise DataError("has no column of numbers to compare", path=data.name)
    return chosen


def _stage_rows(
    data: _Source, relation: str, assignment: str, metrics: Sequence[str], past: str | None,
    slices: str | None, *, is_log: bool,
) -> None:  # fmt: skip
    """Create ``staged``: a row for each search or row, with the metrics that are numbers."""
    if is_log:
        values = ", ".join(f"{_LOG_METRICS[each]} AS x{at}" for at, each in enumerate(metrics))
        flags = [f"{_flag(data, each)} AS {each}" for each in _ACTIONS if each in data.types]
        search = "search_id, query" if "query" in data.types else "search_id"
        data.connection.execute(
            f"""CREATE OR REPLACE VIEW staged AS SELECT {data.first(assignment)} AS arm,
                  coalesce(min({_name(assignment)}) < max({_name(assignment)}), false) AS several,
                  {_unit(data)} AS unit, {data.first(slices) if slices else "''"} AS slice,
                  min({data.moment}) AS moment,
                  {f"avg({_number(past)})" if past else "NULL"} AS past,
                  {values} FROM (SELECT * REPLACE ({", ".join(flags)}) FROM {relation})
                GROUP BY {search}"""
        )
        return
    values = ", ".join(f"{_number(each)} AS x{at}" for at, each in enumerate(metrics))
    search = "CAST(search_id AS VARCHAR)" if "search_id" in data.types else (
        "CAST(row_number() OVER () AS VARCHAR)"
    )  # fmt: skip
    data.connection.execute(
        f"""CREATE OR REPLACE VIEW staged AS SELECT CAST({_name(assignment)} AS VARCHAR) AS arm,
              false AS several,
              {_unit(data, search)} AS unit,
              {f"CAST({_name(slices)} AS VARCHAR)" if slices else "''"} AS slice,
              {data.moment} AS moment,
              {_number(past) if past else "NULL"} AS past,
              {values} FROM {relation}"""
    )


class _Time(NamedTuple):
    """The range of times, in milliseconds since 1970; None where they are not known."""

    low: int | None
    high: int | None

    @classmethod
    def range(cls, data: _Source, relation: str, moment: str, start: int | None = None) -> _Time:
        since = "true" if start is None else f"{moment} >= {start}"
        ((low, high),) = data.query(
            f"SELECT min({moment}), max({moment}) FROM {relation} WHERE {since}"
        )
        return cls(low, high)

    @property
    def stretch(self) -> str:
        """The number of a row's stretch of time; rows without a time are in the first."""
        if self.low is None or self.high is None or self.low == self.high:
            return "0"
        span = self.high - self.low + 1
        return (
            f"coalesce(least({_STRETCHES - 1}, {_STRETCHES} * (moment - {self.low}) // {span}), 0)"
        )

    @property
    def later(self) -> str:
        """Whether a row is of a later week than the first."""
        if self.low is None or self.high is None or self.high - self.low <= _WEEK:
            return "false"
        return f"coalesce(moment - {self.low} >= {_WEEK}, false)"

    def end(self, stretch: int) -> float:
        """Return the end of a stretch in seconds since 1970."""
        if self.low is None or self.high is None:
            return math.nan
        return (self.low + (self.high - self.low) * (stretch + 1) / _STRETCHES) / 1000


def _create_parts(data: _Source, metrics: int) -> None:
    values = ", ".join(
        f"n{at} DOUBLE, x{at} DOUBLE, a{at} DOUBLE, b{at} DOUBLE" for at in range(metrics)
    )
    data.connection.execute(
        "CREATE TABLE parts (arm VARCHAR, unit UBIGINT, slice VARCHAR, stretch INTEGER, "
        f"later BOOLEAN, {values})"
    )


def _add_past(data: _Source, metrics: int, *, of_column: bool) -> None:
    """Set what each client did before: a column, or the outcome beyond that of its size."""
    numbers = range(metrics)
    if of_column:
        values = [f"avg(b{at})" for at in numbers]
        missing = [f"(SELECT avg(b{at}) FROM before)" for at in numbers]
    else:
        mean = "(SELECT sum(b{0}) / sum(rows) FROM before)"
        values = [f"sum(b{at}) - sum(rows) * {mean.format(at)}" for at in numbers]
        missing = ["0"] * metrics
    chosen = ", ".join(f"{value} AS b{at}" for at, value in enumerate(values))
    known = ", ".join(f"coalesce(k.b{at}, {missing[at]}, 0) AS b{at}" for at in numbers)
    data.connection.execute(
        f"""CREATE TABLE known AS SELECT unit, {chosen} FROM before GROUP BY unit;
            CREATE OR REPLACE TABLE parts AS SELECT p.* REPLACE ({known})
            FROM parts p LEFT JOIN known k ON p.unit = k.unit"""
    )


_Arms: TypeAlias = Mapping[str, list[ClientSums]]
"""For each arm the sums of each metric."""


class _Sums(NamedTuple):
    """Sums over all, over slices, over the first week and later, and over time."""

    whole: _Arms
    slices: Mapping[str, _Arms]
    weeks: Mapping[Any, _Arms]
    course: list[tuple[float, _Arms]]
    left_out: int
    """Rows in no slice that is shown."""

    def with_levels(self, level: float) -> list[tuple[str, _Arms, float]]:
        """Return all and each slice with the level of its intervals."""
        shared = 1 - (1 - level) / max(1, len(self.slices))
        return [("", self.whole, level), *((n, arms, shared) for n, arms in self.slices.items())]


def _all_sums(data: _Source, metrics: int, time: _Time, *, sliced: bool) -> _Sums:
    course: list[tuple[float, _Arms]] = []
    whole: dict[str, list[ClientSums]] = {}
    for stretch, arms in sorted(_sums(data, metrics, "stretch", add_up=True).items()):
        for arm, values in arms.items():
            before = whole.get(arm, [ClientSums()] * metrics)
            whole[arm] = [old + new for old, new in zip(before, values, strict=True)]
        course.append((time.end(stretch), dict(whole)))
    slices, left_out = {}, 0
    if sliced:
        every = {
            str(k): v
            for k, v in _sums(data, metrics, "slice").items()
            if k and len(v) == len(whole)  # an empty name is that of all
        }
        order = sorted(every, key=lambda k: -sum(arm[0].size for arm in every[k].values()))
        slices = {name: every[name] for name in order[:_MOST_SLICES]}
        shown = sum(arm[0].size for arms in slices.values() for arm in arms.values())
        left_out = round(sum(arm[0].size for arm in whole.values()) - shown)
    weeks = {} if time.later == "false" else _sums(data, metrics, "later")
    return _Sums(whole, slices, weeks, course if time.stretch != "0" else [], left_out)


def _sums(
    data: _Source, metrics: int, key: str, *, add_up: bool = False
) -> dict[Any, dict[str, list[ClientSums]]]:
    """Return sums over clients by a key.

    Args:
        data: Its connection has ``parts``.
        metrics: How many metrics there are.
        key: A column of ``parts``.
        add_up: Whether a client's total goes on over the keys: sums are then of how they change.
    """
    letters = [f"{letter}{at}" for at in range(metrics) for letter in "nxa"]
    totals = ", ".join(f"sum({each}) AS {each}" for each in letters)
    totals += ", " + ", ".join(f"any_value(b{at}) AS b{at}" for at in range(metrics))
    inner = f"SELECT arm, unit, {key}, {totals} FROM parts GROUP BY arm, unit, {key}"
    if add_up:
        window = f"OVER (PARTITION BY arm, unit ORDER BY {key} ROWS UNBOUNDED PRECEDING)"
        inner = (
            f"SELECT *, {', '.join(f'sum({e}) {window} AS t{e}' for e in letters)} FROM ({inner})"
        )
    columns = []
    for at in range(metrics):
        for formula in _SUMS.values():
            now = {letter: f"{'t' if add_up else ''}{letter}{at}" for letter in "nxa"}
            then = {letter: f"(t{letter}{at} - {letter}{at})" for letter in "nxa"}
            text = formula.format(**now, b=f"b{at}")
            if add_up:
                text = f"({text}) - ({formula.format(**then, b=f'b{at}')})"
            columns.append(f"sum({text})")
    result: dict[Any, dict[str, list[ClientSums]]] = {}
    width = len(_SUMS)
    for arm, value, *numbers in data.query(
        f"SELECT arm, {key}, {', '.join(columns)} FROM ({inner}) GROUP BY arm, {key}"
    ):
        result.setdefault(value, {})[arm] = [
            ClientSums(*map(float, numbers[at * width : (at + 1) * width])) for at in range(metrics)
        ]
    return result


def _novelty(sums: _Sums, value: Callable[[_Arms], OnlineInterval]) -> OnlineInterval | None:
    """Return the first week's value minus that of later ones."""
    if len(sums.weeks) < 2:
        return None
    first, later = value(sums.weeks[False]), value(sums.weeks[True])
    if math.isinf(first.low) or math.isinf(later.low):
        return None
    # Each interval is half of their reach wide; deviations of the same clients add up at most so.
    half = math.hypot(first.high - first.value, later.high - later.value)
    gap = first.value - later.value
    return OnlineInterval(
        gap, gap - half, gap + half, math.hypot(first.deviation, later.deviation),
        first.searches + later.searches, first.clients + later.clients,
    )  # fmt: skip


def _doubts(
    by_client: bool, sums: _Sums, units: str, nameless: int, several: int = 0
) -> tuple[str, ...]:
    doubts = []
    if not by_client:
        doubts.append(
            "Clients are not known: each search counts as one. Where users search often, "
            "intervals are then too narrow"
            + (", and a sound split of clients may look broken." if units == "rows" else ".")
        )
    elif nameless:
        doubts.append(f"{nameless:,} {units} have no client: each of them counts as one.")
    if several:
        doubts.append(
            f"{several:,} searches have several clients, of which one counts: the log may mix "
            "searches."
        )
    if sums.left_out:
        doubts.append(
            f"{sums.left_out:,} {units} are in no slice, in one of a single group, or in one "
            f"beyond the {_MOST_SLICES} largest."
        )
    return tuple(doubts)


def seconds_text(seconds: float) -> str:
    """Return a moment as text, to the minute."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
