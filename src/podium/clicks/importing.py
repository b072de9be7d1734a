"""Logs of others as the table of clicks: DuckDB joins what was served with what was clicked."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from podium.clicks.sources import JSON_SOURCES, MACROS, json_records, line_batches
from podium.clicks.table import COLUMNS, ClickLog, connect, quoted
from podium.data.files import Reporter, plain_suffix, writing
from podium.errors import ArgumentError, DataError

Kind: TypeAlias = Literal["ubi", "rankings", "metarank", "table"]
"""What a log is: UBI's queries and events, ``podium serve``'s ranking log with events, Metarank's
events, or a table with one row per shown document."""

MOST_RANK = 1000
_SHARD_ROWS = 2_000_000
_DAY = 86_400_000


@dataclass(frozen=True)
class ImportRules:
    """What is left out of a log, and counted.

    Attributes:
        late: Seconds after a search beyond which a click is not of it.
        early: Seconds before a search that clocks may differ by.
        reload: Seconds within which the same list for the same client and query is a reload.
        bot_searches: A client with more searches on a day is a bot.
        bot_shown: A client that was shown so many documents on a day, and
        bot_share: clicked at least this share of them, is a bot.

    Example:
        >>> ImportRules(late=600).late
        600
    """

    late: float = 3600
    early: float = 300
    reload: float = 10
    bot_searches: int = 500
    bot_shown: int = 100
    bot_share: float = 0.9

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise ArgumentError(f"{name} is {value}", hint="Give a number of at least 0.")

    def join(self) -> str:
        """Return the SQL statement with these rules; the same for DuckDB and Spark."""
        text = join_statement()
        values = vars(self) | {
            name: round(1000 * getattr(self, name)) for name in ("late", "early", "reload")
        }
        for name, value in values.items():
            text = text.replace(f":{name}", repr(value))
        return text


@cache
def join_statement() -> str:
    """Return the statement that joins what was served with what was clicked."""
    return Path(__file__).with_name("join.sql").read_text()


def import_clicks(
    source: str
    | os.PathLike[str]
    | Sequence[str | os.PathLike[str]]
    | Mapping[str, Any]
    | pa.Table,
    folder: str | os.PathLike[str],
    *,
    kind: Kind | None = None,
    events: Sequence[str | os.PathLike[str]] = (),
    columns: Mapping[str, str] | None = None,
    application: str | None = None,
    actions: Mapping[str, str] | None = None,
    rules: ImportRules | None = None,
    key: str | None = None,
    progress: Reporter | None = None,
) -> ClickLog:
    """Import a log of searches and clicks as a table in files.

    Args:
        source: JSON lines (plain, gzip or zstd), Parquet or CSV files, a folder of a ranking log,
            or a table in memory: columns by name, a data frame or an Arrow table. A running
            OpenSearch is read by ``podium clicks import URL``.
        folder: Where the log is written: a folder that is empty or does not exist.
        kind: What the source is, if it does not show.
        events: With a ranking log: files of JSON lines with ``search_id``, ``document_id``,
            ``action`` and ``time``, or UBI's events.
        columns: With a table: to columns of ours the source's names for them.
        application: Only the records of this application of UBI.
        actions: To names of actions of the source ``click``, ``impression``, ``add_to_cart`` or
            ``purchase``.
        rules: What is left out.
        key: Hashes clients; by default a random one that is thrown away, so that the clients of two
            imports cannot be matched.
        progress: Called with the bytes that were read.

    Example:
        >>> import tempfile
        >>> table = pa.table({"id": [1, 1], "q": ["tv", "tv"], "doc": ["a", "b"], "pos": [1, 2],
        ...                   "hit": [0, 1]})
        >>> names = {"search_id": "id", "query": "q", "document_id": "doc", "rank": "pos",
        ...          "clicked": "hit"}
        >>> import_clicks(table, tempfile.mkdtemp() + "/log", columns=names).clicks
        1
    """
    rules = rules or ImportRules()
    target = Path(folder)
    if target.exists() and (not target.is_dir() or _others(target)):
        raise DataError("is not an empty folder", path=target, hint="Name a new one.")
    sources: list[Any]
    if isinstance(source, str | os.PathLike):
        sources = [source]
    else:
        sources = list(source) if isinstance(source, Sequence) else [pa.table(source)]
    if not sources:
        raise ArgumentError("there is nothing to import", hint="Name a file.")
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        staging = target / "unfinished"
        staging.mkdir(exist_ok=True)
    with connect(staging) as connection:
        _client_hash(connection, key or secrets.token_hex(32))
        facts = _stage(
            connection, sources, kind, list(events), columns or {}, application, actions or {},
            progress,
        )  # fmt: skip
        counts = _records(connection)
        log = _write(connection, target, staging, rules, counts, facts)
    shutil.rmtree(staging)
    log.save()
    return log


def _others(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if each.name != "unfinished"]


def _client_hash(connection: Any, key: str) -> None:
    """Define ``hashed(client)``: a hash under a key that never leaves this process."""
    inner, outer = quoted(f"i{key}"), quoted(f"o{key}")
    connection.execute(MACROS)
    connection.execute(
        "CREATE MACRO hashed(client) AS CASE WHEN client IS NULL OR client = '' THEN NULL ELSE "
        f"left(sha256({outer} || sha256({inner} || client)), 16) END"
    )


# Staging ------------------------------------------------------------------------------------------

_SERVED = {
    "search_id": "VARCHAR", "time": "BIGINT", "query": "VARCHAR", "document_id": "VARCHAR",
    "rank": "BIGINT", "clicked": "INTEGER", "add_to_cart": "INTEGER", "purchase": "INTEGER",
    "dwell": "DOUBLE", "policy": "VARCHAR", "propensity": "DOUBLE", "team": "VARCHAR",
    "credit": "DOUBLE", "client": "VARCHAR", "bot": "INTEGER", "sorted": "INTEGER",
}  # fmt: skip


def _stage(
    connection: Any,
    sources: list[Any],
    kind: Kind | None,
    events: list[Any],
    columns: Mapping[str, str],
    application: str | None,
    actions: Mapping[str, str],
    progress: Reporter | None,
) -> dict[str, Any]:
    """Create ``all_served``, ``actions`` and ``fates`` in the database."""
    if kind is not None and kind not in get_args(Kind):
        raise ArgumentError(f"kind is {kind!r}", hint=f"Give one of {', '.join(get_args(Kind))}.")
    if kind is None:
        kind = _guess(sources)
    connection.execute("CREATE TABLE fates (ledger VARCHAR, reason VARCHAR, times BIGINT)")
    if kind == "table":
        return _stage_table(connection, sources, columns)
    if columns:
        raise ArgumentError("columns are of tables", hint="Leave them out, or give kind='table'.")
    if events and kind != "rankings":
        raise ArgumentError("events are read with a ranking log", hint="List them as sources.")
    names = _action_names(actions)
    connection.register("action_names", names)
    read_lines(connection, [*_files(sources), *events], progress)
    facts = JSON_SOURCES[kind](connection, application)
    return {"kind": kind, **facts}


def _action_names(actions: Mapping[str, str]) -> pa.Table:
    known = ("click", "impression", "add_to_cart", "purchase", "ignore")
    for name, meaning in actions.items():
        if meaning not in known:
            raise ArgumentError(f"{name}={meaning}", hint=f"An action is {', '.join(known)}.")
    every = {name: name for name in known[:4]}
    every |= {"view": "impression", "item_click": "click", "addtocart": "add_to_cart"} | dict(
        actions
    )
    return pa.table({"name": list(every), "meaning": list(every.values())})


def _files(sources: Iterable[Any]) -> list[Any]:
    files: list[Any] = []
    for each in sources:
        path = Path(each)
        if path.is_dir():
            inside = sorted(path.glob("*.json*")) + sorted(path.glob("*.ndjson*"))
            if not inside:
                raise DataError("has no JSON lines", path=path, hint="Name the files.")
            files += inside
        else:
            files.append(each)
    return files


def _guess(sources: list[Any]) -> Kind:
    first = sources[0]
    if isinstance(first, pa.Table):
        return "table"
    path = Path(first)
    if path.is_dir() and any(path.glob("*.parquet")):
        return "table"
    if plain_suffix(first) in (".parquet", ".csv", ".tsv"):
        return "table"
    for number, record in enumerate(json_records(_files([first])[0])):
        if "event" in record and "action_name" not in record:
            return "metarank"
        if "ids" in record and "scores" in record:
            return "rankings"
        if record.keys() & {"action_name", "user_query", "query_id"}:
            return "ubi"
        if number > 1000:
            break
    raise DataError(
        "is none of the logs that are known", path=first,
        hint=f"Say what it is: --format {', '.join(get_args(Kind))}.",
    )  # fmt: skip


def read_lines(connection: Any, paths: Sequence[Any], progress: Reporter | None) -> None:
    """Create the table ``lines`` of all lines that are valid JSON objects; count the others."""
    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("line", pa.large_string()), ("problem", pa.string())]),
        line_batches(paths, progress),
    )
    connection.register("raw_lines", reader)
    connection.execute(
        """CREATE TABLE checked AS SELECT line, CASE
             WHEN problem IS NOT NULL THEN problem
             WHEN NOT coalesce(TRY(json_valid(line)), false) THEN 'not JSON'
             WHEN json_type(line) <> 'OBJECT' THEN 'not a JSON object' END AS problem
           FROM raw_lines"""
    )
    connection.unregister("raw_lines")
    connection.execute(
        "INSERT INTO fates SELECT 'records', problem, count(*) FROM checked "
        "WHERE problem IS NOT NULL GROUP BY ALL"
    )
    # Exports of an engine have the record itself in _source.
    connection.execute(
        """CREATE TABLE lines AS SELECT
             CASE WHEN json_type(line, '$._source') = 'OBJECT' THEN json_extract(line, '$._source')
                  ELSE line END AS line
           FROM checked WHERE problem IS NULL"""
    )
    connection.execute("DROP TABLE checked")


def _stage_table(connection: Any, sources: list[Any], columns: Mapping[str, str]) -> dict[str, Any]:
    unknown = set(columns) - set(COLUMNS)
    if unknown:
        raise ArgumentError(
            f"there is no column {sorted(unknown)[0]!r}", hint=f"Columns are {', '.join(COLUMNS)}."
        )
    if isinstance(sources[0], pa.Table):
        connection.register("source", sources[0])
    else:
        paths = []
        for each in sources:
            path = Path(each)
            if not path.exists():
                raise DataError("does not exist", path=path, hint="Check the path.")
            paths += sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        literal = "[" + ", ".join(quoted(str(path)) for path in paths) + "]"
        parquet = all(path.suffix == ".parquet" for path in paths)
        # All columns as text: a value that is not a number is then counted, not an error.
        delimiter = "\\t" if plain_suffix(paths[0]) == ".tsv" else ","
        reader = (
            f"read_parquet({literal}, union_by_name=true)"
            if parquet
            else f"read_csv({literal}, all_varchar=true, header=true, delim=E'{delimiter}', "
            "quote='\"', store_rejects=true, null_padding=true, max_line_size=67108864)"
        )
        try:
            connection.execute(f"CREATE VIEW source AS SELECT * FROM {reader}")
            # All columns are read, but none becomes a Python object, such as a time of a zone.
            connection.execute("SELECT count(s) FROM (FROM source LIMIT 1) s").fetchall()
        except Exception as error:  # duckdb.Error, whose classes depend on what is wrong
            raise DataError(
                f"cannot be read ({str(error).splitlines()[0]})", path=paths[0], hint="Check it."
            ) from error
    types = dict(
        connection.execute("SELECT column_name, column_type FROM (DESCRIBE source)").fetchall()
    )
    chosen = {name: columns.get(name, name) for name in COLUMNS}
    needed = ("search_id", "query", "document_id", "rank", "clicked")
    missing = [chosen[name] for name in (*needed, *columns) if chosen[name] not in types]
    if missing:
        raise DataError(
            f"has no column {missing[0]!r}",
            path=None if isinstance(sources[0], pa.Table) else sources[0],
            hint="Name the columns: --column search_id=…; there are "
            + ", ".join(list(types)[:12]) + ".",
        )  # fmt: skip

    def column(name: str) -> str:
        if chosen[name] not in types:
            return "NULL"
        return '"' + chosen[name].replace('"', '""') + '"'

    flags = {
        name: f"CASE WHEN lower(CAST({column(name)} AS VARCHAR)) IN ('true', 't', 'yes', '1') "
        f"THEN 1 ELSE TRY_CAST(TRY_CAST({column(name)} AS DOUBLE) > 0 AS INTEGER) END"
        if types.get(chosen[name]) not in ("BOOLEAN", "INTEGER", "BIGINT", "TINYINT")
        else f"CAST(CAST({column(name)} AS INTEGER) <> 0 AS INTEGER)"
        for name in ("clicked", "add_to_cart", "purchase")
    }
    values = flags | {
        "search_id": f"CAST({column('search_id')} AS VARCHAR)",
        "time": milliseconds(column("time"), types.get(chosen["time"], "VARCHAR")),
        "query": f"CAST({column('query')} AS VARCHAR)",
        "document_id": f"CAST({column('document_id')} AS VARCHAR)",
        "rank": f"TRY_CAST({column('rank')} AS BIGINT)",
        "dwell": f"TRY_CAST({column('dwell')} AS DOUBLE)",
        "policy": f"CAST({column('policy')} AS VARCHAR)",
        "propensity": f"TRY_CAST({column('propensity')} AS DOUBLE)",
        "team": f"CAST({column('team')} AS VARCHAR)",
        "credit": f"TRY_CAST({column('credit')} AS DOUBLE)",
        "client": f"hashed(CAST({column('client')} AS VARCHAR))",
        "bot": "0",
        "sorted": "0",
    }
    connection.execute(
        "CREATE VIEW all_served AS SELECT "
        + ", ".join(f"{values[name]} AS {name}" for name in _SERVED)
        + " FROM source"
    )
    connection.execute(
        "CREATE TABLE actions (search_id VARCHAR, time BIGINT, document_id VARCHAR, "
        "action VARCHAR, dwell DOUBLE)"
    )
    (zero,) = connection.execute("SELECT min(rank) FROM all_served WHERE rank >= 0").fetchone()
    return {"kind": "table", "rank_base": {"": zero if zero == 0 else 1}}


def milliseconds(column: str, kind: str) -> str:
    """Return the expression of a column's time in milliseconds since 1970."""
    if column == "NULL":
        return "CAST(NULL AS BIGINT)"
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        return f"epoch_ms({column})"
    return f"milliseconds(CAST({column} AS VARCHAR))"


# Writing ------------------------------------------------------------------------------------------


def _records(connection: Any) -> dict[str, dict[str, int]]:
    rows = connection.execute(
        "SELECT reason, sum(times) FROM fates WHERE ledger = 'records' GROUP BY reason "
        "ORDER BY sum(times) DESC, reason"
    ).fetchall()
    counts = {reason: int(times) for reason, times in rows}
    return {"records": {"read": sum(counts.values()), **counts}} if counts else {}


def _write(
    connection: Any,
    target: Path,
    staging: Path,
    rules: ImportRules,
    counts: dict[str, dict[str, int]],
    facts: dict[str, Any],
) -> ClickLog:
    base = facts.get("rank_base", {}).get("", 1) if facts["kind"] == "table" else 1
    latest = round(1000 * time.time()) + _DAY
    connection.execute(
        f"""CREATE VIEW judged AS SELECT * REPLACE (rank + {1 - base} AS rank), CASE
              WHEN search_id IS NULL OR search_id = '' THEN 'no search id'
              WHEN document_id IS NULL OR document_id = '' THEN 'no document id'
              WHEN query IS NULL OR trim(query) = '' THEN 'no query text'
              WHEN rank IS NULL THEN 'no rank'
              WHEN rank < {base} THEN 'rank below the first'
              WHEN rank > {MOST_RANK - 1 + base} THEN 'rank above {MOST_RANK:,}'
              WHEN time > {latest} THEN 'time in the future'
              WHEN propensity <= 0 OR propensity > 1 THEN 'propensity not above 0 and up to 1'
            END AS reason FROM all_served"""
    )
    connection.execute(
        "CREATE VIEW served AS SELECT * EXCLUDE reason FROM judged WHERE reason IS NULL"
    )
    reasons = dict(
        connection.execute(
            "SELECT coalesce(reason, ''), count(*) FROM judged GROUP BY ALL ORDER BY 2 DESC"
        ).fetchall()
    )
    usable = reasons.pop("", 0)
    if not usable:
        raise _nothing_shown(connection, reasons)
    shards = max(1, -(-usable // _SHARD_ROWS))
    joined = staging / "joined"
    shutil.rmtree(joined, ignore_errors=True)
    connection.execute(
        f"""COPY (SELECT *, CASE WHEN dropped IS NOT NULL THEN -1
                   ELSE md5_number_lower(query) % {shards} END AS shard FROM ({rules.join()}))
            TO {quoted(str(joined))} (FORMAT parquet, PARTITION_BY (shard), COMPRESSION lz4)"""
    )
    every = f"read_parquet({quoted(str(joined / '*' / '*.parquet'))}, hive_partitioning=true)"
    ledger = connection.execute(
        f"SELECT coalesce(dropped, 'kept'), count(*), sum(times), sum(taken) FROM {every} "
        "GROUP BY 1 ORDER BY 2 DESC"
    ).fetchall()
    kept = {reason: int(rows) for reason, rows, _, _ in ledger}
    repeated = sum(int(times) - int(rows) for _, rows, times, _ in ledger)
    counts["shown"] = _ledger(
        {"kept": kept.pop("kept", 0), **kept, "repeated in its search": repeated, **reasons}
    )
    taken = {reason: int(events) for reason, _, _, events in ledger}
    counts["actions"] = _action_ledger(connection, rules, taken)
    if not counts["shown"].get("kept"):
        raise DataError("nothing is left of the log", hint=_sentence(counts["shown"]))
    facts["clicked_not_shown"] = counts["actions"].get("document was not shown", 0)
    return _write_shards(connection, target, joined, shards, counts, facts)


def _write_shards(
    connection: Any,
    target: Path,
    joined: Path,
    shards: int,
    counts: Mapping[str, Mapping[str, int]],
    facts: Mapping[str, Any],
) -> ClickLog:
    """Put each file's searches together, in the order of queries, searches and ranks."""
    # A file has all searches for its queries, so that sums over files are those over queries.
    connection.execute("SET preserve_insertion_order = true")
    chosen = ", ".join(
        f"CAST({name} AS BOOLEAN) AS {name}" if name in ("clicked", "add_to_cart", "purchase")
        else "make_timestamp(1000 * time) AS time" if name == "time"
        else "CAST(rank AS SMALLINT) AS rank" if name == "rank"
        else name
        for name in COLUMNS
    )  # fmt: skip
    files: list[str] = []
    totals = np.zeros(4, np.int64)
    for shard in range(shards):
        parts = joined / f"shard={shard}"
        if not parts.is_dir():
            continue
        name = f"part-{len(files):05d}.parquet"
        source = f"read_parquet({quoted(str(parts / '*.parquet'))}, hive_partitioning=false)"
        connection.execute(
            f"COPY (SELECT {chosen} FROM {source} ORDER BY query, search_id, rank, document_id) "
            f"TO {quoted(str(target / name))} (FORMAT parquet, COMPRESSION zstd)"
        )
        totals += np.array(
            connection.execute(
                "SELECT count(*), count(DISTINCT search_id), count(DISTINCT query), "
                f"coalesce(sum(clicked), 0) FROM {source}"
            ).fetchone(),
            np.int64,
        )
        shutil.rmtree(parts)
        files.append(name)
    rows, searches, queries, clicks = totals.tolist()
    return ClickLog(target, rows, searches, queries, clicks, tuple(files), counts, facts)


def _ledger(parts: Mapping[str, int]) -> dict[str, int]:
    return {"read": sum(parts.values()), **{name: count for name, count in parts.items() if count}}


def _action_ledger(connection: Any, rules: ImportRules, taken: dict[str, int]) -> dict[str, int]:
    rows = connection.execute(
        f"""WITH timed AS (SELECT search_id, min(time) AS began FROM served GROUP BY search_id),
            placed AS (SELECT actions.*, timed.search_id IS NULL AS unknown, CASE
              WHEN timed.search_id IS NULL THEN 'search was not shown'
              WHEN actions.time > began + {round(1000 * rules.late)} THEN 'late'
              WHEN actions.time < began - {round(1000 * rules.early)} THEN 'before its search'
              END AS problem FROM actions LEFT JOIN timed ON actions.search_id = timed.search_id),
            numbered AS (SELECT problem, row_number() OVER (
              PARTITION BY search_id, document_id, action, problem IS NULL ORDER BY time) AS nth
              FROM placed)
            SELECT CASE WHEN problem IS NULL AND nth > 1 THEN 'repeated' ELSE problem END AS reason,
              count(*) FROM numbered GROUP BY 1"""
    ).fetchall()
    reasons = {str(reason): int(count) for reason, count in rows if reason is not None}
    accepted = sum(int(count) for reason, count in rows if reason is None)
    unshown = accepted - sum(taken.values())
    return _ledger(
        {"kept": taken.pop("kept", 0), **reasons, "document was not shown": unshown, **taken}
    )


WHAT_TO_LOG = (
    "Log what was shown: for each search its id, the query, and the ids of the documents in their "
    "order (UBI: query_response_hit_ids, or an impression event per document, with its ordinal)."
)


def _nothing_shown(connection: Any, reasons: Mapping[str, int]) -> DataError:
    (clicks,) = connection.execute("SELECT count(*) FROM actions WHERE action = 'click'").fetchone()
    if clicks and not reasons:
        return DataError(
            f"has {clicks:,} clicks and nothing of what was shown: only clicks were logged, which "
            "say nothing about documents without clicks",
            hint=WHAT_TO_LOG,
        )
    detail = f" ({_sentence(reasons)})" if reasons else ""
    return DataError(f"no shown document can be used{detail}", hint=WHAT_TO_LOG)


def _sentence(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason}: {count:,}" for reason, count in counts.items())
