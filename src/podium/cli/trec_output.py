"""What trec_eval prints: a line with measure, topic and value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.cli.text import shown
from podium.data import Judgments, Rankings
from podium.data.preferences import Preferences
from podium.measures import Conventions, evaluate
from podium.measures.evaluation import Evaluation
from podium.measures.registry import Measure
from podium.measures.trec_eval import TrecMeasure

_ALL = "all"


def trec_lines(
    measures: list[TrecMeasure],
    truth: Judgments | Preferences,
    run: Rankings,
    conventions: Conventions,
    *,
    per_query: bool,
) -> Iterator[str]:
    """Return the lines that trec_eval prints for a run.

    Args:
        measures: In the order in which they are printed.
        truth: Judgments or preferences.
        run: The run.
        conventions: What the values follow.
        per_query: Whether there are lines for each query as well.
    """
    numeric: list[Measure] = [each.measure for each in measures if each.measure is not None]
    # A run's name alone needs no measure, but the queries are those of an evaluation.
    evaluation = evaluate(numeric or ["num_q"], truth, run, conventions=conventions)
    if per_query:
        yield from _query_lines(measures, evaluation, truth, run)
    for each in measures:
        if each.measure is not None:
            yield _line(each, _ALL, _printed(each, evaluation.means[each.measure]))
        elif not each.per_query:
            yield _line(each, _ALL, shown(run.name).plain)


def _query_lines(
    measures: list[TrecMeasure],
    evaluation: Evaluation,
    truth: Judgments | Preferences,
    run: Rankings,
) -> Iterator[str]:
    strings: dict[TrecMeasure, list[str]] = {}
    for each in measures:
        if each.length and isinstance(truth, Judgments):
            strings[each] = _relevance_strings(each.length, truth, run, evaluation.conventions)
    values = np.column_stack(list(evaluation.values.values()))
    ranked: NDArray[np.bool_] = np.any(~np.isnan(values), axis=1)
    for row, query in enumerate(evaluation.query_ids.to_pylist()):
        if not ranked[row]:
            continue
        topic = shown(query).plain
        for each in measures:
            if each in strings:
                yield _line(each, topic, f"'{strings[each][row]}'")
            elif each.measure is not None and each.per_query:
                value = evaluation[each.measure][row]
                yield _line(each, topic, _printed(each, float(value)))


def _line(measure: TrecMeasure, topic: str, value: str) -> str:
    return f"{measure.name:<22}\t{topic}\t{value}"


def _printed(measure: TrecMeasure, value: float) -> str:
    if np.isnan(value):
        value = 0.0
    return f"{value:.0f}" if measure.is_count else f"{value:6.4f}"


def _relevance_strings(
    length: int, truth: Judgments, run: Rankings, conventions: Conventions
) -> list[str]:
    """Return a character for each of the first documents of every judged query."""
    joined = run.join(truth)
    scores = joined.scores
    if conventions.score_precision == "float32":
        scores = scores.astype(np.float32).astype(np.float64)
    ids = np.asarray(joined.document_ids.cast(pa.large_binary()).to_pylist(), dtype=object)
    strings = []
    for begin, end in zip(joined.offsets[:-1], joined.offsets[1:], strict=True):
        rows = sorted(range(begin, end), key=lambda row: (scores[row], ids[row]), reverse=True)
        labels = [float(joined.labels[row]) for row in rows]
        if conventions.unjudged == "drop":
            labels = [label for label in labels if label >= 0]
        strings.append("".join(map(_character, labels[:length])))
    return strings


def _character(label: float) -> str:
    if np.isnan(label):
        return "-"
    if label < 0:
        return "."
    return ">" if label > 9 else str(int(label))
