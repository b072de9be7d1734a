"""Runs by id: put side by side, fused, and fused as ranx fuses them."""

import numpy as np
import pytest

from podium.aggregation import borda, exact_kemeny, fuse, reciprocal_rank, stack_runs
from podium.data import Rankings, read_run, write_run
from podium.data.sources import as_rankings
from podium.errors import DataError
from podium.measures import evaluate
from tests.data.shared_files import shared
from tests.ranx_process import Ranx


def made_run(seed: int) -> Rankings:
    """Some documents of some queries, in any order."""
    random = np.random.default_rng(seed)
    rows = [(f"q{q}", f"d{d}") for q in range(6) for d in range(30) if random.random() < 0.6]
    random.shuffle(rows)
    queries, documents = zip(*rows, strict=True)
    return Rankings.from_columns(queries, documents, random.permutation(len(rows)))


def as_dict(run: Rankings) -> dict[str, dict[str, float]]:
    result: dict[str, dict[str, float]] = {}
    rows = run.query_id_of_row().to_pylist(), run.document_ids.to_pylist(), run.scores.tolist()
    for query, document, score in zip(*rows, strict=True):
        result.setdefault(query, {})[document] = score
    return result


def test_votes_are_the_scores_by_id() -> None:
    runs = [made_run(seed) for seed in range(3)]
    stacked = stack_runs(runs)
    dicts = [as_dict(run) for run in runs]
    queries = np.repeat(stacked.query_ids.to_pylist(), np.diff(stacked.offsets))
    rows = set(zip(queries, stacked.document_ids.to_pylist(), strict=True))
    assert rows == {(q, d) for each in dicts for q, result in each.items() for d in result}
    assert len(rows) == len(stacked.votes)
    for query, document, row in zip(
        queries, stacked.document_ids.to_pylist(), stacked.votes, strict=True
    ):
        expected = [each.get(query, {}).get(document, np.nan) for each in dicts]
        assert np.array_equal(row, expected, equal_nan=True)


def test_a_query_may_be_missing_from_a_run() -> None:
    first = Rankings.from_columns(["a", "b"], ["x", "y"], [1, 2])
    second = Rankings.from_columns(["b"], ["z"], [1])
    fused = fuse([first, second], borda, name="both")
    assert as_dict(fused) == {"a": {"x": 0.0}, "b": {"y": 1.0, "z": 1.0}}
    assert fused.name == "both"


def test_exact_orders_are_a_run_too() -> None:
    run = made_run(1)
    fused = fuse([run, run], exact_kemeny, ranker_weights=[1, 2])
    for query, documents in as_dict(run).items():
        result = as_dict(fused)[query]
        assert sorted(result, key=result.__getitem__) == sorted(
            documents, key=documents.__getitem__
        )


def test_no_runs() -> None:
    with pytest.raises(DataError, match="no runs"):
        stack_runs([])


def test_real_runs_fused_are_better_than_their_median() -> None:
    from podium.data import read_qrels

    judgments = read_qrels(shared("trec/qrels.dl21-passage.txt.gz"))
    names = ("p_bm25", "TUW_TAS-B_768", "ielab-uniCOIL", "yorku21_a")
    runs = [read_run(shared(f"trec/dl21-runs/{name}.run.gz")) for name in names]
    values = [evaluate("nDCG@10", judgments, run)["nDCG@10"].mean() for run in runs]
    for aggregate in (borda, reciprocal_rank):
        fused = fuse(runs, aggregate)
        assert evaluate("nDCG@10", judgments, fused)["nDCG@10"].mean() > np.median(values)


@pytest.mark.slow
def test_fused_as_ranx_does() -> None:
    ranx = Ranx()
    runs = [made_run(seed) for seed in range(4)]
    for method, ours in (("rrf", fuse(runs, reciprocal_rank)), ("bordafuse", fuse(runs, borda))):
        expected = ranx.fuse([as_dict(run) for run in runs], method)
        result = as_dict(ours)
        assert result.keys() == expected.keys()
        for query, documents in expected.items():
            # ranx counts a document as below itself, in each of the runs.
            own = len(runs) if method == "bordafuse" else 0
            for document, score in documents.items():
                assert result[query][document] + own == pytest.approx(score)
    ranx.close()


def test_dictionaries_and_files_are_fused_as_rankings(tmp_path):
    runs = [{"q": {"a": 12.5, "b": 11.0}}, {"q": {"b": 0.9, "c": 0.8}}]
    read = [as_rankings(run) for run in runs]
    write_run(read[1], tmp_path / "second.run")
    expected = fuse(read, reciprocal_rank)
    for given in (runs, [runs[0], tmp_path / "second.run"]):
        fused = fuse(given, reciprocal_rank)
        assert fused.document_ids.to_pylist() == ["a", "b", "c"]
        assert fused.scores.tolist() == expected.scores.tolist()
