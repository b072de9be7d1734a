"""Members, invitations, tokens, assignment and the audit log."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select, update

from podium.studio.accounts.administration import set_disabled
from podium.studio.accounts.service import accept, add_user
from podium.studio.errors import RefusedError
from podium.studio.judging.next_task import NoTask
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.projects.changes import delete_project
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import Membership, ProjectQuery, QueryAssignment, User
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import Judges
from tests.studio.server import serving


@pytest.fixture
def address(database, tmp_path):
    with serving(Settings(database=database, exports=tmp_path / "files")) as found:
        yield found


def make(engine, project, user, role):
    in_transaction(
        engine,
        lambda c: c.execute(
            update(Membership)
            .where(Membership.project_id == project, Membership.user_id == user)
            .values(role=role.value)
        ),
    )


def test_roles_over_rest(engine, address):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(engine, [ann, bob, cat])
    make(engine, project, bob, Role.MANAGER)
    path = f"/api/v1/projects/{project}/members"
    with program(engine, address, bob) as client:
        assert [each["role"] for each in client.get(path).json()] == [
            "owner",
            "manager",
            "assessor",
        ]
        assert client.patch(f"{path}/{cat}", json={"role": "manager"}).status_code == 204
        assert client.patch(f"{path}/{cat}", json={"role": "owner"}).status_code == 403
        assert client.patch(f"{path}/{ann}", json={"role": "assessor"}).status_code == 403
        assert client.delete(f"{path}/{ann}").status_code == 403
        assert client.patch(f"{path}/999", json={"role": "manager"}).status_code == 404
        assert client.delete(f"{path}/{cat}").status_code == 204
        assert len(client.get(path).json()) == 2
    with program(engine, address, cat) as client:
        assert client.get(path).status_code == 404
    with program(engine, address, ann) as client:
        assert client.patch(f"{path}/{ann}", json={"role": "manager"}).status_code == 409
        assert client.delete(f"{path}/{ann}").status_code == 409
        assert client.patch(f"{path}/{bob}", json={"role": "owner"}).status_code == 204
        assert client.delete(f"{path}/{ann}").status_code == 204


def test_what_a_removed_member_held_is_free_again(engine, address):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    service = Judges(engine)
    held = service.next(row_of(engine, project), bob, "b")
    assert isinstance(service.next(row_of(engine, project), ann, "a"), NoTask)
    with program(engine, address, ann) as client:
        assert client.delete(f"/api/v1/projects/{project}/members/{bob}").status_code == 204
    given = service.next(row_of(engine, project), ann, "a")
    assert isinstance(given, LeasedTask)
    assert given.task.pair == held.task.pair


def test_invitations_over_rest(engine, address):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob])
    make(engine, project, bob, Role.MANAGER)
    path = f"/api/v1/projects/{project}/invitations"
    with program(engine, address, bob) as client:
        made = client.post(path, json={"role": "assessor", "uses": 2})
        assert made.status_code == 201
        assert made.json()["link"].startswith(f"{address}/join/")
        assert client.post(path, json={"role": "owner"}).status_code == 403
        (held,) = client.get(path).json()
        assert held["uses_left"] == 2
        assert client.delete(f"{path}/{held['id']}").status_code == 204
        assert client.delete(f"{path}/{held['id']}").status_code == 404
        assert client.get(made.json()["link"]).status_code == 404
        audit = client.get(f"/api/v1/projects/{project}/audit").json()
        assert [each["action"] for each in audit][:2] == [
            "revoked an invitation",
            "created an invitation",
        ]
        later = client.get(
            f"/api/v1/projects/{project}/audit", params={"before": audit[0]["id"], "limit": 1}
        ).json()
        assert later == audit[1:2]


def test_a_new_project_has_no_part_in_the_audit_log_of_a_deleted_one(engine, address):
    """SQLite gives it the same number."""
    ann, bob = make_people(engine, 2)
    deleted = row_of(engine, make_project(engine, [ann]))
    in_transaction(engine, lambda c: delete_project(c, ann, deleted, deleted.name))
    project = make_project(engine, [bob])
    path = f"/api/v1/projects/{project}/audit"
    with program(engine, address, bob) as client:
        assert [each["action"] for each in client.get(path).json()] == ["created the project"]


def test_queries_are_shared_out_evenly(engine, address):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(engine, [ann, bob, cat], queries=6, assigned_only=True)
    path = f"/api/v1/projects/{project}/assignment"
    with program(engine, address, ann) as client:
        shares = client.post(path, json={"people": [bob, cat]}).json()
        assert {each["user"]: each["queries"] for each in shares} == {ann: 0, bob: 3, cat: 3}
        shares = client.post(path, json={"copies": 2, "method": "rotate"}).json()
        assert [each["queries"] for each in shares] == [4, 4, 4]
        queries = reading(engine, lambda c: c.scalars(select(QueryAssignment.query_id)).all())
        assert sorted(queries) == sorted(
            2 * reading(engine, lambda c: c.scalars(select(ProjectQuery.id)).all())
        )
        assert client.post(path, json={"copies": 4}).status_code == 422
        assert client.post(path, json={"people": [999]}).status_code == 422
        assert client.delete(path, params={"user": bob}).status_code == 204
        assert [each["queries"] for each in client.get(path).json()] == [4, 0, 4]
        assert isinstance(Judges(engine).next(row_of(engine, project), bob, "t"), NoTask)
        assert client.delete(path).status_code == 204
        assert [each["queries"] for each in client.get(path).json()] == [0, 0, 0]


def test_disabled_accounts_are_assigned_nothing(engine, address):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(engine, [ann, bob, cat], queries=4, assigned_only=True)
    in_transaction(engine, lambda c: set_disabled(c, ann, bob, disabled=True))
    path = f"/api/v1/projects/{project}/assignment"
    with program(engine, address, ann) as client:
        refused = client.post(path, json={"people": [bob, cat]})
        assert (refused.status_code, refused.json()["detail"]) == (
            422, "The account of Person 1 is disabled: choose someone else.",
        )  # fmt: skip
        shares = client.post(path, json={}).json()
        assert {each["user"]: each["queries"] for each in shares} == {ann: 2, bob: 0, cat: 2}


def test_the_pages_about_people(engine, address):
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann <i>", PASSWORD))
    (bob,) = make_people(engine, 1)
    project = make_project(engine, [ann, bob])
    home = f"/projects/{project}"
    with Browser(address) as browser:
        browser.sign_in("ann@example.org")
        assert "Ann &lt;i&gt;" in browser.get(f"{home}/people").text
        assert browser.submit(f"{home}/people/{bob}/role", {"role": "manager"}).status_code == 303
        assert browser.submit(f"{home}/people/{bob}/role", {"role": "king"}).status_code == 422
        assert browser.submit(f"{home}/people/{ann}/remove").status_code == 409
        made = browser.submit(f"{home}/invitations", {"role": "assessor", "uses": "1", "days": "1"})
        assert f"{address}/join/" in made.text
        assert "/join/" not in browser.get(f"{home}/people").text
        number = re.search(r"/invitations/(\d+)/revoke", made.text).group(1)
        assert browser.submit(f"{home}/invitations/{number}/revoke").status_code == 303
        assert browser.submit(f"{home}/invitations", {"role": "x"}).status_code == 422
        shared = browser.submit(f"{home}/assignment", {"people": [str(bob)], "copies": "1"})
        assert shared.status_code == 303
        assert browser.submit(f"{home}/assignment", {"copies": "9"}).status_code == 422
        assert browser.submit(f"{home}/assignment", {"people": ["x"]}).status_code == 422
        assert "Assign queries" in browser.get(f"{home}/assignment").text
        assert browser.submit(f"{home}/assignment/remove", {"user": str(bob)}).status_code == 303
        page = browser.get(f"{home}/audit").text
        assert "assigned the queries" in page
        assert "removed assignments" in page
        assert browser.submit(f"{home}/people/{bob}/remove").status_code == 303


def test_many_people_are_added_by_their_addresses(engine, address):
    ann, bob = make_people(engine, 2)
    cat = in_transaction(
        engine, lambda c: add_user(c, "cat@example.org", "Cat", None, verified=True)
    )
    squatter = in_transaction(engine, lambda c: add_user(c, "dan@example.org", "Dan", None))
    project = make_project(engine, [ann, bob])
    home = f"/api/v1/projects/{project}"
    with program(engine, address, ann) as client:
        sent = ["Cat@example.org", "dan@example.org", "new@example.org", "cat@example.org"]
        made = client.post(f"{home}/members", json={"addresses": sent})
        assert made.status_code == 201
        assert [(each["email"], each["added"]) for each in made.json()] == [
            ("cat@example.org", True), ("dan@example.org", False), ("new@example.org", False),
        ]  # fmt: skip
        # Nobody has shown that Dan's address is theirs: whoever reads its mail gets the link.
        members = {each["user"] for each in client.get(f"{home}/members").json()}
        assert members == {ann, bob, cat}
        assert squatter not in members
        held = client.get(f"{home}/invitations").json()
        assert [each["email"] for each in held] == ["dan@example.org", "new@example.org"]
        refused = client.post(f"{home}/members", json={"addresses": ["eve@example.org", "eve"]})
        assert refused.json()["detail"] == "“eve” is not an e-mail address; nobody was added."
        assert len(client.get(f"{home}/invitations").json()) == 2
        owner = {"addresses": ["eve@example.org"], "role": "owner"}
        make(engine, project, bob, Role.MANAGER)
    with program(engine, address, bob) as client:
        assert client.post(f"{home}/members", json=owner).status_code == 403


def test_removing_an_assessor_revokes_the_link_by_which_they_came_alone(engine, address):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann])
    home = f"/api/v1/projects/{project}"
    with program(engine, address, ann) as client:
        links = [
            client.post(f"{home}/invitations", json={"uses": 9}).json()["link"] for _ in range(2)
        ]
        secrets = [link.rpartition("/")[2] for link in links]
        in_transaction(engine, lambda c: accept(c, secrets[0], bob))
        assert client.delete(f"{home}/members/{bob}").status_code == 204
        assert [client.get(link).status_code for link in links] == [404, 200]
        with program(engine, address, bob) as removed:
            told = removed.get(home)
            assert told.status_code == 404
            assert "A manager removed you from this project" in told.json()["detail"]
        with pytest.raises(RefusedError, match="removed you"):
            in_transaction(engine, lambda c: accept(c, secrets[1], bob))
        verify = update(User).where(User.id == bob).values(email_verified=True)
        in_transaction(engine, lambda c: c.execute(verify))
        email = reading(engine, lambda c: c.scalar(select(User.email).where(User.id == bob)))
        (back,) = client.post(f"{home}/members", json={"addresses": [email]}).json()
        assert back["added"]
        # A manager may have seen every link.
        make(engine, project, bob, Role.MANAGER)
        assert client.delete(f"{home}/members/{bob}").status_code == 204
        assert client.get(links[1]).status_code == 404


def test_tokens_are_shown_once_and_can_be_revoked(engine, address):
    in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD))
    with Browser(address) as browser:
        browser.sign_in("ann@example.org")
        made = browser.submit("/tokens", {"name": "notebook", "days": "30"})
        secret = re.search(r"podium_[\w-]+", made.text).group(0)
        assert secret not in browser.get("/tokens").text
        login = {"authorization": f"Bearer {secret}"}
        with Browser(address) as plain:
            assert plain.get("/api/v1/projects", headers=login).json() == []
            # Whoever stole it must not have access for longer than it has.
            more = plain.post("/tokens", headers=login, data={"name": "more", "days": "365"})
            assert (more.status_code, "podium_" in more.text) == (403, False)
            number = re.search(r"/tokens/(\d+)/revoke", made.text).group(1)
            assert browser.submit(f"/tokens/{number}/revoke").status_code == 303
            assert browser.submit(f"/tokens/{number}/revoke").status_code == 404
            assert plain.get("/api/v1/projects", headers=login).status_code == 401
        assert browser.submit("/tokens", {"name": "x", "days": "9999"}).status_code == 422
