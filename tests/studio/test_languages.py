"""The language of pages and messages: whose choice counts, and what strange requests come to."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from podium.studio.accounts.mail import request_reset
from podium.studio.accounts.service import add_user
from podium.studio.judging.blocked import BlockedQueries
from podium.studio.messages import Message
from podium.studio.reporting.dashboard import agreement_words
from podium.studio.reporting.flags import AssessorStats, quality_flags, shown_flags
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from podium.studio.store.tables import Delivery, User
from podium.studio.translations import language
from podium.studio.web.languages import accepted
from tests.studio.databases import sqlite_with_tables
from tests.studio.factories import PASSWORD
from tests.studio.http_client import Browser, program
from tests.studio.server import serving

EMAIL = "ann@example.org"
GERMAN, ENGLISH = '<html lang="de" dir="ltr">', '<html lang="en" dir="ltr">'


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """A database and a server, for all tests here: each has a browser or an account of its own."""
    database = sqlite_with_tables(tmp_path_factory.mktemp("languages") / "studio.db")
    engine = connect(Settings(database=database))
    with serving(Settings(database=database)) as address:
        yield engine, address
    engine.dispose()


@pytest.fixture(scope="module")
def ann(studio):
    return in_transaction(studio[0], lambda c: add_user(c, EMAIL, "Ann Archer", PASSWORD))


def _page(address, path="/sign-in", accept_language="en") -> str:
    with Browser(address) as browser:
        answer = browser.get(path, headers={"accept-language": accept_language})
    assert answer.status_code == 200
    return answer.text


def test_strangers_read_what_their_browser_asks_for(studio):
    german = _page(studio[1], accept_language="de-AT,de;q=0.9,en;q=0.8")
    assert GERMAN in german
    assert "<h1>Anmelden</h1>" in german
    english = _page(studio[1], accept_language="fr,en;q=0.5")
    assert ENGLISH in english
    assert "<h1>Sign in</h1>" in english


@pytest.mark.parametrize(
    "header",
    [
        "", ",", ";", "de;q=", "de;q=nan", "de;q=-1", "de;q=2", "de;q=0", "de;level=1", "*",
        "../../de", "d", "-", "tlh", "de," * 3000, "x" * 10_000, "de;q=1;" * 1500,
        "%64%65", "<script>", "ar",
    ],
)  # fmt: skip
def test_strange_headers_come_to_english(studio, header):
    assert ENGLISH in _page(studio[1], accept_language=header)


def test_the_address_chooses_and_the_browser_keeps_it(studio):
    with Browser(studio[1]) as browser:
        english = {"accept-language": "en"}
        assert GERMAN in browser.get("/sign-in?to=%2Fx&lang=de", headers=english).text
        page = browser.get("/sign-in", headers=english).text
        assert GERMAN in page
        kept = browser.get("/sign-in?to=%2Fx", headers=english).text
        assert 'href="?to=%2Fx&amp;lang=en"' in kept  # the way back keeps what else was asked
        assert ENGLISH in browser.get("/sign-in?lang=en", headers={"accept-language": "de"}).text
        assert ENGLISH in browser.get("/sign-in", headers={"accept-language": "de"}).text


@pytest.mark.parametrize("lang", ["ar", "xx", "de-DE", "../de", "", "DE", "de\x00", "d" * 5000])
def test_languages_that_are_not_there_are_not_chosen(studio, lang):
    with Browser(studio[1]) as browser:
        answer = browser.get("/sign-in", params={"lang": lang})
        assert ENGLISH in answer.text
        assert "podium_language" not in browser.cookies
        browser.cookies.set("podium_language", "ar")
        assert ENGLISH in browser.get("/sign-in").text


@pytest.mark.usefixtures("ann")
def test_the_account_counts_before_cookie_address_and_browser(studio):
    _, address = studio
    with Browser(address) as browser:
        browser.sign_in(EMAIL)
        assert browser.submit("/account/language", {"language": "de"}).status_code == 303
        for path in ("/", "/?lang=en"):
            assert GERMAN in browser.get(path, headers={"accept-language": "en"}).text
        account = browser.get("/account").text
        assert '<option value="de" lang="de" selected>Deutsch</option>' in account
        browser.submit("/sign-out")
        assert GERMAN in browser.get("/sign-in").text
    with Browser(address) as browser:  # another browser, the same account
        browser.sign_in(EMAIL)
        assert GERMAN in browser.get("/", headers={"accept-language": "en"}).text
        assert GERMAN in browser.get("/nowhere", headers={"accept-language": "en"}).text
        browser.submit("/account/language", {"language": ""})
        assert ENGLISH in browser.get("/", headers={"accept-language": "en"}).text
        refused = browser.submit("/account/language", {"language": "xx"})
        assert refused.status_code == 422
        assert "This language is not available." in refused.text


def test_programs_choose_a_language_and_are_told_in_it(studio, ann):
    engine, address = studio
    with program(engine, address, ann) as client:
        path = "/api/v1/projects/999/report"
        english = client.get(path)
        german = client.get(path, headers={"accept-language": "de"})
        assert english.json() == {"detail": "The project does not exist."}
        assert german.json() == {"detail": "Das Projekt gibt es nicht."}
        assert english.status_code == german.status_code == 404
        assert client.put("/api/v1/me/language", json={"language": "de"}).status_code == 204
        assert client.get(path).json() == german.json()
        others = {"accept-language": "en", "cookie": "podium_language=en"}
        assert client.get(f"{path}?lang=en", headers=others).json() == german.json()
        assert client.put("/api/v1/me/language", json={"language": "de-x"}).status_code == 422
        assert client.put("/api/v1/me/language", json={"language": ""}).status_code == 204
        assert client.get(path).json() == english.json()


def test_an_e_mail_is_in_the_language_of_the_account_it_goes_to(studio, ann):
    engine, _ = studio

    def work(connection):
        email = connection.scalar(select(User.email).where(User.id == ann))
        subjects = []
        for code in ("de", ""):
            connection.execute(update(User).where(User.id == ann).values(language=code))
            request_reset(connection, email, "https://x.org", language("en"))
            content = connection.scalar(select(Delivery.content).order_by(Delivery.id.desc()))
            subjects.append(content["subject"])
        return subjects

    assert in_transaction(engine, work) == [
        "Ein neues Passwort für Podium Studio",
        "A new password for Podium Studio",
    ]


def test_languages_are_ranked_by_weight():
    assert accepted("en;q=0.5,de;q=0.7, fr") == ["fr", "de", "en"]
    assert accepted("de;q=0.5,en;q=0.5") == ["de", "en"]
    assert accepted("de" + " " * 1000) == []


def test_messages_are_english_strings_until_they_are_translated():
    message = Message("Too many attempts: wait %(seconds)s seconds.", seconds=1234)
    assert message == "Too many attempts: wait 1,234 seconds."
    german = language("de")
    assert german.translate(message) == "Zu viele Versuche: Warten Sie 1.234 Sekunden."
    assert german.translate(str(message)) == message  # not a message: nobody translates it
    assert german.translate(Message("")) == ""  # and not the head of the catalogue
    assert german.translate(Message("100 % unknown")) == "100 % unknown"


def test_messages_within_messages_and_plurals_are_translated():
    why, remedy = Message("nobody is assigned."), Message("Sign in first.")
    one, several = (BlockedQueries(count, why, remedy).message for count in (1, 1500))
    assert one == "1 query is blocked: nobody is assigned. Sign in first."
    german = language("de").translate
    assert german(one) == (
        "1 Suchanfrage ist blockiert: niemand ist zugewiesen. Melden Sie sich zuerst an."
    )
    assert german(several).startswith("1.500 Suchanfragen sind blockiert: niemand")
    words = agreement_words({"fleiss": 0.5, "fleiss_interval": [0.3, 0.7]})
    assert german(words) == (
        "Die Übereinstimmung über den Zufall hinaus ist mittelmäßig; sie könnte auch nur "
        "ausreichend oder sogar beachtlich sein."
    )


def test_flags_in_a_stored_report_are_translated():
    flags = quality_flags(AssessorStats(gold=(20, 8)))
    stored = {"flags": [str(flag) for flag in flags], "messages": [each.stored() for each in flags]}
    (flag,) = shown_flags(stored)
    assert flag == "Got 8 of 20 gold pairs right; careful assessors get nearly all right."
    assert language("de").translate(flag) == (
        "Hat 8 von 20 Goldpaaren richtig; sorgfältige Bewertende haben fast alle richtig."
    )
    assert shown_flags({"flags": ["as it was"]}) == ["as it was"]  # of an older report


def test_the_judging_page_brings_its_scripts_messages():
    messages = language("de").script_messages
    assert messages["Saved"] == "Gespeichert"
    assert messages["%(count)s judged"] == {
        "one": "%(count)s beurteilt",
        "other": "%(count)s beurteilt",
    }
    assert "Wrong e-mail or password." not in messages  # the server says that one
    assert language("en").script_messages == {}


def test_what_people_write_is_never_taken_for_a_message(studio):
    page = _page(studio[1], "/sign-in?to=%25(x)s%25d&lang=de")
    assert 'name="to" value="%(x)s%d"' in page
