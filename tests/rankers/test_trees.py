"""Trees of two engines."""

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone

from podium.data import Dataset, ShardSet, write_shards
from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles
from podium.losses.names import parse_loss
from podium.measures import evaluate
from podium.rankers import CascadeRanker, LinearRanker, TreeRanker, load_ranker, tune
from podium.rankers.communicator import Communicator
from podium.rankers.engine_parameters import draws_at_random
from podium.rankers.storage import Archive
from tests.rankers.made_up import made_up

Engine = Literal["lightgbm", "xgboost"]
ENGINES: list[Engine] = ["lightgbm", "xgboost"]


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
def test_trees_are_those_that_the_engine_grows_by_the_losses_derivatives(
    engine: Engine, loss: str
) -> None:
    train, test = made_up(80), made_up(30, seed=1)
    ranker = TreeRanker(
        loss, engine=engine, n_estimators=20, learning_rate=0.2, engine_params={"max_depth": 4}
    ).fit(train)
    np.testing.assert_allclose(
        ranker.predict(test), scores_by_the_engine(engine, loss, train, test), rtol=1e-6, atol=1e-6
    )
    learned = evaluate("nDCG@5", test, ranker.predict(test)).means
    assert next(iter(learned.values())) > 0.75


def scores_by_the_engine(engine: str, loss: str, train: Dataset, test: Dataset) -> np.ndarray:
    """What 20 trees of an engine score, trained by its own ``train`` with our derivatives."""
    settings = {"learning_rate": 0.2, "max_depth": 4, "seed": 0}

    def derivatives(scores: np.ndarray, _data: object) -> tuple[np.ndarray, np.ndarray]:
        found = parse_loss(loss).evaluate(scores.astype(float), train.labels, train.offsets)
        return found.gradient, found.curvature

    if engine == "lightgbm":
        quiet = {"verbosity": -1, "deterministic": True, "force_row_wise": True}
        quiet |= {"num_leaves": 15}  # our default
        rows = lightgbm.Dataset(train.features, np.zeros(train.rows))
        booster = lightgbm.train({**settings, **quiet, "objective": derivatives}, rows, 20)
        return booster.predict(test.features)
    rows = xgboost.DMatrix(train.features, np.zeros(train.rows))
    booster = xgboost.train({**settings, "base_score": 0}, rows, 20, obj=derivatives)
    return booster.predict(xgboost.DMatrix(test.features))


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
    ranker = TreeRanker(
        "ListMLE(k=5)", engine=engine, n_estimators=200, early_stopping_rounds=10, measure="AP"
    )
    ranker.fit(train, eval_set=held_out, progress=lambda _s, _l, value: seen.append(value))
    assert ranker.n_estimators_ == int(np.argmax(seen)) + 1
    assert len(seen) == ranker.n_estimators_ + 10 < 200
    final = evaluate("AP", held_out, ranker.predict(held_out)).means
    assert next(iter(final.values())) == pytest.approx(max(seen), abs=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_engines_model_has_the_trees_and_the_names_of_the_ranker(engine: str) -> None:
    train, held_out = made_up(10, noise=2.0), made_up(30, noise=2.0, seed=3)
    names = ("bm25", "clicks", "age", "a b", "links", "spam")
    train, held_out = (replace(data, feature_names=names) for data in (train, held_out))
    ranker = TreeRanker("ListMLE(k=5)", engine=engine, n_estimators=100, early_stopping_rounds=10)
    steps: list[int] = []
    ranker.fit(train, eval_set=held_out, progress=lambda step, *_: steps.append(step))
    assert ranker.n_estimators_ == steps[-1] - 10
    for each in (ranker, load_ranker(BytesIO(ranker.to_bytes()))):
        booster = each.booster_
        if engine == "lightgbm":
            assert booster.num_trees() == ranker.n_estimators_
            assert booster.feature_name() == ["bm25", "clicks", "age", "a_b", "links", "spam"]
            own = booster.predict(held_out.features)
        else:
            assert booster.num_boosted_rounds() == ranker.n_estimators_
            assert booster.feature_names == list(names)
            own = booster.predict(xgboost.DMatrix(held_out.features, feature_names=names))
        np.testing.assert_array_equal(own, ranker.predict(held_out))


@pytest.mark.parametrize("engine", ENGINES)
def test_names_that_an_engine_refuses(engine: str) -> None:
    data = made_up()
    odd = replace(data, feature_names=("bm25[title]", 'a"b', "c:d", "e,f", "<g>", "h"))
    ranker = TreeRanker(engine=engine, n_estimators=3).fit(odd)
    names = (
        ranker.booster_.feature_name() if engine == "lightgbm" else ranker.booster_.feature_names
    )
    assert names[0] == "bm25_title_"
    assert names[5] == "h"
    plain = TreeRanker(engine=engine, n_estimators=3).fit(data)
    np.testing.assert_array_equal(ranker.predict(odd), plain.predict(data))
    alike = replace(data, feature_names=("a[", "a]", "b", "c", "d", "e"))
    twins = TreeRanker(engine=engine, n_estimators=3).fit(alike)
    np.testing.assert_array_equal(twins.predict(alike), plain.predict(data))
    assert twins.feature_names_in_[0] == "a["


@pytest.mark.parametrize(
    ("engine", "wrong", "message"),
    [
        ("lightgbm", "num_leafs", "There is no LightGBM parameter 'num_leafs'.*num_leaves"),
        ("xgboost", "max_deep", "There is no XGBoost parameter 'max_deep'.*max_depth"),
        ("lightgbm", "num_boost_round", "cannot be set.*n_estimators"),
        ("xgboost", "early_stopping_rounds", "cannot be set.*early_stopping_rounds"),
    ],
)
def test_parameters_that_the_engine_would_ignore_are_refused(
    engine: str, wrong: str, message: str
) -> None:
    ranker = TreeRanker(engine=engine, engine_params={"max_depth": 3, wrong: 4})
    with pytest.raises(ArgumentError, match=message):
        ranker.fit(made_up(2))
    with pytest.raises(ArgumentError, match=message):
        CascadeRanker(LinearRanker(), [ranker]).check_parameters()
    aliases = {
        "lightgbm": {"max_leaf": 3, "sub_row": 0.9},
        "xgboost": {"gamma": 0.1, "reg_alpha": 1},
    }
    TreeRanker(engine=engine, engine_params=aliases[engine]).check_parameters()


@pytest.mark.parametrize("engine", ENGINES)
def test_trees_that_split_nothing_are_told_of(engine: str) -> None:
    few = {"lightgbm": {"min_gain_to_split": 1e9}, "xgboost": {"min_child_weight": 1e9}}
    ranker = TreeRanker(engine=engine, n_estimators=3, engine_params=few[engine])
    with pytest.warns(UserWarning, match="all documents the same score"):
        ranker.fit(made_up(5))
    assert not np.ptp(ranker.predict(made_up(5)))
    with pytest.raises(ArgumentError, match="at least 1"):
        TreeRanker(engine=engine, n_estimators=0).fit(made_up(5))


@pytest.mark.parametrize(
    ("parameters", "draws"),
    [
        ({"colsample_bytree": 0.5}, True),
        ({"feature_fraction_bynode": "0.5"}, True),
        ({"bagging_fraction": 0.5, "bagging_freq": 1}, True),
        ({"data_sample_strategy": "goss"}, True),
        ({"boosting": "GOSS"}, True),
        ({"extra_trees": True}, True),
        ({}, False),
        ({"feature_fraction": 1.0, "extra_trees": False}, False),
        ({"bagging_fraction": 0.5}, False),
        ({"bagging_freq": 1, "data_sample_strategy": "bagging"}, False),
    ],
)
def test_what_is_drawn(parameters: dict[str, Any], draws: bool) -> None:
    assert draws_at_random(parameters, {"colsample_bytree": "feature_fraction"}) is draws


def test_a_tree_without_a_split_does_not_end_a_fit_that_draws_columns() -> None:
    random = np.random.default_rng(0)
    X = random.random((400, 10)).astype(np.float32)
    data = Dataset.from_arrays(X, (X[:, 3] > 0.5).astype(float), group=[20] * 20)
    useless = {"min_gain_to_split": 2.0}
    drawn = {"feature_fraction": 0.1, **useless}
    ranker = TreeRanker("SquaredError()", n_estimators=60, engine_params=drawn).fit(data)
    splits = ranker.booster_.trees_to_dataframe().split_feature.dropna()
    assert set(splits) == {ranker.booster_.feature_name()[3]}
    # One tree in ten sees the column that matters; the first tree stays, whatever it sees.
    assert 2 <= ranker.n_estimators_ < 20
    every = TreeRanker("SquaredError()", n_estimators=60, engine_params=useless).fit(data)
    assert every.n_estimators_ > ranker.n_estimators_


def test_fewer_rows_than_a_leaf_needs_are_told_of() -> None:
    with pytest.raises(DataError, match="min_data_in_leaf below"):
        TreeRanker(n_estimators=3).fit(made_up(1, 19))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_engine_and_its_parameters_are_within_reach(engine: str) -> None:
    ranker = TreeRanker(engine=engine, n_estimators=3, engine_params={"max_depth": 1}).fit(
        made_up()
    )
    if engine == "lightgbm":
        assert isinstance(ranker.booster_, lightgbm.Booster)
        assert {tree["num_leaves"] for tree in ranker.booster_.dump_model()["tree_info"]} == {2}
    else:
        assert all(tree.count("leaf=") == 2 for tree in ranker.booster_.get_dump())


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tuning_streams_shards_for_rankers_that_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made_up()
    shards = write_shards(data, tmp_path / "train")
    monkeypatch.setattr(ShardSet, "load", lambda *_, **__: pytest.fail("loaded whole"))
    assert tune(LinearRanker(max_iter=2), {"alpha": [0.1]}, shards, data).trials


class _Checkpoints(Communicator):
    """Keeps the checkpoint of one step, and resumes from one."""

    def __init__(self, step: int = 0, checkpoint: Archive | None = None) -> None:
        self._step = step
        self.checkpoint = checkpoint

    def load_checkpoint(self) -> Archive | None:
        return None if self._step else self.checkpoint

    def save_checkpoint(self, step: int, make_state: Callable[[], Archive]) -> None:
        if step == self._step:
            self.checkpoint = make_state()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fit_that_resumes_from_a_checkpoint_ends_with_the_same_trees(engine: Any) -> None:
    train, validation = made_up(20), made_up(10, seed=2)
    ranker = TreeRanker(engine=engine, n_estimators=8, early_stopping_rounds=None)
    saving = _Checkpoints(step=5)
    complete = clone(ranker).fit_partition(train, saving, eval_set=validation)
    steps: list[int] = []
    resumed = clone(ranker).fit_partition(
        train,
        _Checkpoints(checkpoint=saving.checkpoint),
        eval_set=validation,
        progress=lambda step, *_: steps.append(step),
    )
    assert steps == [6, 7, 8]
    assert resumed.n_estimators_ == complete.n_estimators_
    np.testing.assert_allclose(resumed.predict(train), complete.predict(train), atol=1e-6)


class _Lost(Communicator):
    """The other process is lost, which the engine notices."""

    def __init__(self, size: int, error: Exception) -> None:
        self.size = size
        self._error = error

    def all_reduce(self, _values: Doubles) -> Doubles:
        raise self._error


@pytest.mark.parametrize(
    ("engine", "error"),
    [
        ("lightgbm", lightgbm.basic.LightGBMError("Socket recv error, Connection reset by peer")),
        ("xgboost", xgboost.core.XGBoostError("[13:42:58] Poll error condition: Socket closed")),
    ],
)
def test_an_error_of_a_lost_process_is_not_taken_for_one_of_arguments(
    engine: Any, error: Exception
) -> None:
    """Else a cluster would give up the fit where another attempt would do."""
    ranker = TreeRanker(engine=engine, n_estimators=2)
    with pytest.raises(type(error)):
        clone(ranker).fit_partition(made_up(), _Lost(2, error))
    with pytest.raises(ArgumentError, match=r"cannot train: (Socket recv|Poll) error"):
        clone(ranker).fit_partition(made_up(), _Lost(1, error))
