"""What every ranker shares: what it takes and refuses, its runs, its scores and its files."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from podium.data import Dataset, write_shards
from podium.errors import ArgumentError, DataError
from podium.losses import ListMLE
from podium.measures import AP, evaluate
from podium.rankers import CascadeRanker, LinearRanker, Ranker, TreeRanker, load_ranker
from podium.rankers.base import FitInterrupted, NotFittedError, nested_rankers
from podium.rankers.storage import archive_bytes, read_archive
from podium.rankers.training_data import has_preference, in_memory, query_blocks
from tests.fresh_interpreter import loaded
from tests.rankers.made_up import made_up
from tests.rankers.one_feature import OneFeature, Recording, by_hand


def test_a_run_of_data_without_document_ids_numbers_each_querys_documents() -> None:
    data = by_hand()
    run = OneFeature(1).fit(data).rank(data)
    assert run.name == "OneFeature"
    # Best first or as given: what belongs to what is what counts.
    found = {
        (str(query), str(document)): float(score)
        for query, document, score in zip(
            run.query_id_of_row(), run.document_ids, run.scores, strict=True
        )
    }
    queries = [str(query) for query in data.query_id_of_row()]
    expected = zip(queries, ["0", "1", "2", "3", "0", "1"], [1, 2, 3, 4, 1, 2], strict=True)
    assert found == {(query, document): float(score) for query, document, score in expected}


def test_a_run_of_data_with_document_ids_has_them() -> None:
    ids = ["a", "b", "c"]
    data = Dataset.from_arrays([[1], [2], [3]], [0, 1, 2], qid=["q"] * 3, document_ids=ids)
    run = OneFeature().fit(data).rank(data, name="")
    assert run.name == ""
    assert sorted(map(str, run.document_ids)) == ids


@pytest.mark.parametrize("extra", ["y", "qid", "group"])
def test_a_data_set_comes_alone(extra: str) -> None:
    data = by_hand()
    every = {"y": data.labels, "qid": data.query_of_row, "group": data.sizes}
    given: dict[str, Any] = {extra: every[extra]}
    with pytest.raises(ArgumentError, match="its own labels and queries"):
        OneFeature().fit(data, **given)
    with pytest.raises(ArgumentError, match="its own labels and queries"):
        OneFeature().fit(data).score(data, **given)


def test_arrays_need_labels() -> None:
    with pytest.raises(ArgumentError, match="labels are missing"):
        OneFeature().fit(by_hand().features, group=[4, 2])


def test_a_score_is_of_data_in_memory(tmp_path: Path) -> None:
    data = by_hand()
    ranker = OneFeature().fit(data)
    shards: Any = write_shards(data, tmp_path / "shards")
    with pytest.raises(ArgumentError, match="data set in memory"):
        ranker.score(shards)


def test_a_ranker_without_a_measure_is_scored_by_ndcg_at_10() -> None:
    data = made_up(6)
    scores = data.features[:, 1]
    expected = evaluate("nDCG@10", data, scores).means["nDCG@10"]
    assert expected != evaluate("nDCG", data, scores).means["nDCG"]
    assert OneFeature(1).fit(data).score(data) == expected


def test_data_in_memory_are_not_copied() -> None:
    data = by_hand()
    assert in_memory(data) is data


def test_shards_are_loaded_whole_and_iterated_again_and_again(tmp_path: Path) -> None:
    data = made_up(6)
    shards = write_shards(data, tmp_path / "shards", shard_bytes=2000)
    assert len(shards.shards) > 1
    assert in_memory(shards).equals(data)
    blocks = query_blocks(shards)
    for _ in range(2):
        assert sum(block.rows for block in blocks) == data.rows
    assert list(query_blocks(data)) == [data]


@pytest.mark.parametrize(
    ("labels", "group", "expected"),
    [
        ([1, 1, 0], [3], True),
        ([0, 1, 1], [3], True),
        ([0, 1], [2], True),
        ([0, 0, 1, 1], [2, 2], False),
        ([0, 1, 2], [1, 1, 1], False),
        ([2, 2, 2], [3], False),
        ([2], [1], False),
    ],
)
def test_a_preference_is_between_documents_of_a_query(
    labels: list[int], group: list[int], expected: bool
) -> None:
    data = Dataset.from_arrays(np.zeros((len(labels), 1)), labels, group=group)
    assert has_preference(data) is expected


def test_parameters_that_are_wrong_are_told_before_data_that_are() -> None:
    class AlwaysWrong(OneFeature):
        def check_parameters(self) -> None:
            raise ArgumentError("column is wrong")

    with pytest.raises(ArgumentError, match="column is wrong"):
        AlwaysWrong().fit("no data", "no labels")


def test_no_loss_is_refused() -> None:
    ranker = LinearRanker()
    ranker.loss = 3  # type: ignore[assignment]
    with pytest.raises(ArgumentError, match=r"3 is not a loss"):
        ranker.fit(made_up(3))


def test_a_ranker_of_another_kind_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    archive = read_archive(BytesIO(OneFeature().fit(by_hand()).to_bytes()))
    whole = archive_bytes(replace(archive, kind="NewFeature"))
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r"model.*is not a ranker of this Podium \('NewFeature'\)"):
        load_ranker(path)
    with pytest.raises(DataError, match=r"^is not a ranker of this Podium.*Import the module"):
        load_ranker(BytesIO(whole))
    damaged = archive_bytes(replace(archive, metadata={}))
    with pytest.raises(DataError, match=r"is not a ranker of this Podium.*Train and save it again"):
        load_ranker(BytesIO(damaged))


def test_a_file_is_what_to_bytes_gives_and_loads_the_same(tmp_path: Path) -> None:
    data = made_up(5)
    ranker = LinearRanker(ListMLE(k=5), measure=AP).fit(data)
    ranker.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == ranker.to_bytes()
    loaded = load_ranker(tmp_path / "model")
    assert isinstance(loaded, LinearRanker)
    texts = {"loss": repr(ListMLE(k=5)), "measure": repr(AP)}
    assert loaded.get_params() == {**ranker.get_params(), **texts}
    assert loaded.feature_names_ == ("1", "2", "3", "4", "5", "6")
    assert loaded.n_features_in_ == 6
    np.testing.assert_array_equal(loaded.predict(data), ranker.predict(data))


def test_members_are_the_rankers_among_the_parameters() -> None:
    base, one, two = OneFeature(), OneFeature(1), Recording()
    assert nested_rankers(CascadeRanker(base, (one, two))) == [base, one, two]
    assert nested_rankers(CascadeRanker(base, [one])) == [base, one]
    assert nested_rankers(base) == []
    inner = CascadeRanker(base, [one])
    assert nested_rankers(CascadeRanker(inner, [two])) == [inner, two]  # not those of its rankers


class Stopping(OneFeature):
    """Whose fit ends with an error."""

    def __init__(self, error: type[BaseException] = RuntimeError) -> None:
        super().__init__()
        self.error = error

    def _fit(self, *_: object) -> None:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_fit_that_fails_leaves_the_ranker_unfitted(error: type[BaseException]) -> None:
    ranker = Stopping(error)
    with pytest.raises(error):
        ranker.fit(by_hand())
    assert not hasattr(ranker, "feature_names_")
    assert not hasattr(ranker, "n_features_in_")
    with pytest.raises(NotFittedError, match=r"This Stopping is not fitted\. Call fit first\."):
        ranker.predict(by_hand())


def test_a_fit_that_is_interrupted_keeps_what_it_has() -> None:
    ranker = Stopping(FitInterrupted)
    with pytest.raises(FitInterrupted):
        ranker.fit(by_hand())
    assert (ranker.feature_names_, ranker.n_features_in_) == (("1", "2"), 2)
    assert ranker.predict([[4.0, 1.0], [2.0, 1.0]]).tolist() == [4.0, 2.0]


def test_validation_shards_with_the_same_features_are_taken_as_they_are(tmp_path: Path) -> None:
    data = by_hand()
    shards = write_shards(data, tmp_path / "shards")
    Recording.fits.clear()
    Recording().fit(data, eval_set=shards)
    assert Recording.fits == [(data, shards)]
    wider = Dataset.from_arrays(np.eye(3), [0, 1, 2], group=[3])
    with pytest.raises(DataError, match="other features than the training data, or in another"):
        Recording().fit(data, eval_set=write_shards(wider, tmp_path / "wider"))


@pytest.mark.parametrize("features", [[1.0, 2.0], [[[1.0, 2.0]]]])
def test_features_are_a_table(features: list[Any]) -> None:
    ranker = OneFeature().fit(by_hand())
    with pytest.raises(DataError, match="features"):
        ranker.predict(features)


def test_rows_are_stored_one_after_the_other_whatever_their_order_was() -> None:
    class Keeping(OneFeature):
        def _predict(self, features: np.ndarray) -> np.ndarray:
            self.given = features
            return super()._predict(features)

    ranker = Keeping(1).fit(by_hand())
    columns_first = np.asfortranarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert ranker.predict(columns_first).tolist() == [2.0, 4.0, 6.0]
    assert ranker.given.flags.c_contiguous
    assert ranker.given.dtype == np.float32


def test_a_ranker_loads_its_data_unless_it_says_that_it_streams_them() -> None:
    assert Ranker.streams is False
    assert TreeRanker().streams is False
    assert OneFeature().streams is True


def test_a_file_of_another_format_version_is_refused_with_both_versions() -> None:
    content = LinearRanker("ListNet()").fit(made_up(3)).to_bytes()
    assert content.count(b'"version": 2') == 1
    # Without the old zip checksum: the entry is written again.
    old = BytesIO()
    with ZipFile(BytesIO(content)) as source, ZipFile(old, "w") as target:
        for name in source.namelist():
            entry = source.read(name).replace(b'"version": 2', b'"version": 1')
            target.writestr(name, entry)
    with pytest.raises(
        DataError, match=r"version 1; this Podium reads version 2.*Train the ranker"
    ):
        load_ranker(BytesIO(old.getvalue()))


@pytest.mark.parametrize("ids", [["b", "a"], [1, 0], ["10", "2"]])
def test_weights_in_a_series_are_found_by_the_id_of_the_query(ids: list[Any]) -> None:
    X, labels = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1, 0, 0, 1]
    qid = np.repeat(ids, 2)
    weights = dict(zip(ids, (1.0, 100.0), strict=True))
    expected = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=weights)
    for order in (ids, ids[::-1]):
        series = pd.Series([weights[each] for each in order], index=order)
        fitted = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=series)
        np.testing.assert_array_equal(fitted.coef_, expected.coef_)
        scores = [ranker.score(X, labels, qid=qid, sample_weight=series) for ranker in (fitted,)]
        assert scores == [expected.score(X, labels, qid=qid, sample_weight=weights)]


def test_weights_of_queries_with_numbers_of_rows_are_in_their_order() -> None:
    X, labels, qid = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1, 0, 0, 1], list("bbaa")
    frame = pd.DataFrame({"qid": qid, "weight": [1.0, 1.0, 100.0, 100.0]})
    series = frame.drop_duplicates("qid")["weight"]
    assert series.index.tolist() == [0, 2]
    fitted = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=series)
    expected = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=[1.0, 100.0])
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    with pytest.raises(DataError, match="query 'b' has no weight"):
        LinearRanker("PairLogistic()").fit(
            X, labels, qid=qid, sample_weight=pd.Series([1.0, 2.0], index=["a", "c"])
        )


def test_weights_of_rows_in_a_series_are_in_the_order_of_rows() -> None:
    X, labels, qid = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1, 0, 0, 1], list("bbaa")
    expected = LinearRanker("PairLogistic()").fit(
        X, labels, qid=qid, sample_weight=[1.0, 1.0, 100.0, 100.0]
    )
    for index in (range(4), [7, 3, 5, 1], list("bbaa"), list("wxyz")):
        series = pd.Series([1.0, 1.0, 100.0, 100.0], index=index)
        fitted = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=series)
        np.testing.assert_array_equal(fitted.coef_, expected.coef_)


def test_row_numbers_as_text_are_not_ids_of_queries() -> None:
    X, labels, qid = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1, 0, 0, 1], list("1122")
    weights = [1.0, 1.0, 100.0, 100.0]
    series = pd.Series(weights, index=list("0123"))
    fitted = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=series)
    expected = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=weights)
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)


def test_as_many_weights_of_named_queries_as_rows_are_found_by_their_names() -> None:
    X, labels, qid = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1, 0, 0, 1], list("bbaa")
    series = pd.Series([1.0, 5.0, 100.0, 7.0], index=list("bxay"))
    fitted = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=series)
    expected = LinearRanker("PairLogistic()").fit(X, labels, qid=qid, sample_weight=[1.0, 100.0])
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)


@pytest.mark.parametrize("measure", ["GMAP", "NumRet"])
def test_measures_that_are_not_means_do_not_choose_iterations(measure: str) -> None:
    data = Dataset.from_arrays(
        [[1.0], [2.0], [3.0]] * 3, [0, 0, 1, 0, 0, 1, 1, 0, 0], group=[3] * 3
    )
    with pytest.raises(ArgumentError, match="is not a mean over queries"):
        LinearRanker("ListNet()", measure=measure).fit(data, eval_set=data)
    LinearRanker("ListNet()", measure=measure).fit(data)


def test_a_ranker_is_loaded_before_its_class_is_imported(tmp_path: Path) -> None:
    LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2]).save(tmp_path / "saved")
    # In a process of its own, for its class is imported here.
    code = f"from podium import load_ranker; load_ranker({str(tmp_path / 'saved')!r})"
    assert "podium.rankers.linear" in loaded(code)
