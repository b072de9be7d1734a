"""``evaluate`` over a shard set: one pass, several runs and measures, sums and values by shard."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from podium.cluster.connection import Cluster, prepare_worker, remote_task
from podium.cluster.filesystems import as_url, display_url, exists
from podium.cluster.shard_tasks import run_tasks
from podium.cluster.shard_values import (
    VALUES,
    ShardedEvaluation,
    ShardValues,
    write_values,
)
from podium.cluster.sources import ShardSetLocation, ShardSource, open_source
from podium.data.files import Reporter
from podium.data.formats.parquet_file import open_parquet
from podium.data.grouping import Grouping
from podium.data.scored import number_column, query_runs
from podium.errors import ArgumentError, DataError
from podium.measures import Conventions
from podium.measures.evaluating import evaluate_grouped
from podium.measures.evaluation import Evaluation, concat_evaluations
from podium.measures.presets import Measures, resolve_measures
from podium.measures.registry import Measure

if TYPE_CHECKING:
    from podium.data import Dataset
    from podium.rankers import Ranker

Runs: TypeAlias = "str | Sequence[str] | Mapping[str, str | Ranker]"
"""Columns of scores, or names of runs with the column or the fitted ranker of each."""

_ROWS = 1 << 19

AHEAD = 2
"""Shards in flight for each worker: one is worked on, the next waits there."""


@dataclass(frozen=True)
class _Job:
    """All that a worker must know, but which shard."""

    source: ShardSource
    query: str
    label: str
    runs: dict[str, str | bytes]
    measures: tuple[Measure, ...]
    conventions: Conventions
    output: str | None
    threads: int
    modules: tuple[str, ...]


def evaluate_shards(
    measures: Measures,
    source: ShardSetLocation,
    *,
    query: str = "query_id",
    label: str = "label",
    score: Runs = "score",
    conventions: Conventions | str | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: Reporter | None = None,
    cluster: Cluster | None = None,
) -> ShardedEvaluation:
    """Evaluate a shard set that has a score for each judged row, or that rankers give scores to.

    The call is that of ``podium.measures.evaluate_table``, with as many runs as there are. Each
    shard is a task; a shard's result is counted once, whatever happens to machines.

    Args:
        measures: One or several measures.
        source: A shard set: its folder, its URL, or opened.
        query: The column with each row's query id.
        label: The column with its label.
        score: The column with its score; several columns; or for each run its name and its
            column or fitted ranker.
        conventions: What to do where tools disagree, as ``podium.measures.evaluate`` takes it.
        output: A folder or URL to write the values of single queries to, one file per shard, in
            place of keeping them in memory.
        progress: Called with bytes evaluated and bytes in all.
        cluster: Where to work; by default in this process, shard after shard.

    Example:
        >>> import tempfile
        >>> from podium.data import Dataset, write_shards
        >>> data = Dataset.from_arrays(
        ...     [[0.2, 3], [0.9, 1]], [1, 0], qid=["a", "a"], feature_names=["bm25", "clicks"]
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_shards(data, f"{folder}/scored")
        ...     evaluate_shards("RR", f"{folder}/scored", score=["bm25", "clicks"])
        ShardedEvaluation(1 queries; bm25: RR=0.5; clicks: RR=1)
    """
    shard_source = open_source(source)
    runs = _runs_of(score)
    if query != "query_id" and any(isinstance(run, bytes) for run in runs.values()):
        raise ArgumentError(
            f"rankers score whole shards, whose queries are in 'query_id', not in {query!r}",
            hint="Leave out the query's column, or evaluate columns of scores.",
        )
    where = None if output is None else _fresh(as_url(output))
    parsed, chosen = resolve_measures(measures, conventions)
    job = _Job(
        shard_source,
        query,
        label,
        runs,
        tuple(parsed),
        chosen,
        where,
        0 if cluster is None else cluster.cpus_per_worker,
        () if cluster is None else cluster.modules,
    )
    sizes = [shard.bytes for shard in shard_source.shards]
    parts: list[ShardValues | None] = [None] * len(sizes)
    done = 0
    for shard, part in _parts(job, sizes, cluster):
        parts[shard] = part
        done += sizes[shard]
        if progress is not None:
            progress(done, sum(sizes))
    whole = [part for part in parts if part is not None]
    assert len(whole) == len(sizes)  # each position came once
    result = ShardedEvaluation.of(tuple(job.runs), job.measures, job.conventions, whole, where)
    if where is not None:
        result.write_summary()
    return result


def _parts(
    job: _Job, sizes: Sequence[int], cluster: Cluster | None
) -> Iterator[tuple[int, ShardValues]]:
    if cluster is None:
        for shard in range(len(sizes)):
            yield shard, evaluate_shard(job, shard)
        return
    ray = cluster.connect()
    remote = remote_task(evaluate_shard).options(**cluster.task_options())
    shared = ray.put(job)
    # The largest first: at the end small ones fill the gaps.
    order = sorted(range(len(sizes)), key=lambda shard: -sizes[shard])
    for came in run_tasks(
        ray, lambda shard: remote.remote(shared, shard), order, at_once=AHEAD * cluster.workers
    ):
        if came is not None:
            yield came


def evaluate_shard(job: _Job, index: int) -> ShardValues:
    """What one shard comes to; the task that a worker runs."""
    if job.threads:
        prepare_worker(job.threads, job.modules)
    by_run: dict[str, list[Evaluation]] = {run: [] for run in job.runs}
    for grouping, labels, scores in _read(job, index):
        for run, run_scores in scores.items():
            by_run[run].append(
                evaluate_grouped(job.measures, grouping, labels, run_scores, job.conventions)
            )
    runs = {run: concat_evaluations(parts) for run, parts in by_run.items()}
    shard = job.source.shards[index]
    queries = len(next(iter(runs.values())))
    if queries != shard.queries:
        raise DataError(
            f"has {queries} runs of one query id, and {shard.queries} queries by the manifest",
            path=job.source.display_url(index),
            hint="Rows of a query must be together: write the shards again.",
        )
    values = np.array([[run.values[each] for each in job.measures] for run in runs.values()])
    sums, counts = np.nansum(values, axis=2), (~np.isnan(values)).sum(axis=2)
    if job.output is None:
        return ShardValues(queries, sums, counts, tuple(runs.values()))
    written = write_values(job.output, shard.file, runs)
    return ShardValues(queries, sums, counts, written=written)


def _read(job: _Job, shard: int) -> Iterator[tuple[Grouping, Any, dict[str, Any]]]:
    """Parts of a shard: their queries, labels, and the scores of each run."""
    if any(isinstance(run, bytes) for run in job.runs.values()):
        yield from _score_features(job, shard)
        return
    path = job.source.display_url(shard)
    columns = list(dict.fromkeys([job.query, job.label, *map(str, job.runs.values())]))
    with job.source.open(shard) as raw, open_parquet(raw, as_codes=[job.query]) as file:
        missing = [name for name in columns if file.schema_arrow.names.count(name) != 1]
        if missing:
            names = ", ".join(file.schema_arrow.names[:12])
            raise DataError(
                f"does not have exactly one column {missing[0]!r}",
                path=path,
                hint=f"Its columns are {names}: name the right ones.",
            )
        for groups in _lots(file):
            table = file.read_row_groups(groups, columns=columns, use_threads=not job.threads)
            ids, starts = query_runs(table, job.query, path)
            labels = number_column(table, job.label, path)
            offsets = np.append(starts, len(table))
            scores = {run: number_column(table, str(name), path) for run, name in job.runs.items()}
            yield Grouping(ids, offsets, None), labels, scores


def _score_features(job: _Job, shard: int) -> Iterator[tuple[Grouping, Any, dict[str, Any]]]:
    where = job.source.display_url(shard)
    for block in job.source.blocks(shard):
        scores = {
            run: _feature(block, origin, where)
            if isinstance(origin, str)
            else _ranker(origin).predict(block)
            for run, origin in job.runs.items()
        }
        labels = block.labels if job.label == "label" else _feature(block, job.label, where)
        yield Grouping(block.query_ids, block.offsets, None), labels, scores


def _feature(block: Dataset, name: str, where: str) -> Any:
    if name not in block.feature_names:
        raise DataError(f"has no column {name!r}", path=where, hint="Name one.")
    return block.features[:, block.feature_names.index(name)]


def _lots(file: Any) -> Iterator[list[int]]:
    """Row groups, which have whole queries, in batches of some hundred thousand rows."""
    lot: list[int] = []
    rows = 0
    for row_group in range(file.num_row_groups):
        lot.append(row_group)
        rows += file.metadata.row_group(row_group).num_rows
        if rows >= _ROWS or row_group == file.num_row_groups - 1:
            yield lot
            lot, rows = [], 0


@lru_cache(maxsize=8)
def _ranker(saved: bytes) -> Ranker:
    from podium.rankers import load_ranker

    return load_ranker(BytesIO(saved))


def _runs_of(score: Runs) -> dict[str, str | bytes]:
    if isinstance(score, str):
        score = [score]
    if not isinstance(score, Mapping):
        score = {name: name for name in score}
    if not score:
        raise ArgumentError("there are no runs", hint="Name at least one column of scores.")
    return {
        run: origin if isinstance(origin, str) else origin.to_bytes()
        for run, origin in score.items()
    }


def _fresh(output: str) -> str:
    if exists(output, VALUES):
        raise DataError(
            "has the values of another evaluation",
            path=display_url(output),
            hint="Choose a new folder.",
        )
    return output
