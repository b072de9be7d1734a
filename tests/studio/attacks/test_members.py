"""What members try: to come back, to see what is hidden, to write where they may only read."""

from __future__ import annotations

import itertools
import json

import pytest
from sqlalchemy import select

from podium.studio.accounts.service import invite, sign_in
from podium.studio.errors import RefusedError
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import LogEntry, QueryCandidate
from podium.studio.transfer.search_engines import EngineSearch, check_search
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program


def test_who_was_removed_does_not_come_back_by_the_same_link(engine, server):
    ann, bob, cat, dan = make_people(engine, 4)
    project = make_project(engine, [ann, cat])
    secret = in_transaction(engine, lambda c: invite(c, project, Role.ASSESSOR, uses=10))
    with Browser(server) as browser, program(engine, server, ann) as owner:
        signed = in_transaction(engine, lambda c: sign_in(c, bob, 1))
        browser.cookies.set("podium_session", signed.secret)
        assert browser.submit(f"/join/{secret}").status_code == 303
        members = f"/api/v1/projects/{project}/members"
        assert owner.delete(f"{members}/{bob}").status_code == 204
        answer = browser.submit(f"/join/{secret}")
        assert answer.status_code == 404
        assert bob not in {each["user"] for each in owner.get(members).json()}
        # Nor with another account, which anyone who has the link can make.
        with Browser(server) as other:
            assert other.get(f"/join/{secret}").status_code == 404
        # Who leaves by themselves ends nobody's invitation.
        again = in_transaction(engine, lambda c: invite(c, project, Role.ASSESSOR, uses=10))
        assert owner.patch(f"{members}/{cat}", json={"role": "manager"}).status_code == 204
        with program(engine, server, cat) as leaving:
            assert leaving.delete(f"{members}/{cat}").status_code == 204
        # Bob was removed: a link for anyone does not bring him back, and it still works for others.
        assert browser.submit(f"/join/{again}").status_code == 404
        with Browser(server) as other:
            signed = in_transaction(engine, lambda c: sign_in(c, dan, 1))
            other.cookies.set("podium_session", signed.secret)
            assert other.submit(f"/join/{again}").status_code == 303


def test_assessors_are_not_told_how_they_are_checked(engine, server):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], gold_rate=0.25, repeat_rate=0.125)
    with program(engine, server, ann) as owner, program(engine, server, bob) as assessor:
        path = f"/api/v1/projects/{project}"
        assert owner.get(path).json()["settings"]["gold_rate"] == 0.25
        for shown in (assessor.get(path).json(), assessor.get("/api/v1/projects").json()[0]):
            assert set(shown["settings"]) == {"name", "mode", "k", "guidelines"}
        assert "0.25" not in assessor.get(path).text
        assert assessor.patch(path, json={"k": 2}).status_code == 403


def test_a_documents_name_is_not_its_prior_rank(engine, server):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=40)
    rows = reading(
        engine,
        lambda c: c.execute(
            select(
                QueryCandidate.position, QueryCandidate.reference, QueryCandidate.title
            ).order_by(QueryCandidate.position)
        ).all(),
    )
    references = [row.reference for row in rows]
    assert len(set(references)) == 40
    # Among forty random numbers about half of the neighbours rise; in the order of ranks all do.
    rising = sum(one < other for one, other in itertools.pairwise(references))
    assert 5 < rising < 34
    with program(engine, server, bob) as assessor:
        task = assessor.post(f"/api/v1/projects/{project}/next", json={"tab": "t"}).json()["task"]
        shown = task["sides"][0]["documents"][0]
        assert shown["reference"] == {row.title: row.reference for row in rows}[shown["title"]]
        documents = f"/api/v1/projects/{project}/queries/{task['query_id']}/documents"
        assert assessor.get(f"{documents}/{shown['reference']}").json()["title"] == shown["title"]
        unused = next(number for number in range(100) if number not in references)
        assert assessor.get(f"{documents}/{unused}").status_code == 404


def test_text_that_no_database_takes_is_no_reason_to_try_again(engine, server):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    path = f"/api/v1/projects/{project}"
    with program(engine, server, ann) as client:
        task = client.post(f"{path}/next", json={"tab": "t"}).json()["task"]
        answer = {"token": task["token"], "choice": "skip", "seconds": 1, "tab": "t"}
        sent = client.post(f"{path}/answers", json={**answer, "reason": "a\0b"})
        assert sent.status_code == 200, sent.text
        kept = reading(engine, lambda c: c.scalars(select(LogEntry.reason)).all())
        assert kept == ["ab"]
        # Where nothing is cut out, it is the value that is wrong and not the database.
        sent = client.patch(path, json={"name": "x\0"})
        assert (sent.status_code, sent.json()["settings"]["name"]) == (200, "x")
    with Browser(server) as browser:
        signed = in_transaction(engine, lambda c: sign_in(c, ann, 1))
        browser.cookies.set("podium_session", signed.secret)
        refused = browser.post(
            f"/projects/{project}/import/engine",
            data={"csrf": signed.csrf, "url": "http://x/_search", "queries": "a\0b"},
        )
        assert refused.status_code == 422


ES = {"kind": "opensearch", "queries": "q\tw"}
SOLR = {"kind": "solr", "queries": "q\tw"}
SAFE = '{"query": "{{query}}"}'
WORDS = {"match": {"title": "{{query}}"}}
MATCH, AFTER = {"query": WORDS}, {"post_filter": WORDS}
SCRIPTS = {"script_fields": {"x": {"script": "1"}}}
LOOKUP = {"lookup": {"index": "staff", "id": "1", "path": "v"}}


@pytest.mark.parametrize(
    "search",
    [
        ES | {"url": "http://search:9200/shop/_delete_by_query"},
        ES | {"url": "http://search:9200/shop/_update_by_query"},
        ES | {"url": "http://search:9200/shop/_bulk"},
        ES | {"url": "http://search:9200/shop/_doc"},
        ES | {"url": "http://search:9200/shop/_search/scroll"},
        ES | {"url": "http://search:9200/shop/_search/"},
        ES | {"url": "http://search:9200/shop/_search?scroll=1m"},
        ES | {"url": "http://search:9200/shop/_delete_by_query?x=/_search"},
        ES | {"url": "http://search:9200/shop/select"},
        ES | {"url": "http://search:9200/shop/_doc/_search"},
        ES | {"url": "http://search:9200/shop/_update/_search"},
        ES | {"url": "http://search:9200/shop/%5fbulk/_search"},
        ES | {"url": "http://search:9200/shop/_bulk;/_search"},
        ES | {"url": "http://search:9200/shop/type/_search"},
        ES | {"url": "http://search:9200/shop%2F_doc/_search"},
        ES | {
            "url": "http://search:9200/shop/_search",
            "template": '{"doc": {"title": "{{query}}"}}',
        },
        *(
            ES | {"url": "http://search:9200/shop/_search", "template": json.dumps(template)}
            for template in (
                {"sort": [["_score"]], **MATCH},
                {"knn": {"field": "v", "inner_hits": SCRIPTS}, **MATCH},
                {"knn": {"v": {"vector": [1], "inner_hits": SCRIPTS}}, **MATCH},
                {"query": {"knn": {"field": "v", "query_vector_builder": LOOKUP}}, **AFTER},
                {"query": {"knn": {"v": {"query_vector_builder": LOOKUP}}}, **AFTER},
                {"query": {"neural": {"v": {"x": {"y": {"z": 1}}}}}, **AFTER},
            )
        ),
        SOLR | {"url": "http://search:9200/solr/shop/update"},
        SOLR | {"url": "http://search:9200/solr/shop/select?qt=/update"},
        SOLR | {"url": "http://search:9200/solr/shop/select?stream.body=x"},
        SOLR | {"url": "http://search:9200/solr/shop/_search"},
        *(
            SOLR | {
                "url": "http://search:9200/solr/shop/select",
                "template": f'{{"query": "{{{{query}}}}", "params": {{"{name}": "x"}}}}',
            }
            for name in ("qt", "stream.body", "stream.url", "shards", "shards.qt", "wt", "v.x")
        ),
        SOLR | {
            "url": "http://search:9200/solr/shop/select",
            "template": '{"query": "{{query}}", "delete": {"query": "*:*"}}',
        },
    ],
)  # fmt: skip
def test_search_engines_are_only_searched(search):
    with pytest.raises(RefusedError):
        check_search(EngineSearch(**search), ["http://search:9200/"])


@pytest.mark.parametrize(
    "search",
    [
        ES | {
            "url": "http://search:9200/shop/_search",
            "template": '{"query": {"match": {"title": "{{query}}"}}}',
        },
        ES | {"url": "http://search:9200/_search?routing=a&preference=_local"},
        *(
            ES | {"url": "http://search:9200/shop/_search", "template": json.dumps(template)}
            for template in (
                {"knn": {"field": "v", "query_vector": [1], "k": 5, "filter": WORDS}, **MATCH},
                {"query": {"knn": {"v": {"vector": [1], "method_parameters": {"ef_search": 9},
                                         "filter": {"bool": {"must": WORDS}}}}}},
                {"query": {"neural": {"v": {"query_text": "{{query}}", "model_id": "m", "k": 5}}}},
                {"knn": {"field": "v", "rescore_vector": {"oversample": 2},
                         "query_vector_builder": {"text_embedding": {"model_text": "{{query}}"}}},
                 "query": {"match_all": {}}},
            )
        ),
        SOLR | {"url": "http://search:9200/solr/shop/select", "template": SAFE},
        SOLR | {
            "url": "http://search:9200/solr/shop/query",
            "template": '{"query": "{{query}}", "params": {"qf": "title^2", "defType": "edismax"}}',
        },
    ],
)  # fmt: skip
def test_searches_are_allowed(search):
    assert "query" in check_search(EngineSearch(**search), ["http://search:9200/"])
