"""What the same seed guarantees: equal bytes, for most rankers with any number of threads."""

import numpy as np
import pytest
from sklearn.base import clone

from podium.data import Dataset
from podium.losses import ListNet
from podium.rankers import BoostedRanker, CascadeRanker, LinearRanker, Ranker, TreeRanker
from podium.rankers.empirical_risk import block_risk
from podium.threads import over_queries
from tests.rankers.made_up import made_up

RANKERS: dict[str, Ranker] = {
    "smooth": LinearRanker("ListNet()"),
    "hinge": LinearRanker("PairHinge(k=5)", tol=1e-2),
    "lambda": LinearRanker("LambdaLoss(k=5)", max_iter=20),
    "focused": LinearRanker("Focused(ListMLE(k=3), PairLogistic(k=3), k=3)", max_iter=30),
    "lightgbm": TreeRanker(n_estimators=10),
    "boosted": BoostedRanker(beta=0.5, k=5, n_estimators=5),
    "cascade": CascadeRanker(LinearRanker("ListNet()"), [TreeRanker(n_estimators=3)]),
}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return made_up(1000, 25, noise=1.0)  # enough rows for several ranges of queries


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", RANKERS)
def test_the_number_of_threads_does_not_change_a_byte(
    kind: str, data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        ranker = clone(RANKERS[kind]).fit(data, eval_set=made_up(20, seed=4))
        found.add((ranker.to_bytes(), ranker.predict(data).tobytes()))
    assert len(found) == 1


def test_sums_over_queries_are_the_same_for_any_number_of_threads(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = np.random.default_rng(0).normal(size=6)
    found = set()
    for threads in ("1", "2", "3", "16"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        value, slope = block_risk(ListNet(), weights, data)
        found.add((value, slope.tobytes()))
    assert len(found) == 1


def test_ranges_of_queries_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = np.arange(0, 100_001, 10)
    ranges = []
    for threads in ("1", "8"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        ranges.append(over_queries(lambda first, last: (first, last), offsets))
        nested = over_queries(lambda _first, _last: over_queries(lambda *r: r, offsets), offsets)
        assert all(each == ranges[0] for each in nested)
    assert ranges[0] == ranges[1]
    assert len(ranges[0]) == 100_000 // 4096
