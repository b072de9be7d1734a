"""Documents look like the results that users see, and assessors see what managers chose."""

from __future__ import annotations

import io
import json

import pytest
from pydantic import ValidationError
from sqlalchemy import select

from podium.data import Candidate, CandidateList
from podium.errors import DataError
from podium.studio.judging.judged import judged_queries
from podium.studio.projects.changes import change_project
from podium.studio.projects.display import (
    DocumentContent,
    FieldRole,
    ShownField,
    document_fields,
    plain_document,
    price_text,
    shown_document,
)
from podium.studio.projects.service import ProjectSettings, add_query, project_row
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.metadata import plain_fields, storable_metadata
from podium.studio.store.sanitizing import sanitized
from podium.studio.store.tables import QueryCandidate
from podium.studio.transfer.project_copies import copied_queries
from podium.studio.transfer.readers import Upload, read_candidates, read_runs
from podium.studio.transfer.tables import read_table
from podium.studio.transfer.writers import EXPORT_FORMATS
from podium.studio.web.documents import stem, terms_in
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import queries_of
from tests.studio.server import serving

SHOE = DocumentContent(
    "sku1",
    "Trail runner",
    "https://shop.example.org/1",
    "A light shoe.",
    "",
    {
        "brand": "Acme",
        "price": 129.9,
        "tags": ["red", "wide"],
        "stock": {"de": 3},
        "images": ["https://cdn.example.org/1.png", "https://cdn.example.org/2.png"],
        "waterproof": True,
        "none": None,
    },
)
DISPLAY = [
    {"field": "images", "role": "image", "label": ""},
    {"field": "title", "role": "title", "label": ""},
    {"field": "price", "role": "price", "label": "EUR"},
    {"field": "brand", "role": "tag", "label": ""},
    {"field": "stock.de", "role": "value", "label": "In stock"},
    {"field": "waterproof", "role": "value", "label": "Waterproof"},
    {"field": "tags", "role": "tag", "label": "Tags"},
    {"field": "none", "role": "tag", "label": ""},
    {"field": "absent", "role": "snippet", "label": ""},
]


def test_fields_in_their_roles_and_order():
    shown = shown_document(DISPLAY, SHOE)
    assert (shown.title, shown.url, shown.text, shown.html) == ("Trail runner", "", "", "")
    assert shown.fields == (
        ShownField("images", FieldRole.IMAGE, "", "https://cdn.example.org/1.png"),
        ShownField("price", FieldRole.PRICE, "", "129.90 EUR"),
        ShownField("brand", FieldRole.TAG, "", "Acme"),
        ShownField("stock.de", FieldRole.VALUE, "In stock", "3"),
        ShownField("waterproof", FieldRole.VALUE, "Waterproof", "yes"),
        ShownField("tags", FieldRole.TAG, "Tags", "red, wide"),
    )


def test_without_a_list_it_is_title_address_and_text():
    shown = shown_document([], SHOE._replace(html="<p>A light shoe.</p>"))
    assert shown == type(shown)(
        "Trail runner", "https://shop.example.org/1", "A light shoe.", "<p>A light shoe.</p>", ()
    )
    assert shown_document([], SHOE._replace(title="")).title == ""  # nobody reads an id


@pytest.mark.parametrize(
    ("value", "currency", "shown"),
    [
        (17.2, "EUR", "17.20 EUR"),
        ("17.2", "EUR", "17.20 EUR"),
        ("17.2 EUR", "EUR", "17.20 EUR"),
        ("$1429.9", "", "$1,429.90"),
        (0, "EUR", "0.00 EUR"),
        ("17,20 €", "", "17,20 €"),
        ("from 3 to 5", "", "from 3 to 5"),
        ("free", "", "free"),
        (True, "EUR", "yes EUR"),
        ("", "EUR", ""),
        (None, "EUR", ""),
        ("9" * 400, "", "9" * 300),
    ],
)
def test_prices_have_one_format(value, currency, shown):
    assert price_text(value, currency) == shown


def test_a_model_reads_what_people_see():
    plain = plain_document(shown_document(DISPLAY, SHOE))
    assert plain.splitlines() == [
        "Trail runner", "129.90 EUR", "Acme", "In stock: 3", "Waterproof: yes", "Tags: red, wide",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("display", "problem"),
    [
        ([{"field": "a", "role": "script"}], "role"),
        ([{"field": "", "role": "tag"}], "field"),
        ([{"field": "a", "role": "tag"}, {"field": "a", "role": "price"}], "listed twice"),
        ([{"field": "a", "role": "title"}, {"field": "b", "role": "title"}], "shown as title"),
        ([{"field": f"f{n}", "role": "tag"} for n in range(31)], "at most 30"),
    ],
)
def test_what_is_no_list_of_fields_is_refused(display, problem):
    with pytest.raises(ValidationError, match=problem):
        ProjectSettings(name="x", display=display)


def _upload(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return Upload(path, name)


def test_importers_keep_what_else_is_known_of_a_document(tmp_path):
    line = {"query_id": "q", "query": "x", "candidates": [
        {"document_id": "a", "metadata": {"brand": "A", "deep": {"x": [1]}}},
        {"document_id": "b"},
    ]}  # fmt: skip
    (read,) = read_candidates(_upload(tmp_path, "c.jsonl", json.dumps(line)))
    assert read.entry.candidates[0].metadata == {"brand": "A", "deep": {"x": [1]}}
    table = "query,doc_id,title,brand,price\nx,a,Shoe,Acme,12\nx,b,Boot,,7\n"
    (read,) = read_table(_upload(tmp_path, "t.csv", table))
    assert [each.metadata for each in read.entry.candidates] == [
        {"brand": "Acme", "price": "12"},
        {"price": "7"},
    ]
    documents = [
        {"document_id": "a", "text": "A", "brand": "Acme", "vector": [0.5] * 300},
        {"document_id": "b", "text": "B", "metadata": {"price": 3}},
    ]
    lines = "\n".join(json.dumps(each) for each in documents)
    run = _upload(tmp_path, "run", "q Q0 a 1 2 s\nq Q0 b 2 1 s\n")
    (read,) = read_runs([run], _upload(tmp_path, "d.jsonl", lines), None, 10)
    assert [each.metadata for each in read.entry.candidates] == [{"brand": "Acme"}, {"price": 3}]


def test_metadata_within_limits():
    assert storable_metadata({"a\0": ["x\0", {"y": "\ud800"}]}, "d") == {"a": ["x", {"y": "?"}]}
    with pytest.raises(DataError, match="'d' is longer than 64 KiB"):
        storable_metadata({"a": "x" * (64 << 10)}, "d")
    deep: object = 1
    for _ in range(20):
        deep = [deep]
    with pytest.raises(DataError, match="nested too deep"):
        storable_metadata({"a": deep}, "d")
    rows = {"text": "t", "list": [[1]], "ok": [1, "x"], "long": "x" * 9000, "nan": float("inf")}
    assert plain_fields(rows, {"text"}) == {"ok": [1, "x"]}
    many = plain_fields({f"f{n}": "x" * 8000 for n in range(20)}, set())
    assert list(many) == [f"f{n}" for n in range(8)]  # as many as 64 KiB hold


def _shop(engine, people, **settings):
    project = make_project(engine, people, queries=0, **settings)

    def work(connection):
        candidates = tuple(
            Candidate(f"sku{n}", title=f"Secret {n}", text=f"Shoes number {n}", url=f"https://s/{n}",
                      metadata={"brand": f"B{n}", "price": n + 0.5})
            for n in range(3)
        )  # fmt: skip
        add_query(
            connection, project_row(connection, project), CandidateList("q", "a shoe", candidates)
        )

    in_transaction(engine, work)
    return project


def test_metadata_come_back_in_exports_and_copies(engine, service):
    (ann,) = make_people(engine, 1)
    project = _shop(engine, [ann])
    task = service.next(project, ann, "t")
    service.answer(project, ann, task.token, "left", seconds=1, tab="t")
    stream = io.BytesIO()
    queries = judged_queries(engine, row_of(engine, project), only_done=False)
    EXPORT_FORMATS["labels"]["jsonl"].write(stream, engine, queries, False)
    (line,) = stream.getvalue().splitlines()
    expected = [{"brand": f"B{n}", "price": n + 0.5} for n in range(3)]
    assert [each["metadata"] for each in json.loads(line)["candidates"]] == expected
    (copied,) = copied_queries(engine, project)
    assert [each.metadata for each in copied.entry.candidates] == expected
    names = reading(engine, lambda c: [each.name for each in document_fields(c, project)])
    assert names == ["title", "url", "text", "document_id", "brand", "price"]


def test_what_is_hidden_is_nowhere_that_assessors_look(engine, database):
    ann, bob = make_people(engine, 2)
    display = [{"field": "text", "role": "text"}, {"field": "price", "role": "price"}]
    project = _shop(engine, [ann, bob], display=display)
    with serving(Settings(database=database)) as address, program(engine, address, bob) as client:
        base = f"/api/v1/projects/{project}"
        task = client.post(f"{base}/next", json={"tab": "t"})
        refs = [side["documents"][0] for side in task.json()["task"]["sides"]]
        query = task.json()["task"]["query_id"]
        references = "&".join(f"reference={each['reference']}" for each in refs)
        batch = client.get(f"{base}/queries/{query}/documents?{references}")
        single = client.get(f"{base}/queries/{query}/documents/{refs[0]['reference']}")
        page = client.get(f"{base}/queries/{query}/documents/{refs[0]['reference']}/page")
        token = task.json()["task"]["token"]
        answer = {"tab": "t", "token": token, "choice": "left", "seconds": 1}
        answered = client.post(f"{base}/answers", json=answer)
        history = client.get(f"{base}/history")
        for response in (task, batch, single, page, answered, history):
            assert response.status_code == 200
            for secret in ("Secret", "sku", "https://s", '"B0', '"B1', '"B2'):
                assert secret not in response.text
        assert [each["reference"] for each in batch.json()] == [each["reference"] for each in refs]
        assert batch.json()[0]["terms"] == ["shoes"]  # the query has "shoe"
        (field,) = batch.json()[0]["fields"]
        assert (field["role"], field["text"][-3:]) == ("price", ".50")
        assert history.json()[0]["left"].startswith("Document ")
        image = client.get(f"{base}/queries/{query}/documents/{refs[0]['reference']}/image")
        assert (image.status_code, image.json()["detail"]) == (404, "The document has no picture.")
    rows = queries_of(engine, project)
    assert len(rows) == 1


def test_the_page_for_managers(engine, database):
    (ann,) = make_people(engine, 1)
    project = _shop(engine, [ann], mode="grades")
    from podium.studio.accounts.service import sign_in
    from podium.studio.web.access import COOKIE

    with serving(Settings(database=database)) as address, Browser(address) as browser:
        browser.cookies.set(COOKIE, in_transaction(engine, lambda c: sign_in(c, ann, 1)).secret)
        base = f"/projects/{project}/settings/screen"
        page = browser.get(base).text
        for name in ("title", "brand", "price", "document_id"):
            assert f"<code>{name}</code>" in page
        values = {"field-0": "title", "role-0": ""}
        values |= {"field-2": "brand", "role-2": "title", "label-2": ""}  # a row that was moved
        values |= {"field-1": "price", "role-1": "price", "label-1": "EUR"}
        csrf = {"csrf": browser.csrf(base)}
        assert browser.post(f"{base}/fields", data=csrf | values).status_code == 303
        assert row_of(engine, project).display == [
            {"field": "brand", "role": "title", "label": ""},
            {"field": "price", "role": "price", "label": "EUR"},
        ]
        grades = {f"name-{n}": name for n, name in enumerate(("no", "yes", ""))}
        grades |= {"colour-1": "green", "description-1": "It answers <it>."}
        assert browser.post(f"{base}/grades", data=csrf | grades).status_code == 303
        assert row_of(engine, project).scale == [
            {"name": "no", "description": "", "colour": ""},
            {"name": "yes", "description": "It answers <it>.", "colour": "green"},
        ]
        question = {
            "name-0": "why",
            "text-0": "Why?",
            "options-0": "a\r\nb\r\n",
            "required-0": "true",
        }
        assert browser.post(f"{base}/questions", data=csrf | question).status_code == 303
        assert row_of(engine, project).questions == [
            {"name": "why", "text": "Why?", "options": ["a", "b"], "required": True}
        ]
        refused = browser.post(
            f"{base}/questions", data=csrf | {"name-0": "Why!", "text-0": "Why?"}
        )
        assert refused.status_code == 422
        assert "pattern" in refused.text
        assert 'value="Why!"' in refused.text  # what was typed is still there


def test_a_change_is_audited_in_short(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1)
    display = [{"field": f"f{n}", "role": "tag", "label": ""} for n in range(30)]
    in_transaction(engine, lambda c: change_project(c, ann, project, {"display": display}))
    from podium.studio.store.tables import AuditRecord

    details = reading(
        engine, lambda c: c.scalar(select(AuditRecord.details).order_by(AuditRecord.id.desc()))
    )
    assert details["display"][0] == "[]"
    assert len(details["display"][1]) == 101
    assert reading(engine, lambda c: c.scalar(select(QueryCandidate.extra))) == {}


@pytest.mark.parametrize(
    ("forms", "other"),
    [
        (("shoe", "shoes"), "show"),
        (("berry", "berries"), "bear"),
        (("run", "runs", "running"), "runner"),
        (("bake", "bakes", "baked", "baking"), "bakery"),
        (("glass", "glasses"), "glad"),
        (("plan", "planned", "planning"), "plant"),
        (("fall", "falling"), "fail"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms, other):
    assert len({stem(form) for form in forms}) == 1
    assert stem(other) != stem(forms[0])


def test_short_words_and_other_languages_are_their_own_stems():
    for word in ("bed", "sing", "größen", "обувь", "42s", "bus", "this"):
        assert stem(word) == word


def test_terms_are_the_forms_that_a_document_has():
    assert terms_in("Red SHOES for the running", "A red shoe; shoes, she runs. Reddish") == [
        *("red", "runs", "shoe", "shoes"),
    ]
    assert terms_in("the of", "the of") == []
    assert terms_in("größe", "Größe groesse") == ["größe"]


@pytest.mark.parametrize(
    ("markup", "kept"),
    [
        ('<p style="color:red">x</p>', '<p style="color:red">x</p>'),
        ('<p style="position:fixed;top:0;color:red">x</p>', '<p style="color:red">x</p>'),
        ('<p style="background:url(http://x/a)">x</p>', '<p style="">x</p>'),
        ('<p style="background-image:url(x)" onclick="a()">x</p>', '<p style="">x</p>'),
        ('<p dir="rtl" lang="ar">x</p>', '<p dir="rtl" lang="ar">x</p>'),
        ("<style>p{color:red}</style><p>x</p>", "<p>x</p>"),
    ],
)
def test_html_keeps_styles_that_load_nothing(markup, kept):
    assert sanitized(markup) == kept


def test_managers_look_at_fields_before_they_choose_them(engine, database):
    ann, bob = make_people(engine, 2)
    project = _shop(engine, [ann, bob], display=[{"field": "title", "role": "title"}])
    base = f"/api/v1/projects/{project}"
    draft = {"field-0": "price", "role-0": "price", "label-0": "EUR", "field-1": "title"}
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, ann) as manager,
        program(engine, address, bob) as assessor,
    ):
        shown = manager.get(f"{base}/preview").json()
        assert [bool(each["title"]) for each in shown["documents"]] == [True, True]
        assert [each["fields"] for each in shown["documents"]] == [[], []]
        shown = manager.get(f"{base}/preview", params=draft).json()
        assert [each["title"] for each in shown["documents"]] == ["", ""]
        assert shown["task"]["sides"][0]["documents"][0]["title"] == ""
        assert shown["documents"][0]["fields"][0]["text"].endswith("EUR")
        assert row_of(engine, project).display[0]["field"] == "title"  # nothing was saved
        twice = draft | {"role-1": "price", "field-1": "price"}
        refused = manager.get(f"{base}/preview", params=twice).json()
        assert (refused["state"], len(refused["problems"])) == ("blocked", 1)
        assert assessor.get(f"{base}/preview", params=draft).status_code == 403
        # Nor does naming a field show assessors a picture that the project hides.
        task = shown["task"]
        document = f"{base}/queries/{task['query_id']}/documents"
        image = f"{document}/{task['sides'][0]['documents'][0]['reference']}/image?field=brand"
        assert "has no picture" in assessor.get(image).text
        assert "has no picture" not in manager.get(image).text
