"""Measures that users write."""

import subprocess
import sys
import textwrap
from collections import Counter
from itertools import pairwise, permutations
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles, Floats, Kernel
from podium.measures import (
    Conventions,
    Parameter,
    evaluate,
    measure,
    next_judgments,
    number_between,
)
from podium.measures.compiled.loops import loop_for, over_labels
from podium.measures.inputs import Pairs
from podium.measures.names import parse_measure
from podium.measures.parameters import BY_CONVENTION
from podium.measures.reference import reference_page
from podium.measures.registry import Measure, definition_of

ARRAYS = {"truth": [0, 2, 1, 1, 0], "ranking": [5, 4, 3, 2, 1], "group": [3, 2]}
Rate = Annotated[float, Parameter("How fast attention fades.", number_between(0, 1))]


@measure("DecayedGain", aliases=("fading_labels",))
def decayed_gain(labels: Floats, cut: int, rate: Rate = 0.5) -> float:
    """Labels that fade by a rate from rank to rank."""
    total, weight = 0.0, 1.0
    for position in range(min(len(labels), cut)):
        total += weight * labels[position]
        weight *= rate
    return total


@measure("Text")
def text(labels: Floats, cut: int) -> float:
    """What Numba cannot compile: the labels written one after the other."""
    return float("".join(str(int(label)) for label in labels[:cut]) or "0")


@measure("MiddleRank")
def middle_rank(better: Doubles) -> float:
    """The mean rank of preferred documents."""
    return float(better.mean())


@measure
def every_type(labels, ideal, size, cut, rel, weights=(1.0, 0.5), least=1, binary=False, scale=1.0):
    """What is above a label, in all ways that a parameter can be written.

    Args:
        weights: Weights of the first ranks,
            from the top.
        least: The least label.
    """
    total = 0.0
    for position in range(min(len(labels), cut, len(weights))):
        if labels[position] >= least:
            total += weights[position] * (1.0 if binary else labels[position])
    return total * scale + 1000.0 * size + 100.0 * len(ideal) + 10.0 * rel


def is_compiled(measured: Measure, arguments: tuple[object, ...]) -> bool:
    definition = definition_of(measured)
    loop = loop_for(over_labels, definition.function, definition.signature.inputs, arguments)
    return isinstance(loop, Kernel)


def test_compiled() -> None:
    result = evaluate(
        [decayed_gain, decayed_gain(rate=0.25) @ 2], conventions=Conventions(), **ARRAYS
    )
    assert result["DecayedGain"].tolist() == [0 + 2 / 2 + 1 / 4, 1.0]
    assert result["fading_labels(rate=0.25)@2"].tolist() == [0 + 2 / 4, 1.0]
    assert is_compiled(decayed_gain, (1, 0.5))


def test_as_python() -> None:
    result = evaluate([text, text @ 2, "nDCG@2"], **ARRAYS)
    assert result["Text"].tolist() == [21.0, 10.0]
    assert result["Text@2"].tolist() == [2.0, 10.0]
    assert not is_compiled(text, (1,))


def test_what_numba_fails_on_without_an_error_of_its_own_runs_as_python() -> None:
    """Numba takes '<object type:float32>' for the text of a float, and cannot read it as one."""

    @measure("Reread")
    def reread(labels: Floats) -> float:
        return float(str(labels[0]))

    @measure("Digits")
    def digits(labels: Floats) -> float:
        return len(f"{labels[0]}")

    result = evaluate([reread, digits], [0.25, 4], [2, 1], group=[2])
    assert result.means == {reread: 0.25, digits: len("0.25")}


def test_parameters_come_from_the_signature() -> None:
    definition = definition_of(every_type)
    assert definition.name == "every_type"
    assert [(each.name, each.default, each.value_type) for each in definition.parameters] == [
        ("weights", (1, 0.5), tuple),
        ("least", 1, int),
        ("binary", False, bool),
        ("scale", 1, float),
    ]
    assert [each.doc for each in definition.parameters] == [
        "Weights of the first ranks, from the top.",
        "The least label.",
        "",
        "",
    ]
    assert definition.doc == "What is above a label, in all ways that a parameter can be written."
    names = [
        "every_type",
        "every_type(least=2)",
        "every_type(binary=True)",
        "every_type(scale=2, weights=[0, 3])",
        "every_type@1",
    ]
    query = {"truth": [2, 1, 0], "ranking": [3, 2, 1], "group": [3]}
    result = evaluate(names, conventions=Conventions(relevant_from=2), **query)
    seen = 1000.0 * 3 + 100.0 * 3 + 10.0 * 2
    assert [result[name].tolist() for name in names] == [
        [2 + 1 / 2 + seen],
        [2 + seen],
        [1 + 1 / 2 + seen],
        [2 * 3 * 1 + seen],
        [2 + seen],
    ]
    for wrong, hint in (
        ({"least": 0.5}, "Give an integer"),
        ({"least": True}, "Give an integer"),
        ({"binary": 1}, "Give True or False"),
        ({"scale": float("inf")}, "Give a finite number"),
        ({"weights": 3}, "Give a list of numbers"),
    ):
        with pytest.raises(ArgumentError, match=hint):
            every_type(**wrong)


def test_what_an_evaluation_gives_is_a_parameter_by_convention() -> None:
    with pytest.raises(ArgumentError, match=r"podium\.measures\.parameters\.BY_CONVENTION"):

        @measure("OwnThreshold")
        def own_threshold(labels: Floats, rel: float = 2.0) -> float:
            return labels[0] >= rel

    @measure("Reached")
    def reached(labels: Floats, rel: float = BY_CONVENTION) -> float:
        return labels[0] >= rel

    query = {"truth": [1, 0], "ranking": [2, 1], "group": [2]}
    result = evaluate(["Reached", "Reached(rel=2)"], **query)
    assert list(result.means.values()) == [1.0, 0.0]
    strict = evaluate(["Reached"], conventions=Conventions(relevant_from=2), **query)
    assert list(strict.means.values()) == [0.0]


def test_a_measure_without_a_cut_takes_no_cut_off() -> None:
    @measure
    def first_label(labels: Floats) -> float:
        return labels[0]

    with pytest.raises(ArgumentError, match="first_label has no cut-off"):
        first_label @ 3
    assert evaluate(first_label, **ARRAYS)["first_label"].tolist() == [0.0, 1.0]


def test_on_pairs() -> None:
    pairs = Pairs([1, 2], [0, 0], [0, 2])  # type: ignore[arg-type]
    result = evaluate(middle_rank, pairs, [1, 2, 3], group=[3])
    assert result["MiddleRank"].tolist() == [1.5]


def test_pairs_must_compile() -> None:
    @measure("Spelled")
    def spelled(better: Doubles) -> float:
        return float("".join(str(rank) for rank in better))

    pairs = Pairs([0], [1], [0, 1])  # type: ignore[arg-type]
    with pytest.raises(PodiumError, match=r"Numba cannot compile spelled.*numbers and loops only"):
        evaluate(spelled, pairs, [1, 2], group=[2])


def test_as_fast_as_the_built_in_ones() -> None:
    """One compiled loop, whoever wrote the function: as Python it would take 50 times as long."""
    from time import process_time

    generator = np.random.default_rng(0)
    arrays = {
        "truth": generator.integers(0, 3, 400_000),
        "ranking": generator.standard_normal(400_000),
        "group": np.full(40_000, 10),
    }
    names = ("DecayedGain@5", "RBP@5")
    evaluate(names, **arrays)
    rounds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(5):  # in turn, and of the processor: a busy machine slows both alike
        for name in names:
            start = process_time()
            evaluate(name, **arrays)
            rounds[name].append(process_time() - start)
    ours, built_in = (min(rounds[name]) for name in names)
    assert ours < 10 * built_in


def test_first_class() -> None:
    assert isinstance(decayed_gain, Measure)
    assert parse_measure("decayedgain(rate=0.25)@3") == decayed_gain(rate=0.25) @ 3
    assert "## DecayedGain" in reference_page()
    with pytest.raises(ArgumentError, match="above 0 and below 1"):
        decayed_gain(rate=2)


@measure
def pairs_in_order(labels, ideal, cut):
    """A measure that is not a sum over ranks: relevant documents followed by lower ones."""
    total = 0.0
    for position in range(min(len(labels), cut) - 1):
        if labels[position] > 0.0 and not labels[position + 1] >= labels[position]:
            total += 1.0 / (position + 1)
    return total


@measure
def pairs_in_python(labels, cut):
    """The same as Python: Numba knows no Counter."""
    assert Counter(labels.tolist())
    pairs = pairwise(labels[:cut])
    terms = (
        1.0 / rank for rank, (one, other) in enumerate(pairs, 1) if one > 0 and not other >= one
    )
    return float(sum(terms))


def mean_over_orders(labels: list[float], scores: list[float], cut: int) -> float:
    values = []
    for order in permutations(range(len(labels))):
        ordered = [scores[row] for row in order]
        if ordered == sorted(scores, reverse=True):
            ranked = [labels[row] for row in order][:cut]
            values.append(
                sum(
                    1.0 / rank
                    for rank, (one, other) in enumerate(pairwise(ranked), 1)
                    if one > 0 and not other >= one
                )
            )
    return sum(values) / len(values)


@pytest.mark.parametrize("name", ["pairs_in_order", "pairs_in_python"])
def test_ties_are_averaged_over_without_a_formula(name: str) -> None:
    nan = float("nan")
    cases = [
        ([0, 1], [1, 1]),
        ([2, 0, 1, 1, 0, 3], [2, 1, 1, 1, 1, 0]),
        ([2, nan, 1, 0, 1, nan, 2], [3, 3, 3, 1, 1, 1, 0]),
        ([1, 1, 1, 2], [1, 1, 1, 1]),
    ]
    for labels, scores in cases:
        for cut in (2, 4, 9):
            result = evaluate(
                f"{name}@{cut}", labels, scores, group=[len(labels)],
                conventions=Conventions(),
            )  # fmt: skip
            expected = mean_over_orders(labels, scores, cut)
            assert result.means[f"{name}@{cut}"] == pytest.approx(expected, abs=1e-12)
    assert is_compiled(parse_measure("pairs_in_order"), (1,))
    assert not is_compiled(parse_measure("pairs_in_python"), (1,))


def test_many_orders_are_sampled_evenly_and_whatever_the_order_of_rows() -> None:
    """50 tied documents: a sum over ranks is exact after each round of rotations."""
    generator = np.random.default_rng(4)
    labels = generator.integers(0, 5, 50)
    tied = {"ranking": np.zeros(50), "group": [50], "conventions": Conventions()}
    mean = labels.mean() * sum(0.5**rank for rank in range(50))
    first = evaluate(["DecayedGain", "pairs_in_order"], truth=labels, **tied)
    assert first.means["DecayedGain"] == pytest.approx(mean, abs=1e-12)
    again = evaluate(["DecayedGain", "pairs_in_order"], truth=generator.permutation(labels), **tied)
    assert again.means == first.means
    # The first of two different labels is the larger one with probability 1/2.
    lower = np.mean(
        [one > other for row, one in enumerate(labels) for other in np.delete(labels, row)]
    )
    exact = lower * sum(1.0 / rank for rank in range(1, 50))
    assert first.means["pairs_in_order"] == pytest.approx(exact, rel=0.05)


def test_a_rule_for_ties_comes_before_the_mean() -> None:
    tied = {"truth": [0, 1], "ranking": [1, 1], "group": [2]}
    result = evaluate(decayed_gain, conventions=Conventions(ties="input order"), **tied)
    assert result["DecayedGain"].tolist() == [0.5]
    assert evaluate(decayed_gain, **tied)["DecayedGain"].tolist() == [0.75]
    with pytest.raises(DataError, match=r"DecayedGain cannot be computed with ties='together'"):
        evaluate(decayed_gain, conventions=Conventions(ties="together"), **tied)


def test_a_formula_for_ties_replaces_the_mean() -> None:
    def by_formula(labels: Floats, ties: np.ndarray, cut: int, weight: float) -> float:
        return weight * ties[0] + cut

    @measure(expected=by_formula)
    def with_formula(labels: Floats, cut: int, weight: float = 10.0) -> float:
        return weight * labels[0]

    tied = {"truth": [0, 1, 2], "ranking": [1, 1, 2], "group": [2, 1]}
    assert evaluate(with_formula @ 7, **tied)["with_formula@7"].tolist() == [27.0, 20.0]
    with pytest.raises(PodiumError, match="takes other, which its function does not take"):

        @measure(expected=lambda labels, other=1.0: labels[0] * other)
        def without(labels: Floats) -> float:
            return 0.0


def test_a_measure_whose_value_does_not_depend_on_the_order_of_ties_is_computed_once() -> None:
    first = lambda labels: float(labels[0]) if len(labels) else 0.0  # noqa: E731
    tied = {"truth": [4, 0, 1], "ranking": [1, 1, 0], "group": [3]}
    values = {
        name: evaluate(measure(name, expected=expected)(first), **tied).means[name]  # type: ignore[arg-type]
        for name, expected in (("FirstInMean", None), ("FirstAsIs", True))
    }
    assert values == {"FirstInMean": 2.0, "FirstAsIs": 4.0}
    assert definition_of(parse_measure("FirstAsIs")).expected is first
    page = reference_page()
    sections = {name: page.partition(f"## {name}\n")[2].partition("\n## ")[0] for name in values}
    assert "no formula for the mean over ties" in sections["FirstInMean"]
    assert "no formula for the mean over ties" not in sections["FirstAsIs"]


def test_measures_that_reward_better_orders_have_bounds_over_many_unjudged_documents() -> None:
    def gather(labels: Floats, cut: int) -> float:
        return float(np.nansum(labels[:cut]))

    documents = {f"d{rank}": 20.0 - rank for rank in range(12)}
    truth = {"q": {"d0": 1, "x": 0}}
    for monotone in (False, True):
        name = f"Gathered{monotone}"
        gathered = measure(name, monotone=monotone)(gather)
        plan = next_judgments(gathered @ 12, truth, {"q": {"d0": 1.0}}, {"q": documents})
        assert (plan.least, plan.most) == ((0.0, 11.0) if monotone else (None, None))


def test_an_error_in_the_function_reaches_the_user() -> None:
    @measure("Picky")
    def picky(labels: Floats, size: int) -> float:
        """Refuses lists of three."""
        if size == 3:
            raise ValueError("three")
        return 1.0

    assert evaluate(picky, [1], [1], group=[1]).means == {picky: 1.0}
    with pytest.raises(ValueError, match="three"):
        evaluate(picky, **ARRAYS)


def test_functions_that_are_not_measures_are_refused() -> None:
    with pytest.raises(PodiumError, match=r"Wrong takes \(query: .* begin with .*labels, ideal"):

        @measure("Wrong")
        def wrong(query: list[float]) -> float:
            return 0.0

    with pytest.raises(PodiumError, match="begin with what it reads of labels, ideal"):

        @measure
        def in_another_order(ideal: Floats, labels: Floats) -> float:
            return 0.0

    with pytest.raises(PodiumError, match=r"takes \*rest"):

        @measure
        def too_many(labels: Floats, *rest: float) -> float:
            return 0.0

    with pytest.raises(PodiumError, match="fade of the measure no_default has no default"):

        @measure
        def no_default(labels: Floats, fade: float) -> float:
            return 0.0

    with pytest.raises(PodiumError, match="cut of the measure fixed_cut has a default"):

        @measure
        def fixed_cut(labels: Floats, cut: int = 3) -> float:
            return 0.0

    with pytest.raises(PodiumError, match="mode of the measure worded is 'fast' by default"):

        @measure
        def worded(labels: Floats, mode: str = "fast") -> float:
            return 0.0


def test_names_are_taken_once() -> None:
    with pytest.raises(PodiumError, match="'ndcg_cut' belongs to the measure nDCG"):

        @measure("Mine", aliases=("NDCG_cut",))
        def mine(labels: Floats) -> float:
            return 0.0

    with pytest.raises(PodiumError, match="There is no measure 'Mine'"):
        parse_measure("Mine")


def test_the_same_function_may_come_again() -> None:
    def register(worth: float) -> None:
        @measure("Again")
        def again(labels: Floats) -> float:
            return worth

    register(1.0)
    register(2.0)
    assert evaluate("Again", conventions=Conventions(), **ARRAYS).means == {Measure("Again"): 2.0}


def test_a_module_of_measures_is_compiled_once(tmp_path: Path) -> None:
    """In the second process the compiled function comes from the disk."""
    (tmp_path / "mine.py").write_text(
        textwrap.dedent(
            """
            from podium import kernels
            from podium.measures import evaluate, measure
            from podium.measures.compiled.loops import loop_for, over_labels
            from podium.measures.registry import definition_of

            @measure("First")
            def first(labels):
                return labels[0]

            if __name__ == "__main__":
                kernels.SMALL = -1
                result = evaluate(first, [2, 1], [1, 2], group=[2])
                loop = loop_for(over_labels, definition_of(first).function, ["labels"], ())
                print(result.means[first], sum(loop.compiled.stats.cache_hits.values()))
            """
        )
    )
    outputs = [
        subprocess.run(
            [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert outputs == [["1.0", "0"], ["1.0", "1"]]


def test_as_python_in_double_precision() -> None:
    """A measure that Numba cannot compile computes as one that it can."""

    @measure("SpelledPower")
    def spelled_power(labels: Floats, ideal: Floats) -> float:
        power = 2.0 ** labels[0] - ideal[0] / 3
        return float("".join(repr(float(each)) for each in [power]))

    labels = [130, 100]  # 2^130 is beyond float32
    result = evaluate(spelled_power, labels, [1, 2], group=[2])
    assert not is_compiled(spelled_power, ())
    assert result["SpelledPower"].tolist() == [2.0**100 - 130 / 3]
    result = evaluate(spelled_power, labels, [2, 1], group=[2])
    assert result["SpelledPower"].tolist() == [2.0**130 - 130 / 3]
