"""Jobs are done by a child process of low priority: requests do not wait for them."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import termios
import threading
import time
from array import array
from pathlib import Path

import pytest
from sqlalchemy import select, update

from podium.studio.jobs.process import JobProcess
from podium.studio.jobs.queue import DEAD_AFTER, JobContext, claim, enqueue, new_file
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Job
from tests.studio.factories import make_people, make_project
from tests.studio.postgres import wait_until

DATABASES = ["postgresql"]


@pytest.fixture
def settings(database, tmp_path):
    return Settings(database=database, exports=tmp_path / "exports")


@pytest.fixture
def project(engine):
    (ann,) = make_people(engine, 1)
    return make_project(engine, [ann]), ann


@pytest.fixture
def process(settings):
    process = JobProcess(settings)
    yield process
    process.close()


def children() -> set[int]:
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
            words = (entry.parent / "cmdline").read_text()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == os.getpid() and "podium.studio.job_child" in words:
            found.add(int(entry.parent.name))
    return found


def unread(pipe) -> int:
    """How many bytes of a pipe nobody has read yet."""
    count = array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, count)
    return count[0]


def importing(engine, settings, project, lines=b""):
    """A claimed import of one query, or of some lines."""
    settings.exports.mkdir(exist_ok=True)
    path = new_file(settings, ".upload")
    documents = [{"document_id": name, "text": "t"} for name in "abc"]
    query = {"query_id": path.name, "query": "w", "candidates": documents}
    path.write_bytes(lines or json.dumps(query).encode())
    order = {"source": "candidates", "files": {"candidates": [[path.name, "c.jsonl"]]}}
    in_transaction(engine, lambda c: enqueue(c, *project, "import", order))  # type: ignore[call-arg]
    return claimed(engine, settings)


def claimed(engine, settings):
    row = in_transaction(engine, lambda c: claim(c, "w", ["import"]))
    assert row is not None
    return JobContext(engine, settings, row)


def state(engine, number):
    return reading(engine, lambda c: c.scalar(select(Job.state).where(Job.id == number)))


def not_here(_context):
    raise AssertionError("the job ran in this process")


def test_one_child_of_low_priority_does_all_jobs(engine, settings, project, process, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    others = children()
    for _ in range(2):
        job = importing(engine, settings, project)
        assert process.execute(not_here, job).name == "done"
        assert state(engine, job.job.id) == "done"
    (child,) = children() - others
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, child) == min(ours + 10, 19)
    # Its matrices are small: threads that share one wait for each other.
    assert b"OMP_NUM_THREADS=1" in Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
    process.close()
    assert children() - others == set()


def test_a_child_that_is_killed_leaves_the_job_to_the_next(engine, settings, project, process):
    assert process.execute(not_here, importing(engine, settings, project)).name == "done"
    child = process._child
    child.send_signal(signal.SIGSTOP)  # it does not get to the job
    job = importing(engine, settings, project)

    def kill_once_it_is_asked():
        wait_until(lambda: unread(child.stdin) > 0)
        child.send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill_once_it_is_asked)
    killer.start()
    outcome = process.execute(not_here, job)
    killer.join()
    assert outcome.name == "interrupted"
    assert outcome.error == {"error": "the process of the job ended with -9"}
    assert state(engine, job.job.id) == "running"
    in_transaction(
        engine, lambda c: c.execute(update(Job).values(alive_at=time.time() - DEAD_AFTER - 1))
    )
    again = claimed(engine, settings)
    assert again.job.id == job.job.id
    assert process.execute(not_here, again).name == "done"
    assert state(engine, job.job.id) == "done"


def test_a_job_that_another_worker_has_is_not_done(engine, settings, project, process):
    job = importing(engine, settings, project)
    in_transaction(engine, lambda c: c.execute(update(Job).values(worker="another.1")))
    assert process.execute(not_here, job).name == "lost"
    assert state(engine, job.job.id) == "running"


def test_a_wrong_file_fails_the_job_and_not_the_child(engine, settings, project, process):
    job = importing(engine, settings, project, b"{not json\n")
    assert process.execute(not_here, job).name == "failed"
    assert state(engine, job.job.id) == "failed"
    assert process.execute(not_here, importing(engine, settings, project)).name == "done"


def test_the_child_ends_with_its_server(engine, settings, project):
    ours, theirs = os.pipe()
    job = importing(engine, settings, project)
    server = os.fork()
    if server == 0:
        process = JobProcess(settings)
        process.execute(not_here, job)
        os.write(theirs, str(process._child.pid).encode())  # type: ignore[union-attr]
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(server, 0)
    child = int(os.read(ours, 20))
    os.close(ours)
    os.close(theirs)

    def ended():
        try:
            return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    wait_until(ended)
