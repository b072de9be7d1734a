"""What is kept of accounts, sessions, tokens and invitations, to the second and the character."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from argon2 import PasswordHasher, extract_parameters
from sqlalchemy import insert, select, update

from podium.studio.accounts.service import (
    accept,
    add_user,
    check_password,
    end_access,
    forget_expired,
    hash_password,
    invitation,
    invite,
    link_to_provider,
    new_api_token,
    normal_email,
    sign_in,
    sign_out,
)
from podium.studio.errors import RefusedError
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import (
    ApiToken,
    AuthSession,
    Invitation,
    KnownAddress,
    Membership,
    SignInFailure,
    User,
)
from podium.studio.store.tokens import digest
from tests.studio.databases import BOTH
from tests.studio.factories import PASSWORD, make_people, make_project

DATABASES = BOTH

NOW = 1_700_000_000.0
DAY = 24 * 60 * 60


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.studio.accounts.service.time", SimpleNamespace(time=lambda: NOW))


def rows(engine, table):
    return reading(engine, lambda c: c.execute(select(table.__table__)).all())


def do(engine, function, *arguments, **settings):
    return in_transaction(engine, lambda c: function(c, *arguments, **settings))


def refused(engine, function, *arguments, **settings):
    with pytest.raises(RefusedError) as found:
        do(engine, function, *arguments, **settings)
    return found.value.status


def test_an_account_is_kept_as_given(engine):
    ann = do(engine, add_user, " Ann@Example.org ", " Ann A. ", PASSWORD)
    bob = do(
        engine, add_user, "bob@example.org", "Bob", None, admin=True, subject="s", verified=True
    )
    one, other = sorted(rows(engine, User), key=lambda row: row.id)
    assert (one.id, one.email, one.name) == (ann, "ann@example.org", "Ann A.")
    assert (one.email_verified, one.is_admin, one.disabled) == (False, False, False)
    assert (one.subject, one.created_at) == (None, NOW)
    assert PasswordHasher().verify(one.password, PASSWORD)
    assert (other.id, other.password, other.subject) == (bob, None, "s")
    assert (other.email_verified, other.is_admin, other.disabled) == (True, True, False)


def test_names_have_1_to_200_characters_and_addresses_one_account(engine):
    do(engine, add_user, "a@example.org", "n" * 200, None)
    assert refused(engine, add_user, "b@example.org", "n" * 201, None) == 422
    assert refused(engine, add_user, "b@example.org", " \t", None) == 422
    assert refused(engine, add_user, "A@example.org", "Ann", None) == 409
    do(engine, add_user, "b@example.org", "B", None)
    assert [row.name for row in rows(engine, User)] == ["n" * 200, "B"]


def test_what_an_address_is():
    longest = "a" * (320 - len("@example.org")) + "@example.org"
    assert normal_email(longest) == longest
    for wrong in (f"a{longest}", "ann", "ann@", "@example.org", "a nn@example.org", "a@b@c", ""):
        with pytest.raises(RefusedError) as found:
            normal_email(wrong)
        assert found.value.status == 422


def test_passwords_have_10_to_1000_characters():
    for length in (10, 1000):
        assert PasswordHasher().verify(hash_password("p" * length), "p" * length)
    for length in (0, 9, 1001):
        with pytest.raises(RefusedError) as found:
            hash_password("p" * length)
        assert found.value.status == 422


def test_who_a_password_lets_in(engine):
    ann = do(engine, add_user, "ann@example.org", "Ann", "p" * 1000)
    do(engine, add_user, "bob@example.org", "Bob", None)
    assert do(engine, check_password, " ANN@example.org ", "p" * 1000) == ann
    assert do(engine, check_password, "ann@example.org", "p" * 999) is None
    assert do(engine, check_password, "ann@example.org", "p" * 1001) is None
    assert do(engine, check_password, "bob@example.org", "") is None
    assert do(engine, check_password, "cat@example.org", "p" * 1000) is None
    in_transaction(engine, lambda c: c.execute(update(User).values(disabled=True)))
    assert do(engine, check_password, "ann@example.org", "p" * 1000) is None


def test_a_password_of_weaker_parameters_is_hashed_anew_when_it_is_given(engine):
    weak = PasswordHasher(time_cost=1, memory_cost=1024)
    emails = ("ann@example.org", "bob@example.org")
    ann, bob = (do(engine, add_user, email, "Name", None) for email in emails)
    old = {user: weak.hash(PASSWORD) for user in (ann, bob)}
    for user, known in old.items():
        changed = update(User).where(User.id == user).values(password=known)
        in_transaction(engine, lambda c, changed=changed: c.execute(changed))
    assert do(engine, check_password, emails[0], "a wrong password") is None
    assert {row.id: row.password for row in rows(engine, User)} == old
    assert do(engine, check_password, emails[0], PASSWORD) == ann
    new = {row.id: row.password for row in rows(engine, User)}
    assert new[bob] == old[bob]
    assert extract_parameters(new[ann]) == extract_parameters(hash_password("another one"))
    assert PasswordHasher().verify(new[ann], PASSWORD)
    assert do(engine, check_password, emails[0], PASSWORD) == ann
    assert {row.id: row.password for row in rows(engine, User)} == new  # it is hashed once


def add_session(connection, user, key, expires_at):
    connection.execute(
        insert(AuthSession).values(key=key, user_id=user, csrf="c", expires_at=expires_at)
    )


def test_signing_in_starts_a_session_and_ends_those_that_ran_out(engine):
    (ann,) = make_people(engine, 1)
    do(engine, add_session, ann, "old", NOW - 1)
    do(engine, add_session, ann, "last moment", NOW)
    found = do(engine, sign_in, ann, 500.0)
    assert found.expires_at == NOW + 500 * 60 * 60
    assert found.secret != found.csrf
    kept = {row.key: (row.user_id, row.csrf, row.expires_at) for row in rows(engine, AuthSession)}
    assert kept == {
        "last moment": (ann, "c", NOW),
        digest(found.secret): (ann, found.csrf, found.expires_at),
    }
    do(engine, sign_out, found.secret)
    assert [row.key for row in rows(engine, AuthSession)] == ["last moment"]


def give_access(connection, user):
    sign_in(connection, user, 1.0)
    new_api_token(connection, user, "t", 1.0)
    connection.execute(insert(KnownAddress).values(user_id=user, address="10.0.0.1", last_at=NOW))


def who_has_access(engine):
    tables = (AuthSession, ApiToken, KnownAddress)
    return [sorted(row.user_id for row in rows(engine, table)) for table in tables]


def test_ending_access_is_of_one_person(engine):
    ann, bob = make_people(engine, 2)
    for person in (ann, bob):
        do(engine, give_access, person)
    assert who_has_access(engine) == [[ann, bob]] * 3
    do(engine, end_access, ann)
    assert who_has_access(engine) == [[bob]] * 3


def test_an_account_that_goes_to_the_provider_is_opened_by_nothing_else(engine):
    ann = do(engine, add_user, "ann@example.org", "Ann", PASSWORD)
    bob = do(engine, add_user, "bob@example.org", "Bob", None)
    for person in (ann, bob):
        do(engine, give_access, person)
    do(engine, link_to_provider, ann, "issuer ann")
    linked = {row.id: (row.subject, row.password, row.email_verified) for row in rows(engine, User)}
    assert linked == {ann: ("issuer ann", None, True), bob: (None, None, False)}
    assert who_has_access(engine) == [[bob]] * 3


def test_what_is_forgotten_and_when(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=0)
    failures = {
        "old": (NOW - DAY - 1, NOW - 1),
        "a day": (NOW - DAY, NOW - 1),
        "locked": (NOW - DAY - 1, NOW),
    }
    invitations = {"over": (NOW - 1, 1), "used up": (NOW, 0), "holds": (NOW, 1)}
    addresses = {"old": NOW - 180 * DAY - 1, "known": NOW - 180 * DAY}

    def work(connection):
        for key, (last_at, locked) in failures.items():
            values = {"key": key, "count": 1, "last_at": last_at, "locked_until": locked}
            connection.execute(insert(SignInFailure).values(**values))
        for key, (expires_at, uses) in invitations.items():
            values = {"project_id": project, "role": "assessor", "key": key}
            connection.execute(
                insert(Invitation).values(**values, uses_left=uses, expires_at=expires_at)
            )
        for address, last_at in addresses.items():
            values = {"user_id": ann, "address": address, "last_at": last_at}
            connection.execute(insert(KnownAddress).values(**values))
        add_session(connection, ann, "over", NOW - 1)
        add_session(connection, ann, "holds", NOW)
        forget_expired(connection, NOW)

    in_transaction(engine, work)
    assert {row.key for row in rows(engine, SignInFailure)} == {"a day", "locked"}
    assert [row.key for row in rows(engine, Invitation)] == ["holds"]
    assert [row.address for row in rows(engine, KnownAddress)] == ["known"]
    assert [row.key for row in rows(engine, AuthSession)] == ["holds"]


def test_a_token_is_kept_as_a_digest_until_its_day(engine):
    (ann,) = make_people(engine, 1)
    secret = do(engine, new_api_token, ann, "n" * 201, 30)
    assert secret.startswith("podium_")
    (row,) = rows(engine, ApiToken)
    assert (row.user_id, row.name, row.key) == (ann, "n" * 200, digest(secret))
    assert (row.created_at, row.expires_at) == (NOW, NOW + 30 * DAY)


def test_an_invitation_is_for_one_and_a_week_unless_it_says_else(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=0)
    first = do(engine, invite, project, Role.ASSESSOR)
    second = do(engine, invite, project, Role.MANAGER, uses=3, days=100)
    made = {
        row.key: (row.project_id, row.role, row.uses_left, row.expires_at)
        for row in rows(engine, Invitation)
    }
    assert made == {
        digest(first): (project, "assessor", 1, NOW + 7 * DAY),
        digest(second): (project, "manager", 3, NOW + 100 * DAY),
    }
    assert do(engine, invitation, second).uses_left == 3
    assert do(engine, invitation, "another") is None


def test_an_invitation_makes_members_as_often_as_it_says(engine):
    ann, bob, cat, dan = make_people(engine, 4)
    project = make_project(engine, [ann], queries=0)
    secret = do(engine, invite, project, Role.MANAGER, uses=2)
    assert do(engine, accept, secret, ann) == project  # is the owner already, and stays
    assert do(engine, accept, secret, bob) == project
    assert [row.uses_left for row in rows(engine, Invitation)] == [1]
    assert do(engine, accept, secret, bob) == project  # opens the link again
    assert do(engine, accept, secret, cat) == project
    assert [row.uses_left for row in rows(engine, Invitation)] == [0]
    assert refused(engine, accept, secret, dan) == 404
    roles = {(row.project_id, row.user_id): row.role for row in rows(engine, Membership)}
    assert roles == {
        (project, ann): "owner",
        (project, bob): "manager",
        (project, cat): "manager",
    }


def test_an_invitation_ends_at_its_time(engine):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann], queries=0)
    secret = do(engine, invite, project, Role.ASSESSOR)
    for expires_at in (NOW, NOW - 1):
        changed = update(Invitation).values(expires_at=expires_at)
        in_transaction(engine, lambda c, changed=changed: c.execute(changed))
        assert do(engine, invitation, secret) is None
        assert refused(engine, accept, secret, bob) == 404
    changed = update(Invitation).values(expires_at=NOW + 1)
    in_transaction(engine, lambda c: c.execute(changed))
    assert do(engine, accept, secret, bob) == project
