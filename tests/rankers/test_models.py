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
    ranker = models.MODELS[name](k).fit(train, validation=held_out)
    value = next(iter(evaluate("nDCG@5", test, ranker.predict(test)).means.values()))
    assert value > 0.65
    ranker.save(tmp_path / "model")
    assert load_ranker(tmp_path / "model").predict(test).tolist() == ranker.predict(test).tolist()


def test_grids_are_of_parameters_that_exist() -> None:
    train, held_out = made_up(20), made_up(10, seed=2)
    for model in models.MODELS.values():
        grid = model.grid(5)
        if grid:
            found = tune(model(5), grid, train.top_k(5), held_out.top_k(5), trials=2)
            assert set(found.trials[0].parameters) == set(grid)
    for scorer in models.SCORERS:
        ranker = models.FocusedNet(5, scorer=scorer)
        small = {"n_estimators": [5]} if scorer in ("lightgbm", "xgboost") else {}
        small |= {"epochs": [2]} if scorer == "neural" else {}
        grid = {**models.FocusedNet.grid(5, scorer=scorer), **small}
        assert tune(ranker, grid, train.top_k(5), held_out, trials=1).trials


def test_names_are_found_however_they_are_written() -> None:
    assert models.model_named("svmmap") is models.SVMMAP
    with pytest.raises(PodiumError, match="RankSVM"):
        models.model_named("RankSVN")
    with pytest.raises(PodiumError, match="scorer"):
        models.RankBoost(scorer="neural")
    with pytest.raises(PodiumError, match="linear"):
        models.make_ranker("quadratic", "ListNet()")
