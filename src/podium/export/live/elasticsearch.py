"""Elasticsearch with its own learning to rank (8.15 or later, with a license for it)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from podium.errors import DataError
from podium.export.folder import ExportFolder
from podium.export.live import Reference, StoredModels
from podium.export.live.golden_index import (
    BATCH,
    GoldenIndex,
    golden_indices,
    require_server_version,
)
from podium.export.live.http_client import EngineClient, expected_form
from podium.export.live.search_template import (
    PARAMETERS,
    read_reference,
    usage,
    write_reference,
)
from podium.export.live.versions import (
    VERSION,
    is_leftover,
    safe_name,
    temporary_name,
    uploaded_name,
    version_name,
)
from podium.export.targets.elasticsearch import MODEL, Elasticsearch, adds_shift, score_shift
from podium.export.targets.opensearch import field_value
from podium.kernels import Doubles
from podium.scorers.trees import TreeModel


class ElasticsearchEngine:
    """A server at an address such as ``http://localhost:9200``."""

    title = "Elasticsearch"

    def __init__(self, url: str) -> None:
        self.url = url

    def put(self, export: ExportFolder) -> str:
        """Upload the model with its extractors, unless it is there."""
        version = version_name(export)
        with self._client() as client:
            require_server_version(client, export)
            if not self._has_model(client, version):
                client.request("PUT", f"_ml/trained_models/{version}", export.read(MODEL))
        return version

    def _client(self) -> EngineClient:
        return EngineClient(self.url, self.title)

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Score rows: one document per row, in an index of its own, which is deleted.

        Where features are queries of their own, no document can have the values of the rows: then
        the same model with fields as features scores them, and the other one has to answer.

        What the version adds to every score, so that none is negative, is subtracted. It follows
        from the leaves of the export, not from the scores: a model there whose leaves are others
        has scores that stay off.
        """
        extractors = [each["query_extractor"] for each in _extractors(export.read_json(MODEL))]
        queries = any(each["query"] != field_value(each["feature_name"]) for each in extractors)
        names = export.engine_names
        with self._client() as client:
            model = uploaded_name(export, self.title, lambda name: self._has_model(client, name))
            added = _added(export) if adds_shift(require_server_version(client, export)) else 0.0
            with GoldenIndex(client, names, values) as index:
                if not queries:
                    return index.scores(lambda rows: _search(model, {}, rows)) - added
                text = json.dumps([each["query"] for each in extractors])
                words = dict.fromkeys(re.findall(r"\{\{\{?\s*(\w+)", text), "1")
                index.require_answer(model, _search(model, words, {"match_all": {}}))
                with self._model_on_fields(client, export) as model_on_fields:
                    return index.scores(lambda rows: _search(model_on_fields, {}, rows)) - added

    @contextmanager
    def _model_on_fields(self, client: EngineClient, export: ExportFolder) -> Iterator[str]:
        """Put the model with fields as features there, for as long as this is open."""
        name = temporary_name()
        content = export.read_json(MODEL)
        for each in _extractors(content):
            extractor = each["query_extractor"]
            extractor["query"] = field_value(extractor["feature_name"])
        try:
            client.request("PUT", f"_ml/trained_models/{name}", content)
            yield name
        finally:
            client.request("DELETE", f"_ml/trained_models/{name}", allowed=(404,))

    def _has_model(self, client: EngineClient, name: str) -> bool:
        return client.request("GET", f"_ml/trained_models/{name}", allowed=(404,))[0] == 200

    def stored(self) -> StoredModels:
        """Return what Podium has put there."""
        with self._client() as client:
            _, answer = client.request("GET", "_ml/trained_models/podium-*?size=1000")
            indices = golden_indices(client)
        with expected_form(self.title):
            names = sorted(str(each["model_id"]) for each in answer["trained_model_configs"])
            total = int(answer["count"])
        if total > len(names):
            raise DataError(f"{self.title} has more than 1,000 models of Podium")
        return StoredModels(
            {name: None for name in names if VERSION.fullmatch(name)},
            {},
            tuple(sorted({*filter(is_leftover, names), *indices})),
        )

    def reference(self, name: str) -> Reference:
        """Return what the search template of a name refers to."""
        with self._client() as client:
            return read_reference(client, safe_name(name))

    def refer(self, name: str, seen: Reference, version: str) -> Reference:
        """Switch the search template of a name, or write it."""
        rescore = {"learning_to_rank": {"model_id": version, "params": PARAMETERS}}
        with self._client() as client:
            return write_reference(client, safe_name(name), seen, version, rescore)

    def delete(self, name: str) -> None:
        """Delete a version or a leftover."""
        with self._client() as client:
            client.request("DELETE", f"_ml/trained_models/{safe_name(name)}", allowed=(404,))
            if is_leftover(name):
                client.request("DELETE", safe_name(name), allowed=(404,))

    def usage(self, name: str) -> str:
        """Return how searches refer to a name, in words."""
        return usage(name)


def _extractors(content: Any) -> Any:
    return content["inference_config"]["learning_to_rank"]["feature_extractors"]


def _search(model: str, params: dict[str, str], rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "query": {"constant_score": {"filter": rows}},
        "rescore": {
            "window_size": BATCH,
            "learning_to_rank": {"model_id": model, "params": params},
        },
    }


def _added(export: ExportFolder) -> float:
    model = export.reference()
    written = Elasticsearch().read(export.target_files(), export.manifest.features, model)
    return score_shift(written.model) if isinstance(written.model, TreeModel) else 0.0
