"""Every message is in the catalogues, and every language has all of them, placeholders included."""

from __future__ import annotations

import re

import pytest

from tests.studio.catalogues import (
    ROOT,
    TEMPLATE,
    extracted,
    languages,
    messages_of,
    untranslated,
    updated,
    written,
)

TEMPLATES = ROOT / "src/podium/studio/web/templates"
_JINJA = re.compile(
    r"\{% trans.*?endtrans %\}|\{% block main_class %\}.*?endblock %\}"
    r"|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"(?:aria-label|title|placeholder|alt)=\"(?!http)([^\"]*)\"")
_SENTENCE = re.compile(r"\"([A-Z][^\"\n]* [^\"\n]*)\"")
_PLACEHOLDER = re.compile(r"%\(\w+\)s|%%")
_TAG = re.compile(r"<[^>]*>")
FILES = {file.parts[-3]: file for file in languages()}


@pytest.fixture(scope="module")
def template():
    return extracted()


def test_the_template_has_what_the_sources_say(template):
    assert TEMPLATE.read_text() == written(template), "run: make messages"


def test_messages_come_from_templates_code_and_scripts(template):
    for message, source in {
        "Wrong e-mail or password.": "src/podium/studio/web/routes/signing_in.py",
        "Sign in first.": "src/podium/studio/web/access.py",
        "Forgot your password?": "src/podium/studio/web/templates/sign_in.html",
        "Your last judgment was undone.": "web/judge.ts",
    }.items():
        assert source in [name for name, _ in template[message].locations]


@pytest.mark.parametrize("file", sorted(TEMPLATES.glob("*.html")), ids=lambda file: file.stem)
def test_templates_say_nothing_that_is_not_translated(file):
    text = _JINJA.sub("", file.read_text())
    said = " ".join([*_ATTRIBUTE.findall(text), _TAG.sub(" ", text)])
    assert re.findall(r"[A-Za-z]+", said.replace("Podium Studio", "")) == []


def test_scripts_say_nothing_that_is_not_translated(template):
    sentences = {
        (file.name, sentence)
        for file in (ROOT / "web").glob("*.ts")
        for sentence in _SENTENCE.findall(file.read_text())
    }
    assert {pair for pair in sentences if pair[1] not in template} == set()


def test_german_is_one_of_the_languages():
    assert "de" in FILES


@pytest.mark.parametrize("code", FILES)
def test_a_language_is_complete(template, code):
    file = FILES[code]
    assert file.read_text() == updated(file, template), "run: make messages"
    assert [message.id for message in untranslated(file)] == []


@pytest.mark.parametrize("code", FILES)
def test_translations_have_the_placeholders_and_tags_of_their_messages(code):
    for message in messages_of(FILES[code]):
        one = [message.id] if isinstance(message.id, str) else message.id
        others = [message.string] if isinstance(message.string, str) else message.string
        # The form for several has all placeholders; a form for one may do without the number.
        for translation in others:
            assert _sorted(_PLACEHOLDER, translation) == _sorted(_PLACEHOLDER, one[-1]), one
            assert _sorted(_TAG, translation) == _sorted(_TAG, one[-1]), one
            # Some are values of attributes, which a quotation mark would end.
            assert translation.count('"') <= one[-1].count('"'), one


def _sorted(pattern: re.Pattern[str], text: str) -> list[str]:
    return sorted(pattern.findall(text))
