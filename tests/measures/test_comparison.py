"""What a comparison says of systems, against the same spelled out."""

import math
from dataclasses import replace

import numpy as np
import pytest

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.measures import compare, evaluate
from podium.measures.comparison.formats import as_markdown
from podium.measures.comparison.html import cut_off_curves
from podium.measures.comparison.result import Comparison, coherent_cell
from podium.measures.comparison.statistics import (
    OnRequest,
    holm,
    mean_interval,
    paired_difference,
    tukey,
)
from podium.measures.conventions import Conventions

SYSTEMS = ("old", "new", "other")


def graded(queries: int, size: int = 6, seed: int = 0) -> tuple[Dataset, dict[str, np.ndarray]]:
    """Queries of random labels, and three systems that see them through noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, queries * size)
    data = Dataset.from_arrays(np.zeros((len(labels), 1)), labels, group=[size] * queries)
    scores = {
        name: labels * 0.4 * index + random.normal(size=len(labels))
        for index, name in enumerate(SYSTEMS)
    }
    return data, scores


def reciprocal_ranks(baseline: str, system: str) -> Comparison:
    """Two documents a query; a letter says whether the relevant one comes first (1) or not (0)."""
    queries = len(baseline)
    data = Dataset.from_arrays(np.zeros((2 * queries, 1)), [1, 0] * queries, group=[2] * queries)
    scores = [
        [score for letter in text for score in ((2, 1) if letter == "1" else (1, 2))]
        for text in (baseline, system)
    ]
    return compare("RR", data, {"old": scores[0], "new": scores[1]})


def test_every_cell_of_the_table() -> None:
    data, systems = graded(12)
    result = compare(["nDCG@3", "RR"], data, systems, test="wilcoxon")
    expected = []
    for name in ("nDCG@3", "RR"):
        values = np.column_stack([evaluate(name, data, systems[each])[name] for each in SYSTEMS])
        differences = [paired_difference(values[:, index], values[:, 0]) for index in (1, 2)]
        corrected = holm(np.array([each.p_values["wilcoxon"] for each in differences]))
        for index, system in enumerate(SYSTEMS):
            mean, low, high = mean_interval(values[:, index])
            row = [name, system, f"{mean:.4f}", f"{low:.4f} to {high:.4f}"]
            if index == 0:
                row += [""] * 7
            else:
                each = differences[index - 1]
                star = "*" if corrected[index - 1] < 0.05 else ""
                tried = result.against_baseline[name][system].coherence
                coherent = "" if tried is None else "all" if tried.unanimous else "100%"
                if tried is not None and tried.keeps < 1:
                    coherent = f"{min(max(100 * tried.keeps, 1), 99):.0f}%"
                row += [
                    f"{each.mean:+.4f}{star}",
                    f"{each.low:+.4f} to {each.high:+.4f}",
                    f"{corrected[index - 1]:.3g}",
                    f"{tukey(values)[0, index]:.3g}",
                    f"{each.effect:+.2f}",
                    f"{each.wins}/{each.ties}/{each.losses}",
                    coherent,
                ]
            expected.append(row)
    assert result.rows() == expected
    titles, dashes, *lines = str(result).splitlines()
    assert titles == (
        "| measure | system | mean | 95 % interval | difference | its interval | p (Holm) "
        "| p (Tukey) | effect | win/tie/loss | coherent |"
    )
    assert dashes == "|" + " --- |" * 11
    assert lines[:6] == ["| " + " | ".join(row) + " |" for row in expected]
    assert str(result) == as_markdown(result)


@pytest.mark.parametrize("seed", range(3))
def test_each_system_is_compared_with_the_first(seed: int) -> None:
    data, systems = graded(10, seed=seed)
    result = compare("nDCG@4", data, systems)
    values = result.values["nDCG@4"]
    for index, name in enumerate(SYSTEMS[1:], start=1):
        outcome = result.against_baseline["nDCG@4"][name]
        assert outcome.difference == paired_difference(values[:, index], values[:, 0])
        assert outcome.tukey == pytest.approx(tukey(values)[0, index])
        assert outcome.coherence is not None
        assert outcome.coherence.difference == pytest.approx(outcome.difference.mean)
    assert list(result.against_baseline["nDCG@4"]) == ["new", "other"]
    assert result.baseline == "old"


def test_what_is_computed_from_values_is_computed_when_it_is_read_and_once() -> None:
    data, systems = graded(10)
    result = compare("nDCG@4", data, systems)
    computed = {"summaries", "against_baseline", "tukey", "coherences"}
    assert computed.isdisjoint(vars(result))
    outcome = result.against_baseline["nDCG@4"]["new"]
    assert "difference" not in vars(outcome)
    text = str(result)
    assert computed <= vars(result).keys()
    assert result.against_baseline["nDCG@4"]["new"] is outcome
    assert outcome.coherence is outcome.coherence
    assert str(result) == text
    calls = []
    numbers = OnRequest("ab", lambda key: calls.append(key) or len(calls))
    assert (numbers["b"], numbers["b"], dict(numbers)) == (1, 1, {"a": 2, "b": 1})
    with pytest.raises(KeyError):
        numbers["c"]


def test_values_from_elsewhere_have_no_coherence() -> None:
    data, systems = graded(10)
    result = replace(compare("nDCG@4", data, systems), source=None)
    assert result.against_baseline["nDCG@4"]["new"].coherence is None
    assert {row[-1] for row in result.rows()} == {""}


def test_a_p_value_at_the_level_is_not_significant() -> None:
    outcome = reciprocal_ranks("00", "11").against_baseline["RR"]["new"]
    p_value = outcome.corrected["randomization"]
    assert not outcome.is_significant("randomization", level=p_value)
    assert outcome.is_significant("randomization", level=math.nextafter(p_value, 1))


@pytest.mark.parametrize(("share", "text"), [(0.0, "0%"), (0.004, "1%"), (0.996, "99%")])
def test_a_share_of_nothing_is_0(share: float, text: str) -> None:
    data, systems = graded(5)
    result = compare("nDCG@3", data, systems)
    outcome = result.against_baseline["nDCG@3"]["new"]
    assert outcome.coherence is not None
    tried = replace(outcome.coherence, keeps=share, unanimous=False, difference=0.25)
    assert coherent_cell(tried) == text


def test_the_seed_draws_the_signs() -> None:
    data, systems = graded(60)
    result = compare("nDCG@3", data, systems)
    values = result.values["nDCG@3"]
    for comparison, seed in ((result, 0), (compare("nDCG@3", data, systems, random_state=7), 7)):
        expected = [
            paired_difference(values[:, each], values[:, 0], random_state=seed) for each in (1, 2)
        ]
        verdicts = comparison.against_baseline["nDCG@3"].values()
        assert [each.difference for each in verdicts] == expected
    p_values = {
        compare("nDCG@3", data, systems, random_state=seed)
        .against_baseline["nDCG@3"]["new"]
        .difference.p_values["randomization"]
        for seed in (0, 7)
    }
    assert len(p_values) == 2


def test_unknown_tests_are_refused() -> None:
    data, systems = graded(4)
    with pytest.raises(ArgumentError, match=r"'anova'.*t, randomization, wilcoxon, sign"):
        compare("RR", data, systems, test="anova")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cut_off", "expected"),
    [
        (1, range(1, 3)),
        (4, range(1, 9)),
        (9, range(1, 19)),
        (10, range(1, 21)),
        (15, range(1, 21)),
        (20, range(1, 21)),
        (24, range(5, 21, 5)),
        (25, range(5, 26, 5)),
        (100, range(5, 101, 5)),
        (250, range(5, 101, 5)),
    ],
)
def test_a_curve_has_twice_the_cut_off_or_steps_of_five(cut_off: int, expected: range) -> None:
    data, systems = graded(3)
    result = compare(["RR", f"nDCG@{cut_off}", "DCG@3"], data, systems)
    curves = cut_off_curves(result)
    assert curves is not None
    assert (curves.measure, curves.cut_offs) == ("nDCG", tuple(expected))
    assert list(curves.means) == list(SYSTEMS)
    for name, curve in curves.means.items():
        means = [
            evaluate(f"nDCG@{each}", data, systems[name])[f"nDCG@{each}"].mean()
            for each in (expected[0], expected[-1])
        ]
        assert [curve[0], curve[-1]] == pytest.approx(means)


def test_measures_without_a_cut_off_have_no_curve() -> None:
    data, systems = graded(3)
    result = compare(["RR", "AP"], data, systems)
    assert cut_off_curves(result) is None


def test_queries_without_a_value_are_named_and_counted() -> None:
    """A query without a relevant document has no value where it is left out."""
    data = Dataset.from_arrays(
        np.zeros((8, 1)), [1, 0, 0, 0, 0, 1, 1, 1], group=[2] * 4, query_ids=list("abcd")
    )
    systems = {"old": [1, 2] * 4, "new": [2, 1] * 4}
    conventions = Conventions(nothing_relevant="skip")
    result = compare("RR", data, systems, conventions=conventions)
    assert result.query_ids == ("a", "c", "d")
    assert result.left_out == 1
    assert result.values["RR"].tolist() == [[0.5, 1.0], [1.0, 0.5], [1.0, 1.0]]
    assert result.against_baseline["RR"]["new"].difference.mean == 0.0


def test_moved_queries_are_at_most_five_of_each_kind_by_size() -> None:
    # The first query gains, the third loses, the others stay as they are.
    result = reciprocal_ranks("0011010101", "1001010101")
    assert result.against_baseline["RR"]["new"].moved == (0, 2)
    nothing = reciprocal_ranks("0110", "0110")
    assert nothing.against_baseline["RR"]["new"].moved == ()
    # The first five of the queries with equal gains, the last of those with equal losses.
    letters = np.random.default_rng(0).choice(["01", "00", "11", "10"], 60)
    result = reciprocal_ranks(
        "".join(each[0] for each in letters), "".join(each[1] for each in letters)
    )
    gained, lost = (np.flatnonzero(letters == each).tolist() for each in ("01", "10"))
    assert result.against_baseline["RR"]["new"].moved == (*gained[:5], *lost[:-6:-1])

    data, systems = graded(40)
    result = compare("nDCG@4", data, systems)
    changes = result.values["nDCG@4"][:, 2] - result.values["nDCG@4"][:, 0]
    moved = result.against_baseline["nDCG@4"]["other"].moved
    best = sorted(changes.tolist(), reverse=True)
    assert best[4] > 0 > best[-5]
    assert [changes[query] for query in moved] == best[:5] + best[:-6:-1]
