"""Projects are copied without their judgments, and archived."""

from __future__ import annotations

import pytest
from sqlalchemy import insert, select, update

from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.service import add_user
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import JobContext, claim
from podium.studio.judging import adjudication, bulk_discards, corrections, training
from podium.studio.judging.bulk_discards import DiscardRequest
from podium.studio.judging.service import AnswerChange
from podium.studio.judging.training import Example
from podium.studio.projects.assignments import assign_queries, unassign
from podium.studio.projects.changes import change_project, settings_of
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import (
    Gold,
    Job,
    Membership,
    Project,
    ProjectQuery,
    QueryCandidate,
    Ranking,
)
from podium.studio.store.tokens import new_token
from podium.studio.transfer.imports import run_import
from podium.studio.transfer.project_copies import copy_project
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, ended, program, row_of
from tests.studio.judging_helpers import items_of, judge_all, queries_of
from tests.studio.server import serving


def owner_of(engine, project, user):
    person = Person(user, "Ann", "ann@example.org", True)
    return Member(person, Role.OWNER, row_of(engine, project))


def copied(engine, project, user, name="Copy"):
    """A copy with its queries, as the worker makes them."""
    who = owner_of(engine, project, user)
    copy = in_transaction(engine, lambda c: copy_project(c, who, name))
    job = in_transaction(engine, lambda c: claim(c, "w", ["import"]))
    run_import(JobContext(engine, Settings(), job))
    return copy


def test_a_copy_has_settings_queries_and_gold_and_no_judgments(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=3, items=4, k=2, guidelines="Read.")
    first, second, _ = (row.id for row in queries_of(engine, project))
    gold = [
        {"query_id": query, "left": left, "right": right, "outcome": 1}
        for query, left, right in ((first, 0, 3), (first, 0, 2), (first, 2, 3), (second, 0, 1))
    ]
    in_transaction(engine, lambda c: c.execute(insert(Gold), gold))
    judge_all(service, project, bob, service.next(project, bob, "t"))
    who = owner_of(engine, project, ann)
    in_transaction(engine, lambda c: corrections.withdraw(c, who, first, 2))
    in_transaction(engine, lambda c: corrections.withdraw(c, who, second, None))
    copy = copied(engine, project, ann)
    settings = settings_of(row_of(engine, copy)).model_dump()
    assert settings == settings_of(row_of(engine, project)).model_dump() | {"name": "Copy"}
    assert items_of(engine, copy) == [
        *(("q0", item) for item in ("d00", "d01", "d03")),
        *(("q2", item) for item in ("d00", "d01", "d02", "d03")),
    ]
    rows = queries_of(engine, copy)
    assert [(row.judgments, row.entries, row.done) for row in rows] == [(0, 0, False)] * 2
    pairs = reading(
        engine,
        lambda c: c.execute(
            select(Gold.query_id, Gold.left, Gold.right, Gold.outcome)
            .join(ProjectQuery, ProjectQuery.id == Gold.query_id)
            .where(ProjectQuery.project_id == copy)
        ).all(),
    )
    # By position: one document is gone, and the pairs that it was in.
    assert list(map(tuple, pairs)) == [(rows[0].id, 0, 2, 1)]
    members = select(Membership.user_id).where(Membership.project_id == copy)
    assert reading(engine, lambda c: c.scalars(members).all()) == [ann]
    text = (
        select(QueryCandidate.text)
        .where(QueryCandidate.query_id == rows[0].id)
        .order_by(QueryCandidate.position)
    )
    assert reading(engine, lambda c: c.scalars(text).first()) == "Text of 0 for q0"


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_rankings_are_copied(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3, mode="rankings")
    copy = copied(engine, project, ann)
    columns = Ranking.name, Ranking.items
    for each in (project, copy):
        (query,) = queries_of(engine, each)
        ranked = select(*columns).where(Ranking.query_id == query.id).order_by(Ranking.position)
        rows = reading(engine, lambda c, ranked=ranked: c.execute(ranked).all())
        assert [(row.name, row[1]) for row in rows] == [("old", [2, 1, 0]), ("new", [0, 1, 2])]


def test_an_archived_project_is_paused_and_cannot_be_changed(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1)

    def change(**changes):
        in_transaction(engine, lambda c: change_project(c, ann, project, changes))

    change(archived=True)
    row = row_of(engine, project)
    assert (row.archived, row.paused) == (True, True)
    assert service.next(project, bob, "t").why == "paused"
    for changes in ({"paused": False}, {"name": "Other"}, {"name": "Other", "archived": True}):
        with pytest.raises(RefusedError, match="archived"):
            change(**changes)
    change(archived=False)
    row = row_of(engine, project)
    assert (row.archived, row.paused) == (False, True)
    change(paused=False)
    assert not row_of(engine, project).paused


def test_judgments_and_their_setup_cannot_be_changed_in_an_archived_project(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=4)
    given = service.next(project, bob, "t")
    service.answer(project, bob, given.token, "left", seconds=1, tab="t", more=False)
    withdrawn, judged = sorted(
        (row.id for row in queries_of(engine, project)), key=lambda query: query == given.query.id
    )
    example = Example("q0", ("d00", "d01"), 1, "It is.")

    def as_owner(change, *arguments, **options):
        who = owner_of(engine, project, ann)
        return in_transaction(engine, lambda c: change(c, who, *arguments, **options))

    as_owner(corrections.withdraw, withdrawn, None)
    as_owner(training.set_training, [example], 1.0)
    asked = reading(engine, lambda c: training.next_example(c, project, bob)).id
    job = as_owner(bulk_discards.request_discard, bob, DiscardRequest())
    in_transaction(engine, lambda c: c.execute(update(Job).values(state="done")))

    def archive(archived):
        changes = {"archived": archived}
        in_transaction(engine, lambda c: change_project(c, ann, project, changes))

    changes = [
        lambda: service.undo(project, bob, new_token(), "t"),
        lambda: service.change(project, bob, given.token, AnswerChange(new_token(), "right", None)),
        lambda: as_owner(corrections.discard, judged, 0, None),
        lambda: as_owner(corrections.readmit, withdrawn, None),
        lambda: as_owner(bulk_discards.request_discard, bob, DiscardRequest()),
        lambda: as_owner(bulk_discards.request_restoration, job),
        lambda: as_owner(assign_queries, [bob]),
        lambda: as_owner(unassign, None),
        lambda: as_owner(adjudication.set_adjudicator, bob),
        lambda: as_owner(training.set_training, [example], 0.5),
        lambda: as_owner(lambda c, who: training.answer_example(c, who.project, bob, asked, "tie")),
        lambda: as_owner(training.allow, bob),
        lambda: as_owner(training.begin_again, bob),
        lambda: as_owner(training.end_training),
    ]
    archive(True)
    for number, change in enumerate(changes):
        with pytest.raises(RefusedError, match="The project is archived: restore it first") as no:
            change()
        assert no.value.status == 409, number
    archive(False)
    as_owner(corrections.discard, judged, 0, None)


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_the_pages(engine, database, tmp_path):
    def people(connection):
        return [
            add_user(connection, f"{name}@example.org", name, PASSWORD, admin=name == "ann")
            for name in ("ann", "bob")
        ]

    ann, bob = in_transaction(engine, people)
    project = make_project(engine, [bob, ann], queries=2, items=3)
    with serving(Settings(database=database, exports=tmp_path / "files")) as address:
        with Browser(address) as browser:
            browser.sign_in("bob@example.org")
            assert browser.submit(f"/projects/{project}/copy", {"name": "X"}).status_code == 403
            settings = f"/projects/{project}/settings"
            assert browser.submit(settings, {"archived": "true"}).status_code == 303
            assert "Archived projects (1)" in browser.get("/").text
            assert "Save settings" not in browser.get(settings).text
            files = {"candidates": ("c.jsonl", b"{}")}
            sent = {"source": "candidates"}
            assert browser.submit(f"/projects/{project}/import", sent, files).status_code == 409
            assert "archived" in browser.submit(f"/projects/{project}/import", sent, files).text
            assert browser.submit(settings, {"archived": "false"}).status_code == 303
            assert "Archived projects" not in browser.get("/").text
            assert 'id="judging-modes"' in browser.get("/help").text
        with program(engine, address, ann) as client:
            own = make_project(engine, [ann], queries=2, items=3)
            assert client.post(f"/api/v1/projects/{project}/copy", json={}).status_code == 403
            path = f"/api/v1/projects/{own}/copy"
            assert client.post(path, json={"name": " "}).status_code == 422
            copy = client.post(path, json={"name": "Again"}).json()
            (job,) = client.get(f"/api/v1/projects/{copy['id']}/jobs").json()
            assert ended(client, copy["id"], job)["result"]["added"] == 2
    names = reading(engine, lambda c: c.scalars(select(Project.name).order_by(Project.id)).all())
    assert names == ["Test", "Test", "Again"]
