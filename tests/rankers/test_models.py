"""Models by name."""

from pathlib import Path

import pytest

from podium.errors import PodiumError
from podium.measures import evaluate
from podium.rankers import load_ranker, models, tune
from tests.rankers.made_up import made_up


@pytest.mark.parametrize("k", [None, 5])
@pytest.mark.parametrize("name", models.MODELS)
def test_every_model_learns_and_can_be_saved(name: str, k: int | None, tmp_path: Path) -> None:
    train, held_out, test = made_up(60), made_up(20, seed=2), made_up(30, seed=1)
    if name.startswith("Focused"):
        train = train.top_k(5)
    ranker = models.MODELS[name](k).fit(train, eval_set=held_out)
    value = next(iter(evaluate("nDCG@5", test, ranker.predict(test)).means.values()))
    assert value > 0.65
    ranker.save(tmp_path / "model")
    assert load_ranker(tmp_path / "model").predict(test).tolist() == ranker.predict(test).tolist()


def test_grids_are_of_parameters_that_exist() -> None:
    train, held_out = made_up(20), made_up(10, seed=2)
    for model in models.MODELS.values():
        grid = model.grid(5)
        if grid:
            found = tune(model(5), grid, train.top_k(5), held_out.top_k(5), n_trials=2)
            assert set(found.trials[0].params) == set(grid)
    for scorer in models.SCORERS:
        ranker = models.focused_net(5, scorer=scorer)
        small = {"n_estimators": [5]} if scorer in ("lightgbm", "xgboost") else {}
        small |= {"epochs": [2]} if scorer == "neural" else {}
        grid = {**models.focused_net.grid(5, scorer=scorer), **small}
        assert tune(ranker, grid, train.top_k(5), held_out, n_trials=1).trials


def test_names_are_found_however_they_are_written() -> None:
    assert models.get_model("svmmap") is models.svm_map
    with pytest.raises(PodiumError, match="RankSVM"):
        models.get_model("RankSVN")
    with pytest.raises(PodiumError, match="scorer"):
        models.rank_boost(scorer="neural")
    with pytest.raises(PodiumError, match="linear"):
        models.make_ranker("quadratic", "ListNet()")
