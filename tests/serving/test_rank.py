"""Rankings of documents with named features."""

from __future__ import annotations

import gzip
import json
import time

import httpx2
import numpy as np
import pytest

from podium.data import Dataset
from podium.rankers import LinearRanker
from podium.serving import ServingSettings
from podium.serving.experiment import Experiment, InterleaveSettings
from podium.serving.rank_request import RankDecoder
from podium.serving.refusal import Refusal
from podium.serving.settings import parse_model
from tests.serving.service import (
    ADMIN,
    NAMES,
    TOKEN,
    bearer,
    linear,
    rank_body,
    rows,
    serving,
    trees,
    write_tokens,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rank")
    trees().save(folder / "trees.podium")
    trees(-1.0).save(folder / "newer.podium")
    linear().save(folder / "linear.podium")
    settings = ServingSettings(
        models=(
            parse_model(str(folder / "trees.podium")),
            parse_model(f"trees@2={folder / 'newer.podium'}"),
            parse_model(f"weights={folder / 'linear.podium'}"),
        ),
        most_documents=50,
        most_bytes=100_000,
    )
    with serving(settings) as address, httpx2.Client(base_url=address, timeout=60) as client:
        yield client


def expected(ranker, X):
    scores = ranker._predict(np.asarray(X, np.float32))
    order = np.argsort(-scores, kind="stable")
    return [f"d{row}" for row in order], scores[order]


@pytest.mark.parametrize(
    ("path", "ranker", "version"),
    [
        ("/rank", lambda: trees(-1.0), "2"),
        ("/rank/trees", lambda: trees(-1.0), "2"),
        ("/rank/trees?version=1", trees, "1"),
        ("/rank/weights", linear, "1"),
    ],
)
def test_the_ranking_is_that_of_the_ranker(service, path, ranker, version):
    X = rows()[:30]
    answer = service.post(path, json=rank_body(X)).json()
    ids, scores = expected(ranker(), X)
    assert [document["id"] for document in answer["ranking"]] == ids
    np.testing.assert_allclose(
        [document["score"] for document in answer["ranking"]], scores, atol=1e-6
    )
    assert answer["version"] == version


def test_equal_scores_keep_the_order_of_the_request(service):
    X = np.repeat(rows()[:1], 5, axis=0)
    answer = service.post("/rank", json=rank_body(X)).json()
    assert [document["id"] for document in answer["ranking"]] == [f"d{i}" for i in range(5)]


def test_null_is_a_missing_value(service):
    X = rows()[:10].copy()
    X[::2, 1] = np.nan
    answer = service.post("/rank", json=rank_body(X)).json()
    ids, scores = expected(trees(-1.0), X)
    assert [document["id"] for document in answer["ranking"]] == ids
    np.testing.assert_allclose(
        [document["score"] for document in answer["ranking"]], scores, atol=1e-6
    )


def test_no_documents_have_an_empty_ranking(service):
    assert service.post("/rank", json={"documents": []}).json()["ranking"] == []


def document(**features):
    values = dict.fromkeys(NAMES, 0.5) | features
    return {"id": "a", "features": {k: v for k, v in values.items() if v != "left out"}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"documents": [document(age="left out")]}, "missing required field `age`"),
        ({"documents": [document(size=1)]}, "unknown field `size`"),
        ({"documents": [document(age="3")]}, "Expected `float | null`, got `str`"),
        ({"documents": [document(age=True)]}, "got `bool`"),
        ({"documents": [document(age=1e39)]}, "'age' of document 0 is infinite"),
        ({"documents": [document(), document()]}, "two documents have the same id"),
        ({"documents": [document() | {"id": None}]}, "got `null`"),
        ({"documents": [document() | {"id": n} for n in range(51)]}, "length <= 50"),
        ({}, "missing required field `documents`"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_invalid_requests_are_refused_with_the_reason(service, body, words):
    answer = service.post("/rank", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_are_refused(service, value):
    content = json.dumps({"documents": [document(age=0)]}).replace('"age": 0', f'"age": {value}')
    assert service.post("/rank", content=content).status_code == 400


def test_a_linear_ranker_refuses_missing_values(service):
    answer = service.post("/rank/weights", json={"documents": [document(age=None)]})
    assert answer.status_code == 400
    assert answer.json()["error"] == "feature 'age' of document 0 is missing"


@pytest.mark.parametrize(
    "path",
    ["/rank/other", "/rank/trees?version=3", "/rank/trees?version=x", "/rank/trees?version="],
)
def test_unknown_models_are_not_found(service, path):
    assert service.post(path, json=rank_body(rows()[:1])).status_code == 404


def test_large_bodies_are_refused_whether_or_not_their_size_is_stated(service):
    assert service.post("/rank", content=b" " * 100_001).status_code == 413

    def parts():
        for _ in range(11):
            yield b" " * 10_000

    assert service.post("/rank", content=parts()).status_code == 413
    assert service.post("/rank", content=b" " * 100_000).status_code == 400


def test_a_body_that_does_not_arrive_ends(tmp_path):
    trees().save(tmp_path / "m.podium")
    model = parse_model(str(tmp_path / "m.podium"))

    def parts():
        yield b"{"
        time.sleep(1)
        yield b"}"

    with serving(ServingSettings(models=(model,), most_seconds=0.5)) as address:
        answer = httpx2.post(f"{address}/rank", content=parts(), timeout=60)
    assert answer.status_code == 408


def test_compressed_bodies_are_refused(service):
    answer = service.post("/rank", content=b"{}", headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 415


def test_features_with_an_absent_value_may_be_left_out(tmp_path):
    trees().save(tmp_path / "m.podium")
    model = parse_model(str(tmp_path / "m.podium"))
    with serving(ServingSettings(models=(model,), absent={"age": None, "clicks": 7.0})) as address:
        answer = httpx2.post(
            f"{address}/rank",
            json={"documents": [{"id": 1, "features": {"bm25": 2}}]},
            timeout=60,
        ).json()
        metadata = httpx2.get(f"{address}/v2/models/m", timeout=60).json()
    score = trees()._predict(np.array([[2, np.nan, 7]], np.float32))[0]
    assert answer["ranking"][0]["id"] == 1
    assert answer["ranking"][0]["score"] == pytest.approx(score, abs=1e-6)
    assert metadata["parameters"]["absent"] == {"age": None, "clicks": 7.0}


def test_tokens(tmp_path):
    trees().save(tmp_path / "m.podium")
    settings = ServingSettings(
        models=(parse_model(str(tmp_path / "m.podium")),),
        token_file=write_tokens(tmp_path / "tokens"),
    )
    body = rank_body(rows()[:2])
    with serving(settings) as address:
        statuses = {
            token: httpx2.post(
                f"{address}/rank", json=body, headers=headers, timeout=60
            ).status_code
            for token, headers in {
                "none": {},
                "wrong": bearer("other"),
                "basic": {"Authorization": f"Basic {TOKEN}"},
                "digest": bearer(write_tokens(tmp_path / "tokens")),
                "right": bearer(TOKEN),
                "admin": bearer(ADMIN),
            }.items()
        }
        assert httpx2.get(f"{address}/v2/health/ready", timeout=60).status_code == 200
        assert httpx2.get(f"{address}/metrics", timeout=60).status_code == 401
        load = f"{address}/v2/repository/models/m/load"
        loads = [
            httpx2.post(load, headers=bearer(token), timeout=60).status_code
            for token in (TOKEN, ADMIN)
        ]
    assert statuses == {
        "none": 401, "wrong": 401, "basic": 401, "digest": 401, "right": 200, "admin": 200,
    }  # fmt: skip
    assert loads == [403, 200]


def test_without_tokens_nobody_may_load_models(service):
    assert service.post("/v2/repository/models/trees/load").status_code == 403


def test_metrics_count_requests_rankings_and_documents(tmp_path):
    trees().save(tmp_path / "m.podium")
    with serving(ServingSettings(models=(parse_model(str(tmp_path / "m.podium")),))) as address:
        for _ in range(3):
            httpx2.post(f"{address}/rank", json=rank_body(rows()[:4]), timeout=60)
        httpx2.post(f"{address}/rank/other", json={}, timeout=60)
        httpx2.get(f"{address}/nothing", timeout=60)
        lines = httpx2.get(f"{address}/metrics", timeout=60).text.splitlines()
    assert 'podium_serving_requests_total{route="/rank",status="200"} 3.0' in lines
    assert 'podium_serving_requests_total{route="/rank/{name}",status="404"} 1.0' in lines
    assert 'podium_serving_requests_total{route="other",status="404"} 1.0' in lines
    assert 'podium_serving_rankings_total{model="m",version="1"} 3.0' in lines
    assert 'podium_serving_documents_total{model="m"} 12.0' in lines


@pytest.mark.parametrize(
    "body",
    [
        '{"documents": [{"id": "u:1", "features": {"bm25": 2, "bm25": 1}}]}',
        '{"documents": [{"id": 1, "features": {"bm25": 2, "bm25": 1, "a:b": 1}}]}',
        '{"documents": [{"id": 1, "id": 2, "features": {"bm25": 2, "a:b": 1}}]}',
        '{"documents": [], "query": null, "query": "x: \\u003a"}',
        '{"documents": [], "documents": [{"id": 1, "features": {"bm25": 2}}]}',
    ],
)
@pytest.mark.parametrize("other", ["a:b", "age"])
def test_a_key_that_is_there_twice_is_refused(body, other):
    decode = RankDecoder(["bm25", other], {other: None}, 10)
    with pytest.raises(Refusal, match="is there twice"):
        decode(body.replace("a:b", other).encode())


def test_colons_in_strings_are_not_keys():
    decode = RankDecoder(["bm25", "a:b"], {"bm25": None}, 10)
    body = b'{"query": "a: \\u003a", "documents": [{"id": "u:r:n", "features": {"a:b": 1}}]}'
    assert decode(body).ids == ["u:r:n"]
    assert decode(body.replace(b"u:r", b"u\\u003ar")).ids == ["u:r:n"]


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_draft_of_two_models_is_shown_and_logged_where_a_request_asks_for_it(tmp_path, share):
    trees().save(tmp_path / "old.podium")
    trees(-1.0).save(tmp_path / "new.podium")
    settings = ServingSettings(
        models=(
            parse_model(str(tmp_path / "old.podium")),
            parse_model(str(tmp_path / "new.podium")),
        ),
        ranking_log=str(tmp_path / "log"),
        log_seconds=0.1,
        interleave=InterleaveSettings("old", "new", share, key_file=str(tmp_path / "key")),
    )
    (tmp_path / "key").write_text("secret")
    X = rows()
    old, new = ([int(name[1:]) for name in expected(each, X)[0]] for each in (trees(), trees(-1.0)))
    experiment = Experiment(settings.interleave, tmp_path)
    with serving(settings) as address, httpx2.Client(base_url=address, timeout=60) as client:
        drafts = 0
        for number in range(20):
            who = {"search_id": f"s{number}", "client": f"c{number}", "interleave": True}
            answer = client.post("/rank", json=rank_body(X) | who).raise_for_status().json()
            shown = [int(each["id"][1:]) for each in answer["ranking"]]
            if not experiment.takes_part(f"s{number}", f"c{number}"):
                assert (shown, "experiment" in answer) == (old, False)
                continue
            drafts += 1
            name = answer["experiment"]
            assert shown == experiment.draft(name, f"s{number}", old, new, len(old)).documents
        assert drafts == 20 if share == 1.0 else 2 < drafts < 18
        quiet = client.post("/rank", json=rank_body(X) | {"client": "me"}).json()
        assert [int(each["id"][1:]) for each in quiet["ranking"]] == old
        metrics = client.get("/metrics").text
        assert f'podium_serving_interleaved_total{{outcome="interleaved"}} {drafts}.0' in metrics
        alone = client.post("/rank/new", json=rank_body(X) | {"interleave": True})
        assert alone.status_code == 200
    lines = [
        json.loads(line)
        for path in (tmp_path / "log").glob("*.jsonl.gz")
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    with_draft = [line for line in lines if "credits" in line and line["search_id"][0] == "s"]
    assert len(with_draft) == drafts
    for line in with_draft:
        draft = experiment.draft(line["experiment"]["id"], line["search_id"], old, new, len(old))
        assert [line["ids"][row] for row in draft.documents] == line["shown"]
        assert line["credits"] == draft.credits
        assert line["client"] == experiment.hashed(f"log c{line['search_id'][1:]}")


def test_a_partner_that_cannot_rank_the_documents_costs_no_search(tmp_path, service):
    refused = service.post("/rank", json=rank_body(rows()[:9]) | {"interleave": True})
    assert refused.status_code == 400
    assert "is not interleaved" in refused.json()["error"]
    trees().save(tmp_path / "old.podium")
    other = Dataset.from_arrays(np.eye(4), [0, 1, 2, 3], group=[4])
    LinearRanker("ListNet").fit(other).save(tmp_path / "new.podium")
    settings = ServingSettings(
        models=(
            parse_model(str(tmp_path / "old.podium")),
            parse_model(str(tmp_path / "new.podium")),
        ),
        ranking_log=str(tmp_path / "log"),
        interleave=InterleaveSettings("old", "new", 1.0),
    )
    with serving(settings) as address, httpx2.Client(base_url=address, timeout=60) as client:
        answer = client.post("/rank", json=rank_body(rows()) | {"interleave": True}).json()
        assert [each["id"] for each in answer["ranking"]] == expected(trees(), rows())[0]
        assert "experiment" not in answer
        assert 'interleaved_total{outcome="failed"} 1.0' in client.get("/metrics").text
