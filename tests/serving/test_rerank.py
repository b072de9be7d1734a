"""Rankings of texts: requests as clients of Cohere send them."""

from __future__ import annotations

import io
import json
import shutil
import threading
import zipfile

import httpx2
import numpy as np
import pytest
from msgspec.structs import replace

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from podium.errors import DataError
from podium.rankers import TextRanker
from podium.rankers.storage import pack_folder
from podium.serving import ServingSettings, create_app, rerank
from podium.serving.gateway import read_body
from podium.serving.repository import Repository
from podium.serving.settings import ModelSpec, parse_model
from podium.serving.text_model import ServedTextModel
from tests.rankers.tiny_bert import save_tiny_bert
from tests.serving.service import TOKEN, bearer, linear, serving, write_tokens

QUERY = "w1 w2"
TEXTS = ["w3", "w1 w1 w2", "", "w9 w8 w7 w6", "w1", "א w1 \u202e", "w5 " * 400]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rerank")
    save_tiny_bert(path / "bert")
    pairs = [(QUERY, text) for text in TEXTS]
    ranker = TextRanker(path / "bert", max_length=32, epochs=1, learning_rate=0.01)
    ranker.fit(pairs, range(len(pairs)), group=[len(pairs)])
    ranker.save(path / "texts")
    linear().save(path / "weights.podium")
    return path


@pytest.fixture(scope="module")
def scores(folder):
    return TextRanker.load(folder / "texts").predict([(QUERY, text) for text in TEXTS])


@pytest.fixture(scope="module")
def service(folder):
    settings = ServingSettings(
        models=(
            parse_model(f"weights={folder / 'weights.podium'}"), parse_model(str(folder / "texts")),
        ),
        token_file=write_tokens(folder / "tokens"), most_documents=300, most_bytes=20_000,
    )  # fmt: skip
    with (
        serving(settings) as address,
        httpx2.Client(base_url=address, headers=bearer(TOKEN), timeout=60) as client,
    ):
        yield client


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_the_ranking_is_that_of_the_ranker(service, scores, path):
    documents = [TEXTS[0], {"text": TEXTS[1], "title": "ignored"}, *TEXTS[2:]]
    answer = service.post(path, json={"query": QUERY, "documents": documents}).json()
    order = np.argsort(-scores, kind="stable").tolist()
    assert [each["index"] for each in answer["results"]] == order
    np.testing.assert_allclose(
        [each["relevance_score"] for each in answer["results"]], scores[order], atol=1e-5
    )
    assert set(answer) == {"id", "results", "meta"}
    assert answer["meta"]["model"] == "texts"
    assert "document" not in answer["results"][0]


def test_the_first_documents_with_their_texts(service, scores):
    asked = {
        "model": "texts", "query": QUERY, "documents": TEXTS, "top_n": 2, "return_documents": True,
    }  # fmt: skip
    results = service.post("/rerank", json=asked).json()["results"]
    order = np.argsort(-scores, kind="stable")[:2].tolist()
    assert [each["document"] for each in results] == [{"text": TEXTS[row]} for row in order]
    assert service.post("/rerank", json={"query": "", "documents": []}).json()["results"] == []


@pytest.mark.parametrize(
    ("asked", "status", "reason"),
    [
        ({"query": "a"}, 400, "missing required field `documents`"),
        ({"query": "a", "documents": [1]}, 400, "Expected `str | object`"),
        ({"query": "a", "documents": [{"title": "a"}]}, 400, "missing required field `text`"),
        ({"query": "a", "documents": [], "top_n": 0}, 400, "`int` >= 1"),
        ({"query": "a", "documents": [], "depth": 1}, 400, "unknown field `depth`"),
        ({"query": "a" * 10_001, "documents": []}, 400, "length <= 10000"),
        ({"query": "a", "documents": ["b"] * 301}, 400, "more than 300 documents"),
        ({"query": "a", "documents": ["b" * 20_000]}, 413, "larger than 20000 bytes"),
        ({"query": "a", "documents": [], "model": "other"}, 404, "'other' is not loaded"),
        ({"query": "a", "documents": [], "model": "weights"}, 400, "by features, not texts"),
    ],
)
def test_what_is_not_a_request_is_refused(service, asked, status, reason):
    answer = service.post("/rerank", content=json.dumps(asked))
    assert answer.status_code == status
    assert reason in answer.json()["error"]


def test_lone_surrogates_and_other_tokens(service):
    body = b'{"query": "a", "documents": ["\\ud83d"], "return_documents": true}'
    assert service.post("/rerank", content=body).status_code == 400
    assert service.post("/rerank", content=body, headers=bearer("other")).status_code == 401


def test_other_routes(service):
    answer = service.post("/rank/texts", json={"documents": []})
    assert (answer.status_code, answer.json()) == (
        400, {"error": "model 'texts' ranks texts: send them to /rerank"},
    )  # fmt: skip
    described = service.get("/v2/models/texts").json()
    assert [each["name"] for each in described["inputs"]] == ["query", "documents"]
    assert described["parameters"]["kind"] == "TextRanker"
    assert service.get("/v2/models/texts/ready").json() == {"name": "texts", "ready": True}


def test_rankings_are_counted(service):
    name = 'podium_serving_rankings_total{model="texts",version="1"} '

    def count() -> float:
        lines = service.get("/metrics").text.splitlines()
        return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    before = count()
    service.post("/rerank", json={"query": QUERY, "documents": TEXTS}).raise_for_status()
    assert count() == before + 1


@pytest.fixture
def patient(monkeypatch):
    """Bodies may take their time to arrive: what is limited is the time of scoring."""

    def read(scope, receive, settings):
        return read_body(scope, receive, replace(settings, most_seconds=60.0))

    monkeypatch.setattr(rerank, "read_body", read)


@pytest.mark.usefixtures("patient")
def test_scoring_ends_when_time_is_up(folder):
    settings = ServingSettings(models=(parse_model(str(folder / "texts")),), most_seconds=0.05)
    asked = {"query": QUERY, "documents": ["w1 " * 30] * 9000}
    with (
        serving(settings) as address,
        httpx2.Client(base_url=address, timeout=60) as client,
    ):
        answer = client.post("/rerank", json=asked)
        assert (answer.status_code, answer.json()) == (503, {"error": "scoring took too long"})


@pytest.mark.usefixtures("patient")
def test_one_request_is_scored_at_a_time(folder, monkeypatch):
    """A thread whose time is up cannot be stopped: nobody else scores until it has ended."""
    started, go_on = [], threading.Event()
    score = ServedTextModel.score

    def slow(self, query, documents, stop):
        started.append(query)
        go_on.wait(60)
        return score(self, query, documents, stop)

    settings = ServingSettings(models=(parse_model(str(folder / "texts")),), most_seconds=0.05)
    with (
        serving(settings) as address,
        httpx2.Client(base_url=address, timeout=60) as client,
    ):
        with monkeypatch.context() as patch:
            patch.setattr(ServedTextModel, "score", slow)
            for query in ("first", "second", "third"):
                answer = client.post("/rerank", json={"query": query, "documents": ["w1"]})
                assert answer.status_code == 503
            go_on.set()
        assert started == ["first"]


def test_a_ranker_without_finite_scores_is_refused(folder, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder / "texts", tmp_path / "texts")
    file = tmp_path / "texts" / "model.safetensors"
    weights = load_file(file)
    weights["classifier.bias"][0] = float("nan")
    save_file(weights, file, metadata={"format": "pt"})
    settings = ServingSettings(models=(ModelSpec("m", 1, str(tmp_path / "texts")),))
    with pytest.raises(DataError, match="does not give finite scores"):
        Repository(settings, tmp_path).reload()


def test_a_folder_that_is_too_large_is_refused(folder):
    size = sum(path.stat().st_size for path in (folder / "texts").rglob("*"))
    assert len(pack_folder(folder / "texts", 2 * size)) > size / 2
    with pytest.raises(DataError, match=r"has more than .* bytes"):
        pack_folder(folder / "texts", size // 2)


def packed(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, text in {"podium.json": "{}", **files}.items():
            file.writestr(name, text)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed(a="", **{"a/b": ""}), "cannot be unpacked"),
        (packed().replace(b"{}", b"[]", 1), "cannot be unpacked"),
        (packed(), "is not a saved TextRanker"),
    ],
    ids=["file and folder", "other checksum", "other content"],
)  # fmt: skip
def test_files_that_are_not_packed_rankers_are_refused(tmp_path, content, message):
    (tmp_path / "packed").write_bytes(content)
    settings = ServingSettings(models=(ModelSpec("m", 1, str(tmp_path / "packed")),))
    with pytest.raises(DataError, match=message):
        Repository(settings, tmp_path).reload()


def test_texts_have_no_shadow(folder, tmp_path):
    for model, shadow in (("weights.podium", "texts"), ("texts", "weights.podium")):
        settings = ServingSettings(
            models=(ModelSpec("m", 1, str(folder / model)),),
            shadows=(ModelSpec("m", 1, str(folder / shadow)),),
        )
        with pytest.raises(DataError, match="ranks texts and"):
            Repository(settings, tmp_path).reload()


def test_paths_are_described():
    app = create_app(ServingSettings(models=(parse_model("web.podium"),)))
    paths = app.openapi()["paths"]
    assert {"/rerank", "/v1/rerank", "/v2/rerank"} <= set(paths)
