"""Which engine is searched, how, and for how long."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from podium.data.files import read_bounded
from podium.errors import DataError
from podium.features.feature_search import DEFAULT_SET

_MOST_BYTES = 1 << 20
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")


class SearchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How ``/search`` asks an engine.

    Attributes:
        engine: The kind of engine: OpenSearch, Elasticsearch with the o19s plugin, or Solr.
        url: The address of an index or collection. Requests cannot change it.
        definitions: The file of the features' definitions, with the query for candidates.
        feature_set: What the name of the feature set or feature store in the engine begins with; it
            ends with a hash of the features.
        id_field: In Solr, the name of the unique key. In OpenSearch and Elasticsearch, a field
            with doc values that has the same value as ``_id``, which is then not read from stored
            fields.
        fields: The stored fields that requests may ask for.
        text_fields: The stored fields that a model reads as the text of a document, line by line;
            only for models that read texts.
        depth: How many candidates are ranked by the model.
        budget_ms: The longest time that a search may take, in milliseconds.
        connections: The largest number of connections to the engine, per process; half as many
            searches run at once.
        model: The model that ranks; by default the first.
    """

    engine: Literal["opensearch", "o19s", "solr"]
    url: str
    definitions: str
    feature_set: str = DEFAULT_SET
    id_field: str | None = None
    fields: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    text_fields: Annotated[tuple[str, ...], Meta(max_length=20)] = ()
    depth: Annotated[int, Meta(ge=1, le=1000)] = 100
    budget_ms: Annotated[int, Meta(ge=10, le=60_000)] = 500
    connections: Annotated[int, Meta(ge=2, le=1000)] = 64
    model: str | None = None


def read_search_settings(path: str) -> SearchSettings:
    """Read settings from a TOML file; a DataError if one is not valid.

    The file of definitions is relative to it.
    """
    content = read_bounded(path, _MOST_BYTES)
    try:
        settings = msgspec.convert(tomllib.loads(content.decode()), SearchSettings)
        for field in (*settings.fields, *settings.text_fields, settings.id_field or "id"):
            if not _FIELD.fullmatch(field):
                raise ValueError(f"{field[:60]!r} cannot be the name of a field")
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise DataError(str(error), path=path, hint="Change the settings of the search.") from error
    definitions = str(Path(path).parent / settings.definitions)
    return msgspec.structs.replace(settings, definitions=definitions)
