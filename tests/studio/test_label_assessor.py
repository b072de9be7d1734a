"""Labels of a file as an assessor: what clicks say, held against people like a model."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from podium.clicks import fit_clicks, import_clicks, label_clicks
from podium.data import Candidate, CandidateList, read_qrels, write_qrels
from podium.data.json_lines import json_line
from podium.judging.entries import GRADES
from podium.judging.models.answer_log import read_answers
from podium.studio.accounts.service import sign_in
from podium.studio.errors import RefusedError
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.models import assessors
from podium.studio.models.assessors import MOST_MODELS, LabelSettings
from podium.studio.models.labels import FileLabels
from podium.studio.projects.service import add_queries
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import LogEntry
from podium.studio.web.access import COOKIE
from tests.cli.run_podium import succeed
from tests.data.shared_files import shared
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import Judges, queries_of
from tests.studio.server import serving
from tests.studio.test_models import Manager, judge

DATABASES = BOTH


@pytest.fixture
def settings(database, tmp_path):
    return Settings(database=database, exports=tmp_path / "files")


class Reader(Manager):
    """A manager who adds labels."""

    def add_labels(self, labels, **wanted):
        asked = LabelSettings(labels=labels, **wanted)
        return in_transaction(self.engine, lambda c: assessors.add_labels(c, self.who, asked))


def qrels(labels):
    return "".join(f"{query} 0 {item} {label}\n" for (query, item), label in labels.items())


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The sample's log as judgments of clicks and undecided pairs, and what people said."""
    folder = tmp_path_factory.mktemp("sample")
    source = shared("clicks/chorus-ubi/ubi_queries_events.ndjson.gz")
    log = import_clicks(source, folder / "log")
    model = fit_clicks(log, "ctr")
    labels = label_clicks(model)
    texts = sorted(set(labels.table["query"].to_pylist()))
    names = {text: f"q{number}" for number, text in enumerate(texts)}
    write_qrels(labels.judgments(names=names), folder / "clicks.qrels")
    pairs = [
        json_line({"query": query, "documents": [one, other], "better": better})
        for query, one, other, better in labels.undecided(k=3, names=names)
    ]
    (folder / "undecided.jsonl").write_bytes(b"".join(pairs))
    with gzip.open(shared("clicks/chorus-ubi/esci_us_judgments.json.gz")) as file:
        content = json.load(file)
    grades = {100.0: 3, 10.0: 2, 1.0: 1, 0.0: 0}
    people = {
        (names[each["query"]], rating["docId"]): grades[float(rating["rating"])]
        for each in content["judgmentRatings"]
        if each["query"] in names
        for rating in each["ratings"]
    }
    return folder, people


def test_clicks_of_the_sample_are_audited_as_on_the_command_line(
    engine, settings, sample, tmp_path
):
    folder, truth = sample
    text = (folder / "clicks.qrels").read_text()
    shown = read_qrels(folder / "clicks.qrels")
    people = make_people(engine, 4)
    project = make_project(
        engine, people, queries=0, mode="grades", overlap_share=1.0, overlap_assessors=3
    )
    keys = set(
        zip(shown.query_id_of_row().to_pylist(), shown.document_ids.to_pylist(), strict=True)
    )
    # What was clicked, and some of what nobody saw.
    truth = {
        unit: grade for n, (unit, grade) in enumerate(truth.items()) if unit in keys or not n % 15
    }
    lists = {}
    for query, item in truth:
        lists.setdefault(query, []).append(Candidate(item, text=f"Product {item}"))
    candidates = [CandidateList(name, name, tuple(each)) for name, each in lists.items()]
    in_transaction(engine, lambda c: add_queries(c, row_of(engine, project), candidates))
    # Three people who mostly agree grade everything.
    said = {who: {} for who in people[1:]}
    for who, own in said.items():
        drawn = random.Random(who)
        service, row = Judges(engine), row_of(engine, project)
        given = service.next(row, who, "t")
        while isinstance(given, LeasedTask):
            at = given.query.name
            unit = (at, lists[at][given.task.left].document_id)
            own[unit] = truth[unit] if drawn.random() < 0.7 else drawn.randrange(4)
            choice = GRADES[own[unit]]
            _, given = service.answer(row, who, given.token, choice, seconds=2.0, tab="t")
    reader = Reader(engine, settings, project)
    clicks = reader.add_labels(text)
    result = reader.run(clicks).result
    both = keys & truth.keys()
    queries = set(lists)
    assert len(both) >= 20
    assert result["judgments"] == len(both)
    assert result["left_out"] == {
        "unknown_queries": len({query for query, _ in keys} - queries),
        "unknown_documents": len({key for key in keys if key[0] in queries} - both),
        "unlabeled": len(truth.keys() - both),
    }
    content = reader.audit(clicks)
    assert content["units"] == len(both)
    files = []
    for who, own in said.items():
        files.append(tmp_path / f"{who}.qrels")
        files[-1].write_text(qrels(own))
    printed = succeed("audit", folder / "clicks.qrels", *files, "--json")
    theirs = json.loads(printed)
    assert theirs["units"] == len(both)
    assert theirs["sentence"] == content["conclusion"]["sentence"]
    for name, (value, _, _) in content["figures"].items():
        if name != "length bias":  # the studio knows the texts
            assert theirs["figures"][name]["value"] == pytest.approx(value, nan_ok=True)
    # The same from what the studio exports.
    answers = read_answers(reader.export(content="answers", format="jsonl"))
    assert {(each.query_id, *each.items) for each in answers} == both
    assert {each.requests for each in answers} == {0}


def test_pairs_and_what_is_left_to_people(engine, settings):
    _, bob = people = make_people(engine, 2)
    project = make_project(engine, people, queries=2, items=4, k=3)
    judge(engine, project, [bob])
    # d00 and d01 are equal, d03 has no label, and q1 none at all.
    labels = {
        ("q0", "d00"): 2,
        ("q0", "d01"): 2,
        ("q0", "d02"): 1,
        ("q0", "new"): 1,
        ("q7", "x"): 0,
    }
    before = queries_of(engine, project)
    pairs = {
        query.name: {
            frozenset((entry.left, entry.right))
            for entry in reading(engine, lambda c, query=query: c.execute(
                select(LogEntry.__table__).where(LogEntry.query_id == query.id)).all())
        }
        for query in before
    }  # fmt: skip
    known = {frozenset(each) for each in ((0, 1), (0, 2), (1, 2))}
    asked = pairs["q0"] & known
    left = min(asked - {frozenset((0, 1))}, key=sorted)  # its labels differ
    documents = [f"d{each:02}" for each in left]
    undecided = json.dumps({"query": "q0", "documents": documents, "better": 0.6})
    decided = asked - {frozenset((0, 1)), left}
    reader = Reader(engine, settings, project)
    clicks = reader.add_labels(qrels(labels) + "\n" + undecided, model="shop-clicks")
    run = reader.run(clicks)
    left_out = {
        "unknown_queries": 1,
        "unknown_documents": 1,
        "unlabeled": len(pairs["q0"] - known) + len(pairs["q1"]),
        "undecided": len(asked - decided),
    }
    assert run.result["left_out"] == {name: count for name, count in left_out.items() if count}
    assert run.result["judgments"] == len(decided)
    spent = reader.spending(clicks)
    assert (spent.answers, spent.unusable, spent.requests) == (len(asked), len(asked - decided), 0)
    for one, other in zip(before, queries_of(engine, project), strict=True):
        assert {**one._asdict(), "entries": 0} == {**other._asdict(), "entries": 0}
    # Again: what people judged since, and nothing twice.
    assert reader.run(clicks).result["judgments"] == 0
    assert reader.spending(clicks).answers == len(asked)
    # As a whole: what is decided and what is not comes to an end.
    whole = reader.add_labels(qrels({("q0", f"d{n:02}"): 9 - n for n in range(4)}), scope="all")
    assert reader.run(whole).state == "done"
    top = read_qrels(reader.export(content="labels", format="qrels", model=whole.id))
    best = dict(zip(top.document_ids.to_pylist(), top.labels.tolist(), strict=True))
    assert best == {"d00": 3, "d01": 2, "d02": 1, "d03": 0}


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ("q0 0 d00\n", "line 1"),
        ("q0 0 d00 nan\n", "finite"),
        ("q0 0 d00 1e999\n", "finite"),
        ("q0 0 d00 1\nq0 0 d00 2\n", "d00"),
        ("\x00\x00", "no data"),
        ('{"query": "q0", "documents": ["a", "b"]}', "no data"),
        ('q0 0 d00 1\n{"query": "q0", "documents": ["a"]}', "line 2"),
        ('q0 0 d00 1\n{"query": "q0", "documents": [["a"], {}]}', "line 2"),
        ("q0 0 d00 1\n{" + '"a":{' * 5000, "line 2"),
        ("q0 0 d00 1\n{}", "line 2"),
    ],
)
def test_hostile_files_are_refused(engine, settings, labels, problem):
    reader = Reader(engine, settings, make_project(engine, make_people(engine, 1)))
    with pytest.raises(RefusedError, match=problem.replace("line ", "file, line ")) as refused:
        reader.add_labels(labels)
    assert len(str(refused.value)) < 400


def test_what_else_cannot_be_added(engine, settings):
    people = make_people(engine, 1)
    graded = Reader(engine, settings, make_project(engine, people, mode="grades"))
    for wrong in ("q0 0 d00 0.5\n", "q0 0 d00 5\n", "q0 0 d00 -1\n"):
        with pytest.raises(RefusedError, match="grades are 0 to 4"):
            graded.add_labels(wrong)
    rankings = Reader(engine, settings, make_project(engine, people, mode="rankings"))
    with pytest.raises(RefusedError, match="not rankings"):
        rankings.add_labels("q0 0 d00 1\n")
    reader = Reader(engine, settings, make_project(engine, people))
    for wrong in ({"labels": ""}, {"labels": "q" * (2**20 + 1)}, {"model": "a b"}):
        with pytest.raises(ValidationError):
            reader.add_labels(**{"labels": "q0 0 d00 1", **wrong})
    for _ in range(MOST_MODELS):
        reader.add_labels("q0 0 d00 1\n")
    with pytest.raises(RefusedError, match="at most"):
        reader.add_labels("q0 0 d00 1\n")


def test_labels_by_the_api_and_the_page(engine, settings):
    """A manager uploads files; the assessor judges without being started."""
    ann, bob = people = make_people(engine, 2)
    project = make_project(engine, people, queries=1, items=3, k=2)
    judge(engine, project, [bob])
    base = f"/api/v1/projects/{project}/models"
    with serving(settings) as address, program(engine, address, ann) as client:
        added = client.post(f"{base}/labels", json={"labels": "q0 0 d00 1\nq0 0 d01 0.25\n"})
        assert added.status_code == 201
        content = added.json()
        assert (content["endpoint"], content["model"], content["max_requests"]) == (
            "",
            "clicks",
            None,
        )
        assert content["run"]["state"] in ("waiting", "running", "done")
        assert client.post(f"{base}/labels", json={"labels": "q0"}).status_code == 422
        for path in ("", f"/{content['id']}", f"/{content['id']}/audit"):
            page = client.get(f"/projects/{project}/models{path}", headers={"accept": "text/html"})
            assert page.status_code == 200
            assert "clicks" in page.text
            assert 'action="/projects/1/models/1/budget"' not in page.text
        with Browser(address) as browser:
            browser.cookies.set(COOKIE, in_transaction(engine, lambda c: sign_in(c, ann, 1)).secret)
            files = {
                "labels_file": ("c.qrels", b"q0 0 d00 1\nq0 0 d01 0"),  # without a last newline
                "undecided_file": ("u.jsonl", b'{"query": "q0", "documents": ["d00", "d01"]}\n'),
            }
            form = f"/projects/{project}/models/labels"
            done = browser.submit(form, {"model": "shop", "scope": "judged"}, files)
            assert done.status_code == 303
            number = int(done.headers["location"].rpartition("/")[2])
            row = reading(engine, lambda c: assessors.model_row(c, project, number))
            assert FileLabels(row.rubric).outcome("q0", "d00", "d01") is None
            for content, problem in (
                (b"q" * (2**20 + 1), "too large"),
                (b"\xff", "not UTF-8"),
                (b"q0 0 d00", "the file, line 1"),
            ):
                refused = browser.submit(form, {"model": "shop"}, {"labels_file": ("c", content)})
                assert refused.status_code in (413, 422)
                assert problem in refused.text
        with program(engine, address, bob) as assessor:
            sent = assessor.post(f"{base}/labels", json={"labels": "q0 0 d00 1\n"})
            assert sent.status_code == 403
