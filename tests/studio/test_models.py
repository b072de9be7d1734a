"""A language model as an assessor: apart from people, within its budget, and audited."""

from __future__ import annotations

import json
import re
import threading

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from benchmarks._chat_endpoint import ChatServer, serve_chat
from podium.data import read_qrels
from podium.judging.models.answer_log import read_answers
from podium.judging.models.rubric import rubric_text
from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.service import sign_in
from podium.studio.errors import RefusedError
from podium.studio.jobs.process import execute
from podium.studio.jobs.queue import JobContext, cancel, claim, enqueue
from podium.studio.judging import corrections
from podium.studio.models import assessors, audits
from podium.studio.models.assessors import ModelBudget, ModelSettings, endpoint_key
from podium.studio.models.run import run_model
from podium.studio.projects.changes import change_project
from podium.studio.reporting.log_rows import log_rows
from podium.studio.reporting.model_results import model_results
from podium.studio.reporting.query_results import query_row
from podium.studio.reporting.reports import KIND as REPORT
from podium.studio.reporting.reports import report_of, request_report, run_report
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode, Role
from podium.studio.store.rows import JobRow
from podium.studio.store.tables import Job, LogEntry
from podium.studio.transfer.exports import KIND as EXPORT
from podium.studio.transfer.exports import ExportOptions, run_export
from podium.studio.web.access import COOKIE
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import Judges, judge_all, queries_of, truth
from tests.studio.server import serving

DATABASES = BOTH

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


class Manager:
    """Runs models as a manager does, and jobs in this process: its child would take long."""

    def __init__(self, engine, settings, project, user=1):
        self.engine = engine
        self.settings = settings
        self.project = project
        self.who = Member(Person(user, "", "", False), Role.MANAGER, row_of(engine, project))

    def add(self, endpoint, **wanted):
        asked = ModelSettings(**{"endpoint": endpoint, "model": "tiny", **wanted})
        work = lambda c: assessors.add_model(c, self.who, self.settings, asked)  # noqa: E731
        return in_transaction(self.engine, work)

    def start(self, model):
        work = lambda c: assessors.start_run(c, self.who, self.settings, model.id)  # noqa: E731
        return in_transaction(self.engine, work)

    def run(self, model):
        self.start(model)
        return self.do(assessors.RUN, run_model)

    def audit(self, model):
        in_transaction(self.engine, lambda c: audits.request_audit(c, self.who, model.id))
        self.do(audits.AUDIT, audits.run_audit)
        return reading(self.engine, lambda c: audits.audit_of(c, model)).content

    def export(self, **options):
        def work(connection):
            return enqueue(connection, self.project, self.who.person.id, EXPORT, options)

        in_transaction(self.engine, work)
        job = self.do(EXPORT, run_export)
        return self.settings.exports / job.file

    def do(self, kind, function):
        job = in_transaction(self.engine, lambda c: claim(c, "test", [kind]))
        execute(function, JobContext(self.engine, self.settings, job))
        statement = select(Job.__table__).where(Job.id == job.id)
        return reading(self.engine, lambda c: c.execute(statement).one_or_none())

    def spending(self, model):
        return reading(self.engine, lambda c: assessors.spending_of(c, model))


@pytest.fixture
def settings(database, tmp_path, endpoint):
    listed = [endpoint.replace("http://", "http://:s3cret@")]
    return Settings(database=database, exports=tmp_path / "files", models=listed)


def judge(engine, project, people, choose=truth):
    """Let people judge until nothing is left."""
    service, row = Judges(engine), row_of(engine, project)
    for who in people:
        judge_all(service, row, who, service.next(row, who, "t"), choose=choose)


def log_of(engine, query_id):
    statement = select(LogEntry.__table__).where(LogEntry.query_id == query_id)
    return reading(engine, lambda c: c.execute(statement.order_by(LogEntry.position)).all())


def test_a_model_beside_two_people(engine, settings, chat, endpoint):
    _, bob, cem = people = make_people(engine, 3)
    project = make_project(engine, people, queries=2, items=4, k=2, overlap_share=1.0)
    judge(engine, project, [bob, cem])
    before = queries_of(engine, project)
    manager = Manager(engine, settings, project)
    model = manager.add(endpoint, max_requests=500)
    judged = {
        (query.id, frozenset((entry.left, entry.right)))
        for query in before
        for entry in log_of(engine, query.id)
    }
    assert manager.run(model).result == {"queries": 2, "judgments": len(judged), "unusable": 0}
    assert len(chat.requests) == 2 * len(judged) == manager.spending(model).requests  # both orders
    assert {request["key"] for request in chat.requests} == {"Bearer s3cret"}
    # It is an assessor of its own, and what people came to is as it was.
    after = queries_of(engine, project)
    for one, other in zip(before, after, strict=True):
        assert {**one._asdict(), "entries": 0} == {**other._asdict(), "entries": 0}
    entries = [entry for query in after for entry in log_of(engine, query.id)]
    models = [entry for entry in entries if entry.user_id == model.user_id]
    assert {(entry.query_id, frozenset((entry.left, entry.right))) for entry in models} == judged
    assert {entry.purpose for entry in models} == {"model"}
    assert all((entry.value > 0) == (entry.left < entry.right) for entry in models)
    # A second run has nothing to ask.
    assert manager.run(model).result["judgments"] == 0
    assert len(chat.requests) == 2 * len(judged)
    content = manager.audit(model)
    assert content["units"] == len(judged)
    assert content["figures"]["agreement with people"][0] == 1.0
    assert content["people"] == [str(bob), str(cem)]
    # A judgment that was discarded is none.
    position = next(entry.position for entry in models if entry.query_id == before[0].id)
    in_transaction(
        engine, lambda c: corrections.discard(c, manager.who, before[0].id, position, None)
    )
    assert manager.audit(model)["units"] == len(judged) - 1
    assert manager.run(model).result["judgments"] == 0  # nor is it judged again
    # Exports tell who judged; answers are as `podium audit` reads them.
    answers = read_answers(manager.export(content="answers", format="jsonl"))
    assert ({answer.rubric for answer in answers}, len(answers)) == ({"pairs/1"}, 2 * len(judged))
    lines = manager.export(content="log", format="jsonl").read_text().splitlines()
    by = {(line["assessor"], line["by"]) for line in map(json.loads, lines)}
    assert by == {(str(bob), "person"), (str(cem), "person"), (str(model.user_id), "model")}
    # Reports are of people.
    request_report(engine, project, bob)
    manager.do(REPORT, run_report)
    report = reading(engine, lambda c: report_of(c, project)).content
    assert sorted(each["user"] for each in report["times"]) == [bob, cem]
    assert set(report["care"]) == {str(bob), str(cem)}


def test_a_model_is_asked_with_what_people_see(engine, settings, endpoint, chat):
    (ann,) = make_people(engine, 1)
    display = [
        {"field": "document_id", "role": "tag", "label": "SKU"},
        {"field": "text", "role": "text"},
    ]
    guidelines = "Prefer what is **in stock**."
    project = make_project(
        engine, [ann], queries=1, items=2, k=1, display=display, guidelines=guidelines
    )
    manager = Manager(engine, settings, project)
    manager.run(manager.add(endpoint, scope="all", max_requests=10))
    system, asked = (message["content"] for message in chat.requests[0]["messages"])
    assert guidelines in system
    assert "SKU: d00\nText of 0 for q0" in asked
    assert "Title" not in asked  # people do not see it either


def test_the_page_names_the_fields_that_are_sent(engine, settings, endpoint):
    (ann,) = make_people(engine, 1)
    display = [
        {"field": "text", "role": "text"},
        {"field": "price", "role": "price", "label": "EUR"},
        {"field": "stock", "role": "value", "label": "In stock"},
    ]
    project = make_project(engine, [ann], queries=1, items=2, k=1, display=display)
    model = Manager(engine, settings, project).add(endpoint, scope="all", max_requests=10)
    with serving(settings) as address, Browser(address) as browser:
        browser.cookies.set(COOKIE, in_transaction(engine, lambda c: sign_in(c, ann, 1)).secret)
        page = browser.get(f"/projects/{project}/models/{model.id}").text
    assert "of each document text, price, In stock," in page


def test_all_queries_as_a_whole_and_exported_by_who_judged(engine, settings, endpoint):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=5, k=2)
    wrong = {"left": "right", "right": "left"}
    judge(engine, project, [ann], choose=lambda task: wrong[truth(task)])
    manager = Manager(engine, settings, project)
    model = manager.add(endpoint, scope="all", max_requests=500)
    manager.run(model)
    tops = {
        by: top_of(read_qrels(manager.export(content="labels", format="qrels", model=by)))
        for by in (None, model.id)
    }
    assert tops == {None: ["d04", "d03"], model.id: ["d00", "d01"]}
    (query,) = queries_of(engine, project)
    row = manager.who.project
    (result,) = reading(engine, lambda c: model_results(c, row, query_row(c, project, query.id)))
    assert (result.hidden, result.top, result.same, result.shared > 0) == (False, [0, 1], 0, True)
    with pytest.raises(RefusedError, match="name no model"):
        ExportOptions(content="log", format="jsonl", model=model.id).check(Mode.PAIRS)


def top_of(labels):
    """The two best documents of the only query."""
    pairs = zip(labels.labels.tolist(), labels.document_ids.to_pylist(), strict=True)
    return [item for _, item in sorted(pairs, reverse=True)[:2]]


def test_nobody_sees_what_a_model_says_before_people_are_done(engine, settings, endpoint):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, overlap_share=1.0)
    service, row = Judges(engine), row_of(engine, project)
    task = service.next(row, ann, "t")
    service.answer(row, ann, task.token, "tie", tab="t", seconds=1)
    manager = Manager(engine, settings, project)
    model = manager.add(endpoint, max_requests=5)
    manager.run(model)
    (query,) = queries_of(engine, project)

    def seen():
        def work(connection):
            shown = log_rows(connection, row, LogEntry.query_id == query.id, limit=10)
            (result,) = model_results(connection, row, query_row(connection, project, query.id))
            return {entry.user_id for entry in shown}, result.hidden, result.top

        return reading(engine, work)

    assert seen() == ({ann}, True, [])
    task = service.next(row, bob, "t")
    assert task.judged == 1  # the model's judgment is not counted
    service.answer(row, bob, task.token, "left", tab="t", seconds=1)
    assert seen()[:2] == ({ann, bob, model.user_id}, False)


def test_budgets_hold_and_a_stopped_run_goes_on(engine, settings, chat, endpoint):
    people = make_people(engine, 2)
    project = make_project(engine, people, queries=2, items=5, k=2)
    judge(engine, project, people[1:])
    manager = Manager(engine, settings, project)
    model = manager.add(endpoint, max_requests=4, connections=1)
    assert manager.run(model).result["stopped"] == "the budget of 4 requests is spent"
    spent = manager.spending(model)
    assert (len(chat.requests), spent.requests, spent.answers) == (4, 4, 4)
    budget = ModelBudget(max_tokens=10**6, prompt_price=10.0, answer_price=20.0)
    work = lambda c: assessors.change_budget(c, manager.who, model.id, budget)  # noqa: E731
    model = in_transaction(engine, work)
    # It is stopped at its third request, and another run goes on.
    number = manager.start(model)
    with pytest.raises(RefusedError, match="already"):
        manager.start(model)
    asked = threading.Event()
    judge_one, stopped = chat.judge, []

    def stop_then_judge(query, documents):
        if len(chat.requests) > 6 and not stopped:
            stopped.append(number)
            statement = select(Job.__table__).where(Job.id == number)
            in_transaction(engine, lambda c: cancel(c, JobRow(*c.execute(statement).one())))
            asked.set()
        return judge_one(query, documents)

    chat.judge = stop_then_judge
    assert manager.do(assessors.RUN, run_model).state == "cancelled"
    assert asked.is_set()
    assert manager.run(model).state == "done"
    assert set(chat.charged.values()) == {1}  # nothing was paid twice
    spent = manager.spending(model)
    answer_tokens = 5 * len(chat.charged)
    prices = 10 * (chat.tokens - answer_tokens) + 20 * answer_tokens
    assert spent.prompt_tokens + spent.answer_tokens == chat.tokens
    assert spent.money == pytest.approx(prices / 1e6)


def test_what_cannot_be_added(engine, settings, endpoint):
    people = make_people(engine, 1)
    manager = Manager(engine, settings, make_project(engine, people))
    for wrong, problem in (
        ({"endpoint": "http://10.0.0.1/v1"}, "may not call"),
        ({"rubric": "name ="}, "rubric"),
        ({"rubric": rubric_text("grades")}, "this project needs “pair”"),
    ):
        with pytest.raises(RefusedError, match=problem):
            manager.add(**{"endpoint": endpoint, "max_requests": 1, **wrong})
    for wrong in ({"max_requests": None}, {"max_money": 1.0}, {"model": "a b"}):
        with pytest.raises(ValidationError):
            manager.add(endpoint, **{"max_requests": 1, **wrong})
    assert manager.add(endpoint, max_requests=1, rubric=RUBRIC).rubric_name == "shop/2"
    rankings = Manager(engine, settings, make_project(engine, people, mode="rankings"))
    with pytest.raises(RefusedError, match="not rankings"):
        rankings.add(endpoint, max_requests=1)


def test_a_model_has_no_grades_that_the_project_does_not_have(engine, settings, endpoint):
    people = make_people(engine, 1)
    scale = [{"name": "no"}, {"name": "yes"}]
    two = Manager(engine, settings, make_project(engine, people, mode="grades", scale=scale))
    with pytest.raises(RefusedError, match="grades up to 3, but the project's grades are 0 to 1"):
        two.add(endpoint, max_requests=1)
    # A scale that is changed before anyone has judged.
    five = Manager(engine, settings, make_project(engine, people, mode="grades"))
    model = five.add(endpoint, max_requests=1)
    in_transaction(engine, lambda c: change_project(c, people[0], five.project, {"scale": scale}))
    changed = Manager(engine, settings, five.project)
    with pytest.raises(RefusedError, match="grades up to 3"):
        changed.start(model)


def test_grades_and_a_failing_endpoint(engine, settings, chat, endpoint):
    people = make_people(engine, 2)
    project = make_project(engine, people, queries=1, items=3, mode="grades")
    manager = Manager(engine, settings, project)
    model = manager.add(endpoint, scope="all", max_requests=50)
    chat.faults = ["redirect"] * 4
    failed = manager.run(model)
    assert failed.state == "failed"
    assert "302" in failed.error
    assert "s3cret" not in failed.error
    chat.faults = []
    assert manager.run(model).result["judgments"] == 3
    (query,) = queries_of(engine, project)
    assert [(e.kind, e.left, e.value) for e in log_of(engine, query.id)] == [
        ("grade", 0, 3), ("grade", 1, 2), ("grade", 2, 1),
    ]  # fmt: skip
    assert (query.judgments, query.done, query.entries) == (0, False, 3)


def test_by_the_api(engine, settings, chat, endpoint):
    """One that is not started can be neither stopped nor audited; the key is shown to nobody."""
    ann, bob = people = make_people(engine, 2)
    project = make_project(engine, people, queries=1, items=2, k=1)
    base = f"/api/v1/projects/{project}/models"
    with serving(settings) as address, program(engine, address, ann) as client:
        assert client.get(base).json() == {"endpoints": [endpoint], "models": []}
        wanted = {"endpoint": endpoint, "model": "tiny", "max_requests": 5}
        added = client.post(base, json=wanted)
        assert added.status_code == 201
        path = f"{base}/{added.json()['id']}"
        assert client.get(path).json() == added.json()
        assert (added.json()["answers"], added.json()["run"]) == (0, None)
        assert client.post(f"{path}/stop").status_code == 409
        assert client.get(f"{path}/audit").json() == {"made_at": None, "content": {}}
        budget = client.put(f"{path}/budget", json={"max_tokens": 7}).json()
        assert (budget["max_requests"], budget["max_tokens"]) == (None, 7)
        pages = [f"/projects/{project}/models", f"/projects/{project}/models/{added.json()['id']}"]
        for page in pages:
            html = client.get(page, headers={"accept": "text/html"})
            assert (html.status_code, "s3cret" in html.text) == (200, False)
        with program(engine, address, bob) as assessor:
            assert assessor.get(base).status_code == 403
            assert assessor.post(f"{path}/run").status_code == 403
    assert chat.requests == []


def test_only_listed_endpoints_and_their_keys():
    listed = ["https://:a%2Fb@api.example.org/v1/", "http://localhost:1/v1"]
    assert endpoint_key("https://api.example.org/v1", listed) == "a/b"
    assert endpoint_key("http://localhost:1/v1", listed) == ""
    for other in ("https://api.example.org/v2", "https://:a%2Fb@api.example.org/v1", ""):
        with pytest.raises(RefusedError, match="may not call"):
            endpoint_key(other, listed)
