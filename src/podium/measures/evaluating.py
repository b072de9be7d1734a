"""Measures of rankings, from whatever has scores and truth, or from files that stream by."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.data import Dataset, Judgments, Rankings
from podium.data.files import Reporter
from podium.data.grouping import Grouping
from podium.data.judged import Joined
from podium.data.preferences import Preferences
from podium.data.query_weights import QueryWeights, query_weights
from podium.data.scored import iter_scored
from podium.data.sources import TableSource
from podium.kernels import Doubles
from podium.measures.compiled.blocks import RankingPlan, blocks
from podium.measures.compiled.prepared import PreparedMeasure
from podium.measures.conventions import Conventions
from podium.measures.coverage import check_coverage, coverage_of
from podium.measures.evaluation import ByMeasure, Evaluation, concat_evaluations
from podium.measures.inputs import Inputs, Pairs, comparable_scores, grouped_inputs, inputs_of
from podium.measures.presets import Measures, resolve_measures
from podium.measures.registry import Measure
from podium.threads import for_each_query


def evaluate(
    measures: Measures,
    truth: Judgments | Dataset | Joined | Preferences | TableSource | Pairs | ArrayLike,
    ranking: Rankings | TableSource | ArrayLike | None = None,
    *,
    qid: Any = None,
    group: ArrayLike | None = None,
    conventions: Conventions | str | None = None,
    sample_weight: QueryWeights | None = None,
) -> Evaluation:
    """Evaluate rankings: judgments with rankings, a data set with scores, or plain arrays.

    Each query is ranked once for all measures.

    Args:
        measures: One or several, as values (``nDCG@10``, also of ir_measures) or as text
            (``"ndcg_cut_10"``), also trec_eval's nicknames of several (``"official"``) and lists
            (``"P.5,10"``).
        truth: Judgments, preferences, a data set, or judgments already joined with rankings.
            Judgments may also be the name of a file, ``{query: {document: label}}``, a table
            (pandas, Polars, Arrow), or an iterable of named tuples such as ir_measures' ``Qrel``.
            With ``qid`` or ``group``: a label for each row, where larger is better and NaN means
            not judged, or ``Pairs`` of rows.
        ranking: Rankings, in any of these forms, or a score for each row: of the arrays, or of the
            data set in its order, which is not the file's if that had a query's rows apart: then
            give ``scores[data.row_order]``.
        qid: The query of each row of arrays, in any order.
        group: Or the number of rows of each query.
        conventions: What to do where tools disagree: a tool's name or an object. By default
            those of the tool whose names of measures are used: ``"ndcg_cut_10"`` is trec_eval's
            and so are the measures of ir_measures, ``"nDCG@10"`` is Podium's.
        sample_weight: Weights of queries in the means, such as how often each was asked:
            ``{query id: weight}``, or an array in the order of the evaluation's ``query_ids``.

    Example:
        >>> evaluate("nDCG@3", [0, 1, 2, 0], [1, 1, 1, 0.5], group=[4])
        Evaluation(1 queries, nDCG@3=0.7825)
        >>> from podium.data import Judgments, Rankings
        >>> judgments = Judgments.from_columns(["q", "q"], ["a", "b"], [2, 0])
        >>> run = Rankings.from_columns(["q", "q"], ["a", "c"], [0.3, 0.7])
        >>> evaluate(["P@2", "AP"], judgments, run, conventions="trec_eval").means
        {P@2: 0.5, AP: 0.5}
        >>> evaluate("RR", {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.3, "b": 0.7}})
        Evaluation(1 queries, RR=0.5)
        >>> run = {"p": {"a": 2.0}, "q": {"a": 2.0, "b": 1.0}}
        >>> truth = {"p": {"a": 1}, "q": {"b": 1}}
        >>> evaluate("RR", truth, run, sample_weight={"p": 1, "q": 3}).means
        {RR: 0.625}
    """
    parsed, chosen = resolve_measures(measures, conventions)
    inputs = inputs_of(truth, ranking, qid, group)
    coverage = coverage_of(inputs, parsed, chosen)
    values = measure_all(parsed, chosen, inputs)
    weights = None if sample_weight is None else query_weights(sample_weight, inputs.query_ids)
    check_coverage(coverage, parsed, chosen, inputs, getattr(ranking, "name", ""))
    return Evaluation(inputs.query_ids, values, chosen, weights, coverage)


def evaluate_grouped(
    measures: Sequence[Measure],
    grouping: Grouping,
    labels: ArrayLike,
    scores: ArrayLike,
    conventions: Conventions,
) -> Evaluation:
    """Evaluate rows whose queries are known."""
    inputs = grouped_inputs(grouping, labels, scores)
    values = measure_all(measures, conventions, inputs)
    return Evaluation(inputs.query_ids, values, conventions)


def measure_all(
    measures: Sequence[Measure], conventions: Conventions, inputs: Inputs
) -> ByMeasure[Doubles]:
    """The value of each query by each measure."""
    prepared = [PreparedMeasure.of(measure, conventions, inputs) for measure in measures]
    values = ByMeasure({each.measure: np.empty(len(inputs.query_ids)) for each in prepared})
    for plan, sharing in _ranking_plans(prepared).items():
        _run(plan, sharing, inputs, values)
    return values


def _ranking_plans(
    prepared: Sequence[PreparedMeasure],
) -> dict[RankingPlan, list[PreparedMeasure]]:
    """Group the measures that can share one ranking of the queries."""
    groups: dict[tuple[Conventions, tuple[float, ...], bool], list[PreparedMeasure]] = {}
    for each in prepared:
        own = each.conventions
        key = Conventions(
            ties=own.ties,
            score_precision=own.score_precision,
            unjudged=own.unjudged,
            negative=own.negative,
            pool=own.pool,
        )
        groups.setdefault((key, each.by_gains, each.definition.knows_the_pool), []).append(each)
    plans: dict[RankingPlan, list[PreparedMeasure]] = {}
    for (key, gains, knows_the_pool), group in groups.items():
        depths = [each.depth for each in group]
        depth = max((each for each in depths if each), default=None)
        ideal = any(each.needs_ideal for each in group)
        whole = None if None in depths else depth
        plans[RankingPlan(key, whole, ideal, gains, knows_the_pool)] = group
    return plans


def _run(
    plan: RankingPlan,
    group: Sequence[PreparedMeasure],
    inputs: Inputs,
    values: dict[Measure, Doubles],
) -> None:
    scores = comparable_scores(inputs.scores, plan.conventions.score_precision)
    inputs = replace(inputs, scores=scores)

    for each in group:  # compiled here, once, rather than in each thread
        each.loop  # noqa: B018

    def work(first: int, last: int) -> None:
        for block in blocks(plan, inputs, first, last):
            for each in group:
                each.run(plan, inputs, block, values[each.measure][block.first : block.last])

    if len(inputs.query_ids):
        for_each_query(work, inputs.offsets)


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
    results = []
    for rows in iter_scored(source, columns, progress=progress):
        offsets = np.append(rows.starts, len(rows.labels))
        grouping = Grouping(rows.query_ids, offsets, None)
        inputs = grouped_inputs(grouping, rows.labels, rows.scores)
        values = measure_all(parsed, chosen, inputs)
        coverage = coverage_of(inputs, parsed, chosen)
        results.append(Evaluation(rows.query_ids, values, chosen, coverage=coverage))
    result = concat_evaluations(results)
    if result.coverage is not None:
        check_coverage(result.coverage, parsed, chosen)
    return result
