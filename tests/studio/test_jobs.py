"""Jobs are done once, by whoever lives."""

from __future__ import annotations

import os
import threading
import time

import pytest
from sqlalchemy import insert, select, update

from podium.studio.accounts.service import forget_expired, invite, sign_in
from podium.studio.errors import RefusedError
from podium.studio.jobs import queue as jobs
from podium.studio.jobs.queue import (
    DEAD_AFTER,
    MOST_UNDER_WAY,
    JobContext,
    JobLostError,
    cancel,
    claim,
    enqueue,
    forget_old_files,
)
from podium.studio.jobs.worker import Worker
from podium.studio.metrics import Metrics
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import Invitation, Job, SignInFailure
from podium.studio.store.tokens import new_secret
from podium.studio.web.access import COOKIE
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program
from tests.studio.postgres import wait_until
from tests.studio.server import serving

DATABASES = BOTH


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
    dead = JobContext(engine, Settings(), take(engine, "a"))
    assert take(engine, "b") is None
    dead.share = 0.5
    assert dead.alive()
    assert row(engine, number).progress == 0.5
    age(engine, DEAD_AFTER + 1)
    other = JobContext(engine, Settings(), take(engine, "b"))
    assert not dead.alive()
    with pytest.raises(JobLostError):
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
    old, thesis = tmp_path / f"{new_secret()}.upload", tmp_path / "thesis.txt"
    for path in (old, thesis):
        path.write_text("x")
        os.utime(path, (0, 0))
    worker = Worker(Settings(database=database, exports=tmp_path), {"test": work})
    worker.start()
    wait_until(lambda: row(engine, numbers[1]).state == "done")
    wait_until(lambda: not old.exists())  # files that belong to no job do not stay
    worker.stop()
    assert thesis.exists()  # nor is anything of others touched
    assert row(engine, numbers[0]).state == "failed"
    assert "secret" not in row(engine, numbers[0]).error


def test_the_worker_goes_on_after_any_error(engine, database, project, tmp_path, monkeypatch):
    """A disk that is full for a while, say: the thread must not end without a word."""
    failed = threading.Event()

    def no_space(_settings):
        failed.set()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("podium.studio.jobs.worker.files_folder", no_space)
    monkeypatch.setattr("podium.studio.jobs.worker._AFTER_FAILURE", 0.05)
    done = threading.Event()

    def work(job):
        in_transaction(job.engine, lambda c: job.finish(c, {}))
        done.set()

    metrics = Metrics()
    worker = Worker(Settings(database=database, exports=tmp_path), {"test": work}, metrics)
    worker.start()
    assert failed.wait(60)
    wait_until(lambda: b"podium_worker_errors_total 1.0" in metrics.text())
    assert worker.is_alive()
    assert b"podium_workers 1.0" in metrics.text()
    add(engine, project)
    worker.wake()
    assert done.wait(60)
    wait_until(lambda: b'podium_jobs_total{kind="test",outcome="done"} 1.0' in metrics.text())
    worker.stop()
    assert not worker.is_alive()
    assert b"podium_workers 0.0" in metrics.text()


def test_what_expired_is_forgotten(engine, project):
    now = time.time()

    def work(connection):
        for key, last, locked in (("a", now - 90_000, 0), ("b", now, 0), ("c", 0, now + 60)):
            connection.execute(
                insert(SignInFailure).values(key=key, count=1, locked_until=locked, last_at=last)
            )
        for days, uses in ((-1, 1), (1, 0), (1, 1)):
            invite(connection, project[0], Role.ASSESSOR, uses=uses, days=days)
        forget_expired(connection, now)
        keys = connection.scalars(select(SignInFailure.key).order_by(SignInFailure.key)).all()
        return keys, connection.scalars(select(Invitation.uses_left)).all()

    assert in_transaction(engine, work) == (["b", "c"], [1])


def test_a_project_has_a_bound_of_jobs_and_files(engine, project, monkeypatch):
    numbers = [add(engine, project) for _ in range(MOST_UNDER_WAY)]
    with pytest.raises(RefusedError) as refused:
        add(engine, project)
    assert refused.value.status == 429
    add(engine, project, "other")  # a report is worked out all the same
    for number in numbers:
        values = {"state": "done", "file": f"f{number}"}
        in_transaction(
            engine,
            lambda c, n=number, v=values: c.execute(update(Job).where(Job.id == n).values(v)),
        )
    monkeypatch.setattr(jobs, "MAX_FILES", 5)
    gone = in_transaction(engine, lambda c: forget_old_files(c, project[0]))
    # With the one that is about to come there will be five.
    assert sorted(gone) == sorted(f"f{number}" for number in numbers[:-4])


def test_a_job_that_was_cancelled_stops_and_is_not_taken(engine, project):
    waiting, running = add(engine, project), add(engine, project)
    in_transaction(engine, lambda c: cancel(c, row(engine, waiting)))
    work = JobContext(engine, Settings(), take(engine, "a"))
    assert work.job.id == running
    assert take(engine, "b") is None
    work.progress(0.5)
    in_transaction(engine, lambda c: cancel(c, work.job))
    assert not work.alive()
    with pytest.raises(JobLostError):
        work.progress(0.6)
    with pytest.raises(JobLostError):
        in_transaction(engine, lambda c: work.finish(c, {}))
    with pytest.raises(RefusedError, match="already ended"):
        in_transaction(engine, lambda c: cancel(c, work.job))
    assert {row(engine, number).state for number in (waiting, running)} == {"cancelled"}


def test_managers_cancel_imports_and_exports(engine, database, project, tmp_path):
    number, ann = project

    def begun(connection):
        """A job that a worker elsewhere is at."""
        job = enqueue(connection, number, ann, "export", {})
        values = {"state": "running", "worker": "elsewhere", "alive_at": time.time() + 600}
        connection.execute(update(Job).where(Job.id == job).values(values))
        return job

    settings = Settings(database=database, exports=tmp_path)
    with serving(settings) as address, program(engine, address, ann) as client:
        path = f"/api/v1/projects/{number}/jobs"
        job = in_transaction(engine, begun)
        assert client.post(f"{path}/{job}/cancel").json()["state"] == "cancelled"
        assert client.post(f"{path}/{job}/cancel").status_code == 409
        assert client.post(f"{path}/{job + 1}/cancel").status_code == 404
        values = {"kind": "import", "parameters": {"source": "candidates", "files": {}}}
        in_transaction(engine, lambda c: c.execute(update(Job).where(Job.id == job).values(values)))
        job = in_transaction(engine, begun)
        with Browser(address) as browser:
            signed = in_transaction(engine, lambda c: sign_in(c, ann, 1))
            browser.cookies.set(COOKIE, signed.secret)
            page = f"/projects/{number}/export"
            assert f"/projects/{number}/jobs/{job}/cancel" in browser.get(page).text
            assert "Nothing was added." in browser.get(f"/projects/{number}/import").text
            done = browser.submit(f"/projects/{number}/jobs/{job}/cancel")
            assert done.headers["location"] == page
            assert browser.get(page).text.count(">cancelled<") == 1


def test_projects_take_turns(engine):
    """However many jobs one of them has queued."""
    (ann,) = make_people(engine, 1)
    many, one, other = (make_project(engine, [ann], queries=0) for _ in range(3))

    def queue(connection):
        for project in (many, many, many, one, other, one):
            enqueue(connection, project, ann, "import", {})

    in_transaction(engine, queue)
    taken = [in_transaction(engine, lambda c: claim(c, "w", ["import"])) for _ in range(6)]
    assert [job.project_id for job in taken] == [many, one, other, many, one, many]
    assert in_transaction(engine, lambda c: claim(c, "w", ["import"])) is None
