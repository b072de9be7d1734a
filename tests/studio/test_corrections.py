"""What managers correct: judgments discarded and restored, queries and documents withdrawn."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from podium.studio.accounts.identity import Member, Person
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import JobContext, JobLostError, claim
from podium.studio.judging import bulk_discards, corrections
from podium.studio.judging.bulk_discards import DiscardRequest
from podium.studio.judging.judged import judged_queries
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.projects.progress import project_progress
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Kind, Role
from podium.studio.store.tables import AssessorProgress, AuditRecord
from podium.studio.store.tokens import new_token
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import (
    Judges,
    counted,
    judge_all,
    queries_of,
    read_log,
    top_of,
    truth,
)

DATABASES = BOTH


def manager_of(engine, project, user):
    person = Person(user, "Ann", "ann@example.org", False)
    return Member(person, Role.MANAGER, row_of(engine, project))


def labels_of(engine, project):
    """To each exported query its labels by document."""
    queries = judged_queries(engine, row_of(engine, project), only_done=False)
    return {each.query.name: each.labels(ties=False) for each in queries if each.is_judged}


def totals_of(engine, user):
    columns = AssessorProgress.judgments, AssessorProgress.seconds
    statement = select(*columns).where(AssessorProgress.user_id == user)
    return tuple(reading(engine, lambda c: c.execute(statement).one()))


@pytest.fixture
def judged(engine, service, clock):
    """A query with four documents that Ann judged to the end; Bob manages."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=4, k=2)

    def choose(task):
        clock.now += 5
        return truth(task)

    count, _ = judge_all(service, project, ann, service.next(project, ann, "t"), choose=choose)
    (query,) = queries_of(engine, project)
    assert (query.done, query.judgments) == (True, count)
    return project, query.id, ann, manager_of(engine, project, bob)


def test_a_discarded_judgment_is_asked_again_and_a_restored_one_counts(engine, service, judged):
    project, query, ann, who = judged
    bob = who.person.id
    before = totals_of(engine, ann)
    row = queries_of(engine, project)[0]
    in_transaction(engine, lambda c: corrections.discard(c, who, query, 0, "a slip"))
    after = queries_of(engine, project)[0]
    assert (after.done, after.judgments) == (False, row.judgments - 1)
    assert totals_of(engine, ann) == (before[0] - 1, before[1] - 2.0)
    undo = read_log(engine, query)[-1]
    assert (undo.kind, undo.undoes, undo.user_id) == ("undo", 0, ann)
    assert (undo.manager_id, undo.reason) == (bob, "a slip")
    assert isinstance(service.next(project, ann, "other"), LeasedTask)
    with pytest.raises(RefusedError, match="does not stand"):
        in_transaction(engine, lambda c: corrections.discard(c, who, query, 0, None))

    in_transaction(engine, lambda c: corrections.restore(c, who, query, 0))
    after = queries_of(engine, project)[0]
    assert (after.done, after.judgments) == (True, row.judgments)
    assert totals_of(engine, ann) == before
    assert top_of(service, project, query).top == ("d00", "d01")
    last = read_log(engine, query)[-1]
    assert (last.kind, last.undoes, last.manager_id) == ("undo", undo.position, bob)
    with pytest.raises(RefusedError, match="No manager discarded"):
        in_transaction(engine, lambda c: corrections.restore(c, who, query, 0))
    # And once more: discarding what was restored is a new undo of the judgment itself.
    in_transaction(engine, lambda c: corrections.discard(c, who, query, 0, None))
    assert queries_of(engine, project)[0].judgments == row.judgments - 1
    actions = reading(engine, lambda c: c.scalars(select(AuditRecord.action)).all())
    assert actions.count("discarded a judgment") == 2
    assert actions.count("restored a judgment") == 1


def test_what_stands_follows_from_the_log_alone(engine, judged):
    project, query, _, who = judged
    for change in (
        lambda c: corrections.discard(c, who, query, 0, None),
        lambda c: corrections.discard(c, who, query, 1, None),
        lambda c: corrections.restore(c, who, query, 0),
        lambda c: corrections.withdraw(c, who, query, 0),
        lambda c: corrections.withdraw(c, who, query, 1),
        lambda c: corrections.readmit(c, who, query, 0),
    ):
        in_transaction(engine, change)
    (exported,) = judged_queries(engine, row_of(engine, project), only_done=False)
    standing, log = exported.standing_positions, exported.log
    answers = {entry.position for entry in log if entry.is_judgment}
    assert {at for at in answers if exported.state.stands(at)} == standing & answers
    assert len(standing & answers) == len(answers) - 1
    withdrawals = [entry.position for entry in log if entry.kind is Kind.WITHDRAW]
    assert [at in standing for at in withdrawals] == [False, True]
    assert [exported.state.withdrawal_of(at) for at in (0, 1)] == [None, withdrawals[1]]


def test_a_process_with_the_query_in_memory_and_one_without_agree(engine, service, judged):
    project, query, _, who = judged
    fresh = Judges(engine)
    in_transaction(engine, lambda c: corrections.discard(c, who, query, 0, None))
    discarded = top_of(service, project, query)
    assert discarded == top_of(fresh, project, query)
    in_transaction(engine, lambda c: corrections.restore(c, who, query, 0))
    restored = top_of(service, project, query)
    assert restored == top_of(Judges(engine), project, query)
    assert (discarded.complete, restored.complete) == (False, True)


def test_what_was_judged_again_since_is_not_restored(engine, service, judged):
    project, query, ann, who = judged
    in_transaction(engine, lambda c: corrections.discard(c, who, query, 0, None))
    judge_all(service, project, ann, service.next(project, ann, "t"))
    with pytest.raises(RefusedError, match="judged again since"):
        in_transaction(engine, lambda c: corrections.restore(c, who, query, 0))


def test_what_people_undid_themselves_is_not_restored(engine, service, judged):
    project, query, ann, who = judged
    last = read_log(engine, query)[-1].position
    service.undo(project, ann, new_token(), "t")
    with pytest.raises(RefusedError, match="No manager discarded"):
        in_transaction(engine, lambda c: corrections.restore(c, who, query, last))


def test_both_marks_of_an_answer_go_together(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, k=2)
    task = service.next(project, ann, "t")
    service.answer(project, ann, task.token, "bad-both", seconds=2.0, tab="t", more=False)
    query = queries_of(engine, project)[0].id
    who = manager_of(engine, project, ann)
    in_transaction(engine, lambda c: corrections.discard(c, who, query, 1, None))
    assert [row.undoes for row in read_log(engine, query)] == [None, None, 0, 1]
    assert queries_of(engine, project)[0].judgments == 0
    in_transaction(engine, lambda c: corrections.restore(c, who, query, 0))
    assert queries_of(engine, project)[0].judgments == 1
    assert counted(engine, query) == {ann: 1}


def test_a_withdrawn_query_is_not_asked_counted_or_exported(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=3, k=1)
    first, second = (row.id for row in queries_of(engine, project))
    who = manager_of(engine, project, ann)
    task = service.next(project, bob, "t")
    assert task.query.id == first
    in_transaction(engine, lambda c: corrections.withdraw(c, who, first, None, "spam"))
    row = queries_of(engine, project)[0]
    assert (row.withdrawn, row.done, row.available) == (True, True, False)
    # Bob's page asks for its task again and gets one of the other query.
    assert service.next(project, bob, "t").query.id == second
    # An answer on its way is kept, without counting.
    result, _ = service.answer(project, bob, task.token, "left", seconds=1.0, tab="t", more=False)
    assert (result.late, result.counts) == (True, False)
    judge_all(service, project, bob, service.next(project, bob, "t"))
    progress = reading(engine, lambda c: project_progress(c, project))
    assert (progress.queries, progress.done) == (1, 1)
    assert service.next(project, bob, "t").why == "done"
    assert labels_of(engine, project) == {"q1": {"d00": 1.0, "d01": 0.0, "d02": 0.0}}
    with pytest.raises(RefusedError, match="withdrawn already"):
        in_transaction(engine, lambda c: corrections.withdraw(c, who, first, None))

    in_transaction(engine, lambda c: corrections.readmit(c, who, first, None))
    row = queries_of(engine, project)[0]
    assert (row.withdrawn, row.done, row.available) == (False, False, True)
    assert service.next(project, bob, "t").query.id == first
    with pytest.raises(RefusedError, match="not withdrawn"):
        in_transaction(engine, lambda c: corrections.readmit(c, who, first, None))


def test_judgments_of_a_withdrawn_query_come_back_with_it(engine, judged):
    project, query, _, who = judged
    before, labels = queries_of(engine, project), labels_of(engine, project)
    in_transaction(engine, lambda c: corrections.withdraw(c, who, query, None))
    assert labels_of(engine, project) == {}
    in_transaction(engine, lambda c: corrections.readmit(c, who, query, None))
    assert labels_of(engine, project) == labels
    (row,), (old,) = queries_of(engine, project), before
    assert (row.done, row.judgments, row.entries) == (True, old.judgments, old.entries + 2)


def test_a_withdrawn_document_is_in_no_task_and_has_no_label(engine, service, judged):
    project, query, ann, who = judged
    all_labels = {"d00": 2.0, "d01": 1.0, "d02": 0.0, "d03": 0.0}
    assert labels_of(engine, project) == {"q0": all_labels}
    in_transaction(engine, lambda c: corrections.withdraw(c, who, query, 0))
    shown = []

    def choose(task):
        shown.append({task.left, task.right})
        return truth(task)

    judge_all(service, project, ann, service.next(project, ann, "t"), choose=choose)
    assert {0} & set().union(*shown) == set()
    assert labels_of(engine, project) == {"q0": {"d01": 2.0, "d02": 1.0, "d03": 0.0}}
    (exported,) = judged_queries(engine, row_of(engine, project), only_done=False)
    assert "d00" not in {side for each in exported.verdicts() for side in (each.left, each.right)}
    in_transaction(engine, lambda c: corrections.readmit(c, who, query, 0))
    assert labels_of(engine, project) == {"q0": all_labels}
    in_transaction(engine, lambda c: corrections.withdraw(c, who, query, 0))
    in_transaction(engine, lambda c: corrections.withdraw(c, who, query, 1))
    with pytest.raises(RefusedError, match="two documents"):
        in_transaction(engine, lambda c: corrections.withdraw(c, who, query, 2))
    with pytest.raises(RefusedError, match="does not exist"):
        in_transaction(engine, lambda c: corrections.withdraw(c, who, query, 4))


@pytest.mark.parametrize("mode", ["grades", "rankings"])
def test_documents_are_withdrawn_in_every_mode(engine, service, mode):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3, mode=mode)
    query = queries_of(engine, project)[0].id
    who = manager_of(engine, project, ann)
    in_transaction(engine, lambda c: corrections.withdraw(c, who, query, 0))
    task = service.next(project, ann, "t")
    if mode == "rankings":
        shown = {tuple(at for at, _ in side) for side in task.sides}
        assert shown == {(2, 1), (1, 2)}
        return
    assert queries_of(engine, project)[0].expected_left == 2.0
    count, _ = judge_all(service, project, ann, task, choose=lambda _: "good")
    assert count == 2
    assert labels_of(engine, project) == {"q0": {"d01": 2.0, "d02": 2.0}}


def test_withdrawing_a_document_is_not_a_judgment(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, k=2)
    query = queries_of(engine, project)[0].id
    who = manager_of(engine, project, ann)
    in_transaction(engine, lambda c: corrections.withdraw(c, who, query, 0))
    assert labels_of(engine, project) == {}
    assert queries_of(engine, project)[0].judgments == 0


def run(engine, kind, function):
    """Run the next job as a worker does; its row afterwards."""
    job = in_transaction(engine, lambda c: claim(c, "w", [kind]))
    function(JobContext(engine, Settings(), job))
    user = job.parameters["user"]
    jobs = reading(engine, lambda c: bulk_discards.bulk_jobs(c, job.project_id, user))
    return next(each for each in jobs if each.id == job.id)


def test_all_of_someones_judgments_since_a_time(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=3, items=2, k=1)
    who = manager_of(engine, project, ann)
    for start in (1000.0, 2000.0, 3000.0):
        clock.now = start
        task = service.next(project, bob, "t")
        clock.now += 2
        service.answer(project, bob, task.token, "left", seconds=2.0, tab="t", more=False)
    request = DiscardRequest(since=2000.0, reason="tired")
    in_transaction(engine, lambda c: bulk_discards.request_discard(c, who, bob, request))
    done = run(engine, "discard", bulk_discards.run_discard)
    assert (done.state, done.result) == ("done", {"judgments": 2, "queries": 2})
    rows = queries_of(engine, project)
    assert [(row.judgments, row.done) for row in rows] == [(1, True), (0, False), (0, False)]
    assert totals_of(engine, bob) == (1, 2.0)
    undo = read_log(engine, rows[1].id)[-1]
    assert (undo.manager_id, undo.reason) == (ann, "tired")

    in_transaction(engine, lambda c: bulk_discards.request_restoration(c, who, done.id))
    back = run(engine, "restore", bulk_discards.run_restore)
    assert (back.state, back.result) == ("done", {"judgments": 2, "queries": 2})
    assert [(row.judgments, row.done) for row in queries_of(engine, project)] == [(1, True)] * 3
    assert totals_of(engine, bob) == (3, 6.0)
    with pytest.raises(RefusedError, match="nothing to restore"):
        in_transaction(engine, lambda c: bulk_discards.request_restoration(c, who, back.id))
    with pytest.raises(RefusedError, match="judged nothing"):
        in_transaction(
            engine, lambda c: bulk_discards.request_discard(c, who, ann, DiscardRequest())
        )


def test_a_second_worker_goes_on_where_the_first_stopped(engine, service, clock):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1)
    who = manager_of(engine, project, ann)
    judge_all(service, project, bob, service.next(project, bob, "t"))
    in_transaction(engine, lambda c: bulk_discards.request_discard(c, who, bob, DiscardRequest()))
    job = in_transaction(engine, lambda c: claim(c, "w", ["discard"]))
    with pytest.raises(JobLostError):
        bulk_discards.run_discard(JobContext(engine, Settings(), job, lost=True))
    assert [row.judgments for row in queries_of(engine, project)] == [0, 1]
    # What Bob answers meanwhile is not meant.
    clock.now = job.created_at + 10
    task = service.next(project, bob, "t")
    service.answer(project, bob, task.token, "right", seconds=1.0, tab="t", more=False)
    bulk_discards.run_discard(JobContext(engine, Settings(), job))
    assert [row.judgments for row in queries_of(engine, project)] == [1, 0]
