"""Elasticsearch with its own learning to rank (8.15 or later, with a licence for it)."""

from __future__ import annotations

from podium.errors import DataError
from podium.export.folder import ExportFolder
from podium.export.live.golden_documents import BATCH, safe_name
from podium.export.live.golden_index import GoldenIndex, require_server_version
from podium.export.live.http_client import EngineClient
from podium.export.targets.elasticsearch import MODEL, Elasticsearch, adds_shift, score_shift
from podium.export.targets.opensearch import field_value
from podium.export.trees import TreeModel
from podium.kernels import Doubles

_TITLE = "Elasticsearch"


class ElasticsearchEngine:
    """A server at an address such as ``http://localhost:9200``."""

    def __init__(self, url: str) -> None:
        self.url = url

    def put(self, export: ExportFolder) -> None:
        """Upload the model with its extractors, replacing the one of the same name."""
        name = safe_name(export.manifest.model_name)
        with EngineClient(self.url, _TITLE) as client:
            require_server_version(client, export)
            client.request("DELETE", f"_ml/trained_models/{name}?force=true", may_be=(404,))
            client.request("PUT", f"_ml/trained_models/{name}", export.read(MODEL))

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Score rows: one document per row, in an index of its own, which is deleted.

        What the version adds to every score, so that none is negative, is subtracted. It follows
        from the leaves of the export, not from the scores: a model there whose leaves are others
        has scores that stay off.
        """
        config = export.read_json(MODEL)["inference_config"]["learning_to_rank"]
        for each in config["feature_extractors"]:
            extractor = each["query_extractor"]
            if extractor["query"] != field_value(extractor["feature_name"]):
                raise DataError(
                    f"the feature {extractor['feature_name']!r} is a query of its own, so no "
                    "document can have the values of the golden rows",
                    hint="Verify an export without extractors; the model is the same.",
                )
        name = safe_name(export.manifest.model_name)
        names = export.engine_names
        with EngineClient(self.url, _TITLE) as client, GoldenIndex(client, names, values) as index:
            version = require_server_version(client, export)
            scores = index.scores(
                lambda rows: {
                    "query": {"constant_score": {"filter": rows}},
                    "rescore": {
                        "window_size": BATCH,
                        "learning_to_rank": {"model_id": name},
                    },
                }
            )
        return scores - _added(export) if adds_shift(version) else scores


def _added(export: ExportFolder) -> float:
    written = Elasticsearch().read(export.target_files(), export.manifest.features)
    return score_shift(written.model) if isinstance(written.model, TreeModel) else 0.0
