"""A feature source of one's own: how many days old a document was, by a field with its date."""

import re
from datetime import date
from math import nan

from podium.features.definition import Column, Source
from podium.features.definitions_file import SOURCES
from podium.features.sources import field_text


class Age(Source):
    """Days between a date and the date in a field."""

    name = "age"
    keys = ("field", "until")
    types = ("float",)

    def __init__(self, field, until):
        self.field, self.until = field, until

    @classmethod
    def read(cls, table, _value_type):
        """Read the keys; a mistake is an error with its line."""
        text = table.text("until", re.compile(r"\d{4}-\d{2}-\d{2}"), "a date such as 2026-01-31")
        return cls(table.text("field", re.compile(r"\w+"), "the name of a field"), text)

    def description(self):
        """Say what the values are, in refusals."""
        return f"the age of a document on {self.until}"

    def stored_fields(self, _feature):
        """Ask the engine for the field."""
        return (self.field,)

    def column_of(self, _feature):
        """Compute the values of one query's documents."""
        until = date.fromisoformat(self.until)

        def age(document):
            text = field_text(document.fields, self.field)
            return nan if text is None else (until - date.fromisoformat(text[:10])).days

        return Column(lambda _query, documents: [age(document) for document in documents])


SOURCES[Age.name] = Age
