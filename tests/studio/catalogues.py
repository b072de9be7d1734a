"""The studio's message catalogues: extracts messages anew, and brings every language up to date.

``python -m tests.studio.catalogues`` (``make messages``) writes them; `test_catalogues` compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.pofile import read_po, write_po

from podium.judging.auditing.conclusion import SENTENCES, USES, WHAT

ROOT = Path(__file__).parents[2]
LOCALE = ROOT / "src/podium/studio/locale"
TEMPLATE = LOCALE / "podium.pot"
_FOLDERS = ("src/podium/studio", "web")
_METHODS = [("**.html", "jinja2"), ("**.py", "python"), ("**.ts", "javascript")]
# As the templates' environment in podium.studio.web.pages.
_OPTIONS = {"**.html": {"newstyle_gettext": "true", "trim_blocks": "true", "lstrip_blocks": "true"}}
_KEYWORDS = {
    **DEFAULT_KEYWORDS,
    "Message": None,
    "counted": (1, 2),
    "RefusedError": (2,),
}
_HEAD = """# {name}: the messages of Podium Studio. `make messages` brings this file up to date.
msgid ""
msgstr ""
"Language: {code}\\n"
"Plural-Forms: {plurals}\\n"
"Content-Type: text/plain; charset=utf-8\\n"

"""


def extracted() -> Catalog:
    """All messages in the sources: templates, code and the pages' scripts."""
    catalogue = Catalog(charset="utf-8")
    for folder in _FOLDERS:
        found = extract_from_dir(ROOT / folder, _METHODS, _OPTIONS, _KEYWORDS)
        for file, _, message, _, context in found:
            # Without line numbers, which every other change would move.
            catalogue.add(message, locations=[(f"{folder}/{file}", None)], context=context)
    # Pages show these sentences of `podium.judging`, which knows no languages.
    sentences = [each.format(what=what) for each in SENTENCES.values() for what in WHAT.values()]
    for message in (*sentences, *chain.from_iterable(USES.values())):
        catalogue.add(message, locations=[("src/podium/judging/auditing/conclusion.py", None)])
    return catalogue


def languages() -> Iterator[Path]:
    """The files of all languages but English, which is in the sources."""
    return LOCALE.glob("*/LC_MESSAGES/podium.po")


def written(catalogue: Catalog) -> str:
    """A catalogue as a file, sorted, with a head that has no dates."""
    stream = BytesIO()
    write_po(
        stream, catalogue, width=0, omit_header=True, sort_output=True, ignore_obsolete=True,
        include_lineno=False,
    )  # fmt: skip
    locale = catalogue.locale
    if not isinstance(locale, Locale):
        return stream.getvalue().decode()
    head = _HEAD.format(
        name=locale.english_name,
        code=str(locale).replace("_", "-"),
        plurals=catalogue.plural_forms,
    )
    return head + stream.getvalue().decode()


def updated(file: Path, template: Catalog) -> str:
    """The file of a language, with new messages, which it has no translation of yet."""
    catalogue = _read(file)
    catalogue.update(template, no_fuzzy_matching=True)
    return written(catalogue)


def messages_of(file: Path) -> list[Message]:
    """The messages of a language's file, without its head."""
    return [message for message in _read(file) if message.id]


def untranslated(file: Path) -> list[Message]:
    """The messages that a language lacks."""
    return [
        message
        for message in messages_of(file)
        if message.fuzzy
        or not all([message.string] if isinstance(message.string, str) else message.string)
    ]


def _read(file: Path) -> Catalog:
    with file.open("rb") as stream:
        return read_po(stream, locale=file.parts[-3].replace("-", "_"))


def main() -> None:
    """Write the template and every language's file."""
    template = extracted()
    TEMPLATE.write_text(written(template))
    for file in languages():
        file.write_text(updated(file, template))
        print(f"{file.relative_to(ROOT)}: {len(untranslated(file))} messages untranslated")


if __name__ == "__main__":
    main()
