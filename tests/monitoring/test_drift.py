"""Planted shifts are found, and unchanged features are rarely reported."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from podium.errors import DataError
from podium.monitoring import Sample, compare_samples
from podium.monitoring.drift import drift_html, stability_index
from tests.cli.run_podium import succeed

NAMES = ("document", "query", "category", "sparse")


def sample(random, queries=300, documents=8, *, mean=0.0, missing=0.1, categories=5):
    """Documents with a feature of their own, one of the query, a category and a missing one."""
    rows = queries * documents
    number = np.repeat(np.arange(queries), documents)
    own = random.normal(mean, 1.0, rows) + random.normal(size=queries)[number]
    of_query = random.normal(size=queries)[number]
    category = random.integers(0, categories, rows).astype(float)
    sparse = np.where(random.random(rows) < missing, np.nan, random.normal(size=rows))
    values = np.column_stack([own, of_query, category, sparse]).astype(np.float32)
    return Sample(NAMES, values, number)


@pytest.mark.parametrize(
    ("change", "name", "test"),
    [
        ({"mean": 1.0}, "document", "Kolmogorov-Smirnov"),
        ({"missing": 0.3}, "sparse", "Kolmogorov-Smirnov"),
        ({"categories": 4}, "category", "chi-square"),
    ],
)
def test_planted_shifts_are_found_first(change, name, test):
    random = np.random.default_rng(1)
    report = compare_samples(sample(random), sample(random, **change))
    assert (report.features[0].name, report.features[0].test) == (name, test)
    assert report.features[0].p_value < 1e-4


def test_unchanged_features_are_reported_in_at_most_one_of_twenty_comparisons():
    random = np.random.default_rng(2)
    repeats = 400
    alarms = dict.fromkeys(NAMES, 0)
    for _ in range(repeats):
        report = compare_samples(sample(random, 60), sample(random, 80))
        for each in report.shifted:
            alarms[each.name] += 1
    # With a rate of 5 %, more than this would be seen in one of a thousand runs.
    most = stats.binom.ppf(0.999, repeats, 0.05)
    assert {name: count for name, count in alarms.items() if count > most} == {}


def test_rows_of_one_query_are_not_taken_for_independent():
    # Few queries with many documents: by rows, the feature of the query would always differ.
    random = np.random.default_rng(3)
    by_rows, by_queries = 0, 0
    for _ in range(50):
        before, now = sample(random, 10, 200), sample(random, 10, 200)
        report = compare_samples(before, now)
        by_queries += "query" in {each.name for each in report.shifted}
        values = before.column("query"), now.column("query")
        by_rows += stats.ks_2samp(*values).pvalue < 0.05
        assert {each.test for each in report.features if each.name == "query"} == {
            "Kolmogorov-Smirnov"
        }
    assert by_rows == 50
    assert by_queries <= 5


def one_per_query(values):
    """Documents of one feature, each of a query of its own."""
    return Sample(("x",), np.asarray(values, np.float32)[:, None], np.arange(len(values)))


def test_few_rows_of_rare_categories_are_tested():
    before = one_per_query(np.arange(1000) % 10)
    same, other = one_per_query(np.arange(20) % 10), one_per_query([3] * 20)
    (unchanged,) = compare_samples(before, same).features
    (shifted,) = compare_samples(before, other).features
    assert (unchanged.test, unchanged.p_value) == ("Fisher", 1.0)
    assert (shifted.test, shifted.p_value) == ("Fisher", pytest.approx(2 / 10_000))


def test_two_rare_categories_are_tested_exactly():
    (each,) = compare_samples(one_per_query([0] * 10), one_per_query([0, 1, 1, 1])).features
    # Three ones among fourteen, all of them in the four of the second sample.
    expected = math.comb(4, 3) * math.comb(10, 0) / math.comb(14, 3)
    assert (each.test, each.p_value) == ("Fisher", pytest.approx(2 * expected))


def test_numbers_of_few_queries_are_not_categories():
    before, now = one_per_query(np.arange(10)), one_per_query(np.arange(10) + 1000)
    (each,) = compare_samples(before, now).features
    # All of ten above all of ten others: two of comb(20, 10) orders, twice for two tests.
    assert (each.test, each.p_value) == (
        "Kolmogorov-Smirnov", pytest.approx(2 * 2 / math.comb(20, 10)),
    )  # fmt: skip


@pytest.mark.parametrize("flip", [False, True])
def test_the_stability_index_sees_values_that_repeat(flip):
    before, now = np.repeat([1.0, 0.0], [95, 5]), np.repeat([1.0, 0.0], [5, 95])
    if flip:
        before, now = 1 - before, 1 - now
    assert stability_index(before, now) == pytest.approx(2 * 0.9 * np.log(19))


def test_the_stability_index_of_constants():
    expected = 2 * (1 - 0.005) * np.log(1 / 0.005)  # each is half a document of the other sample
    for other in (3.0, 7.0):
        index = stability_index(np.full(100, 5.0), np.full(100, other))
        assert index == pytest.approx(expected)


@pytest.mark.parametrize(("ones", "test"), [(5, "chi-square"), (4, "Fisher")])
def test_chi_square_needs_five_documents_expected_in_each_cell(ones, test):
    each = one_per_query([0] * (10 - ones) + [1] * ones)  # as many are expected as it has
    assert compare_samples(each, each).features[0].test == test


@pytest.mark.parametrize("flip", [False, True])
def test_half_of_a_single_document_is_half_of_the_sample(flip):
    many, one = np.full(10, 5.0), np.array([3.0])
    expected = (1 - 0.5) * np.log(1 / 0.5) + (1 - 0.05) * np.log(1 / 0.05)
    index = stability_index(one, many) if flip else stability_index(many, one)
    assert index == pytest.approx(expected)


def test_a_value_that_repeats_among_others_has_a_bin():
    spread = np.arange(1.0, 51.0)
    before = np.concatenate([np.zeros(50), spread])
    now = np.concatenate([np.full(50, -1.0), spread])
    expected = (0.5 - 0.005) * np.log(0.5 / 0.005) * 2  # from the bin of zeros to the one below
    assert stability_index(before, now) == pytest.approx(expected)


def test_the_stability_index_is_its_formula():
    before = np.arange(100.0)
    now = np.concatenate([np.arange(50.0), np.arange(50.0)])
    # Each of the upper five tenths falls from 0.1 to half a document, the others rise to 0.2.
    expected = 5 * (0.2 - 0.1) * np.log(0.2 / 0.1) + 5 * (0.005 - 0.1) * np.log(0.005 / 0.1)
    assert stability_index(before, now) == pytest.approx(expected)


def test_missing_values_have_a_bin():
    before, now = np.zeros(100), np.where(np.arange(100) < 40, np.nan, 0.0)
    expected = (0.4 - 0.005) * np.log(0.4 / 0.005) + (0.6 - 1.0) * np.log(0.6)
    assert stability_index(before, now) == pytest.approx(expected)


def test_rates_and_medians_are_those_of_all_rows():
    values = np.array([[1.0], [2.0], [9.0], [np.nan]], np.float32)
    before = Sample(("a",), values, np.array([0, 0, 1, 1]))
    report = compare_samples(before, before)
    each = report.features[0]
    assert (each.missing_before, each.missing_now) == (0.25, 0.25)
    assert (each.median_before, each.median_now) == (2.0, 2.0)
    assert (report.queries_before, each.stability_index, each.p_value) == (2, 0.0, 1.0)


def test_scores_are_compared_if_both_samples_have_them():
    random = np.random.default_rng(4)
    values, queries = np.zeros((200, 1), np.float32), np.arange(200)
    before = Sample(("a",), values, queries, random.normal(size=200))
    now = Sample(("a",), values, queries, random.normal(2.0, size=200))
    assert [each.name for each in compare_samples(before, now).shifted] == ["score"]
    without = Sample(("a",), values, queries)
    assert [each.name for each in compare_samples(without, now).features] == ["a"]


def test_other_features_are_refused():
    values, queries = np.zeros((3, 1), np.float32), np.arange(3)
    with pytest.raises(DataError, match="different features: a, b"):
        compare_samples(Sample(("a",), values, queries), Sample(("b",), values, queries))


def test_the_page_escapes_names_and_counts_shifts():
    random = np.random.default_rng(5)
    queries = np.arange(300)
    before = Sample(("<script>",), random.normal(size=(300, 1)).astype(np.float32), queries)
    now = Sample(("<script>",), random.normal(3, size=(300, 1)).astype(np.float32), queries)
    page = drift_html({"<b>": compare_samples(before, now)})
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "Against &lt;b&gt;" in page
    assert "1 of 1 features have shifted" in page


def test_rare_categories_of_many_queries_are_tested():
    before = one_per_query(np.repeat([0, 1, 2], [20_000, 19_997, 3]))
    same, other = (
        one_per_query(np.repeat([0, 1, 2], counts))
        for counts in ([10_000, 9_999, 1], [0, 0, 20_000])
    )
    (unchanged,), (shifted,) = (compare_samples(before, each).features for each in (same, other))
    assert (unchanged.test, unchanged.p_value) == ("Fisher", 1.0)
    assert shifted.p_value < 1e-3


def test_drawn_tables_have_the_exact_p_value():
    # All tables with these sums, by hand: 3, 2 and 1 of three values, four documents of six before.
    before, now = one_per_query([0, 0, 0, 1] * 2), one_per_query([1, 2] * 2)
    (each,) = compare_samples(before, now).features
    tables = [
        (a, b, 4 - a - b)
        for a in range(5)
        for b in range(5 - a)
        if a <= 6 and b <= 4 and 4 - a - b <= 2
    ]
    chance = {
        (a, b, c): math.comb(6, a) * math.comb(4, b) * math.comb(2, c) / math.comb(12, 4)
        for a, b, c in tables
    }
    exact = sum(each for each in chance.values() if each <= chance[0, 2, 2] * (1 + 1e-9))
    assert each.test == "Fisher"
    assert each.p_value / 2 == pytest.approx(exact, abs=4 * math.sqrt(exact / 9_999))


def test_few_numbers_are_not_bins_of_their_own():
    random = np.random.default_rng(5)
    index = stability_index(random.normal(size=10), random.normal(size=1000))
    assert index < 1.5


def test_few_queries_are_named():
    many, few, one = (
        Sample(("a",), np.zeros((n, 1), np.float32), np.arange(n)) for n in (10, 9, 1)
    )
    assert compare_samples(many, many).warning == ""
    assert compare_samples(few, many).warning.startswith("There are only 9 queries before: ")
    alone = compare_samples(many, one)
    assert alone.warning.startswith("There is only 1 query now: ")
    assert alone.warning in drift_html({"training": alone})


def test_the_command_names_few_queries(tmp_path):
    path = tmp_path / "today.csv"
    path.write_text("query_id,label,bm25\nq,1,0.5\nq,0,0.25\n")
    assert "There is only 1 query now: " in succeed("drift", path, path)
