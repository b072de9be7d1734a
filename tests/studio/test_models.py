"""A language model as an assessor: apart from people, within its budget, and audited."""

from __future__ import annotations

import json
import re

import pytest
from sqlalchemy import select

from benchmarks._chat_endpoint import ChatServer, serve_chat
from podium.data import read_qrels
from podium.judging import read_answers
from podium.studio.errors import RefusedError
from podium.studio.judging.service import JudgingService
from podium.studio.models.endpoints import endpoint_key
from podium.studio.settings import Settings
from podium.studio.store.database import reading
from podium.studio.store.tables import LogEntry
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import ended, program, row_of
from tests.studio.judging_helpers import judge_all, queries_of, truth
from tests.studio.postgres import wait_until
from tests.studio.server import serving

RUBRIC = """
name = "shop"
version = 2
task = "pair"
instructions = "Compare."
question = "Query: {query}\\n{a}\\n{b}"
[scale]
A = "A"
B = "B"
"""


def number(text):
    """Documents of tests are better the lower their number."""
    return int(re.search(r"Text of (\d+) for", text)[1])


def judge_by_number(_query, documents):
    if len(documents) == 1:
        return {str(grade): float(grade == max(3 - number(documents[0]), 0)) for grade in range(4)}
    one, other = map(number, documents)
    return {"A": float(one < other), "B": float(one > other), "TIE": 0.0}


@pytest.fixture
def chat():
    return ChatServer(judge_by_number)


@pytest.fixture
def endpoint(chat):
    with serve_chat(chat) as address:
        yield address


def with_key(url):
    return url.replace("http://", "http://:s3cret@")


@pytest.fixture
def studio(engine, database, tmp_path, endpoint):  # noqa: ARG001 (the engine makes the tables)
    """A server that may call the model."""
    settings = Settings(database=database, exports=tmp_path / "files", models=[with_key(endpoint)])
    with serving(settings) as address:
        yield address


def judge(engine, project, people, choose=truth):
    """Let people judge until nothing is left."""
    service, row = JudgingService(engine), row_of(engine, project)
    for who in people:
        judge_all(service, row, who, service.next(row, who, "t"), choose=choose)


def wait_for_run(client, path):
    wait_until(lambda: client.get(path).json()["run"]["state"] not in ("waiting", "running"))
    return client.get(path).json()


def export(client, project, path, **options):
    base = f"/api/v1/projects/{project}"
    job = ended(client, project, client.post(f"{base}/exports", json=options).json())
    assert job["error"] is None
    path.write_bytes(client.get(f"{base}/jobs/{job['id']}/file").content)
    return path


def test_a_model_beside_two_people(engine, studio, chat, endpoint, tmp_path):
    people = make_people(engine, 3)
    ann, bob, cem = people
    project = make_project(engine, people, queries=2, items=4, k=2, overlap_share=1.0)
    judge(engine, project, [bob, cem])
    before = queries_of(engine, project)
    base = f"/api/v1/projects/{project}/models"
    with program(engine, studio, ann) as client:
        assert client.get(base).json() == {"endpoints": [endpoint], "models": []}
        wanted = {"endpoint": endpoint, "model": "tiny", "max_requests": 500}
        added = client.post(base, json=wanted).json()
        path = f"{base}/{added['id']}"
        assert client.post(f"{path}/run").status_code == 202
        done = wait_for_run(client, path)
        judged = {
            (query.id, frozenset((entry.left, entry.right)))
            for query in before
            for entry in log_of(engine, query.id)
            if entry.user_id in (bob, cem)
        }
        assert done["run"]["result"] == {
            "queries": 2,
            "judgments": len(judged),
            "unusable": 0,
        }
        assert done["requests"] == 2 * len(judged) == len(chat.requests)  # both orders
        assert {request["key"] for request in chat.requests} == {"Bearer s3cret"}
        # It is an assessor of its own, and what people came to is as it was.
        after = queries_of(engine, project)
        figures = ("judgments", "done", "free", "available", "changed", "expected_left")
        for one, other in zip(before, after, strict=True):
            assert [getattr(one, name) for name in figures] == [
                getattr(other, name) for name in figures
            ]
        entries = [entry for query in after for entry in log_of(engine, query.id)]
        models = [entry for entry in entries if entry.user_id == done["user_id"]]
        pairs = {(entry.query_id, frozenset((entry.left, entry.right))) for entry in models}
        assert pairs == judged
        assert {entry.purpose for entry in models} == {"model"}
        assert all((entry.value > 0) == (entry.left < entry.right) for entry in models)
        # A second run has nothing to ask.
        client.post(f"{path}/run")
        assert wait_for_run(client, path)["run"]["result"]["judgments"] == 0
        assert len(chat.requests) == 2 * len(judged)
        # The audit agrees with one of the same answers and votes, computed from the exports.
        client.post(f"{path}/audit")
        wait_until(lambda: client.get(f"{path}/audit").json()["made_at"] is not None)
        content = client.get(f"{path}/audit").json()["content"]
        answers = read_answers(
            export(client, project, tmp_path / "answers.jsonl", content="answers", format="jsonl")
        )
        lines = [
            json.loads(line)
            for line in export(client, project, tmp_path / "log", content="log", format="jsonl")
            .read_text()
            .splitlines()
        ]
        assert {line["by"] for line in lines if line["assessor"] == str(done["user_id"])} == {
            "model"
        }
        assert {line["by"] for line in lines if line["assessor"] != str(done["user_id"])} == {
            "person"
        }
        assert content["units"] == len(judged)
        assert content["figures"]["agreement with people"][0] == 1.0
        assert content["people"] == [str(bob), str(cem)]
        assert {answer.rubric for answer in answers} == {"pairs/1"}
        assert len(answers) == 2 * len(judged)
        # Reports are of people.
        client.get(f"/api/v1/projects/{project}/report")
        wait_until(
            lambda: client.get(f"/api/v1/projects/{project}/report").json()["made_at"] is not None
        )
        report = client.get(f"/api/v1/projects/{project}/report").json()["content"]
        assert sorted(each["user"] for each in report["times"]) == [bob, cem]
        assert set(report["care"]) == {str(bob), str(cem)}


def log_of(engine, query_id):
    statement = select(LogEntry.__table__).where(LogEntry.query_id == query_id)
    return reading(engine, lambda c: c.execute(statement.order_by(LogEntry.place)).all())


def test_all_queries_as_a_whole_and_exported_by_who_judged(engine, studio, endpoint, tmp_path):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=5, k=2)
    wrong = {"left": "right", "right": "left"}
    judge(engine, project, [ann], choose=lambda task: wrong[truth(task)])
    with program(engine, studio, ann) as client:
        base = f"/api/v1/projects/{project}/models"
        wanted = {"endpoint": endpoint, "model": "tiny", "scope": "all", "max_requests": 500}
        model = client.post(base, json=wanted).json()["id"]
        client.post(f"{base}/{model}/run")
        wait_for_run(client, f"{base}/{model}")
        files = {
            by: export(
                client, project, tmp_path / f"{by}.qrels",
                content="labels", format="qrels", model=by,
            )
            for by in (None, model)
        }  # fmt: skip
        refused = client.post(
            f"/api/v1/projects/{project}/exports",
            json={"content": "log", "format": "jsonl", "model": model},
        )
        assert refused.status_code == 422
        (query,) = queries_of(engine, project)
        shown = f"/projects/{project}/queries/{query.id}"
        page = client.get(shown, headers={"accept": "text/html"}).text
    tops = {by: top_of(read_qrels(file)) for by, file in files.items()}
    assert tops == {None: ["d04", "d03"], model: ["d00", "d01"]}
    assert "1. Title 0; 2. Title 1" in page
    assert re.search(r"0 of \d+ answers", page)


def top_of(labels):
    """The two best documents of the only query."""
    pairs = zip(labels.labels.tolist(), labels.document_ids.to_pylist(), strict=True)
    return [item for _, item in sorted(pairs, reverse=True)[:2]]


def test_nobody_sees_what_a_model_says_before_people_are_done(engine, studio, endpoint):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, overlap_share=1.0)
    service, row = JudgingService(engine), row_of(engine, project)
    task = service.next(row, ann, "t")
    service.answer(row, ann, task.token, "tie", tab="t", seconds=1)
    with program(engine, studio, ann) as client:
        base = f"/api/v1/projects/{project}"
        wanted = {"endpoint": endpoint, "model": "tiny", "max_requests": 5}
        model = client.post(f"{base}/models", json=wanted).json()
        client.post(f"{base}/models/{model['id']}/run")
        wait_for_run(client, f"{base}/models/{model['id']}")
        (query,) = queries_of(engine, project)
        shown = f"{base}/queries/{query.id}/log"
        page = f"/projects/{project}/queries/{query.id}"
        person = f"{base}/people/{model['user_id']}/log"

        def seen():
            users = {entry["user_id"] for entry in client.get(shown).json()}
            html = client.get(page, headers={"accept": "text/html"}).text
            own = len(client.get(person).json())
            return users, own, "Shown once people have finished" in html

        assert seen() == ({ann}, 0, True)
        task = service.next(row, bob, "t")
        assert task.judged == 1  # the model's judgment is not counted
        service.answer(row, bob, task.token, "left", tab="t", seconds=1)
        assert seen() == ({ann, bob, model["user_id"]}, 1, False)


def test_budgets_hold_and_a_stopped_run_goes_on(engine, studio, chat, endpoint):
    people = make_people(engine, 2)
    project = make_project(engine, people, queries=2, items=5, k=2)
    judge(engine, project, people[1:])
    base = f"/api/v1/projects/{project}/models"
    with program(engine, studio, people[0]) as client:
        wanted = {"endpoint": endpoint, "model": "tiny", "max_requests": 4, "connections": 1}
        path = f"{base}/{client.post(base, json=wanted).json()['id']}"
        client.post(f"{path}/run")
        done = wait_for_run(client, path)
        assert done["run"]["result"]["stopped"] == "the budget of 4 requests is spent"
        assert (len(chat.requests), done["requests"], done["answers"]) == (4, 4, 4)
        budget = {"max_tokens": 10**6, "prompt_price": 10.0, "answer_price": 20.0}
        assert client.put(f"{path}/budget", json=budget).json()["max_requests"] is None
        chat.delay = 0.3
        client.post(f"{path}/run")
        assert client.post(f"{path}/run").status_code == 409
        wait_until(lambda: client.get(path).json()["requests"] > 5)
        assert client.post(f"{path}/stop").json()["run"]["state"] == "cancelled"
        chat.delay = 0.0
        client.post(f"{path}/run")
        done = wait_for_run(client, path)
        assert done["run"]["state"] == "done"
        assert set(chat.charged.values()) == {1}  # nothing was paid twice
        answer_tokens = 5 * len(chat.charged)
        prices = 10 * (chat.tokens - answer_tokens) + 20 * answer_tokens
        assert (done["tokens"], done["money"]) == (chat.tokens, pytest.approx(prices / 1e6))
        for wrong in (
            {"endpoint": "http://10.0.0.1/v1"}, {"rubric": "name ="}, {"max_requests": None},
            {"max_money": 1.0}, {"model": "a b"},
        ):  # fmt: skip
            assert client.post(base, json=wanted | wrong).status_code == 422
        named = client.post(f"{base}", json={**wanted, "rubric": RUBRIC}).json()
        assert named["rubric"] == "shop/2"


def test_grades_and_a_failing_endpoint(engine, studio, chat, endpoint):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=3, mode="grades")
    base = f"/api/v1/projects/{project}/models"
    with program(engine, studio, ann) as client:
        wanted = {"endpoint": endpoint, "model": "tiny", "scope": "all", "max_requests": 50}
        path = f"{base}/{client.post(base, json=wanted).json()['id']}"
        chat.faults = ["redirect"]
        client.post(f"{path}/run")
        failed = wait_for_run(client, path)["run"]
        assert failed["state"] == "failed"
        assert "s3cret" not in failed["error"]
        client.post(f"{path}/run")
        assert wait_for_run(client, path)["run"]["result"]["judgments"] == 3
    (query,) = queries_of(engine, project)
    assert [(e.kind, e.left, e.value) for e in log_of(engine, query.id)] == [
        ("grade", 0, 3), ("grade", 1, 2), ("grade", 2, 1),
    ]  # fmt: skip
    assert (query.judgments, query.done, query.entries) == (0, False, 3)


def test_only_listed_endpoints_and_their_keys():
    listed = ["https://:a%2Fb@api.example.org/v1/", "http://localhost:1/v1"]
    assert endpoint_key("https://api.example.org/v1", listed) == "a/b"
    assert endpoint_key("http://localhost:1/v1", listed) == ""
    for other in ("https://api.example.org/v2", "https://:a%2Fb@api.example.org/v1", ""):
        with pytest.raises(RefusedError, match="may not call"):
            endpoint_key(other, listed)
