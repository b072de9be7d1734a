"""Words of the query marked in a document's HTML, also where that is very long."""

from __future__ import annotations

import time

import pytest

from podium.studio.store.sanitizing import sanitized
from podium.studio.web.documents import MAX_MARKED, mark_terms, picture_addresses, with_pictures


@pytest.mark.parametrize(
    ("markup", "marked"),
    [
        ("Red foxes, redder", "<mark>Red</mark> foxes, redder"),
        ('<p class="red">red</p>', '<p class="red"><mark>red</mark></p>'),
        ("&red; &amp;red", "&red; &amp;<mark>red</mark>"),
        ("a <b>r</b>ed", "a <b>r</b>ed"),
    ],
)
def test_whole_words_are_marked_outside_of_tags_and_entities(markup, marked):
    assert mark_terms(markup, ["red", "fox"]) == marked


@pytest.mark.parametrize("last", ['<p class="red fox">', "&red;", "redder", "<red red>"])
@pytest.mark.parametrize("cut", range(1, 12))
def test_where_marking_ends_nothing_is_torn(last, cut):
    """The last thing that is looked through may be a tag, an entity or a word."""
    begin = "x" * (MAX_MARKED - cut - 1) + " "
    found = mark_terms(f"{begin}{last} red", ["red"])
    assert found in (f"{begin}{last} red", f"{begin}{last} <mark>red</mark>")


def test_the_beginning_of_a_long_document_is_marked_and_the_rest_is_there():
    markup = "red fox " * (MAX_MARKED // 4)
    found = mark_terms(markup, ["red"])
    assert found.replace("<mark>red</mark>", "red") == markup
    assert found.count("<mark>") == MAX_MARKED // 8 + 1  # up to the end of a word
    assert found.endswith(" red fox ")


@pytest.mark.parametrize("part", ["<b>word</b> &amp; ", "some words in a row "])
def test_marking_the_longest_document_takes_little_time(part):
    markup = part * ((2 << 20) // len(part))
    terms = [f"term{n}" for n in range(50)]
    started = time.process_time()
    assert mark_terms(markup, terms) == markup
    assert time.process_time() - started < 0.5


FOX = "https://a.example/fox.png"


@pytest.mark.parametrize(
    ("markup", "shown", "missing"),
    [
        (f'<img src="{FOX}" alt="Fox">', '<img src="data:x" alt="Fox">', 0),
        (f'<img alt="a > b" src="{FOX}">', '<img src="data:x" alt="a &gt; b">', 0),
        ('<img src="https://b.example/" alt="&lt;b&gt; Fox">', "&lt;b&gt; Fox", 1),
        ("<p><img></p><img>", "<p></p>", 2),
        (f"<img title='x' src=\"{FOX}\">", f"<img title='x' src=\"{FOX}\">", 0),
        ("<imgx> no picture", "<imgx> no picture", 0),
    ],
)
def test_pictures_are_in_the_page_or_counted(markup, shown, missing):
    assert with_pictures(markup, {FOX: "data:x"}) == (shown, missing)


def test_what_the_sanitizer_leaves_of_a_picture_is_found():
    markup = sanitized(f'<img onerror="x()" width=3 alt=\'"q"\' src={FOX}?a&b><IMG src=x:y />')
    assert picture_addresses(markup) == [f"{FOX}?a&b"]
    assert with_pictures(markup, {})[1] == 2


def test_finding_pictures_in_the_longest_document_takes_little_time():
    started = time.process_time()
    for part in ("<img ", '<img a="', "<img a a a "):
        with_pictures(part * ((2 << 20) // len(part)), {})
    assert time.process_time() - started < 2
