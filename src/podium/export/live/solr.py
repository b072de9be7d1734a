"""Solr with its learning-to-rank module."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import numpy as np

from podium.errors import DataError
from podium.export.folder import ExportFolder
from podium.export.live import Reference, StoredModels
from podium.export.live.golden_index import (
    BATCH,
    require_version,
    row_documents,
)
from podium.export.live.http_client import EngineClient, expected_form
from podium.export.live.versions import (
    VERSION,
    is_feature_set,
    is_leftover,
    safe_name,
    temporary_name,
    uploaded_name,
    version_name,
)
from podium.export.targets.solr import FEATURES, MODEL
from podium.kernels import Doubles

_PREFIX = "podium-golden-"
_MOST_DOCUMENTS = 10_000
_FIELD = {"type": "podium_float", "indexed": False, "stored": False, "docValues": True}
_VALUE = "org.apache.solr.ltr.feature.ValueFeature"


class SolrEngine:
    """A core or collection, at an address such as ``http://localhost:8983/solr/products``.

    Searches refer to a name by request parameters that Solr keeps (``useParams``), which the
    Request Parameters API switches without a reload.
    """

    title = "Solr"

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def put(self, export: ExportFolder) -> str:
        """Upload the features and the model, unless they are there."""
        version = version_name(export)
        model = {**export.read_json(MODEL), "name": version}
        store = safe_name(str(model["store"]))
        with self._client() as client:
            self._require_version(client, export)
            with self._stores(client) as stores:
                models = self._models(stores)
                self._put_features(stores, export.read_json(FEATURES), store)
                if version not in models:
                    self._change(stores, "PUT", "schema/model-store", model)
            for url in replica_urls(client):
                self._require_model(url, version)
        return version

    def _require_model(self, replica: str, version: str) -> None:
        # ZooKeeper drops what is too large for it, and the answer to the upload is the same.
        with EngineClient(replica, self.title) as client:
            if version not in self._models(client):
                raise DataError(
                    f"Solr took the model but does not have it in {_name(client)}: by default "
                    "ZooKeeper takes 1 MB for all models of a collection",
                    hint="Delete versions that are not needed (podium deploy list, delete). A "
                    "larger model needs a DefaultWrapperModel.",
                )

    def _client(self) -> EngineClient:
        return EngineClient(self.url, self.title)

    @contextmanager
    def _stores(self, client: EngineClient) -> Iterator[EngineClient]:
        """Give one replica, to change the stores of features and models by.

        In SolrCloud each replica writes all that it has in memory to ZooKeeper, and others read it
        when they are reloaded: before, so that nothing is lost, and afterwards.
        """
        reload_replicas(client)
        try:
            with EngineClient(replica_urls(client)[0], self.title) as replica:
                yield replica
        finally:
            reload_replicas(client)

    def _put_features(
        self, client: EngineClient, features: list[dict[str, Any]], store: str
    ) -> None:
        path = f"schema/feature-store/{store}"
        stored = _features(client.request("GET", path, allowed=(400, 404)))
        if not stored:
            client.request("PUT", "schema/feature-store", features)
            stored = _features(client.request("GET", path))
        expected = {
            str(each["name"]): {"class": each["class"], "params": each["params"]}
            for each in features
        }
        if stored != expected:
            raise DataError(
                f"Solr has a feature store {store!r} with other features",
                hint="It is not replaced, for models use it. Export again.",
            )

    def _change(self, client: EngineClient, method: str, path: str, content: Any = None) -> None:
        """Change the models. Where Solr cannot save them, it loses those that it has in memory."""
        before = self._models(client)
        try:
            client.request(method, path, content)
        except DataError:
            with suppress(DataError):  # that of the change says why
                if not before <= self._models(client):
                    reload_core(client)
            raise

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Score rows.

        In an empty collection each row becomes a document, which is deleted afterwards. Where
        there are documents, among which golden rows would be found, and where features are queries
        of their own, the same model scores them with values that requests give, and the other one
        has to answer.
        """
        features = export.read_json(FEATURES)
        queries = any(not str(each["class"]).endswith(".FieldValueFeature") for each in features)
        with self._client() as client:
            model = uploaded_name(export, self.title, self._models(client).__contains__)
            _, answer = client.request("POST", "select", {"query": "*:*", "limit": 0})
            if _count(answer):
                _require_answer(client, model, features)
                # The other replicas do not have to know that model.
                with (
                    EngineClient(replica_urls(client)[0], self.title) as replica,
                    self._model_on_values(replica, export, model) as model_on_values,
                ):
                    return _scores_of_values(replica, export, values, model_on_values)
            if queries:
                raise DataError(
                    "a feature is not a field, and the collection has no document to score",
                    hint="Verify in a collection with documents.",
                )
            self._add_fields(client, export)
            run = temporary_name()
            try:
                return _scores(client, export.engine_names, values, model, run)
            finally:
                _delete_documents(client, run)

    @contextmanager
    def _model_on_values(
        self, client: EngineClient, export: ExportFolder, model: str
    ) -> Iterator[str]:
        """Put a model that is there under another name, with parameters as features, while open."""
        name = temporary_name()
        features = [
            {"store": name, "name": each, "class": _VALUE, "params": {"value": f"${{{each}}}"}}
            for each in export.engine_names
        ]
        stored = self._stored_models(client)[model]
        if stored["store"] != export.read_json(MODEL)["store"]:
            raise DataError(
                f"the model {model!r} in Solr has other features than the export",
                hint="Delete it, and put the export there.",
            )
        try:
            self._put_features(client, features, name)
            copy = {**stored, "name": name, "store": name}
            self._change(client, "PUT", "schema/model-store", copy)
            yield name
        finally:
            self._change(client, "DELETE", f"schema/model-store/{name}")
            client.request("DELETE", f"schema/feature-store/{name}", allowed=(404,))

    def _add_fields(self, client: EngineClient, export: ExportFolder) -> None:
        """Add the fields that the schema has not, as the golden rows' documents need them."""
        _, fields = client.request("GET", "schema/fields")
        _, types = client.request("GET", "schema/fieldtypes")
        with expected_form("Solr"):
            known = {str(each["name"]) for each in fields["fields"]}
            types_known = {str(each["name"]) for each in types["fieldTypes"]}
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

    def stored(self) -> StoredModels:
        """Return what Podium has put there."""
        with self._client() as client:
            models = self._stored_models(client)
            documents = _golden_documents(client)
            _, answer = client.request("GET", "schema/feature-store")
        with expected_form("Solr"):
            names = sorted(map(str, answer["featureStores"]))
        used_by = {name: model["store"] for name, model in models.items()}
        users = defaultdict(list)
        for model, store in sorted(used_by.items()):
            users[store].append(model)
        return StoredModels(
            {name: used_by[name] for name in sorted(used_by) if VERSION.fullmatch(name)},
            {name: tuple(users[name]) for name in names if is_feature_set(name)},
            tuple(sorted({*filter(is_leftover, [*used_by, *names, *documents])})),
        )

    def reference(self, name: str) -> Reference:
        """Return what the request parameters of a name refer to."""
        name = safe_name(name)
        with self._client() as client:
            _, answer = client.request("GET", f"config/params/{name}")
        with expected_form("Solr"):
            state = answer["response"].get("params", {}).get(name)
            if state is None:
                return Reference()
            live, previous = state.get(name), state.get(f"{name}.previous")
        match = VERSION.fullmatch(str(live))
        if match is None or match["name"] != name:
            raise DataError(
                f"Solr has request parameters {name!r} that are not Podium's",
                hint="Export with another --name.",
            )
        return Reference(str(live), previous, state)

    def refer(self, name: str, seen: Reference, version: str) -> Reference:
        """Switch the request parameters of a name, or write them; others in the set stay."""
        name = safe_name(name)
        change = {name: version}
        if seen.live is not None:
            change[f"{name}.previous"] = seen.live
        command = "set" if seen.live is None else "update"
        with self._client() as client:
            client.request("POST", "config/params", {command: {name: change}})
        # Solr counts the changes of a set.
        count = 0 if seen.live is None else seen.state.get("", {}).get("v", 0) + 1
        return Reference(version, seen.live, {**(seen.state or {}), **change, "": {"v": count}})

    def delete(self, name: str) -> None:
        """Delete a version, a feature store or a leftover."""
        name = safe_name(name)
        with self._client() as client, self._stores(client) as stores:
            if is_leftover(name):
                _delete_documents(client, name)
            if not is_feature_set(name):
                self._change(stores, "DELETE", f"schema/model-store/{name}")
            if not VERSION.fullmatch(name):
                stores.request("DELETE", f"schema/feature-store/{name}", allowed=(404,))

    def usage(self, name: str) -> str:
        """Return how searches refer to a name, in words."""
        return (
            f"Search with useParams={name} and rq={{!ltr model=${name} reRankDocs=100}}, with "
            "the parameters of the features (efi). Each shard reranks reRankDocs documents of its "
            "own."
        )

    def _stored_models(self, client: EngineClient) -> dict[str, Any]:
        """Return the models by name."""
        status, answer = client.request("GET", "schema/model-store", allowed=(404,))
        if status == 404:
            raise DataError(
                "Solr has no learning-to-rank module there",
                hint="Give the address of a core or collection whose solrconfig.xml has the query "
                "parser 'ltr'.",
            )
        with expected_form("Solr"):
            return {
                str(each["name"]): {**each, "store": str(each["store"])}
                for each in answer["models"]
            }

    def _models(self, client: EngineClient) -> set[str]:
        return set(self._stored_models(client))

    def _require_version(self, client: EngineClient, export: ExportFolder) -> None:
        """Refuse a server that is older than the version that was exported for."""
        with expected_form("Solr"):
            number = _system(client)["lucene"]["solr-spec-version"]
        require_version(export, number)


def stored_features(answer: Any) -> dict[str, Any]:
    """Return the class and the parameters of each feature of a feature store that Solr returned."""
    return {
        str(entry["name"]): {"class": entry["class"], "params": entry["params"]}
        for entry in answer["features"]
    }


def reload_replicas(client: EngineClient) -> None:
    """In SolrCloud, let all replicas of a collection read their features and models again."""
    if _is_cloud(client):
        # The answer as JSON would have two equal keys for two replicas of a node.
        path = f"collections?action=RELOAD&name={_name(client)}&wt=xml"
        with EngineClient(_sibling(client.url, "admin"), client.title) as admin:
            admin.request("GET", path)


def replica_urls(client: EngineClient) -> list[str]:
    """Return the address of each replica of a collection; that of a core alone is its own."""
    if not _is_cloud(client):
        return [client.url]
    with EngineClient(_sibling(client.url, "admin"), client.title) as admin:
        path = f"collections?action=CLUSTERSTATUS&collection={_name(client)}"
        _, answer = admin.request("GET", path)
    with expected_form("Solr"):
        replicas = [
            replica
            for each in answer["cluster"]["collections"].values()
            for shard in each["shards"].values()
            for replica in shard["replicas"].values()
        ]
        cores = sorted(safe_name(each["core"]) for each in replicas if each["state"] == "active")
    if not cores:
        raise DataError("no replica of the collection is active", hint="Check the collection.")
    # Every node passes requests for a core on to that which has it.
    return [_sibling(client.url, core) for core in cores]


def _is_cloud(client: EngineClient) -> bool:
    return bool(_system(client).get("mode") == "solrcloud")


def _name(client: EngineClient) -> str:
    return quote(client.url.rpartition("/")[2])


def reload_core(client: EngineClient) -> None:
    """Let a core read its features and models again."""
    with EngineClient(_sibling(client.url, "admin"), client.title) as admin:
        admin.request("GET", f"cores?action=RELOAD&core={_name(client)}")


def _sibling(url: str, name: str) -> str:
    return f"{url.rpartition('/')[0]}/{name}"


def _system(client: EngineClient) -> Any:
    _, answer = client.request("GET", "admin/system", allowed=(404,))
    with expected_form("Solr"):
        if not isinstance(answer, dict):
            raise TypeError("not an object")
    return answer


def _features(status_and_answer: tuple[int, Any]) -> dict[str, Any]:
    """Return the features of a store; none if there is no such store."""
    status, answer = status_and_answer
    with expected_form("Solr"):
        return stored_features(answer) if status == 200 else {}


def _count(answer: Any) -> int:
    with expected_form("Solr"):
        return int(answer["response"]["numFound"])


def _require_answer(client: EngineClient, model: str, features: Iterable[Any]) -> None:
    """Raise a DataError if a search fails, as it does where a feature is not a valid query."""
    queries = [str(each["params"].get("q", "")) for each in features]
    names = sorted({name for query in queries for name in re.findall(r"\$\{(\w+)", query)})
    words = "".join(f" efi.{name}=1" for name in names)
    try:
        _rescored(client, f"{{!ltr model={model} reRankDocs=1{words}}}")
    except DataError as error:
        raise DataError(
            f"a search with the model {model} fails: {error.problem}",
            hint="Correct the features, and export again.",
        ) from error


def _rescored(client: EngineClient, query: str, path: str = "select") -> Any:
    """Return the first document by a model."""
    body = {"query": "*:*", "limit": 1, "fields": ["score"], "params": {"rq": query}}
    return client.request("POST", path, body)[1]


def _scores_of_values(
    client: EngineClient, export: ExportFolder, values: Doubles, model: str
) -> Doubles:
    """Score rows one by one: any document has the values that the request gives."""
    absent = [
        np.nan if feature.absent is None else feature.absent for feature in export.manifest.features
    ]
    rows = np.where(np.isnan(values), absent, values).tolist()
    scores = []
    for row in rows:
        # JSON's numbers here are Java's, with NaN and Infinity.
        words = "".join(
            f" efi.{name}={json.dumps(value)}"
            for name, value in zip(export.engine_names, row, strict=True)
        )
        query = f"{{!ltr model={model} reRankDocs=1{words}}}"
        answer = _rescored(client, query, "select?distrib=false")
        with expected_form("Solr"):
            documents = answer["response"]["docs"]
            if not documents:
                raise DataError(
                    f"{_name(client)} has no document to score", hint="Add documents first."
                )
            scores.append(np.float32(float(documents[0]["score"])))
    return np.array(scores, np.float64)


def _golden_documents(client: EngineClient) -> set[str]:
    """Return the checks whose golden rows are documents of the collection."""
    body = {"query": f"{{!prefix f=id}}{_PREFIX}", "limit": _MOST_DOCUMENTS, "fields": ["id"]}
    _, answer = client.request("POST", "select", body, allowed=(400,))  # 400: it has no such field
    with expected_form("Solr"):
        documents = answer.get("response", {}).get("docs", [])
        return {str(each["id"]).rpartition("-")[0] for each in documents}


def _delete_documents(client: EngineClient, run: str) -> None:
    query = {"delete": {"query": f"{{!prefix f=id}}{run}-"}}
    client.request("POST", "update?commit=true", query, allowed=(400,))


def _scores(
    client: EngineClient, names: Sequence[str], values: Doubles, model: str, run: str
) -> Doubles:
    scores = np.full(len(values), np.nan)
    for start in range(0, len(values), BATCH):
        batch = row_documents(names, values[start : start + BATCH])
        documents = [{"id": f"{run}-{row}", **fields} for row, fields in enumerate(batch, start)]
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
        with expected_form("Solr"):
            hits = answer["response"]["docs"]
            for document in hits:
                row = int(document["id"].rpartition("-")[2])
                scores[row] = np.float32(float(document["score"]))
        if len(hits) != len(documents):
            raise DataError("Solr does not return all rows")
    return scores
