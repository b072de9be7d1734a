"""Webhooks: signed, sent once their event is committed, and tried again when they fail."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import column, func, select, table

from podium.studio.accounts.identity import Member, Person
from podium.studio.errors import RefusedError
from podium.studio.jobs.outbox import MOST_ATTEMPTS, Outbox, claim_delivery, enqueue_delivery
from podium.studio.judging import corrections
from podium.studio.judging.service import Answer
from podium.studio.judging.unit_of_work import LeaseHolder
from podium.studio.projects.webhooks import add_webhook, deliveries_of, remove_webhook
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Clock, Judges, judge_all, queries_of
from tests.studio.postgres import wait_until


class Receiver:
    """A server that keeps what it receives, and answers with the next status."""

    def __init__(self):
        self.url = ""
        self.received = []
        self.statuses = []

    def answer(self, path, headers, body):
        self.received.append((path, headers, body))
        return self.statuses.pop(0) if self.statuses else 204


@pytest.fixture
def receiver():
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(kept.answer(self.path, self.headers, body))
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kept.url = f"http://127.0.0.1:{server.server_port}"
    yield kept
    server.shutdown()
    server.server_close()


@pytest.fixture
def settings(database, receiver):
    return Settings(database=database, webhooks=[f"{receiver.url}/hooks"])


@pytest.fixture
def project(engine):
    (ann,) = make_people(engine, 1)
    return make_project(engine, [ann], queries=2, items=2, k=1)


@pytest.fixture
def who(engine, project):
    return Member(Person(1, "", "", False), Role.MANAGER, row_of(engine, project))


@pytest.fixture
def outbox(engine, settings):  # noqa: ARG001 (the engine makes the tables)
    clock = Clock()
    found = Outbox(settings, clock)
    found.clock = clock  # type: ignore[attr-defined]
    yield found
    found._engine.dispose()


def send_all(outbox):
    """Send what is due by now."""
    outbox.clock.now = time.time() + 1
    while outbox.send_due():
        pass


def judge(engine, who):
    service = Judges(engine)
    judge_all(service, who.project, 1, service.next(who.project, 1, "t"))


def test_queries_and_then_the_project_are_done(engine, settings, receiver, who, outbox):
    url = f"{receiver.url}/hooks/podium"
    number, secret = in_transaction(engine, lambda c: add_webhook(c, who, settings, url))
    judge(engine, who)
    assert receiver.received == []
    send_all(outbox)
    events = [json.loads(body) for _, _, body in receiver.received]
    first, second = queries_of(engine, who.project.id)
    assert [(each["event"], each.get("query_id")) for each in events] == [
        ("query.done", first.name), ("query.done", second.name), ("project.done", None),
    ]  # fmt: skip
    for path, headers, body in receiver.received:
        at, sent = (
            part[2:] for part in headers["X-Podium-Signature"].replace("v1", "v").split(",")
        )
        signed = hmac.new(secret.encode(), at.encode() + b"." + body, hashlib.sha256)
        assert (path, sent) == ("/hooks/podium", signed.hexdigest())
        assert headers["X-Podium-Event"] == json.loads(body)["event"]
    assert len({headers["X-Podium-Delivery"] for _, headers, _ in receiver.received}) == 3
    states = reading(engine, lambda c: deliveries_of(c, who.project.id))
    assert [(each.state, each.attempts) for each in states] == [("sent", 1)] * 3
    # What is undone and done again is sent again; what is withdrawn is not done.
    in_transaction(engine, lambda c: corrections.discard(c, who, first.id, 0, None))
    in_transaction(engine, lambda c: corrections.withdraw(c, who, first.id, None))
    send_all(outbox)
    assert [json.loads(body)["event"] for _, _, body in receiver.received[3:]] == ["project.done"]
    in_transaction(engine, lambda c: remove_webhook(c, who, number))
    assert reading(engine, lambda c: deliveries_of(c, who.project.id)) == []


@pytest.mark.parametrize("database_kind", ["postgresql"])
def test_the_last_two_queries_done_at_once(engine, settings, receiver):
    ann, bob = people = make_people(engine, 2)  # one person's answers wait for each other anyway
    project = make_project(engine, people, queries=2, items=2, k=1)
    row = row_of(engine, project)
    who = Member(Person(ann, "", "", False), Role.MANAGER, row)
    in_transaction(engine, lambda c: add_webhook(c, who, settings, f"{receiver.url}/hooks"))
    service = Judges(engine)
    tasks = {person: service.next(row, person, "t") for person in people}
    assert tasks[ann].query.id != tasks[bob].query.id

    def finish(person):
        service.answer(row, person, tasks[person].token, "left", seconds=1, tab="t", more=False)

    other = threading.Thread(target=finish, args=[bob])
    waiting = select(func.count()).where(column("wait_event_type") == "Lock")
    waiting = waiting.select_from(table("pg_stat_activity"))

    def before_it_is_committed(unit):
        assessor = service.service.assessor(unit, row, LeaseHolder(ann, "t"))
        assessor.answer(tasks[ann].token, Answer("left", 1))
        unit.write_back()
        other.start()
        wait_until(lambda: not other.is_alive() or reading(engine, lambda c: c.scalar(waiting)))

    service.service.transact(before_it_is_committed)
    other.join()
    states = reading(engine, lambda c: deliveries_of(c, project))
    events = ["project.done", "query.done", "query.done"]
    assert sorted(each.event for each in states) == events


def test_failures_are_tried_again_ever_later_and_given_up(engine, settings, receiver, who, outbox):
    url = f"{receiver.url}/hooks"
    in_transaction(engine, lambda c: add_webhook(c, who, settings, url))
    in_transaction(engine, lambda c: corrections.withdraw(c, who, 1, None))
    in_transaction(engine, lambda c: corrections.withdraw(c, who, 2, None))
    receiver.statuses = [500, 302] + [503] * MOST_ATTEMPTS
    waits = []
    outbox.clock.now = time.time() + 1
    for attempt in range(MOST_ATTEMPTS):
        assert outbox.send_due()
        assert not outbox.send_due()  # not before its time
        (state,) = reading(engine, lambda c: deliveries_of(c, who.project.id))
        assert state.attempts == attempt + 1
        if attempt == 1:
            assert state.error == "answered 302"
        waits.append(state.next_at - outbox.clock.now)
        outbox.clock.now = state.next_at
    assert state.state == "failed"
    assert waits == pytest.approx([10 * 4**n for n in range(MOST_ATTEMPTS)])
    assert len(receiver.received) == MOST_ATTEMPTS  # no redirect was followed
    assert {path for path, _, _ in receiver.received} == {"/hooks"}


def test_a_failing_webhook_holds_up_no_other_and_no_mail(engine, settings, receiver, who, outbox):
    def work(connection):
        failing, other = (
            add_webhook(connection, who, settings, f"{receiver.url}/hooks/{name}")[0]
            for name in ("failing", "other")
        )
        for webhook in (failing, failing, failing, other, None):
            enqueue_delivery(connection, {"event": "test"}, webhook)
        return failing

    failing = in_transaction(engine, work)
    receiver.statuses = [503]
    outbox.clock.now = time.time() + 1
    mail = in_transaction(engine, lambda c: claim_delivery(c, outbox.clock.now))
    assert mail.url is None
    while outbox.send_due():
        pass
    paths = [path.rpartition("/")[2] for path, _, _ in receiver.received]
    assert paths == ["failing", "other"]
    # What happens meanwhile waits as well.
    in_transaction(engine, lambda c: enqueue_delivery(c, {"event": "test"}, failing))
    outbox.clock.now += 5
    assert not outbox.send_due()
    outbox.clock.now += 5
    while outbox.send_due():
        pass
    assert [path.rpartition("/")[2] for path, _, _ in receiver.received[2:]] == ["failing"] * 4
    states = reading(engine, lambda c: deliveries_of(c, who.project.id))
    assert sorted(each.attempts for each in states) == [1, 1, 1, 1, 2]


def test_what_failed_is_given_up_after_a_day(engine, settings, receiver, who, outbox):
    def work(connection):
        webhook = add_webhook(connection, who, settings, f"{receiver.url}/hooks/old")[0]
        enqueue_delivery(connection, {"event": "test"}, webhook)

    in_transaction(engine, work)
    receiver.statuses = [503]
    outbox.clock.now = time.time() + 86_500
    assert outbox.send_due()
    (state,) = reading(engine, lambda c: deliveries_of(c, who.project.id))
    assert (state.attempts, state.state) == (1, "failed")


def test_only_listed_urls(engine, settings, receiver, who, outbox, database):
    port = receiver.url.rpartition(":")[2]
    for url in (
        f"{receiver.url}/other", f"{receiver.url}/hooks/../other", f"http://localhost:{port}/hooks",
        f"http://a@127.0.0.1:{port}/hooks", "http://169.254.169.254/hooks", "file:///hooks",
    ):  # fmt: skip
        with pytest.raises(RefusedError, match="may not call"):
            in_transaction(engine, lambda c, url=url: add_webhook(c, who, settings, url))
    in_transaction(engine, lambda c: add_webhook(c, who, settings, f"{receiver.url}/hooks"))
    for query in (1, 2):
        in_transaction(engine, lambda c, query=query: corrections.withdraw(c, who, query, None))
    outbox.clock.now = time.time() + 1
    stricter = Outbox(Settings(database=database), outbox.clock)
    assert stricter.send_due()
    stricter._engine.dispose()
    assert receiver.received == []
