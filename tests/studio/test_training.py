"""Training before the first real task: who fails cannot judge until a manager allows it."""

from __future__ import annotations

import io
import json
import time

import pytest

from podium.errors import DataError
from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.service import sign_in
from podium.studio.judging import corrections
from podium.studio.judging.scales import LONGEST_GRADE
from podium.studio.judging.training import read_examples
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Mode, Role
from podium.studio.web.access import COOKIE
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import queries_of
from tests.studio.server import serving


def examples(*outcomes):
    """Examples on the first documents of the first query; the lower number is better."""
    lines = [
        {
            "query_id": "q0", "left": left, "right": right, "outcome": outcome,
            "explanation": f"Because of {left}.",
        }
        for (left, right), outcome in zip((("d00", "d01"), ("d03", "d02")), outcomes, strict=True)
    ]  # fmt: skip
    return "\n".join(map(json.dumps, lines)).encode()


@pytest.fixture
def people(engine):
    return make_people(engine, 3)


@pytest.fixture
def project(engine, people):
    return make_project(engine, people, queries=4, items=4)


def overview(engine, address, project, person):
    with Browser(address) as browser:
        browser.cookies.set(COOKIE, in_transaction(engine, lambda c: sign_in(c, person, 1)).secret)
        return browser.get(f"/projects/{project}/dashboard").text


def test_training_comes_first_and_a_manager_can_allow(engine, database, project, people):
    ann, bob, cem = people
    base = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, ann) as manager,
        program(engine, address, bob) as good,
        program(engine, address, cem) as bad,
    ):
        files = {"examples": examples("left", "right")}
        added = manager.post(f"{base}/training", files=files, data={"pass_mark": 0.75})
        assert (added.status_code, added.json()["examples"]) == (201, 2)
        task = {"tab": "t"}
        assert manager.post(f"{base}/next", json=task).json()["state"] == "task"
        assert good.post(f"{base}/next", json=task).json()["state"] == "training"
        results = {}
        for client, choices in ((good, ("left", "right")), (bad, ("right", "right"))):
            for choice in choices:
                own = client.get(f"{base}/training/mine").json()
                path = f"{base}/training/examples/{own['example']['id']}/answer"
                feedback = client.post(path, json={"choice": choice}).json()
                again = client.post(path, json={"choice": "left"}).json()
                assert again == feedback  # the first answer counts
                results[client, choice, own["answered"]] = feedback
        assert results[good, "left", 0] == {
            "correct": True, "answer": "better than", "choice": "left",
            "explanation": "Because of d00.",
        }  # fmt: skip
        assert results[bad, "right", 0]["correct"] is False
        assert results[bad, "right", 1] == {
            "correct": True, "answer": "worse than", "choice": "right",
            "explanation": "Because of d03.",
        }  # fmt: skip
        assert good.post(f"{base}/next", json=task).json()["state"] == "task"
        assert bad.post(f"{base}/next", json=task).json()["state"] == "training"
        state = {each["user"]: each for each in manager.get(f"{base}/training").json()["people"]}
        assert [(state[who]["state"], state[who]["correct"]) for who in (bob, cem)] == [
            ("passed", 2), ("failed", 1),
        ]  # fmt: skip
        waiting = "1 person got too few examples right"
        assert waiting in overview(engine, address, project, ann)
        assert bad.post(f"{base}/training/people/{cem}/allow").status_code == 403
        manager.post(f"{base}/training/people/{cem}/again")
        assert bad.get(f"{base}/training/mine").json()["answered"] == 0
        assert waiting not in overview(engine, address, project, ann)
        assert bad.post(f"{base}/next", json=task).json()["state"] == "training"
        manager.post(f"{base}/training/people/{cem}/allow")
        assert bad.post(f"{base}/next", json=task).json()["state"] == "task"
        # Examples are replaced: who qualified stays qualified.
        manager.post(f"{base}/training", files=files)
        assert good.post(f"{base}/next", json=task).json()["state"] == "task"
        assert good.get(f"{base}/training/mine").json()["may_judge"] is True
        assert manager.request("DELETE", f"{base}/training").json()["examples"] == 0


def test_one_who_is_stopped_in_the_middle_gets_no_more(engine, database, project, people):
    """Training is set up while Bob judges: his answer counts, and there is no next task."""
    ann, bob, _ = people
    base = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, ann) as manager,
        program(engine, address, bob) as judge,
    ):
        manager.post(f"{base}/training", files={"examples": examples("left", "right")})
        manager.request("DELETE", f"{base}/training")
        token = judge.post(f"{base}/next", json={"tab": "t"}).json()["task"]["token"]
        manager.post(f"{base}/training", files={"examples": examples("left", "right")})
        body = {"tab": "t", "token": token, "choice": "left", "seconds": 1}
        seen = 0
        while True:  # that there is no training is remembered for some seconds
            answered = judge.post(f"{base}/answers", json=body).json()
            seen += 1
            assert (answered["counts"], seen < 1000) == (True, True)
            if answered["next"] is None:
                break
            time.sleep(0.2)
        assert judge.post(f"{base}/next", json={"tab": "t"}).json()["state"] == "training"


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_the_longest_name_of_a_grade_can_be_answered(engine, database, people):
    ann, bob, cem = people
    best = "b" * LONGEST_GRADE
    scale = [{"name": "bad"}, {"name": best}]
    project = make_project(
        engine, people, queries=1, items=2, mode="grades", scale=scale, overlap_share=1.0
    )
    base = f"/api/v1/projects/{project}"
    example = {"query_id": "q0", "document": "d00", "grade": best, "explanation": "It is."}
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, ann) as manager,
        program(engine, address, bob) as client,
        program(engine, address, cem) as other,
    ):
        manager.post(f"{base}/training", files={"examples": json.dumps(example).encode()})
        number = client.get(f"{base}/training/mine").json()["example"]["id"]
        path = f"training/examples/{number}/answer"
        assert client.post(f"{base}/{path}", json={"choice": best}).json()["correct"] is True
        second = f"{base}/training/examples/{number}/answer"
        assert other.post(second, json={"choice": best + "b"}).status_code == 422
        assert other.post(second, json={"choice": best}).status_code == 200
        assert client.post(f"{base}/next", json={"tab": "t"}).json()["state"] == "task"
        manager.put(f"{base}/adjudication/adjudicator", json={"user": ann})
        decision = {"query_id": queries_of(engine, project)[0].id, "left": 0, "choice": best}
        decided = manager.post(f"{base}/adjudication/decisions", json=decision)
        assert decided.status_code == 409  # the grade is one of the project's, but nobody disagrees


def test_examples_with_withdrawn_documents_are_not_asked(engine, database, project, people):
    ann, bob, cem = people
    base = f"/api/v1/projects/{project}"
    who = Member(Person(ann, "Ann", "", False), Role.OWNER, row_of(engine, project))
    query = queries_of(engine, project)[0].id

    def withdraw(document):
        in_transaction(engine, lambda c: corrections.withdraw(c, who, query, document))

    with (
        serving(Settings(database=database)) as address,
        program(engine, address, ann) as manager,
        program(engine, address, bob) as trained,
        program(engine, address, cem) as untrained,
    ):
        manager.post(f"{base}/training", files={"examples": examples("left", "right")})
        first = trained.get(f"{base}/training/mine").json()["example"]["id"]
        answer = f"{base}/training/examples/{first}/answer"
        trained.post(answer, json={"choice": "left"})
        assert trained.get(f"{base}/training/mine").json()["may_judge"] is False
        withdraw(2)
        # Bob has answered all that is left to ask.
        own = trained.get(f"{base}/training/mine").json()
        assert (own["total"], own["example"], own["state"]) == (1, None, "passed")
        assert trained.post(f"{base}/next", json={"tab": "t"}).json()["state"] == "task"
        assert untrained.post(f"{base}/next", json={"tab": "t"}).json()["state"] == "training"
        untrained.post(answer, json={"choice": "right"})
        assert untrained.get(f"{base}/training/mine").json()["state"] == "failed"
        manager.post(f"{base}/training/people/{cem}/again")
        withdraw(0)
        own = untrained.get(f"{base}/training/mine").json()
        assert (own["total"], own["may_judge"]) == (0, True)
        assert untrained.post(f"{base}/next", json={"tab": "t"}).json()["state"] == "task"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "0 examples"),
        (b'{"query_id": "q"}', "not a valid example"),
        (examples("left", "best"), "outcome"),
        (b'{"query_id":"q","left":"a","right":"a","outcome":"tie","explanation":"x"}', "itself"),
        (b'{"query_id":"q","left":"a","right":"b","outcome":"tie","explanation":" "}', "empty"),
        (b'{"query_id":"q","left":1,"right":"b","outcome":"tie","explanation":"x"}', "not a valid"),
    ],
)
def test_wrong_examples(line, problem):
    with pytest.raises(DataError, match=problem):
        read_examples(io.BytesIO(line + b"\n" if line else b""), Mode.PAIRS)


def test_examples_of_documents_that_are_not_there(engine, database, project, people):
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, people[0]) as manager,
    ):
        path = f"/api/v1/projects/{project}/training"
        for old, new in ((b"d00", b"nope"), (b"q0", b"q9")):
            content = examples("left", "right").replace(old, new)
            assert manager.post(path, files={"examples": content}).status_code == 422
        assert manager.get(path).json()["examples"] == 0
