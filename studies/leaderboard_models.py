"""What the leaderboard trains: models of the literature, trees with Podium's losses, peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from podium.losses import Focused, SquaredError
from podium.rankers import CascadeRanker, Ranker, models
from podium.rankers.models import (
    Model,
    focused_boost,
    focused_net,
    focused_svm,
    make_ranker,
    scorer_grid,
)
from studies.peers import PEERS, PeerRanker

Truth: TypeAlias = Literal["graded", "top-k"]
Family: TypeAlias = Literal["literature", "trees", "peers", "curve"]

K = 10
"""The k of the top-k truth."""

BETAS = tuple(step / 10 for step in range(11))
"""The points of the curves over beta."""

FOCUSED = (focused_svm, focused_net, focused_boost)
"""The models of the curves."""

TREE_TRIALS = 4
"""Trainings that each entry made of trees, ours or a peer's, may choose from."""


@dataclass(frozen=True)
class Entry:
    """A line of the leaderboard.

    Attributes:
        name: In tables and file names.
        family: Which part of the tables it is in.
        ranker: What is tuned, for a truth.
        grid: What validation queries choose from.
        trials: How many combinations are tried; None means all.
        orders_grades: Whether it wants a strict top-k order, so that grades are made one.
    """

    name: str
    family: Family
    ranker: Callable[[Truth], Ranker]
    grid: Callable[[Truth], Mapping[str, Any]]
    trials: int | None = None
    orders_grades: bool = False


def _k(truth: Truth) -> int | None:
    return K if truth == "top-k" else None


def _model(name: str, model: Model, k: Callable[[Truth], int | None]) -> Entry:
    focused = model.name.startswith("Focused")
    return Entry(
        name,
        "literature",
        lambda truth: model(k(truth)),
        lambda truth: model.grid(k(truth)),
        trials=12 if focused else None,
        orders_grades=focused,
    )


def _literature() -> list[Entry]:
    """Models with the papers' own scorers; those made for the top k have it on grades too."""
    entries = [
        _model(name, model, _k if not name.startswith(("Focused", "Top")) else _always(K))
        for name, model in models.MODELS.items()
    ]
    regression = Model("regression", "Cossock and Zhang 2006", lambda k: SquaredError(k=k))
    entries.append(_model(regression.name, regression, _k))
    return entries + [_model(f"top-{k} ListMLE", models.list_mle, _always(k)) for k in (1, 3, 10)]


def _always(k: int) -> Callable[[Truth], int]:
    return lambda _truth: k


_TREE_LOSSES = {
    "ListMLE": "ListMLE(k=10)",
    "ListNet": "ListNet(k=10)",
    "RankNet": "PairLogistic(k=10)",
    "LambdaLoss": "LambdaLoss(k=10)",
    "regression": "SquaredError(k=10)",
}


def _tree(name: str, loss: str) -> Entry:
    return Entry(
        f"trees {name}",
        "trees",
        lambda _truth: make_ranker("lightgbm", loss),
        lambda _truth: scorer_grid("lightgbm"),
        trials=TREE_TRIALS,
    )


def _vote(_truth: Truth) -> Ranker:
    """Four trainings, as many as others may choose from, spent on losses that differ."""
    losses = ("SquaredError(k=10)", "ListNet(k=10)", "PairLogistic(k=10)", "ListMLE(k=10)")
    base, *others = (
        make_ranker("lightgbm", loss, num_leaves=15, learning_rate=0.05) for loss in losses
    )
    return CascadeRanker(base, others, vote_fraction=1.0, base_votes=True)


def _peer(name: str, grid: Mapping[str, Any]) -> Entry:
    return Entry(
        name,
        "peers",
        lambda _truth: cast("Ranker", PeerRanker(name)),
        lambda _truth: grid,
        trials=TREE_TRIALS,
    )


def _point(model: Model, beta: float) -> Entry:
    """FocusedRank at one beta, all else chosen on validation queries."""

    def ranker(_truth: Truth) -> Ranker:
        if model is focused_boost:
            return focused_boost(K, beta=beta)
        return make_ranker("linear", replace(_focused_loss(model), beta=beta))

    grid = {} if model is focused_boost else {"alpha": [1e-4, 1e-2, 1.0]}
    return Entry(
        f"{model.name} beta {beta}", "curve", ranker, lambda _truth: grid, orders_grades=True
    )


def _focused_loss(model: Model) -> Focused:
    """The loss of a FocusedRank model."""
    loss = None if model.loss is None else model.loss(K)
    assert isinstance(loss, Focused)  # asked of those models only
    return loss


ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        *_literature(),
        *(_tree(name, loss) for name, loss in _TREE_LOSSES.items()),
        Entry("trees vote", "trees", _vote, lambda _truth: {}),
        *(_peer(name, grid) for name, (_train, grid) in PEERS.items()),
        *(_point(model, beta) for beta in BETAS for model in FOCUSED),
    )
}
"""Every entry by its name."""
