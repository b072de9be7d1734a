"""MLflow's evaluator: what mlflow.models.evaluate logs is what Podium's evaluate returns."""

from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")

from podium.errors import ArgumentError, DataError  # noqa: E402
from podium.measures import compare, evaluate  # noqa: E402
from podium.measures.comparison.statistics import mean_interval  # noqa: E402
from podium.rankers import CascadeRanker, LinearRanker, Ranker  # noqa: E402
from podium.tracking import compare_runs, log_model  # noqa: E402
from podium.tracking.evaluator import RankingEvaluator  # noqa: E402
from podium.tracking.flavor import save_model  # noqa: E402
from tests.tracking.made_up_frames import NAMES, TEST, TRAIN  # noqa: E402

# MLflow's own: nothing of this project.
pytestmark = pytest.mark.filterwarnings("ignore")

QUERIES = TEST.query_id_of_row().to_pylist()
# Rows in an order of their own: MLflow's users have frames, not grouped data.
FRAME = (
    pd.DataFrame(TEST.features, columns=NAMES)
    .assign(qid=QUERIES, label=TEST.labels)
    .sample(frac=1.0, random_state=0)
)


@pytest.fixture(autouse=True, scope="module")
def _store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment(
        experiment_id=mlflow.create_experiment("here", artifact_location=str(folder / "files"))
    )
    yield
    while mlflow.active_run():
        mlflow.end_run()


def run_evaluation(data: pd.DataFrame = FRAME, **arguments: Any) -> Any:
    arguments = {"targets": "label", "evaluators": "podium", "model_type": "ranker"} | arguments
    with mlflow.start_run() as run:
        return run.info.run_id, mlflow.models.evaluate(data=data, **arguments)


def test_mlflow_finds_the_evaluator() -> None:
    (entry,) = entry_points(group="mlflow.model_evaluator", name="podium")
    assert entry.load() is RankingEvaluator
    assert RankingEvaluator.can_evaluate(model_type="ranker")
    assert not RankingEvaluator.can_evaluate(model_type="regressor")


@pytest.mark.parametrize(
    "ranker",
    [LinearRanker(), CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")])],
    ids=["linear", "cascade"],
)
def test_a_logged_ranker_has_the_measures_of_evaluate(ranker: Ranker) -> None:
    ranker.fit(TRAIN)
    with mlflow.start_run():
        uri = log_model(ranker).model_uri
    run_id, result = run_evaluation(
        model=uri,
        evaluator_config={"measures": ["nDCG@3", "ERR"], "conventions": "letor4"},
    )
    expected = evaluate(["nDCG@3", "ERR"], TEST, ranker.predict(TEST), conventions="letor4")
    metrics = {}
    for name, measure in (("nDCG_at_3", "nDCG@3"), ("ERR", "ERR")):
        ends = mean_interval(expected[measure])
        metrics |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    assert result.metrics == pytest.approx(metrics, rel=1e-12)
    run = mlflow.get_run(run_id)
    assert run.data.metrics == result.metrics
    assert run.data.tags["podium.conventions"] == str(expected.conventions)
    assert set(result.artifacts) == {"podium_queries.json", "podium_scores.parquet"}
    table = mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/podium_queries.json")
    assert result.artifacts["podium_queries.json"].content == table
    assert table["columns"] == ["query_id", "nDCG@3", "ERR"]
    by_query = {query: values for query, *values in table["data"]}
    assert len(by_query) == len(expected) == 8
    for row, query in enumerate(expected.query_ids.to_pylist()):
        # MLflow writes ten digits of a table's numbers.
        values = [expected["nDCG@3"][row], expected["ERR"][row]]
        assert by_query[query] == pytest.approx(values, abs=1e-10)


def test_predictions_need_no_model() -> None:
    frame = FRAME.rename(columns={"qid": "session"}).assign(score=FRAME["a"])
    _, result = run_evaluation(
        frame,
        predictions="score",
        evaluator_config={"measures": "RR", "query_id": "session"},
    )
    expected = evaluate("RR", TEST, TEST.features[:, 0]).means["RR"]
    assert result.metrics["RR"] == pytest.approx(expected, rel=1e-12)


def test_a_function_sees_the_features_and_the_queries() -> None:
    columns = []

    def model(rows: pd.DataFrame) -> pd.DataFrame:
        columns.append(list(rows.columns))
        return pd.DataFrame({"first": rows["a"], "second": rows["b"]})

    _, result = run_evaluation(model=model, predictions="second")
    assert columns == [[*NAMES, "qid"]]
    expected = evaluate("nDCG@10", TEST, TEST.features[:, 1]).means["nDCG@10"]
    assert result.metrics["nDCG_at_10"] == pytest.approx(expected, rel=1e-12)


def test_runs_are_compared_as_their_scores() -> None:
    ids = {}
    for name, column in (("old", "a"), ("new", "b")):
        run_id, _ = run_evaluation(FRAME.assign(score=FRAME[column]), predictions="score")
        ids[name] = run_id
    comparison = compare_runs("nDCG@5", ids)
    expected = compare("nDCG@5", TEST, {"old": TEST.features[:, 0], "new": TEST.features[:, 1]})
    assert comparison.summaries["nDCG@5"]["new"].mean == pytest.approx(
        expected.summaries["nDCG@5"]["new"].mean, rel=1e-12
    )
    assert comparison.against_baseline["nDCG@5"]["new"].difference.p_values == pytest.approx(
        expected.against_baseline["nDCG@5"]["new"].difference.p_values, rel=1e-9
    )
    shuffled = FRAME.sample(frac=1.0, random_state=1)
    ids["other"], _ = run_evaluation(shuffled.assign(score=shuffled["a"]), predictions="score")
    with pytest.raises(DataError, match="the rows of other are not those of old"):
        compare_runs("nDCG@5", ids)
    with mlflow.start_run() as empty:
        pass
    with pytest.raises(ArgumentError, match=r"has no podium_scores\.parquet"):
        compare_runs("nDCG@5", {"old": ids["old"], "empty": empty.info.run_id})


def test_a_model_of_another_flavor_gets_no_query_ids(tmp_path: Path) -> None:
    class Sum(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined]
        def predict(self, context, model_input, params=None):  # noqa: ARG002
            return np.asarray(model_input, float).sum(axis=1)  # fails on a column of text

    mlflow.pyfunc.save_model(tmp_path / "model", python_model=Sum())
    _, result = run_evaluation(model=str(tmp_path / "model"))
    expected = evaluate("nDCG@10", TEST, TEST.features.astype(float).sum(axis=1))
    assert result.metrics["nDCG_at_10"] == pytest.approx(expected.means["nDCG@10"], rel=1e-12)


def test_a_column_of_query_ids_with_another_name_is_not_a_feature(tmp_path: Path) -> None:
    class Columns(mlflow.pyfunc.PythonModel):  # type: ignore[name-defined]
        def predict(self, context, model_input, params=None):  # noqa: ARG002
            assert list(model_input.columns) == NAMES
            return model_input["a"]

    mlflow.pyfunc.save_model(tmp_path / "model", python_model=Columns())
    named = FRAME.rename(columns={"qid": "session"})
    config = {"query_id": "session"}
    _, result = run_evaluation(named, model=str(tmp_path / "model"), evaluator_config=config)
    expected = evaluate("nDCG@10", TEST, TEST.features[:, 0]).means["nDCG@10"]
    assert result.metrics["nDCG_at_10"] == pytest.approx(expected, rel=1e-12)
    # A cascade gets them by the name that it knows.
    cascade = CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")]).fit(TRAIN)
    save_model(cascade, tmp_path / "cascade")
    _, result = run_evaluation(named, model=str(tmp_path / "cascade"), evaluator_config=config)
    expected = evaluate("nDCG@10", TEST, cascade.predict(TEST)).means["nDCG@10"]
    assert result.metrics["nDCG_at_10"] == pytest.approx(expected, rel=1e-12)


def test_rows_without_a_query_are_refused() -> None:
    for missing in (None, np.nan):
        frame = FRAME.assign(qid=[missing, *FRAME["qid"][1:]])
        with pytest.raises(DataError, match="a row has no query id"):
            run_evaluation(frame, predictions="a")


def test_a_second_evaluation_replaces_the_table() -> None:
    with mlflow.start_run() as run:
        for measure in ("RR", "nDCG@3"):
            mlflow.models.evaluate(
                data=FRAME, targets="label", predictions="a", model_type="ranker",
                evaluators="podium", evaluator_config={"measures": measure},
            )  # fmt: skip
    table = mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/podium_queries.json")
    assert table["columns"] == ["query_id", "nDCG@3"]
    assert len(table["data"]) == len({query for query, _ in table["data"]}) == 8
    expected = evaluate("nDCG@3", TEST, TEST.features[:, 0])
    by_query = dict(zip(expected.query_ids.to_pylist(), expected["nDCG@3"], strict=True))
    assert dict(table["data"]) == pytest.approx(by_query, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": FRAME.drop(columns="qid")}, "no column 'qid' of query ids"),
        ({"targets": None}, "the rows have no labels"),
        ({"predictions": None}, "neither a model nor predictions"),
        ({"evaluator_config": {"measure": "RR"}}, "measure"),
        ({"custom_artifacts": [print]}, "default evaluator"),
        ({"evaluator_config": {"measures": "nDGC@3"}}, "nDGC"),
    ],
)
def test_mistakes_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        run_evaluation(**({"predictions": "a"} | arguments))


def test_scores_are_one_per_row() -> None:
    with pytest.raises(DataError, match=r"shape \(96, 2\) for 96 rows"):
        run_evaluation(model=lambda rows: rows[["a", "b"]])
