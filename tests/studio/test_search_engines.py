"""Candidates from search engines: only from those that are listed, and only as values."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import select

from podium.errors import DataError
from podium.studio.errors import RefusedError
from podium.studio.settings import Settings
from podium.studio.store.database import reading
from podium.studio.store.tables import QueryCandidate
from podium.studio.transfer.readers import QueryText
from podium.studio.transfer.search_engines import QUERY, EngineSearch, allowed, check_search, fetch
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import ended, program
from tests.studio.server import serving


class Engine(BaseHTTPRequestHandler):
    """A search engine that keeps what it was asked; what it answers can be set."""

    asked: list = []  # noqa: RUF012
    response: object = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append((self.path, body, self.headers.get("authorization")))
        if "redirect" in self.path:
            self.send_response(302)
            self.send_header("location", "http://127.0.0.1:1/")
            self.end_headers()
            return
        documents = [
            {"title": f"T{n}", "text": ["one", "two"], "id": n, "brand": "A", "vector": [0.5] * 99}
            for n in range(3)
        ]
        answer = {
            "hits": {
                "hits": [{"_id": f"d{n}", "_source": each} for n, each in enumerate(documents)]
            },
            "response": {"docs": documents},
        }
        content = json.dumps(answer if self.response is None else self.response).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def engine_address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Engine.asked.clear()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_candidates_from_search_engines(engine, database, tmp_path, engine_address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=0)
    settings = Settings(
        database=database,
        exports=tmp_path / "files",
        engines=[f"http://reader:secret@{engine_address}/shop"],
    )
    path = f"/api/v1/projects/{project}/imports/engine"
    tricky = 'x", "size": 9999, "y": "'
    with serving(settings) as address, program(engine, address, ann) as client:
        search = {"url": f"http://{engine_address}/shop/_search", "queries": f"q1\t{tricky}"}
        template = '{"query": {"match": {"body": "{{query}}"}}, "size": "{{size}}"}'
        job = client.post(path, json={**search, "template": template, "depth": 7}).json()
        assert ended(client, project, job)["result"]["added"] == 1
        solr = {**search, "url": f"http://{engine_address}/shop/select", "kind": "solr"}
        solr["queries"] = "q2\tshoes"
        assert ended(client, project, client.post(path, json=solr).json())["result"]["added"] == 1
        moved = {
            **search,
            "url": f"http://{engine_address}/shop/redirect/_search",
            "queries": "q3\tx",
        }
        job = ended(client, project, client.post(path, json=moved).json())
        assert "status 302" in job["error"]
        for wrong in (
            {"url": "http://127.0.0.1:1/shop"},
            {"template": '{"query": "fixed"}'},
            {"template": "{"},
            {"template": '["{{query}}"]'},
        ):
            assert client.post(path, json=search | wrong).status_code == 422
    asked_path, body, login = Engine.asked[0]
    assert asked_path == "/shop/_search"
    assert body == {"query": {"match": {"body": tricky}}, "size": 7}
    assert login.startswith("Basic ")
    rows = reading(
        engine,
        lambda c: c.execute(
            select(QueryCandidate.item, QueryCandidate.text, QueryCandidate.extra).order_by(
                QueryCandidate.query_id, QueryCandidate.position
            )
        ).all(),
    )
    kept = {"brand": "A"}  # what people can read, and no vector
    assert [tuple(row) for row in rows[:2]] == [
        ("d0", "one\ntwo", kept),
        ("d1", "one\ntwo", kept),
    ]


SOLR = EngineSearch(kind="solr", url="http://search/solr/shop/select", queries="q1\tshoes")


@pytest.mark.parametrize(
    "template",
    [
        {"query": "{!xmlparser v=$words}", "params": {"words": QUERY}},
        {"query": "*:*", "params": {"q": "{!xmlparser v='<x/>'}", "qq": QUERY}},
        {"query": "{! type = 'xmlparser' v=$words}", "params": {"words": QUERY}},
        {"query": "{!lucene type=xmlparser}", "params": {"words": QUERY}},
        {"query": "{!type=$qq v=$words}", "params": {"words": QUERY, "qq": "xmlparser"}},
        {"query": '_query_:"{!join from=a to=b fromIndex=staff}x"', "params": {"qq": QUERY}},
        {"query": QUERY, "params": {"defType": "xmlparser"}},
        {"query": {"xmlparser": {"query": QUERY}}},
        {"query": QUERY, "filter": [{"join": {"fromIndex": "staff", "query": "*:*"}}]},
    ],
)
def test_solr_parsers_that_read_more_than_the_index_are_refused(template):
    search = SOLR.model_copy(update={"template": json.dumps(template)})
    with pytest.raises(RefusedError, match="may not use"):
        check_search(search, ["http://search/"])


@pytest.mark.parametrize(
    "template",
    [
        {"query": "{!edismax v=$words qf='title^2 text'}", "params": {"words": QUERY}},
        {"query": {"bool": {"must": [{"edismax": {"query": QUERY}}]}}},
        {"query": QUERY, "params": {"defType": "edismax", "fq": "{!term f=type}shoe"}},
        {"query": "{!v=$words}", "params": {"words": QUERY}},
    ],
)
def test_solr_parsers_that_search_the_index_are_allowed(template):
    search = SOLR.model_copy(update={"template": json.dumps(template)})
    assert check_search(search, ["http://search/"]) == template


def test_words_of_a_query_choose_no_parser(engine_address):
    search = SOLR.model_copy(
        update={
            "url": f"http://{engine_address}/solr/shop/select",
            "template": json.dumps({"query": QUERY}),
        }
    )
    asked = [QueryText("q1", "{!xmlparser v='<x/>'}", "")]
    with pytest.raises(DataError, match="Solr would read query 'q1' as more than words"):
        list(fetch(search, asked, [f"http://{engine_address}/"]))
    assert Engine.asked == []


@pytest.mark.parametrize(
    ("kind", "response"),
    [
        ("opensearch", "hits"),
        ("opensearch", {"hits": [{"_id": "d1", "_source": {}}]}),
        ("opensearch", {"hits": {"hits": {}}}),
        ("opensearch", {"hits": {"hits": None}}),
        ("opensearch", {"hits": {"hits": ["d1"]}}),
        ("opensearch", {"hits": {"hits": [{"_id": "d1"}]}}),
        ("opensearch", {"hits": {"hits": [{"_source": {}}]}}),
        ("solr", {"response": {"docs": {"id": "d1"}}}),
        ("solr", {"response": {"docs": [["id", "d1"]]}}),
    ],
)
def test_responses_that_are_no_lists_of_documents(engine_address, monkeypatch, kind, response):
    monkeypatch.setattr(Engine, "response", response)
    end = "solr/shop/select" if kind == "solr" else "shop/_search"
    search = EngineSearch(kind=kind, url=f"http://{engine_address}/{end}", queries="q1\tshoes")
    with pytest.raises(DataError, match=f"'shoes' is not a list of documents from {kind}"):
        list(fetch(search, [QueryText("q1", "shoes")], [f"http://{engine_address}/"]))


def test_fields_inside_of_others_and_missing_ones(engine_address, monkeypatch):
    source = {"about": {"sku": 7, "name": "Shoe"}, "text": "Red", "url": None}
    monkeypatch.setattr(Engine, "response", {"hits": {"hits": [{"_id": "x", "_source": source}]}})
    search = EngineSearch(
        url=f"http://{engine_address}/shop/_search",
        queries="q1\tshoes",
        id_field="about.sku",
        title_field="about.name",
        text_field="text.body",
    )
    (read,) = fetch(search, [QueryText("q1", "shoes")], [f"http://{engine_address}/"])
    (candidate,) = read.entry.candidates
    assert candidate.document_id == "7"
    assert (candidate.title, candidate.text, candidate.url) == ("Shoe", "", "")


def test_capital_letters_in_a_scheme_or_host_are_the_same_address(engine_address):
    search = EngineSearch(url=f"HTTP://{engine_address}/shop/_search", queries="q1\tshoes")
    (read,) = fetch(search, [QueryText("q1", "shoes", "")], [f"http://{engine_address}/"])
    assert [each.document_id for each in read.entry.candidates] == ["d0", "d1", "d2"]


@pytest.mark.parametrize(
    "url",
    [
        "http://search:9200.elsewhere/shop",
        "http://search:9200@elsewhere/shop",
        "http://user@search:9200/shop",
        "http://search:9201/shop",
        "https://search:9200/shop",
        "http://search:9200/shops",
        "http://search:9200/shop/../other",
        "http://search:9200/shop/%2e%2e/other",
        "http://search:9200/shop\\@elsewhere",
        "file:///etc/passwd",
        "http://search:port/shop",
        "//search:9200/shop",
        "",
    ],
)
def test_only_listed_engines_are_called(url):
    with pytest.raises(RefusedError):
        allowed(url, ["http://search:9200/shop"])
