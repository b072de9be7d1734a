"""What all losses share: arrays in and out, weights, threads, errors, and being values."""

import copy
import pickle

import numpy as np
import pytest

from podium import losses
from podium.errors import ArgumentError, DataError, PodiumError
from podium.losses import (
    Focused,
    LambdaLoss,
    ListMLE,
    ListNet,
    Loss,
    PairHinge,
    PairLogistic,
    RankCosine,
    StructuralHinge,
)
from podium.losses.names import loss_names, parse_loss
from tests.losses.cases import LOSSES


def _many(queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    offsets = np.concatenate(([0], np.cumsum(random.integers(1, 12, queries))))
    rows = int(offsets[-1])
    return random.normal(size=rows), random.integers(0, 5, rows).astype(np.float32), offsets


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_threads_and_types_of_arrays_do_not_change_the_result(
    loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores, labels, offsets = _many(3000)
    scores = scores.astype(np.float32)
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        results.append(loss.evaluate(scores, labels, offsets))
    for array in (labels, offsets):
        array.flags.writeable = False
    strided = np.repeat(scores.astype(np.float64), 2)[::2]
    results.append(loss.evaluate(strided, labels, offsets.astype(np.int32)))
    for result in results[1:]:
        for one, other in zip(results[0], result, strict=True):
            assert one.tobytes() == other.tobytes()


def test_results_can_be_written_to_arrays_at_hand() -> None:
    scores, labels, offsets = _many(50)
    out = np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    result = ListMLE().evaluate(scores, labels, offsets, out=out)
    assert result.gradient is out[0]
    assert result.curvature is out[1]
    again = ListMLE().evaluate(scores, labels, offsets)
    for one, other in zip(result, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_weights_multiply_a_querys_part() -> None:
    scores, labels, offsets = _many(50)
    weights = np.random.default_rng(1).random(50)
    plain = PairLogistic().evaluate(scores, labels, offsets)
    weighted = PairLogistic().evaluate(scores, labels, offsets, query_weights=weights)
    by_row = np.repeat(weights, np.diff(offsets))
    np.testing.assert_allclose(weighted.values, weights * plain.values)
    np.testing.assert_allclose(weighted.gradient, by_row * plain.gradient)
    np.testing.assert_allclose(weighted.curvature, by_row * plain.curvature)
    assert weighted.total == pytest.approx(weights @ plain.values)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_queries_without_rows_are_allowed(loss: Loss) -> None:
    assert loss.evaluate([], [], [0]).total == 0
    result = loss.evaluate([1.0, 0.0], [1, 0], [0, 0, 2, 2])
    alone = loss.evaluate([1.0, 0.0], [1, 0], [0, 2])
    assert result.values.tolist() == [0, alone.total, 0]
    np.testing.assert_array_equal(result.gradient, alone.gradient)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1, 2], [0, 1]), "2 labels for 1 scores"),
        (([1.0], [1], [0, 2]), "offsets do not divide 1 rows"),
        (([1.0, 2.0], [1, 1], [0, 2, 1, 2]), "offsets do not divide 2 rows"),
        (([1.0], [1], []), "offsets do not divide 1 rows"),
        (([np.nan], [1], [0, 1]), "a score is NaN or infinite"),
        (([np.inf], [1], [0, 1]), "a score is NaN or infinite"),
        (([1.0], [np.nan], [0, 1]), "a label is NaN or infinite"),
        ((["a"], [1], [0, 1]), "scores are not numbers"),
        (([[1.0]], [1], [0, 1]), "scores have 2 dimensions"),
    ],
)
def test_wrong_arrays_are_refused(arguments: tuple[list[object], ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ListMLE().evaluate(*arguments)


def test_large_scores_are_finite_although_their_sum_is_not() -> None:
    result = PairHinge().evaluate([1.7e308, 1.7e308], [1, 1], [0, 2])
    assert result.values.tolist() == [0]


def test_wrong_outputs_and_weights_are_refused() -> None:
    short, narrow = np.empty(1), np.empty(2, np.float32)
    for out in ((np.empty(2), short), (narrow, np.empty(2))):
        with pytest.raises(DataError, match="an output array has the wrong shape or type"):
            ListMLE().evaluate([1.0, 2.0], [1, 0], [0, 2], out=out)
    with pytest.raises(DataError, match="2 weights for 1 queries"):
        ListMLE().evaluate([1.0, 2.0], [1, 0], [0, 2], query_weights=[1, 2])


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3"])
@pytest.mark.parametrize("kind", [PairHinge, ListMLE, ListNet, RankCosine, LambdaLoss])
def test_a_wrong_k_is_refused(kind: type[ListMLE], k: object) -> None:
    with pytest.raises(PodiumError, match=r"k is .*\. Give an integer of at least 1"):
        kind(k=k)  # type: ignore[arg-type]


def test_k_may_be_a_number_of_numpys() -> None:
    assert repr(ListMLE(k=np.int64(5))) == "ListMLE(k=5)"  # type: ignore[arg-type]


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(PodiumError, match="Give 'all' or 'across'"):
        PairHinge(pairs="some")  # type: ignore[arg-type]
    with pytest.raises(PodiumError, match="Give a number from 0 to 1"):
        Focused(ListNet(), PairLogistic(), beta=1.5)
    for wrong in (
        {"gains": "exp"},
        {"gains": ()},
        {"discounts": (1, float("nan"))},
        {"table": ((0, 1), (0, 1, 2))},
        {"table": ((0,),)},
        {"steepness": 0},
    ):
        with pytest.raises(PodiumError):
            LambdaLoss(**wrong)


def test_labels_without_a_gain_are_refused() -> None:
    for loss in (LambdaLoss(gains=(0, 1)), LambdaLoss(table=((0, 1), (0, 0.5)))):
        for labels in ([2, 0], [0.5, 0], [-1, 0]):
            with pytest.raises(DataError, match="not a grade from 0 to 1"):
                loss.evaluate([1.0, 2.0], labels, [0, 2])


def test_too_many_permutations_are_refused_alone_and_in_focused() -> None:
    scores = np.zeros(20)
    for loss in (ListNet(permutations=True), Focused(ListNet(permutations=True), PairLogistic())):
        with pytest.raises(DataError, match="too many for all permutations"):
            loss.evaluate(scores, np.arange(20), [0, 20])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_loss_is_a_value(loss: Loss) -> None:
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), parse_loss(repr(loss))):
        assert twin == loss
        assert hash(twin) == hash(loss)
        assert repr(twin) == repr(loss)
    assert len({loss, copy.deepcopy(loss)}) == 1


def test_scikit_learn_clones_a_loss() -> None:
    base = pytest.importorskip("sklearn.base")
    loss = Focused(ListNet(), PairHinge(k=3), beta=0.3)
    assert base.clone(loss, safe=False) == loss


def test_names_are_those_of_losses_that_can_be_made() -> None:
    own = {type(loss).__name__ for loss in LOSSES}
    others = {"Loss", "CompiledLoss", "PairLoss", "TopLoss", "OwnLoss"}
    assert own == {name for name in losses.__all__ if name in loss_names()}
    assert not others & set(loss_names())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ListMLE", ListMLE()),
        (" ListMLE( k = 5 ) ", ListMLE(k=5)),
        ("StructuralHinge('ap', 'slack', k=None)", StructuralHinge("ap", "slack")),
        ("Focused(ListMLE(k=3), PairHinge, .25, k=3)", Focused(ListMLE(3), PairHinge(), 0.25, 3)),
        ("LambdaLoss(gains=[0, 1], discounts=(1, .5))", LambdaLoss((0, 1), (1, 0.5))),
    ],
)
def test_losses_are_read_from_text(text: str, expected: Loss) -> None:
    assert parse_loss(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ListMLe(k=3)", "Did you mean: ListMLE"),
        ("lambdrank", r"Did you mean: LambdaRank \(LambdaLoss\)"),
        ("lamdaMART", r"Did you mean: LambdaMART \(LambdaLoss\)"),
        ("Nothing", "Choose: .*ListMLE"),
        ("ListMLE(m=3)", "unexpected keyword argument 'm'"),
        ("ListMLE(k=)", "Write it like"),
        ("ListMLE\0", "Write it like"),
        ("ListMLE(k={[]: 1})", "is not a valid value"),
        ("3", "Write it like"),
        ("ListMLE(k=__import__('os'))", "There is no loss '__import__'"),
        ("ListMLE(k=(lambda: 3)())", "is not a valid value"),
        ("os.ListMLE()", "is not a valid value"),
        ("ListMLE(**{'k': 3})", r"unexpected keyword argument '\*\*'"),
    ],
)
def test_other_text_is_refused_and_not_run(text: str, message: str) -> None:
    with pytest.raises(PodiumError, match=message):
        parse_loss(text)


def test_weights_are_of_queries_or_of_rows() -> None:
    with pytest.raises(ArgumentError, match="weights of queries and of rows"):
        PairHinge().evaluate(
            [0.0, 0.0], [1, 0], [0, 2], query_weights=[5.0], row_weights=[1.0, 1.0]
        )


@pytest.mark.parametrize(
    "loss",
    [
        Focused(ListNet(), PairHinge(), beta=np.linspace(0.1, 0.9, 5)[1]),  # type: ignore[arg-type]
        LambdaLoss(k=np.int64(5), steepness=np.float32(0.5)),  # type: ignore[arg-type]
    ],
)
def test_numbers_of_numpy_are_written_as_pythons(loss: losses.Loss) -> None:
    assert "np." not in repr(loss)
    assert parse_loss(repr(loss)) == loss
