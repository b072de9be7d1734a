"""The preset ``ranx`` against ranx, query by query."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings

from podium.data import Judgments, Rankings
from podium.measures import evaluate
from tests.measures.queries import RUNS, as_dicts, dl21, judged_runs
from tests.ranx_process import Ranx

pytestmark = pytest.mark.slow

NAMES = [
    *("map", "mrr", "r_precision", "precision", "recall", "hit_rate", "ndcg", "ndcg_burges"),
    *("dcg", "dcg_burges", "bpref", "rbp.80", "rbp.95"),
    *("map@5", "mrr@3", "precision@5", "recall@5", "hit_rate@3", "ndcg@5", "ndcg_burges@10"),
    *("dcg@10", "precision@50-l2", "map-l2"),
]
THEIRS = {"r_precision": "r-precision"}


@pytest.fixture(scope="module")
def compiled() -> Iterator[Ranx]:
    result = Ranx(compiled=True)
    yield result
    result.close()


def check(ranx: Ranx, judgments: Judgments, run: Rankings) -> int:
    qrels, result = as_dicts(judgments, run)
    their_run = {topic: result[topic] for topic in qrels}
    scores = ranx.evaluate(qrels, their_run, [THEIRS.get(name, name) for name in NAMES])
    ours = evaluate(NAMES, judgments, run, conventions="ranx")
    # One query without relevant or without irrelevant judgments spoils ranx's bpref of them all.
    grades = [set(np.sign(list(labels.values()))) for labels in qrels.values()]
    sound = all(1 in signs and len(signs) > 1 for signs in grades)
    compared = 0
    for query, topic in enumerate(ours.query_ids.to_pylist()):
        for name in NAMES:
            theirs = scores[THEIRS.get(name, name)][topic]
            if sound or name != "bpref":
                assert ours[name][query] == pytest.approx(theirs, abs=1e-6), (topic, name)
                compared += 1
    return compared


def in_full_order(run: Rankings) -> Rankings:
    """The same order, and no score twice."""
    scores = -np.arange(len(run.scores), dtype=np.float64)
    return Rankings.from_columns(run.query_id_of_row(), run.document_ids, scores)


def in_both(judgments: Judgments, run: Rankings) -> tuple[Judgments, Rankings]:
    """ranx refuses queries that only one side has."""
    both = sorted(set(judgments.query_ids.to_pylist()) & set(run.query_ids.to_pylist()))
    return judgments.select(both), run.select(both)


@pytest.mark.parametrize("name", [RUNS[0], pytest.param(RUNS[1], marks=pytest.mark.long)])
def test_real_runs_without_ties(name: str) -> None:
    judgments, run = in_both(*dl21(name))
    ranx = Ranx()
    assert check(ranx, judgments, in_full_order(run)) == len(judgments) * len(NAMES)
    ranx.close()


@pytest.mark.long
@pytest.mark.parametrize("name", RUNS[:1])
def test_real_runs(compiled: Ranx, name: str) -> None:
    judgments, run = in_both(*dl21(name))
    assert check(compiled, judgments, run) == len(judgments) * len(NAMES)


@pytest.mark.long
@settings(max_examples=60)
@given(judged_runs(lowest=-1))
def test_any_runs(compiled: Ranx, case: tuple[Judgments, Rankings]) -> None:
    check(compiled, *in_both(*case))
