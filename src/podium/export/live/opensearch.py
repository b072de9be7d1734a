"""OpenSearch with its learning-to-rank plugin, and Elasticsearch with the o19s plugin."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from podium.errors import DataError
from podium.export.folder import ExportFolder
from podium.export.live import Reference, StoredModels
from podium.export.live.golden_index import GoldenIndex, golden_indices, require_server_version
from podium.export.live.http_client import EngineClient, expected_form
from podium.export.live.search_template import (
    PARAMETERS,
    read_reference,
    usage,
    write_reference,
)
from podium.export.live.versions import (
    VERSION,
    is_feature_set,
    is_leftover,
    is_podiums,
    safe_name,
    temporary_name,
    uploaded_name,
    version_name,
)
from podium.export.targets.fusions import PIPELINE, SEARCH
from podium.export.targets.opensearch import FEATURES, MODEL, field_value
from podium.kernels import Doubles

_DESCRIBED = re.compile(r"(?P<live>podium-[\w-]+)(?: before=(?P<previous>podium-[\w-]+))?: ")
"""How the description of a pipeline begins that searches name: its version, and the one before."""

_MOST_NAMES = 10_000
"""The most names that are listed: engines do not return more results of a search by default."""


class OpenSearchEngine:
    """A server with the plugin, at an address such as ``http://localhost:9200``."""

    def __init__(self, url: str, title: str = "OpenSearch") -> None:
        self.url = url
        self.title = title

    def put(self, export: ExportFolder) -> str:
        """Upload the feature set and the model, or a fusion's pipeline, unless they are there."""
        version = version_name(export)
        if export.manifest.is_fusion:
            self._put_pipeline(export, version)
            return version
        features = export.read_json(FEATURES)
        feature_set = safe_name(str(features["featureset"]["name"]))
        with EngineClient(self.url, self.title) as client:
            require_server_version(client, export)
            self._require_store(client)
            self._put_features(client, feature_set, features)
            # A model holds a copy of its features. Neither request replaces what is there.
            if not self._has(client, "model", version):
                content = export.read_json(MODEL)
                content["model"]["name"] = version
                client.request("POST", f"_ltr/_featureset/{feature_set}/_createmodel", content)
        return version

    def _put_pipeline(self, export: ExportFolder, version: str) -> None:
        """Upload a search pipeline, unless it is there."""
        with EngineClient(self.url, self.title) as client:
            require_server_version(client, export)
            if self._has_pipeline(client, version):
                return
            status, answer = client.request(
                "PUT", f"_search/pipeline/{version}", export.read_json(PIPELINE), allowed=(400,)
            )
            if status == 400 and "Invalid processor type" in json.dumps(answer):
                raise DataError(
                    f"{self.title} has no neural-search plugin, which fuses lists",
                    hint="Install the plugin of the server's version.",
                )
            if status == 400:
                raise DataError(f"{self.title} does not take the pipeline: {str(answer)[:300]}")

    def _has_pipeline(self, client: EngineClient, name: str) -> bool:
        return self._pipeline(client, name) is not None

    def _pipeline(self, client: EngineClient, name: str) -> dict[str, Any] | None:
        """Return a search pipeline; None where there is none of that name."""
        path = f"_search/pipeline/{name}"
        status, answer = client.request("GET", path, allowed=(400, 404, 405))
        if status != 200 or answer is None:
            return None
        with expected_form(self.title):
            return dict(answer[name])

    def _put_features(self, client: EngineClient, name: str, content: Any) -> None:
        path = f"_ltr/_featureset/{name}"
        status, answer = client.request("GET", path, allowed=(404,))
        if status == 404:
            # 409: another one put it there meanwhile.
            client.request("PUT", path, content, allowed=(409,))
            _, answer = client.request("GET", path)
        expected = _templates(content["featureset"])
        with expected_form(self.title):
            stored = stored_features(answer)
        if stored != expected:
            raise DataError(
                f"{self.title} has a feature set {name!r} with other features",
                hint="It is not replaced, for models use it. Export again.",
            )

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Score rows: one document per row, in an index of its own, which is deleted.

        Where features are queries of their own, no document can have the values of the rows: then
        the same model with fields as features scores them, and the other one has to answer. A
        fusion's lists are found by fields.
        """
        if export.manifest.is_fusion:
            return self._fuse(export)
        features = export.read_json(FEATURES)["featureset"]["features"]
        queries = any(each["template"] != field_value(each["name"]) for each in features)
        with EngineClient(self.url, self.title) as client:
            self._require_store(client)
            model = uploaded_name(export, self.title, lambda name: self._has(client, "model", name))
            with GoldenIndex(client, export.engine_names, values) as index:
                if not queries:
                    return index.scores(lambda rows: _search(model, {}, rows))
                words = {name: "1" for each in features for name in each["params"]}
                index.require_answer(model, _search(model, words, {"match_all": {}}))
                with self._model_on_fields(client, export, model) as model_on_fields:
                    return index.scores(lambda rows: _search(model_on_fields, {}, rows))

    def _fuse(self, export: ExportFolder) -> Doubles:
        """Search for the documents of each golden query by all lists."""
        golden = export.golden_rows()
        assert golden.offsets is not None  # those of a fusion have queries
        depth = export.read_json(SEARCH)["query"]["hybrid"]["pagination_depth"]
        with EngineClient(self.url, self.title) as client:
            pipeline = uploaded_name(export, self.title, partial(self._has_pipeline, client))

            def search(rows: dict[str, Any]) -> dict[str, Any]:
                queries = [
                    {"bool": {"filter": [rows], "must": [field_value(name)]}}
                    for name in export.engine_names
                ]
                hybrid = {"queries": queries, "pagination_depth": depth}
                return {"query": {"hybrid": hybrid}, "search_pipeline": pipeline}

            with GoldenIndex(client, export.engine_names, golden.values) as index:
                return index.scores(search, golden.offsets)

    @contextmanager
    def _model_on_fields(
        self, client: EngineClient, export: ExportFolder, model: str
    ) -> Iterator[str]:
        """Put a model that is there under another name, with fields as features, while open."""
        name = temporary_name()
        _, answer = client.request("GET", f"_ltr/_model/{model}")
        with expected_form(self.title):
            stored = answer["_source"]["model"]
            same = _templates(stored["feature_set"]) == _templates(
                export.read_json(FEATURES)["featureset"]
            )
            content = {"model": {"name": name, "model": stored["model"]}}
        if not same:
            raise DataError(
                f"the model {model!r} in {self.title} has other features than the export",
                hint="Delete it, and put the export there.",
            )
        features = [
            {"name": each, "params": [], "template_language": "mustache",
             "template": field_value(each)}
            for each in export.engine_names
        ]  # fmt: skip
        try:
            self._put_features(client, name, {"featureset": {"name": name, "features": features}})
            client.request("POST", f"_ltr/_featureset/{name}/_createmodel", content)
            yield name
        finally:
            client.request("DELETE", f"_ltr/_model/{name}", allowed=(404,))
            client.request("DELETE", f"_ltr/_featureset/{name}", allowed=(404,))

    def _has(self, client: EngineClient, kind: str, name: str) -> bool:
        # Not the model itself, which may be large.
        path = f"_ltr/_{kind}/{name}?filter_path=found"
        status, _ = client.request("GET", path, allowed=(404,))
        return status == 200

    def stored(self) -> StoredModels:
        """Return what Podium has put there."""
        with EngineClient(self.url, self.title) as client:
            indices = golden_indices(client)
            pipelines = self._pipelines(client)
            if pipelines and not self._has_store(client):
                return StoredModels(dict.fromkeys(pipelines), {}, tuple(indices))
            self._require_store(client)
            models = self._listed(client, "model", "model.feature_set.name")
            sets = self._listed(client, "featureset")
        with expected_form(self.title):
            used_by = {str(each["name"]): each["model"]["feature_set"]["name"] for each in models}
            names = [str(each["name"]) for each in sets]
        users = defaultdict(list)
        for model, feature_set in used_by.items():
            users[feature_set].append(model)
        used_by_version: dict[str, str | None] = dict.fromkeys(pipelines)
        used_by_version |= {name: used_by[name] for name in used_by if VERSION.fullmatch(name)}
        return StoredModels(
            dict(sorted(used_by_version.items())),
            {name: tuple(sorted(users[name])) for name in sorted(names) if is_feature_set(name)},
            tuple(sorted({*filter(is_leftover, [*used_by, *names]), *indices})),
        )

    def _pipelines(self, client: EngineClient) -> list[str]:
        """Return the versions of fusions; none where the server has no search pipelines."""
        status, answer = client.request("GET", "_search/pipeline", allowed=(400, 404, 405))
        if status != 200 or not isinstance(answer, dict):
            return []
        return sorted(filter(VERSION.fullmatch, answer))

    def _listed(self, client: EngineClient, kind: str, *fields: str) -> list[Any]:
        columns = ",".join(f"hits.hits._source.{each}" for each in ("name", *fields))
        path = f"_ltr/_{kind}?size={_MOST_NAMES}&filter_path=hits.total,{columns}"
        _, answer = client.request("GET", path)
        with expected_form(self.title):
            sources = [each["_source"] for each in answer["hits"].get("hits", [])]
            total = answer["hits"]["total"]["value"]
            # A search finds for a while what was deleted.
            ours = [each for each in sources if is_podiums(str(each["name"]))]
            gone = [each for each in ours if not self._has(client, kind, str(each["name"]))]
        if total > len(sources):
            raise DataError(f"{self.title} has more than {_MOST_NAMES} learning-to-rank elements")
        return [each for each in sources if each not in gone]

    def reference(self, name: str) -> Reference:
        """Return what the search template of a name refers to, or a fusion's pipeline of it."""
        with EngineClient(self.url, self.title) as client:
            pipeline = self._pipeline(client, safe_name(name))
            if pipeline is None:
                return read_reference(client, safe_name(name))
        match = _DESCRIBED.match(str(pipeline.get("description")))
        if match is None:
            raise DataError(
                f"{self.title} has a search pipeline {name!r} that is not Podium's",
                hint="Export with another --name.",
            )
        return Reference(match["live"], match["previous"], pipeline)

    def refer(self, name: str, seen: Reference, version: str) -> Reference:
        """Switch the search template of a name, or a fusion's pipeline, or write it."""
        sltr = {"sltr": {"model": version, "params": PARAMETERS}}
        rescore = {"query": {"query_weight": 0, "rescore_query": sltr}}
        with EngineClient(self.url, self.title) as client:
            pipeline = self._pipeline(client, version)
            if isinstance(seen.state, dict if pipeline is None else str):
                raise DataError(
                    f"{name!r} is the name of a {'fusion' if pipeline is None else 'ranker'} there",
                    hint="Export with another --name.",
                )
            if pipeline is None:
                return write_reference(client, safe_name(name), seen, version, rescore)
            before = "" if seen.live is None else f" before={seen.live}"
            fusion = pipeline["description"]
            content = pipeline | {"description": f"{version}{before}: {fusion}"}
            client.request("PUT", f"_search/pipeline/{safe_name(name)}", content)
            return Reference(version, seen.live, content)

    def delete(self, name: str) -> None:
        """Delete a version, a feature set or a leftover."""
        with EngineClient(self.url, self.title) as client:
            if VERSION.fullmatch(name) and self._has_pipeline(client, name):
                client.request("DELETE", f"_search/pipeline/{safe_name(name)}", allowed=(404,))
                return
            if not is_feature_set(name):
                client.request("DELETE", f"_ltr/_model/{safe_name(name)}", allowed=(404,))
            if not VERSION.fullmatch(name):
                client.request("DELETE", f"_ltr/_featureset/{safe_name(name)}", allowed=(404,))
            if is_leftover(name):
                client.request("DELETE", safe_name(name), allowed=(404,))

    def usage(self, name: str) -> str:
        """Return how searches refer to a name, in words."""
        return usage(name)

    def _require_store(self, client: EngineClient) -> None:
        """Create the plugin's store, if there is none."""
        if self._has_store(client):
            return
        status, _ = client.request("PUT", "_ltr", allowed=(400, 405))
        if status not in (200, 201):
            raise DataError(
                f"{self.title} has no learning-to-rank plugin",
                hint="Install the plugin of the server's version.",
            )

    def _has_store(self, client: EngineClient) -> bool:
        status, store = client.request("GET", "_ltr", allowed=(400, 404, 405))
        return status == 200 and isinstance(store, dict) and bool(store.get("stores"))


def stored_features(answer: Any) -> dict[str, Any]:
    """Return the query of each feature of a feature set that the engine returned."""
    return _templates(answer["_source"]["featureset"])


def _templates(feature_set: Any) -> dict[str, Any]:
    templates = {str(each["name"]): each["template"] for each in feature_set["features"]}
    return {
        name: json.loads(template) if isinstance(template, str) else template
        for name, template in templates.items()
    }


def _search(model: str, params: dict[str, str], rows: dict[str, Any]) -> dict[str, Any]:
    sltr = {"sltr": {"model": model, "params": params}}
    return {"query": {"bool": {"filter": [rows], "should": [sltr]}}}
