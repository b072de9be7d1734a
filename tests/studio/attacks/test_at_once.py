"""What people send about the same query at once is done one after another, each on what is then."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import select, text

from podium.studio.accounts.identity import Member, Person
from podium.studio.errors import RefusedError
from podium.studio.judging.adjudication import adjudicator_of, set_adjudicator
from podium.studio.judging.training import (
    Example,
    allow,
    answer_example,
    begin_again,
    set_training,
    training_state,
)
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import ProjectQuery, TrainingExample
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges, counted, queries_of, read_log
from tests.studio.postgres import wait_until

_WAITING = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


@pytest.fixture
def in_turn(engine):
    """Do things that wait for the same rows, one after the other; returns what came of each."""

    def do(rows, *works):
        results = {}

        def run(number, work):
            results[number] = work()

        threads = []
        with engine.begin() as connection:
            connection.execute(rows.with_for_update())
            for each in enumerate(works):
                threads.append(threading.Thread(target=run, args=each, daemon=True))
                threads[-1].start()
                wait_until(lambda: reading(engine, lambda c: c.scalar(_WAITING)) == len(threads))
        for thread in threads:
            thread.join(60)
        return [results[number] for number in range(len(works))]

    return do


def test_an_answer_after_its_release_does_not_count_if_another_has_the_task(engine, in_turn):
    """It found the lease as it was before it waited for the query."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, mode="grades")
    (query,) = queries_of(engine, project)
    judges = Judges(engine)
    first, second = judges.next(project, ann, "a"), judges.next(project, bob, "b")
    _, (_, then), (late, _) = in_turn(
        select(ProjectQuery.id).where(ProjectQuery.id == query.id),
        lambda: judges.release(project, ann, first.token),
        lambda: judges.answer(project, bob, second.token, "good", tab="b", seconds=1),
        lambda: judges.answer(project, ann, first.token, "bad", tab="a", seconds=1, more=False),
    )
    assert then.task.pair == first.task.pair
    judges.answer(project, bob, then.token, "good", tab="b", seconds=1, more=False)
    assert (late.late, late.counts) == (True, False)
    about = [row for row in read_log(engine, query.id) if row.left == first.task.left]
    assert [(row.user_id, row.counts) for row in about] == [(ann, False), (bob, True)]
    assert counted(engine, query.id) == {ann: 0, bob: 2}


@pytest.fixture
def meanwhile(engine):
    """Do one thing, and another before the first is committed; returns what the other came to."""

    def do(first, second):
        outcome = []

        def run():
            try:
                outcome.append(in_transaction(engine, second))
            except Exception as error:
                outcome.append(error)

        thread = threading.Thread(target=run, daemon=True)
        with engine.begin() as connection:
            first(connection)
            thread.start()
            wait_until(lambda: outcome or reading(engine, lambda c: c.scalar(_WAITING)))
        thread.join(60)
        return outcome[0]

    return do


@pytest.fixture
def training(engine):
    """A project with two examples, its manager, someone to train, and the examples' numbers."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=4)
    manager = Member(Person(ann, "Ann", "", False, "", "en"), Role.OWNER, row_of(engine, project))
    examples = [Example("q0", pair, 1, "It is.") for pair in (("d00", "d01"), ("d02", "d03"))]
    in_transaction(engine, lambda c: set_training(c, manager, examples, 0.5))
    rows = select(TrainingExample.id).order_by(TrainingExample.id)
    return manager, bob, examples, reading(engine, lambda c: c.scalars(rows).all())


def _answer(manager, bob, example):
    return lambda c: answer_example(c, manager.project, bob, example, "left")


def test_who_trains_again_during_the_last_answer_begins_anew(engine, meanwhile, training):
    manager, bob, _, (first, second) = training
    in_transaction(engine, _answer(manager, bob, first))
    meanwhile(_answer(manager, bob, second), lambda c: begin_again(c, manager, bob))
    state = reading(engine, lambda c: training_state(c, manager.project.id, bob))
    assert (state.state, state.answered, state.correct) == (None, 0, 0)


def test_who_is_allowed_during_the_last_answer_may_judge(engine, meanwhile, training):
    manager, bob, _, (first, second) = training
    in_transaction(engine, lambda c: answer_example(c, manager.project, bob, first, "right"))
    wrong = lambda c: answer_example(c, manager.project, bob, second, "right")  # noqa: E731
    assert meanwhile(wrong, lambda c: allow(c, manager, bob)) is None
    state = reading(engine, lambda c: training_state(c, manager.project.id, bob))
    assert (state.state, state.answered, state.may_judge) == ("allowed", 2, True)


def test_examples_replaced_at_once_are_not_mixed(engine, meanwhile, training):
    manager, bob, examples, _ = training
    replace = lambda c: set_training(c, manager, examples[:1], 0.5)  # noqa: E731
    assert meanwhile(replace, replace) == 1
    state = reading(engine, lambda c: training_state(c, manager.project.id, bob))
    assert state.total == 1
    (present,) = reading(engine, lambda c: c.scalars(select(TrainingExample.id)).all())
    refused = meanwhile(replace, _answer(manager, bob, present))
    assert (type(refused), refused.status) == (RefusedError, 404)


def test_two_adjudicators_chosen_at_once_are_one(engine, meanwhile, training):
    manager, bob, *_ = training
    choose = [lambda c, who=who: set_adjudicator(c, manager, who) for who in (bob, 1)]
    assert meanwhile(*choose) is None
    assert reading(engine, lambda c: adjudicator_of(c, manager.project.id)) == 1
