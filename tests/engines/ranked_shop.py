"""Documents in an engine, rankers of them, and searches that refer to what is deployed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from podium.data import Dataset
from podium.export import connect_engine, export_ranker
from podium.export.folder import ExportFolder
from podium.export.live import DeploymentEngine
from podium.export.writing import ExportSettings
from podium.rankers import LinearRanker, Ranker

FIELDS = ("a", "b", "c")
DOCUMENTS = 24


def documents() -> np.ndarray:
    """Return the fields of all documents, no two of which have equal values."""
    random = np.random.default_rng(5)
    columns = [random.permutation(DOCUMENTS).astype(np.float32) + 1 for _ in FIELDS]
    return np.column_stack(columns)


@dataclass(frozen=True)
class RankedShop:
    """Documents in a running engine.

    Attributes:
        target: The target of exports.
        url: The address that exports are put to.
        version: The version to export for.
        name: What searches refer to.
        index: The address below which is searched.
    """

    target: str
    url: str
    version: str
    name: str
    index: str

    def fill(self) -> None:
        """Index the documents."""
        rows = [
            {"id": f"d{number}", **dict(zip(FIELDS, map(float, row), strict=True))}
            for number, row in enumerate(documents())
        ]
        if self.target == "solr":
            self._fill_solr(rows)
            return
        self.request("DELETE", self.index, allowed=(404,))
        fields = {name: {"type": "float"} for name in FIELDS}
        self.request("PUT", self.index, {"mappings": {"properties": fields}})
        for row in rows:
            self.request("PUT", f"{self.index}/_doc/{row.pop('id')}", row)
        self.request("POST", f"{self.index}/_refresh")

    def _fill_solr(self, rows: list[dict[str, Any]]) -> None:
        known = self.request("GET", f"{self.index}/schema/fields")["fields"]
        missing = sorted({*FIELDS} - {each["name"] for each in known})
        if missing:
            fields = [{"name": name, "type": "pfloat", "stored": False} for name in missing]
            self.request("POST", f"{self.index}/schema", {"add-field": fields})
        self.request("POST", f"{self.index}/update?commit=true", rows)

    def empty(self) -> None:
        """Delete the documents."""
        if self.target == "solr":
            everything = {"delete": {"query": "*:*"}}
            self.request("POST", f"{self.index}/update?commit=true", everything)
        else:
            self.request("DELETE", self.index, allowed=(404,))

    def request(
        self, method: str, url: str, content: Any = None, allowed: Sequence[int] = ()
    ) -> Any:
        """Send a request and return the answer; an error if the status is one."""
        answer = httpx2.request(method, url, json=content, trust_env=False, timeout=120)
        if answer.status_code not in (200, 201, *allowed):
            raise RuntimeError(f"{method} {url}: {answer.status_code} {answer.text[:1000]}")
        return answer.json() if answer.status_code in (200, 201) else None

    @property
    def engine(self) -> DeploymentEngine:
        """The engine, without a proxy."""
        return connect_engine(self.target, self.url)

    def search(self, client: httpx2.Client | None = None) -> list[str]:
        """Return the ids of the documents, by what is deployed under the name."""
        post = _post if client is None else client.post
        if self.target == "solr":
            body: dict[str, Any] = {
                "query": "*:*",
                "limit": DOCUMENTS,
                "fields": ["id"],
                "params": {"rq": f"{{!ltr model=${self.name} reRankDocs={DOCUMENTS}}}"},
            }
            path = f"{self.index}/select?useParams={self.name}"
        else:
            body = {"id": self.name, "params": {"query": {"match_all": {}}, "size": DOCUMENTS}}
            path = f"{self.index}/_search/template"
        answer = post(path, json=body)
        if answer.status_code != 200:
            raise RuntimeError(f"{answer.status_code}: {answer.text[:1000]}")
        if self.target == "solr":
            return [each["id"] for each in answer.json()["response"]["docs"]]
        content = answer.json()
        assert not content["_shards"]["failed"]
        return [each["_id"] for each in content["hits"]["hits"]]


def _post(path: str, **options: Any) -> httpx2.Response:
    return httpx2.post(path, trust_env=False, timeout=120, **options)


@dataclass(frozen=True)
class RankedExport:
    """A ranker, its export and the order in which it ranks the documents."""

    ranker: Ranker
    export: ExportFolder
    ranking: list[str]


def ranked_export(shop: RankedShop, folder: Path, weights: Sequence[float]) -> RankedExport:
    """Export a ranker that orders the documents by a weighted sum of their first fields."""
    rows = documents()[:, : len(weights)]
    sums = rows @ np.asarray(weights, np.float32)
    labels = np.argsort(np.argsort(sums)).astype(np.float32)
    data = Dataset.from_arrays(
        np.tile(rows, (8, 1)), np.tile(labels, 8), group=[len(rows)] * 8,
        feature_names=FIELDS[: len(weights)],
    )  # fmt: skip
    ranker = LinearRanker("RankNet()").fit(data)
    scores = ranker.predict(data)[: len(rows)]
    assert len(set(scores.astype(np.float32).tolist())) == len(scores), "ties have no one order"
    settings = ExportSettings(shop.version, shop.name, never_missing=True, golden_rows=12)
    export = export_ranker(ranker, shop.target, folder, settings)
    return RankedExport(ranker, export, [f"d{number}" for number in np.argsort(-scores)])
