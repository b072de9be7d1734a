"""Models by name."""

from pathlib import Path
from typing import Any

import pytest

from podium.errors import PodiumError
from podium.losses.names import parse_loss
from podium.measures import evaluate
from podium.rankers import BoostedRanker, CascadeRanker, LinearRanker, load_ranker, models, tune
from tests.rankers.made_up import made_up

LINEAR = {
    "RankSVM": ("PairHinge()", "PairHinge(k=5)"),
    "RankNet": ("PairLogistic()", "PairLogistic(k=5)"),
    "ListNet": ("ListNet()", "ListNet(k=5)"),
    "ListMLE": ("ListMLE()", "ListMLE(k=5)"),
    "RankCosine": ("RankCosine()", "RankCosine(k=5)"),
    "SVMMAP": ("StructuralHinge('ap')", "StructuralHinge('ap', k=5)"),
    "TopMargin": (
        "StructuralHinge('ndcg', 'margin', k=10)",
        "StructuralHinge('ndcg', 'margin', k=5)",
    ),
    "TopSlack": (
        "StructuralHinge('ndcg', 'slack', k=10)",
        "StructuralHinge('ndcg', 'slack', k=5)",
    ),
    "FocusedSVM": (
        "Focused(StructuralHinge('ap'), PairHinge(scaled=True), 0.5)",
        "Focused(StructuralHinge('ap', k=3), PairHinge(scaled=True), 0.5, k=5)",
    ),
    "FocusedNet": (
        "Focused(ListNet(), PairLogistic(), 0.5)",
        "Focused(ListNet(permutations=True), PairLogistic(), 0.5, k=5)",
    ),
}
BOOSTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "RankBoost": ({"beta": 0.0}, {"beta": 0.0, "k": 5}),
    "AdaRank": (
        {"beta": 1.0, "list_measure": "AP", "weak_ranker": "feature"},
        {"beta": 1.0, "k": 5, "list_measure": "nDCG@5", "weak_ranker": "feature"},
    ),
    "FocusedBoost": (
        {"beta": 0.5, "list_measure": "nDCG"},
        {"beta": 0.5, "k": 5, "list_measure": "nDCG@5"},
    ),
}


@pytest.mark.parametrize(("place", "k"), [(0, None), (1, 5)])
def test_models_are_those_of_their_papers(place: int, k: int | None) -> None:
    assert {*LINEAR, *BOOSTED, "TopRank"} == set(models.MODELS)
    for name, losses in LINEAR.items():
        ranker = models.MODELS[name](k)
        assert isinstance(ranker, LinearRanker)
        assert ranker.loss == parse_loss(losses[place]), name
    for name, parameters in BOOSTED.items():
        expected = BoostedRanker(**parameters[place]).get_params()
        assert models.MODELS[name](k).get_params() == expected, name
    cascade = models.top_rank(k)
    assert isinstance(cascade, CascadeRanker)
    voters = [cascade.base, *cascade.rerankers]
    names = [LINEAR["TopSlack"][place], f"SquaredError(k={k})"]
    names += [LINEAR["RankSVM"][place], LINEAR["ListNet"][place]]
    assert [voter.get_params()["loss"] for voter in voters] == [parse_loss(each) for each in names]


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
