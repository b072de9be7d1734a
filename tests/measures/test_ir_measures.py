"""Measures that ir_measures has of its own, and TREC's gdeval.pl, which it runs."""

import shutil
from dataclasses import replace

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from ir_measures.providers.compat_provider import compatibility

from podium.data import Judgments, Rankings
from podium.measures import Conventions, evaluate
from podium.measures.names import parse_measure
from podium.measures.presets import PRESETS
from tests.measures.queries import RUNS, as_dicts, dl21, judged_runs

BY_ID = Conventions(ties="id ascending", missing="skip")


def above_zero(run: Rankings) -> Rankings:
    """The same order: ir_measures takes the score of a document that is not in the run as 0."""
    return replace(run, scores=run.scores - run.scores.min() + 1)


@pytest.mark.parametrize("name", RUNS)
def test_judged_and_compatibility(name: str) -> None:
    judgments, run = dl21(name)
    run = above_zero(run)
    qrels, result = as_dicts(judgments, run)
    ours = evaluate(["Judged@10", "Judged@50", "Compat(p=0.95)"], judgments, run, conventions=BY_ID)
    names = {
        ir_measures.Judged @ 10: "Judged@10",
        ir_measures.Judged @ 50: "Judged@50",
        ir_measures.Compat(p=0.95): "Compat(p=0.95)",
    }
    compared = 0
    for metric in ir_measures.iter_calc(names, qrels, result):
        query = ours.query_ids.to_pylist().index(metric.query_id)
        mine = ours[names[metric.measure]][query]
        assert mine == pytest.approx(metric.value, abs=1e-9)
        compared += 1
    assert compared == 3 * 53


@settings(max_examples=60)
@given(judged_runs())
def test_compatibility_of_any_run(case: tuple[Judgments, Rankings]) -> None:
    judgments, run = case[0], above_zero(case[1])
    qrels, result = as_dicts(judgments, run)
    ours = evaluate("Compat(p=0.8)", judgments, run, conventions=BY_ID)
    for query, topic in enumerate(ours.query_ids.to_pylist()):
        # Among equal grades and scores its ideal ranking keeps the order of the file, its run
        # that of the ids: it is given its judgments in the order of the ids.
        judged = dict(sorted(qrels[topic].items()))
        theirs = compatibility(judged, result[topic], p=0.8, normalize=True)
        assert ours["Compat(p=0.8)"][query] == pytest.approx(theirs, abs=1e-9)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval.pl needs Perl")
@pytest.mark.parametrize("name", RUNS)
def test_gdeval(name: str) -> None:
    """ERR of the preset ``trec_eval``, and nDCG with exponential gains; gdeval prints 5 digits."""
    judgments, run = dl21(name)
    qrels, result = as_dicts(judgments, run)
    measures = ["ERR@10", "ERR@20", "nDCG(dcg='exp-log2')@10"]
    exact = PRESETS["trec_eval"].except_for("nDCG", score_precision="float64")
    ours = evaluate(measures, judgments, run, conventions=exact)
    compared = 0
    for metric in ir_measures.iter_calc(map(ir_measures.parse_measure, measures), qrels, result):
        query = ours.query_ids.to_pylist().index(metric.query_id)
        mine = ours[parse_measure(str(metric.measure))][query]
        assert mine == pytest.approx(metric.value, abs=5.1e-6)
        compared += 1
    assert compared == 3 * 53


def test_means_of_many_measures() -> None:
    """What a user of ir_measures sees, measure by measure."""
    judgments, run = dl21("p_bm25")
    qrels, result = as_dicts(judgments, run)
    names = ["AP", "AP(rel=2)@100", "P@10", "P(rel=2)@5", "RR(rel=2)", "R@100", "Rprec", "Bpref"]
    names += ["nDCG", "nDCG@20", "Success@3"]
    theirs = ir_measures.calc_aggregate(map(ir_measures.parse_measure, names), qrels, result)
    ours = evaluate(names, judgments, run, conventions="trec_eval").means
    for measure, value in theirs.items():
        assert ours[parse_measure(str(measure))] == pytest.approx(value, abs=1e-6)
    assert len(theirs) == len(names)
    assert np.isfinite(list(theirs.values())).all()
