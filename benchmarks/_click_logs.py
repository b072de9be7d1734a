"""Logs that are hostile, and logs that are large."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._click_coverage import Figure
from benchmarks._report import run_measured
from podium.clicks import import_clicks
from podium.errors import PodiumError

_BEGIN = 1_700_000_000_000
_VALUES: tuple[Any, ...] = (
    None, "", " ", 0, -1, 1e300, 2**70, True, [], {}, [None], [[]], {"x": 1}, "tv", "\ud800",
    "a\u0000b", "tv\n", "9999-12-31T23:59:59Z", "yesterday", _BEGIN, _BEGIN + 10**13, -_BEGIN,
    "Ã¤".encode().decode("latin-1"), "x" * 10_000, list(range(3000)), ["a", "a", {}, 5, None],
)  # fmt: skip


def hostile_rows(quick: bool) -> list[Figure]:
    """Return how many of the generated logs crash the import, or do not add up."""
    logs = 40 if quick else 1000
    crashes = lost = kept = refused = 0
    for number in range(logs):
        random = np.random.default_rng([51, number])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.ndjson"
            path.write_bytes(b"\n".join(_lines(random)) + b"\n")
            lines = sum(len(line) > 1 for line in path.read_bytes().split(b"\n"))
            kind: Any = ("ubi", "metarank", "rankings")[number % 3]
            try:
                log = import_clicks(path, f"{folder}/log", kind=kind)
            except PodiumError:  # it says what is wrong with all of it
                refused += 1
                continue
            except Exception as error:
                crashes += 1
                print(f"log {number}: {type(error).__name__}: {str(error)[:200]}")
                continue
            kept += 1
            sums = [sum(each.values()) == 2 * each["read"] for each in log.counts.values()]
            lost += not all(sums) or log.counts["records"]["read"] != lines
    return [
        Figure(f"crashes of {logs:,} hostile logs", crashes, 0, False),
        Figure(
            f"imports of {kept:,} (others refused: {refused:,}) that lose count", lost, 0, False
        ),
    ]


def _lines(random: np.random.Generator) -> list[bytes]:
    lines = []
    for _ in range(int(random.integers(1, 40))):
        line = json.dumps(_record(random)).encode()
        if random.random() < 0.1:  # cut, or other bytes
            line = line[: int(random.integers(0, len(line) + 1))]
        if random.random() < 0.05:
            line = bytes(random.integers(0, 256, 30).astype(np.uint8)).replace(b"\n", b"")
        lines.append(line)
    return lines


def _record(random: np.random.Generator) -> Any:
    search, document = f"s{random.integers(4)}", f"d{random.integers(5)}"
    records: list[dict[str, Any]] = [
        {"query_id": search, "user_query": "tv", "timestamp": _BEGIN, "client_id": "c",
         "query_response_hit_ids": ["d0", "d1", "d2"]},
        {"query_id": search, "action_name": "click", "timestamp": _BEGIN + 1000,
         "event_attributes": {"object": {"object_id": document, "object_id_field": "sku"},
                              "position": {"ordinal": int(random.integers(0, 5))}}},
        {"event": "ranking", "id": search, "timestamp": _BEGIN, "user": "u",
         "items": [{"id": "d0"}, {"id": "d1"}], "fields": [{"name": "query", "value": "tv"}]},
        {"event": "interaction", "ranking": search, "item": document, "type": "click",
         "timestamp": _BEGIN + 1000},
        {"search_id": search, "query": "tv", "ids": ["d0", "d1"], "scores": [2.0, 1.0],
         "time": "2026-01-01T00:00:00Z"},
    ]  # fmt: skip
    record: Any = records[int(random.integers(len(records)))]
    inside = record
    for _ in range(int(random.integers(0, 3))):
        name = list(inside)[int(random.integers(len(inside)))]
        if isinstance(inside[name], dict) and random.random() < 0.7:
            inside = inside[name]
            continue
        if random.random() < 0.3:
            del inside[name]
        else:
            inside[name] = _VALUES[int(random.integers(len(_VALUES)))]
        if not inside:
            break
    return record


# Large logs ---------------------------------------------------------------------------------------

_MAKE = """
import duckdb
duckdb.execute("SET threads = 2")
duckdb.execute('''COPY (
    SELECT 's' || (i // 10) AS search_id, 1700000000000 + 1000 * (i // 10) AS time,
        'q' || (hash(i // 10) % {queries}) AS query,
        'd' || ((i % 10 + CASE WHEN hash(i // 10 + 7) % 5 = 0 THEN hash(i) % 30 ELSE 0 END) % 30)
            AS document_id,
        i % 10 + 1 AS rank, (hash(i + 13) % 1000) < 300 // (i % 10 + 1) AS clicked
    FROM range({rows}) AS t(i)
) TO '{folder}/rows.parquet' (FORMAT parquet)''')
print(0)
"""
# What is compiled once, on a log of a few rows, does not count.
_WARM = """
import tempfile, time
import numpy as np
from podium.clicks import check_log, fit_clicks, import_clicks, simulate_clicks
from podium.data import Dataset
few = Dataset.from_arrays(np.eye(8), np.arange(8), group=[8])
warm = simulate_clicks(few, tempfile.mkdtemp() + '/log', searches=50)
check_log(warm, depth=10)
fit_clicks(warm, 'pbm', depth=10)
"""
_IMPORT = (
    _WARM
    + """
begin = time.perf_counter()
log = import_clicks('{folder}/rows.parquet', '{folder}/log')
print(time.perf_counter() - begin)
"""
)
_CHECK = (
    _WARM
    + """
begin = time.perf_counter()
check_log('{folder}/log', depth=10)
fit_clicks('{folder}/log', 'pbm', depth=10)
print(time.perf_counter() - begin)
"""
)
_PASS = """
import time
import duckdb
duckdb.execute("SET threads = 2")
duckdb.execute("SET memory_limit = '4GB'")
begin = time.perf_counter()
duckdb.execute('''SELECT count(*), sum(clicks) FROM (
    SELECT query, document_id, rank, count(*) AS shown, sum(clicked::INT) AS clicks
    FROM read_parquet('{folder}/log/*.parquet') GROUP BY ALL)''').fetchall()
print(time.perf_counter() - begin)
"""


def size_rows(quick: bool) -> tuple[list[Figure], list[str]]:
    """Return time and memory of large logs beside one pass of DuckDB over the same files."""
    sizes = (100_000, 1_000_000) if quick else (10_000_000, 100_000_000)
    notes, per_row = [], []
    for rows in sizes:
        imported, checked, (pass_seconds, _) = log_runs(rows)
        (import_seconds, import_memory), (check_seconds, check_memory) = imported, checked
        total = import_seconds + check_seconds
        per_row.append(total / rows)
        notes.append(
            f"{rows:,} rows: import {import_seconds:.1f} s, {import_memory:.1f} GiB; check and pbm "
            f"{check_seconds:.1f} s, {check_memory:.1f} GiB; a pass of DuckDB {pass_seconds:.1f} s"
        )
        ratio = total / pass_seconds
        memory = max(import_memory, check_memory)
    memory_row = Figure(f"peak memory of {sizes[1]:,} rows", memory, 8, False, "GiB")
    if quick:  # the targets are about 100 million rows
        return [memory_row], [*notes, f"{ratio:.0f}x a pass of DuckDB (no target at this size)"]
    return [
        Figure(f"import, check and pbm of {sizes[1]:,} rows, of a pass", ratio, 3, False, "x"),
        Figure("time per row, of that with fewer rows", per_row[1] / per_row[0], 1.2, False, "x"),
        memory_row,
    ], notes


def log_runs(rows: int) -> list[tuple[float, float]]:
    """Return seconds and memory of an import, of check and model, and of a pass of DuckDB."""
    with tempfile.TemporaryDirectory() as folder:
        run_measured(_MAKE.format(rows=rows, queries=rows // 1000, folder=folder))
        return [_run(code, folder) for code in (_IMPORT, _CHECK, _PASS)]


def _run(code: str, folder: str) -> tuple[float, float]:
    printed, memory = run_measured(code.format(folder=folder))
    # DuckDB shows how far it is on the same line.
    return float(printed.split()[-1]), memory
