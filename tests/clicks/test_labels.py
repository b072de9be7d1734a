"""Labels of clicks, and what other commands make of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from podium.clicks import fit_clicks, label_clicks, simulate_clicks
from podium.data import Dataset, Judgments, read_qrels, write_letor, write_qrels
from podium.errors import ArgumentError, DataError
from podium.judging import SessionFile
from tests.cli.run_podium import fail, succeed

DATA = Dataset.from_arrays(
    [[n % 7] for n in range(200)], [n % 4 for n in range(200)], group=[10] * 20,
    document_ids=[f"d{n % 10}" for n in range(200)],
)  # fmt: skip


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    write_letor(DATA, folder / "data.txt")
    succeed("clicks", "simulate", folder / "data.txt", "-o", folder / "log", "--searches", 40,
            "--shuffled", 1)  # fmt: skip
    return folder / "log"


def test_grades_are_shares_of_all_documents(log: Path) -> None:
    labels = label_clicks(fit_clicks(log))
    grades = np.array(labels.table["grade"])
    shares = [np.mean(grades < grade) for grade in range(1, 5)]
    assert shares == pytest.approx([0.5, 0.75, 0.9, 0.97], abs=0.01)
    low, high = (np.array(labels.table[f"grade_{end}"]) for end in ("low", "high"))
    assert (low <= grades).all()
    assert (grades <= high).all()


def test_grades_are_as_frequent_as_those_of_people(log: Path) -> None:
    model = fit_clicks(log)
    people = Judgments.from_columns(
        DATA.query_id_of_row(), [f"d{n % 10}" for n in range(200)], DATA.labels
    )
    labels = label_clicks(model, people=people).judgments()
    _, counts = np.unique(labels.labels, return_counts=True)
    _, expected = np.unique(DATA.labels, return_counts=True)
    assert np.abs(counts - expected).max() <= 4
    with pytest.raises(DataError, match="people judged 1 documents"):
        label_clicks(model, people=Judgments.from_columns(["0"], ["d0"], [1]))
    with pytest.raises(ArgumentError, match="shares are"):
        label_clicks(model, shares=[0.9, 0.5])


def test_the_top_is_in_the_order_of_labels(log: Path) -> None:
    labels = label_clicks(fit_clicks(log))
    by_label = labels.judgments("probability")
    top = labels.judgments("top", k=3)
    for first, second in zip(range(len(top)), range(len(by_label)), strict=True):
        rows = slice(top.offsets[first], top.offsets[first + 1])
        best = np.argsort(-by_label.labels[by_label.offsets[second] : by_label.offsets[second + 1]])
        assert top.labels[rows][best].tolist() == [3, 2, 1] + [0] * 7


def test_undecided_pairs_are_those_whose_posteriors_overlap(log: Path) -> None:
    labels = label_clicks(fit_clicks(log))
    rows = {(row["query"], row["document_id"]): row for row in labels.table.to_pylist()}
    undecided = {each[:3]: each[3] for each in labels.undecided(k=10)}
    queries = sorted({query for query, _ in rows})
    for query in queries[:5]:
        names = [document for each, document in rows if each == query]
        for one in names:
            for two in names:
                first, second = rows[query, one], rows[query, two]
                if one == two or first["label"] <= second["label"]:
                    continue
                spread = np.hypot(first["deviation"], second["deviation"])
                better = stats.norm.cdf((first["label"] - second["label"]) / spread)
                assert ((query, one, two) in undecided) == (better < 0.95)
    assert 0 < len(undecided) < 20 * 45


def test_the_command_writes_judgments_tables_and_pairs(log: Path, tmp_path: Path) -> None:
    topics = tmp_path / "topics.tsv"
    topics.write_text("".join(f"q{n}\t{n}\n" for n in range(10)))
    succeed(
        "clicks", "label", log, "-o", tmp_path / "clicks.qrels", "--model", "sdbn", "--topics",
        topics, "--table", tmp_path / "t.parquet",
        "--undecided", tmp_path / "pairs.jsonl", "--k", 2,
    )  # fmt: skip
    judgments = read_qrels(tmp_path / "clicks.qrels")
    assert set(judgments.query_ids.to_pylist()) == {f"q{n}" for n in range(10)}
    assert set(judgments.labels.tolist()) <= {0, 1, 2, 3, 4}
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 200
    pairs = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert all(len(pair["documents"]) == 2 and 0.5 <= pair["better"] < 0.95 for pair in pairs)
    # Queries are called as in the judgments, and those without an id are left out of both.
    every = label_clicks(fit_clicks(log, "sdbn")).undecided(k=2)
    named = sorted((f"q{query}", one, two) for query, one, two, _ in every if int(query) < 10)
    assert sorted((pair["query"], *pair["documents"]) for pair in pairs) == named
    assert "is one of the files to read" in fail(
        "clicks", "label", log, "-o", topics, "--topics", topics
    )


def test_bias_is_printed_and_drawn(log: Path, tmp_path: Path) -> None:
    printed = json.loads(succeed("clicks", "bias", log, "--json", "--plot", tmp_path / "b.svg"))
    assert [row["rank"] for row in printed] == list(range(1, 11))
    assert printed[0]["examined"] == 1
    assert all(row["low"] <= row["examined"] <= row["high"] for row in printed)
    assert printed[1]["examined"] == pytest.approx(1 / 2, rel=0.3)
    assert (tmp_path / "b.svg").read_text().startswith("<svg")
    assert "examined" in succeed("clicks", "bias", log, "--model", "pbm-em")


def test_policies_may_be_runs(tmp_path: Path) -> None:
    data, run = tmp_path / "data.txt", tmp_path / "run.txt"
    two = Dataset.from_arrays([[1], [2]], [0, 1], qid=["q", "q"], document_ids=["a", "b"])
    write_letor(two, data)
    run.write_text("q Q0 a 1 2.0 x\nq Q0 b 2 1.0 x\n")
    succeed("clicks", "simulate", data, "-o", tmp_path / "log", "--policy", run, "--searches", 3)
    table = pq.read_table(tmp_path / "log/part-00000.parquet").to_pylist()
    assert {(row["document_id"], row["rank"]) for row in table} == {("a", 1), ("b", 2)}
    assert "neither a feature nor a run" in fail(
        "clicks", "simulate", data, "-o", tmp_path / "other", "--policy", "bm25"
    )
    assert simulate_clicks(two, tmp_path / "third", searches=2).searches == 2


@pytest.fixture(scope="module")
def qrels(log: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Judgments by clicks, and by three people who err now and then, of the same queries."""
    folder = tmp_path_factory.mktemp("qrels")
    random = np.random.default_rng(0)
    queries, documents = DATA.query_id_of_row(), DATA.document_ids
    paths = {"clicks": folder / "clicks.qrels"}
    for name in ("ann", "bob", "cem"):
        errs = random.random(200) < 0.3
        grades = np.where(errs, random.choice(4, 200), DATA.labels)
        paths[name] = folder / f"{name}.qrels"
        write_qrels(Judgments.from_columns(queries, documents, grades), paths[name])
    succeed("clicks", "label", log, "-o", paths["clicks"], "--people", paths["ann"])
    return paths


def test_clicks_are_audited_like_a_model(qrels: dict[str, Path]) -> None:
    clicks, *people = qrels.values()
    audit = json.loads(succeed("audit", clicks, *people, "--json"))
    assert (audit["model"], audit["task"], audit["units"]) == ("clicks", "grade", 200)
    assert audit["people"] == ["ann", "bob", "cem"]
    machine = read_qrels(clicks)
    agree = []
    for path in people:
        judged = read_qrels(path)
        agree.append(np.mean(judged.labels == _ordered(machine, judged)))
    assert audit["figures"]["agreement with people"]["value"] == pytest.approx(np.mean(agree))
    assert audit["test"]["winning_rate"] <= 1


def _ordered(machine: Judgments, judged: Judgments) -> np.ndarray:
    keys = zip(machine.query_id_of_row().to_pylist(), machine.document_ids.to_pylist(), strict=True)
    grades = dict(zip(keys, machine.labels.tolist(), strict=True))
    own = zip(judged.query_id_of_row().to_pylist(), judged.document_ids.to_pylist(), strict=True)
    return np.array([grades[key] for key in own])


def test_probabilities_are_not_grades_to_audit(
    log: Path, qrels: dict[str, Path], tmp_path: Path
) -> None:
    path = tmp_path / "p.qrels"
    succeed("clicks", "label", log, "-o", path, "--as", "probability")
    assert "grades are integers" in fail("audit", path, qrels["ann"])


def test_clicks_count_beside_few_judgments_of_people(
    qrels: dict[str, Path], tmp_path: Path
) -> None:
    run = tmp_path / "a.run"
    rows = zip(DATA.query_id_of_row().to_pylist(), DATA.document_ids.to_pylist(), strict=True)
    scores = np.random.default_rng(0).random(200) + DATA.labels
    lines = [f"{q} Q0 {d} 1 {s} a" for (q, d), s in zip(rows, scores, strict=True)]
    run.write_text("\n".join(lines) + "\n")
    few = tmp_path / "few.qrels"
    judged = read_qrels(qrels["ann"])
    write_qrels(judged.select(np.arange(8)), few)
    other = tmp_path / "b.run"
    other.write_text(run.read_text().replace(" a", " b"))
    printed = json.loads(
        succeed("compare", few, run, other, "--machine", qrels["clicks"], "--json")
    )
    (means,) = printed["means"].values()
    assert [mean["human_queries"] for mean in means.values()] == [8, 8]
    assert [mean["machine_queries"] for mean in means.values()] == [12, 12]


def test_people_start_from_the_order_of_clicks(log: Path, tmp_path: Path) -> None:
    prior, source = tmp_path / "prior.qrels", tmp_path / "candidates.jsonl"
    succeed("clicks", "label", log, "-o", prior, "--as", "probability")
    candidates = [{"document_id": f"d{n}", "title": f"t{n}", "text": "x"} for n in range(10)]
    source.write_text(json.dumps({"query_id": "0", "query": "0", "candidates": candidates}) + "\n")
    succeed("judge", tmp_path / "s.session", "--from", source, "--prior", prior, "--k", 3,
            stdin=b"q\n")  # fmt: skip
    judged = read_qrels(prior).select(["0"])
    order = [judged.document_ids[int(row)].as_py() for row in np.argsort(-judged.labels)]
    with SessionFile.open(tmp_path / "s.session") as journal:
        assert list(journal.session.items) == order
        assert journal.session.ordered
