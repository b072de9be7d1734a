"""The fields that a project's documents have, to choose from."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from podium.studio.json_types import JsonObject
from podium.studio.projects.display import (
    CORE_FIELDS,
    MOST_FIELDS,
    DocumentContent,
    as_text,
    field_value,
)
from podium.studio.store.tables import ProjectQuery, QueryCandidate

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
        select(
            QueryCandidate.item,
            QueryCandidate.title,
            QueryCandidate.url,
            QueryCandidate.text,
            QueryCandidate.html,
            QueryCandidate.extra,
        )
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
