"""The languages of the studio: its messages in each, and how each writes numbers.

English is in the source. Every other language is a file ``locale/LANGUAGE/LC_MESSAGES/podium.po``,
which is read when the language is first asked for: there is nothing to compile at installation.
"""

from __future__ import annotations

import gettext
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from io import BytesIO
from pathlib import Path

from babel import Locale, negotiate_locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

from podium.studio.json_types import JsonObject
from podium.studio.messages import Message, Plural

SOURCE = "en"
"""The language of the source, where none of the languages asked for exists."""
FOLDERS = [Path(__file__).parent / "locale"]
"""Where catalogues are looked for."""
_DOMAIN = "podium"
_SCRIPTS = ".ts"
_PLURALS = ("zero", "one", "two", "few", "many", "other")
"""As `Intl.PluralRules` names them."""


@dataclass(frozen=True, eq=False)
class Language:
    """A language with its messages.

    Attributes:
        code: Its tag, such as ``de``.
        name: What it calls itself.
        direction: ``ltr``, or ``rtl`` where text runs from right to left.
        gettext: Its messages.
        script_messages: Those that the pages' scripts show: to each English message its
            translation, or to a message with a plural the translation for each plural category.
    """

    code: str
    name: str
    direction: str
    gettext: gettext.NullTranslations
    script_messages: JsonObject

    def translate(self, text: str) -> str:
        """A message in this language; other text as it is."""
        return text.translated(self._form, self.number) if isinstance(text, Message) else text

    def number(self, value: int | float, digits: int | None = None) -> str:
        """A number as this language writes it.

        Example:
            >>> language("en").number(1234.5), language("de").number(1234.5, 2)
            ('1,234.5', '1.234,50')
        """
        if digits is None:
            return str(format_decimal(value, locale=self.code, decimal_quantization=False))
        pattern = "#,##0" + ("." + "0" * digits if digits else "")
        return str(format_decimal(value, pattern, locale=self.code))

    def _form(self, template: str, plural: Plural | None) -> str:
        if plural is not None:
            return self.gettext.ngettext(template, plural.template, plural.number)
        # The catalogue has its own head under the empty message.
        return self.gettext.gettext(template) if template else ""


@cache
def languages() -> dict[str, str]:
    """The tags of all languages, with what each calls itself, English first.

    Example:
        >>> languages()["de"]
        'Deutsch'
    """
    files = (file for folder in FOLDERS for file in folder.glob(f"*/LC_MESSAGES/{_DOMAIN}.po"))
    codes = [SOURCE, *sorted({file.parts[-3] for file in files} - {SOURCE})]
    return {code: _name(Locale.parse(code, sep="-")) for code in codes}


@cache
def language(code: str) -> Language:
    """A language by its tag.

    Raises:
        KeyError: There is no such language.

    Example:
        >>> language("de").translate(Message("Saved"))
        'Gespeichert'
    """
    locale = Locale.parse(code, sep="-") if code in languages() else None
    if locale is None:
        raise KeyError(code)
    direction = "rtl" if locale.character_order == "right-to-left" else "ltr"
    made = partial(Language, code, _name(locale), direction)
    if code == SOURCE:
        return made(gettext.NullTranslations(), {})
    file = next(
        file
        for folder in FOLDERS
        if (file := folder / code / "LC_MESSAGES" / f"{_DOMAIN}.po").exists()
    )
    with file.open("rb") as stream:
        catalogue = read_po(stream, locale=code.replace("-", "_"))
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    translations = gettext.GNUTranslations(compiled)
    in_scripts: JsonObject = {}
    for message in catalogue:
        if not any(name.endswith(_SCRIPTS) for name, _ in message.locations) or message.fuzzy:
            continue
        if isinstance(message.id, str):
            in_scripts[message.id] = message.string
        else:
            in_scripts[message.id[0]] = _by_category(locale, translations, *message.id)
    return made(translations, in_scripts)


def negotiated(preferred: Sequence[str]) -> str:
    """The first of some languages, the most preferred first, that there is, or English.

    Example:
        >>> negotiated(["pt-BR", "de-AT", "en"]), negotiated(["tlh"])
        ('de', 'en')
    """
    return negotiate_locale(preferred, list(languages()), sep="-") or SOURCE


def _name(locale: Locale) -> str:
    return str(locale.get_display_name() or locale.language)


def _by_category(
    locale: Locale, translations: gettext.NullTranslations, one: str, several: str
) -> dict[str, str]:
    """The form for each plural category, by a number of that category."""
    rule = locale.plural_form
    numbers = {rule(number): number for number in reversed(range(200))}
    return {
        category: translations.ngettext(one, several, numbers[category])
        for category in _PLURALS
        if category in numbers
    }
