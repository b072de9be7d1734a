"""Measures that users write."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from podium.errors import ArgumentError, DataError, PodiumError
from podium.measures import (
    Conventions,
    Measure,
    Pairs,
    Parameter,
    Ranked,
    RankedPairs,
    Settings,
    evaluate,
    measure,
    parse_measure,
    reference_page,
)
from podium.measures.compiled import tasks
from podium.measures.registry import kind_of
from podium.measures.value import number_between

ARRAYS = {"labels": [0, 2, 1, 1, 0], "scores": [5, 4, 3, 2, 1], "group": [3, 2]}


@measure(
    "DecayedGain",
    parameters=(Parameter("rate", "How fast attention fades.", number_between(0, 1), 0.5),),
    aliases=("fading_labels",),
)
def decayed_gain(query: Ranked, settings: Settings) -> float:
    """Labels that fade by a rate from place to place."""
    rate = settings.own[0]
    total, weight = 0.0, 1.0
    for place in range(min(len(query.labels), settings.cut)):
        total += weight * query.labels[place]
        weight *= rate
    return total


@measure("Text")
def text(query: Ranked, settings: Settings) -> float:
    """What Numba cannot compile: the labels written one after the other."""
    return float("".join(str(int(label)) for label in query.labels[: settings.cut]) or "0")


@measure("MiddleRank", on_pairs=True)
def middle_rank(query: RankedPairs, settings: Settings) -> float:
    """The mean rank of preferred documents."""
    return float(query.better.mean())


def test_compiled() -> None:
    found = evaluate(
        [decayed_gain, decayed_gain(rate=0.25) @ 2], conventions=Conventions(), **ARRAYS
    )
    assert found["DecayedGain"].tolist() == [0 + 2 / 2 + 1 / 4, 1.0]
    assert found["fading_labels(rate=0.25)@2"].tolist() == [0 + 2 / 4, 1.0]
    assert kind_of(decayed_gain).compiled is not None


def test_as_python() -> None:
    found = evaluate([text, text @ 2, "nDCG@2"], **ARRAYS)
    assert found["Text"].tolist() == [21.0, 10.0]
    assert found["Text@2"].tolist() == [2.0, 10.0]
    assert kind_of(text).compiled is None


def test_what_numba_fails_on_without_an_error_of_its_own_runs_as_python() -> None:
    """Numba takes '<object type:float32>' for the text of a float, and cannot read it as one."""

    @measure("Reread")
    def reread(query: Ranked, settings: Settings) -> float:
        return float(str(query.labels[0]))

    @measure("Digits")
    def digits(query: Ranked, settings: Settings) -> float:
        return len(f"{query.labels[0]}")

    found = evaluate([reread, digits], labels=[0.25, 4], scores=[2, 1], group=[2])
    assert found.means == {reread: 0.25, digits: len("0.25")}


def test_on_pairs() -> None:
    pairs = Pairs([1, 2], [0, 0], [0, 2])  # type: ignore[arg-type]
    found = evaluate(middle_rank, scores=[1, 2, 3], group=[3], pairs=pairs)
    assert found["MiddleRank"].tolist() == [1.5]


def test_pairs_must_compile() -> None:
    @measure("Spelled", on_pairs=True)
    def spelled(query: RankedPairs, settings: Settings) -> float:
        return float("".join(str(rank) for rank in query.better))

    @measure("Reread pairs", on_pairs=True)
    def reread_pairs(query: RankedPairs, settings: Settings) -> float:
        return float(str(query.better[0]))

    pairs = Pairs(np.array([0]), np.array([1]), np.array([0, 1]))
    for one in (spelled, reread_pairs):
        with pytest.raises(PodiumError, match=r"Numba cannot compile .*numbers and loops only"):
            evaluate(one, scores=[1, 2], group=[2], pairs=pairs)


def test_a_compiled_measure_never_runs_as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called by its address, as the built-in ones are."""
    monkeypatch.setattr(tasks, "over_labels_in_python", lambda *_: pytest.fail("ran as Python"))
    assert evaluate("DecayedGain@2", labels=[1, 3], scores=[2, 1], group=[2]).means == {
        decayed_gain @ 2: 1 + 3 / 2
    }
    with pytest.raises(pytest.fail.Exception, match="ran as Python"):
        evaluate(text, **ARRAYS)


def test_first_class() -> None:
    assert isinstance(decayed_gain, Measure)
    assert parse_measure("decayedgain(rate=0.25)@3") == decayed_gain(rate=0.25) @ 3
    assert "## DecayedGain" in reference_page()
    with pytest.raises(ArgumentError, match="above 0 and below 1"):
        decayed_gain(rate=2)


def test_ties_need_a_formula_or_a_rule() -> None:
    tied = {"labels": [0, 1], "scores": [1, 1], "group": [2]}
    with pytest.raises(DataError, match=r"DecayedGain cannot be computed with ties='expected'"):
        evaluate(decayed_gain, **tied)
    found = evaluate(decayed_gain, conventions=Conventions(ties="input order"), **tied)
    assert found["DecayedGain"].tolist() == [0.5]
    assert evaluate(decayed_gain, **{**tied, "scores": [1, 2]})["DecayedGain"].tolist() == [1.0]


def test_an_error_in_the_function_reaches_the_user() -> None:
    @measure("Picky")
    def picky(query: Ranked, settings: Settings) -> float:
        """Refuses lists of three."""
        if query.size == 3:
            raise ValueError("three")
        return 1.0

    assert evaluate(picky, labels=[1], scores=[1], group=[1]).means == {picky: 1.0}
    with pytest.raises(ValueError, match="three"):
        evaluate(picky, **ARRAYS)


def test_a_function_of_something_else_is_refused() -> None:
    with pytest.raises(PodiumError, match=r"Wrong takes \(labels.*\(query, settings\)"):

        @measure("Wrong")
        def wrong(labels: list[float]) -> float:
            return 0.0


def test_names_are_taken_once() -> None:
    with pytest.raises(PodiumError, match="'ndcg_cut' belongs to the measure nDCG"):

        @measure("Mine", aliases=("NDCG_cut",))
        def mine(query: Ranked, settings: Settings) -> float:
            return 0.0

    with pytest.raises(PodiumError, match="There is no measure 'Mine'"):
        parse_measure("Mine")


def test_the_same_function_may_come_again() -> None:
    def register(worth: float) -> None:
        @measure("Again")
        def again(query: Ranked, settings: Settings) -> float:
            return worth

    register(1.0)
    register(2.0)
    assert evaluate("Again", conventions=Conventions(), **ARRAYS).means == {Measure("Again"): 2.0}


def test_a_module_of_measures_is_compiled_once(tmp_path: Path) -> None:
    """In the second process the compiled function comes from the disk."""
    (tmp_path / "mine.py").write_text(
        textwrap.dedent(
            """
            from podium.measures import evaluate, measure
            from podium.measures.registry import kind_of

            @measure("First")
            def first(query, settings):
                return query.labels[0]

            if __name__ == "__main__":
                found = evaluate(first, labels=[2, 1], scores=[1, 2], group=[2])
                hits = kind_of(first).compiled.function.stats.cache_hits
                print(found.means[first], sum(hits.values()))
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
    def spelled_power(query: Ranked, settings: Settings) -> float:
        power = 2.0 ** query.labels[0] - query.ideal[0] / 3
        return float("".join(repr(float(each)) for each in [power]))

    labels = [130, 100]  # 2^130 is no float32
    found = evaluate(spelled_power, labels=labels, scores=[1, 2], group=[2])
    assert kind_of(spelled_power).compiled is None
    assert found["SpelledPower"].tolist() == [2.0**100 - 130 / 3]
    found = evaluate(spelled_power, labels=labels, scores=[2, 1], group=[2])
    assert found["SpelledPower"].tolist() == [2.0**130 - 130 / 3]
