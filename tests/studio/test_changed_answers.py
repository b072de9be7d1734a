"""Assessors see their own answers, comment on them and change them."""

from __future__ import annotations

import re

import pytest

from podium.studio.accounts.service import add_user
from podium.studio.errors import RefusedError
from podium.studio.judging.service import AnswerChange
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Purpose
from podium.studio.store.tokens import new_token
from tests.studio.databases import BOTH
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, bearer, row_of
from tests.studio.judging_helpers import Judges, counted, judge_all, queries_of, read_log
from tests.studio.server import serving

DATABASES = BOTH


@pytest.fixture
def change(engine, clock):
    service = Judges(engine, clock)

    def work(project, user, answer, choice, reason=None, token=None):
        wish = AnswerChange(token or new_token(), choice, reason)
        service.change(project, user, answer, wish)
        return wish.token

    return work


def answered(service, clock, project, user, choice, **more):
    """Answer one task in two seconds; returns it."""
    task = service.next(project, user, "t")
    clock.now += 2
    service.answer(project, user, task.token, choice, seconds=2.0, tab="t", more=False, **more)
    return task


def test_a_changed_answer_replaces_the_earlier_one(engine, service, clock, change):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    task = answered(service, clock, project, ann, "left")
    clock.now += 100
    token = change(project, ann, task.token, "tie", "too close")
    verdict, undo, new = read_log(engine, task.query.id)
    assert (undo.kind, undo.undoes, undo.manager_id) == ("undo", verdict.position, None)
    assert (new.kind, new.left, new.right, new.value) == ("verdict", verdict.left, verdict.right, 0)
    assert (new.reason, new.seconds, new.at) == ("too close", 2.0, clock.now)
    assert counted(engine, task.query.id) == {ann: 1}
    assert queries_of(engine, project)[0].done
    # Sending it twice changes nothing; the earlier answer cannot be changed any more.
    change(project, ann, task.token, "tie", "too close", token=token)
    assert len(read_log(engine, task.query.id)) == 3
    with pytest.raises(RefusedError, match="cannot be changed"):
        change(project, ann, task.token, "right")


def test_a_comment_is_added_to_an_answer_that_stays(engine, service, clock, change):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, k=2)
    task = answered(service, clock, project, ann, "bad-both")
    change(project, ann, task.token, "keep", "both are empty")
    log = read_log(engine, task.query.id)
    assert [(row.kind, row.left, row.reason) for row in log[4:]] == [
        ("bad", task.task.left, "both are empty"),
        ("bad", task.task.right, "both are empty"),
    ]
    assert queries_of(engine, project)[0].judgments == 1


def test_an_answer_is_taken_back(engine, service, clock, change):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    task = answered(service, clock, project, ann, "left")
    token = change(project, ann, task.token, None)
    change(project, ann, task.token, None, token=token)  # the reply was lost, and it came again
    with pytest.raises(RefusedError, match="cannot be changed any more"):
        change(project, ann, task.token, None)
    (row,) = queries_of(engine, project)
    assert (row.done, row.judgments, row.entries) == (False, 0, 2)
    assert isinstance(service.next(project, ann, "t"), LeasedTask)


def test_a_mark_does_not_tell_the_other_document(engine, service, clock, change):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, k=2)
    task = answered(service, clock, project, ann, "bad-left")
    with pytest.raises(RefusedError, match="not a valid answer"):
        change(project, ann, task.token, "right")
    change(project, ann, task.token, "keep", "spam")
    assert read_log(engine, task.query.id)[-1].reason == "spam"


def test_a_skip_that_others_judged_meanwhile_does_not_count(engine, service, clock, change):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    task = answered(service, clock, project, ann, "skip", reason="no idea")
    answered(service, clock, project, bob, "left")
    change(project, ann, task.token, "right")
    assert not read_log(engine, task.query.id)[-1].counts
    assert counted(engine, task.query.id) == {ann: 0, bob: 1}
    alone = make_project(engine, [ann], queries=1, items=2, k=1)
    task = answered(service, clock, alone, ann, "skip")
    change(alone, ann, task.token, "right")
    assert read_log(engine, task.query.id)[-1].counts
    assert queries_of(engine, alone)[0].done


def test_checks_stay_checks(engine, service, change):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=12, k=6, repeat_rate=0.5)
    judge_all(service, project, ann, service.next(project, ann, "t"))
    query = queries_of(engine, project)[0]
    again = next(row for row in read_log(engine, query.id) if row.purpose == Purpose.REPEAT)
    change(project, ann, again.token, "tie")
    assert read_log(engine, query.id)[-1].purpose == Purpose.REPEAT
    assert queries_of(engine, project)[0].done


def test_others_answers_are_not_touched(engine, service, clock, change):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    other = make_project(engine, [bob], queries=1, items=2, k=1)
    task = answered(service, clock, project, ann, "left")
    with pytest.raises(RefusedError, match="does not exist"):
        change(project, bob, task.token, "right")
    with pytest.raises(RefusedError, match="does not exist"):
        change(other, ann, task.token, "right")


@pytest.mark.parametrize("database_kind", ["sqlite"])
@pytest.mark.parametrize(
    ("mode", "choice", "other"),
    [("pairs", "left", "right"), ("grades", "bad", "good"), ("rankings", "left", "same")],
)
def test_the_pages(engine, database, tmp_path, mode, choice, other):
    bob = in_transaction(engine, lambda c: add_user(c, "bob@example.org", "Bob", PASSWORD))
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1, mode=mode)
    service, row = Judges(engine), row_of(engine, project)
    task = service.next(row, bob, "t")
    service.answer(row, bob, task.token, choice, seconds=2, tab="t", reason="<b>", more=False)
    base = f"/projects/{project}/history"
    with (
        serving(Settings(database=database, exports=tmp_path / "files")) as address,
        Browser(address) as browser,
    ):
        browser.sign_in("bob@example.org")
        page = browser.get(base).text
        assert "&lt;b&gt;" in page
        assert f"{base}/{task.token}" in page
        page = browser.get(f"{base}/{task.token}").text
        token = re.search(r'name="token" value="([^"]+)"', page).group(1)
        values = {"token": token, "choice": other, "comment": "on reflection"}
        assert browser.submit(f"{base}/{task.token}", values).status_code == 303
        last = read_log(engine, task.query.id)[-1]
        assert (str(last.token), last.reason) == (token, "on reflection")
        late = values | {"token": str(new_token())}
        assert browser.submit(f"{base}/{task.token}", late).status_code == 409
        new, old = browser.get(f"/api/v1{base}", headers=bearer(engine, bob)).json()
        assert (new["stands"], old["stands"], new["comment"]) == (True, False, "on reflection")
        assert "purpose" not in new
        assert browser.get(f"{base}/{new_token()}").status_code == 404
