"""OpenSearch with its learning-to-rank plugin, and Elasticsearch with the o19s plugin."""

from __future__ import annotations

from podium.errors import DataError
from podium.export.folder import ExportFolder
from podium.export.live.golden_documents import safe_name
from podium.export.live.golden_index import GoldenIndex, require_server_version
from podium.export.live.http_client import EngineClient
from podium.export.targets.opensearch import FEATURES, MODEL, field_value
from podium.kernels import Doubles


class OpenSearchEngine:
    """A server with the plugin, at an address such as ``http://localhost:9200``."""

    def __init__(self, url: str, title: str = "OpenSearch") -> None:
        self.url = url
        self.title = title

    def put(self, export: ExportFolder) -> None:
        """Upload the feature set and the model, replacing those of the same names."""
        feature_set = safe_name(str(export.read_json(FEATURES)["featureset"]["name"]))
        name = safe_name(export.manifest.model_name)
        with EngineClient(self.url, self.title) as client:
            require_server_version(client, export)
            self._require_store(client)
            # A model holds a copy of its features: both are new, or both are old. Deleting also
            # makes the nodes forget the compiled model.
            client.request("DELETE", f"_ltr/_model/{name}", may_be=(404,))
            client.request("DELETE", f"_ltr/_featureset/{feature_set}", may_be=(404,))
            client.request("POST", f"_ltr/_featureset/{feature_set}", export.read(FEATURES))
            client.request(
                "POST", f"_ltr/_featureset/{feature_set}/_createmodel", export.read(MODEL)
            )

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Score rows: one document per row, in an index of its own, which is deleted."""
        for entry in export.read_json(FEATURES)["featureset"]["features"]:
            if entry["template"] != field_value(entry["name"]):
                raise DataError(
                    f"the feature {entry['name']!r} is a query of its own, so no document can have "
                    "the values of the golden rows",
                    hint="Verify an export without extractors; the model is the same.",
                )
        name = safe_name(export.manifest.model_name)
        with EngineClient(self.url, self.title) as client:
            self._require_store(client)
            if client.request("GET", f"_ltr/_model/{name}", may_be=(404,))[0] == 404:
                raise DataError(
                    f"{self.title} has no model {name!r}", hint="Upload it with --put first."
                )
            with GoldenIndex(client, export.engine_names, values) as index:
                return index.scores(
                    lambda rows: {
                        "query": {
                            "bool": {
                                "filter": [rows],
                                "should": [{"sltr": {"model": name, "params": {}}}],
                            }
                        }
                    }
                )

    def _require_store(self, client: EngineClient) -> None:
        """Create the plugin's store, if there is none."""
        status, store = client.request("GET", "_ltr", may_be=(400, 404, 405))
        if status == 200 and isinstance(store, dict) and store.get("stores"):
            return
        status, _ = client.request("PUT", "_ltr", may_be=(400, 405))
        if status not in (200, 201):
            raise DataError(
                f"{self.title} has no learning-to-rank plugin",
                hint="Install the plugin of the server's version.",
            )
