"""The ways to call ``evaluate``, its result, and its errors."""

import math
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest

from podium.data import Dataset, Judgments, Rankings
from podium.errors import ArgumentError, DataError, PodiumError
from podium.measures import P, evaluate, nDCG
from podium.measures.evaluation import ByMeasure, Evaluation, concat_evaluations
from podium.measures.names import parse_measure

LABELS = [0, 2, 1, 1, 0]
SCORES = [0.1, 0.9, 0.5, 0.3, 0.8]
NAMES = ["nDCG@2", "P@1", "AP"]
EXPECTED = {
    "nDCG@2": [1.0, (1 / math.log2(3)) / 1],
    "P@1": [1.0, 0.0],
    "AP": [1.0, 0.5],
}


def check(**arrays: object) -> None:
    result = evaluate(NAMES, **arrays)  # type: ignore[arg-type]
    for name, values in EXPECTED.items():
        assert result[name].tolist() == pytest.approx(values)


def test_arrays() -> None:
    check(truth=LABELS, ranking=SCORES, group=[3, 2])
    check(truth=LABELS, ranking=SCORES, qid=["a", "a", "a", "b", "b"])
    check(truth=np.array(LABELS, np.int8), ranking=np.array(SCORES, np.float16), group=[3, 2])
    check(truth=pa.array(LABELS), ranking=pa.array(SCORES), qid=pa.array([1, 1, 1, 2, 2]))
    check(truth=np.repeat(LABELS, 2)[::2], ranking=np.repeat(SCORES, 2)[::2], group=[3, 2])


def test_whole_numbers_as_scores() -> None:
    check(truth=LABELS, ranking=[1, 9, 5, 3, 8], group=[3, 2])


def test_query_ids() -> None:
    given = {"truth": LABELS, "ranking": SCORES}
    assert evaluate("P@1", group=[3, 2], **given).query_ids.to_pylist() == ["0", "1"]  # type: ignore[arg-type]
    assert evaluate("P@1", qid=[7, 7, 7, 5, 5], **given).query_ids.to_pylist() == ["7", "5"]  # type: ignore[arg-type]
    named = evaluate("P@1", qid=list("xxxyy"), **given)  # type: ignore[arg-type]
    assert named.query_ids.to_pylist() == ["x", "y"]
    assert named.query_ids.type == pa.large_string()


def test_data_set_with_scores() -> None:
    data = Dataset.from_arrays(np.zeros((5, 1)), labels=LABELS, group=[3, 2])
    assert evaluate(NAMES, data, SCORES)["AP"].tolist() == EXPECTED["AP"]


def test_judgments_with_rankings() -> None:
    judgments = Judgments.from_columns(["q", "q", "r"], ["a", "b", "a"], [2, 1, 1])
    run = Rankings.from_columns(["q", "q", "s"], ["b", "x", "a"], [2, 1, 1])
    result = evaluate(["AP", "Judged@2"], judgments, run)
    assert result.query_ids.to_pylist() == ["q", "r"]
    assert result["AP"].tolist() == [0.5, 0.0]
    assert result["Judged@2"].tolist() == [0.5, 0.0]
    assert evaluate("AP", run.join(judgments))["AP"].tolist() == [0.5, 0.0]


def test_queries_without_rows() -> None:
    judgments = Judgments.from_columns(["p", "q", "r"], ["a", "a", "a"], [1, 1, 1])
    run = Rankings.from_columns(["q"], ["a"], [1.0])
    assert evaluate(NAMES, judgments, run)["AP"].tolist() == [0.0, 1.0, 0.0]
    assert len(evaluate(NAMES, [], [], group=[])) == 0


def test_unjudged_documents_are_nan() -> None:
    result = evaluate(["P@2", "Judged@2"], [math.nan, 1], [2, 1], group=[2])
    assert result["P@2"].tolist() == [0.5]
    assert result["Judged@2"].tolist() == [0.5]


def test_result() -> None:
    result = evaluate([nDCG @ 2, "P@1", "precision@1", P @ 1], LABELS, SCORES, group=[3, 2])
    assert list(result.values) == [nDCG @ 2, P @ 1]
    assert result.means[P @ 1] == 0.5
    assert result[P @ 1] is result["precision@1"]
    assert len(result) == 2
    assert repr(result) == "Evaluation(2 queries, nDCG@2=0.8155, P@1=0.5)"
    assert all(values.dtype == np.float64 for values in result.values.values())
    with pytest.raises(ArgumentError, match=r"RR was not evaluated. There are: nDCG@2, P@1"):
        result["RR"]


def test_concat_refuses_unlike_parts() -> None:
    given = {"truth": LABELS, "ranking": SCORES, "group": [3, 2]}
    one = evaluate("P@1", **given)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="different measures or conventions"):
        concat_evaluations([one, evaluate("P@2", **given)])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="different measures or conventions"):
        concat_evaluations([one, evaluate("P@1", conventions="ranx", **given)])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="at least one"):
        concat_evaluations([])
    assert len(concat_evaluations([one])) == 2


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"truth": None, "ranking": [1], "group": [1]}, "there is nothing to evaluate"),
        ({"truth": [1], "group": [1]}, "there is nothing to evaluate"),
        ({"truth": [1], "ranking": [1]}, "Give qid= or group= with labels and scores"),
        ({"truth": [1], "ranking": [1], "group": [1], "qid": ["a"]}, "are both given"),
        ({"truth": "q.qrels", "ranking": [1], "group": [1]}, "str has queries of its own"),
        ({"truth": [1, 0], "ranking": [1], "group": [1]}, "labels"),
        ({"truth": [1], "ranking": [1], "group": [2]}, "sum to 2"),
        ({"truth": [1], "ranking": ["high"], "group": [1]}, "scores are not a list of numbers"),
        ({"truth": ["good"], "ranking": [1], "group": [1]}, "labels are not a list of numbers"),
        ({"truth": [[1]], "ranking": [1], "group": [1]}, "labels are not a list of numbers"),
        ({"truth": [1], "ranking": [[1]], "group": [1]}, "scores are not a list of numbers"),
        ({"truth": [1], "ranking": [math.nan], "group": [1]}, "a score of query '0' is NaN"),
        ({"truth": [1, 1], "ranking": [1, math.nan], "group": [2]}, "a score of query '0' is NaN"),
        ({"truth": [math.inf], "ranking": [1], "group": [1]}, "a label is infinite"),
    ],
)
def test_mistakes(arrays: dict[str, object], message: str) -> None:
    with pytest.raises(PodiumError, match=message):
        evaluate("nDCG@10", **arrays)  # type: ignore[arg-type]


def test_mistaken_tables() -> None:
    judgments = Judgments.from_columns(["q"], ["a"], [1])
    data = Dataset.from_arrays([[1.0]], labels=[1], group=[1])
    with pytest.raises(ArgumentError, match="cannot evaluate NoneType by Judgments"):
        evaluate("AP", judgments)
    with pytest.raises(ArgumentError, match="there are no scores"):
        evaluate("AP", data)
    with pytest.raises(DataError, match="2 scores for 1 rows"):
        evaluate("AP", data, [1, 2])
    with pytest.raises(ArgumentError, match="there are no measures"):
        evaluate([], data, [1])


@pytest.mark.parametrize(("name", "what"), [("ranking", "scores"), ("truth", "labels")])
def test_masked_numbers_are_refused(name: str, what: str) -> None:
    arrays = {"truth": [1, 0], "ranking": [5.0, 2.0], "group": [2]}
    masked = np.ma.masked_array(arrays[name], mask=[True, False])
    with pytest.raises(DataError, match=f"some {what} are masked"):
        evaluate("RR", **arrays | {name: masked})  # type: ignore[arg-type]
    none = np.ma.masked_array(arrays[name], mask=[False, False])
    assert evaluate("RR", **arrays | {name: none}).means["RR"] == 1  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
def test_scores_beyond_float32_are_equal_in_trec_eval() -> None:
    run = {"q": {"a": 1e39, "b": 1e300}}
    assert evaluate("recip_rank", {"q": {"a": 1, "b": 0}}, run).means["RR"] == 0.5


def test_a_nan_score_in_a_long_list() -> None:
    scores = np.arange(1000.0)
    scores[500] = math.nan
    with pytest.raises(DataError, match="is NaN"):
        evaluate("P@1", np.zeros(1000), scores, group=[1000])


def test_fractional_labels() -> None:
    result = evaluate("nDCG@2", [0.5, 1.5], [2, 1], group=[2])
    low, high = 2**0.5 - 1, 2**1.5 - 1
    second = 1 / math.log2(3)
    assert result[parse_measure("nDCG@2")][0] == pytest.approx(
        (low + high * second) / (high + low * second)
    )


@pytest.mark.parametrize(
    ("queries", "threads", "ranges"), [(100, 2, 1), (2_000, 2, 8), (2_000, 16, 9), (50_000, 2, 15)]
)
def test_long_inputs_are_split_among_threads_and_no_more(
    queries: int, threads: int, ranges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range costs calls from Python: thousands of rows each would take twice as long."""
    module = import_module("podium.measures.evaluating")
    blocks, seen = module.blocks, []

    def spied(plan: object, inputs: object, first: int, last: int) -> object:
        seen.append((first, last))
        return blocks(plan, inputs, first, last)

    monkeypatch.setattr(module, "blocks", spied)
    monkeypatch.setenv("PODIUM_THREADS", str(threads))
    labels = np.arange(20 * queries) % 3
    result = evaluate("P@1", labels, labels, group=[20] * queries)
    assert result["P@1"].tolist() == [1.0] * queries
    assert len(seen) == ranges
    assert [first for first, _ in sorted(seen)][1:] == [last for _, last in sorted(seen)][:-1]


def test_weights_of_queries_enter_sums_and_geometric_means() -> None:
    found = evaluate(["num_ret", "gm_map"], LABELS, SCORES, group=[3, 2], sample_weight=[1.0, 3.0])
    assert found.means["num_ret"] == 3 + 3 * 2
    assert found.means["gm_map"] == pytest.approx((1.0 * 0.5**3) ** (1 / 4))


def test_a_missing_value_is_null_in_arrow() -> None:
    found = evaluate("AP", LABELS, SCORES, group=[3, 2])
    (measure,) = found.values
    values = ByMeasure({measure: np.array([0.5, np.nan])})
    column = Evaluation(found.query_ids, values, found.conventions).to_arrow()["AP"]
    assert column.to_pylist() == [0.5, None]


def test_blocks_without_weights_weigh_one_beside_those_with_weights() -> None:
    arrays = {"truth": LABELS, "ranking": SCORES, "group": [3, 2]}
    plain = evaluate("AP", **arrays)  # type: ignore[arg-type]
    weighted = evaluate("AP", **arrays, sample_weight=[1.0, 3.0])  # type: ignore[arg-type]
    assert concat_evaluations([plain, plain]).query_weights is None
    both = concat_evaluations([plain, weighted])
    np.testing.assert_array_equal(both.query_weights, [1, 1, 1, 3])
