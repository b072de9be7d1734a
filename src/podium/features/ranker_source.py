"""A source of features that is a ranker with features of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from podium.data import Dataset
from podium.data.definitions_hash import require_same_definitions
from podium.data.files import read_bounded
from podium.errors import DataError
from podium.features.definition import Column, FeatureDefinition, Source, ValueType
from podium.features.definitions import FeatureDefinitions, FeatureRows
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.toml_table import TomlTable

if TYPE_CHECKING:
    from podium.rankers import Ranker

_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class RankerSource(Source):
    """The score of a saved ranker, from features of its own.

    In engines and logs, a feature of its own has the name of the ranker's feature before its own:
    ``first__bm25``.

    Attributes:
        path: The file of the ranker.
        sha256: The digest of its bytes.
        definitions: Its features.
    """

    path: Path
    sha256: str
    definitions: FeatureDefinitions

    name: ClassVar[str] = "ranker"
    keys: ClassVar[tuple[str, ...]] = ("ranker", "definitions")
    types: ClassVar[tuple[ValueType, ...]] = ("float",)

    @classmethod
    def read(cls, table: TomlTable, _value_type: ValueType) -> Self:
        """Read the names of two files beside the definitions, and the files."""
        ranker = table.file_beside("ranker")
        own = table.read_nested(table)
        return cls(ranker, hashlib.sha256(read_bounded(ranker, _MOST_BYTES)).hexdigest(), own)

    def description(self) -> str:
        """Return what a value is, in words."""
        return "the score of another ranker"

    def content(self) -> dict[str, Any]:
        """Return the digests of the ranker and of its definitions."""
        return {"sha256": self.sha256, "definitions": self.definitions.hash}

    def logged(self, feature: FeatureDefinition) -> tuple[FeatureDefinition, ...]:
        """Return the ranker's own features that the engine computes."""
        prefix = _prefix(feature)
        return tuple(replace(own, name=prefix + own.name) for own in self.definitions.logged)

    def stored_fields(self, _feature: FeatureDefinition) -> tuple[str, ...]:
        """Return the fields that the ranker's own features need."""
        return self.definitions.stored_fields

    def query_columns(self) -> tuple[str, ...]:
        """Return the columns that the ranker's own features need."""
        return self.definitions.query_columns

    def column_of(self, feature: FeatureDefinition) -> Column:
        """Return the scores of the ranker."""
        scores = _RankerScores(feature, self)
        return Column(scores, scores.load)


class _RankerScores:
    """The scores of a ranker, from its own features."""

    def __init__(self, feature: FeatureDefinition, source: RankerSource) -> None:
        self._feature = feature
        self._source = source
        self._rows = FeatureRows(source.definitions)

    def load(self) -> None:
        self._rows.load()
        assert self._ranker is not None

    @cached_property
    def _ranker(self) -> Ranker:
        from podium.rankers import load_ranker  # needs packages that other features do not

        path, own = self._source.path, self._source.definitions
        ranker = load_ranker(path)
        if set(ranker.feature_names_) != set(own.names):
            other = sorted(set(ranker.feature_names_) ^ set(own.names))
            raise DataError(
                f"has other features than its definitions: {', '.join(other[:5])}",
                path=path,
                hint=f"Define the ranker's own features for the feature {self._feature.name!r}.",
            )
        require_same_definitions(ranker.definitions_hash_, own.hash, str(path), "its definitions")
        return ranker

    def __call__(self, query: SearchQuery, documents: Sequence[LoggedDocument]) -> Any:
        if not documents:
            return np.empty(0)
        prefix = _prefix(self._feature)
        own = [
            LoggedDocument(
                document.id,
                document.score,
                {
                    name.removeprefix(prefix): value
                    for name, value in document.values.items()
                    if name.startswith(prefix)
                },
                document.fields,
            )
            for document in documents
        ]
        rows = Dataset.from_arrays(
            self._rows(query, own),
            np.zeros(len(own), np.float32),
            group=[len(own)],
            feature_names=self._rows.definitions.names,
        )
        return self._ranker.predict(rows)


def _prefix(feature: FeatureDefinition) -> str:
    return f"{feature.name}__"
