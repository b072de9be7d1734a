"""Searches of a running engine, reranked by a model or in the engine's order within the budget."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx2
import numpy as np
import pytest

from podium.export.live.http_client import EngineClient
from podium.features import read_definitions
from podium.features.feature_log import LogSettings, log_features, send, upload_feature_set
from podium.features.feature_search import EngineRequest, feature_search
from podium.features.search_query import SearchQuery
from podium.monitoring import read_ranking_log
from podium.serving import ServingSettings
from podium.serving.search_settings import SearchSettings
from podium.serving.settings import parse_model
from tests.engines.engine_proxy import proxied
from tests.engines.shop import DEFINITIONS, empty_solr, products, stock_opensearch, stock_solr
from tests.serving.service import serving

pytestmark = pytest.mark.slow

QUERY = "red running shoe"
BUDGET = 3_000
"""Milliseconds, in tests of the time budget."""
ENOUGH = 60_000
"""Milliseconds, in all other tests."""
BUSY = 3.0
"""Seconds that a busy machine may add to the budget; without a budget it would be a minute."""


@pytest.fixture(scope="module", params=["solr", "opensearch"])
def shop(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "features.toml"
    path.write_text(DEFINITIONS)
    if request.param == "opensearch":
        yield stock_opensearch(request.getfixturevalue("opensearch_ltr"), path)
        return
    server = request.getfixturevalue("solr")
    yield stock_solr(server, path)
    empty_solr(server)


@pytest.fixture(scope="module")
def model(shop, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.podium"
    ranker = shop.ranker()
    ranker.save(path)
    ranker.features_ = replace(ranker.features_, definitions_hash=None)
    ranker.save(path.with_name("unbound.podium"))
    return path


@contextmanager
def search_service(shop, model, *, url=None, ranking_log=None, budget_ms=ENOUGH, **options: Any):
    search = SearchSettings(
        engine=shop.engine, url=url or shop.url, definitions=str(shop.path), depth=50,
        budget_ms=budget_ms, fields=("title", "clicks"), **options,
    )  # fmt: skip
    settings = ServingSettings(
        models=(parse_model(str(model)),), search=search, ranking_log=ranking_log
    )
    with (
        serving(settings) as address,
        httpx2.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client(shop, model):
    with search_service(shop, model) as client:
        yield client


def through(proxy, shop):
    """The address of the shop behind a proxy."""
    _, _, rest = shop.url.removeprefix("http://").partition("/")
    return f"http://127.0.0.1:{proxy.port}/{rest}"


def expected(shop, query=QUERY, depth=50):
    """The candidates by the ranker's own scores, computed without the service."""
    candidates, rows = shop.in_index_order(query, depth), shop.rows(query, depth)
    scores = shop.ranker()._predict(rows)
    order = np.argsort(-scores, kind="stable")
    return [candidates[row].id for row in order], scores[order], rows


def ids(answer):
    return [hit["id"] for hit in answer["hits"]]


def count(client, outcome):
    lines = client.get("/metrics").text.splitlines()
    name = f'podium_serving_searches_total{{outcome="{outcome}"}} '
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))


def test_the_page_is_in_the_order_of_the_model(client, shop):
    names, scores, _ = expected(shop)
    before = count(client, "reranked")
    answer = client.post("/search", json={"query": QUERY, "size": 20, "fields": ["title"]}).json()
    assert (answer["reranked"], answer["reason"]) == (True, None)
    assert ids(answer) == names[:20] != [hit.id for hit in shop.ask(QUERY, 20)]
    np.testing.assert_allclose([hit["score"] for hit in answer["hits"]], scores[:20], atol=1e-5)
    titles = [{"title": products()[name]["title"]} for name in names[:20]]
    assert [hit["fields"] for hit in answer["hits"]] == titles
    assert count(client, "reranked") == before + 1


def test_pages_by_get_and_post_are_parts_of_one_ranking(client, shop):
    names, _, _ = expected(shop)
    first = client.get("/search", params={"q": QUERY, "size": 7, "fields": "title,clicks"}).json()
    second = client.post("/search", json={"query": QUERY, "from": 7, "size": 7}).json()
    assert ids(first) + ids(second) == names[:14]
    assert second["from"] == 7
    assert set(first["hits"][0]["fields"]) == {"title", "clicks"}


def test_rankings_are_logged_with_the_features_that_were_served(shop, model, tmp_path):
    with search_service(shop, model, ranking_log=str(tmp_path / "log")) as client:
        client.get("/search", params={"q": QUERY})
    log = read_ranking_log(tmp_path / "log")
    _, _, rows = expected(shop)
    assert list(log.queries) == [QUERY]
    assert log.feature_names == shop.definitions.names
    np.testing.assert_array_equal(log.features[0], rows)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"query": ""}, "length >= 1"),
        ({"query": " \t"}, "no words"),
        ({"query": "a\0b"}, "no words"),
        ({"query": "x" * 1001}, "length <= 1000"),
        ({"query": "red", "from": 45, "size": 6}, "from + size is larger than 50"),
        ({"query": "red", "from": -1}, ">= 0"),
        ({"query": "red", "size": 0}, ">= 1"),
        ({"query": "red", "fields": ["kind"]}, "'kind' is not among those"),
        ({"query": "red", "columns": {"country": "de"}}, "no feature uses the column 'country'"),
        ({"query": "red", "url": "http://other"}, "unknown field `url`"),
        ({"query": ["red"]}, "Expected `str`"),
    ],
)
def test_invalid_searches_are_refused_with_the_reason(client, body, reason):
    answer = client.post("/search", json=body)
    assert (answer.status_code, reason in answer.json()["error"]) == (400, True), answer.text


@pytest.mark.parametrize("parameters", ["", "q=red&q=blue", "q=red&url=http://x", "q=red&size=x"])
def test_invalid_parameters_are_refused(client, parameters):
    assert client.get(f"/search?{parameters}").status_code == 400


@pytest.mark.parametrize(
    "text",
    [
        "*:*", "{!func}clicks", "_query_:\"{!lucene}*:*\"", "title:zzz OR id:p001",
        "${podium_query}", "$podium_query", "zzz\"}}, {\"match_all\": {}}", "zzz') OR (1=1",
        "}}{{/query}}", "zzz\\", "{{query}}", "zzz}{!lucene}*:*", "[* TO *]",
        "zzz&fl=kind&rows=1000", "zzz\r\nfl: kind", "(((", "! ~ ^",
        "zzz]}],fl=kind",
    ],
)  # fmt: skip
def test_the_text_of_a_query_is_only_words(client, text):
    """None of these words is in a product, so a hit would come from syntax."""
    answer = client.post("/search", json={"query": text, "fields": ["title"]})
    assert (answer.status_code, answer.json()["hits"]) == (200, [])
    assert answer.json()["reranked"] is True


def test_words_beside_syntax_are_still_found(client, shop):
    plain = [hit.id for hit in shop.ask("trail", 50)]
    answer = client.post("/search", json={"query": "trail {!x} ${y} ]", "size": 50}).json()
    assert sorted(ids(answer)) == sorted(plain) != []


def test_operators_that_the_engine_does_not_take_are_left_out(client, shop):
    """Solr's dismax refuses these; OpenSearch takes them as words."""
    for text in ("trail OR", '- trail "', "AND trail", "trail &&"):
        answer = client.post("/search", json={"query": text, "size": 50})
        assert (answer.status_code, answer.json()["reranked"]) == (200, True)
        assert sorted(ids(answer.json())) == sorted(hit.id for hit in shop.ask("trail", 50))
    statuses = [client.get("/search", params={"q": text}).status_code for text in ('"', "-", "&&")]
    assert statuses == ([400] * 3 if shop.engine == "solr" else [200] * 3)


def other_definitions(shop):
    """The file of definitions of features with the same names and another meaning."""
    other = shop.path.with_name("other.toml")
    other.write_text(DEFINITIONS.replace("{ match = { title", "{ match = { body")
                     .replace("qf=title", "qf=body"))  # fmt: skip
    return other


def test_a_set_that_others_upload_meanwhile_never_answers(shop, model):
    own = feature_search(shop.definitions, shop.engine, shop.url, "replaced")
    definitions = read_definitions(other_definitions(shop))
    other = feature_search(definitions, shop.engine, shop.url, "replaced")
    names, scores, _ = expected(shop)
    delete = EngineRequest("DELETE", own._stored_path(), allowed=(404,))
    upload_feature_set(own)
    answers = []
    with (
        search_service(shop, model, feature_set="replaced") as client,
        EngineClient(own.address, own.title) as engine,
    ):

        def ask(times=3):
            parameters = {"q": QUERY, "size": 20}
            answers.extend(client.get("/search", params=parameters).json() for _ in range(times))
            return answers[-1]["reranked"]

        for _ in range(3):
            upload_feature_set(other)
            assert ask()
            send(engine, delete)
            upload_feature_set(other)
            assert not ask()
            upload_feature_set(own)
            assert ask()
    for answer in answers:
        if answer["reranked"]:
            assert ids(answer) == names[:20]
            served = [hit["score"] for hit in answer["hits"]]
            np.testing.assert_allclose(served, scores[:20], atol=1e-5)


def test_a_query_that_the_engine_refuses_is_refused_by_search_and_log(shop, model, tmp_path):
    """Candidates have a number of clicks, and words are not numbers."""
    path = tmp_path / "clicks.toml"
    path.write_text(
        DEFINITIONS.replace(
            '{ multi_match = { query = "{{query}}", fields = ["title^2", "body"] } }',
            '{ match = { clicks = "{{query}}" } }',
        ).replace("{!dismax qf='title^2 body' mm=1}", "{!field f=clicks}")
    )
    with search_service(replace(shop, path=path), model) as client:
        refused = client.post("/search", json={"query": "trail"})
        assert (refused.status_code, refused.json()) == (
            400, {"error": "the search engine refuses this query"},
        )  # fmt: skip
        assert client.post("/search", json={"query": "3"}).json()["reranked"] is True
    search = feature_search(read_definitions(path), shop.engine, shop.url)
    queries = [SearchQuery("words", "trail"), SearchQuery("number", "3")]
    log = log_features(search, queries, tmp_path / "a.parquet", LogSettings(depth=5))
    assert (log.queries, log.asked, list(log.refused)) == (1, 2, ["words"])
    assert "refuses the query: " in log.refused["words"]


def test_a_feature_set_of_other_definitions_falls_back_to_the_engines_order(shop, model):
    """Its features have the same names, and another meaning."""
    other = other_definitions(shop)
    with search_service(replace(shop, path=other), model.with_name("unbound.podium")) as client:
        answer = client.post("/search", json={"query": QUERY}).json()
    assert (answer["reranked"], answer["reason"]) == (
        False, "the engine did not compute the features",
    )  # fmt: skip
    assert ids(answer) == [hit.id for hit in shop.ask(QUERY, 10)]


def test_a_feature_set_that_is_missing_falls_back_to_the_engines_order(shop, model):
    with search_service(shop, model, feature_set="absent") as client:
        answer = client.post("/search", json={"query": QUERY, "from": 3, "size": 9}).json()
        assert (answer["reranked"], answer["reason"]) == (
            False, "the engine did not compute the features",
        )  # fmt: skip
        assert ids(answer) == [hit.id for hit in shop.ask(QUERY, 12)][3:]
        assert "model" not in answer
        assert count(client, "logging") == 1


def test_a_model_that_fails_falls_back_to_the_engines_order(shop, model):
    """Its definitions say that an absent query feature stays missing, and it takes none."""
    definitions = shop.path.with_name("columns.toml")
    definitions.write_text(DEFINITIONS.replace('property = "words"', 'column = "words"'))
    settings = SearchSettings(
        engine=shop.engine, url=shop.url, definitions=str(definitions), depth=50, budget_ms=ENOUGH
    )
    models = (parse_model(str(model.with_name("unbound.podium"))),)
    with (
        serving(ServingSettings(models=models, search=settings)) as address,
        httpx2.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        answer = client.post("/search", json={"query": QUERY, "size": 20}).json()
        assert (answer["reranked"], answer["reason"]) == (
            False, "the model did not score the candidates",
        )  # fmt: skip
        assert ids(answer) == [hit.id for hit in shop.ask(QUERY, 20)]
        assert count(client, "model") == 1
        right = {"query": QUERY, "size": 20, "columns": {"words": "3"}}
        assert ids(client.post("/search", json=right).json()) == expected(shop)[0][:20]
        wrong = client.post("/search", json={"query": QUERY, "columns": {"words": "many"}})
        assert (wrong.status_code, "'many'" in wrong.json()["error"]) == (400, True)


def test_slow_logging_falls_back_within_the_budget(shop, model):
    log = b"ltr_log" if shop.engine == "opensearch" else b"[features"
    with (
        proxied(shop.url) as proxy,
        search_service(shop, model, url=through(proxy, shop), budget_ms=BUDGET) as client,
    ):
        assert client.get("/search", params={"q": QUERY}).json()["reranked"] is True
        proxy.delays[log] = 60.0
        start = time.monotonic()
        answer = client.get("/search", params={"q": QUERY}).json()
        seconds = time.monotonic() - start
        assert (answer["reranked"], answer["reason"]) == (
            False, "the budget of time did not suffice",
        )  # fmt: skip
        assert ids(answer) == [hit.id for hit in shop.ask(QUERY, 10)]
        assert count(client, "time") == 1
        proxy.delays.clear()
        assert client.get("/search", params={"q": QUERY}).json()["reranked"] is True
    assert BUDGET / 2000 <= seconds < BUDGET / 1000 + BUSY


def test_an_engine_that_hangs_or_is_gone_is_a_503_within_the_budget(shop, model):
    with (
        proxied(shop.url) as proxy,
        search_service(
            shop, model, url=through(proxy, shop), budget_ms=BUDGET, connections=3
        ) as client,
    ):
        assert client.get("/search", params={"q": QUERY}).json()["reranked"] is True
        proxy.hang = True
        start = time.monotonic()
        answer = client.get("/search", params={"q": QUERY})
        assert time.monotonic() - start < BUDGET / 1000 + BUSY
        assert (answer.status_code, answer.json()) == (
            503, {"error": "the search engine does not answer"},
        )  # fmt: skip
        proxy.hang = False
        assert client.get("/search", params={"q": QUERY}).json()["reranked"] is True
        assert proxy.most_connections <= 3
        assert (count(client, "reranked"), count(client, "engine")) == (2, 1)
    gone = through(proxy, shop)  # nobody listens now
    with search_service(shop, model, url=gone, budget_ms=BUDGET) as client:
        start = time.monotonic()
        assert client.get("/search", params={"q": QUERY}).status_code == 503
        assert time.monotonic() - start < BUDGET / 1000 + BUSY


def test_searches_beyond_the_connections_wait_and_are_then_refused(shop, model):
    with (
        proxied(shop.url) as proxy,
        search_service(
            shop, model, url=through(proxy, shop), budget_ms=BUDGET, connections=4
        ) as client,
    ):
        client.get("/search", params={"q": QUERY})
        proxy.hang = True
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda _: client.get("/search", params={"q": QUERY}), range(6)))
        assert sorted(answer.json()["error"] for answer in answers) == (
            ["the search engine does not answer"] * 2 + ["too many searches at once"] * 4
        )
        assert proxy.most_connections <= 4
        assert (count(client, "engine"), count(client, "busy")) == (2, 4)
        proxy.hang = False
        assert client.get("/search", params={"q": QUERY}).json()["reranked"] is True
