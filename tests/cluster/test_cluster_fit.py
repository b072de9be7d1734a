"""Fits over shards: linear models of one process, trees of the engines' own learners."""

import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._raylets import Raylets
from podium.cluster import Cluster, fit_shards
from podium.cluster.assignment import balance_by_bytes
from podium.cluster.checkpoints import claim, fit_identity
from podium.cluster.shard_actors import ShardActors
from podium.cluster.sources import open_source
from podium.data import Dataset, ShardSet, concat_datasets, write_shards
from podium.errors import ArgumentError, DataError, PodiumError
from podium.losses.names import parse_loss
from podium.rankers import BoostedRanker, LinearRanker, NeuralRanker, Ranker, TreeRanker
from podium.rankers.preconditioner import WithinQueryScatter
from tests.ports import free_port
from tests.rankers.made_up import made_up

pytestmark = [
    pytest.mark.slow,
    # Ray Train reads settings of Ray Data that Ray itself calls deprecated.
    # Few iterations are enough to compare fits.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore:.*use_push_based_shuffle.*:DeprecationWarning"),
]

LOSS = "ListMLE(k=5)"


def cut(data: Dataset, folder: str | Path, shards: int) -> ShardSet:
    return write_shards(data, folder, shard_bytes=max(1, data.features.nbytes // shards))


@settings(max_examples=1 if os.environ.get("CI") else 5)
@given(
    shards=st.integers(1, 9),
    workers=st.sampled_from([2, 3, 5]),
    loss=st.sampled_from([LOSS, "PairHinge(k=5)", "LambdaLoss(k=5)"]),
    seed=st.integers(0, 2**16),
)
def test_linear_models_are_those_of_one_process(
    raylets: Raylets, shards: int, workers: int, loss: str, seed: int
) -> None:
    data, held_out = made_up(24, 15, seed=seed), made_up(12, 15, seed=seed + 1)
    cluster = Cluster(raylets.address, workers=workers)
    with TemporaryDirectory() as folder:
        train = cut(data, f"{folder}/train", shards)
        valid = cut(held_out, f"{folder}/valid", 2)
        one = LinearRanker(loss, max_iter=40).fit(data, eval_set=held_out)
        many = fit_shards(LinearRanker(loss, max_iter=40), train, eval_set=valid, cluster=cluster)
    np.testing.assert_allclose(many.coef_, one.coef_, rtol=1e-6, atol=1e-6)
    assert many.n_iter_ == one.n_iter_
    ((measure, values),) = one.evals_result_["valid_0"].items()
    assert many.evals_result_ == {"valid_0": {measure: pytest.approx(values)}}


@pytest.mark.long
def test_a_lost_actor_leaves_its_shards_to_the_others(
    raylets: Raylets, three: Cluster, tmp_path: Path
) -> None:
    data = made_up(60)
    source = open_source(cut(data, tmp_path / "train", 7))
    actors = ShardActors(source, three)
    weights = np.ones(6)
    loss = parse_loss(LOSS)
    before = actors.gather("risk", loss, weights)
    draw = random.Random(3)
    for _ in range(2):  # the head has no room for all three workers: one of two kills hits one
        raylets.kill_one(draw)
        noticed = time.monotonic() + 10  # a worker outlives its raylet for a moment
        while actors.lost == 0 and time.monotonic() < noticed:
            after = actors.gather("risk", loss, weights)
            for (value, slope), (again, same) in zip(before, after, strict=True):
                assert value == again
                np.testing.assert_array_equal(slope, same)
        if actors.lost:
            break
    assert actors.lost > 0
    actors.close()
    raylets.replace_killed()


@pytest.mark.long
def test_more_workers_than_fit_are_not_waited_for(raylets: Raylets, tmp_path: Path) -> None:
    raylets.replace_killed()
    train = cut(made_up(30), tmp_path / "train", 12)
    ranker = fit_shards(LinearRanker(LOSS), train, cluster=Cluster(raylets.address, workers=100))
    np.testing.assert_allclose(ranker.coef_, LinearRanker(LOSS).fit(train).coef_, atol=1e-6)
    huge = Cluster(raylets.address, cpus_per_worker=1000)
    with pytest.raises(PodiumError, match="no machine of the cluster has 1000"):
        fit_shards(LinearRanker(LOSS), train, cluster=huge)


@pytest.mark.long
def test_workers_that_cannot_start_are_said(raylets: Raylets, tmp_path: Path) -> None:
    train = cut(made_up(10), tmp_path / "train", 2)
    cluster = Cluster(raylets.address, workers=2, modules=["no_such_module"])
    with pytest.raises(PodiumError, match=r"could not start.*no_such_module"):
        fit_shards(LinearRanker(LOSS), train, cluster=cluster)


@pytest.mark.long
def test_large_answers_are_added_in_runs(three: Cluster, tmp_path: Path) -> None:
    source = open_source(cut(made_up(60), tmp_path / "train", 7))
    actors = ShardActors(source, three)
    loss = parse_loss(LOSS)
    whole = actors.total("scatter", loss, add=WithinQueryScatter.__add__)
    for at_once in (1, 3):
        again = actors.total("scatter", loss, add=WithinQueryScatter.__add__, at_once=at_once)
        np.testing.assert_array_equal(again.matrix, whole.matrix)
        assert again.rows == whole.rows
    actors.close()


@pytest.mark.long
def test_a_tree_fit_that_cannot_succeed_ends_soon(three: Cluster, tmp_path: Path) -> None:
    train = cut(made_up(30), tmp_path / "train", 3)
    part = tmp_path / "train" / train.shards[1].file
    part.write_bytes(part.read_bytes()[:-1])
    interrupts = signal.getsignal(signal.SIGINT)
    start = time.monotonic()
    with pytest.raises(DataError, match=r"bytes, .* in the manifest"):
        fit_shards(TreeRanker(LOSS, n_estimators=5), train, cluster=three)
    assert time.monotonic() - start < 90  # and not after twenty attempts
    assert signal.getsignal(signal.SIGINT) is interrupts


def test_checkpoints_of_another_fit_are_refused(tmp_path: Path) -> None:
    one = open_source(cut(made_up(5), tmp_path / "one", 2))
    other = open_source(cut(made_up(6), tmp_path / "other", 2))
    where = str(tmp_path / "checkpoints")
    metadata = fit_identity(TreeRanker(LOSS, n_estimators=5), one, None)
    claim(where, metadata)
    claim(where, metadata)
    for ranker, train, validation in (
        (TreeRanker(LOSS, n_estimators=6), one, None),
        (TreeRanker("ListNet()", n_estimators=5), one, None),
        (TreeRanker(LOSS, n_estimators=5), other, None),
        (TreeRanker(LOSS, n_estimators=5), one, other),
    ):
        with pytest.raises(DataError, match="another fit"):
            claim(where, fit_identity(ranker, train, validation))


@pytest.mark.long
def test_a_linear_fit_goes_on_from_its_checkpoint(three: Cluster, tmp_path: Path) -> None:
    data = made_up(30)
    train = cut(data, tmp_path / "train", 3)
    where = tmp_path / "checkpoints"
    first = fit_shards(LinearRanker(LOSS), train, checkpoints=where, cluster=three)
    again = fit_shards(LinearRanker(LOSS), train, checkpoints=where, cluster=three)
    assert again.n_iter_ < first.n_iter_
    np.testing.assert_allclose(again.coef_, first.coef_, rtol=1e-3, atol=1e-3)
    with pytest.raises(DataError, match="another fit"):
        fit_shards(LinearRanker(LOSS, alpha=1.0), train, checkpoints=where, cluster=three)


@pytest.mark.long
def test_a_linear_fit_that_goes_on_knows_what_was_best(three: Cluster, tmp_path: Path) -> None:
    train = cut(made_up(30), tmp_path / "train", 3)
    valid = cut(made_up(10, seed=1), tmp_path / "valid", 2)
    values: list[float | None] = []
    options: dict[str, Any] = {
        "eval_set": valid,
        "checkpoints": tmp_path / "checkpoints",
        "checkpoint_seconds": 0.0,
        "cluster": three,
        "progress": lambda _step, _loss, value: values.append(value),
    }
    first = fit_shards(LinearRanker(LOSS, max_iter=12), train, **options)
    steps = len(values)
    again = fit_shards(LinearRanker(LOSS, max_iter=13), train, **options)
    held_out = valid.load()
    assert first.score(held_out) == pytest.approx(max(values[:steps]))
    assert again.score(held_out) == pytest.approx(max(values))  # of both fits
    assert len(values) - steps < steps  # it did not begin anew


def test_what_cannot_be_fitted_is_said(three: Cluster, tmp_path: Path) -> None:
    data = made_up(10)
    train = cut(data, tmp_path / "train", 2)
    with pytest.raises(ArgumentError, match="cannot be fitted on a cluster"):
        fit_shards(BoostedRanker(), train, cluster=three)
    with pytest.raises(ArgumentError, match="not on this machine"):
        fit_shards(LinearRanker(), f"file://{tmp_path}/train")
    with pytest.raises(ArgumentError, match="checkpoints are written on a cluster only"):
        fit_shards(LinearRanker(), train, checkpoints=tmp_path / "checkpoints")
    holes = data.features.copy()
    holes[3, 2] = np.nan
    bad = Dataset.from_arrays(holes, data.labels, qid=data.query_of_row)
    with pytest.raises(DataError, match="missing"):
        fit_shards(LinearRanker(), cut(bad, tmp_path / "holes", 2), cluster=three)


Predict = Callable[[Any], Any]


def xgboost_alone(parts: list[Dataset], trees: int, parameters: dict[str, Any]) -> Predict:
    """XGBoost's own distributed learner, by its own interface: a thread a part."""
    loss = parse_loss(LOSS)
    import xgboost
    from xgboost import collective
    from xgboost.tracker import RabitTracker

    tracker = RabitTracker(n_workers=len(parts), host_ip="127.0.0.1", sortby="task")
    tracker.start()
    waiting = ThreadPoolExecutor(1).submit(tracker.wait_for)
    settings_ = {"base_score": 0.0, "tree_method": "hist", "learning_rate": 0.1, "seed": 0}

    def work(rank: int) -> Any:
        part = parts[rank]

        def objective(scores: Any, _rows: Any) -> Any:
            evaluation = loss.evaluate(scores, part.labels, part.offsets)
            return evaluation.gradient.astype(np.float32), evaluation.curvature.astype(np.float32)

        with collective.CommunicatorContext(**tracker.worker_args(), dmlc_task_id=f"{rank:03}"):
            rows = xgboost.QuantileDMatrix(part.features, np.zeros(part.rows))
            own = {**settings_, **parameters, "nthread": 1, "disable_default_eval_metric": True}
            return xgboost.train(own, rows, trees, obj=objective)

    with ThreadPoolExecutor(len(parts)) as pool:
        models = list(pool.map(work, range(len(parts))))
    waiting.result()
    return lambda features: models[0].predict(xgboost.DMatrix(features), output_margin=True)


def lightgbm_part(
    features: Any, labels: Any, offsets: Any, trees: int, parameters: dict[str, Any]
) -> str:
    """What one process of LightGBM's own distributed learner does, and the model it ends with."""
    import lightgbm

    loss = parse_loss(LOSS)

    def objective(scores: Any, _rows: Any) -> Any:
        evaluation = loss.evaluate(scores, labels, offsets)
        return evaluation.gradient, evaluation.curvature

    own = {"verbosity": -1, "deterministic": True, "force_row_wise": True, **parameters}
    rows = lightgbm.Dataset(features, label=np.zeros(len(features)), params=own)
    model = lightgbm.train({**own, "objective": objective}, rows, trees)
    return str(model.model_to_string())


def lightgbm_alone(parts: list[Dataset], trees: int, parameters: dict[str, Any]) -> Predict:
    """LightGBM's own distributed learner, by its own interface: a process a part."""
    import lightgbm

    ports = [free_port() for _ in parts]
    machines = ",".join(f"127.0.0.1:{port}" for port in ports)
    common = {
        "learning_rate": 0.1, "seed": 0, "num_threads": 1, "tree_learner": "data",
        "pre_partition": True, "num_machines": len(parts), "machines": machines, **parameters,
    }  # fmt: skip
    with ProcessPoolExecutor(len(parts), mp_context=get_context("spawn")) as pool:
        models = [
            pool.submit(
                lightgbm_part, part.features, part.labels, part.offsets, trees,
                {**common, "local_listen_port": port},
            )
            for part, port in zip(parts, ports, strict=True)
        ]  # fmt: skip
        texts = [each.result(timeout=300) for each in models]
    model = lightgbm.Booster(model_str=texts[0])
    return lambda features: model.predict(features, raw_score=True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "alone", "parameters"),
    [
        ("xgboost", xgboost_alone, {"max_depth": 3}),
        ("lightgbm", lightgbm_alone, {"num_leaves": 7}),
    ],
)
def test_trees_are_those_of_the_engines_own_distributed_learner(
    raylets: Raylets, tmp_path: Path, engine: Any, alone: Any, parameters: dict[str, Any]
) -> None:
    raylets.replace_killed()
    data = made_up(40)
    train = cut(data, tmp_path / "train", 5)
    ranker = TreeRanker(
        LOSS,
        engine=engine,
        n_estimators=15,
        learning_rate=0.1,
        engine_params=parameters,
        early_stopping_rounds=None,
    )
    fit_shards(ranker, train, cluster=Cluster(raylets.address, workers=2))
    shares = balance_by_bytes([shard.bytes for shard in train.shards], 2)
    parts = [
        concat_datasets([block for shard in sorted(share) for block in train.blocks([shard])])
        for share in shares
    ]
    predict = alone(parts, 15, parameters)
    np.testing.assert_allclose(ranker.predict(data), predict(data.features), atol=1e-5)


def new_tree() -> Ranker:
    return TreeRanker(
        LOSS, n_estimators=40, engine_params={"num_leaves": 7}, early_stopping_rounds=None
    )


def new_net() -> Ranker:
    return NeuralRanker(
        LOSS, hidden_layer_sizes=[8], epochs=15, batch_queries=1000, learning_rate=0.02
    )


@pytest.mark.long
def test_neural_batches_are_those_of_all_workers(raylets: Raylets, tmp_path: Path) -> None:
    raylets.replace_killed()
    data = made_up(30)
    train = cut(data, tmp_path / "train", 4)
    many = fit_shards(new_net(), train, cluster=Cluster(raylets.address, workers=2))
    one = new_net().fit(data)
    # The loss does not see a shift of all scores: of it there is only rounding to be learned.
    scores, expected = (ranker.predict(data) for ranker in (many, one))
    np.testing.assert_allclose(scores - scores.mean(), expected - expected.mean(), atol=1e-3)


@pytest.mark.long
def test_trees_survive_a_killed_raylet(raylets: Raylets, three: Cluster, tmp_path: Path) -> None:
    data, held_out = made_up(60), made_up(20, seed=1)
    train, valid = cut(data, tmp_path / "train", 6), cut(held_out, tmp_path / "valid", 3)
    values: dict[int, float] = {}
    killed: list[int] = []

    def follow(step: int, _loss: float, value: float | None) -> None:
        assert value is not None
        assert 0 < value <= 1  # the validation measure, nDCG
        values[step] = value
        if not killed:
            killed.append(step)
            raylets.kill_one(random.Random(0))

    ranker = fit_shards(
        new_tree(),
        train,
        eval_set=valid,
        progress=follow,
        checkpoint_seconds=0.2,
        cluster=three,
    )
    assert killed
    assert list(values) == list(range(1, 41))
    best = max(values, key=values.__getitem__)
    assert ranker.booster_.num_trees() == best
    assert ranker.score(held_out) == pytest.approx(values[best])
    assert ranker.evals_result_ == {"valid_0": {"nDCG@10": list(values.values())}}
    raylets.replace_killed()
