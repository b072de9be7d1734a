"""Errors say where, what and what to do."""

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn import exceptions

import podium
from podium.aggregation import borda, reciprocal_rank
from podium.data import Dataset, read_jsonl
from podium.data.conversion import convert
from podium.data.format_registry import format_of
from podium.data.labels import to_top_k
from podium.errors import ArgumentError, DataError, MissingPackageError, PodiumError
from podium.features.feature_search import QueryRefusedError
from podium.judging import Overlap, SimulatedAssessor, rotate
from podium.judging.assessors.simulated import Habits
from podium.judging.models.budget import BudgetError
from podium.judging.workload import estimate_workload
from podium.losses import LambdaLoss, ListMLE
from podium.losses.names import parse_loss
from podium.measures import Conventions, compare, evaluate, nDCG
from podium.measures.names import parse_measure
from podium.rankers import BoostedRanker, LinearRanker, TreeRanker, tune
from podium.rankers.base import NotFittedError
from podium.utility import DCGLearn, RankingPreferences
from podium.utility.bootstrap import bootstrap_utility


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DataError("is wrong"), "is wrong"),
        (DataError("is wrong", path="a.txt"), "a.txt: is wrong"),
        (DataError("is wrong", path="a.txt", line=3), "a.txt, line 3: is wrong"),
        (DataError("is wrong.", hint="Fix it."), "is wrong. Fix it."),
        (DataError("is wrong", path="a", line=1, hint="Fix it."), "a, line 1: is wrong. Fix it."),
    ],
)
def test_messages(error: DataError, text: str) -> None:
    assert str(error) == text
    assert str(pickle.loads(pickle.dumps(error))) == text  # as process pools pass errors on


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PodiumError("Do that."), "Do that."),
        (ArgumentError("k is 0", hint="Give 1."), "k is 0. Give 1."),
        (MissingPackageError("torch", extra="neural"), "torch is not installed: pip install"),
        (MissingPackageError("a and b", extra="text"), "a and b are not installed: pip install"),
        (NotFittedError("Call fit first."), "Call fit first."),
    ],
)
def test_other_messages(error: PodiumError, text: str) -> None:
    assert str(error).startswith(text)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))


DATA = Dataset.from_arrays(np.eye(4), [1, 0, 1, 0], group=[2, 2])
PAIRS = RankingPreferences.from_arrays([[1, 0], [0, 1]], [[0, 1], [0, 0]], [1, 1])
MODEL = DCGLearn(C=1)
LABELS, OFFSETS = np.float32([1, 0]), np.array([0, 2])
WRONG_CHOICES: dict[str, Callable[[], object]] = {
    "data: k": lambda: to_top_k(LABELS, OFFSETS, 0),
    "data: seed": lambda: to_top_k(LABELS, OFFSETS, 1, random_state=-1),
    "data: seed of a split": lambda: DATA.split(0.5, 0.5, random_state=-1),
    "data: seed no number": lambda: DATA.split(0.5, 0.5, random_state=0.5),  # type: ignore[arg-type]
    "data: fractions": lambda: DATA.split(0.5),
    "data: folds": lambda: DATA.folds(1),
    "data: no queries": lambda: Dataset.from_arrays([[1.0]], [1]),
    "data: format": lambda: format_of("x.txt", "xls"),
    "data: conversion": lambda: convert("a.qrels", "b.jsonl"),
    "measures: name": lambda: parse_measure("nDGC"),
    "measures: text": lambda: parse_measure("P(2)@5"),
    "measures: parameter": lambda: nDCG(level=3),
    "measures: cut-off": lambda: nDCG @ 0,
    "measures: conventions": lambda: Conventions(ties="never"),  # type: ignore[arg-type]
    "measures: preset": lambda: evaluate("RR", DATA, np.ones(4), conventions="trec"),
    "measures: no queries": lambda: evaluate("RR", [1], [1]),
    "measures: test": lambda: compare("RR", DATA, {"a": np.ones(4), "b": np.ones(4)}, test="z"),
    "measures: one system": lambda: compare("RR", DATA, {"a": np.ones(4)}),
    "measures: seed": lambda: compare(
        "RR", DATA, {"a": np.arange(4), "b": -np.arange(4)}, test="randomization", random_state=-1
    ),
    "losses: k": lambda: ListMLE(k=0),
    "losses: name": lambda: parse_loss("ListMLP"),
    "losses: gains": lambda: LambdaLoss(gains="cubic"),  # type: ignore[arg-type]
    "aggregation: k": lambda: reciprocal_rank([[1.0]], [0, 1], rank_constant=-1),
    "aggregation: rule": lambda: borda([[1.0]], [0, 1], unranked="never"),  # type: ignore[arg-type]
    "judging: share": lambda: Overlap(2.0),
    "judging: habits": lambda: Habits(noise=-1),
    "judging: seed": lambda: SimulatedAssessor([1.0], random_state=-1),
    "judging: people": lambda: rotate(["q"], ["ann", "ann"]),
    "judging: seed of a plan": lambda: estimate_workload(
        1, 3, 1, algorithm="heap", runs=1, random_state=-1
    ),
    "utility: C": lambda: DCGLearn(C=0),
    "utility: resamples": lambda: bootstrap_utility(
        MODEL, PAIRS, MODEL.fit(PAIRS).learned_, resamples=0
    ),
    "utility: seed": lambda: bootstrap_utility(
        MODEL, PAIRS, MODEL.fit(PAIRS).learned_, random_state=-1
    ),
    "rankers: penalty": lambda: LinearRanker("PairHinge()", alpha=-1).fit(DATA),
    "rankers: loss": lambda: LinearRanker("PairHing()").fit(DATA),
    "rankers: engine": lambda: TreeRanker(engine="forest").fit(DATA),  # type: ignore[arg-type]
    "rankers: seed": lambda: TreeRanker(random_state=-1).fit(DATA),
    "rankers: beta": lambda: BoostedRanker(beta=2).fit(DATA),
    "rankers: labels twice": lambda: LinearRanker().fit(DATA, [1, 0, 1, 0]),
    "rankers: nothing to try": lambda: tune(LinearRanker(), {"alpha": []}, DATA, DATA),
}
WRONG_DATA: dict[str, Callable[[], object]] = {
    "data: file": lambda: list(read_jsonl("/nowhere.jsonl")),
    "data: labels": lambda: Dataset.from_arrays([[1.0]], ["a"], group=[1]),
    "data: group": lambda: Dataset.from_arrays([[1.0]], [1], group=[2]),
    "measures: scores": lambda: evaluate("RR", DATA, [1.0]),
    "losses: labels": lambda: ListMLE().evaluate([1.0], [np.nan], [0, 1]),
    "utility: choices": lambda: RankingPreferences.from_arrays([[1]], [[0]], [7]),
    "rankers: features": lambda: LinearRanker().fit(DATA).predict(np.eye(3)),
}


@pytest.mark.parametrize("case", WRONG_CHOICES)
def test_wrong_choices(case: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        WRONG_CHOICES[case]()
    assert re.search(r"[\w'\")]\. \w|: ", str(caught.value))  # a remedy, or what there is


@pytest.mark.parametrize("case", WRONG_DATA)
def test_wrong_data(case: str) -> None:
    with pytest.raises(DataError):
        WRONG_DATA[case]()


def test_a_ranker_that_was_not_fitted() -> None:
    with pytest.raises(NotFittedError) as caught:
        LinearRanker().predict(np.eye(4))
    assert isinstance(caught.value, exceptions.NotFittedError | PodiumError)


def test_no_other_error_is_for_callers() -> None:
    """Other errors are raised only where the code around makes one of ours of them."""
    package = Path(podium.__file__).parent
    raised = re.compile(r"raise (\w+)\(")
    ours = {kind.__name__ for kind in _kinds(PodiumError)} | {
        QueryRefusedError.__name__,
        BudgetError.__name__,
        "unknown",
        "unknown_measure",
        "unknown_name",
        "missing_feature",
        "nonfinite_score",
        "no_preferences_error",
        "infinite_feature",
        "malformed",
        "ungrouped_rows",
    }
    inside = {"ValueError", "KeyError", "TypeError", "TypingError", "BlockingIOError", "OSError"}
    # What Python asks of __getattr__, of __getitem__ and of a module that cannot be imported.
    protocol = {"AttributeError", "IndexError", "ImportError"}
    # Kinds of models that a target has refused before.
    protocol |= {"NotImplementedError"}
    found = {
        name
        for file in package.rglob("*.py")
        if not {"studio", "serving"} & set(file.parts)
        for name in raised.findall(file.read_text())
    }
    assert {name for name in found if not name.startswith("_")} <= ours | inside | protocol


def _kinds(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*map(_kinds, kind.__subclasses__()))


def test_a_line_further_down() -> None:
    error = DataError("is wrong", path="a", line=3, hint="Fix it.").with_line_offset(10)
    assert (error.problem, error.path, error.line, error.hint) == ("is wrong", "a", 13, "Fix it.")
    assert DataError("is wrong").with_line_offset(10).line is None


def test_names_of_the_package() -> None:
    assert podium.DataError is DataError
    assert issubclass(podium.DataError, podium.PodiumError)
    assert issubclass(DataError, ValueError)
    assert podium.PodiumError is PodiumError
    assert podium.ArgumentError is ArgumentError
    assert podium.MissingPackageError is MissingPackageError
    assert "data" in dir(podium)
    assert podium.data.Dataset.__name__ == "Dataset"
    with pytest.raises(AttributeError, match="No podium attribute color"):
        podium.color  # type: ignore[attr-defined]  # noqa: B018
