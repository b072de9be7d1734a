"""A name belongs to one thing for good, in every registry."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from podium.data.format_registry import FORMATS
from podium.errors import ArgumentError
from podium.judging.algorithms import ALGORITHMS
from podium.judging.algorithms.min_heap import heap
from podium.losses import ListMLE, loss
from podium.losses.base import Loss
from podium.measures import Conventions, measure
from podium.measures.presets import PRESETS
from podium.rankers import LinearRanker
from podium.rankers.base import Ranker
from podium.rankers.engines import ENGINES
from podium.rankers.models import MODELS, rank_net
from podium.registry import Registry


def another_format() -> None:
    FORMATS["letor"] = replace(FORMATS["letor"], suffixes=(".let",))


def another_algorithm() -> None:
    ALGORITHMS["adaptive"] = heap


def another_model() -> None:
    MODELS["RankSVM"] = rank_net


def another_engine() -> None:
    ENGINES["xgboost"] = ENGINES["lightgbm"]


def another_preset() -> None:
    PRESETS.update(trec_eval=Conventions())


def another_loss() -> None:
    @loss
    def ListMLE(scores, labels, gradient, curvature):  # type: ignore[no-untyped-def]
        return 0.0


def another_measure() -> None:
    @measure("nDCG")
    def another(labels):  # type: ignore[no-untyped-def]
        return 0.0


def another_ranker() -> None:
    type("LinearRanker", (Ranker,), {"__module__": __name__})


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (another_format, "'letor' belongs to another format"),
        (another_algorithm, r"'adaptive' belongs to another algorithm: podium\..*\.adaptive"),
        (another_model, "'RankSVM' belongs to another model"),
        (another_engine, "'xgboost' belongs to another engine"),
        (another_preset, "'trec_eval' belongs to another preset"),
        (another_loss, "'ListMLE' belongs to another loss: podium.losses.list_mle.ListMLE"),
        (another_measure, "'ndcg' belongs to the measure nDCG"),
        (another_ranker, "'LinearRanker' belongs to another ranker"),
    ],
)
def test_a_name_that_is_taken(register: Callable[[], None], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        register()
    assert Loss.REGISTRY["ListMLE"] is ListMLE
    assert Ranker.KINDS["LinearRanker"] is LinearRanker
    assert ALGORITHMS["adaptive"] is not heap


def test_names_in_any_case_and_near_ones() -> None:
    assert MODELS.named("ranksvm") is MODELS["RankSVM"]
    with pytest.raises(ArgumentError, match=r"no model 'rankvsm'. Did you mean: RankSVM"):
        MODELS.named("rankvsm")
    with pytest.raises(ArgumentError, match=r"no thing 'xyz'. Choose: a, b, c."):
        Registry("thing", {"a": 1, "b": 2}).named("xyz", also=["c"])
