"""Which queries: slices, the search for them, hard queries, and both lists of single queries."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from benchmarks import _gates as gates
from podium.data import Judgments
from podium.data.sources import as_judgments, as_rankings
from podium.errors import DataError
from podium.measures import compare, require, slice_differences
from podium.measures.comparison.details import Details
from podium.measures.comparison.formats import as_json, as_latex, as_markdown
from podium.measures.comparison.html import as_html
from podium.measures.comparison.next_judgments import next_judgments
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.single_queries import hard_queries, moved_lists
from podium.measures.comparison.slice_differences import search_slices
from podium.measures.comparison.slices import property_columns, slices_of
from podium.measures.comparison.statistics import paired_difference
from podium.measures.comparison.unjudged import unjudged_bounds
from podium.measures.names import parse_measure
from podium.measures.presets import conventions_named


def comparison_of(values: np.ndarray) -> Comparison:
    """A comparison by P@100 with known values of two decimals; the first is the baseline."""
    counts = np.rint(100 * values).astype(int)
    truth = {
        f"q{query}": {f"r{rank}": 1 for rank in range(100)} | {"n0": 0}
        for query in range(len(values))
    }
    runs = {
        f"s{system}": {
            f"q{query}": {
                **{f"r{rank}": 200.0 - rank for rank in range(count)},
                **{f"n{rank}": 99.0 - rank for rank in range(100 - count)},
            }
            for query, count in enumerate(counts[:, system].tolist())
        }
        for system in range(values.shape[1])
    }
    return compare("P@100", truth, runs, test="t")


def test_slices_are_tested_with_the_seed_of_the_comparison() -> None:
    random = np.random.default_rng(3)
    truth = {f"q{query}": {f"d{rank}": int(random.integers(3)) for rank in range(8)} | {"d0": 1}
             for query in range(60)}  # fmt: skip
    runs = {
        name: {query: {each: float(random.random()) for each in items}
               for query, items in truth.items()}
        for name in ("old", "new")
    }  # fmt: skip
    p_values = []
    for seed in (0, 7):
        comparison = compare("nDCG@5", truth, runs, test="randomization", random_state=seed)
        (row,) = slice_differences(comparison, {"all": dict.fromkeys(truth, "yes")})
        whole = comparison.against_baseline["nDCG@5"]["new"].difference.p_values["randomization"]
        assert row.p_value == whole
        p_values.append(whole)
    assert p_values[0] != p_values[1]


def test_a_column_is_sliced_by_its_values_or_in_three_ranges() -> None:
    columns: dict[str, list] = {
        "kind": ["a", "b", "a", None, "b", "a", "a", "a", "a", "b", "b", "b"],
        "words": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, None],
        "few": [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2],
        "text": [f"query {row}" for row in range(12)],
    }
    slices = slices_of(columns)
    assert [(each.name, len(each)) for each in slices] == [
        ("kind=a", 6),
        ("kind=b", 5),
        ("words=up to 4", 4),
        ("words=above 4 up to 7", 3),
        ("words=above 7", 4),
        ("few=1", 6),
        ("few=2", 6),
    ]
    assert np.flatnonzero(slices[3].members).tolist() == [4, 5, 6]


def test_properties_are_a_table_or_a_mapping_in_any_order() -> None:
    table = pa.table({"qid": [2, 1, 3], "kind": ["b", "a", "c"]})
    assert property_columns(table, ["1", "2"]) == {"kind": ["a", "b"]}
    assert property_columns({"kind": {1: "a", 2: "b"}}, ["1", "2"]) == {"kind": ["a", "b"]}
    numbers = [np.int64(3), np.float32(0.5), math.nan, math.inf, 10**400, True]
    column = {"n": dict(enumerate(numbers))}
    expected = {"n": [3, 0.5, None, None, str(10**400), True]}
    assert property_columns(column, [*"012345"]) == expected
    with pytest.raises(DataError, match="list"):
        property_columns(["a"], ["1"])
    with pytest.raises(DataError, match="no properties"):
        property_columns(pa.table({"qid": [1]}), ["1"])
    with pytest.raises(DataError, match="id is missing"):
        property_columns(pa.table({"qid": ["1", None], "kind": ["a", "b"]}), ["1"])
    with pytest.raises(DataError, match="Name it query_id"):
        property_columns(pa.table({"kind": ["a"]}), ["1"])


def test_slices_have_the_paired_test_of_their_queries_and_a_corrected_one() -> None:
    random = np.random.default_rng(1)
    values = random.random((30, 3))
    comparison = comparison_of(values)
    kinds = {f"q{query}": "abc"[query % 3] for query in range(30)}
    rows = slice_differences(comparison, {"kind": kinds})
    assert [(row.system, row.name) for row in rows] == [
        (system, f"kind={kind}") for system in ("s1", "s2") for kind in "abc"
    ]
    table = comparison.values["P@100"]
    for row, (column, part) in zip(
        rows, [(column, part) for column in (1, 2) for part in range(3)], strict=True
    ):
        expected = paired_difference(table[part::3, column], table[part::3, 0])
        assert (row.queries, row.mean) == (10, pytest.approx(expected.mean))
        assert (row.low, row.high) == pytest.approx((expected.low, expected.high))
        assert row.p_value == pytest.approx(expected.p_values["t"])
    expected_q = stats.false_discovery_control([row.p_value for row in rows])
    assert [row.q_value for row in rows] == pytest.approx(expected_q.tolist())


def test_the_search_finds_a_planted_slice_and_tests_it_on_other_queries() -> None:
    random = np.random.default_rng(2)
    words, language = random.integers(1, 20, 200), random.choice(["de", "de", "en", "fr"], 200)
    bad = (words > 12) & (language == "de")
    old = np.full(200, 0.5)
    new = old + 0.05 * random.normal(size=200) + np.where(bad, -0.3, 0.0)
    comparison = comparison_of(np.column_stack([old, new]))
    properties = {
        "words": {f"q{query}": int(count) for query, count in enumerate(words)},
        "language": {f"q{query}": str(name) for query, name in enumerate(language)},
    }
    rows = search_slices(comparison, properties, random_state=5)
    worst = min(rows, key=lambda row: row.mean)
    assert set(worst.name.split(" and ")) == {"language = de", "words > 12"}
    assert worst.q_value < 0.001
    assert worst.mean == pytest.approx(-0.3, abs=0.03)
    assert sum(row.queries for row in rows) == 100  # the other half
    # The first half of the seeded permutation took part in the search only.
    tested = np.random.default_rng(5).permutation(200)[100:]
    inside = bad[tested]
    table = comparison.values["P@100"]
    differences = (table[:, 1] - table[:, 0])[tested][inside]
    assert worst.queries == int(inside.sum())
    assert worst.mean == pytest.approx(float(differences.mean()))


def test_there_is_nothing_to_search_in_few_queries_or_without_conditions() -> None:
    random = np.random.default_rng(3)
    few = comparison_of(random.random((30, 2)))
    assert search_slices(few, {"kind": {f"q{query}": query % 2 for query in range(30)}}) == ()
    many = comparison_of(random.random((60, 2)))
    assert search_slices(many, {"kind": {f"q{query}": "a" for query in range(60)}}) == ()


def test_false_discoveries_of_slices_are_few_and_planted_ones_are_found() -> None:
    shares, power = gates.slice_discoveries(repeats=100, planted=2, seed=1)
    # The mean of shares between 0 and 1: within three of its errors.
    assert float(np.mean(shares)) <= 0.05 + 3 * float(np.std(shares)) / math.sqrt(len(shares))
    assert power > 0.8


def test_searched_slices_of_systems_that_do_not_differ_are_seldom_discoveries() -> None:
    share = gates.searched_discoveries(repeats=100, seed=2)
    assert share <= stats.binom.ppf(0.999, 100, 0.05) / 100


def test_hard_queries_are_those_whose_best_system_is_worst() -> None:
    values = np.array([[0.9, 0.8], [0.1, 0.2], [0.9, 0.1], [0.0, 0.1], [0.9, 0.9], [0.4, 0.3]])
    comparison = comparison_of(values)
    hard = hard_queries(comparison, comparison.measures[0])
    assert [(each.query_id, each.values) for each in hard] == [
        ("q3", pytest.approx((0.0, 0.1))),
        ("q1", pytest.approx((0.1, 0.2))),
    ]
    assert hard_queries(comparison, comparison.measures[0], count=1) == hard[:1]


TRUTH = {"p": {"a": 2, "b": 0, "z": 1}, "q": {"a": 1, "x": 0}}
OLD = {"p": {"a": 9, "u": 8, "b": 7, "v": 6}, "q": {"w": 9, "a": 8}}
NEW = {"p": {"u": 9, "a": 8, "v": 7, "b": 6}, "q": {"a": 9, "w": 8, "<y>": 7}}


def judgments() -> Judgments:
    return as_judgments(TRUTH)


def test_lists_have_labels_titles_and_the_rank_in_the_other_list() -> None:
    systems = {"old": as_rankings(OLD), "new": as_rankings(NEW)}
    comparison = compare("nDCG@2", judgments(), systems)
    lists = moved_lists(comparison, judgments(), systems, texts={"q": "a query"}, titles={"w": "W"})
    values = comparison.values["nDCG@2"]
    assert [(each.query_id, each.text, each.system) for each in lists] == [
        ("q", "a query", "new"),
        ("p", "", "new"),
    ]
    assert lists[0].difference == pytest.approx(values[1, 1] - values[1, 0])
    shown = [
        [(each.document_id, each.title, each.label, each.other_rank) for each in ranked]
        for ranked in (lists[0].baseline, lists[0].ranked)
    ]
    assert shown == [
        [("w", "W", None, 2), ("a", "", 1.0, 1)],
        [("a", "", 1.0, 2), ("w", "W", None, 1)],
    ]


def test_bounds_tell_whether_the_sign_could_turn() -> None:
    bounds = unjudged_bounds(
        parse_measure("DCG@2"),
        conventions_named("podium"),
        judgments(),
        as_rankings(OLD),
        as_rankings(NEW),
        name="new",
    )
    second = 1 / math.log2(3)
    # p: a and u swap ranks 1 and 2; q: w and a do. Gains are 2^label - 1, labels at most 2.
    judged = (3 * second - 3 + 1 - second) / 2
    assert (bounds.unjudged, bounds.queries) == (2, 2)
    assert bounds.difference == pytest.approx(judged)
    assert bounds.most == pytest.approx(judged + 3 * (1 - second) / 2)
    assert bounds.least == pytest.approx(judged - 3 * (1 - second) / 2)
    assert bounds.could_turn == (bounds.least * bounds.most < 0)


def test_every_report_has_the_details_escaped() -> None:
    systems = {"old": as_rankings(OLD), "<new>": as_rankings(NEW)}
    comparison = compare("nDCG@3", judgments(), systems)
    details = Details(
        require(comparison,
            "nDCG@3 > baseline in each kind", properties={"kind": {"p": "<b>", "q": "<b>"}}
        ),
        slices=slice_differences(comparison, {"kind": {"p": "<b>", "q": "<b>"}}),
        hard=hard_queries(comparison, comparison.measures[0]),
        unjudged=(
            unjudged_bounds(
                parse_measure("nDCG@3"), conventions_named("podium"), judgments(),
                systems["old"], systems["<new>"], name="<new>",
            ),
        ),
        lists=moved_lists(
            comparison, judgments(), systems, texts={"p": "<script>"}, titles={"u": "<img>" * 99}
        ),
        systems=comparison.systems,
    )  # fmt: skip
    page = as_html(comparison, details)
    for text in (
        "kind=&lt;b&gt;",
        "&lt;script&gt;",
        "&lt;img&gt;",
        "&lt;y&gt;",
        "Unjudged results",
    ):
        assert text in page
    for tag in ("<b>&", "<script>", "<img>", "<y>", "<new>"):
        assert tag not in page
    assert "…" in page  # a title of any length takes two lines
    content = json.loads(as_json(comparison, details))
    assert content["slices"][0]["slice"] == "kind=<b>"
    assert content["decision"]["ships"] == {"<new>": False}
    assert content["lists"][0]["ranked"][0]["label"] in (None, 1.0, 2.0)
    assert content["unjudged"][0]["unjudged"] == 4
    assert "| kind=&lt;b> |" in as_markdown(comparison, details)
    for text in (as_markdown(comparison, details), as_latex(comparison, details)):
        assert "Requirements: 1 of 1 not shown" in text
        assert "Unjudged results" in text


@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_queries_without_a_value_are_on_no_side_of_a_search(kind: str) -> None:
    random = np.random.default_rng(3)
    numbers = random.integers(1, 20, 400)
    is_known = random.random(400) < 0.5
    old = np.full(400, 0.5)
    new = old + 0.05 * random.normal(size=400) - np.where(numbers > 12, 0.3, 0.0)
    comparison = comparison_of(np.column_stack([old, new]))
    column = {
        f"q{row}": None if not known else int(each) if kind == "numbers" else str(each > 12)
        for row, (each, known) in enumerate(zip(numbers, is_known, strict=True))
    }
    rows = search_slices(comparison, {"words": column}, random_state=5)
    assert min(row.mean for row in rows) == pytest.approx(-0.3, abs=0.06)
    tested = np.random.default_rng(5).permutation(400)[200:]
    assert sum(row.queries for row in rows) == int(is_known[tested].sum())


def test_a_query_that_one_system_lacks_makes_no_difference() -> None:
    truth = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1, "b": 0}}
    ranked = {"a": 3.0, "b": 2.0, "c": 1.0}
    old, new = {"q1": ranked}, {"q1": ranked, "q2": ranked}
    assert next_judgments("recip_rank", truth, old, new).difference == 0.0
    assert next_judgments("RR", truth, old, new).difference == 0.5  # Podium counts it as 0
