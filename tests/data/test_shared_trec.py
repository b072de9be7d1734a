"""The TREC files beside the project read with the counts of their description."""

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from podium.data import read_pairs, read_qrels, read_run
from podium.data.formats.trec import read_prefs
from tests.data.shared_files import SHARED, shared

RUNS = sorted(path.name for path in SHARED.glob("trec/dl21-runs/*.gz")) or ["p_bm25.run.gz"]


def lines(path: Path) -> list[list[str]]:
    """The words of each line, read by the standard library."""
    open_text = gzip.open if path.suffix == ".gz" else Path.open
    with open_text(path, "rt") as file:
        return [line.split() for line in file]


def test_there_are_twelve_runs() -> None:
    shared("trec/dl21-runs")
    assert len(RUNS) == 12


@pytest.mark.parametrize("name", RUNS)
def test_runs_of_the_deep_learning_track(name: str) -> None:
    path = shared(f"trec/dl21-runs/{name}")
    run = read_run(path)
    assert (len(run), run.rows) == (477, 47_700)
    assert set(run.sizes.tolist()) == {100}
    expected = lines(path)
    order = {query: index for index, query in enumerate(run.query_ids.to_pylist())}
    expected.sort(key=lambda words: order[words[0]])
    assert run.document_ids.to_pylist() == [words[2] for words in expected]
    assert run.scores.tolist() == [float(words[4]) for words in expected]
    assert run.name == expected[0][5]


@pytest.mark.parametrize("year", [19, 20, 21])
def test_judgments_of_the_deep_learning_track(year: int) -> None:
    path = shared(f"trec/qrels.dl{year}-passage.txt.gz")
    table = read_qrels(path)
    expected = lines(path)
    assert (table.rows, len(table)) == (len(expected), len({words[0] for words in expected}))
    assert Counter(table.labels.tolist()) == Counter(float(words[3]) for words in expected)
    assert set(table.labels.tolist()) == {0.0, 1.0, 2.0, 3.0}


def test_join_with_a_run_is_a_dictionary_look_up() -> None:
    run = read_run(shared("trec/dl21-runs/p_bm25.run.gz"))
    path = shared("trec/qrels.dl21-passage.txt.gz")
    judged = read_qrels(path)
    labels = {(words[0], words[2]): float(words[3]) for words in lines(path)}
    joined = run.join(judged)
    queries = np.repeat(judged.query_ids.to_pylist(), np.diff(joined.offsets)).tolist()
    documents = joined.document_ids.to_pylist()
    expected = [labels.get(pair, np.nan) for pair in zip(queries, documents, strict=True)]
    np.testing.assert_array_equal(joined.labels, np.float32(expected))
    assert joined.dropped_queries == 477 - len(judged)


@pytest.mark.parametrize(
    ("name", "rows", "queries", "pairs"),
    [
        ("trec-dl21/human.pref", 11_681, 50, 8_685),
        ("trec-cast19/crowd.pref", 14_573, 171, None),
        ("trec-cast19/local.pref", 3_743, 171, None),
    ],
)
def test_human_preferences(name: str, rows: int, queries: int, pairs: int | None) -> None:
    path = shared(f"preferences/{name}")
    table = read_pairs(path)
    assert (table.rows, len(table)) == (rows, queries)
    assert set(table.verdicts.tolist()) == {1, -1}
    left = sum(words[1] == words[3] for words in lines(path))
    assert int((table.verdicts == 1).sum()) == left
    if pairs is not None:
        triples = zip(
            table.query_id_of_row().to_pylist(),
            table.left.to_pylist(),
            table.right.to_pylist(),
            strict=True,
        )
        assert len({(query, frozenset(pair)) for query, *pair in triples}) == pairs


def test_inputs_of_trec_eval() -> None:
    folder = shared("trec/trec_eval")
    for name in ("qrels.test", "qrels.rel_level", "qrels-302.test"):
        assert read_qrels(folder / name).rows == len(lines(folder / name))
    for name in ("results.test", "results-302.test", "prefs.results.test"):
        assert read_run(folder / name).rows == len(lines(folder / name))
    levels = read_prefs(folder / "prefs.test")
    assert levels.rows == len(lines(folder / "prefs.test")) == 164
    as_qrels = read_prefs(folder / "qrels.test", subgroups=False)
    assert as_qrels.rows == 3681
    assert set(as_qrels.subgroups.to_pylist()) == {"0"}


def test_pairs_of_levels_are_as_many_as_trec_eval_counts() -> None:
    folder = shared("trec/trec_eval")
    pairs = read_prefs(folder / "prefs.test").pairs()
    counted = dict(zip(pairs.query_ids.to_pylist(), pairs.sizes.tolist(), strict=True))
    # Its expected output has a line a query. In topics named EC each judge's levels are complete;
    # in the others trec_eval drops contradictions and adds what follows from other preferences.
    expected = {
        words[1]: int(words[2])
        for words in lines(folder / "out.test.prefs")
        if words[0] == "prefs_num_prefs_poss" and ".EC." in words[1]
    }
    assert len(expected) == 11
    assert {topic: counted.get(topic, 0) for topic in expected} == expected


def test_cacm() -> None:
    assert read_run(shared("text/cacm/cacm-bm25.txt")).name == "Anserini"
    path = shared("text/cacm/qrels.cacm.txt")
    assert read_qrels(path).rows == len(lines(path))
