"""One set of options for reading data in every command, and hints that name these options."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from podium.cli.failing import for_command_line
from podium.data import Dataset, read_csv, write_letor, write_parquet, write_run
from podium.data.sources import as_rankings
from podium.measures import evaluate
from podium.rankers import LinearRanker, load_ranker
from tests.cli.run_podium import fail, podium, succeed
from tests.rankers.made_up import made_up

NAMES = ("bm25", "clicks", "age", "length", "links", "spam")


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def table(data: Dataset, delimiter: str, names: dict[str, str], *, labels: bool = True) -> str:
    """A data set as text with a header line, its columns renamed."""
    first = ["query_id", "document_id", *(["label"] if labels else [])]
    lines = [delimiter.join(names.get(name, name) for name in (*first, *data.feature_names))]
    queries = data.query_id_of_row().to_pylist()
    for row, query in enumerate(queries):
        cells = [f"0{query}", f"d{row}", *([data.labels[row]] if labels else [])]
        lines.append(delimiter.join(map(str, [*cells, *data.features[row].tolist()])))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def data() -> Dataset:
    made = made_up()
    return Dataset.from_arrays(made.features, made.labels, group=made.sizes, feature_names=NAMES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> Path:
    path = tmp_path_factory.mktemp("reading")
    own = {"query_id": "search", "document_id": "item", "label": "stars"}
    (path / "plain.csv").write_text(table(data, ",", {}))
    (path / "pandas.tsv").write_text(table(data, "\t", {"query_id": "qid", "label": "rel"}))
    (path / "own.csv").write_text(table(data, ",", own))
    (path / "own.data").write_text(table(data, "\t", own))
    (path / "unlabeled.csv").write_text(table(data, ",", {}, labels=False))
    (path / "unlabeled.tsv").write_text(table(data, "\t", {}, labels=False))
    write_parquet(data, path / "labeled.parquet")
    full = pq.read_table(path / "labeled.parquet")
    pq.write_table(full.drop_columns(["label"]), path / "unlabeled.parquet")
    write_letor(data, path / "labeled.txt")
    lines = (path / "labeled.txt").read_text().splitlines()
    without = [line.partition(" ")[2] for line in lines]
    (path / "unlabeled.txt").write_text("# scored tonight\n" + "\n".join(without) + "\n")
    LinearRanker("ListNet()").fit(data).save(path / "named")
    numbered = Dataset.from_arrays(data.features, data.labels, group=data.sizes)
    LinearRanker("ListNet()").fit(numbered).save(path / "numbered")
    return path


OWN = ("--query-column", "search", "--label-column", "stars", "--document-column", "item")


@pytest.mark.parametrize(
    "arguments",
    [
        ("plain.csv",),
        ("pandas.tsv",),
        ("own.csv", *OWN),
        ("own.data", *OWN, "--format", "tsv"),
    ],
)
def test_tables_of_any_names_are_described_and_trained_on(arguments: tuple[str, ...]) -> None:
    description = json.loads(succeed("describe", *arguments, "--json"))
    assert list(description["feature_ranges"]) == list(NAMES)
    assert (description["queries"], description["document_ids"]) == (40, True)
    source, *options = arguments
    done = podium("train", source, "trained", "-s", "linear", "-l", "ListNet()", *options)
    assert done.returncode == 0, done.stderr
    expected = load_ranker("named").coef_
    np.testing.assert_allclose(load_ranker("trained").coef_, expected, rtol=1e-4)


def test_ids_stay_as_they_are_written() -> None:
    assert read_csv("plain.csv").query_ids.to_pylist()[:2] == ["00", "01"]
    qrels = succeed("convert", "plain.csv", "-", "--to", "qrels").splitlines()
    assert qrels[0].split()[:3] == ["00", "0", "d0"]


def test_tables_come_back_from_tables(data: Dataset) -> None:
    succeed("convert", "own.csv", "again.tsv", *OWN)
    np.testing.assert_array_equal(read_csv("again.tsv", delimiter="\t").features, data.features)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "txt"])
def test_data_without_labels_are_scored(data: Dataset, ending: str) -> None:
    model = "numbered" if ending == "txt" else "named"
    rows = data.features if ending == "txt" else data
    scores = np.array(succeed("predict", model, f"unlabeled.{ending}").split(), float)
    np.testing.assert_allclose(scores, load_ranker(model).predict(rows), rtol=1e-6)
    run = succeed("predict", model, f"unlabeled.{ending}", "--run").splitlines()
    assert len(run) == data.rows


def test_scores_as_json_lines(data: Dataset) -> None:
    rows = [json.loads(line) for line in succeed(
        "predict", "named", "unlabeled.csv", "--json"
    ).splitlines()]  # fmt: skip
    assert len(rows) == data.rows
    assert (rows[1]["query_id"], rows[1]["document_id"]) == ("00", "d1")
    assert rows[1]["score"] == pytest.approx(load_ranker("named").predict(data)[1])


def test_data_without_labels_are_not_trained_on() -> None:
    assert "has 0 columns 'label'" in fail("train", "unlabeled.csv", "m", "-s", "linear")


def test_judgments_and_runs_as_tables(folder: Path) -> None:
    (folder / "truth.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t0\n")
    (folder / "own-truth.csv").write_text("search,item,stars\n1,a,1\n1,b,0\n")
    (folder / "run.csv").write_text("qid,docno,score\n1,b,0.5\n1,a,0.25\n")
    (folder / "trec.tsv").write_text("1\t0\ta\t1\n1\t0\tb\t0\n")
    for arguments in (("truth.tsv",), ("trec.tsv",)):
        printed = succeed("evaluate", *arguments, "run.csv", "-m", "RR", "--json")
        assert next(iter(json.loads(printed).values()))["means"] == {"RR": 0.5}
    printed = succeed("evaluate", "own-truth.csv", "run.csv", "-m", "RR", "--json", *OWN)
    assert next(iter(json.loads(printed).values()))["means"] == {"RR": 0.5}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("command", ["evaluate", "compare", "plan"])
def test_runs_are_tables_with_columns_of_other_names(
    folder: Path, command: str, suffix: str
) -> None:
    (folder / "shop.qrels").write_text("007 0 b 1\n8 0 a 1\n")
    rows = pa.table(
        {
            "search_term": ["007", "007", "8", "8"],
            "sku": ["a", "b", "a", "b"],
            "query": ["1", "2", "3", "4"],
            "score": [0.25, 0.5, 0.25, 0.5],
        }
    )
    name = f"shop.{suffix}"
    if suffix == "csv":
        pa_csv.write_csv(rows, folder / name)
    else:
        pq.write_table(rows, folder / name)
    write_run(as_rankings(rows, rename=SHOP), folder / "shop.run")
    columns = ("--query-column", "search_term", "--document-column", "sku", "-m", "RR", "--json")
    runs = ("shop.run", name) if command == "evaluate" else ("shop.run", name, "other.run")
    write_run(as_rankings({"007": {"b": 1, "a": 0}, "8": {"a": 1, "b": 0}}), folder / "other.run")
    printed = json.loads(succeed(command, "shop.qrels", *runs, *columns))
    if command == "evaluate":
        assert [each["means"] for each in printed.values()] == [{"RR": 0.75}] * 2
    # Judgments have no columns to name where no run is a table either.
    line = fail(command, "shop.qrels", "shop.run", "other.run", *columns)
    assert "qrels has no columns to name" in line


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_columns_of_runs_are_not_those_of_the_truth(command: str, tmp_path: Path) -> None:
    truth, run = tmp_path / "judged.csv", tmp_path / "wrongrun.csv"
    truth.write_text("query_id,document_id,label\nq1,a,1\nq1,b,0\nq2,a,1\nq2,b,0\n")
    rows = "q1,a,2\nq1,b,1\nq2,a,1\nq2,b,2\n"
    run.write_text(f"search,sku,points\n{rows}")
    (tmp_path / "other.csv").write_text(f"query_id,doc,score\n{rows}")
    columns = ("--query-column", "search", "--document-column", "sku", "--score-column", "points")
    printed = succeed(command, truth, run, tmp_path / "other.csv", *columns, "-m", "RR")
    rows_of = {line.split("\t")[1]: line.split("\t")[2] for line in printed.splitlines()[1:3]}
    assert rows_of == {"wrongrun": "0.7500", "other": "0.7500"}


SHOP = {"search_term": "query_id", "sku": "document_id"}


def test_a_table_with_labels_and_scores(folder: Path, data: Dataset) -> None:
    rows = zip(data.query_id_of_row().to_pylist(), data.labels, data.features[:, 0], strict=True)
    lines = [f"{query},{label},{score}" for query, label, score in rows]
    (folder / "scored.csv").write_text("\n".join(["search,stars,own", *lines]) + "\n")
    columns = ("--query-column", "search", "--label-column", "stars", "--score-column", "own")
    printed = json.loads(succeed("evaluate", "scored.csv", *columns, "--json"))
    expected = evaluate("nDCG@10", data, data.features[:, 0]).means["nDCG@10"]
    assert printed["scored"]["means"]["nDCG@10"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("describe", "own.csv"), "Name it: --query-column"),
        (("describe", "own.csv", "--query-column", "query"), "has no column 'query'"),
        (("describe", "labeled.txt", "--query-column", "qid"), "letor has no columns to name"),
        (("describe", "own.csv", *OWN[:2], "--group", "x"), "csv has no option --group"),
        (("describe", "bad.csv"), "is not a table with a header line"),
        (("describe", "zero.txt"), "Read with --zero-based"),
        (("describe", "sizes.txt"), "with --group"),
        (("describe", "nan.txt"), "read with --keep-nonfinite"),
    ],
)
def test_hints_name_options(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "bad.csv").write_text("a,b\n1,2,3\n")
    (folder / "zero.txt").write_text("1 qid:1 0:5\n")
    (folder / "sizes.txt").write_text("1 1:5\n")
    (folder / "nan.txt").write_text("1 qid:1 1:nan\n")
    assert message in fail(*arguments)


def test_features_are_chosen(data: Dataset) -> None:
    printed = succeed("describe", "plain.csv", "--feature-columns", "age,bm25", "--json")
    assert list(json.loads(printed)["feature_ranges"]) == ["age", "bm25"]
    assert data.feature_names == NAMES


def test_every_command_that_reads_data_has_the_same_options() -> None:
    for command in (
        "convert",
        "describe",
        "train",
        "tune",
        "predict",
        "evaluate",
        "compare",
        "plan",
    ):
        printed = succeed(command, "-h")
        for option in ("--format", "--query-column", "--label-column", "--feature-columns"):
            assert option[:12] in printed, (command, option)


def test_messages_without_python_arguments_stay() -> None:
    assert (
        for_command_line("x.txt, line 3: is wrong. Fix it.") == "x.txt, line 3: is wrong. Fix it."
    )
