"""Every route with every role: who may not, learns nothing."""

from __future__ import annotations

import re

import httpx2
import pytest
from sqlalchemy import insert

from podium.studio.app import create_app
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Role
from podium.studio.store.tables import Membership
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import bearer
from tests.studio.server import serving


def routes_of(routes):
    """Every method and path of an application."""
    for route in routes:
        router = getattr(route, "original_router", None)
        if router is not None:  # newer FastAPI keeps routers that were included as they are
            yield from routes_of(router.routes)
        elif getattr(route, "methods", None):
            for method in sorted(route.methods - {"HEAD", "OPTIONS"}):
                yield method, route.path


def all_routes():
    app = create_app(Settings(database="sqlite://"))
    return sorted(set(routes_of(app.routes)))


PUBLIC = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("GET", "/sign-in/oidc"),
    ("GET", "/sign-in/oidc/callback"),
    ("GET", "/sign-in/once/{secret}"),
    ("GET", "/join/{secret}"),
    ("POST", "/join/{secret}"),
    ("GET", "/reset"),
    ("POST", "/reset"),
    ("GET", "/reset/{secret}"),
    ("POST", "/reset/{secret}"),
    ("GET", "/crowd/{secret}"),
    ("POST", "/crowd/{secret}"),
}
"""What anyone may ask for."""


def filled(path: str, project: int) -> str:
    path = path.replace("{project}", str(project))
    return re.sub(r"\{[^}]+\}", "1", path)


@pytest.fixture
def house(engine, database, tmp_path):
    """A server; its people by role in one project, and one who has another project."""
    people = make_people(engine, 4)
    owner, manager, assessor, stranger = people
    project = make_project(engine, [owner, manager, assessor])
    make_project(engine, [stranger])

    def promote(connection):
        from sqlalchemy import update

        connection.execute(
            update(Membership)
            .where(Membership.project_id == project, Membership.user_id == manager)
            .values(role=Role.MANAGER.value)
        )

    in_transaction(engine, promote)
    with serving(Settings(database=database, exports=tmp_path)) as address:
        clients = {
            name: httpx2.Client(base_url=address, headers=bearer(engine, who), timeout=30)
            for name, who in zip(("owner", "manager", "assessor", "stranger"), people, strict=True)
        }
        clients["nobody"] = httpx2.Client(base_url=address, timeout=30)
        yield project, clients
        for client in clients.values():
            client.close()


TOKEN = "01a1de90-7f1b-785d-ad71-7935d8361497"
BODIES = {
    "/next": {"tab": "t"},
    "/answers": {"token": TOKEN, "choice": "left", "seconds": 1, "tab": "t"},
    "/undo": {"token": TOKEN, "tab": "t"},
    "/renew": {"token": TOKEN, "tab": "t"},
    "/release": {"token": TOKEN},
}
"""These look at the body before they look at who asks."""


def statuses(client, project, routes):
    def status(method, path):
        body = {"json": BODIES.get("/" + path.rpartition("/")[2], {})}
        if path.endswith("/judge/leave"):  # a form, which browsers send as a page goes away
            body = {"data": {"token": TOKEN}}
        return client.request(method, filled(path, project), **body).status_code

    return {(method, path): status(method, path) for method, path in routes}


def test_nobody_is_let_in_without_signing_in(house):
    project, clients = house
    wanted = [route for route in all_routes() if route not in PUBLIC]
    assert len(wanted) > 10
    found = statuses(clients["nobody"], project, wanted)
    assert {route: code for route, code in found.items() if code not in (401, 403)} == {}


def test_strangers_to_a_project_learn_nothing_of_it(house):
    project, clients = house
    wanted = [route for route in all_routes() if "{project}" in route[1]]
    found = statuses(clients["stranger"], project, wanted)
    assert {route: code for route, code in found.items() if code != 404} == {}
    # It is the same as for a project that is not there.
    assert found == statuses(clients["stranger"], 10**6, wanted)


ASSESSORS = re.compile(
    r"/projects/\{project\}(/judge.*|/guidelines|/next|/answers|/undo|/renew|/release|/leave|/history.*|"
    r"/queries/\{query\}/documents(/.*)?)?$"
)
"""What assessors may ask of their project."""
TRAINEES = {
    ("GET", "/projects/{project}/training"),
    ("GET", "/api/v1/projects/{project}/training/mine"),
    ("POST", "/api/v1/projects/{project}/training/examples/{example}/answer"),
    # For the adjudicator, who may be any member; what is decided is looked at first.
    ("POST", "/api/v1/projects/{project}/adjudication/decisions"),
}
"""What assessors may ask who are in training, or decide where others disagree."""


def test_assessors_can_judge_and_nothing_more(house):
    project, clients = house
    wanted = [
        (method, path)
        for method, path in all_routes()
        if "{project}" in path
        and (method, path) not in TRAINEES
        and not (
            ASSESSORS.search(path)
            and method != "DELETE"
            and not (method in ("PUT", "PATCH") and path.endswith("{project}"))
        )
    ]
    assert len(wanted) > 5
    found = statuses(clients["assessor"], project, wanted)
    assert {route: code for route, code in found.items() if code not in (403, 404)} == {}


def test_only_owners_delete_a_project(house):
    project, clients = house
    path = f"/api/v1/projects/{project}"
    for who, status in (("assessor", 403), ("manager", 403), ("stranger", 404), ("nobody", 401)):
        assert clients[who].request("DELETE", path, json={"name": "Test"}).status_code == status
    assert clients["owner"].get(path).status_code == 200


def test_members_of_one_project_cannot_name_parts_of_another(house):
    """Numbers of queries, jobs, people and so on are looked up within the project only."""
    project, clients = house
    mine = 2  # the stranger's own project
    with_more = [
        route
        for route in all_routes()
        if "{project}" in route[1]
        and route[1].count("{") > 1
        and "{kind}" not in route[1]  # a word, no number
        and route[0] == "GET"
    ]
    assert with_more
    for method, path in with_more:
        # Everything numbered 1 belongs to the first project.
        answer = clients["stranger"].request(method, filled(path, mine), params={"reference": 1})
        assert answer.status_code in (404, 403), (method, path, answer.text)
    assert project == 1


def test_accounts_that_are_disabled_are_out(engine, house):
    from sqlalchemy import update

    from podium.studio.store.tables import User

    project, clients = house
    in_transaction(engine, lambda c: c.execute(update(User).values(disabled=True)))
    for who in ("owner", "assessor"):
        answer = clients[who].post(f"/api/v1/projects/{project}/next", json={"tab": "t"})
        assert answer.status_code == 401


def test_memberships_of_others_do_not_help(engine, house):
    _project, clients = house
    in_transaction(
        engine,
        lambda c: c.execute(
            insert(Membership).values(project_id=2, user_id=1, role=Role.ASSESSOR.value)
        ),
    )
    assert clients["owner"].delete("/api/v1/projects/2").status_code == 403
