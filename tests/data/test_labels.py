"""Top-k and full orders of labels, against sorting in plain Python."""

import hashlib
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data import Dataset, concat_datasets
from podium.data.labels import (
    LabelShape,
    from_ranks,
    label_kind,
    label_shape,
    to_full_order,
    to_top_k,
)
from podium.errors import ArgumentError, DataError
from podium.kernels import Floats, Ints
from tests.data.strategies import datasets, float32s

label_lists = st.lists(
    st.lists(st.sampled_from([0, 1, 2, 3, 4]) | float32s, max_size=8), min_size=1, max_size=6
)


def ragged(lists: list[list[float]]) -> tuple[Floats, Ints]:
    labels = np.array([label for each in lists for label in each], np.float32)
    return labels, np.cumsum([0] + [len(each) for each in lists])


def check_order(labels: list[float], ordered: list[float], top: int, kept: int) -> None:
    """Labels top, top - 1, … go to the `kept` best, of equal ones to any; the rest gets 0."""
    assert sorted(ordered, reverse=True) == (
        [top - position for position in range(kept)] + [0] * (len(labels) - kept)
    )
    ranked = sorted(range(len(labels)), key=lambda row: -ordered[row])
    best = sorted(labels, reverse=True)
    assert [labels[row] for row in ranked[:kept]] == best[:kept]


@given(label_lists, st.integers(1, 10), st.integers(0, 2**63 - 1))
def test_top_k_keeps_the_best_in_order(lists: list[list[float]], k: int, seed: int) -> None:
    labels, offsets = ragged(lists)
    ordered = to_top_k(labels, offsets, k, random_state=seed)
    assert ordered.dtype == np.float32
    for begin, end in pairwise(offsets):
        check_order(labels[begin:end].tolist(), ordered[begin:end].tolist(), k, min(k, end - begin))


@given(label_lists, st.integers(0, 2**63 - 1))
def test_full_order_orders_everything(lists: list[list[float]], seed: int) -> None:
    labels, offsets = ragged(lists)
    ordered = to_full_order(labels, offsets, random_state=seed)
    for begin, end in pairwise(offsets):
        check_order(
            labels[begin:end].tolist(), ordered[begin:end].tolist(), end - begin, end - begin
        )


@given(label_lists, st.integers(1, 10), st.integers(0, 99))
def test_top_k_of_a_full_order_is_top_k(lists: list[list[float]], k: int, seed: int) -> None:
    # Niu et al. 2012, 4.2.1: a random total order consistent with the grades, its first k kept.
    labels, offsets = ragged(lists)
    full = to_full_order(labels, offsets, random_state=seed)
    assert np.array_equal(
        to_top_k(full, offsets, k, random_state=12345),
        to_top_k(labels, offsets, k, random_state=seed),
    )


@given(datasets(), st.integers(1, 5), st.integers(0, 99), st.data())
def test_labels_are_the_same_whole_in_shards_and_in_any_order(
    data: Dataset, k: int, seed: int, draw: st.DataObject
) -> None:
    cut = draw.draw(st.integers(0, len(data)))
    shards = [data.select(np.arange(cut)), data.select(np.arange(cut, len(data)))]
    positions = draw.draw(st.permutations(range(len(data))))
    for change in (
        lambda part: part.top_k(k, random_state=seed),
        lambda part: part.full_order(random_state=seed),
    ):
        whole = change(data)
        assert concat_datasets([change(shard) for shard in shards]).equals(whole)
        assert change(data.select(positions)).equals(whole.select(positions))


def test_equal_labels_are_drawn_evenly_and_by_seed() -> None:
    queries, size = 6000, 3
    data = Dataset.from_arrays(
        np.zeros((queries * size, 1)), labels=np.zeros(queries * size), group=[size] * queries
    )
    orders = data.full_order(random_state=3).labels.reshape(queries, size)
    counts = Counter(map(tuple, orders.tolist()))
    assert len(counts) == 6
    expected = queries / 6
    # Chi-square with 5 degrees of freedom: above 20.5 once in a thousand seeds.
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 20.5
    other = data.full_order(random_state=4).labels.reshape(queries, size)
    agreement = np.mean(np.all(orders == other, axis=1))
    assert abs(agreement - 1 / 6) < 0.03


def test_the_seed_and_the_key_draw_the_order_of_a_single_query() -> None:
    """The key of the only query is 0: all six orders of three equal labels come up by the seed."""
    labels, offsets = np.zeros(3, np.float32), np.array([0, 3])
    by_seed = {
        tuple(to_full_order(labels, offsets, random_state=seed).tolist()) for seed in range(60)
    }
    by_key = {
        tuple(to_full_order(labels, offsets, keys=np.array([key])).tolist()) for key in range(60)
    }
    assert len(by_seed) == len(by_key) == 6
    again = [
        to_top_k(labels, offsets, 2, random_state=7, keys=np.array([5])).tolist() for _ in range(2)
    ]
    assert again[0] == again[1]


def test_the_draw_is_a_hash_of_seed_and_key() -> None:
    """SHAKE-256 by the standard library: the same with any version of anything."""
    size, seed, key = 40, 12, -3
    draws = hashlib.shake_256(f"{seed}\x1f{key}".encode()).digest(8 * size)
    numbers = [int.from_bytes(draws[8 * row : 8 * row + 8], "little") for row in range(size)]
    best_first = sorted(range(size), key=numbers.__getitem__)
    ordered = to_full_order(
        np.zeros(size), np.array([0, size]), random_state=seed, keys=np.array([key])
    )
    assert [ordered[row] for row in best_first] == list(range(size, 0, -1))
    # Without keys, a query's is its position.
    two = to_full_order(np.zeros(2 * size), np.array([0, size, 2 * size]), random_state=seed)
    alone = to_full_order(
        np.zeros(size), np.array([0, size]), random_state=seed, keys=np.array([1])
    )
    assert two[size:].tolist() == alone.tolist()


def test_shapes_of_parts_make_the_shape_of_the_whole() -> None:
    full, top = ragged([[2, 1]]), ragged([[3, 2, 0]])
    grades, blank = ragged([[2, 2]]), ragged([[0, 0]])
    parts = {"full": full, "top": top, "grades": grades, "blank": blank}
    for one in parts.values():
        for other in parts.values():
            labels = np.concatenate((one[0], other[0]))
            offsets = np.concatenate((one[1], one[1][-1] + other[1][1:]))
            assert label_shape(*one) | label_shape(*other) == label_shape(labels, offsets)
    assert label_shape(*top).highest == 3
    assert LabelShape() | label_shape(*full) == label_shape(*full)


def test_large_data_use_threads_and_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    offsets = np.concatenate(([0], np.cumsum(random.integers(1, 40, 2000))))
    labels = random.integers(0, 3, offsets[-1]).astype(np.float32)
    ordered = {}
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        ordered[threads] = (
            to_top_k(labels, offsets, 5, random_state=9),
            label_kind(labels, offsets),
        )
    assert all(np.array_equal(each[0], ordered["1"][0]) for each in ordered.values())
    assert {each[1] for each in ordered.values()} == {"grades"}


@given(st.lists(st.integers(1, 20)), st.integers(1, 12))
def test_ranks(ranks: list[int], k: int) -> None:
    ordered = from_ranks(np.array(ranks, np.int64), k=k).tolist()
    assert ordered == [k + 1 - rank if rank <= k else 0 for rank in ranks]


def test_ranks_start_at_one() -> None:
    with pytest.raises(DataError, match="below 1"):
        from_ranks(np.array([2, 0]), k=3)


@pytest.mark.parametrize(
    ("lists", "kind"),
    [
        ([], "blank"),
        ([[0, 0], [0]], "blank"),
        ([[2, 3, 1], [1]], "full order"),
        ([[2, 3, 1], [1, 2]], "full order"),
        ([[2, 3, 1], [0, 1, 0]], "top-k order"),
        ([[3, 0, 2, 1, 0], [0, 0]], "top-k order"),
        ([[5, 4], [3, 4, 5]], "top-k order"),  # k may be larger than a query
        ([[2, 3, 1], []], "full order"),
        ([[1, 0, 0], [0, 1]], "grades"),  # as likely two grades as a top 1
        ([[2, 2, 1]], "grades"),
        ([[3, 1, 0]], "grades"),
        ([[2.5, 1.5, 0.5, 0]], "grades"),
        ([[-1, -2]], "grades"),
        ([[0, -1]], "grades"),
        ([[3, 2]], "top-k order"),
        ([[2, 1], [2, 1, -1]], "grades"),
        ([[2, 1], [], [2, 2]], "grades"),
        ([[2, 1], [], [3, 2]], "top-k order"),
        ([[], [2, 1]], "full order"),
    ],
)
def test_kinds(lists: list[list[float]], kind: str) -> None:
    assert label_kind(*ragged(lists)) == kind


@given(label_lists, st.integers(2, 9), st.integers(0, 9))
def test_kinds_of_orders_made_here(lists: list[list[float]], k: int, seed: int) -> None:
    labels, offsets = ragged(lists)
    if len(labels):
        assert (
            label_kind(to_full_order(labels, offsets, random_state=seed), offsets) == "full order"
        )
        kind = label_kind(to_top_k(labels, offsets, k, random_state=seed), offsets)
        alike = all(len(each) in (0, k) for each in lists)
        assert kind == ("full order" if alike else "top-k order")


@pytest.mark.parametrize("make", [to_full_order, lambda *args, **more: to_top_k(*args, 2, **more)])  # type: ignore[call-arg]
def test_what_cannot_be_ordered(make) -> None:
    labels = np.float32([1, 2, 3])
    with pytest.raises(DataError, match="a label is NaN"):
        make(np.float32([1, np.nan]), np.array([0, 2]))
    for offsets in ([0, 5], [0, 2], [1, 3], [0, 3, 2], []):
        with pytest.raises(DataError, match="do not divide 3 rows"):
            make(labels, np.array(offsets, np.int64))
    with pytest.raises(DataError, match="2 keys for 1 queries"):
        make(labels, np.array([0, 3]), keys=np.zeros(2, np.int64))
    for seed in (2**63, -(2**63) - 1, 10**30):
        with pytest.raises(ArgumentError, match="seed"):
            make(labels, np.array([0, 3]), random_state=seed)


def test_without_a_seed_it_is_0() -> None:
    labels, offsets = np.zeros(60, np.float32), np.array([0, 30, 60])
    for make in (to_full_order, lambda *data, **more: to_top_k(*data, 9, **more)):
        assert make(labels, offsets).tolist() == make(labels, offsets, random_state=0).tolist()
        assert make(labels, offsets).tolist() != make(labels, offsets, random_state=1).tolist()


def test_no_queries_and_no_rows() -> None:
    for offsets in ([0], [0, 0, 0]):
        nothing, positions = np.empty(0, np.float32), np.array(offsets)
        assert (
            to_full_order(nothing, positions).tolist()
            == to_top_k(nothing, positions, 3).tolist()
            == []
        )
        assert label_shape(nothing, positions) == LabelShape(True, True, True, -np.inf)
    assert from_ranks(np.empty(0, np.int64), k=2).tolist() == []


def test_k_is_positive() -> None:
    assert to_top_k(np.float32([1, 3, 2]), np.array([0, 3]), 1).tolist() == [0, 1, 0]
    with pytest.raises(ArgumentError, match="k is 0"):
        to_top_k(np.float32([1]), np.array([0, 1]), 0)


def test_kind_needs_offsets_that_fit() -> None:
    with pytest.raises(DataError, match="do not divide"):
        label_kind(np.float32([1, 2]), np.array([0, 3]))
