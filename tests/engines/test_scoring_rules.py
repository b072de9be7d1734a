"""How real engines score models written by hand: the rules that writers of exports rely on."""

from __future__ import annotations

import json

import httpx2
import numpy as np
import pytest

pytestmark = pytest.mark.slow

FIELDS = ("a", "b")
ROWS: list[tuple[float | None, float | None]] = [
    (0.0, 0.0), (1.0, 2.0), (None, 2.0), (1.0, None), (None, None), (0.5, 0.5), (0.1, 3.0),
    (1e-40, 0.0), (3e38, 1.0), (0.49999997, 1.0), (0.5000005, 0.0), (0.500002, 0.0), (1e-6, 0.0),
]  # fmt: skip
A = np.array([np.nan if a is None else a for a, _ in ROWS], np.float32)
B = np.array([np.nan if b is None else b for _, b in ROWS], np.float32)
SLACK = np.float32(1e-6)


def document(row):
    return {name: value for name, value in zip(FIELDS, row, strict=True) if value is not None}


class OpenSearchRows:
    """The rows in OpenSearch, and models over them."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        types = {name: {"type": "float"} for name in FIELDS}
        self.send("PUT", "/rules", {"mappings": {"properties": types}})
        for number, row in enumerate(ROWS):
            self.send("PUT", f"/rules/_doc/{number}?refresh=true", document(row))
        client.put("/_ltr")
        features = [
            {
                "name": name,
                "params": [],
                "template_language": "mustache",
                "template": {
                    "function_score": {
                        "query": {"exists": {"field": name}},
                        "functions": [{"field_value_factor": {"field": name}}],
                        "boost_mode": "replace",
                    }
                },
            }
            for name in FIELDS
        ]
        self.send("POST", "/_ltr/_featureset/rules", {"featureset": {"features": features}})

    def send(self, method: str, path: str, body: object = None) -> httpx2.Response:
        answer = self.client.request(method, path, json=body)
        answer.raise_for_status()
        return answer

    def put(self, name: str, kind: str, definition: object) -> httpx2.Response:
        model = {"name": name, "model": {"type": kind, "definition": json.dumps(definition)}}
        path = "/_ltr/_featureset/rules/_createmodel"
        return self.client.post(path, json={"model": model})

    def search(self, name: str) -> httpx2.Response:
        query = {"sltr": {"model": name, "params": {}}}
        return self.client.post("/rules/_search", json={"query": query, "size": 100})

    def scores(self, name: str, kind: str, definition: object) -> np.ndarray:
        self.put(name, kind, definition).raise_for_status()
        hits = self.search(name).raise_for_status().json()["hits"]["hits"]
        by_row = {int(hit["_id"]): hit["_score"] for hit in hits}
        return np.array([by_row[row] for row in range(len(ROWS))], np.float32)


@pytest.fixture(scope="module")
def opensearch_rows(opensearch_ltr):
    with httpx2.Client(base_url=opensearch_ltr.url, trust_env=False, timeout=60) as client:
        yield OpenSearchRows(client)
        client.delete("/rules")


def split(feature, threshold, left, right, missing):
    """A stump as XGBoost dumps it."""
    leaves = [{"nodeid": 1, "leaf": left}, {"nodeid": 2, "leaf": right}]
    return {
        "nodeid": 0, "depth": 0, "split": feature, "split_condition": threshold,
        "yes": 1, "no": 2, "missing": missing, "children": leaves,
    }  # fmt: skip


TREES = "model/xgboost+json"


@pytest.mark.parametrize("objective", ["rank:pairwise", "rank:ndcg", "reg:linear"])
def test_opensearch_goes_left_below_a_threshold(opensearch_rows, objective):
    definition = {"objective": objective, "splits": [split("a", 0.5, 10, 20, 2)]}
    scores = opensearch_rows.scores(f"below-{objective[-4:]}", TREES, definition)
    np.testing.assert_array_equal(scores, np.where(np.float32(0.5) > A, 10, 20))


def test_each_split_of_opensearch_sends_absent_values_its_own_way(opensearch_rows):
    definition = [split("a", 0.5, 10, 20, 1), split("b", 2, 1, 2, 2)]
    scores = opensearch_rows.scores("absent", TREES, definition)
    left_a = (np.float32(0.5) > A) | np.isnan(A)
    left_b = np.float32(2) > B
    np.testing.assert_array_equal(scores, np.where(left_a, 10, 20) + np.where(left_b, 1, 2))


def test_opensearch_compares_subnormal_numbers_and_returns_negative_scores(opensearch_rows):
    scores = opensearch_rows.scores("tiny", TREES, [split("a", 1e-40, -10, 20, 2)])
    np.testing.assert_array_equal(scores, np.where(np.float32(1e-40) > A, -10, 20))


def test_opensearch_takes_a_tree_of_one_leaf_but_no_empty_list(opensearch_rows):
    scores = opensearch_rows.scores("leaf", TREES, [{"nodeid": 0, "leaf": 0.25}])
    np.testing.assert_array_equal(scores, np.full(len(ROWS), 0.25))
    assert opensearch_rows.put("none", TREES, []).status_code == 400


def test_an_absent_feature_is_0_in_linear_models_of_opensearch(opensearch_rows):
    scores = opensearch_rows.scores("linear", "model/linear", {"a": 1.0, "b": -0.5})
    expected = np.nan_to_num(A) - np.float32(0.5) * np.nan_to_num(B)
    np.testing.assert_array_equal(scores, expected)


def test_a_negative_field_fails_the_search_in_opensearch(opensearch_rows):
    opensearch_rows.put("negative", "model/linear", {"a": 1.0}).raise_for_status()
    opensearch_rows.send("PUT", "/rules/_doc/negative?refresh=true", {"a": -1.0})
    try:
        answer = opensearch_rows.search("negative")
        assert answer.status_code == 400
        assert "must not produce negative scores" in answer.text
    finally:
        opensearch_rows.send("DELETE", "/rules/_doc/negative?refresh=true")


class SolrRows:
    """The rows in Solr, and models over them."""

    def __init__(self, client: httpx2.Client, **parameters: str) -> None:
        self.client = client
        # The core is that of other tests, too: a field of theirs would be there already.
        fields = [{"name": f"rule_{each}", "type": "pfloat", "docValues": True} for each in FIELDS]
        self.send("POST", "/schema", {"add-field": fields})
        documents = [
            {"id": str(number), **{f"rule_{name}": value for name, value in document(row).items()}}
            for number, row in enumerate(ROWS)
        ]
        self.send("POST", "/update?commit=true", documents)
        features = [
            {
                "store": "rules",
                "name": name,
                "class": "org.apache.solr.ltr.feature.FieldValueFeature",
                "params": {"field": f"rule_{name}", **parameters},
            }
            for name in FIELDS
        ]
        self.send("PUT", "/schema/feature-store", features)

    def send(self, method: str, path: str, body: object = None) -> httpx2.Response:
        answer = self.client.request(method, path.removeprefix("/"), json=body)
        answer.raise_for_status()
        return answer

    def put(self, name: str, kind: str, parameters: object) -> httpx2.Response:
        model = {
            "store": "rules",
            "name": name,
            "class": f"org.apache.solr.ltr.model.{kind}",
            "features": [{"name": each} for each in FIELDS],
            "params": parameters,
        }
        return self.client.put("schema/model-store", json=model)

    def scores(self, name: str, kind: str, parameters: object) -> np.ndarray:
        self.put(name, kind, parameters).raise_for_status()
        request = {
            "query": "*:*",
            "limit": 100,
            "fields": "id,score",
            "params": {"rq": f"{{!ltr model={name} reRankDocs=100}}"},
        }
        hits = self.send("POST", "/select", request).json()["response"]["docs"]
        by_row = {int(each["id"]): each["score"] for each in hits}
        return np.array([by_row[row] for row in range(len(ROWS))], np.float32)


@pytest.fixture(scope="module")
def solr_rows(solr):
    with httpx2.Client(base_url=f"{solr.core}/", trust_env=False, timeout=60) as client:
        rows = SolrRows(client)
        yield rows
        rows.send("POST", "/update?commit=true", {"delete": {"query": "*:*"}})


SOLR_TREES = "MultipleAdditiveTreesModel"


def stump(feature, threshold, left, right, **more):
    """A stump as Solr reads it, numbers as strings."""
    return {
        "weight": "1",
        "root": {
            "feature": feature, "threshold": str(threshold),
            "left": {"value": str(left)}, "right": {"value": str(right)}, **more,
        },
    }  # fmt: skip


def test_solr_goes_left_up_to_a_millionth_above_a_threshold(solr_rows):
    scores = solr_rows.scores("slack", SOLR_TREES, {"trees": [stump("a", 0.5, -10, 20)]})
    left = np.nan_to_num(A) <= np.float32(0.5) + SLACK
    np.testing.assert_array_equal(scores, np.where(left, -10, 20))


def test_a_millionth_is_0_for_solr(solr_rows):
    scores = solr_rows.scores("zero", SOLR_TREES, {"trees": [stump("a", 0, 10, 20)]})
    np.testing.assert_array_equal(scores, np.where(np.nan_to_num(A) <= SLACK, 10, 20))


def test_trees_of_solr_have_numbers_as_strings(solr_rows):
    tree = stump("a", 0.5, 1, 2)
    tree["root"]["threshold"] = 0.5
    assert solr_rows.put("numbers", SOLR_TREES, {"trees": [tree]}).status_code == 400


def test_solr_takes_no_trees_and_trees_of_one_leaf(solr_rows):
    scores = solr_rows.scores("none", SOLR_TREES, {"trees": []})
    np.testing.assert_array_equal(scores, np.zeros(len(ROWS)))
    leaf = {"weight": "1", "root": {"value": "0.25"}}
    scores = solr_rows.scores("leaf", SOLR_TREES, {"trees": [leaf]})
    np.testing.assert_array_equal(scores, np.full(len(ROWS), 0.25))


def test_solr_before_9_2_knows_no_missing_values(solr_rows):
    """Version 8.11.4: a later one follows `missing` in each split."""
    parameters = {"isNullSameAsZero": False, "trees": [stump("a", 0.5, 1, 2, missing="right")]}
    assert solr_rows.put("missing", SOLR_TREES, parameters).status_code == 400


def test_an_absent_feature_is_0_in_linear_models_of_solr(solr_rows):
    scores = solr_rows.scores("linear", "LinearModel", {"weights": {"a": 1.0, "b": -0.5}})
    expected = np.nan_to_num(A) - np.float32(0.5) * np.nan_to_num(B)
    np.testing.assert_array_equal(scores, expected)


def test_linear_models_of_solr_need_every_weight(solr_rows):
    answer = solr_rows.put("some", "LinearModel", {"weights": {"a": 1.0}})
    assert answer.status_code == 400
    assert "lacks weight(s) for [b]" in answer.text


@pytest.fixture(scope="module")
def solr_9_rows(solr_9):
    with httpx2.Client(base_url=f"{solr_9.core}/", trust_env=False, timeout=60) as client:
        rows = SolrRows(client, defaultValue="NaN")
        yield rows
        rows.send("POST", "/update?commit=true", {"delete": {"query": "*:*"}})


def test_each_split_of_solr_9_sends_missing_values_its_own_way(solr_9_rows):
    trees = [stump("a", 0.5, 10, 20, missing="left"), stump("b", 2, 1, 2, missing="right")]
    parameters = {"isNullSameAsZero": False, "trees": trees}
    scores = solr_9_rows.scores("missing", SOLR_TREES, parameters)
    left_a = (np.float32(0.5) + SLACK >= A) | np.isnan(A)
    left_b = np.float32(2) + SLACK >= B
    np.testing.assert_array_equal(scores, np.where(left_a, 10, 20) + np.where(left_b, 1, 2))


def test_solr_9_fails_at_a_missing_value_if_a_split_does_not_say_where_it_goes(solr_9_rows):
    parameters = {"isNullSameAsZero": False, "trees": [stump("a", 0.5, 10, 20)]}
    with pytest.raises(httpx2.HTTPStatusError, match="400"):
        solr_9_rows.scores("nowhere", SOLR_TREES, parameters)
