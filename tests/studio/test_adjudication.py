"""Where people disagree, a chosen person decides, and the decision stands for their answers."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import select

from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.service import add_user
from podium.studio.errors import RefusedError
from podium.studio.jobs.process import execute
from podium.studio.jobs.queue import JobContext, enqueue
from podium.studio.judging import adjudication, corrections
from podium.studio.judging.judged import load_judged_query
from podium.studio.judging.service import AnswerChange
from podium.studio.projects.changes import change_project
from podium.studio.projects.progress import project_progress
from podium.studio.reporting import reports
from podium.studio.reporting.query_results import query_results
from podium.studio.reporting.reports import KIND, report_of, run_report
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import LogEntry
from podium.studio.store.tokens import new_token
from tests.studio.claimed_jobs import claimed_job
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import program, row_of
from tests.studio.judging_helpers import Judges, judge_all, queries_of, truth
from tests.studio.postgres import wait_until
from tests.studio.server import serving

DATABASES = BOTH

WRONG = {"left": "right", "right": "left"}


def always_wrong(task):
    return WRONG[truth(task)]


def everyone(engine, project, choices):
    service, row = Judges(engine, rng=random.Random(1)), row_of(engine, project)
    for who, choose in choices.items():
        judge_all(service, row, who, service.next(row, who, "t"), choose=choose)


class Interrupted(JobContext):
    """A job before whose second look at the database something happens."""

    interruption = None
    looks = 0

    def __getattribute__(self, name):
        if name == "engine":
            self.looks += 1
            if self.looks == 2 and self.interruption is not None:
                self.interruption()
        return super().__getattribute__(name)


def make_report(engine, project, user, interruption=None):
    job = claimed_job(engine, KIND, lambda c: enqueue(c, project, user, KIND, {}))
    work = Interrupted(engine, Settings(database="sqlite://"), job)
    work.interruption = interruption
    execute(run_report, work)
    return reading(engine, lambda c: report_of(c, project)).content["agreement"]


def member(engine, project, user, role=Role.ASSESSOR):
    return Member(Person(user, "", "", False), role, row_of(engine, project))


def judged(engine, project):
    (query,) = queries_of(engine, project)
    return reading(engine, lambda c: load_judged_query(c, row_of(engine, project), query))


def decide(engine, who, choice, reason=None):
    """Decide the next disagreement; returns whether there was one."""

    def work(connection):
        dispute = adjudication.next_dispute(connection, who.project)
        if dispute is None:
            return False
        task = dispute.task
        answer = choice(task) if callable(choice) else choice
        query_id = dispute.judged.query.id
        adjudication.decide(connection, who, query_id, (task.left, task.right), answer, reason)
        return True

    return in_transaction(engine, work)


@pytest.fixture
def dispute(engine):
    """Two documents on which Bob and Cem disagree, and Dee who decides."""
    ann, bob, cem, dee = people = make_people(engine, 4)
    project = make_project(engine, people, queries=1, items=2, k=1, overlap_share=1.0)
    everyone(engine, project, {bob: truth, cem: always_wrong})
    manager = member(engine, project, ann, Role.MANAGER)
    in_transaction(engine, lambda c: adjudication.set_adjudicator(c, manager, dee))
    make_report(engine, project, ann)
    return project, people


def top(engine, project):
    return judged(engine, project).state.mode.session.result().top


@pytest.mark.parametrize("decision", [truth, always_wrong])
def test_a_decision_stands_in_the_place_of_the_answers(engine, dispute, decision):
    project, (ann, _, _, dee) = dispute
    who = member(engine, project, dee)
    assert reading(engine, lambda c: adjudication.count_disputes(c, project)) == 1
    assert decide(engine, who, decision, "As the guidelines say.")
    assert not decide(engine, who, decision)
    best, other = ("d00", "d01") if decision is truth else ("d01", "d00")
    assert top(engine, project) == (best,)
    query = judged(engine, project)
    assert query.state.done
    assert sorted(entry.purpose for entry in query.standing) == ["adjudicate", "main", "main"]
    session = query.state.mode.session
    assert session.outcome(best, other).name == "LEFT"
    after = make_report(engine, project, ann)
    assert (after["overall"], after["decided"]["overall"]) == (0.0, 1.0)
    assert after["decided"]["units"] == 1


def test_how_certain_the_order_is_follows_the_decision(engine, dispute):
    project, (_, _, _, dee) = dispute
    decide(engine, member(engine, project, dee), always_wrong)
    row, (query,) = row_of(engine, project), queries_of(engine, project)
    first, second = reading(engine, lambda c: query_results(c, row, query.id)).documents
    assert (first.document_id, second.document_id) == ("d01", "d00")
    # Two votes for it, as if both had said what was decided; one each would be even.
    assert first.in_top > 0.75


def test_a_withdrawn_document_leaves_disagreements_on_rankings(engine):
    ann, bob, cem = people = make_people(engine, 3)
    project = make_project(engine, people, queries=1, items=3, mode="rankings", overlap_share=1.0)
    everyone(engine, project, {bob: truth, cem: always_wrong})
    manager = member(engine, project, ann, Role.MANAGER)
    (query,) = queries_of(engine, project)
    in_transaction(engine, lambda c: corrections.withdraw(c, manager, query.id, 0))
    assert len(adjudication.disputes_of(judged(engine, project))) == 1


def test_a_withdrawn_document_leaves_the_tasks_of_rankings(engine):
    ann, bob = people = make_people(engine, 2)
    project = make_project(engine, people, queries=1, items=3, mode="rankings")
    service, row = Judges(engine), row_of(engine, project)
    task = service.next(row, bob, "t")
    manager = member(engine, project, ann, Role.MANAGER)
    (query,) = queries_of(engine, project)
    in_transaction(engine, lambda c: corrections.withdraw(c, manager, query.id, 0))
    result, _ = service.answer(row, bob, task.token, "left", seconds=2.0, tab="t")
    assert (result.late, result.counts) == (False, True)


def test_nothing_is_to_decide_only_once_all_answers_were_looked_through(engine, database):
    ann, bob, cem = people = make_people(engine, 3)
    project = make_project(engine, people, queries=1, items=2, k=1, overlap_share=1.0)
    everyone(engine, project, {bob: truth, cem: always_wrong})
    manager = member(engine, project, ann, Role.MANAGER)
    in_transaction(engine, lambda c: adjudication.set_adjudicator(c, manager, ann))
    path = f"/api/v1/projects/{project}/adjudication/next"
    with serving(Settings(database=database)) as address, program(engine, address, ann) as client:
        assert client.get(path).json()["checking"] is True
        wait_until(lambda: not client.get(path).json()["checking"])
        after = client.get(path).json()
        assert (after["left"], len(after["dispute"]["votes"])) == (1, 2)


@pytest.mark.parametrize("meanwhile", [False, True])
def test_fewer_people_per_task_leave_disagreements_to_decide(engine, meanwhile):
    """The setting changes after a report, or while one is made."""
    ann, bob, cem, _ = people = make_people(engine, 4)
    project = make_project(
        engine, people, queries=1, items=2, mode="grades", overlap_share=1.0, overlap_assessors=3
    )
    everyone(engine, project, {bob: lambda _: "good", cem: lambda _: "bad"})

    def lower():
        change = {"overlap_assessors": 2}
        in_transaction(engine, lambda c: change_project(c, ann, project, change))

    def first_dispute():
        return reading(engine, lambda c: adjudication.next_dispute(c, row_of(engine, project)))

    def is_stale():
        report = reading(engine, lambda c: report_of(c, project))
        entries = reading(engine, lambda c: project_progress(c, project)).entries
        return reports.is_stale(report, entries, report.made_at + 60)

    make_report(engine, project, ann, lower if meanwhile else None)
    assert first_dispute() is None
    if not meanwhile:
        assert not is_stale()  # a third person is to be asked
        lower()
    assert is_stale()
    make_report(engine, project, ann)
    assert [vote.user for vote in first_dispute().votes] == [bob, cem]
    assert not is_stale()


def test_a_decision_that_is_undone_leaves_the_answers(engine, dispute):
    project, (ann, bob, cem, dee) = dispute
    before = top(engine, project)
    who = member(engine, project, dee)
    decide(engine, who, always_wrong)
    manager = member(engine, project, ann, Role.MANAGER)
    (query,) = queries_of(engine, project)
    position = query.entries - 1
    in_transaction(engine, lambda c: corrections.discard(c, manager, query.id, position, None))
    assert top(engine, project) == before
    assert len(adjudication.disputes_of(judged(engine, project))) == 1
    in_transaction(engine, lambda c: corrections.restore(c, manager, query.id, position))
    assert top(engine, project) == ("d01",)
    # One who changes their answer afterwards changes nothing: it was decided.
    service = Judges(engine)
    token = select(LogEntry.token).where(LogEntry.user_id == cem)
    answer = reading(engine, lambda c: c.scalar(token))
    row = row_of(engine, project)
    change = AnswerChange(new_token(), "tie", None)
    service.change(row, cem, answer, change)
    assert top(engine, project) == ("d01",)
    assert adjudication.disputes_of(judged(engine, project)) == []
    # Without the decision their new answer counts, and disagrees with Bob's.
    in_transaction(engine, lambda c: corrections.discard(c, manager, query.id, position, None))
    values = {entry.value for entry in judged(engine, project).standing}
    assert 0 in values
    assert len(adjudication.disputes_of(judged(engine, project))) == 1
    assert bob in {entry.user for entry in judged(engine, project).standing}


def test_who_may_decide_what(engine, dispute):
    project, (ann, bob, _, dee) = dispute
    with pytest.raises(RefusedError, match="adjudicator"):
        decide(engine, member(engine, project, bob), truth)
    with pytest.raises(RefusedError, match="not a valid answer"):
        decide(engine, member(engine, project, dee), "skip")
    manager = member(engine, project, ann, Role.MANAGER)
    stranger = in_transaction(engine, lambda c: add_user(c, "x@example.org", "X", None))
    with pytest.raises(RefusedError, match="member"):
        in_transaction(engine, lambda c: adjudication.set_adjudicator(c, manager, stranger))
    assert reading(engine, lambda c: adjudication.adjudicator_of(c, project)) == dee


def test_grades_by_the_api(engine, database):
    ann, bob, cem = people = make_people(engine, 3)
    project = make_project(engine, people, queries=1, items=2, mode="grades", overlap_share=1.0)
    everyone(engine, project, {bob: lambda _: "good", cem: lambda task: ["good", "bad"][task.left]})
    base = f"/api/v1/projects/{project}/adjudication"
    with serving(Settings(database=database)) as address:
        with program(engine, address, ann) as client:
            chosen = client.put(f"{base}/adjudicator", json={"user": ann}).json()
            assert chosen["adjudicator"] == ann
            make_report(engine, project, ann)
            found = client.get(f"{base}/next").json()
            votes = sorted(vote["answer"] for vote in found["dispute"]["votes"])
            assert (found["left"], found["dispute"]["left"], votes) == (1, 1, ["bad", "good"])
            decision = {name: found["dispute"][name] for name in ("query_id", "left", "right")}
            wrong = client.post(f"{base}/decisions", json={**decision, "choice": "left"})
            assert wrong.status_code == 422
            done = client.post(f"{base}/decisions", json={**decision, "choice": "fair"})
            assert (done.status_code, done.json()["disputes"]) == (201, 0)
            again = client.post(f"{base}/decisions", json={**decision, "choice": "fair"})
            assert again.status_code == 409
        with program(engine, address, bob) as client:
            assert client.get(f"{base}/next").status_code == 403
    labels = judged(engine, project).labels(ties=False)
    assert labels == {"d00": 2.0, "d01": 1.0}


def test_a_decision_does_not_return_beside_that_of_another_adjudicator(engine, dispute):
    project, (ann, bob, _cem, dee) = dispute
    manager = member(engine, project, ann, Role.MANAGER)
    assert decide(engine, member(engine, project, dee), "left")
    (query,) = queries_of(engine, project)
    discarded = judged(engine, project).log[-1].position
    in_transaction(engine, lambda c: corrections.discard(c, manager, query.id, discarded, None))
    in_transaction(engine, lambda c: adjudication.set_adjudicator(c, manager, bob))
    make_report(engine, project, ann)
    assert decide(engine, member(engine, project, bob), "right")
    with pytest.raises(RefusedError, match="judged again since"):
        in_transaction(engine, lambda c: corrections.restore(c, manager, query.id, discarded))
