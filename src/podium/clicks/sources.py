"""Logs as JSON lines: UBI's, Podium's own and Metarank's, staged as what was served and clicked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from podium.data.files import PADDING, Reporter, chunk_loaders, numbered_lines
from podium.data.json_lines import parse_object
from podium.errors import DataError

_FEED = 10
_HIT_LISTS = ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids")
_BOTS = "bot|crawl|spider|slurp|headless|python-requests|curl/"

MACROS = """
CREATE MACRO milliseconds(text) AS CASE
  WHEN text IS NULL THEN NULL
  WHEN regexp_full_match(text, '-?[0-9]{1,17}([.][0-9]*)?(e[0-9]+)?') THEN CASE
    WHEN abs(TRY_CAST(text AS DOUBLE)) < 1e11
      THEN TRY_CAST(TRY_CAST(text AS DOUBLE) * 1000 AS BIGINT)
    WHEN abs(TRY_CAST(text AS DOUBLE)) < 1e14 THEN TRY_CAST(TRY_CAST(text AS DOUBLE) AS BIGINT)
    ELSE TRY_CAST(TRY_CAST(text AS DOUBLE) / 1000 AS BIGINT) END
  ELSE epoch_ms(TRY_CAST(text AS TIMESTAMP)) END;
CREATE MACRO is_bot(agent) AS CAST(regexp_matches(lower(coalesce(agent, '')), '{bots}') AS INTEGER);
""".replace("{bots}", _BOTS)
"""Times as text (ISO 8601; seconds, milliseconds or microseconds since 1970); user agents."""


def line_batches(paths: Sequence[Any], progress: Reporter | None) -> Iterator[pa.RecordBatch]:
    """Yield the lines of files, decompressed; lines that are not UTF-8 are marked, not changed."""
    for path in paths:
        for load in chunk_loaders(path, progress=progress):
            chunk = load()[:-PADDING]
            ends = np.flatnonzero(chunk == _FEED) + 1
            if not len(ends) or ends[-1] != len(chunk):
                ends = np.append(ends, len(chunk))
            offsets = np.concatenate(([0], ends)).astype(np.int64)
            lines = pa.LargeBinaryArray.from_buffers(
                pa.large_binary(),
                len(offsets) - 1,
                [None, pa.py_buffer(offsets), pa.py_buffer(chunk)],
            )
            lines = lines.filter(pa.array(np.diff(offsets) > 2))
            problems = pa.nulls(len(lines), pa.string())
            try:
                text = lines.cast(pa.large_string())
            except pa.ArrowInvalid:
                decoded = [_decoded(line) for line in lines.to_pylist()]
                text = pa.array(decoded, pa.large_string())
                problems = pa.array(
                    ["not UTF-8" if line is None else None for line in decoded], pa.string()
                )
            yield pa.record_batch([text, problems], names=["line", "problem"])


def _decoded(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def json_records(path: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of the first lines of a file, to see what they are."""
    for _, line in islice(numbered_lines(path), 2000):
        try:
            record = parse_object(line)
        except DataError:
            continue
        source = record.get("_source")
        yield source if isinstance(source, dict) else record


def _fields(paths: Mapping[str, str], condition: str = "true") -> str:
    """Return a query for fields of each line as text, null where a line has none."""
    listed = ", ".join(f"'{path}'" for path in paths.values())
    columns = ", ".join(f"f[{number}] AS {name}" for number, name in enumerate(paths, 1))
    return (
        f"SELECT line, {columns} FROM "
        f"(SELECT line, TRY(json_extract_string(line, [{listed}])) AS f FROM lines "
        f"WHERE {condition})"
    )


_UBI = {
    "action": "$.action_name",
    "search_id": "$.query_id",
    "query": "$.user_query",
    "client": "$.client_id",
    "stamp": "$.timestamp",
    "application": "$.application",
    "object_id": "$.event_attributes.object.object_id",
    "object_field": "$.event_attributes.object.object_id_field",
    "ordinal": "$.event_attributes.position.ordinal",
    "dwell": "$.event_attributes.dwell_time",
    "agent1": "$.event_attributes.browser",
    "agent2": "$.event_attributes.user_agent",
    "agent3": "$.user_agent",
    "policy": "$.query_attributes.policy",
}


def stage_ubi(connection: Any, application: str | None) -> dict[str, Any]:
    """Stage UBI's queries and events.

    An application that logs impressions has shown these alone; of others, the query's list was.
    """
    run = connection.execute
    hits = " ".join(
        f"WHEN json_type(line, '$.{name}') = 'ARRAY' THEN '{name}'" for name in _HIT_LISTS
    )
    run(
        f"""CREATE TABLE records AS SELECT *, CASE
              WHEN action IS NULL AND search_id IS NULL AND query IS NULL AND coalesce(
                json_type(line, '$.index'), json_type(line, '$.create'),
                json_type(line, '$.update'), json_type(line, '$.delete')) = 'OBJECT'
                THEN 'bulk action line'
              WHEN {"false" if application is None else "application IS DISTINCT FROM ?"}
                THEN 'other application'
              WHEN action IS NULL AND search_id IS NULL AND query IS NULL
                THEN 'neither a query nor an event'
              WHEN search_id IS NULL OR search_id = ''
                THEN CASE WHEN action IS NULL THEN 'query without query_id'
                     ELSE 'event without query_id' END
              WHEN action IS NULL THEN 'query'
              WHEN meaning IS NULL THEN 'event of another action'
              ELSE meaning END AS fate, milliseconds(stamp) AS time,
              greatest(is_bot(agent1), is_bot(agent2), is_bot(agent3)) AS bot,
              CASE {hits} END AS hit_list
            FROM ({_fields(_UBI)}) LEFT JOIN action_names ON lower(action) = name""",
        [] if application is None else [application],
    )
    # A search that several query records share, as _msearch writes, has the longest of their lists.
    run(
        f"""CREATE TABLE queries AS SELECT *, row_number() OVER (
              PARTITION BY search_id ORDER BY coalesce(len(hits), 0) DESC, time, query) AS nth
            FROM (SELECT search_id, query, hashed(client) AS client, time, bot, policy, hit_list,
                coalesce(application, '') AS application,
                CASE hit_list {
            " ".join(
                f"WHEN '{name}' THEN TRY_CAST(json_extract(line, '$.{name}') AS VARCHAR[])"
                for name in _HIT_LISTS
            )
        } END AS hits
              FROM records WHERE fate = 'query')"""
    )
    run("UPDATE queries SET hits = NULL WHERE len(hits) = 0")
    run("CREATE TABLE first_queries AS SELECT * FROM queries WHERE nth = 1")
    run(
        """CREATE TABLE flags AS SELECT search_id, max(bot) AS bot,
             max(CASE WHEN lower(coalesce(action, '')) LIKE '%sort%' THEN 1 ELSE 0 END) AS sorted
           FROM records WHERE search_id IS NOT NULL GROUP BY search_id"""
    )
    run(
        """CREATE TABLE impressions AS SELECT search_id, query, hashed(client) AS client, time,
             coalesce(application, '') AS application, object_id,
             TRY_CAST(TRY_CAST(ordinal AS DOUBLE) AS BIGINT) AS ordinal
           FROM records WHERE fate = 'impression'"""
    )
    run(
        """CREATE TABLE seeing AS SELECT DISTINCT application FROM impressions
           WHERE ordinal IS NOT NULL AND object_id IS NOT NULL"""
    )
    bases = _bases(connection)
    connection.register("bases", pa.table({
        "application": pa.array(list(bases), pa.string()),
        "base": pa.array(list(bases.values()), pa.int64())}))  # fmt: skip
    run(
        """CREATE TABLE all_served AS
           SELECT i.search_id, i.time, coalesce(i.query, q.query) AS query,
             i.object_id AS document_id,
             i.ordinal + 1 - b.base AS rank, 0 AS clicked, 0 AS add_to_cart, 0 AS purchase,
             CAST(NULL AS DOUBLE) AS dwell, q.policy, CAST(NULL AS DOUBLE) AS propensity,
             CAST(NULL AS VARCHAR) AS team, CAST(NULL AS DOUBLE) AS credit,
             coalesce(i.client, q.client) AS client, f.bot, f.sorted
           FROM impressions i JOIN bases b ON i.application = b.application
           JOIN flags f ON i.search_id = f.search_id
           LEFT JOIN first_queries q ON i.search_id = q.search_id
           UNION ALL
           SELECT q.search_id, q.time, q.query, unnest(q.hits), generate_subscripts(q.hits, 1),
             0, 0, 0, NULL, q.policy, NULL, NULL, NULL, q.client, f.bot, f.sorted
           FROM first_queries q JOIN flags f ON q.search_id = f.search_id
           WHERE q.hits IS NOT NULL AND q.application NOT IN (SELECT application FROM seeing)
             AND q.search_id NOT IN (SELECT search_id FROM impressions)"""
    )
    run(
        """CREATE TABLE actions AS SELECT search_id, time, object_id AS document_id, fate AS action,
             TRY_CAST(dwell AS DOUBLE) AS dwell
           FROM records WHERE fate IN ('click', 'add_to_cart', 'purchase')"""
    )
    run("INSERT INTO fates SELECT 'records', fate, count(*) FROM records GROUP BY fate")

    def value(statement: str) -> int:
        return int(connection.execute(statement).fetchone()[0] or 0)

    return {
        "rank_base": bases,
        "hit_lists": dict(
            run(
                "SELECT hit_list, count(*) FROM queries WHERE hit_list IS NOT NULL GROUP BY ALL"
            ).fetchall()
        ),
        "lists_without_impression": value(
            "SELECT count(*) FROM first_queries WHERE hits IS NOT NULL "
            "AND application IN (SELECT application FROM seeing) "
            "AND search_id NOT IN (SELECT search_id FROM impressions)"
        ),
        "multiplied_queries": value(
            "SELECT count(*) FROM (SELECT 1 FROM queries GROUP BY search_id HAVING count(*) > 1)"
        ),
        "shown_or_clicked": value(
            "SELECT count(*) FROM records WHERE fate IN ('impression', 'click')"
        ),
        "without_query_text": value(
            "SELECT count(*) FROM records WHERE fate IN ('impression', 'click') AND query IS NULL"
        ),
        "without_object_field": value(
            "SELECT count(*) FROM records WHERE fate IN ('impression', 'click') "
            "AND object_field IS NULL"
        ),
        "searches_with_clicks_alone": value(
            "SELECT count(DISTINCT search_id) FROM actions WHERE action = 'click' "
            "AND search_id NOT IN (SELECT search_id FROM all_served WHERE search_id IS NOT NULL)"
        ),
        "applications": dict(
            run(
                "SELECT coalesce(application, ''), count(*) FROM records "
                "WHERE fate IN ('impression', 'click') GROUP BY 1 ORDER BY 2 DESC LIMIT 20"
            ).fetchall()
        ),
    }


def _bases(connection: Any) -> dict[str, int]:
    """Return whether each application's ordinals begin at 0 or 1.

    Where impressions are of documents in the query's list, the index decides, else the least
    ordinal.
    """
    rows = connection.execute(
        """WITH indexed AS (
             SELECT i.application, i.ordinal - list_position(q.hits, i.object_id) AS shift
             FROM impressions i JOIN first_queries q ON i.search_id = q.search_id
             WHERE list_contains(q.hits, i.object_id)),
           modes AS (SELECT application, mode(shift) AS shift, count(*) AS times FROM indexed
             GROUP BY application),
           least AS (SELECT application, min(ordinal) AS least FROM impressions
             WHERE ordinal >= 0 GROUP BY application)
           SELECT i.application, least.least, modes.shift
           FROM (SELECT DISTINCT application FROM impressions) i
           LEFT JOIN least ON i.application = least.application
           LEFT JOIN modes ON i.application = modes.application"""
    ).fetchall()
    return {
        application: 0 if least == 0 or (shift == -1 and least != 1) else 1
        for application, least, shift in rows
    }


_RANKING = {
    "search_id": "$.search_id",
    "query_id": "$.query_id",
    "query": "$.query",
    "stamp": "$.time",
    "policy": "$.model",
    "begins": "$.from",
    "size": "$.size",
    "client": "$.client",
    "experiment": "$.experiment.id",
    "old": "$.experiment.old",
    "new": "$.experiment.new",
}
_EVENT = {
    "search_id": "$.search_id",
    "query_id": "$.query_id",
    "document_id": "$.document_id",
    "object_id": "$.event_attributes.object.object_id",
    "action": "$.action",
    "action_name": "$.action_name",
    "stamp": "$.time",
    "timestamp": "$.timestamp",
    "dwell": "$.dwell",
    "client": "$.client",
    "client_id": "$.client_id",
    "agent": "$.user_agent",
}


def stage_rankings(connection: Any, _application: str | None) -> dict[str, Any]:
    """Stage the ranking log of ``podium serve`` and events with its search ids.

    Documents are in the order that was shown, or of their scores; of a search for a page, those of
    the page. A search may have several pages.
    """
    run = connection.execute
    is_ranking = "json_type(line, '$.ids') = 'ARRAY' AND json_type(line, '$.scores') = 'ARRAY'"
    run(
        f"""CREATE TABLE rankings AS SELECT *, row_number() OVER (
              PARTITION BY search_id, first ORDER BY stamp DESC) AS nth,
              len(shown) IS DISTINCT FROM len(credits) AS uneven
            FROM (SELECT *, coalesce(TRY_CAST(begins AS BIGINT), 0) AS first,
                TRY_CAST(json_extract(line, '$.shown') AS VARCHAR[]) AS shown,
                TRY_CAST(json_extract(line, '$.credits') AS DOUBLE[]) AS credits,
                TRY_CAST(json_extract(line, '$.ids') AS VARCHAR[]) AS ids,
                TRY_CAST(json_extract(line, '$.scores') AS DOUBLE[]) AS scores
              FROM ({_fields(_RANKING, is_ranking)}))"""
    )
    run(
        f"""CREATE TABLE events AS SELECT coalesce(search_id, query_id) AS search_id,
              coalesce(document_id, object_id) AS document_id, meaning AS action,
              milliseconds(coalesce(stamp, timestamp)) AS time, TRY_CAST(dwell AS DOUBLE) AS dwell,
              hashed(coalesce(client, client_id)) AS client, is_bot(agent) AS bot,
              coalesce(action, action_name) AS word
            FROM ({_fields(_EVENT, f"NOT coalesce({is_ranking}, false)")})
            LEFT JOIN action_names ON lower(coalesce(action, action_name)) = name"""
    )
    run(
        """CREATE TABLE people AS SELECT search_id, min(client) AS client, max(bot) AS bot,
             max(CASE WHEN lower(coalesce(word, '')) LIKE '%sort%' THEN 1 ELSE 0 END) AS sorted
           FROM events WHERE search_id IS NOT NULL GROUP BY search_id"""
    )
    run(
        """CREATE TABLE all_served AS
           WITH good AS (SELECT * FROM rankings WHERE nth = 1 AND search_id IS NOT NULL
               AND len(ids) = len(scores) AND NOT uneven),
           pages AS (
             SELECT search_id, query, query_id, stamp, coalesce(experiment, policy) AS policy,
               client, old, new, unnest(shown) AS document_id,
               first + generate_subscripts(shown, 1) AS rank, unnest(credits) AS credit
             FROM good WHERE shown IS NOT NULL
             UNION ALL
             SELECT search_id, query, query_id, stamp, policy, client, NULL, NULL, document_id,
               rank, NULL
             FROM (SELECT *, row_number() OVER (
                     PARTITION BY search_id, first ORDER BY score DESC, position) AS rank
                   FROM (SELECT *, unnest(ids) AS document_id, unnest(scores) AS score,
                       generate_subscripts(ids, 1) AS position
                     FROM good WHERE shown IS NULL))
             WHERE size IS NULL OR rank BETWEEN first + 1 AND first + TRY_CAST(size AS BIGINT))
           SELECT r.search_id, milliseconds(r.stamp) AS time,
             coalesce(r.query, r.query_id) AS query, r.document_id, r.rank, 0 AS clicked,
             0 AS add_to_cart, 0 AS purchase, CAST(NULL AS DOUBLE) AS dwell, r.policy,
             CAST(NULL AS DOUBLE) AS propensity,
             CASE WHEN r.credit > 0 THEN r.new WHEN r.credit < 0 THEN r.old END AS team, r.credit,
             coalesce(hashed(r.client), p.client) AS client,
             coalesce(p.bot, 0) AS bot, coalesce(p.sorted, 0) AS sorted
           FROM pages r LEFT JOIN people p ON r.search_id = p.search_id"""
    )
    run(
        """CREATE TABLE actions AS SELECT search_id, time, document_id, action, dwell FROM events
           WHERE action IN ('click', 'add_to_cart', 'purchase') AND search_id IS NOT NULL"""
    )
    run(
        """INSERT INTO fates
           SELECT 'records', CASE WHEN search_id IS NULL THEN 'ranking without search_id'
             WHEN ids IS NULL OR scores IS NULL OR len(ids) <> len(scores) OR uneven
               THEN 'damaged ranking'
             WHEN nth > 1 THEN 'another ranking of its search' ELSE 'ranking' END, count(*)
           FROM rankings GROUP BY ALL
           UNION ALL
           SELECT 'records', CASE WHEN search_id IS NULL THEN 'event without search_id'
             WHEN action IS NULL THEN 'event of another action' ELSE action END, count(*)
           FROM events GROUP BY ALL"""
    )
    return {}


_METARANK = {
    "event": "$.event",
    "id": "$.id",
    "ranking": "$.ranking",
    "item": "$.item",
    "type": "$.type",
    "stamp": "$.timestamp",
    "client": "$.user",
    "session": "$.session",
}


def stage_metarank(connection: Any, _application: str | None) -> dict[str, Any]:
    """Stage Metarank's events: rankings, whose field ``query`` is the query, and interactions."""
    run = connection.execute
    run(
        f"""CREATE TABLE records AS SELECT *, CASE
              WHEN event = 'ranking' AND id IS NULL THEN 'ranking without id'
              WHEN event = 'ranking' AND json_type(line, '$.items') IS DISTINCT FROM 'ARRAY'
                THEN 'ranking without items'
              WHEN event = 'ranking' THEN 'ranking'
              WHEN event = 'interaction' AND ranking IS NULL THEN 'interaction without ranking'
              WHEN event = 'interaction' AND meaning IS NULL THEN 'interaction of another type'
              WHEN event = 'interaction' THEN meaning
              WHEN event IN ('item', 'user') THEN 'fields of items and users'
              ELSE 'not an event of Metarank' END AS fate, milliseconds(stamp) AS time
            FROM ({_fields(_METARANK)}) LEFT JOIN action_names ON lower(type) = name"""
    )
    run(
        """CREATE TABLE all_served AS
           WITH items AS (SELECT id AS search_id, time, hashed(coalesce(client, session)) AS client,
               list_filter(json_extract(line, '$.fields[*]'),
                 lambda f: json_extract_string(f, '$.name') = 'query') AS found,
               json_extract_string(line, '$.items[*].id') AS ids
             FROM records WHERE fate = 'ranking')
           SELECT search_id, time, json_extract_string(found[1], '$.value') AS query,
             unnest(ids) AS document_id, generate_subscripts(ids, 1) AS rank, 0 AS clicked,
             0 AS add_to_cart, 0 AS purchase, CAST(NULL AS DOUBLE) AS dwell,
             CAST(NULL AS VARCHAR) AS policy, CAST(NULL AS DOUBLE) AS propensity,
             CAST(NULL AS VARCHAR) AS team, CAST(NULL AS DOUBLE) AS credit, client, 0 AS bot,
             0 AS sorted
           FROM items"""
    )
    run(
        """CREATE TABLE actions AS SELECT ranking AS search_id, time, item AS document_id,
             fate AS action, CAST(NULL AS DOUBLE) AS dwell
           FROM records WHERE fate IN ('click', 'add_to_cart', 'purchase')"""
    )
    run("INSERT INTO fates SELECT 'records', fate, count(*) FROM records GROUP BY fate")
    return {}


JSON_SOURCES: Mapping[str, Callable[[Any, str | None], dict[str, Any]]] = {
    "ubi": stage_ubi,
    "rankings": stage_rankings,
    "metarank": stage_metarank,
}
"""What stages each kind of JSON lines."""
