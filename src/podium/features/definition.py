"""What one feature is: where its values come from, their type, and the value of an absent one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

from podium.errors import ArgumentError
from podium.export.targets import TARGETS
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.features.toml_table import TomlTable

ValueType: TypeAlias = Literal["float", "int", "bool", "category"]
VALUE_TYPES: tuple[ValueType, ...] = get_args(ValueType)


@dataclass(frozen=True)
class Column:
    """Computes the values of a feature.

    Attributes:
        values: The values of the documents that were found for a query; NaN for absent ones.
        load: Reads now what the first query would else have to wait for.
    """

    values: Callable[[SearchQuery, Sequence[LoggedDocument]], Any]
    load: Callable[[], object] = lambda: None


class Source(ABC):
    """Where the values of a feature come from: a subclass for each kind, which a file names.

    Attributes:
        name: What ``source`` is in a file.
        keys: The keys that a feature of this source has in a file.
        types: The types that its values may have.
    """

    name: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    types: ClassVar[tuple[ValueType, ...]] = VALUE_TYPES

    @classmethod
    @abstractmethod
    def read(cls, table: TomlTable, value_type: ValueType) -> Self:
        """Read the keys of a feature in a file."""

    @abstractmethod
    def description(self) -> str:
        """Return what a value is, in words."""

    def column_of(self, feature: FeatureDefinition) -> Column:
        """Return how the values of a feature are computed: by default they are in documents."""
        name = feature.name
        return Column(lambda _query, documents: [each.values.get(name, nan) for each in documents])

    def content(self) -> dict[str, Any]:
        """Return what defines the values, as JSON has it: what the hash is taken of.

        By default the attributes. A source that reads a file returns the digest of its bytes.
        """
        return {name: value for name, value in vars(self).items() if value is not None}

    def logged(self, _feature: FeatureDefinition) -> tuple[FeatureDefinition, ...]:
        """Return the features that the engine computes for a feature of this source."""
        return ()

    def stored_fields(self, _feature: FeatureDefinition) -> tuple[str, ...]:
        """Return the fields of documents that Podium computes a feature from."""
        return ()

    def query_columns(self) -> tuple[str, ...]:
        """Return the columns of the queries that Podium computes values from."""
        return ()

    def parameters(self, _target: str) -> tuple[str, ...]:
        """Return the parameters of an engine's query for it: ``query`` is the text."""
        return ()

    def engine_feature(self, feature: FeatureDefinition, target: str) -> dict[str, Any]:
        """Return the query of a feature in an engine, or Solr's class and parameters.

        Where a definition says the value of an absent feature, the query has that value for
        documents that it would not match: a model there must see what it saw in training.

        Raises:
            ArgumentError: If the engine cannot compute it.
        """
        raise feature.refusal(
            target,
            self.description(),
            "Podium computes it: rerank with podium serve, or train a ranker without it to rank in "
            "the engine.",
        )


@dataclass(frozen=True)
class FeatureDefinition:
    """A feature.

    Attributes:
        name: Its name in data sets, rankers and engines.
        source: Where its values come from.
        type: What its values are; a category is a number from 0, in the order of ``categories``.
        missing: The value where a document has none; NaN stays missing.
        categories: The known values of a category.
    """

    name: str
    source: Source
    type: ValueType = "float"
    missing: float = nan
    categories: tuple[str, ...] = ()

    @property
    def is_logged(self) -> bool:
        """Whether the engine computes it, rather than Podium."""
        return self in self.source.logged(self)

    def content(self) -> dict[str, Any]:
        """Return what defines its values, as JSON has it: what the hash is taken of."""
        content = {
            "name": self.name,
            "source": self.source.name,
            "type": self.type,
            "missing": None if math.isnan(self.missing) else self.missing,
            **self.source.content(),
        }
        return content | ({"categories": list(self.categories)} if self.categories else {})

    def refusal(self, target: str, what: str, hint: str) -> ArgumentError:
        """Return the error for an engine that cannot compute it."""
        return ArgumentError(
            f"{TARGETS[target].title} cannot compute feature {self.name!r}: it is {what}", hint=hint
        )
