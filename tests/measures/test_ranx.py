"""The preset ``ranx`` against ranx, query by query."""

from typing import Any

import numpy as np
import pytest
import ranx
from hypothesis import given, settings

from podium.data import Judgments, Rankings
from podium.measures import evaluate
from tests.measures.queries import RUNS, as_dicts, dl21, judged_runs

# ranx takes long to import and to compile, with integers of two signs, which Numba warns of. In
# one process of several, it compiles once.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("ranx"),
]

NAMES = [
    *("map", "mrr", "r_precision", "precision", "recall", "hit_rate", "ndcg", "ndcg_burges"),
    *("dcg", "dcg_burges", "bpref", "rbp.80", "rbp.95"),
    *("map@5", "mrr@3", "precision@5", "recall@5", "hit_rate@3", "ndcg@5", "ndcg_burges@10"),
    *("dcg@10", "precision@50-l2", "map-l2"),
]
THEIRS = {"r_precision": "r-precision"}


def padded(documents: dict[str, Any]) -> dict[str, Any]:
    """Ids of one length, in the same order: ranx compiles again, for a minute, for each length."""
    return {document.ljust(40): value for document, value in documents.items()}


def check(judgments: Judgments, run: Rankings) -> int:
    qrels, found = (
        {topic: padded(each) for topic, each in one.items()} for one in as_dicts(judgments, run)
    )
    their_run = ranx.Run({topic: found[topic] for topic in qrels})
    ranx.evaluate(ranx.Qrels(qrels), their_run, [THEIRS.get(name, name) for name in NAMES])
    ours = evaluate(NAMES, judgments, run, conventions="ranx")
    # One query without relevant or without irrelevant judgments spoils ranx's bpref of them all.
    grades = [set(np.sign(list(labels.values()))) for labels in qrels.values()]
    sound = all(1 in signs and len(signs) > 1 for signs in grades)
    compared = 0
    for query, topic in enumerate(ours.query_ids.to_pylist()):
        for name in NAMES:
            theirs = their_run.scores[THEIRS.get(name, name)][topic]
            if sound or name != "bpref":
                assert ours[name][query] == pytest.approx(theirs, abs=1e-6), (topic, name)
                compared += 1
    return compared


def in_both(judgments: Judgments, run: Rankings) -> tuple[Judgments, Rankings]:
    """ranx refuses queries that only one side has."""
    both = sorted(set(judgments.query_ids.to_pylist()) & set(run.query_ids.to_pylist()))
    return judgments.select(both), run.select(both)


@pytest.mark.parametrize("name", RUNS[:1])
def test_real_runs(name: str) -> None:
    judgments, run = in_both(*dl21(name))
    assert check(judgments, run) == len(judgments) * len(NAMES)


@settings(max_examples=60)
@given(judged_runs(lowest=-1))
def test_any_runs(case: tuple[Judgments, Rankings]) -> None:
    check(*in_both(*case))
