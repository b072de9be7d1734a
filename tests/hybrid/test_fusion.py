"""Fusions: the engine's formulas step by step, files, and what is refused."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from itertools import product

import numpy as np
import pytest

from podium.data import Rankings
from podium.errors import ArgumentError, DataError
from podium.hybrid import Fusion
from podium.hybrid.fusion import COMBINATIONS, NORMALIZATIONS, QueryWeights, fuse, normalize

NAN = float("nan")
F = np.float32


def normalized_list(scores, normalization, rank_constant):
    """OpenSearch's formulas for one list, best first, written without arrays."""
    scores = [F(each) for each in scores]
    if not scores:
        return []
    if normalization == "min-max":
        low, high = min(scores), max([F(1.4e-45), *scores])
        if low == high:
            return [F(1)] * len(scores)
        return [(each - low) / (high - low) or F(0.001) for each in scores]
    if normalization == "l2":
        total = F(0)
        for each in scores:
            total = F(total + each * each)
        norm = F(math.sqrt(total))
        return [F(0) if norm == 0 else each / norm for each in scores]
    if normalization == "z-score":
        doubles = [float(each) for each in scores]
        mean = math.fsum(doubles) / len(doubles)
        deviation = F(np.std(doubles, ddof=1) if len(doubles) > 1 else 0)
        result = []
        for each in scores:
            if each == F(mean):
                result.append(max(scores))
            elif deviation == 0:
                result.append(min(scores))
            else:
                value = (each - F(mean)) / deviation
                result.append(F(0.001) if value <= 0 else value)
        return result
    if normalization == "rank":
        ten = Decimal("1e-10")
        return [
            F((Decimal(1) / (rank_constant + at)).quantize(ten, ROUND_HALF_UP))
            for at in range(1, len(scores) + 1)
        ]
    return scores


def combined_score(values, weights, combination, normalization):
    total, weight_sum = F(0), F(0)
    for value, weight in zip(values, map(F, weights), strict=True):
        if combination in ("arithmetic", "rrf"):
            if value >= 0 or normalization == "none":
                total, weight_sum = F(total + value * weight), F(weight_sum + weight)
        elif value > 0:
            weight_sum = F(weight_sum + weight)
            if combination == "geometric":
                total = F(float(total) + float(weight) * math.log(float(value)))
            else:
                total = F(total + weight / value)
    if combination == "rrf":
        return total
    if weight_sum == 0 or (combination == "harmonic" and total <= 0):
        return F(0)
    if combination == "geometric":
        return F(math.exp(total / weight_sum))
    return total / weight_sum if combination == "arithmetic" else weight_sum / total


def expected_scores(votes, fusion):
    """Score the documents of one query."""
    table = np.zeros(votes.shape, np.float32)
    for column in range(votes.shape[1]):
        rows = [row for row in range(len(votes)) if not np.isnan(votes[row, column])]
        rows.sort(key=lambda row: -F(votes[row, column]))
        rows = rows[: fusion.depth]
        values = normalized_list(
            [votes[row, column] for row in rows], fusion.normalization, fusion.rank_constant
        )
        table[rows, column] = values
    return [
        combined_score(row, fusion.weights, fusion.combination, fusion.normalization)
        for row in table
    ]


def random_votes(rng, lists):
    """Lists with ties, zeros, negative scores, single documents, and documents left out."""
    rows = rng.integers(1, 9)
    votes = rng.normal(size=(rows, lists)) * 10.0 ** rng.integers(-3, 4, lists)
    if rng.random() < 0.5:
        votes = np.abs(votes)
    if rng.random() < 0.3:
        votes = np.round(votes)
    if rng.random() < 0.2:
        votes[:, 0] = votes[0, 0]
    votes[rng.random(votes.shape) < rng.choice([0.0, 0.4, 0.8])] = np.nan
    return votes


@pytest.mark.parametrize(
    ("normalization", "combination"),
    [
        (normalization, combination)
        for normalization, combination in product(NORMALIZATIONS, COMBINATIONS)
        if combination != "rrf" or normalization == "rank"
    ],
)
def test_scores_are_those_of_the_formulas(normalization, combination):
    rng = np.random.default_rng(NORMALIZATIONS.index(normalization))
    for _ in range(150):
        lists = int(rng.integers(1, 5))
        fusion = Fusion(
            tuple(f"list {number}" for number in range(lists)),
            normalization,
            combination,
            tuple(rng.integers(0, 4, lists) + (np.arange(lists) == 0)),
            int(rng.integers(1, 80)),
            None if rng.random() < 0.6 else int(rng.integers(1, 5)),
        )
        queries = [random_votes(rng, lists) for _ in range(3)]
        offsets = np.cumsum([0, *map(len, queries)])
        scores = fuse(np.concatenate(queries), offsets, fusion)
        expected = np.concatenate([expected_scores(votes, fusion) for votes in queries])
        # Sums in another order of addition may differ in the last digit.
        tolerance = 0 if normalization in ("min-max", "rank", "none") else 3e-7
        np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=0)


def test_documented_edge_cases():
    def scores(votes, normalization="min-max", combination="arithmetic", **options):
        names = tuple("abc"[: len(votes[0])])
        fusion = Fusion(names, normalization, combination, **options)
        return fuse(votes, [0, len(votes)], fusion).round(4).tolist()

    assert scores([[7.0]]) == [1.0]  # one document
    assert scores([[7.0], [7.0]]) == [1.0, 1.0]  # all scores equal
    assert scores([[0.0], [0.0]]) == [0.001, 0.001]  # but zeros are below the least number
    assert scores([[9.0, NAN], [5.0, NAN]]) == [0.5, 0.0005]  # a list without documents counts
    assert scores([[-1.0], [-3.0]])[1] == 0.001  # negative
    assert scores([[-1.0], [-3.0]])[0] == pytest.approx(0.6667, abs=1e-4)
    assert scores([[5.0], [1.0]], "z-score") == [0.7071, 0.001]
    assert scores([[5.0]], "z-score") == [5.0]  # as in the engine: its raw score
    assert scores([[5.0], [3.0], [1.0]], "z-score") == [1.0, 5.0, 0.001]
    assert scores([[4.0, NAN], [1.0, 1.0]], "min-max", "geometric") == [1.0, 0.0316]
    assert scores([[4.0, NAN], [1.0, 1.0]], "min-max", "harmonic") == [1.0, 0.002]
    assert scores([[2.0, 9.0], [2.0, 8.0]], "rank", "rrf") == [0.0164, 0.0161]
    assert scores([[3.0], [2.0], [1.0]], depth=2) == [1.0, 0.001, 0.0]


def test_the_order_of_rows_and_columns_does_not_matter():
    rng = np.random.default_rng(5)
    votes = rng.random((30, 3))
    votes[rng.random(votes.shape) < 0.3] = np.nan
    names, weights = ("a", "b", "c"), (0.2, 0.5, 0.3)
    rows, columns = rng.permutation(30), [2, 0, 1]
    for normalization in NORMALIZATIONS:
        fusion = Fusion(names, normalization, weights=weights)
        moved = Fusion(
            tuple(names[at] for at in columns),
            normalization,
            weights=tuple(weights[at] for at in columns),
        )
        scores = fuse(votes, [0, 30], fusion)
        same = fuse(votes[rows][:, columns], [0, 30], moved)
        np.testing.assert_allclose(same, scores[rows], rtol=1e-6)


def test_normalized_scores_are_combined():
    votes = np.array([[3.0, NAN], [1.0, 4.0], [2.0, 2.0]])
    fusion = Fusion(("a", "b"), weights=(1, 3))
    values = normalize(votes, [0, 3], fusion)
    np.testing.assert_allclose(values @ fusion.weights, fuse(votes, [0, 3], fusion), rtol=1e-6)
    assert values[0, 1] == 0


def test_weights_of_each_query():
    votes = [[3.0, 1.0], [1.0, 4.0], [3.0, 1.0], [1.0, 4.0]]
    scores = fuse(votes, [0, 2, 4], Fusion(("a", "b")), query_weights=[[1, 0], [0, 1]])
    assert scores.argsort().tolist() == [1, 2, 0, 3] or scores.round(3).tolist() == [
        1.0, 0.001, 0.001, 1.0,
    ]  # fmt: skip
    per_query = QueryWeights(("words",), (2.0,), (1.0,), ((-0.25,), (0.25,)))
    weights = per_query.weights((0.5, 0.5), [[2.0], [3.0], [NAN], [9.0]])
    np.testing.assert_allclose(weights, [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5], [0.0, 1.0]])


def test_runs_are_fused_by_name():
    first = Rankings.from_columns(["q", "q"], ["a", "b"], [2.0, 1.0])
    second = Rankings.from_columns(["q", "r"], ["b", "c"], [5.0, 4.0])
    fusion = Fusion(("bm25", "dense"), weights=(1, 3))
    fused = fusion.rank({"dense": second, "bm25": first, "other": second})
    scores = dict(zip(fused.document_ids.to_pylist(), fused.scores.round(5), strict=True))
    assert scores == pytest.approx({"a": 0.25, "b": 0.75025, "c": 0.75})
    with pytest.raises(DataError, match="no list 'dense'"):
        fusion.rank({"bm25": first})
    per_query = QueryWeights(("words",), (2.0,), (1.0,), ((-0.25,), (0.25,)))
    chosen = Fusion(("bm25", "dense"), per_query=per_query)
    fused = chosen.rank({"bm25": first, "dense": second}, query_features={"q": [3.0]})
    scores = dict(zip(fused.document_ids.to_pylist(), fused.scores.round(4), strict=True))
    assert scores == pytest.approx({"a": 0.25, "b": 0.7503, "c": 0.5}, abs=1e-4)


@pytest.mark.parametrize(
    "fusion",
    [
        Fusion(("bm25", 'dense "v2" ü\\')),
        Fusion(("a", "b", "c"), "rank", "rrf", (1, 2, 3), 20, 50, ("c",)),
        Fusion(
            ("a", "b"),
            "none",
            weights=(1 / 3, 2 / 3),
            per_query=QueryWeights(("w",), (1.5,), (0.1,), ((1e-300,), (-2.0,))),
        ),
    ],
)
def test_a_file_has_the_same_fusion(fusion, tmp_path):
    path = tmp_path / "hybrid.toml"
    fusion.save(path)
    loaded = Fusion.load(path)
    assert loaded.per_query == fusion.per_query
    assert loaded.lists == fusion.lists
    assert (loaded.normalization, loaded.combination) == (fusion.normalization, fusion.combination)
    assert (loaded.rank_constant, loaded.depth) == (fusion.rank_constant, fusion.depth)
    assert loaded.columns == fusion.columns
    np.testing.assert_allclose(loaded.weights, fusion.weights, rtol=1e-15)
    loaded.save(tmp_path / "again.toml")
    assert Fusion.load(tmp_path / "again.toml") == Fusion.load(tmp_path / "again.toml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a fusion of version 1"),
        ("version = 1", "no lists"),
        ("version = 2\nlists = ['a']", "version 1"),
        ("version = 1\nlists = 'a'", "lists is not a list"),
        ("version = 1\nlists = []", "0 lists"),
        ("version = 1\nlists = ['a', 'a']", "appears twice"),
        ('version = 1\nlists = ["a\\u0000"]', "printable"),
        ("version = 1\nlists = ['a']\nweights = [1, 2]", "weights"),
        ("version = 1\nlists = ['a']\nweights = [nan]", "weights"),
        ("version = 1\nlists = ['a']\nweights = [-1]", "weights"),
        ("version = 1\nlists = ['a']\nweights = [0]", "weights"),
        ("version = 1\nlists = ['a']\nweights = [true]", "weights"),
        ("version = 1\nlists = ['a']\nweights = [1e999]", "weights"),
        ("version = 1\nlists = ['a', 'b']\nweights = [1e308, 1e308]", "weights"),
        ("version = 1\nlists = ['a']\nnormalization = 'minmax'", "min-max"),
        ("version = 1\nlists = ['a']\ncombination = 'rrf'", "rank"),
        ("version = 1\nlists = ['a']\nrank_constant = 0", "rank_constant"),
        ("version = 1\nlists = ['a']\nrank_constant = 1.5", "rank_constant"),
        ("version = 1\nlists = ['a']\ndepth = true", "depth"),
        ("version = 1\nlists = ['a']\ndepth = 100000", "depth"),
        ("version = 1\nlists = ['a']\ncolumns = ['a']", "not all"),
        ("version = 1\nlists = ['a', 'b']\ncolumns = ['c']", "columns"),
        ("version = 1\nlists = ['a']\ncode = 'x'", "key 'code'"),
        ("version = 1\nlists = ['a']\nper_query = 3", "not a table"),
        ("version = 1\nlists = ['a']\n[per_query]\nfeatures = ['w']", "no means"),
        (
            "version = 1\nlists = ['a']\n[per_query]\nfeatures = ['w']\nmeans = [1]\n"
            "scales = [0]\ncoefficients = [[1]]",
            "scale",
        ),
        (
            "version = 1\nlists = ['a']\n[per_query]\nfeatures = ['w']\nmeans = [1]\n"
            "scales = [1]\ncoefficients = [['x']]",
            "coefficients",
        ),
        (
            "version = 1\nlists = ['a']\n[per_query]\nfeatures = ['w']\nmeans = [1]\n"
            "scales = [1]\ncoefficients = [[1], [1]]",
            "one row for each list",
        ),
        ("a = [", "not TOML"),
        ("a = " + "[" * 10_000, "not TOML"),
        ("a = " + "9" * 10_000, "not TOML"),
        ("#" * (1 << 21), "larger than"),
    ],
)
def test_other_files_are_refused(text, problem, tmp_path):
    path = tmp_path / "hybrid.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=problem) as caught:
        Fusion.load(path)
    assert "hybrid.toml" in str(caught.value)


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="no normalization 'minmax'"):
        Fusion(("a",), "minmax")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="rrf"):
        Fusion(("a",), combination="rrf")
    with pytest.raises(DataError, match="2 columns"):
        fuse([[1, 2]], [0, 1], Fusion(("a",)))
    with pytest.raises(DataError, match="infinite"):
        fuse([[np.inf]], [0, 1], Fusion(("a",)))
    with pytest.raises(DataError, match="single precision"):
        fuse([[1e300]], [0, 1], Fusion(("a",)))
    for weights in ([[1]], [[1, -1]], [[1, NAN]], [[1, 1], [1, 1]]):
        with pytest.raises(DataError, match="query_weights"):
            fuse([[1, 2]], [0, 1], Fusion(("a", "b")), query_weights=weights)


def test_columns_are_of_all_documents():
    run = Rankings.from_columns(["q"] * 3, ["a", "b", "c"], [3.0, 2.0, 1.0])
    fusion = Fusion(("margin", "bm25"), weights=(1, 3), depth=2, columns=("margin",))
    fused = fusion.rank({"bm25": run}, columns={"margin": {"c": 5.0, "a": 1.0, "b": 3.0}})
    scores = dict(zip(fused.document_ids.to_pylist(), fused.scores, strict=True))
    assert scores == pytest.approx({"a": 0.75025, "b": 0.12575, "c": 0.25})
    with pytest.raises(DataError, match="no list 'margin'"):
        fusion.rank({"bm25": run})


def test_nothing_to_fuse():
    assert fuse(np.empty((0, 1)), [0], Fusion(("a",))).shape == (0,)
    assert fuse([[NAN, NAN]], [0, 1], Fusion(("a", "b"))).tolist() == [0.0]
