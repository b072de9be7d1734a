"""Whether intervals of click models and of counterfactual estimates cover what they are about."""

from __future__ import annotations

import tempfile
from typing import Any, NamedTuple

import numpy as np

from podium.clicks import (
    ClickModel,
    SimulatedUser,
    evaluate_policy,
    fit_clicks,
    simulate_clicks,
)
from podium.data import Dataset, Rankings
from podium.errors import DataError

DEPTH = 6
_LOW, _HIGH = 0.93, 0.97
_WORLDS = 100


class Figure(NamedTuple):
    """A figure and its target, as a report takes them."""

    what: str
    measured: float
    target: float
    at_least: bool = True
    unit: str = ""


def coverage_rows(quick: bool) -> tuple[list[Figure], list[str]]:
    """Return the coverage of 95 % intervals, and notes on models that are wrong."""
    logs = 6 if quick else 200
    # Intervals are about other queries like these: the truth is that of all of them.
    everywhere = SimulatedUser("pbm", noise=0.0)
    truth_of_value = np.mean(
        [_reranked(_world(10_000 + number), everywhere)[1] for number in range(_WORLDS)]
    )
    examination: list[bool] = []
    labels: list[bool] = []
    estimates: dict[str, list[bool]] = {"ips": [], "self_normalized": [], "doubly_robust": []}
    for number in range(logs):
        data, user = _world(number), SimulatedUser("pbm", noise=0.0)
        with tempfile.TemporaryDirectory() as folder:
            log = simulate_clicks(
                data, f"{folder}/log", user=user, policy="1", searches=40, depth=DEPTH,
                shuffled=0.3, random_state=number,
            )  # fmt: skip
            model = fit_clicks(log, "pbm", depth=DEPTH)
            seen = model.examination
            assert seen is not None
            truth = user.examination(DEPTH)[seen.ranks - 1]
            examination += ((seen.low <= truth) & (truth <= seen.high))[1:].tolist()
            labels += _inside(model, data, user)
            # Another ranking is evaluated from a log that shows its documents at all ranks.
            swapped = simulate_clicks(
                data, f"{folder}/swapped", user=user, policy="1", searches=120, depth=DEPTH,
                shuffled=0.6, random_state=number,
            )  # fmt: skip
            target, _ = _reranked(data, user)
            result = evaluate_policy(swapped, target, depth=DEPTH)
            for name, covered in estimates.items():
                estimate = getattr(result, name)
                covered.append(estimate.low <= truth_of_value <= estimate.high)
    figures = [
        *_between("95 % intervals of examination cover", examination, quick),
        *_between("95 % intervals of labels cover", labels, quick),
        *(
            figure
            for name, covered in estimates.items()
            for figure in _between(
                f"95 % intervals, {name.replace('_', ' ')}, cover", covered, quick
            )
        ),
    ]
    return figures, [_wrong(user, quick) for user in ("cascade", "dbn")]


def _world(seed: int) -> Dataset:
    """Draw attractiveness from a beta distribution; a policy that knows it roughly."""
    random = np.random.default_rng([31, seed])
    attractive = random.beta(1, 4, 960)
    attractive[0] = 1.0
    order = attractive + random.normal(0, 0.1, 960)
    # Labels whose gains are the attractiveness.
    return Dataset.from_arrays(order[:, None], np.log2(1 + attractive), group=[12] * 80)


def _inside(model: ClickModel, data: Dataset, user: SimulatedUser) -> list[bool]:
    table = model.labels()
    truth = user.attractiveness(data.labels, float(data.labels.max()))
    rows = data.offsets[np.array(table["query"].to_pylist(), int)]
    own = truth[rows + np.array(table["document_id"].to_pylist(), int)]
    low, high = (table[name].to_numpy() for name in ("low", "high"))
    inside: list[bool] = ((low <= own) & (own <= high)).tolist()
    return inside


def _reranked(data: Dataset, user: SimulatedUser) -> tuple[Rankings, float]:
    """Return rankings that differ a little from the policy's, and their clicks per search.

    The first two documents of the policy are swapped in half of the queries.
    """
    truth = user.attractiveness(data.labels, float(data.labels.max()))
    seen = user.examination(DEPTH)
    queries: list[str] = []
    documents: list[str] = []
    scores: list[int] = []
    value = 0.0
    for query in range(len(data)):
        begin, end = data.offsets[query : query + 2]
        order = np.argsort(-data.features[begin:end, 0], kind="stable")[:DEPTH]
        if query % 2:
            order[:2] = order[1::-1]
        value += float(seen @ truth[begin + order])
        queries += [str(query)] * DEPTH
        documents += [str(each) for each in order]
        scores += range(DEPTH, 0, -1)
    return Rankings.from_columns(queries, documents, scores), value / len(data)


def _between(what: str, covered: list[bool], quick: bool) -> list[Figure]:
    share = float(np.mean(covered))
    # A few logs say little: the range is as wide as chance makes it.
    slack = 3 * float(np.sqrt(0.95 * 0.05 / len(covered))) if quick or len(covered) < 1000 else 0.0
    return [
        Figure(f"{what}, at least", share, _LOW - slack, True, ""),
        Figure(f"{what}, at most", share, min(_HIGH + slack, 1.0), False, ""),
    ]


def _wrong(user: Any, quick: bool) -> str:
    """Return how the position-based model does on users who are of another kind."""
    covered: list[bool] = []
    for number in range(1 if quick else 50):
        data, users = _world(number), SimulatedUser(user, noise=0.0)
        with tempfile.TemporaryDirectory() as folder:
            log = simulate_clicks(
                data, f"{folder}/log", user=users, policy="1", searches=40, depth=DEPTH,
                shuffled=0.3, random_state=number,
            )  # fmt: skip
            try:
                covered += _inside(fit_clicks(log, "pbm", depth=DEPTH), data, users)
            except DataError as error:
                return f"pbm on {user} users: {error}"
    return (
        f"the model is wrong: intervals of pbm's labels cover {np.mean(covered):.0%} of users of "
        f"{user} (not a target)"
    )
