import json
from pathlib import Path

import numpy as np
import pytest

from podium.data import (
    Dataset,
    Judgments,
    Rankings,
    read_csv,
    write_letor,
    write_parquet,
    write_qrels,
    write_run,
)
from podium.errors import DataError
from podium.measures import evaluate
from podium.rankers import LinearRanker
from tests.cli.run_podium import fail, succeed


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluate")
    random = np.random.default_rng(0)
    ids = np.repeat([f"q{query}" for query in range(20)], 10)
    documents = [f"d{row}" for row in range(200)]
    labels = random.integers(0, 4, 200)
    write_qrels(Judgments.from_columns(ids, documents, labels), path / "truth.qrels")
    for name, noise in (("weak", 3.0), ("strong", 0.5)):
        scores = labels + noise * random.normal(size=200)
        run = Rankings.from_columns(ids, documents, scores, name=name)
        write_run(run, path / f"{name}.run")
        write_parquet(run, path / f"{name}.run.parquet")
    data = Dataset.from_arrays(
        scores[:, None], labels=labels, qid=ids, document_ids=documents, feature_names=["score"]
    )
    write_letor(data, path / "data.txt")
    write_parquet(data, path / "scored.parquet")
    np.savetxt(path / "scores.txt", scores)
    expected = evaluate(["nDCG@5", "AP"], data, scores).means
    (path / "expected.json").write_text(json.dumps(list(expected.values())))
    return path


def means(*arguments: str) -> list[float]:
    printed = succeed("evaluate", *arguments, "-m", "nDCG@5", "-m", "AP", "--json")
    return list(next(iter(json.loads(printed).values()))["means"].values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("truth.qrels", "strong.run"),
        ("truth.qrels", "strong.run.parquet"),
        ("data.txt", "strong.run", "--truth-format", "letor"),
        ("data.txt", "strong.run"),
        ("data.txt", "--scores", "scores.txt"),
        ("scored.parquet",),
    ],
)
def test_every_way_to_evaluate_gives_the_same(folder: Path, arguments: tuple[str, ...]) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    assert means(*arguments) == pytest.approx(expected, abs=1e-6)


def test_a_table_and_every_query() -> None:
    printed = succeed("evaluate", "truth.qrels", "weak.run", "strong.run", "-q")
    assert "nDCG@10" in printed
    assert printed.count("q7") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("truth.qrels", "strong.run", "-m", "ndgc@10"), "Did you mean"),
        (("truth.qrels", "none.run"), "no such file"),
        (("truth.qrels", "strong.run", "-c", "excel"), "excel"),
        (("truth.qrels",), "give runs after it, or --scores"),
        (("data.txt", "--scores", "truth.qrels"), "one number per line"),
        (("truth.qrels", "weak.run", "--trec", "-c", "podium"), "leave out --scores, --cluster"),
        (("truth.qrels", "weak.run", "--trec", "--json"), "prints what trec_eval does"),
        (("truth.qrels", "weak.run", "--trec", "--machine", "truth.qrels"), "leave out --scores"),
        (("truth.qrels", "weak.run", "--scores", "x.txt"), "three ways to evaluate"),
        (("truth.qrels", "weak.run", "--cluster", "auto"), "three ways to evaluate"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert message.lower() in fail("evaluate", *arguments).lower()


def test_compare_prints_and_writes_every_report(folder: Path) -> None:
    outputs = [word for end in ("html", "md", "tex", "json") for word in ("-o", f"report.{end}")]
    printed = succeed("compare", "truth.qrels", "weak.run", "strong.run", *outputs)
    assert "strong" in printed
    assert "coherent" in printed
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert "| nDCG@10 | strong |" in (folder / "report.md").read_text()
    assert r"\toprule" in (folder / "report.tex").read_text()
    assert json.loads((folder / "report.json").read_text())["baseline"] == "weak"


def test_compare_in_a_pipe_says_what_a_program_has_to_know(folder: Path) -> None:
    assert (folder / "weak.run").exists()
    printed = succeed("compare", "truth.qrels", "weak.run", "strong.run", "-m", "ndcg_cut_10")
    heading, _, strong = (line.split("\t") for line in printed.splitlines())
    row = dict(zip(heading, strong, strict=True))
    assert (row["test"], row["conventions"], row["system"]) == (
        "randomization",
        "trec_eval",
        "strong",
    )
    assert float(row["difference"]) > 0
    assert int(row["queries"]) == len(
        {line.split()[0] for line in (folder / "truth.qrels").read_text().splitlines()}
    )


def test_unjudged_results_follow_the_conventions_of_the_comparison(tmp_path: Path) -> None:
    (tmp_path / "q.qrels").write_text("1 0 a 3\n1 0 b 1\n1 0 spam -1\n2 0 a 1\n")
    (tmp_path / "old.run").write_text("1 Q0 b 1 2 o\n1 Q0 a 2 1 o\n1 Q0 new 3 0 o\n")
    (tmp_path / "new.run").write_text("1 Q0 a 1 2 n\n1 Q0 b 2 1 n\n2 Q0 a 1 1 n\n")
    files = (tmp_path / "q.qrels", tmp_path / "old.run", tmp_path / "new.run")
    content = json.loads(succeed("compare", *files, "-m", "ndcg_cut_10", "--json"))
    # Linear gains, and a query that one run lacks is in neither.
    ideal = 3 + 1 / np.log2(3)
    expected = 1 - (1 + 3 / np.log2(3)) / ideal
    (entry,) = content["unjudged"]
    assert entry["difference"] == pytest.approx(expected)
    assert content["measures"]["nDCG@10"]["n"]["difference"] == pytest.approx(expected)
    assert content["conventions"] == "trec_eval"


def test_compare_refuses_a_report_it_cannot_write() -> None:
    assert ".html" in fail("compare", "truth.qrels", "weak.run", "strong.run", "-o", "x.pdf")


def test_json_counts_the_queries_that_have_a_value(tmp_path: Path) -> None:
    """As the table does: trec_eval leaves out a topic that the run does not have."""
    qrels, run = tmp_path / "some.qrels", tmp_path / "some.run"
    qrels.write_text("q 0 a 1\nq 0 b 0\nr 0 a 1\ns 0 a 1\n")
    run.write_text("q Q0 a 1 2 x\nq Q0 b 2 1 x\nr Q0 a 1 2 x\n")
    for name, count in (("map", 2), ("AP", 3)):  # Podium counts s as an empty list
        printed = json.loads(succeed("evaluate", str(qrels), str(run), "-m", name, "--json"))
        (evaluation,) = printed.values()
        assert (evaluation["queries"], evaluation["queries_by_measure"]) == (count, {"AP": count})


def test_scores_of_a_file_are_in_the_order_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("qid,label,f\n1,1,0.9\n2,0,0.1\n1,0,0.2\n2,1,0.8\n")
    (tmp_path / "scores.txt").write_text("0.9\n0.1\n0.2\n0.8\n")
    files = (tmp_path / "d.csv", "--scores", tmp_path / "scores.txt")
    content = json.loads(succeed("evaluate", *files, "-m", "RR", "--json"))
    assert content["scores"]["means"]["RR"] == 1.0
    data = read_csv(tmp_path / "d.csv")
    np.testing.assert_array_equal(data.row_order, [0, 2, 1, 3])  # type: ignore[arg-type]
    assert data.top_k(1).row_order is data.row_order
    assert data.select([0]).row_order is None
    ranker = LinearRanker("ListNet()").fit(data)
    ranker.save(tmp_path / "r.podium")
    succeed("predict", tmp_path / "r.podium", tmp_path / "d.csv", "-o", tmp_path / "out.txt")
    predicted = [float(line) for line in (tmp_path / "out.txt").read_text().split()]
    assert predicted == pytest.approx((ranker.coef_[0] * np.array([0.9, 0.1, 0.2, 0.8])).tolist())
    with pytest.raises(DataError, match="not in one piece each"):
        evaluate("RR", str(tmp_path / "d.csv"), [0.9, 0.1, 0.2, 0.8])
