"""Trees of two engines."""

from pathlib import Path

import lightgbm
import numpy as np
import pytest

from podium.data import Dataset, ShardSet, write_shards
from podium.errors import PodiumError
from podium.measures import evaluate
from podium.rankers import LinearRanker, TreeRanker, tune
from tests.rankers.made_up import made_up

ENGINES = ["lightgbm", "xgboost"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "loss",
    [
        "ListMLE(k=5)",
        "ListMLE()",
        "PairLogistic(k=5)",
        "PairHinge(k=5)",
        "ListNet()",
        "RankCosine()",
        "LambdaLoss(k=5)",
    ],
)
def test_every_loss_grows_trees_that_learn(engine: str, loss: str) -> None:
    train, test = made_up(80), made_up(30, seed=1)
    ranker = TreeRanker(
        loss, engine=engine, n_estimators=20, learning_rate=0.2, parameters={"max_depth": 4}
    ).fit(train)
    learned = evaluate("nDCG@5", test, ranker.predict(test)).means
    assert next(iter(learned.values())) > 0.75


@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_order_of_a_thousand_documents_trains(engine: str) -> None:
    """LightGBM's own ranking objectives refuse labels above 30."""
    random = np.random.default_rng(0)
    features = random.random((5000, 4)).astype(np.float32)
    data = Dataset.from_arrays(
        features, labels=features[:, 0] + 0.1 * features[:, 1], group=[1000] * 5
    ).full_order()
    assert data.labels.max() == 1000
    ranker = TreeRanker("ListMLE()", engine=engine, n_estimators=60).fit(data)
    for query in range(5):
        rows = slice(query * 1000, (query + 1) * 1000)
        assert np.corrcoef(ranker.predict(data)[rows], data.labels[rows])[0, 1] > 0.9
    with pytest.raises(lightgbm.basic.LightGBMError, match="label"):
        lightgbm.train(
            {"objective": "lambdarank", "verbosity": -1},
            lightgbm.Dataset(data.features, data.labels, group=data.sizes),
            num_boost_round=1,
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_validation_stops_early_at_the_best_tree(engine: str) -> None:
    train, held_out = made_up(10, noise=2.0), made_up(30, noise=2.0, seed=3)
    seen: list[float] = []
    ranker = TreeRanker("ListMLE(k=5)", engine=engine, n_estimators=200, patience=10, measure="AP")
    ranker.fit(train, validation=held_out, progress=lambda _s, _l, value: seen.append(value))
    assert len(seen) < 200
    assert ranker.n_trees_ == int(np.argmax(seen)) + 1
    final = evaluate("AP", held_out, ranker.predict(held_out)).means
    assert next(iter(final.values())) == pytest.approx(max(seen), abs=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_engine_and_its_parameters_are_within_reach(engine: str) -> None:
    ranker = TreeRanker(engine=engine, n_estimators=3, parameters={"max_depth": 1}).fit(made_up())
    if engine == "lightgbm":
        assert isinstance(ranker.booster_, lightgbm.Booster)
        assert {tree["num_leaves"] for tree in ranker.booster_.dump_model()["tree_info"]} == {2}
    else:
        assert all(tree.count("leaf=") == 2 for tree in ranker.booster_.get_dump())


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_keeps_the_trees_grown(engine: str) -> None:
    def interrupt(step: int, _loss: float, _value: float | None) -> None:
        if step == 4:
            raise KeyboardInterrupt

    ranker = TreeRanker(engine=engine, n_estimators=50).fit(made_up(), progress=interrupt)
    assert ranker.n_trees_ == 4


def test_missing_values_are_left_to_the_trees() -> None:
    data = made_up()
    holes = data.features.copy()
    holes[::3, 0] = np.nan
    for engine in ENGINES:
        ranker = TreeRanker(engine=engine, n_estimators=5)
        ranker.fit(holes, data.labels, qid=data.query_of_row)
        assert np.isfinite(ranker.predict(holes)).all()


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(PodiumError, match="Did you mean: xgboost"):
        TreeRanker(engine="catboost").fit(made_up(2))  # type: ignore[arg-type]


def test_the_labels_order_not_their_size_decides() -> None:
    data = made_up()
    one = TreeRanker("ListMLE(k=5)", n_estimators=10).fit(data)
    tripled = Dataset.from_arrays(data.features, labels=data.labels * 1000, group=data.sizes)
    other = TreeRanker("ListMLE(k=5)", n_estimators=10).fit(tripled)
    np.testing.assert_array_equal(one.predict(data), other.predict(data))


def test_tuning_loads_shards_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made_up()
    train, held_out = data.split(0.7, 0.3)
    shards = [write_shards(part, tmp_path / name) for part, name in ((train, "t"), (held_out, "v"))]
    loads: list[ShardSet] = []
    load = ShardSet.load
    monkeypatch.setattr(ShardSet, "load", lambda one, **_options: loads.append(one) or load(one))
    grid = {"learning_rate": [0.05, 0.1, 0.2]}
    found = tune(TreeRanker(n_estimators=3), grid, *shards)
    assert len(found.trials) == 3
    assert sorted(loads, key=shards.index) == shards
    whole = tune(TreeRanker(n_estimators=3), grid, train, held_out)
    assert found.trials == whole.trials


def test_tuning_streams_shards_for_rankers_that_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made_up()
    shards = write_shards(data, tmp_path / "train")
    monkeypatch.setattr(ShardSet, "load", lambda *_, **__: pytest.fail("loaded whole"))
    assert tune(LinearRanker(max_iter=2), {"penalty": [0.1]}, shards, data).trials
