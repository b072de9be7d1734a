"""MLflow's evaluator of rankers: ``mlflow.models.evaluate(..., evaluators="podium")``."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator

from podium.data import Dataset
from podium.data.grouping import as_strings
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.measures import Conventions, compare, evaluate
from podium.measures.comparison.result import Comparison
from podium.measures.evaluation import Evaluation
from podium.measures.registry import Measure
from podium.rankers.inputs import QUERY_COLUMN
from podium.registry import unknown_name
from podium.tracking.evaluation import metrics_of

MODEL_TYPE = "ranker"
QUERIES_FILE = "podium_queries.json"
SCORES_FILE = "podium_scores.parquet"
_SETTINGS = ("measures", "conventions", "query_id")


class RankingEvaluator(ModelEvaluator):
    """Measures of a model of MLflow over queries, for ``mlflow.models.evaluate``.

    MLflow finds it by the name ``podium``. It evaluates models of type ``"ranker"``, of any
    flavor, on data frames with a column of query ids, or the predictions that such a frame has.
    ``evaluator_config`` has ``measures`` (by default nDCG@10), ``conventions`` and ``query_id``,
    the column of query ids (by default ``qid``).

    The metrics are the mean of each measure and the ends of its 95 % interval over queries, with
    the names of ``log_evaluation``. The values of each query are the run's table
    ``podium_queries.json``, which MLflow's pages show side by side for several runs; the scores of
    all rows are kept, too, for ``compare_runs``.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, **_: Any) -> bool:
        """Whether models of a type are evaluated here: those of type ``"ranker"``."""
        return model_type == MODEL_TYPE

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any],
        model: Any = None,
        extra_metrics: Any = None,
        custom_artifacts: Any = None,
        predictions: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Evaluate a model, and log metrics, the table of queries and the scores."""
        # Imported here: it needs Matplotlib, which MLflow's own evaluators import anyway.
        from mlflow.models.evaluation.artifacts import (
            JsonEvaluationArtifact,
            ParquetEvaluationArtifact,
        )

        if extra_metrics or custom_artifacts:
            raise ArgumentError(
                "extra_metrics and custom_artifacts are those of MLflow's default evaluator",
                hint="Name measures in evaluator_config, or run the default evaluator as well.",
            )
        for name in evaluator_config:
            if name not in _SETTINGS:
                raise unknown_name("setting of the evaluator", name, _SETTINGS)
        query_column = evaluator_config.get("query_id", QUERY_COLUMN)
        query_ids = _query_ids(dataset, query_column)
        if not dataset.has_targets:
            raise ArgumentError("the rows have no labels", hint="Name their column as targets=.")
        labels = np.asarray(dataset.labels_data, np.float64)
        scores = _scores(dataset, model, predictions, query_column, len(labels))
        conventions = evaluator_config.get("conventions")
        evaluation = evaluate(
            evaluator_config.get("measures", "nDCG@10"),
            labels,
            scores,
            qid=query_ids,
            conventions=conventions,
        )
        metrics = metrics_of(evaluation)
        client = mlflow.MlflowClient()
        for name, value in metrics.items():
            client.log_metric(run_id, name, value)
        client.set_tag(run_id, "podium.conventions", str(evaluation.conventions)[:5000])
        _log_queries(client, run_id, evaluation)
        rows = pa.table({"query_id": query_ids, "label": labels, "score": scores})
        with tempfile.TemporaryDirectory() as folder:
            pq.write_table(rows, Path(folder) / SCORES_FILE)
            client.log_artifact(run_id, str(Path(folder) / SCORES_FILE))
        base = client.get_run(run_id).info.artifact_uri
        artifacts = {
            QUERIES_FILE: JsonEvaluationArtifact(uri=f"{base}/{QUERIES_FILE}"),  # type: ignore[no-untyped-call]
            SCORES_FILE: ParquetEvaluationArtifact(uri=f"{base}/{SCORES_FILE}"),  # type: ignore[no-untyped-call]
        }
        return EvaluationResult(metrics=metrics, artifacts=artifacts, run_id=run_id)  # type: ignore[no-untyped-call]


def compare_runs(
    measures: str | Measure | Sequence[str | Measure],
    runs: Mapping[str, str],
    *,
    conventions: Conventions | str | None = None,
    **options: Any,
) -> Comparison:
    """Compare runs that the evaluator evaluated on the same rows: tests, intervals, effect sizes.

    Args:
        measures: One or several measures; not only those that were logged.
        runs: The id of each run by a name for it; the first is the baseline.
        conventions: The conventions of the measures.
        **options: Those of ``podium.measures.compare``.

    Example:
        >>> compare_runs("nDCG@10", {"old": old_id, "new": new_id})  # doctest: +SKIP
    """
    tables = {name: _logged_rows(run_id) for name, run_id in runs.items()}
    first = next(iter(tables), None)
    if first is None:
        raise ArgumentError("there are no runs to compare", hint="Give at least two.")
    rows = tables[first].drop_columns(["score"])
    for name, table in tables.items():
        if not table.drop_columns(["score"]).equals(rows):
            raise DataError(
                f"the rows of {name} are not those of {first}",
                hint="Evaluate both runs on the same rows in the same order.",
            )
    numbers = [str(row) for row in range(rows.num_rows)]
    numbered = Dataset.from_arrays(
        np.zeros((rows.num_rows, 1)), rows["label"], qid=rows["query_id"], document_ids=numbers
    )
    assert numbered.document_ids is not None  # they are the numbers of the rows
    order = np.array(numbered.document_ids.to_pylist(), np.int64)
    systems = {name: table["score"].to_numpy()[order] for name, table in tables.items()}
    data = replace(numbered, document_ids=None)
    return compare(measures, data, systems, conventions=conventions, **options)


def _query_ids(dataset: Any, column: str) -> pa.Array:
    features = dataset.features_data
    if column not in getattr(features, "columns", ()):
        raise ArgumentError(
            f"the rows have no column {column!r} of query ids",
            hint="Give a data frame with one, and name it in evaluator_config: query_id.",
        )
    if features[column].isna().any():  # as a string, a missing value would be an id
        raise DataError("a row has no query id", hint="Give every row one, or leave the row out.")
    return as_strings(pa.array(features[column].astype(str)), "query ids")


def _scores(dataset: Any, model: Any, column: str | None, query_column: str, rows: int) -> Doubles:
    if model is None:
        if not dataset.has_predictions:
            raise ArgumentError(
                "there is neither a model nor predictions",
                hint="Give model=, or the column of scores as predictions=.",
            )
        answer = dataset.predictions_data
    else:
        answer = model.predict(_inputs(model, dataset.features_data, query_column))
        if column is not None:
            answer = answer[column]
    scores = np.asarray(answer, np.float64)
    if scores.shape != (rows,) and scores.shape != (rows, 1):
        raise DataError(
            f"the model returned an array of shape {scores.shape} for {rows} rows",
            hint="It must return one score per row; of several columns name one: predictions=.",
        )
    return scores.reshape(rows)


def _inputs(model: Any, features: Any, query_column: str) -> Any:
    """Return the rows as a model takes them: with query ids only if it knows what they are."""
    metadata = getattr(model, "metadata", None)
    if metadata is None:  # a function
        return features.assign(**{query_column: features[query_column].astype(str)})
    schema = metadata.get_input_schema()
    names = () if schema is None else schema.input_names()
    if query_column in names:
        return features.assign(**{query_column: features[query_column].astype(str)})
    rows = features.drop(columns=[query_column])
    is_ranker = schema is None and "podium" in metadata.flavors
    if QUERY_COLUMN in names or is_ranker:
        rows = rows.assign(**{QUERY_COLUMN: features[query_column].astype(str)})
    return rows


def _log_queries(client: mlflow.MlflowClient, run_id: str, evaluation: Evaluation) -> None:
    """Log the table of queries in place of that of an earlier evaluation, if there is one."""
    import pandas as pd

    columns = evaluation.to_arrow()
    table = pd.DataFrame({name: columns[name].to_pylist() for name in columns.column_names})
    if QUERIES_FILE in {file.path for file in client.list_artifacts(run_id)}:
        # log_table would add rows to it.
        client.log_text(run_id, table.to_json(orient="split", index=False), QUERIES_FILE)
    else:
        client.log_table(run_id, table, QUERIES_FILE)


def _logged_rows(run_id: str) -> pa.Table:
    client = mlflow.MlflowClient()
    names = {file.path for file in client.list_artifacts(run_id)}
    if SCORES_FILE not in names:
        raise ArgumentError(
            f"the run {run_id} has no {SCORES_FILE}",
            hint="Evaluate it by mlflow.models.evaluate(..., evaluators='podium').",
        )
    with tempfile.TemporaryDirectory() as folder:
        return pq.read_table(
            client.download_artifacts(run_id, SCORES_FILE, folder),
            columns=["query_id", "label", "score"],
        )
