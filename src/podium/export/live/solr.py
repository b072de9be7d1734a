"""Solr with its learning-to-rank module."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.errors import DataError
from podium.export.folder import ExportFolder
from podium.export.live.golden_documents import (
    BATCH,
    require_version,
    row_documents,
    safe_name,
)
from podium.export.live.http_client import EngineClient, malformed
from podium.export.targets.solr import FEATURES, MODEL
from podium.kernels import Doubles

_PREFIX = "podium-golden-"
_FIELD = {"type": "podium_float", "indexed": False, "stored": False, "docValues": True}


class SolrEngine:
    """A core or collection, at an address such as ``http://localhost:8983/solr/products``."""

    def __init__(self, url: str) -> None:
        self.url = url

    def put(self, export: ExportFolder) -> None:
        """Upload the features and the model, replacing those of the same names."""
        name = safe_name(export.manifest.model_name)
        store = safe_name(str(export.read_json(MODEL)["store"]))
        with EngineClient(self.url, "Solr") as client:
            self._require_version(client, export)
            if name in self._models(client):
                client.request("DELETE", f"schema/model-store/{name}")
            client.request("DELETE", f"schema/feature-store/{store}", may_be=(404,))
            client.request("PUT", "schema/feature-store", export.read(FEATURES))
            client.request("PUT", "schema/model-store", export.read(MODEL))
            # ZooKeeper drops what is too large for it, and the answer is the same.
            if name not in self._models(client):
                raise DataError(
                    "Solr took the model but does not have it",
                    hint="Models above 1 MB need a DefaultWrapperModel in SolrCloud.",
                )

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Score rows: one document per row, deleted afterwards.

        The collection must be empty, so that nobody searches there: one of the same configuration
        as that which serves.
        """
        for entry in export.read_json(FEATURES):
            if not str(entry["class"]).endswith(".FieldValueFeature"):
                raise DataError(
                    f"the feature {entry['name']!r} is no field, so no document can have the "
                    "values of the golden rows",
                    hint="Verify an export without extractors; the model is the same.",
                )
        name = safe_name(export.manifest.model_name)
        with EngineClient(self.url, "Solr") as client:
            if name not in self._models(client):
                raise DataError(f"Solr has no model {name!r}", hint="Upload it with --put first.")
            _, answer = client.request("POST", "select", {"query": "*:*", "limit": 0})
            if _count(answer):
                raise DataError(
                    "the collection has documents, among which golden rows would be found",
                    hint="Give the address of an empty collection of the same configuration.",
                )
            self._add_fields(client, export)
            try:
                return _scores(client, export.engine_names, values, name)
            finally:
                client.request(
                    "POST", "update?commit=true", {"delete": {"query": f"id:{_PREFIX}*"}}
                )

    def _add_fields(self, client: EngineClient, export: ExportFolder) -> None:
        """Add the fields that the schema has not, as the golden rows' documents need them."""
        _, fields = client.request("GET", "schema/fields")
        _, types = client.request("GET", "schema/fieldtypes")
        try:
            known = {str(each["name"]) for each in fields["fields"]}
            types_known = {str(each["name"]) for each in types["fieldTypes"]}
        except (KeyError, TypeError) as error:
            raise malformed("Solr", error) from error
        missing = [name for name in export.engine_names if name not in known]
        if not missing:
            return
        change: dict[str, Any] = {"add-field": [{"name": name, **_FIELD} for name in missing]}
        if _FIELD["type"] not in types_known:
            change = {
                "add-field-type": {"name": _FIELD["type"], "class": "solr.FloatPointField"},
                **change,
            }
        client.request("POST", "schema", change)

    def _models(self, client: EngineClient) -> set[str]:
        status, answer = client.request("GET", "schema/model-store", may_be=(404,))
        if status == 404:
            raise DataError(
                "Solr has no learning-to-rank module there",
                hint="Give the address of a core or collection whose solrconfig.xml has the query "
                "parser 'ltr'.",
            )
        try:
            return {str(each["name"]) for each in answer["models"]}
        except (KeyError, TypeError) as error:
            raise malformed("Solr", error) from error

    def _require_version(self, client: EngineClient, export: ExportFolder) -> None:
        """Refuse a server that is older than the version that was exported for."""
        _, answer = client.request("GET", "admin/system", may_be=(404,))
        try:
            number = answer["lucene"]["solr-spec-version"]
        except (KeyError, TypeError) as error:
            raise malformed("Solr", error) from error
        require_version(export, number)


def _count(answer: Any) -> int:
    try:
        return int(answer["response"]["numFound"])
    except (KeyError, TypeError, ValueError) as error:
        raise malformed("Solr", error) from error


def _scores(client: EngineClient, names: Sequence[str], values: Doubles, model: str) -> Doubles:
    scores = np.full(len(values), np.nan)
    run = secrets.token_hex(4)
    for start in range(0, len(values), BATCH):
        batch = row_documents(names, values[start : start + BATCH])
        documents = [
            {"id": f"{_PREFIX}{run}-{row}", **fields} for row, fields in enumerate(batch, start)
        ]
        client.request("POST", "update?commit=true", documents)
        ids = ",".join(str(document["id"]) for document in documents)
        _, answer = client.request(
            "POST",
            "select",
            {
                "query": "*:*",
                "filter": f"{{!terms f=id}}{ids}",
                "fields": ["id", "score"],
                "limit": BATCH,
                "params": {"rq": f"{{!ltr model={model} reRankDocs={BATCH}}}"},
            },
        )
        try:
            hits = answer["response"]["docs"]
            for document in hits:
                row = int(document["id"].rpartition("-")[2])
                scores[row] = np.float32(float(document["score"]))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise malformed("Solr", error) from error
        if len(hits) != len(documents):
            raise DataError("Solr does not return all rows")
    return scores
