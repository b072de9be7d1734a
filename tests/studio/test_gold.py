"""Any judgment becomes a gold pair or a training example, as it is in the log."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from podium.studio.settings import Settings
from podium.studio.store.database import reading
from podium.studio.store.tables import Gold, TrainingExample
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import program
from tests.studio.judging_helpers import queries_of
from tests.studio.server import serving


@pytest.fixture
def people(engine):
    return make_people(engine, 2)


def judged(client, base, choice, **more):
    """Judge whatever comes next; gives the judgment as the log has it."""
    task = client.post(f"{base}/next", json={"tab": "t"}).json()["task"]
    answer = {"tab": "t", "token": task["token"], "choice": choice, "seconds": 3, **more}
    assert client.post(f"{base}/answers", json=answer).status_code == 200
    return client.get(f"{base}/queries/{task['query_id']}/log").json()[0]


def test_a_judged_pair_becomes_gold_once_and_goes_again(engine, database, people):
    project = make_project(engine, people, queries=1, items=4)
    other = make_project(engine, people, queries=1, items=4)
    (query,) = [row.id for row in queries_of(engine, project)]
    base = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, people[0]) as manager,
        program(engine, address, people[1]) as assessor,
    ):
        task = assessor.post(f"{base}/next", json={"tab": "t"}).json()["task"]
        answer = {"tab": "t", "token": task["token"], "choice": "right", "seconds": 3}
        assert assessor.post(f"{base}/answers", json=answer).status_code == 200
        entry = manager.get(f"{base}/queries/{query}/log").json()[0]
        path = f"{base}/queries/{query}/log/{entry['position']}/gold"
        assert assessor.post(path).status_code == 403
        assert manager.post(path).json() == {"pairs": 1, "share": 0.0}
        (gold,) = reading(engine, lambda c: c.execute(select(Gold.__table__)).all())
        sides = (entry["left"]["position"], entry["right"]["position"])
        assert (gold.left, gold.right, gold.outcome) == (*sides, -1)
        again = manager.post(path)
        assert (again.status_code, "already." in again.text) == (409, True)
        turned = update(Gold).values(left=gold.right, right=gold.left)  # the other one is better
        with engine.begin() as connection:
            connection.execute(turned)
        again = manager.post(path)
        assert (again.status_code, "with another outcome" in again.text) == (409, True)
        assert manager.post(path.replace("/gold", "7/gold")).status_code == 404
        elsewhere = path.replace(f"/projects/{project}/", f"/projects/{other}/")
        assert manager.post(elsewhere).status_code == 404
        remove = f"{base}/gold/{gold.id}"
        assert assessor.delete(remove).status_code == 403
        wrong = manager.delete(remove.replace(f"/projects/{project}/", f"/projects/{other}/"))
        assert wrong.status_code == 404
        assert manager.delete(remove).json()["pairs"] == 0
        # What a manager discarded is right for nobody.
        discard = path.replace("/gold", "/discard")
        assert manager.post(discard, json={}).status_code == 200
        assert manager.post(path).status_code == 409


@pytest.mark.parametrize(("mode", "choice", "value"), [("pairs", "left", 1), ("grades", "good", 2)])
def test_a_judgment_becomes_an_example(engine, database, people, mode, choice, value):
    project = make_project(engine, people, queries=1, items=4, mode=mode)
    base = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, people[0]) as manager,
        program(engine, address, people[1]) as assessor,
    ):
        entry = judged(manager, base, choice)
        path = f"{base}/queries/{entry['query_id']}/log/{entry['position']}/example"
        assert assessor.post(path, json={}).status_code == 403
        made = manager.post(path, json={"explanation": " It is. "}).json()
        assert (made["examples"], made["pass_mark"]) == (1, 0.8)
        (example,) = reading(engine, lambda c: c.execute(select(TrainingExample.__table__)).all())
        assert (example.value, example.explanation) == (value, "It is.")
        assert manager.post(path, json={}).status_code == 409
        own = assessor.get(f"{base}/training/mine").json()["example"]
        answer = assessor.post(
            f"{base}/training/examples/{own['id']}/answer", json={"choice": choice}
        )
        assert answer.json()["correct"] is True
        entry = judged(manager, base, choice)
        path = f"{base}/queries/{entry['query_id']}/log/{entry['position']}/example"
        assert manager.post(path, json={}).json()["examples"] == 2
        texts = reading(engine, lambda c: c.scalars(select(TrainingExample.explanation)).all())
        assert "The managers of this project judge so." in texts
        if mode == "grades":
            assert manager.post(path.replace("/example", "/gold")).status_code in (409, 422)
