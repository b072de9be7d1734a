"""The rows of a query: what the engine logged, and the features that Podium computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.errors import DataError
from podium.features.definitions import FeatureDefinitions
from podium.features.search_query import LoggedDocument, SearchQuery
from podium.kernels import Floats


class FeatureRows:
    """Computes the rows of queries, the same way for a log and for a search.

    Args:
        definitions: The features.

    Example:
        >>> from podium.features.definition import FeatureDefinition
        >>> from podium.features.sources import FieldSource, QuerySource
        >>> length = FeatureDefinition("length", QuerySource(property="words"))
        >>> clicks = FeatureDefinition("clicks", FieldSource("clicks"))
        >>> compute = FeatureRows(FeatureDefinitions((length, clicks)))
        >>> documents = [LoggedDocument("a", 1.0, {"clicks": 7}), LoggedDocument("b", 0.5, {})]
        >>> compute(SearchQuery("1", "running shoes"), documents).tolist()
        [[2.0, 7.0], [2.0, nan]]
    """

    def __init__(self, definitions: FeatureDefinitions) -> None:
        self.definitions = definitions
        self._columns = [feature.source.column_of(feature) for feature in definitions.features]

    def load(self) -> None:
        """Load nested rankers now rather than with the first query; a DataError if one fails."""
        for column in self._columns:
            column.load()

    def __call__(self, query: SearchQuery, documents: Sequence[LoggedDocument]) -> Floats:
        """Return one row per document, one column per feature, in the order of ``names``."""
        features = self.definitions.features
        rows = np.empty((len(documents), len(features)), np.float32)
        with np.errstate(over="ignore"):  # infinities are refused with the feature's name
            for number, (feature, column) in enumerate(zip(features, self._columns, strict=True)):
                values = np.asarray(column.values(query, documents), np.float64)
                rows[:, number] = np.where(np.isnan(values), feature.missing, values)
        if np.isinf(rows).any():
            row, number = np.argwhere(np.isinf(rows))[0]
            raise DataError(
                f"feature {features[number].name!r} of document {documents[row].id!r} of query "
                f"{query.id!r} is infinite in single precision",
                hint="Change its definition, as by a logarithm.",
            )
        return rows
