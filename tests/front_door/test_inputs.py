"""Judgments, rankings and features in the forms that users of other tools have them."""

import gzip
from collections import namedtuple
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import podium
from podium.data.preferences import Preferences
from podium.data.sources import as_judgments, as_rankings
from podium.errors import DataError

QRELS = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 1, "d": 3}}
RUN = {"q1": {"b": 0.9, "a": 0.7, "x": 0.2}, "q2": {"a": 0.8, "d": 0.4}}
BASE = {"q1": {"b": 0.9, "x": 0.7, "a": 0.2}, "q2": {"d": 0.8, "a": 0.4}}


def rows(nested: Any) -> list[Any]:
    return [(q, d, value) for q, documents in nested.items() for d, value in documents.items()]


def columns(nested: Any, *names: str) -> dict[str, list[Any]]:
    values = np.array(rows(nested), dtype=object).T
    return {name: column.tolist() for name, column in zip(names, values, strict=True)}


def qrels_file(folder: Path, name: str) -> Path:
    text = "".join(f"{query} 0 {document} {label}\n" for query, document, label in rows(QRELS))
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def run_file(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("".join(f"{q} Q0 {d} 1 {score} tag\n" for q, d, score in rows(RUN)))
    return path


# What users of each tool call the columns: ir_measures, PyTerrier, ranx, BEIR, Podium's own files.
NAMES = {
    "ir_measures": (("query_id", "doc_id", "relevance"), ("query_id", "doc_id", "score")),
    "PyTerrier": (("qid", "docno", "label"), ("qid", "docno", "score")),
    "ranx": (("q_id", "doc_id", "score"), ("q_id", "doc_id", "score")),
    "BEIR": (("query-id", "corpus-id", "score"), ("query-id", "corpus-id", "score")),
    "Podium": (("query_id", "document_id", "label"), ("query_id", "document_id", "score")),
}
TABLES = {"pandas": pd.DataFrame, "Polars": pl.DataFrame, "Arrow": pa.table, "columns": dict}


def pair(form: str, folder: Path) -> tuple[Any, Any]:
    """Judgments and rankings in one of the forms."""
    kind, _, detail = form.partition(" ")
    if kind in TABLES:
        truth, run = NAMES[detail]
        return TABLES[kind](columns(QRELS, *truth)), TABLES[kind](columns(RUN, *run))
    if form == "tuples":
        qrels = [ir_measures.Qrel(*row) for row in rows(QRELS)]
        return iter(qrels), (ir_measures.ScoredDoc(*row) for row in rows(RUN))
    if form == "own tuples":
        Judgment, Hit = (
            namedtuple("Judgment", "qid docno rel"),
            namedtuple("Hit", "qid docno score"),
        )
        return [Judgment(*row) for row in rows(QRELS)], (Hit(*row) for row in rows(RUN))
    if form == "paths":
        return qrels_file(folder, "qrels.txt"), run_file(folder, "run.txt")
    if form == "names":
        return str(qrels_file(folder, "qrels.gz")), str(run_file(folder, "bm25.res"))
    if form == "Parquet":
        podium.data.write_parquet(as_judgments(QRELS), truth := folder / "qrels.parquet")
        podium.data.write_parquet(as_rankings(RUN), run := folder / "run.parquet")
        return truth, run
    return QRELS, RUN


FORMS = [
    *(f"{table} {names}" for table in TABLES for names in NAMES),
    *("dictionaries", "tuples", "own tuples", "paths", "names", "Parquet"),
]


@pytest.mark.parametrize("form", FORMS)
def test_evaluate_takes(form: str, tmp_path: Path) -> None:
    measures = [ir_measures.nDCG @ 3, ir_measures.AP, ir_measures.RR, ir_measures.P @ 2]
    expected = ir_measures.calc_aggregate(
        measures,
        [ir_measures.Qrel(*row) for row in rows(QRELS)],
        [ir_measures.ScoredDoc(*row) for row in rows(RUN)],
    )
    found = podium.evaluate(
        [str(each) for each in expected], *pair(form, tmp_path), conventions="trec_eval"
    )
    assert found.query_ids.to_pylist() == ["q1", "q2"]
    for measure, value in expected.items():
        assert found.means[str(measure)] == pytest.approx(value, abs=1e-12), measure


@pytest.mark.parametrize(
    "measure",
    [ir_measures.nDCG @ 3, ir_measures.AP, ir_measures.RR,
     ir_measures.P(rel=2) @ 2, ir_measures.R @ 2, ir_measures.Bpref],
    ids=str,
)  # fmt: skip
def test_measures_of_ir_measures(measure: Any) -> None:
    qrels = [ir_measures.Qrel(*row) for row in rows(QRELS)]
    run = [ir_measures.ScoredDoc(*row) for row in rows(RUN)]
    expected = measure.calc_aggregate(qrels, run)
    for measures in (measure, [measure], (measure,)):
        found = podium.evaluate(measures, qrels, run)
        assert found.means[measure] == pytest.approx(expected, abs=1e-6)
        assert found[measure].mean() == pytest.approx(expected, abs=1e-6)
    compared = podium.compare([measure], QRELS, {"base": BASE, "new": RUN})
    assert compared.summaries[measure]["new"].mean == pytest.approx(expected, abs=1e-6)


def test_parameters_of_ir_measures() -> None:
    exponential: Any = ir_measures.nDCG(dcg="exp-log2") @ 3
    expected = podium.evaluate("nDCG(gains=exponential)@3", QRELS, RUN, conventions="trec_eval")
    found = podium.evaluate(exponential, QRELS, RUN).means
    assert list(found.values()) == list(expected.means.values())
    plain: Any = ir_measures.nDCG @ 3
    assert found[exponential] != podium.evaluate(plain, QRELS, RUN).means["nDCG@3"]


@pytest.mark.parametrize("form", FORMS)
def test_compare_takes(form: str, tmp_path: Path) -> None:
    truth, run = pair(form, tmp_path)
    found = podium.compare("RR", truth, {"base": BASE, "new": run})
    assert found.values["RR"].tolist() == [[1 / 3, 1 / 2], [1.0, 1.0]]


def test_ids_are_compared_as_text() -> None:
    # Query ids are numbers in one table and strings in the other.
    truth = pd.DataFrame({"qid": [7, 7], "docno": ["a", "b"], "label": [0, 1]})
    run = pl.DataFrame({"qid": ["7", "7"], "docno": ["a", "b"], "score": [2, 1]})
    assert podium.evaluate("RR", truth, run).means["RR"] == 0.5


def test_index_of_a_frame_is_not_a_column() -> None:
    frame = pd.DataFrame(columns(RUN, "qid", "docno", "score"), index=list("vwxyz"))
    assert as_rankings(frame).equals(as_rankings(RUN))


@pytest.mark.parametrize("index", [None, "rank"])
def test_index_of_selected_rows_is_not_a_feature(index: str | None) -> None:
    frame = features().sample(frac=0.5, random_state=1).rename_axis(index)
    plain = frame.reset_index(drop=True)
    data = podium.Dataset.from_frame(frame)
    assert data.feature_names == tuple(FEATURES)
    assert data.equals(podium.Dataset.from_frame(plain))
    ranker = podium.LinearRanker().fit(frame[FEATURES], frame["label"], qid=frame["qid"])
    assert ranker.feature_names_in_.tolist() == FEATURES
    assert ranker.predict(frame[FEATURES]).tolist() == ranker.predict(plain[FEATURES]).tolist()


def test_pyterrier_results_have_the_query_text_and_an_internal_number_too() -> None:
    frame = pd.DataFrame(columns(RUN, "qid", "docno", "score"))
    frame.insert(0, "query", "the text of the query")
    frame.insert(0, "docid", 5)
    assert as_rankings(frame).equals(as_rankings(RUN))


def test_preferences_by_file_name(tmp_path: Path) -> None:
    path = tmp_path / "judged.pref"
    path.write_text("q1 a b a\n")
    assert isinstance(as_judgments(path), Preferences)
    assert podium.evaluate("ppref", path, RUN).means["ppref"] == 0.0


def test_data_set_by_file_name(tmp_path: Path) -> None:
    path = tmp_path / "test.txt"
    path.write_text("0 qid:1 1:3\n2 qid:1 1:4\n")
    for scores in ([0.2, 0.1], np.array([2, 1]), pd.Series([2, 1]), pl.Series([2.0, 1.0])):
        assert podium.evaluate("RR", path, scores).means["RR"] == 0.5
    compared = podium.compare("RR", str(path), {"up": [1, 2], "down": [2, 1]})
    assert compared.values["RR"].tolist() == [[1.0, 0.5]]


def test_a_data_set_and_rankings() -> None:
    frame = features()
    data = podium.Dataset.from_frame(frame, label="label", qid="qid", document_id="doc")
    ranker = podium.LinearRanker().fit(data)
    by_row = podium.evaluate("nDCG@10", data, ranker.predict(data))
    run = ranker.rank(data)
    by_id = podium.evaluate("nDCG@10", data, run)
    assert by_id.means["nDCG@10"] == pytest.approx(by_row.means["nDCG@10"], abs=1e-12)
    compared = podium.compare("nDCG@10", data, {"one": run, "same": run})
    assert compared.summaries["nDCG@10"]["one"].mean == pytest.approx(by_id.means["nDCG@10"])
    nameless = podium.Dataset.from_arrays(data.features, data.labels, group=data.sizes)
    with pytest.raises(podium.ArgumentError, match="the data set has no document ids"):
        podium.evaluate("nDCG@10", nameless, run)


REFUSED = [
    (pd.DataFrame({"qid": [1], "document_name": ["a"], "label": [1]}), "no column of document ids"),
    (pd.DataFrame({"qid": [1], "docno": ["a"], "label": ["x"]}), "string, not numbers"),
    (pl.DataFrame({"qid": [1], "docno": [None], "label": [1]}), "document id is missing"),
    (pl.DataFrame({"qid": [1], "docno": ["a"], "label": [None]}), "not numbers"),
    (pd.DataFrame({"qid": [1], "docno": ["a"], "label": [np.nan]}), "labels of row 0 is nan"),
    (pd.DataFrame([["a", 1, 1]], columns=["qid", "qid", "label"]), "cannot be read as a table"),
    ({}, "there are no judgments"),
    ([], "there are no judgments"),
    ({"q": {}}, "there are no judgments"),
    ({"q": {"a": 1}, "p": 3}, "some queries of the judgments are not dictionaries"),
    ({"q": {"a": "high"}}, "not numbers"),
    ({"q": {"a": 1}, 3: {"b": 1}}, "each of one type"),
    ([("q", "a", 1)], "tuple cannot be read as judgments"),
    ([ir_measures.Qrel("q", "a", 1), ("q", "b", 1)], "different types"),
    (5, "int cannot be read as judgments"),
    (b"q 0 a 1", "bytes cannot be read as judgments"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refuses(source: Any, message: str) -> None:
    with pytest.raises(podium.DataError, match=message):
        podium.evaluate("RR", source, RUN)


@pytest.mark.parametrize("ending", ["csv", "qrels"])
def test_a_document_twice_in_a_file_is_refused_with_its_name(tmp_path: Path, ending: str) -> None:
    rows = {"csv": "query_id,document_id,score,label\nq,a,1,1\nq,a,2,2\n", "qrels": "q 0 a 1\n" * 2}
    file = tmp_path / f"judged.{ending}"
    file.write_text(rows[ending])
    problem = f"judged.{ending}: document 'a' is listed twice in query 'q'"
    with pytest.raises(podium.DataError, match=problem):
        podium.evaluate("RR", str(file), RUN)
    if ending == "csv":
        with pytest.raises(podium.DataError, match=problem):
            podium.evaluate("RR", {"q": {"a": 1}}, str(file))


def test_a_document_twice_is_refused() -> None:
    twice = [ir_measures.Qrel("q", "a", 1), ir_measures.Qrel("q", "a", 0)]
    with pytest.raises(podium.DataError, match="'a' is listed twice in query 'q'"):
        podium.evaluate("RR", twice, RUN)


def features() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.random((200, 3)), columns=["bm25", "clicks", "age"])
    frame["clicks"] = np.round(100 * frame["clicks"]).astype(int)
    frame["fresh"] = frame["age"] < 0.3
    frame["label"] = np.digitize(2 * frame["bm25"] - frame["age"], [0.2, 0.8])
    frame["qid"] = [f"q{row % 10}" for row in range(200)]
    frame["doc"] = [f"d{row}" for row in range(200)]
    frame["title"] = "text"
    return frame


FEATURES = ["bm25", "clicks", "age", "fresh"]


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_dataset_from_frame(make: Any) -> None:
    frame = features()
    data = podium.Dataset.from_frame(make(frame), label="label", qid="qid", document_id="doc")
    assert data.feature_names == tuple(FEATURES)
    expected = podium.Dataset.from_arrays(
        frame[FEATURES].to_numpy(np.float32),
        frame["label"],
        qid=frame["qid"],
        document_ids=frame["doc"],
        feature_names=FEATURES,
    )
    assert data.equals(expected)
    chosen = podium.Dataset.from_frame(make(frame), features=["age", "bm25"])
    assert chosen.feature_names == ("age", "bm25")
    assert chosen.document_ids is None
    assert chosen.features.tolist() == expected.select_features(["age", "bm25"]).features.tolist()


def test_missing_values_become_nan() -> None:
    frame = pl.DataFrame({"qid": [1, 1], "label": [0, 1], "a": [None, 3], "b": [0.5, None]})
    data = podium.Dataset.from_frame(frame)
    assert np.array_equal(data.features, [[np.nan, 0.5], [3, np.nan]], equal_nan=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label": "lable"}, "There is no column 'lable'. Did you mean: label?"),
        ({"qid": "query"}, "There is no column 'query'"),
        ({"document_id": "docs"}, "There is no column 'docs'. Did you mean: doc?"),
        ({"features": ["bm25", "title"]}, "string, not numbers"),
        ({"label": "title"}, "labels are not numbers"),
    ],
)
def test_from_frame_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(podium.DataError) as caught:
        podium.Dataset.from_frame(features(), **arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("ranker", [podium.LinearRanker(), podium.TreeRanker(n_estimators=3)])
def test_fit_on_frames_keeps_names_in_any_order(make: Any, ranker: Any) -> None:
    frame = features()
    queries = make(frame[["qid"]])["qid"]
    labels = make(frame[["label"]])["label"]
    ranker.fit(make(frame[FEATURES]), labels, qid=queries)
    assert ranker.feature_names_in_.tolist() == FEATURES
    scores = ranker.predict(frame[FEATURES])
    assert np.ptp(scores) > 0
    for names in (FEATURES, FEATURES[::-1], ["clicks", "fresh", "bm25", "age"]):
        assert np.array_equal(ranker.predict(make(frame[names])), scores)


def test_nullable_columns_have_missing_values() -> None:
    frame = features()[FEATURES].astype({"bm25": "Float64", "clicks": "Int64", "fresh": "boolean"})
    frame.iloc[:50, :2] = pd.NA
    plain = frame.astype(np.float64)
    labels, queries = features()["label"], features()["qid"]
    by_nullable = podium.TreeRanker(n_estimators=3).fit(frame, labels, qid=queries)
    by_plain = podium.TreeRanker(n_estimators=3).fit(plain, labels, qid=queries)
    assert by_nullable.to_bytes() == by_plain.to_bytes()
    assert np.array_equal(by_nullable.predict(frame), by_plain.predict(plain))


def test_sparse_columns() -> None:
    frame = features()[["bm25", "age"]]
    labels, queries = features()["label"], features()["qid"]
    ranker = podium.LinearRanker().fit(frame, labels, qid=queries)
    sparse = frame.astype(pd.SparseDtype(float, 0.0))
    assert np.array_equal(ranker.predict(sparse), ranker.predict(frame))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query_id;document_id;score\nq1;a;0.5\n", r"x.csv: .*separated by ';'.*by commas"),
        ("search,sku,points\nq1,a,0.5\n", r"x.csv: .*query ids among: search, sku.*'query_id'\}"),
        ("query_id,sku,score\nq1,a,0.5\n", r"x.csv: .*document ids.*'document_id'\}"),
        ("query_id,doc,points\nq1,a,0.5\n", r"x.csv: .*scores among.*'score'\}"),
        ('query_id,doc,score\nq1,a,"0,5"\n', r"x.csv: .*not numbers: the first is '0,5'"),
        ("query_id,doc,score\n", r"x.csv: there are no rankings"),
    ],
)
def test_a_table_that_cannot_be_read_is_named_with_what_to_do(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        as_rankings(path)


def test_a_table_gives_its_run_the_files_name(tmp_path: Path) -> None:
    for name in ("bm25.v2.csv", "bm25.v2.csv.gz"):
        text = b"query_id,doc,score\nq1,a,1\n"
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        assert as_rankings(tmp_path / name).name == "bm25.v2"


def test_judgments_and_runs_in_the_wrong_order_are_recognized(tmp_path: Path) -> None:
    judged, run = qrels_file(tmp_path, "a.qrels"), run_file(tmp_path, "a.run")
    with pytest.raises(DataError, match="looks like a run: judgments come first"):
        as_judgments(run)
    with pytest.raises(DataError, match="looks like judgments: they come first"):
        as_rankings(judged)
