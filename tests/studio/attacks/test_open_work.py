"""The next task costs the same however much is finished, and no open work is passed over."""

from __future__ import annotations

import random
import threading

import pytest
from sqlalchemy import event, insert, select, text, update

from podium.studio.judging.next_task import OpenWork, reset_if_restored
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.tables import AssessorProgress, Exhausted, ProjectQuery
from tests.studio.attacks.judge_client import let_leases_end
from tests.studio.factories import make_people, make_project, make_query
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges

FINISHED = 20_000


@pytest.fixture
def statements(engine):
    """What the database is asked, while a test looks."""
    seen = []

    def note(_connection, _cursor, statement, *_rest):
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine, "before_cursor_execute", note)


def finish(engine, project, user, count):
    """Put queries into a project, as one import does; someone has judged what is open to them.

    The last one has something for them.
    """

    def work(connection):
        connection.execute(
            text(
                "INSERT INTO queries (project_id, name, text, description, ordered, entries, free,"
                " available, changed, judgments, done, expected_left)"
                " SELECT :project, 'old' || n, '', '', false, 1, 1, true, 1, 1, false, 1"
                " FROM generate_series(1, :count) n"
            ),
            {"project": project, "count": count},
        )
        last = f"old{count}"
        old = select(ProjectQuery.id, ProjectQuery.changed).where(
            ProjectQuery.name.like("old%"), ProjectQuery.name != last
        )
        connection.execute(
            insert(Exhausted).from_select(
                ["query_id", "changed", "user_id"],
                old.add_columns(text(str(user))),
            )
        )

    in_transaction(engine, work)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))


def advance(engine, project, user):
    """As after a look in vain."""

    def work(connection):
        open_work = OpenWork(connection, project, user)
        open_work.exhaust(0)
        open_work.advance()

    in_transaction(engine, work)


def plan_of(engine, project, user):
    """How PostgreSQL finds the next query, run by run."""
    from podium.studio.judging.next_task import _FIND

    def work(connection):
        compiled = _FIND[False].compile(dialect=connection.dialect)
        values = {**compiled.params, "user": user, "project": project}
        explain = f"EXPLAIN (ANALYZE, COSTS OFF) {compiled}"
        rows = connection.exec_driver_sql(explain, values).fetchall()
        return "\n".join(row[0] for row in rows)

    return in_transaction(engine, work)


def test_the_next_query_is_found_by_indexes_alone(engine):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=0, overlap_share=1.0)
    finish(engine, project, ann, FINISHED)
    row = row_of(engine, project)
    advance(engine, row, ann)
    found = in_transaction(engine, lambda c: OpenWork(c, row, ann).find())
    assert found.name == f"old{FINISHED}"
    plan = plan_of(engine, project, ann)
    for table in ("queries", "exhausted"):
        assert f"Seq Scan on {table}" not in plan, plan
    assert "ix_queries_available" in plan, plan
    assert f"rows={FINISHED}" not in plan, plan
    removed = [int(line.split(":")[1]) for line in plan.splitlines() if "Rows Removed" in line]
    assert sum(removed) == 0, plan


def test_a_poll_with_nothing_to_find_locks_nothing_again(engine):
    """One look at each query, and then none until it changes."""
    ann, bob = make_people(engine, 2)
    count = 120
    project = make_project(
        engine, [ann, bob], queries=count, items=2, k=1, overlap_share=1.0, overlap_assessors=2
    )
    service, row = Judges(engine), row_of(engine, project)
    given = service.next(row, ann, "t")
    while isinstance(given, LeasedTask):
        _, given = service.answer(row, ann, given.token, "left", seconds=1, tab="t")
    while given.seconds < 1:  # a request looks at some queries, the next one goes on from there
        given = service.next(row, ann, "t")
    seen = reading(engine, lambda c: c.execute(select(AssessorProgress.open_changed)).scalar_one())
    newest = reading(
        engine, lambda c: c.scalar(select(ProjectQuery.changed).order_by(-ProjectQuery.changed))
    )
    assert seen >= newest
    taken = []
    service.service._states.take = lambda *_: taken.append(1)
    assert service.next(row, ann, "t").why == "wait"
    assert taken == []


def test_whoever_finished_many_queries_gets_the_next_at_once(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=300, items=2, k=1, overlap_share=1.0, overlap_assessors=2
    )
    who = judge(ann, project)
    found = who.next()
    for _ in range(300):
        assert found["state"] == "task"
        found = who.answer(found["task"])["next"]
    assert found["state"] == "wait"


def test_work_that_opens_late_is_found_by_all(engine):
    """Transactions end in another order than they begin: nothing is passed over for that."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=0)
    row = row_of(engine, project)
    slow = engine.connect()
    begun = slow.begin()
    from podium.studio.projects.service import add_query

    add_query(slow, row, make_query("slow", 2))  # has its number, and is not committed
    in_transaction(engine, lambda c: add_query(c, row, make_query("quick", 2)))
    service = Judges(engine)
    given = service.next(row, ann, "t")
    _, after = service.answer(row, ann, given.token, "skip", seconds=1, tab="t")
    assert not isinstance(after, LeasedTask)
    advance(engine, row, ann)
    begun.commit()
    slow.close()
    given = service.next(row, ann, "t")
    assert isinstance(given, LeasedTask)
    assert given.query.name == "slow"


def test_a_backup_loaded_into_another_server_hides_no_work(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    row = row_of(engine, project)
    far = 10**15
    in_transaction(
        engine,
        lambda c: c.execute(
            insert(AssessorProgress).values(
                user_id=ann, project_id=project, judgments=0, seconds=0.0,
                open_changed=far, open_id=0, assigned_changed=far, assigned_id=0,
            )
        ),
    )  # fmt: skip
    assert isinstance(Judges(engine).next(row, ann, "t"), LeasedTask)
    in_transaction(engine, reset_if_restored)
    seen = reading(engine, lambda c: c.execute(select(AssessorProgress.open_changed)).scalar_one())
    assert 0 <= seen < far


def test_every_task_reaches_someone_whatever_people_do(engine, database):
    """Many at once, who skip, undo, leave and go asleep: in the end all is judged."""
    people = make_people(engine, 4)
    project = make_project(
        engine, people, queries=12, items=3, k=1, overlap_share=0.5, overlap_assessors=2
    )
    row = row_of(engine, project)
    errors = []

    def judge(user):
        own = connect(Settings(database=database))
        service, rng = Judges(own), random.Random(user)
        try:
            for _ in range(60):
                found = service.next(row, user, f"tab{rng.randrange(2)}", renews=True)
                if not isinstance(found, LeasedTask):
                    continue
                draw = rng.random()
                if draw < 0.1:
                    service.release(row, user, found.token)
                elif draw < 0.15:
                    let_leases_end(engine)
                elif draw < 0.25:
                    service.answer(row, user, found.token, "left", seconds=1, tab="t", more=False)
                    from podium.studio.store.tokens import new_token

                    service.undo(row, user, new_token(), "t")
                else:
                    best = "left" if found.task.left < found.task.right else "right"
                    service.answer(row, user, found.token, best, seconds=1, tab="t", more=False)
        except Exception as error:
            errors.append(error)
        own.dispose()

    threads = [threading.Thread(target=judge, args=(user,)) for user in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    let_leases_end(engine)
    service = Judges(engine)
    for _ in range(200):
        states = []
        for user in people:
            found = service.next(row, user, "end")
            while isinstance(found, LeasedTask):
                best = "left" if found.task.left < found.task.right else "right"
                _, found = service.answer(row, user, found.token, best, seconds=1, tab="end")
            states.append(found.why)
        if set(states) == {"done"}:
            break
        let_leases_end(engine)
    assert set(states) == {"done"}
    undone = reading(
        engine, lambda c: c.scalars(select(ProjectQuery.id).where(~ProjectQuery.done)).all()
    )
    assert undone == []
    in_transaction(engine, lambda c: c.execute(update(ProjectQuery).values(lease_expiry=None)))


def test_a_query_that_is_assigned_later_is_found(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=4, items=2, k=1, assigned_only=True)
    owner, second = judge(ann, project), judge(bob, project)
    assert owner.post("assignment", people=[ann, bob]).status_code == 200
    assert owner.judge_all() == (2, owner.next())
    assert owner.next()["state"] == "yours-done"
    before = reading(
        engine, lambda c: c.execute(select(ProjectQuery.id, ProjectQuery.changed)).all()
    )
    # Bob's queries go to both: Ann has passed them, and finds them now.
    assert owner.post("assignment", people=[ann, bob], copies=2).status_code == 200
    rows = reading(engine, lambda c: c.execute(select(ProjectQuery.id, ProjectQuery.changed)).all())
    after = {row.id: row.changed for row in rows}
    assert sum(after[query] != changed for query, changed in before) == 2
    assert owner.judge_all()[0] == 2
    assert second.next()["state"] == "done"


def test_an_assignment_that_stays_opens_nothing_again(engine, judge):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3, items=2, k=1, assigned_only=True)
    owner = judge(ann, project)
    numbers = []
    for _ in range(2):
        assert owner.post("assignment", people=[ann]).status_code == 200
        numbers.append(reading(engine, lambda c: c.scalars(select(ProjectQuery.changed)).all()))
    assert numbers[0] == numbers[1]
