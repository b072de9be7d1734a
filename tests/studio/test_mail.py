"""E-mail by a real SMTP server: invitations and new passwords."""

from __future__ import annotations

import email
import re
import time

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from sqlalchemy import delete, select, update

from podium.studio.accounts.service import add_user
from podium.studio.jobs import outbox as mail
from podium.studio.jobs.outbox import MOST_ATTEMPTS, Outbox, enqueue_delivery, send_mail
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Delivery, PasswordReset, User
from tests.ports import free_port
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, program
from tests.studio.judging_helpers import Clock
from tests.studio.server import serving


class Inbox:
    """Keeps what was sent; refuses as many messages as the test asks."""

    def __init__(self):
        self.url = ""
        self.messages = []
        self.refuse = 0

    async def handle_DATA(self, _server, _session, envelope):
        if self.refuse:
            self.refuse -= 1
            return "451 try again later"
        self.messages.append((envelope.rcpt_tos, email.message_from_bytes(envelope.content)))
        return "250 OK"

    def links(self):
        return [
            re.search(r"https?://\S+", message.get_payload())[0] for _, message in self.messages
        ]


def check_login(_server, _session, _envelope, _mechanism, auth_data):
    right = isinstance(auth_data, LoginPassword) and auth_data.password == b"p@ss"
    return AuthResult(success=right, handled=False)


@pytest.fixture(scope="module")
def smtp():
    inbox = Inbox()
    controller = Controller(
        inbox, hostname="127.0.0.1", port=free_port(), authenticator=check_login,
        auth_require_tls=False,
    )  # fmt: skip
    controller.start()
    inbox.url = f"smtp://podium:p%40ss@127.0.0.1:{controller.port}"
    yield inbox
    controller.stop()


@pytest.fixture
def inbox(smtp):
    smtp.messages.clear()
    smtp.refuse = 0
    return smtp


@pytest.fixture
def settings(database, inbox):
    return Settings(
        database=database, smtp=inbox.url, mail_from="Podium <podium@example.org>",
        public_url="http://judging.example.org",
    )  # fmt: skip


def wait_for(inbox, count):
    end = time.monotonic() + 120
    while len(inbox.messages) < count:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_projects_name_is_no_part_of_the_e_mail_beyond_its_line(engine, settings, inbox):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], name="Shop\n\nYour password expires:\u2028x\nEvil")
    with serving(settings) as address, program(engine, address, ann) as client:
        client.post(
            f"/api/v1/projects/{project}/invitations", json={"email": "cem@example.org"}
        ).raise_for_status()
        wait_for(inbox, 1)
    text = inbox.messages[0][1].get_payload(decode=True).decode()
    assert '"Shop Your password expires: x Evil"' in text
    assert len(text.splitlines()) == 6


def test_invitations_and_new_passwords(engine, settings, inbox):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    bob = in_transaction(engine, lambda c: add_user(c, "bob@example.org", "Bob", PASSWORD))
    with serving(settings) as address:
        with program(engine, address, ann) as client:
            body = {"email": "cem@example.org"}
            made = client.post(f"/api/v1/projects/{project}/invitations", json=body).json()
            wrong = {"email": "x@y.org\nBcc: z@y.org"}
            refused = client.post(f"/api/v1/projects/{project}/invitations", json=wrong)
            assert refused.status_code == 422
        wait_for(inbox, 1)
        (to, message), link = inbox.messages[0], inbox.links()[0]
        assert (to, message["To"], link) == (["cem@example.org"], "cem@example.org", made["link"])
        assert link.startswith("http://judging.example.org/join/")
        with Browser(address) as stranger:
            answers = [ask(stranger, who) for who in ("nobody@example.org", "bob@example.org")]
            strip = lambda page: re.sub(r'value="[^"]*"', "", page.text)  # noqa: E731
            assert strip(answers[0]) == strip(answers[1])  # nobody learns whether there is one
            wait_for(inbox, 2)
            assert len(inbox.messages) == 2
            link = inbox.links()[1].removeprefix("http://judging.example.org")
            form = form_of(stranger.get(link))
            short = stranger.post(link, data={"password": "short", "form": form})
            assert short.status_code == 422
            done = stranger.post(link, data={"password": "a new password", "form": form_of(short)})
            assert (done.status_code, done.headers["location"]) == (303, "/")
            assert stranger.get(link).status_code == 404  # it works once
        with Browser(address) as browser:
            assert browser.sign_in("bob@example.org").status_code == 401
            assert browser.sign_in("bob@example.org", "a new password").status_code == 303
        with Browser(address) as stranger:
            statuses = [ask(stranger, "bob@example.org").status_code for _ in range(6)]
        assert (statuses[0], 429 in statuses) == (200, True)
    # What was sent is not kept: it has links that let people in.
    sent = reading(engine, lambda c: c.execute(select(Delivery.state, Delivery.content)).all())
    assert all(content == {} for state, content in sent if state == "sent")
    verified = reading(
        engine, lambda c: c.scalar(select(User.email_verified).where(User.id == bob))
    )
    assert verified is True


def ask(browser, who):
    return browser.post("/reset", data={"email": who, "form": form_of(browser.get("/reset"))})


def form_of(page):
    return re.search(r'name="form" value="([^"]+)"', page.text)[1]


def test_links_expire_and_are_of_accounts_with_passwords(engine, settings, inbox):
    in_transaction(engine, lambda c: add_user(c, "bob@example.org", "Bob", PASSWORD))
    in_transaction(engine, lambda c: add_user(c, "oidc@example.org", "Oia", None, subject="x#1"))
    with serving(settings) as address, Browser(address) as browser:
        ask(browser, "oidc@example.org")
        ask(browser, "bob@example.org")
        wait_for(inbox, 1)
        assert [to for to, _ in inbox.messages] == [["bob@example.org"]]
        in_transaction(engine, lambda c: c.execute(update(PasswordReset).values(expires_at=1.0)))
        link = inbox.links()[0].removeprefix("http://judging.example.org")
        assert browser.get(link).status_code == 404


def test_without_a_mail_server_nothing_is_offered(engine, database):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    with serving(Settings(database=database)) as address:
        with Browser(address) as browser:
            assert "Forgot" not in browser.get("/sign-in").text
            assert browser.get("/reset").status_code == 404
        with program(engine, address, ann) as client:
            body = {"email": "cem@example.org"}
            path = f"/api/v1/projects/{project}/invitations"
            assert client.post(path, json=body).status_code == 409


def test_what_the_mail_server_refuses_is_tried_again(engine, settings, inbox):
    clock = Clock()
    outbox = Outbox(settings, clock)
    content = {"to": "x@example.org", "subject": "S", "text": "T"}
    in_transaction(engine, lambda c: enqueue_delivery(c, content))
    inbox.refuse = 1
    clock.now = time.time() + 1
    assert outbox.send_due()
    columns = Delivery.state, Delivery.attempts, Delivery.error
    assert tuple(reading(engine, lambda c: c.execute(select(*columns)).one())) == (
        "waiting", 1, "SMTPDataError: 451",
    )  # fmt: skip
    clock.now += 11
    assert outbox.send_due()
    assert len(inbox.messages) == 1
    outbox._engine.dispose()


def test_what_was_sent_or_given_up_is_not_kept(engine, settings, inbox):
    """Its links let people in."""
    clock = Clock()
    outbox = Outbox(settings, clock)
    content = {"to": "x@example.org", "subject": "S", "text": "a link"}
    for refusals, state in ((0, "sent"), (MOST_ATTEMPTS, "failed")):
        in_transaction(engine, lambda c: c.execute(delete(Delivery)))
        in_transaction(engine, lambda c: enqueue_delivery(c, content))
        inbox.refuse = refusals
        clock.now = time.time() + 1
        while outbox.send_due():
            clock.now += 10**6
        kept = select(Delivery.state, Delivery.content)
        with engine.connect() as connection:
            assert tuple(connection.execute(kept).one()) == (state, {})
    outbox._engine.dispose()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"smtp": "http://127.0.0.1"}, "names no mail server"),
        ({"smtp": "smtp://127.0.0.1:1"}, "ConnectionRefusedError"),
    ],
)
def test_problems_are_named_without_secrets(settings, change, problem):
    wrong = settings.model_copy(update=change)
    content = {"to": "x@example.org", "subject": "S", "text": "T"}
    assert problem in send_mail(wrong, content)
    login = settings.model_copy(update={"smtp": settings.smtp.replace("p%40ss", "wr0ng")})
    assert send_mail(login, content) == "SMTPAuthenticationError: 535"
    assert send_mail(settings, {**content, "subject": "a\nBcc: b@c.d"}) == "ValueError"


def test_no_password_goes_over_an_open_connection(settings, inbox, monkeypatch):
    """This server has no encryption; nothing here says that it is on this machine."""
    may_send = mail.may_send_password
    asked = []

    def seen_from_elsewhere(encrypted, address):
        asked.append((encrypted, address))
        return may_send(encrypted, "192.0.2.1")

    monkeypatch.setattr(mail, "may_send_password", seen_from_elsewhere)
    problem = mail.send_mail(settings, {"to": "x@example.org", "subject": "S", "text": "T"})
    assert problem == "the mail server offers no encryption, so no password was sent"
    assert (asked, inbox.messages) == ([(False, "127.0.0.1")], [])
