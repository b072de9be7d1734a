"""Which fields of a document assessors see, and as what: a list, and nothing that could run.

A field is the document's title, address, text or id, or anything that was imported of it besides,
by its name; a dot leads into an object. What the list leaves out is not sent to those who judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from podium.data.html_text import plain_text
from podium.studio.json_types import JsonObject
from podium.studio.judging.scales import STORABLE
from podium.studio.store.tables import ProjectQuery, QueryCandidate

MOST_FIELDS = 30
CORE_FIELDS = ("title", "url", "text", "document_id")
"""What every document has; all else comes with an import."""
_LONGEST = {"snippet": 1000, "text": 1 << 20}
_LONGEST_VALUE = 300
_MOST_VALUES = 20


class FieldRole(StrEnum):
    """How a field is shown."""

    TITLE = "title"
    IMAGE = "image"
    PRICE = "price"
    TAG = "tag"
    SNIPPET = "snippet"
    VALUE = "value"
    LINK = "link"
    TEXT = "text"


_ONCE = (FieldRole.TITLE, FieldRole.IMAGE, FieldRole.LINK, FieldRole.TEXT)
"""Roles that one field of a document has at most."""


class DisplayField(BaseModel):
    """A field that assessors see.

    Example:
        >>> DisplayField(field="price", role="price", label="EUR").role.value
        'price'
    """

    model_config = ConfigDict(extra="forbid")

    field: Annotated[str, Field(max_length=200), STORABLE, Field(min_length=1)]
    """``title``, ``url``, ``text``, ``document_id``, or the name of an imported field."""
    role: FieldRole
    """How it is shown."""
    label: Annotated[str, Field(max_length=60), STORABLE] = ""
    """What stands before it; after a price, its currency."""


DEFAULT = (
    DisplayField(field="title", role=FieldRole.TITLE),
    DisplayField(field="url", role=FieldRole.LINK),
    DisplayField(field="text", role=FieldRole.TEXT),
)
"""What is shown where a project has no list of its own."""


class DocumentContent(NamedTuple):
    """What is known of a document."""

    item: str
    title: str
    url: str
    text: str
    html: str
    extra: JsonObject


CONTENT_COLUMNS = tuple(getattr(QueryCandidate, name) for name in DocumentContent._fields)
"""The columns with what is known of a document."""


@dataclass(frozen=True)
class ShownField:
    """A field of a document as it is shown."""

    field: str
    role: FieldRole
    label: str
    text: str


@dataclass(frozen=True)
class ShownDocument:
    """A document as assessors see it.

    Attributes:
        title: Its heading; empty if it is hidden.
        url: Its address; empty if it is hidden.
        text: Its text; empty if it is hidden.
        html: Its HTML, which is shown instead of the text.
        fields: All other fields, in order.
    """

    title: str
    url: str
    text: str
    html: str
    fields: tuple[ShownField, ...]


def check_display(fields: Sequence[DisplayField]) -> None:
    """Refuse a list that shows a field twice, or two as what there is one of."""
    if len(fields) > MOST_FIELDS:
        raise ValueError(f"a document shows at most {MOST_FIELDS} fields")
    names = [each.field for each in fields]
    if len(set(names)) < len(names):
        raise ValueError("a field is listed twice")
    for role in _ONCE:
        if sum(each.role is role for each in fields) > 1:
            raise ValueError(f"two fields are shown as {role.value}")


def display_of(stored: Sequence[JsonObject]) -> Sequence[DisplayField]:
    """A project's list of fields, or the usual one."""
    return [DisplayField(**field) for field in stored] if stored else DEFAULT


def shows(stored: Sequence[JsonObject], field: str, role: FieldRole) -> bool:
    """Whether a project shows a field in a role.

    Example:
        >>> shows([], "title", FieldRole.TITLE), shows([], "title", FieldRole.TAG)
        (True, False)
    """
    if not stored:
        return any(each.field == field and each.role is role for each in DEFAULT)
    return any(each["field"] == field and each["role"] == role for each in stored)


def shown_document(stored: Sequence[JsonObject], document: DocumentContent) -> ShownDocument:
    """A document as assessors of a project see it."""
    by_role: dict[FieldRole, DisplayField] = {}
    fields = []
    for each in display_of(stored):
        if each.role in (FieldRole.TITLE, FieldRole.LINK, FieldRole.TEXT):
            by_role[each.role] = each
        elif text := _value(document, each):
            # A price has its currency in its text, so that it is written the same way everywhere.
            label = "" if each.role is FieldRole.PRICE else each.label
            fields.append(ShownField(each.field, each.role, label, text))
    title, link, text = (
        _value(document, by_role[role]) if role in by_role else ""
        for role in (FieldRole.TITLE, FieldRole.LINK, FieldRole.TEXT)
    )
    body = by_role.get(FieldRole.TEXT)
    html = document.html if body is not None and body.field == "text" else ""
    return ShownDocument(title, link, text, html, tuple(fields))


def field_value(document: DocumentContent, name: str) -> object:
    """A field of a document, by its name; None if it has none."""
    if name in CORE_FIELDS:
        return {
            "title": document.title,
            "url": document.url,
            "text": document.text,
            "document_id": document.item,
        }[name]
    if name in document.extra:
        return document.extra[name]
    value: object = document.extra
    for part in name.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def as_text(value: object) -> str:
    """A value as people read it; objects have no text.

    Example:
        >>> as_text(["red", 42]), as_text(True), as_text({"a": 1})
        ('red, 42', 'yes', '')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return str(value).strip()
    if isinstance(value, list):
        texts = [as_text(each) for each in value[:_MOST_VALUES] if not isinstance(each, list)]
        return ", ".join(text for text in texts if text)
    return ""


_AMOUNT = re.compile(r"([^0-9]*)([0-9]{1,15}(?:[.][0-9]+)?)([^0-9]*)")


def price_text(value: object, currency: str = "") -> str:
    """A price with two decimals and its currency; text with other than one number as it is.

    Example:
        >>> price_text(1429.9, "EUR"), price_text("17.2 EUR", "EUR"), price_text("2 for 3")
        ('1,429.90 EUR', '17.20 EUR', '2 for 3')
    """
    text = as_text(value)[:_LONGEST_VALUE]
    if match := _AMOUNT.fullmatch(text):
        text = f"{match[1]}{float(match[2]):,.2f}{match[3]}"
    return f"{text} {currency}" if text and currency not in text else text


def plain_document(shown: ShownDocument) -> str:
    r"""What people see of a document, as text for a language model: all but pictures.

    Example:
        >>> price = ShownField("price", FieldRole.PRICE, "", "17.20 EUR")
        >>> plain_document(ShownDocument("Trail boots", "", "", "<p>Light.</p>", (price,)))
        'Trail boots\n17.20 EUR\nLight.'
    """
    fields = [
        f"{field.label}: {field.text}" if field.label else field.text
        for field in shown.fields
        if field.role is not FieldRole.IMAGE
    ]
    text = plain_text(shown.html) if shown.html else shown.text
    return "\n".join(filter(None, [shown.title, shown.url, *fields, text]))


def _value(document: DocumentContent, shown: DisplayField) -> str:
    value = field_value(document, shown.field)
    if shown.role is FieldRole.PRICE:
        return price_text(value, shown.label)
    if shown.role is FieldRole.IMAGE and isinstance(value, list):
        value = value[0] if value else ""  # of several pictures the first
    longest = _LONGEST.get(shown.role.value, _LONGEST_VALUE)
    if shown.role in (FieldRole.IMAGE, FieldRole.LINK):
        longest = 2000  # half an address leads nowhere
    return as_text(value)[:longest]


_SAMPLE = 200
"""How many documents are looked at."""
_LONGEST_EXAMPLE = 80


@dataclass(frozen=True)
class DocumentField:
    """A field, with the value of a document that has it."""

    name: str
    example: str


def document_fields(connection: Connection, project_id: int) -> list[DocumentField]:
    """The fields of a project's documents: those that all have, then those that were imported."""
    rows = connection.execute(
        select(*CONTENT_COLUMNS)
        .join(ProjectQuery, ProjectQuery.id == QueryCandidate.query_id)
        .where(ProjectQuery.project_id == project_id)
        .limit(_SAMPLE)
    )
    examples: dict[str, str] = dict.fromkeys(CORE_FIELDS, "")
    for row in rows:
        document = DocumentContent(*row)
        for name in (*CORE_FIELDS, *_names(document.extra)):
            if not examples.get(name):
                value = as_text(field_value(document, name))
                if name == "text":
                    value = value or plain_text(document.html)
                if value or name in CORE_FIELDS:
                    examples[name] = value[:_LONGEST_EXAMPLE]
    return [DocumentField(*each) for each in list(examples.items())[: 2 * MOST_FIELDS]]


def _names(extra: JsonObject) -> list[str]:
    """The names of fields, those inside of objects with a dot."""
    names = []
    for name, value in extra.items():
        if isinstance(value, dict):
            names += [f"{name}.{inner}" for inner in value]
        else:
            names.append(name)
    return names
