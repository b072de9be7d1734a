"""Comments of people who judge, in the spreadsheets of those who export."""

from __future__ import annotations

import csv
import io

from tests.studio.factories import make_people, make_project
from tests.studio.http_client import ended

DATABASES = ["sqlite"]


def test_no_comment_is_a_formula(engine, api, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], mode="grades")
    comments = ["=1+1", "\uff1dcmd", "\ufeff=cmd", "\u200b+cmd", "\n=cmd", "fine"]
    client, manager = judge(bob, project), api(ann)
    for comment in comments:
        client.answer(client.next()["task"], "good", reason=comment)
    path = f"/api/v1/projects/{project}"
    job = manager.post(f"{path}/exports", json={"content": "log", "format": "csv"}).json()
    assert ended(manager, project, job)["state"] == "done"
    text = manager.get(f"{path}/jobs/{job['id']}/file").text
    written = {row["reason"] for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert written == {"fine", *(f"'{comment}" for comment in comments[:-1])}
