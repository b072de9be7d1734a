"""A manager's import from a real engine reads the index that the server lists, and no other."""

from __future__ import annotations

import itertools
import json
import os
import shutil

import httpx2
import pytest

from podium.studio.settings import Settings
from podium.studio.store.database import connect
from podium.studio.store.migrate import upgrade
from podium.studio.transfer.search_engines import QUERY, SIZE
from tests.engines.install import HERE
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import ended, program
from tests.studio.server import serving

pytestmark = pytest.mark.slow

OPEN = {"title": "Red shoes", "text": "red shoes", "url": "salary"}
SECRET = {"title": "Salaries", "text": "confidential 4711", "url": "salary"}
REST = {"params": {"qq": QUERY}, "limit": SIZE}


@pytest.fixture(scope="module")
def cores(solr):
    """Two cores of Solr, of which the studio may read the first: its address."""
    folder = solr.folder / "secret"
    shutil.copytree(HERE / "solr/core", folder)
    if os.getuid() == 0:
        owner = solr.folder.stat()
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, owner.st_uid, owner.st_gid)
    with httpx2.Client(base_url=f"{solr.url}/solr", trust_env=False, timeout=60) as client:
        made = client.get("/admin/cores", params={"action": "CREATE", "name": "secret"})
        made.raise_for_status()
        for core, document in (("rows", OPEN), ("secret", SECRET)):
            path = f"/{core}/update?commit=true"
            documents = [{"id": f"{core}{n}", **document} for n in range(2)]
            client.post(path, json=documents).raise_for_status()
        yield solr.core
        client.post("/rows/update?commit=true", json={"delete": {"query": "*:*"}})
        client.get("/admin/cores", params={"action": "UNLOAD", "core": "secret"})


@pytest.fixture(scope="module")
def indices(opensearch):
    """Two indices of OpenSearch, of which the studio may read the first: its address."""
    with httpx2.Client(base_url=opensearch.url, trust_env=False, timeout=60) as client:
        settings = {"number_of_shards": 1, "number_of_replicas": 0}
        for index, document in (("open", OPEN), ("secret", SECRET)):
            client.put(f"/{index}", json={"settings": settings}).raise_for_status()
            for number in range(2):
                path = f"/{index}/_doc/{index}{number}?refresh=true"
                client.put(path, json=document).raise_for_status()
        yield f"{opensearch.url}/open"
        client.delete("/open,secret").raise_for_status()


@pytest.fixture(scope="module")
def studio(cores, indices, tmp_path_factory):
    """Sends an import to a studio that lists both; returns the status and the answer or the job."""
    folder = tmp_path_factory.mktemp("studio")
    settings = Settings(
        database=f"sqlite:///{folder}/studio.db",
        exports=folder / "files",
        engines=[cores, indices],
    )
    engine = connect(settings)
    upgrade(engine)
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=0)
    numbers = itertools.count()

    def send(url, end, template, words="shoes"):
        search = {
            "url": f"{url}/{end}",
            "kind": "solr" if end == "select" else "opensearch",
            "queries": f"q{next(numbers)}\t{words}",
            "template": json.dumps(template),
        }
        answer = client.post(f"/api/v1/projects/{project}/imports/engine", json=search)
        job = answer.json()
        return answer.status_code, ended(client, project, job) if answer.is_success else job

    with serving(settings) as address, program(engine, address, ann) as client:
        yield send
    engine.dispose()


JOIN = "{!join from=url to=url fromIndex=secret v='text:confidential'}"
SOLR_ATTACKS = {
    "subquery": REST | {"query": "*:*", "fields": ["id", "x:[subquery fromIndex=secret]"]}
    | {"params": {"qq": QUERY, "x.q": "*:*", "x.collection": "secret"}},
    "fl": REST | {"query": "*:*", "params": {"qq": QUERY, "fl": "id,x:[subquery]", "x.q": "*:*"}},
    "collection": REST | {"query": "*:*", "params": {"qq": QUERY, "collection": "secret"}},
    "shards": REST | {"query": "*:*", "params": {"qq": QUERY, "shards": "127.0.0.1:1/solr/x"}},
    "bool": REST | {"query": "{!bool must=\"" + JOIN.replace("'", "\\'") + "\"}"},
    "bool in single quotes": REST | {"query": "{!bool must='{!join from=url to=url "
                                     "fromIndex=secret v=$user_text}'}",
                                     "params": {"qq": QUERY, "user_text": "text:confidential"}},
    "xmlparser in bool": REST | {"query": "{!bool must=\"{!xmlparser v='<x/>'}\"}"},
    "magic field": REST | {"query": '_query_:"' + JOIN + '"'},
    "escaped magic field": REST | {"query": '_quer\\y_:"\\u007b!join from=url to=url '
                                   "fromIndex=secret v='text:confidential'}\""},
    "within lucene": REST | {"query": "id:* AND " + JOIN},
    "within a function": REST | {"query": "{!func}query(" + JOIN + ")"},
    "macro": REST | {"query": "${user_a}!join from=url to=url fromIndex=secret}text:confidential",
                     "params": {"qq": QUERY, "user_a": "{"}},
    "type": REST | {"query": "{!lucene type=join from=url to=url fromIndex=secret}x"},
    "control characters": REST | {"query": "{!v=x\x1ctype=join\x1cfrom=url\x1cto=url}x"},
    "object": REST | {"query": {"bool": {"must": [{"join": {
        "from": "url", "to": "url", "fromIndex": "secret", "query": "text:confidential"}}]}}},
    "options of an object": REST | {"query": {"lucene": {
        "type": "join", "fromIndex": "secret", "query": QUERY}}},
    "sort": REST | {"query": "*:*", "sort": "query(" + JOIN + ") desc"},
    "facet": REST | {"query": "*:*", "facet": {"x": {"type": "query", "domain": {"join": {
        "from": "url", "to": "url", "fromIndex": "secret"}}}}},
}  # fmt: skip


@pytest.mark.parametrize("name", SOLR_ATTACKS)
def test_another_core_stays_unread(cores, studio, name):
    status, answer = studio(cores, "select", SOLR_ATTACKS[name])
    assert (status, "may not use" in answer["detail"]) == (422, True)


@pytest.mark.parametrize("words", [JOIN, '_query_:"x"', "\\u007b!join fromIndex=secret}x", "${qq}"])
def test_words_of_a_query_read_no_other_core(cores, studio, words):
    template = {"query": QUERY, "limit": SIZE}
    status, job = studio(cores, "select", template, words)
    assert status in (200, 201, 202)
    assert job["state"] == "failed"
    assert "as more than words" in job["error"]


@pytest.mark.parametrize(
    "name",
    ["bool in single quotes", "magic field", "escaped magic field", "within lucene", "macro",
     "object"],
)  # fmt: skip
def test_the_rules_about_solr_are_needed(cores, name):
    """What the other core has decides which documents Solr finds."""
    text = json.dumps(SOLR_ATTACKS[name]).replace('"{{size}}"', "10")
    found = []
    for wanted in ("confidential", "absent"):
        body = text.replace("confidential", wanted)
        answer = httpx2.post(
            f"{cores}/select", content=body, headers={"content-type": "application/json"},
            trust_env=False, timeout=60,
        )  # fmt: skip
        found.append(answer.json().get("response", {}).get("numFound"))
    assert found == [2, 0]


LOOKUP = {"index": "secret", "id": "secret0", "path": "text"}
OPENSEARCH_ATTACKS = {
    "terms lookup": {"query": {"terms": {"url": LOOKUP | {"path": "url"}}}},
    "terms lookup within": {"query": {"bool": {"filter": {"terms": {"url": LOOKUP}}}}},
    "more like this": {"query": {"more_like_this": {
        "fields": ["url"], "like": [{"_index": "secret", "_id": "secret0"}],
        "min_term_freq": 1, "min_doc_freq": 1}}},
    "shape": {"query": {"geo_shape": {"url": {"indexed_shape": LOOKUP}}}},
    "script field": {"query": {"match_all": {}}, "script_fields": {"x": {"script": "1"}}},
    "script query": {"query": {"script": {"script": "true"}}},
    "script score": {"query": {"function_score": {"functions": [{"script_score": {
        "script": "1"}}]}}},
    "script score clause": {"query": {"script_score": {
        "query": {"match_all": {}}, "script": {"source": "1"}}}},
    "script sort": {"query": {"match_all": {}}, "sort": [{"_script": {
        "type": "number", "script": "1"}}]},
    "script terms": {"query": {"terms_set": {"url": {
        "terms": ["salary"], "minimum_should_match_script": {"source": "1"}}}}},
    "rescore": {"query": {"match_all": {}}, "rescore": {"query": {"rescore_query": {
        "terms": {"url": LOOKUP}}}}},
    "inner hits": {"query": {"nested": {"path": "x", "query": {"match_all": {}}, "inner_hits": {
        "script_fields": {"x": {"script": "1"}}}}}},
    "collapse": {"query": {"match_all": {}}, "collapse": {"field": "url", "inner_hits": {
        "name": "x", "script_fields": {}}}},
    "vector of another index": {"query": {"knn": {"field": "v", "query_vector_builder": {
        "lookup": LOOKUP | {"path": "v"}}}}},
    "inner hits of vectors": {"query": {"match_all": {}}, "knn": {"field": "v", "inner_hits": {
        "script_fields": {"x": {"script": "1"}}}}},
    "runtime field": {"query": {"match_all": {}}, "runtime_mappings": {"x": {"type": "lookup"}}},
    "pipeline": {"query": {"match_all": {}}, "search_pipeline": {"request_processors": []}},
    "aggregation": {"query": {"match_all": {}}, "aggs": {"x": {"scripted_metric": {}}}},
}  # fmt: skip


@pytest.mark.parametrize("name", OPENSEARCH_ATTACKS)
def test_another_index_stays_unread(indices, studio, name):
    body = OPENSEARCH_ATTACKS[name]
    template = {**body, "post_filter": {"match": {"text": QUERY}}, "size": SIZE}
    status, answer = studio(indices, "_search", template)
    assert (status, "may not use" in answer["detail"]) == (422, True)


@pytest.mark.parametrize("name", ["terms lookup", "more like this"])
def test_the_rules_about_opensearch_are_needed(indices, name):
    found = []
    for document in ("secret0", "absent"):
        body = json.dumps(OPENSEARCH_ATTACKS[name]).replace("secret0", document)
        answer = httpx2.post(
            f"{indices}/_search", content=body, headers={"content-type": "application/json"},
            trust_env=False, timeout=60,
        )  # fmt: skip
        found.append(len(answer.json()["hits"]["hits"]))
    assert found == [2, 0]


@pytest.mark.parametrize(
    "template",
    [
        {"query": {"bool": {"must": [{"multi_match": {"query": QUERY, "fields": ["title^2"]}}],
                            "filter": {"terms": {"url.keyword": ["salary"]}}}}, "size": SIZE,
         "sort": ["_score", {"url.keyword": {"order": "asc"}}], "_source": {"excludes": ["x"]},
         "track_total_hits": False},
        {"query": {"function_score": {"query": {"match": {"title": QUERY}}, "functions": [
            {"filter": {"exists": {"field": "url"}}, "weight": 2}], "boost_mode": "sum"}}},
        {"query": {"match": {"title": QUERY}}, "rescore": [{"window_size": 5, "query": {
            "rescore_query": {"match_phrase": {"title": {"query": QUERY, "slop": 2}}}}}]},
    ],
)  # fmt: skip
def test_searches_of_opensearch_find_documents(indices, studio, template):
    _, job = studio(indices, "_search", template)
    assert job["state"] == "done", job


@pytest.mark.parametrize(
    "template",
    [
        {"query": "{!edismax qf='title^2 text' v=$words}", "params": {"words": QUERY},
         "limit": SIZE, "fields": ["id", "title", "score"], "sort": "score desc, id asc"},
        {"query": {"bool": {"must": [{"edismax": {"qf": "title", "query": QUERY}}]}},
         "filter": ["{!term f=url}salary"]},
        {"query": QUERY, "params": {"defType": "edismax", "qf": "title text", "fl": "id, title*"}},
    ],
)  # fmt: skip
def test_searches_of_solr_find_documents(cores, studio, template):
    _, job = studio(cores, "select", template)
    assert job["state"] == "done", job
