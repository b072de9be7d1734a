"""Ctrl-C ends a fit, and everything around it; what was learned so far is kept."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold

from podium.losses.names import parse_loss
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
    tune,
)
from podium.rankers.base import FitInterrupted
from podium.rankers.fit_progress import Progress
from tests.rankers.made_up import made_up

RANKERS: dict[str, Ranker] = {
    "smooth": LinearRanker("ListMLE(k=5)"),
    "hinge": LinearRanker("PairHinge(k=5)"),
    "lambda": LinearRanker("LambdaLoss(k=5)"),
    "lightgbm": TreeRanker(n_estimators=50),
    "xgboost": TreeRanker(engine="xgboost", n_estimators=50),
    "neural": NeuralRanker(hidden_layer_sizes=(4,), epochs=50),
    "boosted": BoostedRanker(n_estimators=50),
}


def at_step(last: int) -> Progress:
    calls = []

    def interrupt(_step: int, _loss: float, _value: float | None) -> None:
        calls.append(_step)
        if len(calls) == last:
            raise KeyboardInterrupt

    return interrupt


@pytest.mark.parametrize("kind", RANKERS)
def test_an_interrupted_fit_raises_and_keeps_its_model(kind: str) -> None:
    data, ranker = made_up(), RANKERS[kind]
    losses: list[float] = []
    stop = at_step(4)

    def progress(step: int, loss: float, value: float | None) -> None:
        losses.append(loss)
        stop(step, loss, value)

    with pytest.raises(FitInterrupted):
        ranker.fit(data, progress=progress)
    assert len(losses) == 4
    scores = ranker.predict(data)
    if isinstance(ranker, TreeRanker):
        short = TreeRanker(engine=ranker.engine, n_estimators=4).fit(data)
        assert ranker.n_estimators_ == 4
        np.testing.assert_array_equal(scores, short.predict(data))
    if isinstance(ranker, NeuralRanker):
        short = NeuralRanker(hidden_layer_sizes=(4,), epochs=4).fit(data)
        np.testing.assert_array_equal(scores, short.predict(data))
    if isinstance(ranker, BoostedRanker):
        np.testing.assert_array_equal(
            ranker.estimator_weights_, BoostedRanker(n_estimators=4).fit(data).estimator_weights_
        )
    if isinstance(ranker, LinearRanker):
        assert not ranker.converged_
        assert np.isnan(ranker.objective_)
        assert ranker.n_iter_ >= 4
        assert np.ptp(scores) > 0
    if kind == "smooth":  # the others report a stand-in of their loss, or that before the step
        found = parse_loss("ListMLE(k=5)").evaluate(scores, data.labels, data.offsets)
        squared = ranker.coef_ @ ranker.coef_
        assert losses[-1] == pytest.approx(found.total / len(data) + 1e-4 / 2 * squared)


class Unreadable(Exception):
    """Stands for anything that goes wrong in a fit."""


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, Unreadable])
def test_a_fit_that_ends_before_its_first_step_leaves_the_ranker_unfitted(
    kind: str, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranker = RANKERS[kind]

    def fail(*_: object, **__: object) -> None:
        raise stop

    target = "podium.rankers.validation_monitor.ValidationMonitor.__call__"
    monkeypatch.setattr(target, fail)
    with pytest.raises(stop) as raised:
        ranker.fit(made_up())
    assert raised.type is stop
    with pytest.raises(NotFittedError):
        ranker.predict(made_up())


def test_validation_keeps_the_best_model_before_the_interrupt() -> None:
    train, held_out = made_up(10, noise=2.0), made_up(30, noise=2.0, seed=3)
    seen: list[float] = []

    def stop_late(_step: int, _loss: float, value: float | None) -> None:
        assert value is not None
        seen.append(value)
        if len(seen) == 25:
            raise KeyboardInterrupt

    ranker = TreeRanker("ListMLE(k=5)", n_estimators=200, early_stopping_rounds=None)
    with pytest.raises(FitInterrupted):
        ranker.fit(train, eval_set=held_out, progress=stop_late)
    assert ranker.n_estimators_ == int(np.argmax(seen)) + 1 < 25


class Stopped(LinearRanker):
    """A ranker whose every fit is interrupted after two steps."""

    fits = 0

    def fit(self, X: object, y: object = None, **options: object) -> "Stopped":
        Stopped.fits += 1
        return super().fit(X, y, **{**options, "progress": at_step(2)})  # type: ignore[arg-type]


def test_searches_and_cascades_end_with_the_first_interrupted_fit() -> None:
    data = made_up(12)
    fits = Stopped.fits
    with pytest.raises(KeyboardInterrupt):
        tune(Stopped(), {"alpha": [0.1, 0.2, 0.3]}, data, data)
    with pytest.raises(KeyboardInterrupt):
        CascadeRanker(Stopped(), [Stopped(), Stopped()]).fit(data)
    search = GridSearchCV(Stopped(), {"alpha": [0.1, 0.2, 0.3]}, cv=GroupKFold(3))
    with pytest.raises(KeyboardInterrupt):
        search.fit(data.features, data.labels, groups=data.query_of_row, group=[4 * 25 * 2])
    assert Stopped.fits == fits + 3


def test_a_cascade_that_was_interrupted_is_not_fitted() -> None:
    cascade = CascadeRanker(LinearRanker(), [Stopped()])
    with pytest.raises(KeyboardInterrupt) as raised:
        cascade.fit(made_up(12))
    with pytest.raises(NotFittedError):
        cascade.predict(made_up(12))
    assert raised.type is KeyboardInterrupt
