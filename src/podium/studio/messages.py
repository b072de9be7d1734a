"""Messages to people: English text that can be translated when it is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

from podium.studio.json_types import JsonObject

Value = str | int | float


class Plural(NamedTuple):
    """The form of a message for several things, and how many there are."""

    template: str
    number: int


class Message(str):
    """A message in English, which is its value wherever nobody asks for another language.

    Logs, exports and programs take it for a string. Pages and error responses translate its
    template and put the values into the translation.

    Args:
        template: The text with ``%(name)s`` for each value; also its key in the catalogues, so it
            is written out where it is made: ``make messages`` extracts it from there.
        values: The values. Numbers are written as the language writes them.

    Example:
        >>> Message("Wait %(count)s seconds.", count=1200)
        'Wait 1,200 seconds.'
    """

    template: str
    plural: Plural | None
    values: dict[str, Value]

    def __new__(cls, template: str, /, **values: Value) -> Self:
        """A message of one form."""
        return cls._made(template, None, values)

    @classmethod
    def counted(cls, one: str, several: str, count: int, **values: Value) -> Self:
        """A message with a form for one thing and another for several; ``%(count)s`` is the number.

        Example:
            >>> Message.counted("%(count)s query.", "%(count)s queries.", 2)
            '2 queries.'
        """
        return cls._made(one, Plural(several, count), {"count": count, **values})

    @classmethod
    def _made(cls, template: str, plural: Plural | None, values: dict[str, Value]) -> Self:
        form = template if plural is None or plural.number == 1 else plural.template
        message = super().__new__(cls, _filled(form, values, str, _english))
        message.template, message.plural, message.values = template, plural, values
        return message

    def translated(
        self,
        form: Callable[[str, Plural | None], str],
        number: Callable[[int | float], str],
    ) -> str:
        """The message in another language.

        Args:
            form: Gives the translation of a template, or of the plural form that fits.
            number: Writes a number.
        """

        def text(value: str) -> str:
            return value.translated(form, number) if isinstance(value, Message) else value

        return _filled(form(self.template, self.plural), self.values, text, number)

    def stored(self) -> JsonObject:
        """The message as JSON, for reports that are kept; `Message.loaded` reads it."""
        return {"template": self.template, "values": self.values}

    @classmethod
    def loaded(cls, stored: JsonObject) -> Self:
        """A message of one form that was stored.

        Example:
            >>> Message.loaded(Message("Wait %(count)s s.", count=2).stored())
            'Wait 2 s.'
        """
        return cls._made(stored["template"], None, stored["values"])


def _english(value: int | float) -> str:
    return f"{value:,}"


def _filled(
    template: str,
    values: dict[str, Value],
    text: Callable[[str], str],
    number: Callable[[int | float], str],
) -> str:
    if not values:
        return template  # a percent sign in it is one
    return template % {
        name: text(value) if isinstance(value, str) else number(value)
        for name, value in values.items()
    }
