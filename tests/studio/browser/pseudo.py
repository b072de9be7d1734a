"""A language that nobody speaks, written from right to left: all messages in other letters.

No translation into such a language is complete, and none of them is offered; tests install this one
as Arabic, whose letters and plural forms it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from podium.studio import translations
from tests.studio.catalogues import TEMPLATE, written

CODE = "ar"
_LETTERS = dict(zip("abcdefghijklmnopqrstuvwxyz", "ابتثجحخدذرزسشصضطظعغفقكلمنه", strict=True))
_KEPT = re.compile(r"%\(\w+\)s|%%|<[^>]*>|&\w+;|\n")


def mirrored(text: str) -> str:
    """A message in the letters of the language; placeholders and tags stay."""
    end, parts = 0, []
    for kept in _KEPT.finditer(text):
        parts += [_spelt(text[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*parts, _spelt(text[end:])])


def _spelt(text: str) -> str:
    return "".join(_LETTERS.get(letter.lower(), letter) for letter in text)


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Offer the language for as long as it takes; its file is written into a folder."""
    with TEMPLATE.open("rb") as stream:
        template = read_po(stream)
    catalogue = Catalog(locale=CODE)
    for message in template:
        if message.id:
            if isinstance(message.id, str):
                forms: str | tuple[str, ...] = mirrored(message.id)
            else:
                forms = (mirrored(message.id[-1]),) * catalogue.num_plurals
            catalogue.add(message.id, forms, message.locations, context=message.context)
    file = folder / CODE / "LC_MESSAGES" / "podium.po"
    file.parent.mkdir(parents=True)
    file.write_text(written(catalogue))
    translations.FOLDERS.append(folder)
    _forget()
    try:
        yield
    finally:
        translations.FOLDERS.remove(folder)
        _forget()


def _forget() -> None:
    translations.languages.cache_clear()
    translations.language.cache_clear()
