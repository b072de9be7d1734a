"""``podium train --text`` and ``podium predict`` with a text ranker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
import torch

from podium.data import read_run
from podium.rankers import LinearRanker, TextRanker
from tests.cli.run_podium import fail, podium, succeed
from tests.rankers.tiny_bert import save_tiny_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs, topics, documents and qrels: the more often a document has w0, the better."""
    path = tmp_path_factory.mktemp("texts")
    save_tiny_bert(path / "bert")
    run, topics, qrels, documents, lists = [], [], [], [], []
    for query in range(6):
        topics.append(f"q{query}\tw0 w{query}\n")
        candidates = []
        for grade in range(4):
            name, title, text = f"d{query}{grade}", f"w{grade + 1}", "w0 " * grade + "w9"
            run.append(f"q{query} Q0 {name} 0 {-grade} bm25\n")
            documents.append(f"{name}\t{title}\t{text}\n")
            if grade != 2:
                qrels.append(f"q{query} 0 {name} {grade}\n")
            candidates.append({"document_id": name, "title": title, "text": text, "label": grade})
        content = {"query_id": f"q{query}", "query": f"w0 w{query}", "candidates": candidates}
        lists.append(json.dumps(content) + "\n")
    run.append("q0 Q0 no-text 0 9 bm25\n")
    run.append("unjudged Q0 d01 0 9 bm25\n")
    topics.append("unjudged\tw5\n")
    for name, lines in {
        "bm25.run": run, "topics.tsv": topics, "documents.tsv": documents, "some.qrels": qrels,
        "lists.jsonl": lists, "other.qrels": ["q0 0 nobody 1\n"],
    }.items():  # fmt: skip
        (path / name).write_text("".join(lines))
    return path


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


TEXTS = ("--topics", "topics.tsv", "--documents", "documents.tsv")
SMALL = ("--set", "max_length=32", "--set", "epochs=1", "--set", "learning_rate=0.001")
TRAIN = ("train", "bm25.run", "out", "--text", "bert", *TEXTS, *SMALL)


def rows(grades: range) -> tuple[list[tuple[str, str]], list[str]]:
    """The texts of the run's documents, best first, as a ranker reads them."""
    pairs = [
        (f"w0 w{query}", f"w{grade + 1}\n{'w0 ' * grade}w9")
        for query in range(6)
        for grade in grades
    ]
    return pairs, [f"q{query}" for query in range(6) for _ in grades]


def test_train_and_predict(folder: Path) -> None:
    done = podium(
        *TRAIN, "--labels", "some.qrels", "--loss", "ListNet()", "--validation", "bm25.run"
    )
    assert done.returncode == 0, done.stderr
    message = " ".join(done.stderr.decode().split())
    assert "bm25.run: 6 queries, 24 documents" in message
    assert "some.qrels: 18 of 24 documents, the others count as 0; 6 of 7 queries" in message
    # What the same calls in Python give: an unjudged document has label 0.
    pairs, ids = rows(range(4))
    expected = TextRanker("bert", "ListNet()", max_length=32, epochs=1, learning_rate=0.001)
    labels = [0, 1, 0, 3] * 6
    expected.fit(pairs, labels, qid=ids, eval_set=[(pairs, labels)], eval_qid=[ids])
    loaded = TextRanker.load(folder / "out")
    np.testing.assert_allclose(loaded.predict(pairs), expected.predict(pairs), atol=1e-6)
    assert loaded.loss == "ListNet()"
    succeed("predict", "out", "bm25.run", *TEXTS, "-o", "new.run")
    run = read_run("new.run")
    assert (len(run), run.rows, run.name) == (7, 25, "TextRanker")
    scores = dict(zip(run.document_ids.to_pylist()[:24], run.scores[:24], strict=True))
    names = [f"d{query}{grade}" for query in range(6) for grade in range(4)]
    np.testing.assert_allclose([scores[name] for name in names], loaded.predict(pairs), atol=1e-6)
    lines = succeed("predict", "out", "lists.jsonl", "--json").splitlines()
    found = {each["document_id"]: each["score"] for each in map(json.loads, lines)}
    np.testing.assert_allclose([found[name] for name in names], loaded.predict(pairs), atol=1e-6)
    top = succeed("predict", "out", "bm25.run", *TEXTS, "--depth", 2, "--json").splitlines()
    # The document without a text is among the first two of its query.
    assert [json.loads(line)["document_id"] for line in top[:3]] == ["d00", "d10", "d11"]


def test_labels_of_candidates_and_checkpoints(folder: Path) -> None:
    arguments = ("--text", "bert", *SMALL, "--checkpoints", "kept", "--json")
    report = json.loads(succeed("train", "lists.jsonl", "listed", *arguments))
    assert report["training"]["documents"] == 24
    assert report["training_labels"]["documents_labeled"] == 24
    assert report["ranker"] == "TextRanker"
    assert (folder / "kept" / "checkpoint.podium").is_file()
    # Continued, with nothing left to do: the measure is that of the epoch before.
    again = ("train", "lists.jsonl", "twice", "--text", "bert", *SMALL, "--checkpoints", "held")
    first, second = (
        json.loads(succeed(*again, "--validation", "lists.jsonl", "--json")) for _ in range(2)
    )
    assert first["validation_measure"] == second["validation_measure"]
    assert list(first["validation_measure"]) == ["nDCG@10"]
    pairs, ids = rows(range(4))
    expected = TextRanker("bert", max_length=32, epochs=1, learning_rate=0.001)
    expected.fit(pairs, list(range(4)) * 6, qid=ids)
    np.testing.assert_allclose(
        TextRanker.load("listed").predict(pairs), expected.predict(pairs), atol=1e-6
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (TRAIN, "a run has no labels. Give --labels."),
        ((*TRAIN, "--labels", "other.qrels"), "other.qrels has no label for a document of bm25"),
        ((*TRAIN, "--labels", "some.qrels", "--scorer", "linear"), "scorer is not for text"),
        ((*TRAIN, "--labels", "some.qrels", "--set", "trees=3"), "has no parameter trees"),
        ((*TRAIN[:5], *SMALL), "a run has ids only. Give --topics and --documents too."),
        (("train", "x.txt", "y", *TEXTS), "--topics is for text rankers. Add --text"),
        (("predict", "bert", "bm25.run", *TEXTS), "is not a saved TextRanker"),
        (("predict", "linear", "bm25.run", *TEXTS), "--topics is for text rankers"),
        ((*TRAIN, "--labels", "some.qrels", "--zero-based"), "zero-based is not for text rankers"),
        ((*TRAIN, "--labels", "some.qrels", "--format", "run"), "format is not for text rankers"),
        (("train", "lists.jsonl", "o", "--text", "bert", "--depth", 3), "have their texts"),
        (("predict", "bert", "lists.jsonl", *TEXTS), "JSON lines have their texts"),
        (("predict", "bert", "lists.jsonl", "--query-column", "q"), "--query-column is not for"),
        (("train", "x.txt", "y", "--checkpoints", "kept"), "--checkpoints is for --cluster and"),
        (("export", "bert", "--to", "onnx", "--put", "http://a"), "put is not for text rankers"),
        (("export", "bert", "--to", "onnx", "-m", "RR"), "--measure is not for text rankers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(arguments: tuple[object, ...], message: str) -> None:
    LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2]).save("linear")
    assert message in " ".join(fail(*arguments).split())


def test_a_folder_with_other_content_is_not_written_over(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "README.md").write_text("mine")
    arguments = ("lists.jsonl", "mine", "--text", "bert", *SMALL)
    assert "mine is not a folder to save in" in fail("train", *arguments)
    assert (folder / "mine" / "README.md").read_text() == "mine"
