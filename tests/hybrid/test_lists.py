"""Lists without a search engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from podium.data import read_run
from podium.errors import ArgumentError, DataError
from podium.hybrid import lists
from podium.hybrid.lists import lexical_list, nearest_list
from tests.cli.run_podium import fail, podium

TEXTS = {"a": "red running shoe", "b": "blue shoe, a blue one", "c": "rain jacket"}


def rows(run):
    ids = zip(run.query_id_of_row().to_pylist(), run.document_ids.to_pylist(), strict=True)
    return list(zip(ids, run.scores.tolist(), strict=True))


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_neighbors_are_those_of_all_products(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "_QUERIES", 2)
    monkeypatch.setattr(lists, "_DOCUMENTS", block)
    rng = np.random.default_rng(0)
    documents = {f"d{each}": rng.integers(-3, 4, 5) for each in range(40)}  # with ties
    queries = {f"q{each}": rng.integers(-3, 4, 5) for each in range(5)}
    run = nearest_list(documents, queries, depth=6)
    expected = []
    for query, vector in queries.items():
        scores = {name: float(vector @ other) for name, other in documents.items()}
        best = sorted(scores, key=lambda name: -scores[name])[:6]  # stable
        expected += [((query, name), scores[name]) for name in best]
    assert rows(run) == expected


def test_vectors_must_fit() -> None:
    with pytest.raises(DataError, match="of 2 numbers, queries of 1"):
        nearest_list({"a": [1, 2]}, {"q": [1]})
    with pytest.raises(DataError, match="differ in length"):
        nearest_list({"a": [1, 2], "b": [1]}, {"q": [1, 2]})
    with pytest.raises(DataError, match="no documents"):
        nearest_list({}, {"q": [1, 2]})
    with pytest.raises(ArgumentError, match="depth is 0"):
        nearest_list({"a": [1]}, {"q": [1]}, depth=0)


def test_words_find_documents() -> None:
    run = lexical_list(TEXTS, {"1": "blue shoes shoe", "2": "RAIN!", "3": "zebra", "4": ""})
    found = [pair for pair, _ in rows(run)]
    assert found == [("1", "b"), ("1", "a"), ("2", "c")]  # no document without a word
    assert (run.scores > 0).all()
    short = lexical_list(TEXTS, {"1": "blue shoe"}, depth=1)
    assert [pair for pair, _ in rows(short)] == [("1", "b")]
    with pytest.raises(DataError, match="no query has a document"):
        lexical_list(TEXTS, {"3": "zebra"})


def test_the_command_counts_queries_without_documents(tmp_path: Path) -> None:
    documents, queries = tmp_path / "documents.tsv", tmp_path / "queries.tsv"
    documents.write_text("".join(f"{name}\t{text}\n" for name, text in TEXTS.items()))
    queries.write_text("1\tblue shoe\n2\tzebra\n")
    result = podium("hybrid", "lists", documents, queries, "-o", tmp_path / "out")
    assert b"2 documents of 1 queries; 1 have no document" in result.stderr
    assert read_run(tmp_path / "out/bm25.run").document_ids.to_pylist() == ["b", "a"]
    assert not (tmp_path / "out/dense.run").exists()
    queries.write_text("1\tblue shoe\n1\tzebra\n")
    assert "'1' appears twice" in fail(
        "hybrid", "lists", documents, queries, "-o", tmp_path / "out"
    )
