"""Jobs are done once, by whoever lives."""

from __future__ import annotations

import os
import threading
import time

import pytest
from sqlalchemy import select, update

from podium.studio.database import in_transaction, reading
from podium.studio.jobs import DEAD_AFTER, LostError, Work, claim, enqueue
from podium.studio.settings import Settings
from podium.studio.tables import Job
from podium.studio.worker import Worker
from tests.studio.making import make_people, make_project
from tests.studio.postgres import wait_until


@pytest.fixture
def project(engine):
    (ann,) = make_people(engine, 1)
    return make_project(engine, [ann]), ann


def add(engine, project, kind="test"):
    return in_transaction(engine, lambda c: enqueue(c, *project, kind, {}))  # type: ignore[call-arg]


def take(engine, worker):
    return in_transaction(engine, lambda c: claim(c, worker, ["test"]))


def row(engine, number):
    return reading(engine, lambda c: c.execute(select(Job.__table__).where(Job.id == number)).one())


def age(engine, seconds):
    then = time.time() - seconds
    in_transaction(engine, lambda c: c.execute(update(Job).values(alive_at=then)))


def test_oldest_first_and_each_once(engine, project):
    first, second = add(engine, project), add(engine, project)
    add(engine, project, "other")
    assert take(engine, "a").id == first
    assert take(engine, "b").id == second
    assert take(engine, "c") is None


def test_a_dead_workers_job_goes_to_another_and_cannot_come_back(engine, project):
    number = add(engine, project)
    dead = Work(engine, Settings(), take(engine, "a"))
    assert take(engine, "b") is None
    dead.share = 0.5
    assert dead.alive()
    assert row(engine, number).progress == 0.5
    age(engine, DEAD_AFTER + 1)
    other = Work(engine, Settings(), take(engine, "b"))
    assert not dead.alive()
    with pytest.raises(LostError):
        in_transaction(engine, lambda c: dead.finish(c, {}))
    dead.fail("too late")
    in_transaction(engine, lambda c: other.finish(c, {"rows": 3}, "file"))
    found = row(engine, number)
    assert (found.state, found.result, found.file) == ("done", {"rows": 3}, "file")
    assert found.error is None


def test_a_job_that_kills_its_workers_is_given_up(engine, project):
    number = add(engine, project)
    for _ in range(3):
        assert take(engine, "a").id == number
        age(engine, DEAD_AFTER + 1)
    assert take(engine, "a") is None
    assert row(engine, number).state == "failed"
    assert "3 times" in row(engine, number).error


def test_two_workers_share_the_jobs(engine, database, project, tmp_path):
    done = []
    lock = threading.Lock()

    def work(job):
        in_transaction(job.engine, lambda c: job.finish(c, {}))
        with lock:
            done.append(job.job.id)

    numbers = [add(engine, project) for _ in range(20)]
    settings = Settings(database=database, exports=tmp_path)
    workers = [Worker(settings, {"test": work}) for _ in range(2)]
    for worker in workers:
        worker.start()
    wait_until(lambda: len(done) == len(numbers))
    for worker in workers:
        worker.stop()
    assert sorted(done) == numbers


def test_a_job_that_fails_says_so_and_the_next_is_taken(engine, database, project, tmp_path):
    def work(job):
        if job.job.id == numbers[0]:
            raise RuntimeError("a secret of the server")
        in_transaction(job.engine, lambda c: job.finish(c, {}))

    numbers = [add(engine, project) for _ in range(2)]
    old = tmp_path / "old"
    old.write_text("x")
    os.utime(old, (0, 0))
    worker = Worker(Settings(database=database, exports=tmp_path), {"test": work})
    worker.start()
    wait_until(lambda: row(engine, numbers[1]).state == "done")
    wait_until(lambda: not old.exists())  # files that belong to no job do not stay
    worker.stop()
    assert row(engine, numbers[0]).state == "failed"
    assert "secret" not in row(engine, numbers[0]).error
