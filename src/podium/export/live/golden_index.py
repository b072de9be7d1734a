"""Golden rows as documents of an engine: one field per feature."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.export.folder import ExportFolder
from podium.export.live.http_client import EngineClient, expected_form
from podium.export.live.versions import is_leftover, temporary_name
from podium.export.targets.base import version_number
from podium.kernels import Doubles, Ints

BATCH = 1000
"""The number of rows that are scored by one request."""


def row_documents(names: Sequence[str], values: Doubles) -> Iterator[dict[str, float]]:
    """Yield each row as the fields of a document; a field is absent where a value is.

    Example:
        >>> list(row_documents(["a", "b"], np.array([[1.0, np.nan]])))
        [{'a': 1.0}]
    """
    for row in values.tolist():
        fields = zip(names, row, strict=True)
        yield {name: value for name, value in fields if not np.isnan(value)}


def require_version(export: ExportFolder, server: object) -> tuple[int, ...]:
    """Refuse a server that is older than the version that was exported for; return its version."""
    text = re.match(r"\d+(\.\d+)*", str(server))
    oldest = export.manifest.engine_version
    try:
        version = version_number(text[0] if text else "")
        new_enough = version >= version_number(oldest)
    except ArgumentError as error:
        raise DataError(f"the server's version is unknown: {str(server)[:50]!r}") from error
    if not new_enough:
        raise DataError(
            f"the server has version {server}, and the export is for version {oldest} or later",
            hint="Export for the server's version.",
        )
    return version


_ROW = "podium_golden_row"


class GoldenIndex:
    """An index with rows such as the golden rows of an export, for as long as it is open.

    Fields are single-precision numbers, as features are. An absent value is an absent field.
    """

    def __init__(self, client: EngineClient, names: Sequence[str], values: Doubles) -> None:
        self.client = client
        self.names = names
        self.name = temporary_name()
        self.values = values

    def __enter__(self) -> Self:
        fields = {name: {"type": "float", "index": False} for name in self.names}
        settings = {
            "number_of_shards": 1,
            "number_of_replicas": 0,
            "mapping.total_fields.limit": len(self.names) + 100,
        }
        mappings = {"dynamic": "strict", "properties": {**fields, _ROW: {"type": "integer"}}}
        self.client.request("PUT", self.name, {"settings": settings, "mappings": mappings})
        try:
            self._fill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.client.request("DELETE", self.name, allowed=(404,))

    def _fill(self) -> None:
        for start in range(0, len(self.values), BATCH):
            lines: list[str] = []
            batch = row_documents(self.names, self.values[start : start + BATCH])
            for row, document in enumerate(batch, start):
                lines += ['{"index":{}}', json.dumps({_ROW: row, **document}, allow_nan=False)]
            body = "\n".join([*lines, ""]).encode()
            _, answer = self.client.request(
                "POST", f"{self.name}/_bulk?refresh=true", body, kind="application/x-ndjson"
            )
            if not isinstance(answer, dict) or answer.get("errors") is not False:
                raise DataError(
                    f"{self.client.title} does not take the rows: {str(answer)[:300]}",
                    hint="Values must be finite single-precision numbers.",
                )

    def scores(
        self, search: Callable[[dict[str, Any]], dict[str, Any]], offsets: Ints | None = None
    ) -> Doubles:
        """Return the score of each row.

        Args:
            search: From a query that matches some rows, the search that scores them.
            offsets: Where the rows of each search begin, and their number last; some at a time by
                default. A row that its search does not return has score 0 then.
        """
        scores = np.full(len(self.values), np.nan if offsets is None else 0.0)
        partly = offsets is not None
        if offsets is None:
            offsets = np.append(np.arange(0, len(scores), BATCH), len(scores))
        for start, end in pairwise(offsets.tolist()):
            rows = {"range": {_ROW: {"gte": start, "lt": end}}}
            body = {"size": end - start, "_source": [_ROW], **search(rows)}
            _, answer = self.client.request("POST", f"{self.name}/_search", body)
            with expected_form(self.client.title):
                hits = answer["hits"]["hits"]
                for hit in hits:
                    # What is written in decimal is the nearest single-precision number.
                    scores[hit["_source"][_ROW]] = np.float32(hit["_score"])
            if len(hits) != end - start and not partly:
                raise DataError(f"{self.client.title} does not return all rows")
        return scores

    def require_answer(self, model: str, search: dict[str, Any]) -> None:
        """Raise a DataError if a search fails, as it does where a feature is not a valid query."""
        try:
            self.client.request("POST", f"{self.name}/_search", search)
        except DataError as error:
            raise DataError(
                f"a search with the model {model} fails: {error.problem}",
                hint="Correct the features, and export again.",
            ) from error


def golden_indices(client: EngineClient) -> list[str]:
    """Return the indices of checks that run, and of those that were killed."""
    _, answer = client.request("GET", "_cat/indices/podium-golden-*?h=index&format=json")
    with expected_form(client.title):
        return [str(each["index"]) for each in answer if is_leftover(str(each["index"]))]


def require_server_version(client: EngineClient, export: ExportFolder) -> tuple[int, ...]:
    """Refuse a server that is older than the version that was exported for; return its version."""
    _, answer = client.request("GET", "")
    with expected_form(client.title):
        number = answer["version"]["number"]
    return require_version(export, number)
