"""MLflow's flavor of rankers: saved without pickle, and scored as a ``python_function``."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.models import Model, ModelSignature
from mlflow.types import ColSpec, DataType, Schema

import podium
from podium.data import Dataset
from podium.data.frames import arrow_table, is_frame
from podium.errors import ArgumentError
from podium.kernels import Doubles
from podium.rankers import Ranker, load_ranker
from podium.rankers.base import nested_rankers
from podium.rankers.inputs import QUERY_COLUMN

FLAVOR_NAME = "podium"
_FILE = "ranker.podium"
_REQUIREMENTS = "requirements.txt"
_ENVIRONMENT = "python_env.yaml"


def save_model(
    ranker: Ranker,
    path: str | os.PathLike[str],
    *,
    mlflow_model: Model | None = None,
    signature: ModelSignature | None = None,
    **metadata: Any,
) -> None:
    """Save a ranker as a model of MLflow, in a new folder.

    Args:
        ranker: A fitted ranker.
        path: The folder.
        mlflow_model: The model's description, which is completed; a new one by default.
        signature: The columns that it takes and returns; by default those of the ranker, if its
            features have names and none is categorical.
        **metadata: Kept with the model.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from podium.rankers import LinearRanker
        >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
        >>> with TemporaryDirectory() as folder:
        ...     save_model(ranker, Path(folder) / "model")
        ...     load_model(str(Path(folder) / "model"))
        LinearRanker(loss='ListNet()')
    """
    folder = Path(path)
    if folder.exists() and any(folder.iterdir()):
        raise ArgumentError(f"{folder} is not empty", hint="Name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    ranker.save(folder / _FILE)
    model = Model() if mlflow_model is None else mlflow_model
    model.signature = model.signature or signature or _signature(ranker)
    if metadata:
        model.metadata = {**(model.metadata or {}), **metadata}
    model.add_flavor(
        FLAVOR_NAME, data=_FILE, podium_version=podium.__version__, kind=type(ranker).__name__
    )
    mlflow.pyfunc.add_to_model(
        model, loader_module="podium.tracking.flavor", data=_FILE, python_env=_ENVIRONMENT
    )
    (folder / _REQUIREMENTS).write_text("\n".join(_requirements(ranker)) + "\n")
    (folder / _ENVIRONMENT).write_text(
        f"python: {platform.python_version()}\nbuild_dependencies:\n- pip\n"
        f"dependencies:\n- -r {_REQUIREMENTS}\n"
    )
    model.save(str(folder / "MLmodel"))


def log_model(ranker: Ranker, name: str = "ranker", **options: Any) -> Any:
    """Log a ranker as an artifact of the active run, or of a new one.

    Args:
        ranker: A fitted ranker.
        name: The name of the model in the run.
        **options: Those of ``save_model``, and of MLflow's ``Model.log``, such as
            ``registered_model_name``.

    Returns:
        MLflow's ``ModelInfo``, whose ``model_uri`` ``load_model`` takes.

    Example:
        >>> log_model(ranker, registered_model_name="search")  # doctest: +SKIP
    """
    return Model.log(None, sys.modules[__name__], name=name, ranker=ranker, **options)


def load_model(model_uri: str) -> Ranker:
    """Load a ranker that was logged or saved, by MLflow's address of it.

    Example:
        >>> load_model("models:/search/1")  # doctest: +SKIP
    """
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri))
    flavor = Model.load(str(folder / "MLmodel")).flavors.get(FLAVOR_NAME)
    if flavor is None:
        raise ArgumentError(f"{model_uri} is not a ranker of Podium", hint="Log it by log_model.")
    # The name of the file is not read from the description, which may come from anywhere.
    return load_ranker(folder / _FILE)


def _load_pyfunc(path: str) -> RankerFunction:
    """Return what MLflow calls to predict; the name is MLflow's."""
    return RankerFunction(load_ranker(path))


class RankerFunction:
    """A ranker as a ``python_function`` of MLflow: rows in, one score per row out."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Doubles:
        """Score rows; a cascade needs their queries in a column ``qid``."""
        if params:
            raise ArgumentError("rankers have no parameters of predictions", hint="Leave them out.")
        if not self.ranker.whole_queries:
            return self.ranker.predict(model_input)
        if not is_frame(model_input) or QUERY_COLUMN not in arrow_table(model_input).column_names:
            raise ArgumentError(
                f"a cascade ranks whole queries, and the rows have no column {QUERY_COLUMN!r}",
                hint="Add the id of each row's query.",
            )
        table = arrow_table(model_input)
        rows = [str(row) for row in range(table.num_rows)]
        data = Dataset.from_frame(
            table.append_column("podium label", [np.zeros(table.num_rows)]).append_column(
                "podium row", [rows]
            ),
            label="podium label",
            document_id="podium row",
            features=self.ranker.feature_names_,
        )
        scores = np.empty(table.num_rows)
        assert data.document_ids is not None  # they are the numbers of the rows
        scores[np.array(data.document_ids.to_pylist(), np.int64)] = self.ranker.predict(data)
        return scores


def _signature(ranker: Ranker) -> ModelSignature | None:
    if ranker.categories_ or not hasattr(ranker, "feature_names_in_"):
        return None
    columns: list[Any] = [ColSpec(DataType.double, name) for name in ranker.feature_names_]
    if QUERY_COLUMN not in ranker.feature_names_:
        required = ranker.whole_queries
        columns.append(ColSpec(DataType.string, QUERY_COLUMN, required=required))
    return ModelSignature(inputs=Schema(columns), outputs=Schema([ColSpec(DataType.double)]))


def _requirements(ranker: Ranker) -> list[str]:
    """Return what has to be installed to score with a ranker."""
    extras = {"mlflow", "rankers", *(each.extra for each in (ranker, *nested_rankers(ranker)))}
    return [f"podium-rank[{','.join(sorted(extras))}]=={podium.__version__}"]
