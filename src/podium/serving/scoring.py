"""How a model scores rows: by what is fastest for its kind.

``python -m benchmarks.serving`` measures it. Trees are walked by several rows at a time; those with
categories, and networks, are faster in ONNX Runtime, whose call has no overhead to speak of; a
matrix product and boosted thresholds are faster as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TypeAlias

import numpy as np

from podium.errors import DataError
from podium.export.targets.base import Request, engine_names
from podium.export.targets.onnx import INPUT, MODEL, OUTPUT, Onnx, inference_session
from podium.kernels import Doubles
from podium.rankers import Ranker
from podium.scorers.models import FittedModel
from podium.scorers.trees import TreeModel
from podium.serving.rows import Rows, row_type
from podium.serving.tree_walk import can_walk, tree_walk

Score: TypeAlias = Callable[[Rows], Doubles]
"""Scores rows, whose columns are in the order of the model's features."""

Pair: TypeAlias = tuple[str, str]
"""A query and a document."""

ScoreTexts: TypeAlias = Callable[[Rows, Sequence[Pair]], Doubles]
"""Scores rows and texts of the same documents."""

_CHECKED_ROWS = 64
_PAIR = ("query", "document")
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Scorer:
    """A model that can score.

    Attributes:
        kind: The class of the ranker, or the form of a model that another library saved.
        engine: What scores: ``tree_walk``, ``onnxruntime`` or ``native``.
        feature_names: The names of its features, or their numbers from 1.
        score: Scores rows.
        score_texts: Scores rows and texts together, of a ranker that reads both; else None.
        reference: Scores rows as the ranker itself does.
        definitions_hash: The hash of its features' definitions, if it is known.
        single: Whether it compares single-precision numbers. Podium trains in single precision, and
            XGBoost and CatBoost round to it; LightGBM elsewhere compares what it was given.
    """

    kind: str
    engine: str
    feature_names: tuple[str, ...]
    score: Score
    reference: Score
    definitions_hash: str | None = None
    single: bool = True
    score_texts: ScoreTexts | None = None


def scorer_of(ranker: Ranker) -> Scorer:
    """Return what scores as a ranker does, by what is fastest for its kind."""
    engine, names = "native", ranker.feature_names_
    score: Score = ranker.score_query
    if not ranker.scores_fast:
        model = ranker.fitted_model()
        names = model.feature_names
        engine, score = _fast_score(model, ranker.single_values)
    return Scorer(
        ranker.kind, engine, names, score, ranker.score_query, ranker.definitions_hash_,
        ranker.single_values, ranker.score_query if ranker.reads_texts else None,
    )  # fmt: skip


@singledispatch
def _fast_score(model: FittedModel, single: bool) -> tuple[str, Score]:
    del single
    return "onnxruntime", onnx_score(model)


@_fast_score.register
def _tree_score(model: TreeModel, single: bool) -> tuple[str, Score]:
    if can_walk(model):
        return "tree_walk", tree_walk(model, single=single)
    return "onnxruntime", onnx_score(model)


def onnx_score(model: FittedModel) -> Score:
    """Score by ONNX Runtime, on one thread: requests, not rows, are spread over cores."""
    names = engine_names(model.feature_names)
    written = Onnx().write(Request(model, names, "podium", Onnx.default_version))
    run = inference_session(written.files[MODEL], threads=1).run
    outputs = [OUTPUT]

    def score(rows: Rows) -> Doubles:
        scores: Doubles = run(outputs, {INPUT: rows.astype(np.float64)})[0]
        return scores.reshape(-1)

    return score


def check_scorer(scorer: Scorer) -> None:
    """Raise a DataError unless random rows score as the ranker itself scores them.

    Also compiles what is compiled on the first call, so that no request waits for it.
    """
    width = len(scorer.feature_names)
    kind = row_type(single=scorer.single)
    rows = np.random.default_rng(0).normal(size=(_CHECKED_ROWS, width)).astype(kind)
    for values in (rows, np.zeros((1, width), kind)):
        scores, expected = (
            _scored(scorer, each, values) for each in (scorer.score, scorer.reference)
        )
        largest = max(1.0, float(np.abs(expected).max()))
        if scores.shape != (len(values),) or not np.isfinite(scores).all():
            raise DataError("does not give one finite score per document", hint="Train it again.")
        if not np.abs(scores - expected).max() <= _TOLERANCE * largest:
            raise DataError(
                f"scores a document {np.abs(scores - expected).max():.3g} off in {scorer.engine}",
                hint="Report this as an error of Podium, with the model.",
            )


def takes_missing(scorer: Scorer) -> bool:
    """Return whether the model scores documents with a missing value."""
    try:
        kind = row_type(single=scorer.single)
        row = np.full((1, len(scorer.feature_names)), np.nan, kind)
        return bool(np.isfinite(_scored(scorer, scorer.score, row)).all())
    except DataError:
        return False


def _scored(scorer: Scorer, score: Score, rows: Rows) -> Doubles:
    if scorer.score_texts is not None:
        return scorer.score_texts(rows, [_PAIR] * len(rows))
    return score(rows)
