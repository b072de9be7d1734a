"""How a model scores rows: by what is fastest for its kind.

``python -m benchmarks.serving`` measures it. Trees are walked by several rows at a time; those with
categories, and networks, are faster in ONNX Runtime, whose call has no overhead to speak of; a
matrix product and boosted thresholds are faster as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import TypeAlias

import numpy as np

from podium.data import Dataset
from podium.errors import DataError
from podium.export.reading import Model, model_of_ranker, read_engine_model
from podium.export.targets.base import Request, engine_names
from podium.export.targets.onnx import INPUT, MODEL, OUTPUT, Onnx, inference_session
from podium.export.trees import TreeModel
from podium.kernels import Doubles
from podium.rankers import CascadeRanker, NeuralRanker, Ranker, TreeRanker, load_ranker
from podium.serving.rows import Rows, row_type
from podium.serving.tree_walk import can_walk, tree_walk

Score: TypeAlias = Callable[[Rows], Doubles]
"""Scores rows, whose columns are in the order of the model's features."""

_CHECKED_ROWS = 64
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Scorer:
    """A model that can score.

    Attributes:
        kind: The class of the ranker, or the form of a model that another library saved.
        engine: What scores: ``tree_walk``, ``onnxruntime`` or ``native``.
        feature_names: The names of its features, or their numbers from 1.
        score: Scores rows.
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


def read_scorer(content: bytes) -> Scorer:
    """Read a ranker that Podium saved, or a model of LightGBM, XGBoost or CatBoost."""
    if not content.startswith(b"PK"):
        model: Model = read_engine_model(content)
        single = not isinstance(model, TreeModel) or model.single_values
        engine, score = _exported_score(model, single)
        return Scorer(
            type(model).__name__, engine, model.feature_names, score,
            lambda rows: model.predict(rows.astype(np.float64)), single=single,
        )  # fmt: skip
    ranker = load_ranker(BytesIO(content))
    native = native_score(ranker)
    if isinstance(ranker, TreeRanker | NeuralRanker):
        engine, score = _exported_score(model_of_ranker(ranker), True)
    else:
        engine, score = "native", native
    return Scorer(
        type(ranker).__name__, engine, tuple(ranker.feature_names_), score, native,
        ranker.definitions_hash_,
    )  # fmt: skip


def _exported_score(model: Model, single: bool) -> tuple[str, Score]:
    if isinstance(model, TreeModel) and can_walk(model):
        return "tree_walk", tree_walk(model, single=single)
    return "onnxruntime", onnx_score(model)


def native_score(ranker: Ranker) -> Score:
    """Score by the ranker's own engine."""
    if isinstance(ranker, CascadeRanker):
        return _one_query(ranker)
    # Columns are matched by name before, so that the ranker has nothing to match.
    return ranker._predict


def _one_query(ranker: Ranker) -> Score:
    """Score the documents of a request as those of one query, which a cascade needs to know."""
    names = tuple(ranker.feature_names_)

    def score(rows: Rows) -> Doubles:
        labels = np.zeros(len(rows), np.float32)
        return ranker.predict(
            Dataset.from_arrays(rows, labels, group=[len(rows)], feature_names=names)
        )

    return score


def onnx_score(model: Model) -> Score:
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
        scores, expected = scorer.score(values), scorer.reference(values)
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
        return bool(np.isfinite(scorer.score(row)).all())
    except DataError:
        return False
