"""A user's own loss: one function, as fast and as welcome as Podium's."""

import math
import pickle
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from podium.errors import ArgumentError, PodiumError
from podium.losses import Focused, ListNet, PairLogistic, loss
from podium.losses.names import loss_names, parse_loss
from tests.losses.cases import one_query, random_query


@loss(convex=True)
def soft_cross_entropy(scores, labels, gradient, curvature, heat=1.0, bonus=(0.0,)):
    """ListNet once more, with labels over a temperature and a bonus for the first rows."""
    asked = np.empty(len(labels))
    for row in range(len(labels)):
        asked[row] = labels[row] / heat
        if row < len(bonus):
            asked[row] += bonus[row]
    asked = np.exp(asked - asked.max())
    asked /= asked.sum()
    peak = scores.max()
    total = np.exp(scores - peak).sum()
    value = 0.0
    for row in range(len(scores)):
        share = math.exp(scores[row] - peak) / total
        value += asked[row] * (peak + math.log(total) - scores[row])
        gradient[row] = share - asked[row]
        curvature[row] = share * (1 - share)
    return value


@loss
def no_parameters(scores, labels, gradient, curvature):
    gradient += labels
    return (labels * scores).sum()


def test_an_own_loss_is_a_loss() -> None:
    random = np.random.default_rng(0)
    own = soft_cross_entropy()
    assert own.convex
    assert own.smooth
    assert not no_parameters().convex
    assert repr(own) == "soft_cross_entropy(heat=1.0, bonus=(0.0,))"
    assert own == soft_cross_entropy(1.0) != soft_cross_entropy(heat=2.0)  # type: ignore[call-arg]
    assert parse_loss("soft_cross_entropy(heat=2.0)") == soft_cross_entropy(heat=2.0)  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(own)) == own
    assert "soft_cross_entropy" in loss_names()
    assert "ListNet once more" in str(soft_cross_entropy.__doc__)
    for _ in range(20):
        scores, labels = random_query(random)
        if len(set(labels)) > 1:
            for one, other in zip(
                one_query(own, scores, labels), one_query(ListNet(), scores, labels), strict=True
            ):
                np.testing.assert_allclose(one, other, atol=1e-12)


def test_parameters_reach_the_function() -> None:
    scores, labels = np.array([0.3, -0.2]), np.array([2.0, 0.0])
    warm = one_query(soft_cross_entropy(heat=2.0), scores, labels)  # type: ignore[call-arg]
    half = one_query(ListNet(), scores, labels / 2)
    np.testing.assert_allclose(warm.gradient, half.gradient)
    helped = one_query(soft_cross_entropy(bonus=(1.0,)), scores, labels)  # type: ignore[call-arg]
    three = one_query(ListNet(), scores, labels + np.array([1, 0]))
    np.testing.assert_allclose(helped.gradient, three.gradient)


def test_an_own_loss_works_in_focused() -> None:
    random = np.random.default_rng(1)
    scores, labels = random.normal(size=9), random.permutation(9).astype(float)
    own = Focused(soft_cross_entropy(), PairLogistic(), k=4)
    theirs = Focused(ListNet(), PairLogistic(), k=4)
    for one, other in zip(
        one_query(own, scores, labels), one_query(theirs, scores, labels), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_functions_that_are_no_losses_are_refused() -> None:
    with pytest.raises(PodiumError, match="Give it scores, labels, gradient, curvature first"):

        @loss
        def too_few(scores, labels):
            return 0.0

    with pytest.raises(PodiumError, match=r"takes \*rest"):

        @loss
        def too_many(scores, labels, gradient, curvature, *rest):
            return 0.0

    with pytest.raises(
        PodiumError, match=r"a parameter smooth\. Every loss has that attribute: rename it"
    ):

        @loss
        def taken(scores, labels, gradient, curvature, smooth=1.0):
            return 0.0


def test_what_numba_cannot_compile_is_told_in_plain_words() -> None:
    @loss
    def through_text(scores, labels, gradient, curvature):
        return float(str(scores[0]))

    @loss
    def of_a_dictionary(scores, labels, gradient, curvature):
        return {"value": scores[0], 1: 2.0}["value"]

    @loss
    def refuses(scores, labels, gradient, curvature):
        if scores[0] > 0:
            raise ValueError("above zero")
        return 1.0

    for wrong in (through_text, of_a_dictionary):
        with pytest.raises(ArgumentError, match=f"Numba cannot compile the loss {wrong.__name__}"):
            wrong().evaluate([1.0, 2.0], [0, 1], [0, 2])
    with pytest.raises(ValueError, match="above zero"):
        refuses().evaluate([1.0, 2.0], [0, 1], [0, 2])
    assert refuses().evaluate([-1.0, 2.0], [0, 1], [0, 2]).total == 1.0


OWN_FILE = """
    from podium.losses import loss
    from podium.kernels.specialize import specialize
    from podium.losses.compiled import over_losses

    @loss
    def factor_times_score(scores, labels, gradient, curvature):
        gradient += {factor}
        return {factor} * scores.sum()

    if __name__ == "__main__":
        value = factor_times_score().evaluate([1.0, 2.0], [0, 1], [0, 2]).total
        loop = specialize(over_losses, {{"query_loss": factor_times_score().query}})
        stats = loop.compiled.stats
        print(value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_compiled_code_is_kept_on_disk_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "own_file.py"

    def run(factor: int) -> list[float]:
        text = dedent(OWN_FILE).format(factor=factor)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        done = subprocess.run(
            [sys.executable, file], capture_output=True, text=True, check=True, timeout=300
        )
        return [float(part) for part in done.stdout.split()]

    assert run(2) == [6, 0, 1]
    assert run(2) == [6, 1, 0]
    assert run(33) == [99, 0, 1]
