"""Requests to engines that log features, and what their answers mean."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from podium.errors import ArgumentError, DataError
from podium.features.definition import FeatureDefinition
from podium.features.definitions import FeatureDefinitions
from podium.features.feature_search import (
    EngineRequest,
    FeatureSearch,
    QueryRefusedError,
    feature_search,
)
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.sources import EngineSource, FieldSource, FunctionSource

MATCH = {"match": {"title": "{{query}}"}}
CANDIDATES = EngineSource({"match": {"body": "{{query}} {{place}}"}}, "{!dismax qf=body}{{query}}")
DEFINITIONS = FeatureDefinitions(
    (
        FeatureDefinition("title", EngineSource(MATCH, "{!field f=title}{{query}}")),
        FeatureDefinition("clicks", FieldSource("clicks")),
        FeatureDefinition("overlap", FunctionSource("term_overlap", "title")),
    ),
    CANDIDATES,
)
QUERY = SearchQuery("q", 'red "shoes" ${x}', {"place": "wien"})


def opensearch(definitions: FeatureDefinitions = DEFINITIONS) -> FeatureSearch:
    return feature_search(definitions, "opensearch", "http://host:9200/shop/", "set_1")


def solr(definitions: FeatureDefinitions = DEFINITIONS) -> FeatureSearch:
    return feature_search(definitions, "solr", "http://host:8983/solr/shop", "set_1")


def test_opensearch_is_asked_with_words_as_values():
    search = opensearch()
    request = search.search(QUERY, 20, start=10, fields=["url"])
    assert search.address == "http://host:9200"
    path = "shop/_search?allow_partial_search_results=false"
    assert (request.method, request.path) == ("POST", path)
    assert request.content == {
        "size": 20,
        "from": 10,
        "_source": ["title", "url"],
        "sort": ["_score", {"_doc": "asc"}],
        "track_total_hits": False,
        "query": {
            "bool": {
                "must": [{"match": {"body": 'red "shoes" ${x} wien'}}],
                "filter": [
                    {
                        "sltr": {
                            "_name": "podium",
                            "featureset": opensearch().feature_set,
                            "params": {"query": 'red "shoes" ${x}'},
                        }
                    }
                ],
            }
        },
        "ext": {"ltr_log": {"log_specs": {"name": "podium", "named_query": "podium"}}},
    }


def test_solr_is_asked_with_words_as_parameters():
    request = solr().search(QUERY, 20, start=10, fields=["url"])
    assert (request.method, request.path) == ("POST", "select?wt=json&expandMacros=false")
    assert request.content == {
        "query": "{!dismax qf=body v=$podium_query}",
        "limit": 20,
        "offset": 10,
        "fields": [
            "id",
            "score",
            "podium_number:[docid]",
            "title",
            "url",
            f"podium:[features store={solr().feature_set} format=dense logAll=true "
            "efi.query=$podium_query]",
        ],
        "params": {"podium_query": 'red "shoes" $ {x}'},
    }


def test_an_engine_without_features_of_its_own_is_only_searched():
    words = FeatureDefinitions(DEFINITIONS.features[2:], CANDIDATES)
    body = opensearch(words).search(QUERY, 5).content
    assert (list(body["query"]["bool"]), "ext" in body) == (["must"], False)
    fields = solr(words).search(QUERY, 5).content["fields"]
    assert fields == ["id", "score", "podium_number:[docid]", "title"]
    assert opensearch(words).stored() is None
    answer = hits({"_id": "a", "sort": [2.0, 7], "_source": {"title": "red"}})
    expected = [LoggedDocument("a", 2.0, {}, {"title": "red"}, 7)]
    assert opensearch(words).documents(answer) == expected


def test_feature_sets_are_added():
    """POST would replace one of OpenSearch."""
    sent = opensearch().uploads()
    assert [(each.method, each.path, each.allowed) for each in sent] == [
        ("PUT", "_ltr", (400,)),
        ("PUT", f"_ltr/_featureset/{opensearch().feature_set}", (409,)),
    ]
    names = [each["name"] for each in sent[1].content["featureset"]["features"]]
    assert names == ["title", "clicks"]
    assert [(each.method, each.path) for each in solr().uploads()] == [
        ("PUT", "schema/feature-store"),
    ]
    path = f"schema/feature-store/{solr().feature_set}"
    assert solr().stored() == EngineRequest("GET", path, allowed=(400, 404))


def hits(*listed: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": list(listed)}, **more}


def hit(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"_id": "a", "sort": [2.0, 7], "fields": {"_ltrlog": [{"podium": list(entries)}]}}


def test_opensearch_leaves_out_the_value_of_an_absent_feature():
    answer = hits(hit({"name": "title", "value": 0.5}, {"name": "clicks"}))
    [document] = opensearch().documents(answer)
    assert document._replace(values={}) == LoggedDocument("a", 2.0, {}, {}, 7)
    np.testing.assert_equal(document.values, {"title": 0.5, "clicks": np.nan})
    answer = hits(hit({"name": "title", "value": "NaN"}, {"name": "clicks", "value": 0}))
    [document] = opensearch().documents(answer)
    np.testing.assert_equal(document.values, {"title": np.nan, "clicks": 0.0})


def test_an_id_may_come_from_doc_values():
    clicks = FeatureDefinitions(DEFINITIONS.features[1:2], CANDIDATES)
    search = feature_search(clicks, "opensearch", "http://host:9200/shop", id_field="sku")
    body = search.search(QUERY, 5).content
    assert "_source" not in body
    assert (body["stored_fields"], body["docvalue_fields"]) == ("_none_", ["sku"])
    found = hit({"name": "clicks", "value": 1})
    del found["_id"]
    found["fields"]["sku"] = ["b"]
    assert search.documents(hits(found)) == [LoggedDocument("b", 2.0, {"clicks": 1.0}, {}, 7)]
    # What has to be read from stored fields comes with the id.
    assert search.search(QUERY, 5, fields=["url"]).content["_source"] == ["url"]
    solr = feature_search(clicks, "solr", "http://host:8983/solr/shop", id_field="sku")
    assert solr.search(QUERY, 5).content["fields"][0] == "sku"


def solr_answer(**fields: Any) -> dict[str, Any]:
    return {"responseHeader": {}, "response": {"docs": [_solr_document(**fields)]}}


def _solr_document(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "score": 2.0, "podium_number": 7, **fields}


def test_solr_says_nan_for_an_absent_feature():
    answer = solr_answer(podium="title=0.5,clicks=NaN", title="red")
    [document] = solr().documents(answer)
    assert document._replace(values={}) == LoggedDocument("a", 2.0, {}, {"title": "red"}, 7)
    np.testing.assert_equal(document.values, {"title": 0.5, "clicks": np.nan})


@pytest.mark.parametrize(
    ("search", "answer", "message"),
    [
        (opensearch(), hits(hit({"name": "title"})), "in OpenSearch has other features"),
        (solr(), solr_answer(podium="title=1,clicks=2,x=3"), "in Solr has other features"),
        (opensearch(), hits(timed_out=True), "answers with a part of its results"),
        (opensearch(), hits(_shards={"failed": 1}), "answers with a part of its results"),
        (solr(), {"responseHeader": {"partialResults": True}}, "answers with a part of its"),
        (opensearch(), hits({"_id": "a", "sort": [1.0, 7]}), "OpenSearch answers in another form"),
        (opensearch(), {"error": "x"}, "OpenSearch answers in another form"),
        (opensearch(), None, "OpenSearch answers in another form"),
        (solr(), solr_answer(), "Solr answers in another form"),
        (solr(), solr_answer(podium="x"), "Solr answers in another form"),
        (solr(), [], "Solr answers in another form"),
    ],
)
def test_other_answers_are_refused(search, answer, message):
    with pytest.raises(DataError, match=re.escape(message)):
        search.documents(answer)


def opensearch_error(reason: str) -> dict[str, Any]:
    return {"error": {"root_cause": [{"reason": reason}]}, "status": 400}


def solr_error(reason: str) -> dict[str, Any]:
    return {"error": {"msg": reason}}


@pytest.mark.parametrize(
    ("search", "error"), [(opensearch(), opensearch_error), (solr(), solr_error)]
)
@pytest.mark.parametrize(
    ("status", "reason"), [(400, "Cannot\n parse"), (500, "maxClauseCount is set to 1024")]
)
def test_a_refused_query_is_asked_for_once_more_by_its_words(search, error, status, reason):
    def asked(query: SearchQuery) -> Generator[EngineRequest, tuple[int, Any], Any]:
        steps = search.asking(query, 5)
        assert next(steps).content == search.search(query, 5).content
        return steps

    steps = asked(QUERY)
    request = steps.send((status, error(reason)))
    assert request.content == search.search(QUERY.words_only(), 5).content
    message = f"{search.title} refuses the query: {' '.join(reason.split())}"
    with pytest.raises(QueryRefusedError, match=re.escape(message)):
        steps.send((status, error(reason)))
    for same in ("red shoes x", '"'):  # there are no other words
        with pytest.raises(QueryRefusedError):
            asked(SearchQuery("q", same, {"place": "wien"})).send((status, error(reason)))
    with pytest.raises(StopIteration):
        asked(QUERY).send((200, hits() if search.target == "opensearch" else NOTHING))


NOTHING = {"responseHeader": {}, "response": {"docs": []}}


@pytest.mark.parametrize("search", [opensearch(), solr()])
@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (500, {}),
        (400, None),
        (400, {"error": "x"}),
        (400, {"error": {"root_cause": []}}),
    ],
)
def test_what_is_not_about_the_query_is_an_error(search, status, answer):
    if status == 500:
        answer = opensearch_error("disk") if search.target == "opensearch" else solr_error("disk")
    steps = search.asking(QUERY, 5)
    next(steps)
    with pytest.raises(DataError, match=f"answers a search with status {status}") as raised:
        steps.send((status, answer))
    assert not isinstance(raised.value, QueryRefusedError)


def test_a_stored_feature_set_is_compared_by_name_and_content():
    search = opensearch()
    features = search.uploads()[1].content["featureset"]["features"]

    def answer(*listed: Any) -> dict[str, Any]:
        return {"_source": {"featureset": {"features": list(listed)}}}

    search.check_stored(200, answer(*reversed(features)))
    assert search.is_stored(200, answer(*features))
    assert not search.is_stored(404, None)
    with pytest.raises(DataError, match=r"has no feature set 'set_1_\w{12}'"):
        search.check_stored(404, None)
    with pytest.raises(DataError, match="differs from the definitions in 'clicks'"):
        search.check_stored(200, answer(features[0]))
    changed = {**features[0], "template": '{"match_all": {}}'}
    with pytest.raises(DataError, match="differs from the definitions in 'title'"):
        search.check_stored(200, answer(changed, features[1]))
    with pytest.raises(DataError, match="answers in another form"):
        search.check_stored(200, {"x": 1})


def test_the_name_of_a_feature_set_changes_with_what_it_holds():
    """Not with the order, and not with features that Podium computes."""
    names = {
        feature_search(definitions, target, url).feature_set
        for target, url in (("opensearch", "http://host:9200/a"), ("solr", "http://host/solr/a"))
        for definitions in (
            DEFINITIONS,
            replace(DEFINITIONS, features=DEFINITIONS.features[:1]),
            replace(DEFINITIONS, features=DEFINITIONS.features[::-1]),
            replace(DEFINITIONS, features=DEFINITIONS.features[:2]),
        )
    }
    assert len(names) == 4
    assert all(re.fullmatch(r"podium_features_[0-9a-f]{12}", name) for name in names)


@pytest.mark.parametrize(
    ("target", "url", "name", "message"),
    [
        ("opensearch", "http://host:9200/_all", "a", "does not name an index"),
        ("opensearch", "http://host:9200", "a", "does not name an index"),
        ("opensearch", "http://host:9200/a", "../b", "cannot be the name of a feature set"),
        ("elasticsearch", "http://host:9200/a", "a", "'elasticsearch' does not log features"),
    ],
)
def test_other_addresses_and_names_are_refused(target, url, name, message):
    with pytest.raises(ArgumentError, match=message):
        feature_search(DEFINITIONS, target, url, name)


def test_an_engine_needs_a_query_for_candidates():
    without = FeatureDefinitions(DEFINITIONS.features)
    with pytest.raises(ArgumentError, match="do not say how OpenSearch finds candidates"):
        opensearch(without)
    only = FeatureDefinitions(DEFINITIONS.features, EngineSource(MATCH))
    with pytest.raises(ArgumentError, match=r"how Solr finds candidates.* solr = "):
        solr(only)


def test_a_query_without_a_column_is_refused():
    with pytest.raises(DataError, match="query 'q' has no column 'place'"):
        opensearch().search(SearchQuery("q", "red"), 5)
    assert solr().search(SearchQuery("q", "red"), 5).content["params"] == {"podium_query": "red"}
