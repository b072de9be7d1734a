"""How documents and guidelines are shown: with the query's words marked, and unable to do anything.

Documents' HTML was sanitised before it was stored (`podium.studio.store.sanitizing`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

import nh3
from fastapi.responses import HTMLResponse
from markdown_it import MarkdownIt
from markupsafe import Markup

from podium.studio.messages import Message
from podium.studio.translations import Language

_VOWEL = re.compile(r"[aeiou]|(?<=[^aeiou])y")
_SHORTEST = 4
"""Shorter words have no endings to speak of."""


def stem(word: str) -> str:
    """The stem of a word in small letters.

    Example:
        >>> [stem(word) for word in ("shoes", "shoe", "berries", "running", "runs", "bed", "glass")]
        ['sho', 'sho', 'berri', 'run', 'run', 'bed', 'glass']
    """
    if len(word) < _SHORTEST or not word.isascii() or not word.isalpha():
        return word
    word = _without_plural(word)
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 1 and _VOWEL.search(rest):
            word = _undoubled(rest)
            break
    if word.endswith("y") and _VOWEL.search(word[:-1]):
        return f"{word[:-1]}i"
    if word.endswith("e") and len(word) > 3:
        return word[:-1]
    return word


def _without_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _undoubled(word: str) -> str:
    """Without the second of two same consonants, which an ending doubled."""
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        return word[:-1]
    return word


_POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
        "sandbox allow-same-origin",
    ]
)
"""What a document's page may do: be looked at, and measured by the page around it."""

_STYLE = """
:root { color-scheme: light dark; }
:root:has([style]) { color-scheme: light; background: #fff; color: #1b2230; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 1rem; overflow-wrap: anywhere; }
mark { background: #ffe58a; color: #1a1a1a; border-radius: 2px; }
img, table, pre { max-width: 100%; overflow: auto; }
.note { border-top: 1px solid; padding-top: .5rem; font-size: .85rem; opacity: .75; }
a { pointer-events: none; }
"""
_PICTURE = re.compile(r'<img(?:\s+[\w:-]+(?:="[^"]*")?)*\s*/?>')
_WORD = re.compile(r"\w+", re.UNICODE)
_BOUNDARY = re.compile(r"\W")
_NO_TEXT = r"<[^>]*>?|&[#\w]*;?"
"""Tags and entities; the last one may be cut off."""
MAX_MARKED = 256 << 10
"""How many characters of a document's HTML are looked through for words to mark, each time it is
shown: looking through all of the longest would take seconds."""
_MAX_TERMS = 50
_MAX_WORDS = 50
_COMMON = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "do", "does", "for", "from", "how", "in"}
    | {"is", "it", "of", "on", "or", "that", "the", "to", "was", "what", "when", "where", "which"}
    | {"who", "why", "will", "with"}
)


def terms_in(query: str, *texts: str) -> list[str]:
    """The words of texts worth marking: those that have the stem of a word of the query.

    Only the beginning of a very long text is looked through: see `MAX_MARKED`.

    Example:
        >>> terms_in("How long is the life of a Red fox?", "Foxes live long lives. A red fox.")
        ['fox', 'foxes', 'long', 'red']
    """
    words = dict.fromkeys(word.lower() for word in _WORD.findall(query))
    stems = {stem(word) for word in list(words)[:_MAX_WORDS] if word not in _COMMON}
    if not stems:
        return []
    present = {word for text in texts for word in _WORD.findall(text[:MAX_MARKED].lower())}
    return sorted(word for word in present if stem(word) in stems)[:_MAX_TERMS]


def picture_addresses(markup: str) -> list[str]:
    """The addresses of the pictures in sanitised HTML, each once.

    Example:
        >>> picture_addresses('<img src="https://a.example/?x=1&amp;y=2" alt="A"><img>')
        ['https://a.example/?x=1&y=2']
    """
    addresses = (_attribute(match[0], "src") for match in _PICTURE.finditer(markup))
    return list(dict.fromkeys(filter(None, addresses)))


def with_pictures(markup: str, pictures: Mapping[str, str]) -> tuple[str, int]:
    """Sanitised HTML with its pictures in it, and how many it lacks.

    A picture that it lacks leaves its alternative text: browsers would show it as broken.

    Args:
        markup: The HTML.
        pictures: To the address of each picture that is shown its ``data:`` URL.

    Example:
        >>> with_pictures('<img src="https://a.example/1.png" alt="A fox"> runs', {})
        ('A fox runs', 1)
    """
    missing = 0

    def shown(match: re.Match[str]) -> str:
        nonlocal missing
        data = pictures.get(_attribute(match[0], "src"))
        alternative = html.escape(_attribute(match[0], "alt"))
        if data is None:
            missing += 1
            return alternative
        return f'<img src="{data}" alt="{alternative}">'

    return _PICTURE.sub(shown, markup), missing


def _attribute(tag: str, name: str) -> str:
    match = re.search(rf'\s{name}="([^"]*)"', tag)
    return html.unescape(match[1]) if match else ""


def document_page(
    title: str,
    markup: str,
    terms: list[str],
    pictures: Mapping[str, str],
    language: Language,
) -> HTMLResponse:
    """A page of its own for a document's sanitised HTML."""
    body, missing = with_pictures(mark_terms(markup, terms), pictures)
    if missing:
        note = language.translate(Message("Pictures that are not shown: %(count)s", count=missing))
        body += f'<p class="note" dir="{language.direction}">{html.escape(note)}</p>'
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f'<body dir="auto">{body}</body></html>'
    )
    return HTMLResponse(
        page,
        headers={
            "Content-Security-Policy": _POLICY,
            "Cache-Control": "private, max-age=3600",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        },
    )


def mark_terms(markup: str, terms: list[str]) -> str:
    """Sanitised HTML with some words marked, outside of tags and entities.

    Only the beginning of a very long document is marked: see `MAX_MARKED`.

    Example:
        >>> mark_terms("<p>A red fox</p>", ["red"])
        '<p>A <mark>red</mark> fox</p>'
    """
    if not terms:
        return markup
    end = len(markup)
    if boundary := _BOUNDARY.search(markup, MAX_MARKED):
        end = boundary.start()
    words = "|".join(map(re.escape, terms))
    pattern = re.compile(rf"({_NO_TEXT})|\b(?:{words})\b", re.IGNORECASE)
    return pattern.sub(_mark, markup[:end]) + markup[end:]


def _mark(match: re.Match[str]) -> str:
    return match[0] if match[1] else f"<mark>{match[0]}</mark>"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def guidelines_html(text: str) -> Markup:
    r"""Markdown as HTML; links open another tab, so that nobody loses the page they judge on.

    Example:
        >>> str(guidelines_html("**Best first** <script>"))
        '<p><strong>Best first</strong> &lt;script&gt;</p>\n'
    """
    markup = nh3.clean(
        _MARKDOWN.render(text),
        url_schemes={"http", "https", "mailto"},
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return Markup(markup)  # noqa: S704  # nosec B704 - sanitised above
