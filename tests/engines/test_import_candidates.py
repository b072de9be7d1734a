"""The studio's import of candidates from real search engines, which it never changes."""

from __future__ import annotations

import json

import httpx2
import pytest

from podium.errors import DataError
from podium.studio.errors import RefusedError
from podium.studio.transfer.readers import QueryText
from podium.studio.transfer.search_engines import QUERY, SIZE, EngineSearch, fetch

pytestmark = pytest.mark.slow

DOCUMENTS = {
    "d1": {"title": "Red shoes", "text": "red shoes for running", "url": "http://shop/1"},
    "d2": {"title": "Shoes", "text": "shoes shoes shoes", "url": "http://shop/2"},
    "d3": {"title": "Hat", "text": "a red hat"},
}
SHOES = [QueryText("q1", "shoes", "")]


@pytest.fixture(scope="module")
def shop(opensearch):
    """An index of OpenSearch: its address."""
    with httpx2.Client(base_url=opensearch.url, trust_env=False, timeout=60) as client:
        settings = {"number_of_shards": 1, "number_of_replicas": 0}
        client.delete("/shop")
        client.put("/shop", json={"settings": settings}).raise_for_status()
        for name, document in DOCUMENTS.items():
            client.put(f"/shop/_doc/{name}?refresh=true", json=document).raise_for_status()
        yield f"{opensearch.url}/shop"
        client.delete("/shop").raise_for_status()


@pytest.fixture(scope="module")
def collection(solr):
    """A core of Solr: its address."""
    with httpx2.Client(trust_env=False, timeout=60) as client:
        documents = [{"id": name, **document} for name, document in DOCUMENTS.items()]
        update = f"{solr.core}/update?commit=true"
        client.post(update, json=documents).raise_for_status()
        yield solr.core
        client.post(update, json={"delete": {"query": "*:*"}}).raise_for_status()


def imported(search, asked=SHOES):
    """The candidates of each query, from the one server that is allowed."""
    host = "/".join(search.url.split("/")[:3])
    return [entry.entry.candidates for entry in fetch(search, asked, [host])]


def ids(search):
    (candidates,) = imported(search)
    return [each.document_id for each in candidates]


def test_the_default_template_finds_documents_in_opensearch(shop):
    (candidates,) = imported(EngineSearch(url=f"{shop}/_search", queries="q1\tshoes"))
    assert [(each.document_id, each.title, each.url) for each in candidates] == [
        ("d2", "Shoes", "http://shop/2"),
        ("d1", "Red shoes", "http://shop/1"),
    ]
    assert [each.score for each in candidates] == [2.0, 1.0]


def test_the_default_template_finds_documents_in_solr(collection):
    search = EngineSearch(kind="solr", url=f"{collection}/select", queries="q1\tshoes")
    (candidates,) = imported(search)
    assert [(each.document_id, each.title, each.text) for each in candidates] == [
        ("d2", "Shoes", "shoes shoes shoes"),
        ("d1", "Red shoes", "red shoes for running"),
    ]


def test_words_are_values_and_no_part_of_a_request(shop, collection):
    tricky = [QueryText("q1", 'shoes", "size": 9999, "y": "', "")]
    template = json.dumps({"query": {"match": {"text": QUERY}}, "size": SIZE})
    search = EngineSearch(url=f"{shop}/_search", queries="q1\tx", template=template, depth=2)
    assert [
        [each.document_id for each in candidates] for candidates in imported(search, tricky)
    ] == [["d2", "d1"]]
    solr = {"query": "{!edismax qf=text v=$words}", "params": {"words": QUERY}, "limit": SIZE}
    search = EngineSearch(
        kind="solr", url=f"{collection}/query", queries="q1\tx", template=json.dumps(solr)
    )
    assert [len(candidates) for candidates in imported(search, tricky)] == [2]


def test_ids_may_come_from_a_field(shop):
    search = EngineSearch(url=f"{shop}/_search", queries="q1\tshoes", id_field="url")
    assert ids(search) == ["http://shop/2", "http://shop/1"]


def test_an_error_of_the_engine_is_told_by_its_status(shop, collection):
    wrong = json.dumps({"query": {"fuzzy": {"text": {"no_such_option": QUERY}}}})
    with pytest.raises(DataError, match="answered with status 400"):
        imported(EngineSearch(url=f"{shop}/_search", queries="q1\tx", template=wrong))
    with pytest.raises(DataError, match="answered with status 404"):
        imported(EngineSearch(url=f"{shop}-absent/_search", queries="q1\tx"))
    wrong = json.dumps({"query": "{!edismax qf=absent v=$qq}", "params": {"qq": QUERY}})
    with pytest.raises(DataError, match="answered with status 400"):
        imported(
            EngineSearch(kind="solr", url=f"{collection}/select", queries="q1\tx", template=wrong)
        )


def opensearch_state(address: str) -> list[object]:
    """All indices, and all documents of one."""
    server = address.rpartition("/")[0]
    with httpx2.Client(trust_env=False, timeout=60) as client:
        client.post(f"{address}/_refresh").raise_for_status()
        hits = client.get(f"{address}/_search?size=100&sort=_id").json()["hits"]["hits"]
        indices = client.get(f"{server}/_cat/indices?h=index&format=json").json()
        return [sorted(each["index"] for each in indices), [hit["_source"] for hit in hits]]


BODY = json.dumps({"query": {"query_string": {"query": QUERY}}, "size": SIZE})


@pytest.mark.parametrize(
    "path",
    ["/_doc/_search", "/_create/_search", "/_update/d1/_search", "/_delete_by_query",
     "/_bulk", "/_close", "/_search?scroll=1m", "/_search?pipeline=x", "/_search?source={}",
     "/../other/_doc/_search", "/%5fdoc/_search"],
)  # fmt: skip
def test_paths_that_may_write_are_refused_and_change_nothing(shop, path):
    before = opensearch_state(shop)
    with pytest.raises(RefusedError):
        imported(EngineSearch(url=shop + path, queries="q1\tshoes", template=BODY))
    assert opensearch_state(shop) == before


def test_the_rule_about_paths_is_needed(shop):
    """What a URL that ends in `/_search` does if a document's path comes before it."""
    with httpx2.Client(trust_env=False, timeout=60) as client:
        answer = client.post(f"{shop}/_doc/_search", json={"title": "written"})
        assert answer.json()["result"] == "created"
        client.delete(f"{shop}/_doc/_search?refresh=true").raise_for_status()


@pytest.mark.parametrize(
    "template",
    [
        {"query": QUERY, "params": {"qt": "/update"}},
        {"query": QUERY, "params": {"stream.body": "<delete><query>*:*</query></delete>"}},
        {"query": QUERY, "params": {"shards": "127.0.0.1:1/solr/rows"}},
        {"query": "{!xmlparser v=$words}", "params": {"words": QUERY}},
        {"delete": {"query": "*:*"}, "query": QUERY},
        {"add": {"doc": {"id": "new"}}, "query": QUERY},
    ],
)
def test_solr_requests_that_do_more_than_search_are_refused_and_change_nothing(
    collection, template
):
    with pytest.raises(RefusedError):
        imported(
            EngineSearch(
                kind="solr",
                url=f"{collection}/select",
                queries="q1\tshoes",
                template=json.dumps(template),
            )
        )
    everything = httpx2.get(
        f"{collection}/select?q=*:*&fl=id&sort=id asc", trust_env=False, timeout=60
    ).json()
    assert [each["id"] for each in everything["response"]["docs"]] == ["d1", "d2", "d3"]


@pytest.mark.parametrize("path", ["/update", "/schema/_search", "/config/select", "/schema/select"])
def test_solr_paths_that_may_write_are_refused(collection, path):
    with pytest.raises(RefusedError):
        imported(EngineSearch(kind="solr", url=collection + path, queries="q1\tshoes"))
