"""Models of the literature, with the choices of their papers and parameter grids.

``models.rank_svm(k=10)`` returns a ranker that is fitted, saved and tuned like any other;
``get_model("RankSVM")`` finds a model by the name in its paper. Except for the boosted models and
the cascade, a model is a loss, and the scorer can be chosen: in the papers it is linear.
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
from podium.rankers.tuning import with_parameters
from podium.registry import Registry

Scorer: TypeAlias = Literal["linear", "lightgbm", "xgboost", "neural"]
"""The scorers that can minimize a loss."""

Grid: TypeAlias = Mapping[str, Sequence[Any]]
"""The values to try for each parameter."""

_FACTORIES: Registry[Callable[[Loss | str], Ranker]] = Registry(
    "scorer",
    {
        "linear": LinearRanker,
        "lightgbm": lambda loss: TreeRanker(loss, engine="lightgbm"),
        "xgboost": lambda loss: TreeRanker(loss, engine="xgboost"),
        "neural": NeuralRanker,
    },
)
SCORERS = tuple(_FACTORIES)
"""The names of all scorers."""

_SCORER_GRIDS: dict[str, Grid] = {
    # Corresponds to an SVM's C of 1e-5 to 10 for about a thousand queries.
    "linear": {"alpha": [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]},
    "lightgbm": {"num_leaves": [7, 15, 31], "learning_rate": [0.03, 0.1]},
    "xgboost": {"max_depth": [3, 4, 6], "learning_rate": [0.03, 0.1]},
    "neural": {"hidden_layer_sizes": [(), (64,), (64, 32)], "learning_rate": [1e-3, 1e-2]},
}
_BETAS = (0.1, 0.3, 0.5, 0.7, 0.9)


def make_ranker(scorer: str, loss: Loss | str, **parameters: Any) -> Ranker:
    """Make a ranker by the name of its scorer; parameters it does not have go to its engine.

    Example:
        >>> make_ranker("linear", "ListNet(k=10)", alpha=0.1)
        LinearRanker(alpha=0.1, loss='ListNet(k=10)')
    """
    return with_parameters(_FACTORIES.named(scorer)(loss), parameters)


def scorer_grid(scorer: str) -> Grid:
    """The parameters of a scorer that are worth choosing on validation queries.

    Example:
        >>> sorted(scorer_grid("lightgbm"))
        ['learning_rate', 'num_leaves']
    """
    return _SCORER_GRIDS[scorer]


@dataclass(frozen=True)
class Model:
    """A model of the literature; call it to make a ranker.

    Attributes:
        name: Its name in the paper.
        paper: The authors and year of the paper.
        loss: Makes the loss for a given k, for a model that is a loss with any scorer.
        loss_grid: Makes the losses to try for a given k, for a loss with a parameter to tune.
        factory: Makes the ranker for a given k, for a model that is not a loss.
        param_grid: The parameter grid of a model that is not a loss.

    Example:
        >>> list_mle(k=5, alpha=0.1)
        LinearRanker(alpha=0.1, loss=ListMLE(k=5))
        >>> focused_net(k=10, scorer="lightgbm", n_estimators=50).n_estimators
        50
        >>> sorted(rank_svm.grid())
        ['alpha']
    """

    name: str
    paper: str
    loss: Callable[[int | None], Loss] | None = None
    loss_grid: Callable[[int | None], list[Loss]] | None = None
    factory: Callable[[int | None], Ranker] | None = None
    param_grid: Grid = field(default_factory=dict)

    def __call__(
        self, k: int | None = None, *, scorer: Scorer = "linear", **parameters: Any
    ) -> Ranker:
        """Make a ranker with the choices of the paper.

        Args:
            k: The k of the top-k form; None for the full order.
            scorer: The scorer that minimizes the loss.
            parameters: Parameters of the ranker.
        """
        if self.loss is not None:
            return make_ranker(scorer, self.loss(k), **parameters)
        if scorer != "linear":
            raise ArgumentError(f"{self.name} has its own scorer", hint="Leave out the scorer.")
        assert self.factory is not None  # a model has a loss or a factory
        return with_parameters(self.factory(k), parameters)

    def grid(self, k: int | None = None, *, scorer: Scorer = "linear") -> Grid:
        """Return the parameter grid of the model, for ``podium.rankers.tune``."""
        if self.loss is None:
            return self.param_grid
        losses_to_try = {"loss": self.loss_grid(k)} if self.loss_grid is not None else {}
        return {**scorer_grid(scorer), **losses_to_try}


def _focused_svm(k: int | None, beta: float = 0.5) -> Loss:
    # To AP, all of the top k are relevant in any order: here, only the upper half is.
    upper = None if k is None else (k + 1) // 2
    return Focused(StructuralHinge("ap", k=upper), PairHinge(scaled=True), beta=beta, k=k)


def _focused_net(k: int | None, beta: float = 0.5) -> Loss:
    # Exact over all orders of the top k as long as there are few subsets.
    exact = k is not None and k <= 10
    return Focused(losses.ListNet(permutations=exact), PairLogistic(), beta=beta, k=k)


def _ada_rank(k: int | None) -> Ranker:
    list_measure = "AP" if k is None else f"nDCG@{k}"
    return BoostedRanker(beta=1.0, k=k, list_measure=list_measure, weak_ranker="feature")


def _focused_boost(k: int | None) -> Ranker:
    list_measure = "nDCG" if k is None else f"nDCG@{k}"
    return BoostedRanker(beta=0.5, k=k, list_measure=list_measure)


def _top_rank(k: int | None) -> Ranker:
    """TopSlack selects the candidates; regression, RankSVM and ListNet vote."""
    return CascadeRanker(
        LinearRanker(StructuralHinge("ndcg", "slack", k=k or 10)),
        [
            LinearRanker(losses.SquaredError(k=k)),
            LinearRanker(PairHinge(k=k)),
            LinearRanker(losses.ListNet(k=k)),
        ],
    )


rank_svm = Model("RankSVM", "Herbrich et al. 2000; Joachims 2002", lambda k: PairHinge(k=k))
"""Hinge losses of pairs."""

rank_net = Model("RankNet", "Burges et al. 2005", lambda k: PairLogistic(k=k))
"""Logistic losses of pairs."""

list_net = Model("ListNet", "Cao et al. 2007", lambda k: losses.ListNet(k=k))
"""The cross entropy of top-one probabilities."""

list_mle = Model("ListMLE", "Xia et al. 2008, 2009", lambda k: losses.ListMLE(k=k))
"""The likelihood of the order, or of its top k, under Plackett-Luce."""

rank_cosine = Model("RankCosine", "Qin et al. 2008", lambda k: losses.RankCosine(k=k))
"""The angle between scores and labels."""

svm_map = Model("SVMMAP", "Yue et al. 2007", lambda k: StructuralHinge("ap", k=k))
"""A structural support vector machine for average precision."""

top_margin = Model(
    "TopMargin", "Cheng et al. 2014", lambda k: StructuralHinge("ndcg", "margin", k=k or 10)
)
"""A structural support vector machine for NDCG at the top, with margin rescaling."""

top_slack = Model(
    "TopSlack", "Cheng et al. 2014", lambda k: StructuralHinge("ndcg", "slack", k=k or 10)
)
"""A structural support vector machine for NDCG at the top, with slack rescaling."""

focused_svm = Model(
    "FocusedSVM",
    "Niu et al. 2012",
    _focused_svm,
    lambda k: [_focused_svm(k, beta) for beta in _BETAS],
)
"""SVM-MAP on the order of the top k, RankSVM between them and the rest."""

focused_net = Model(
    "FocusedNet",
    "Niu et al. 2012",
    _focused_net,
    lambda k: [_focused_net(k, beta) for beta in _BETAS],
)
"""ListNet on the order of the top k, RankNet between them and the rest."""

rank_boost = Model("RankBoost", "Freund et al. 2003", factory=lambda k: BoostedRanker(k=k))
"""Boosted thresholds for pairs; early stopping chooses their number."""

ada_rank = Model("AdaRank", "Xu and Li 2007", factory=_ada_rank)
"""Boosted features for lists, by average precision, or by nDCG@k with a k."""

focused_boost = Model(
    "FocusedBoost", "Niu et al. 2012", factory=_focused_boost, param_grid={"beta": _BETAS}
)
"""Boosted thresholds: AdaRank on the order of the top k, RankBoost between them and the rest."""

top_rank = Model("TopRank", "Cheng et al. 2014", factory=_top_rank)
"""TopSlack selects candidates, and supervised Kemeny combines the votes of three rerankers."""

MODELS: Registry[Model] = Registry(
    "model",
    {
        model.name: model
        for model in (
            rank_svm,
            rank_boost,
            rank_net,
            list_net,
            list_mle,
            rank_cosine,
            ada_rank,
            svm_map,
            top_margin,
            top_slack,
            focused_svm,
            focused_boost,
            focused_net,
            top_rank,
        )
    },
)
"""Every model by its name in the paper."""


def get_model(name: str) -> Model:
    """Return a model by its name in the paper, in any capitalization.

    Example:
        >>> get_model("ranksvm").name
        'RankSVM'
    """
    return MODELS.named(name)
