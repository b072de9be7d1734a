"""What must hold of every measure on any data: order of rows, blocks, threads, scores, bounds."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Judgments, Rankings
from podium.measures import Conventions, evaluate
from podium.measures.compiled import blocks, ranking
from podium.measures.evaluation import concat_evaluations
from podium.measures.names import parse_measure
from podium.measures.registry import definition_of, measure_definitions
from tests.measures.queries import Arrays, arrays, mq2008

NAMES = [
    kind.name
    for kind in measure_definitions()
    if not kind.on_pairs and kind.function.__module__.startswith("podium.")
]
CUT = [f"{name}@4" for name in NAMES if definition_of(parse_measure(name)).takes_cut_off]
ALL = [*NAMES, *CUT]
# Means over the ranks of relevant documents, which are other ranks after a swap.
MONOTONE = [name for name in ALL if name not in ("RelNDCG", "NGain")]


def values(queries: Arrays, names: list[str] = ALL, **choices: object) -> np.ndarray:
    labels, scores, group = queries
    chosen = Conventions(**choices)  # type: ignore[arg-type]
    result = evaluate(names, labels, scores, group=group, conventions=chosen)
    return np.array([result[name] for name in names])


@given(arrays(), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(queries: Arrays, random: object) -> None:
    labels, scores, group = queries
    order = np.arange(len(labels))
    random.shuffle(order)  # type: ignore[attr-defined]
    qid = np.repeat(np.arange(len(group)), group)
    mixed = evaluate(ALL, labels[order], scores[order], qid=qid[order])
    back = [mixed.query_ids.to_pylist().index(str(query)) for query in range(len(group))]
    result = np.array([mixed[name][back] for name in ALL])
    assert result == pytest.approx(values(queries), abs=1e-12)


@given(arrays())
def test_only_the_order_of_scores_matters(queries: Arrays) -> None:
    labels, scores, group = queries
    doubled = (labels, np.exp(scores.astype(np.float64) / 50) * 7 - 3, group)
    assert np.array_equal(values(queries), values(doubled))


@given(arrays())
def test_bounds(queries: Arrays) -> None:
    counts = {name for name in NAMES if definition_of(parse_measure(name)).aggregate == "sum"}
    unbounded = {"DCG", "WKT", "DCG@4", "SetUtility", "YAAP", *counts}
    result = values(queries)
    for name, own in zip(ALL, result, strict=True):
        assert name in ("SetUtility", "YAAP") or (own >= 0).all(), name
        assert name in unbounded or (own <= 1 + 1e-12).all(), name


@given(arrays())
def test_the_order_of_labels_is_perfect(queries: Arrays) -> None:
    labels, _, group = queries
    best = ["nDCG", "AP", "Compat", "kNDCG", "R", "Rprec", "bpref", "nDCG@4"]
    perfect = values((labels, labels, group), best, ties="best", nothing_relevant=1)
    assert perfect == pytest.approx(np.ones(perfect.shape))
    losses = values((labels, labels, group), ["WKT", "TopKLoss"], nothing_relevant=1)
    assert not losses.any()


@given(arrays(), st.integers(0, 5), st.integers(1, 8))
def test_wkt_is_a_bound_however_short_the_list_is(queries: Arrays, listed: int, k: int) -> None:
    labels, scores, group = queries
    topics = np.repeat([f"q{query}" for query in range(len(group))], group)
    documents = [f"d{row}" for row in range(len(labels))]
    judgments = Judgments.from_columns(topics, documents, labels)
    kept = np.concatenate([np.arange(size) < listed for size in group])
    run = Rankings.from_columns(topics[kept], np.array(documents)[kept], scores[kept])
    for ties, nothing in product(("expected", "input order"), (0, 0.5, 1, "skip")):
        chosen = Conventions(ties=ties, nothing_relevant=nothing)  # type: ignore[arg-type]
        result = evaluate([f"WKT(k={k})", f"nDCG@{k}"], judgments, run, conventions=chosen)
        some = ~np.isnan(result[f"nDCG@{k}"])
        assert np.all(result[f"WKT(k={k})"][some] >= 1 - result[f"nDCG@{k}"][some] - 1e-12)


def test_wkt_of_short_lists() -> None:
    judgments = Judgments.from_columns(["q"] * 2, ["a", "b"], [1, 1])

    def wkt(*documents: str) -> float:
        run = Rankings.from_columns(
            ["q"] * len(documents), documents, -np.arange(len(documents)), name="run"
        )
        return float(evaluate("WKT(k=2)", judgments, run)["WKT(k=2)"][0])

    first, second = 1.0, 1 / math.log2(3)
    share = second / (first + second)
    assert wkt() == 2.0  # both documents are below two irrelevant ones
    assert wkt("a") == pytest.approx(share)  # the other one is below one
    assert wkt("a", "x") == pytest.approx(share)
    assert wkt("x") == 2.0
    assert wkt("a", "b") == 0.0


@pytest.mark.parametrize("name", ["nDCG", "kNDCG"])
def test_the_best_order_has_1_whatever_the_discounts_are(name: str) -> None:
    measure = f"{name}(discounts=[0.5, 1, 0.25])"
    for best in ([1], [0, 1], [1, 2, 1, 0]):
        result = evaluate(measure, best, -np.arange(len(best)), group=[len(best)])
        assert result[measure][0] == pytest.approx(1.0), best
    # Found at the first rank where the second would count twice as much.
    result = evaluate(measure, [1, 0], [2, 1], group=[2])
    assert result[measure][0] == pytest.approx(0.5)
    # An unjudged document can take the first rank as well as an irrelevant one.
    result = evaluate(measure, [math.nan, 1], [2, 1], group=[2])
    assert result[measure][0] == pytest.approx(1.0)


@given(arrays())
def test_ties_lie_between_worst_and_best(queries: Arrays) -> None:
    names = [name for name in MONOTONE if parse_measure(name).larger_is_better]
    worst, best = (values(queries, names, ties=rule) for rule in ("worst", "best"))
    for rule in ("expected", "input order"):
        between = values(queries, names, ties=rule)
        for name, low, own, high in zip(names, worst, between, best, strict=True):
            assert (own >= low - 1e-12).all(), name
            assert (own <= high + 1e-12).all(), name


@given(arrays())
def test_raising_a_relevant_document_does_not_hurt(queries: Arrays) -> None:
    """Swap two neighbors whose labels are in the wrong order."""
    labels, _, group = queries
    ranked = (labels, -np.arange(len(labels), dtype=np.float32), group)
    names = [name for name in MONOTONE if not name.startswith("Judged")]
    before = values(ranked, names)
    starts = np.cumsum(group) - group
    better = labels.copy()
    for start, size in zip(starts, group, strict=True):
        for row in range(start, start + size - 1):
            if better[row] < better[row + 1]:
                better[[row, row + 1]] = better[[row + 1, row]]
                break
    after = values((better, *ranked[1:]), names)
    for name, low, high in zip(names, before, after, strict=True):
        sign = 1 if parse_measure(name).larger_is_better else -1
        assert (sign * high >= sign * low - 1e-12).all(), name


@settings(max_examples=30)
@given(arrays(), st.integers(1, 60))
def test_blocks_do_not_matter(queries: Arrays, rows: int) -> None:
    whole = values(queries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_ROWS", rows)
        assert np.array_equal(values(queries), whole)


@settings(max_examples=30)
@given(arrays())
def test_parts_put_together(queries: Arrays) -> None:
    labels, scores, group = queries
    ends = np.cumsum(group)
    parts = [
        evaluate(
            ALL,
            labels[end - size : end],
            scores[end - size : end],
            qid=[f"q{query}"] * size,
        )
        for query, (end, size) in enumerate(zip(ends, group, strict=True))
    ]
    whole = values(queries)
    joined = concat_evaluations(parts)
    assert np.array_equal([joined[name] for name in ALL], whole)
    assert joined.query_ids.to_pylist() == [f"q{query}" for query in range(len(group))]


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_do_not_matter(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = mq2008(11)
    whole = values(queries)
    monkeypatch.setenv("PODIUM_THREADS", threads)
    assert np.array_equal(values(queries), whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 100, 511, 512, 513, 900, 5000])
def test_long_lists_are_ranked_as_a_stable_sort_ranks_them(size: int, dtype: type) -> None:
    """Across the borders of the algorithms: counting, merging, and selecting the top."""
    generator = np.random.default_rng(size)
    for distinct in (2, size, 10**9):
        scores = generator.integers(0, distinct, size).astype(dtype)
        offsets = np.array([0, size])
        for cut in (1, 10, size // 8, size):
            order = np.empty(size, np.int32)
            kept, tied = np.empty(1, np.int64), np.empty(1, np.bool_)
            wrong = ranking.rank_rows(scores, offsets, 0, 1, max(cut, 1), order, kept, tied)
            expected = np.argsort(-scores, kind="stable")
            assert wrong == -1
            assert kept[0] >= min(max(cut, 1), size)
            assert np.array_equal(order[: kept[0]], expected[: kept[0]])
            top = scores[expected[: kept[0]]]
            assert tied[0] == (len(set(top.tolist())) < len(top))
            # With the last document come all that are tied with it.
            assert kept[0] == size or scores[expected[kept[0]]] < top[-1]


def test_scores_that_differ_beyond_32_bits() -> None:
    scores = 1 + np.arange(300) * 1e-12
    result = evaluate("RR", [*[0] * 299, 1], scores, group=[300])
    assert result["RR"].tolist() == [1.0]
    large = np.array([1e200, 2e200, -1e300])
    assert evaluate("RR", [0, 1, 0], large, group=[3])["RR"].tolist() == [1.0]


def test_infinite_scores() -> None:
    scores = [-math.inf, math.inf, 0.0, -math.inf]
    result = evaluate(["RR", "P@1"], [0, 1, 0, 0], scores, group=[4])
    assert result["RR"].tolist() == [1.0]


def test_kernels_are_kept_on_disk() -> None:
    """A fresh process finds them beside the source, or in Numba's own place."""
    folder = Path(ranking.__file__).parent / "__pycache__"
    assert list(folder.glob("ranking._count-*.nbi")) or list(
        Path.home().glob(".cache/numba/**/ranking._count-*.nbi")
    )
