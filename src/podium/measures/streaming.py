"""Evaluating Parquet files and shard sets as they stream by, in bounded memory."""

from __future__ import annotations

import os

import numpy as np

from podium.data.files import Reporter
from podium.data.scored import iter_scored
from podium.measures.conventions import Conventions
from podium.measures.evaluate import evaluate
from podium.measures.evaluation import Evaluation, concat_evaluations
from podium.measures.presets import Measures, resolve_measures


def evaluate_table(
    measures: Measures,
    source: str | os.PathLike[str],
    *,
    query: str = "query_id",
    label: str = "label",
    score: str = "score",
    conventions: Conventions | str | None = None,
    progress: Reporter | None = None,
) -> Evaluation:
    """Evaluate a Parquet file or a shard set that has a score for each judged row.

    Rows of a query must be together. Only three columns are read, some million rows at a time,
    so the size of the file does not matter.

    Args:
        measures: One or several measures.
        source: A Parquet file, or the folder of a shard set.
        query: The column with each row's query id.
        label: The column with its label.
        score: The column with its score.
        conventions: What to do where tools disagree, as ``evaluate`` takes it.
        progress: Called with bytes read and bytes in all.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import pyarrow.parquet as pq
        >>> table = pa.table({"query_id": ["a", "a"], "label": [1, 0], "score": [0.2, 0.9]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pq.write_table(table, f"{folder}/scored.parquet")
        ...     evaluate_table("RR", f"{folder}/scored.parquet")
        Evaluation(1 queries, RR=0.5)
    """
    columns = (query, label, score)
    parsed, chosen = resolve_measures(measures, conventions)
    results = [
        evaluate(
            parsed,
            labels=rows.labels,
            scores=rows.scores,
            offsets=np.append(rows.starts, len(rows.labels)),
            query_ids=rows.query_ids,
            conventions=chosen,
        )
        for rows in iter_scored(source, columns, progress=progress)
    ]
    return concat_evaluations(results)
