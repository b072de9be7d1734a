"""Models of the literature by name, with their papers' choices and parameter grids.

Every name makes a ranker that is fitted, saved and tuned like any other. All but the boosted ones
and the cascade are a loss times a scorer, so they take another scorer: the papers' is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from podium import losses
from podium.errors import ArgumentError
from podium.losses import Focused, Loss, PairHinge, PairLogistic, StructuralHinge
from podium.rankers.base import Ranker
from podium.rankers.boosted import BoostedRanker
from podium.rankers.cascade import CascadeRanker
from podium.rankers.linear import LinearRanker
from podium.rankers.neural import NeuralRanker
from podium.rankers.trees import TreeRanker
from podium.rankers.tune import with_parameters
from podium.registry import Registry

__all__ = [
    "MODELS",
    "SVMMAP",
    "AdaRank",
    "FocusedBoost",
    "FocusedNet",
    "FocusedSVM",
    "ListMLE",
    "ListNet",
    "Model",
    "RankBoost",
    "RankCosine",
    "RankNet",
    "RankSVM",
    "TopMargin",
    "TopRank",
    "TopSlack",
    "make_ranker",
    "model_named",
    "scorer_grid",
]

Scorer: TypeAlias = Literal["linear", "lightgbm", "xgboost", "neural"]
"""What a loss is minimised over."""

Grid: TypeAlias = Mapping[str, Sequence[Any]]
"""The values of each parameter that validation queries choose from."""

_MAKERS: Registry[Callable[[Loss | str], Ranker]] = Registry(
    "scorer",
    {
        "linear": LinearRanker,
        "lightgbm": lambda loss: TreeRanker(loss, engine="lightgbm"),
        "xgboost": lambda loss: TreeRanker(loss, engine="xgboost"),
        "neural": NeuralRanker,
    },
)
SCORERS = tuple(_MAKERS)
"""The names of all scorers."""

_SCORER_GRIDS: dict[str, Grid] = {
    # An SVM's C of 1e-5 to 10 at about a thousand queries.
    "linear": {"penalty": [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]},
    "lightgbm": {"num_leaves": [7, 15, 31], "learning_rate": [0.03, 0.1]},
    "xgboost": {"max_depth": [3, 4, 6], "learning_rate": [0.03, 0.1]},
    "neural": {"hidden": [(), (64,), (64, 32)], "learning_rate": [1e-3, 1e-2]},
}
_BETAS = (0.1, 0.3, 0.5, 0.7, 0.9)


def make_ranker(scorer: str, loss: Loss | str, **parameters: Any) -> Ranker:
    """A ranker by the name of its scorer; what it does not know goes to its engine.

    Example:
        >>> make_ranker("linear", "ListNet(k=10)", penalty=0.1)
        LinearRanker(loss='ListNet(k=10)', penalty=0.1)
    """
    return with_parameters(_MAKERS.named(scorer)(loss), parameters)


def scorer_grid(scorer: str) -> Grid:
    """The parameters of a scorer that are worth choosing on validation queries.

    Example:
        >>> sorted(scorer_grid("lightgbm"))
        ['learning_rate', 'num_leaves']
    """
    return _SCORER_GRIDS[scorer]


@dataclass(frozen=True)
class Model:
    """A model of the literature: call it to make a ranker.

    Attributes:
        name: As in its paper.
        paper: Where it is from.
        loss: For a model that is a loss times a scorer: its loss for a given k.
        losses: For those with a parameter of their own: the losses that its grid tries.
        maker: For the others: a ranker for a given k.
        own_grid: The grid of the others.

    Example:
        >>> ListMLE(k=5, penalty=0.1)
        LinearRanker(loss=ListMLE(k=5), penalty=0.1)
        >>> FocusedNet(k=10, scorer="lightgbm", n_estimators=50).n_estimators
        50
        >>> sorted(RankSVM.grid())
        ['penalty']
    """

    name: str
    paper: str
    loss: Callable[[int | None], Loss] | None = None
    losses: Callable[[int | None], list[Loss]] | None = None
    maker: Callable[[int | None], Ranker] | None = None
    own_grid: Grid = field(default_factory=dict)

    def __call__(
        self, k: int | None = None, *, scorer: Scorer = "linear", **parameters: Any
    ) -> Ranker:
        """A ranker with the paper's choices.

        Args:
            k: The top-k form; None for the full order.
            scorer: What the loss is minimised over.
            parameters: Of the ranker, by its own names.
        """
        if self.loss is not None:
            return make_ranker(scorer, self.loss(k), **parameters)
        if scorer != "linear":
            raise ArgumentError(f"{self.name} is no loss times a scorer. Leave the scorer out.")
        assert self.maker is not None  # a model has a loss or a maker
        return with_parameters(self.maker(k), parameters)

    def grid(self, k: int | None = None, *, scorer: Scorer = "linear") -> Grid:
        """The values that validation queries choose from, for ``podium.rankers.tune``."""
        if self.loss is None:
            return self.own_grid
        own = {"loss": self.losses(k)} if self.losses is not None else {}
        return {**scorer_grid(scorer), **own}


def _focused_svm(k: int | None, beta: float = 0.5) -> Loss:
    # All of the top k are relevant to AP, whatever their order: here, its upper half is.
    upper = None if k is None else (k + 1) // 2
    return Focused(StructuralHinge("ap", k=upper), PairHinge(scaled=True), beta=beta, k=k)


def _focused_net(k: int | None, beta: float = 0.5) -> Loss:
    # Exact over all orders of the top k while their subsets are few.
    exact = k is not None and k <= 10
    return Focused(losses.ListNet(permutations=exact), PairLogistic(), beta=beta, k=k)


def _ada_rank(k: int | None) -> Ranker:
    lists = "AP" if k is None else f"nDCG@{k}"
    return BoostedRanker(beta=1.0, k=k, lists=lists, weak="features")


def _focused_boost(k: int | None) -> Ranker:
    lists = "nDCG" if k is None else f"nDCG@{k}"
    return BoostedRanker(beta=0.5, k=k, lists=lists)


def _top_rank(k: int | None) -> Ranker:
    """TopSlack keeps the candidates; regression, RankSVM and ListNet vote."""
    return CascadeRanker(
        LinearRanker(StructuralHinge("ndcg", "slack", k=k or 10)),
        [
            LinearRanker(losses.SquaredError(k=k)),
            LinearRanker(PairHinge(k=k)),
            LinearRanker(losses.ListNet(k=k)),
        ],
    )


RankSVM = Model("RankSVM", "Herbrich et al. 2000; Joachims 2002", lambda k: PairHinge(k=k))
"""Hinge losses of the pairs."""

RankNet = Model("RankNet", "Burges et al. 2005", lambda k: PairLogistic(k=k))
"""Logistic losses of the pairs."""

ListNet = Model("ListNet", "Cao et al. 2007", lambda k: losses.ListNet(k=k))
"""The cross entropy of who comes first."""

ListMLE = Model("ListMLE", "Xia et al. 2008, 2009", lambda k: losses.ListMLE(k=k))
"""The likelihood of the order, or of its top k, under Plackett-Luce."""

RankCosine = Model("RankCosine", "Qin et al. 2008", lambda k: losses.RankCosine(k=k))
"""The angle between scores and labels."""

SVMMAP = Model("SVMMAP", "Yue et al. 2007", lambda k: StructuralHinge("ap", k=k))
"""A structural support vector machine for average precision."""

TopMargin = Model(
    "TopMargin", "Cheng et al. 2014", lambda k: StructuralHinge("ndcg", "margin", k=k or 10)
)
"""A structural support vector machine for NDCG at the top, margins scaled."""

TopSlack = Model(
    "TopSlack", "Cheng et al. 2014", lambda k: StructuralHinge("ndcg", "slack", k=k or 10)
)
"""The same, slacks scaled."""

FocusedSVM = Model(
    "FocusedSVM",
    "Niu et al. 2012",
    _focused_svm,
    lambda k: [_focused_svm(k, beta) for beta in _BETAS],
)
"""SVM-MAP on the order of the top k, RankSVM between them and the rest."""

FocusedNet = Model(
    "FocusedNet",
    "Niu et al. 2012",
    _focused_net,
    lambda k: [_focused_net(k, beta) for beta in _BETAS],
)
"""ListNet on the order of the top k, RankNet between them and the rest."""

RankBoost = Model("RankBoost", "Freund et al. 2003", maker=lambda k: BoostedRanker(k=k))
"""Boosted thresholds for pairs; validation queries choose the number of rounds."""

AdaRank = Model("AdaRank", "Xu and Li 2007", maker=_ada_rank)
"""Boosted features for lists, by average precision, or with k by nDCG@k."""

FocusedBoost = Model(
    "FocusedBoost", "Niu et al. 2012", maker=_focused_boost, own_grid={"beta": _BETAS}
)
"""Boosted thresholds: AdaRank on the order of the top k, RankBoost between them and the rest."""

TopRank = Model("TopRank", "Cheng et al. 2014", maker=_top_rank)
"""TopSlack keeps candidates, three rerankers vote, supervised Kemeny decides."""

MODELS: Registry[Model] = Registry(
    "model",
    {
        model.name: model
        for model in (
            RankSVM,
            RankBoost,
            RankNet,
            ListNet,
            ListMLE,
            RankCosine,
            AdaRank,
            SVMMAP,
            TopMargin,
            TopSlack,
            FocusedSVM,
            FocusedBoost,
            FocusedNet,
            TopRank,
        )
    },
)
"""Every model by its name."""


def model_named(name: str) -> Model:
    """A model by its name, however it is capitalised.

    Example:
        >>> model_named("ranksvm").name
        'RankSVM'
    """
    return MODELS.named(name)
