"""Rankers in MLflow: what is logged is loaded, and scores the same as a Python function."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")

from podium.errors import ArgumentError  # noqa: E402
from podium.explain.cards import model_card  # noqa: E402
from podium.measures import compare, evaluate  # noqa: E402
from podium.measures.comparison.statistics import mean_interval  # noqa: E402
from podium.rankers import BoostedRanker, CascadeRanker, LinearRanker, Ranker, TreeRanker  # noqa: E402
from podium.tracking import compare_runs, load_model, log_evaluation, log_model  # noqa: E402
from podium.tracking.flavor import RankerFunction, save_model  # noqa: E402
from tests.ports import free_port  # noqa: E402
from tests.tracking.made_up_frames import NAMES, TEST, TRAIN  # noqa: E402

# MLflow's own: nothing of this project.
pytestmark = pytest.mark.filterwarnings("ignore")

FRAME = pd.DataFrame(TEST.features, columns=NAMES)


@pytest.fixture(autouse=True)
def _store(tmp_path: Path) -> Iterator[None]:
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    yield
    while mlflow.active_run():
        mlflow.end_run()


@pytest.mark.parametrize(
    "ranker",
    [LinearRanker(), TreeRanker(n_estimators=5), BoostedRanker(n_estimators=5)],
    ids=lambda ranker: type(ranker).__name__,
)
def test_a_saved_model_scores_the_same(ranker: Ranker, tmp_path: Path) -> None:
    expected = ranker.fit(TRAIN).predict(TEST)
    save_model(ranker, tmp_path / "model", team="search")
    loaded = load_model(str(tmp_path / "model"))
    assert loaded.to_bytes() == ranker.to_bytes()
    function = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(function.predict(FRAME[NAMES[::-1]]), expected)
    assert function.metadata.metadata == {"team": "search"}
    assert function.metadata.flavors["podium"]["kind"] == type(ranker).__name__
    assert [column["name"] for column in function.metadata.get_input_schema().to_dict()] == [
        *NAMES, "qid",
    ]  # fmt: skip
    requirements = (tmp_path / "model/requirements.txt").read_text()
    extras = "mlflow,rankers,trees" if isinstance(ranker, TreeRanker) else "mlflow,rankers"
    assert requirements.startswith(f"podium-rank[{extras}]==")
    assert not list((tmp_path / "model").glob("*.pkl"))


def test_a_missing_column_is_refused(tmp_path: Path) -> None:
    save_model(LinearRanker().fit(TRAIN), tmp_path / "model")
    function = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    with pytest.raises(mlflow.MlflowException, match="missing inputs"):
        function.predict(FRAME[NAMES[1:]])


def test_a_cascade_needs_queries(tmp_path: Path) -> None:
    cascade = CascadeRanker(LinearRanker(), [BoostedRanker(n_estimators=5)]).fit(TRAIN)
    save_model(cascade, tmp_path / "model")
    function = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    queries = TEST.query_id_of_row().to_pylist()
    shuffled = FRAME.assign(qid=queries).sample(frac=1.0, random_state=0)
    scores = function.predict(shuffled)
    # Where documents of a query tie, the order of rows decides: there are none here.
    np.testing.assert_array_equal(scores, cascade.predict(TEST)[shuffled.index])
    with pytest.raises(ArgumentError, match="the rows have no column 'qid'"):
        RankerFunction(cascade).predict(FRAME)
    with pytest.raises(mlflow.MlflowException, match="qid"):
        function.predict(FRAME)


def test_models_that_are_not_rankers_are_refused(tmp_path: Path) -> None:
    save_model(LinearRanker().fit(TRAIN), tmp_path / "model")
    text = (tmp_path / "model/MLmodel").read_text()
    (tmp_path / "model/MLmodel").write_text(text.replace("  podium:", "  other:"))
    with pytest.raises(ArgumentError, match="is not a ranker of Podium"):
        load_model(str(tmp_path / "model"))
    with pytest.raises(ArgumentError, match="is not empty"):
        save_model(LinearRanker().fit(TRAIN), tmp_path / "model")


def check_run(ranker: Ranker) -> None:
    """Log a ranker and its evaluation, and read all of it again."""
    with mlflow.start_run() as run:
        model = log_model(ranker, registered_model_name="search")
        metrics = log_evaluation(ranker, TEST, ["nDCG@10", "RR"])
    assert load_model(model.model_uri).to_bytes() == ranker.to_bytes()
    assert load_model("models:/search/1").to_bytes() == ranker.to_bytes()
    scores = mlflow.pyfunc.load_model("models:/search/1").predict(FRAME)
    np.testing.assert_array_equal(scores, ranker.predict(TEST))
    evaluation = evaluate(["nDCG@10", "RR"], TEST, ranker.predict(TEST))
    expected = {}
    for name, measure in (("nDCG_at_10", "nDCG@10"), ("RR", "RR")):
        ends = mean_interval(evaluation[measure])
        values = dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        # Equal values have no interval, and MLflow would show missing ends as values.
        expected |= {key: value for key, value in values.items() if not np.isnan(value)}
    assert metrics == expected
    logged = mlflow.get_run(run.info.run_id)
    assert logged.data.metrics == expected
    assert logged.data.params["ranker"] == type(ranker).__name__
    assert logged.data.params["alpha"] == "0.0001"
    card = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/model_card.md")
    assert card == model_card(ranker, TEST, ["nDCG@10", "RR"]).as_markdown()


def check_evaluator(rankers: dict[str, Ranker]) -> None:
    """Log, load and evaluate rankers by MLflow's own functions, and compare the runs."""
    frame = FRAME.assign(qid=TEST.query_id_of_row().to_pylist(), label=TEST.labels)
    runs = {}
    for name, ranker in rankers.items():
        with mlflow.start_run() as run:
            runs[name] = run.info.run_id
            mlflow.models.evaluate(
                log_model(ranker).model_uri,
                frame,
                targets="label",
                model_type="ranker",
                evaluators="podium",
                evaluator_config={"measures": ["nDCG@10", "RR"]},
            )
    scores = {name: ranker.predict(TEST) for name, ranker in rankers.items()}
    expected = compare(["nDCG@10", "RR"], TEST, scores)
    comparison = compare_runs(["nDCG@10", "RR"], runs)
    for measure in ("nDCG@10", "RR"):
        for column, name in enumerate(rankers):
            values = expected.values[measure][:, column]
            np.testing.assert_allclose(comparison.values[measure][:, column], values, rtol=1e-12)
            logged = mlflow.get_run(runs[name]).data.metrics[measure.replace("@", "_at_")]
            assert logged == pytest.approx(values.mean(), rel=1e-12)


@pytest.mark.slow
def test_runs_are_logged(tmp_path: Path) -> None:
    experiment = mlflow.create_experiment("here", artifact_location=str(tmp_path / "artifacts"))
    mlflow.set_experiment(experiment_id=experiment)
    check_run(LinearRanker().fit(TRAIN))


@pytest.mark.slow
@pytest.mark.long
def test_runs_are_logged_to_a_server(tmp_path: Path) -> None:
    """A server of MLflow, whose command PODIUM_MLFLOW_SERVER names: it needs other packages."""
    command = os.environ.get("PODIUM_MLFLOW_SERVER", "mlflow")
    if shutil.which(command) is None:
        pytest.skip("PODIUM_MLFLOW_SERVER names no command of MLflow's server")
    port = free_port()
    server = subprocess.Popen(
        [
            command, "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
            "--backend-store-uri", f"sqlite:///{tmp_path}/server.db",
            "--artifacts-destination", str(tmp_path / "served"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=(tmp_path / "errors").open("wb"),
        cwd=tmp_path,
        start_new_session=True,
    )  # fmt: skip
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server)
        mlflow.set_tracking_uri(f"http://127.0.0.1:{port}")
        mlflow.set_experiment("here")
        check_run(LinearRanker().fit(TRAIN))
        others = {"small": LinearRanker(alpha=10.0), "trees": BoostedRanker(n_estimators=5)}
        check_evaluator({name: ranker.fit(TRAIN) for name, ranker in others.items()})
    finally:
        os.killpg(server.pid, 15)
        server.wait(timeout=60)


def _wait_for(address: str, server: subprocess.Popen) -> None:
    import httpx2

    for _ in range(600):
        assert server.poll() is None
        try:
            if httpx2.get(address, timeout=5).status_code == 200:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.5)
    raise TimeoutError(address)
