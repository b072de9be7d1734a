"""Fusions of lists in running engines."""

from __future__ import annotations

import os
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from podium.errors import DataError
from podium.export import connect_engine, deploy_export, export_ranker
from podium.export.folder import ExportFolder
from podium.hybrid import Fusion
from tests.engines.install import ENGINES, HERE, installed
from tests.engines.java import java_home
from tests.engines.servers import OpenSearchServer, Solr9Server

pytestmark = pytest.mark.slow


def solr_scores(url: str, request: Any, names: list[str], values: Any) -> list[float]:
    """Scores of the documents that alone are in a core."""
    documents = [
        {
            "id": str(row),
            **{name: value for name, value in zip(names, each, strict=True) if value == value},
        }
        for row, each in enumerate(values.tolist())
    ]
    with httpx2.Client(base_url=f"{url}/", trust_env=False, timeout=60) as client:

        def post(path: str, content: Any) -> Any:
            answer = client.post(path, json=content)
            assert answer.status_code == 200, answer.text
            return answer.json()

        post("update", {"delete": {"query": "*:*"}})
        post("update?commit=true", documents)
        found = post("select", {**request, "limit": 1000, "fields": ["id", "score"]})
    scores = np.zeros(len(documents))
    for each in found["response"]["docs"]:
        scores[int(each["id"])] = np.float32(each["score"])
    return scores.tolist()


@pytest.mark.parametrize("normalization", ["min-max", "none"])
def test_solr_fuses_golden_queries(solr_9: Solr9Server, normalization: Any, tmp_path: Path) -> None:
    export = export_ranker(
        Fusion(("bm25", "dense"), normalization, weights=(1, 3)), "solr", tmp_path
    )
    names, golden = export.engine_names, export.golden_rows()
    fields = [{"name": name, "type": "pfloat", "indexed": True, "stored": False} for name in names]
    httpx2.post(f"{solr_9.core}/schema", json={"add-field": fields}, timeout=60, trust_env=False)
    assert golden.offsets is not None
    request = export.read_json("request.json")
    try:
        for begin, end in list(pairwise(golden.offsets.tolist()))[:20]:
            scores = solr_scores(solr_9.core, request, names, golden.values[begin:end])
            assert scores == golden.scores[begin:end].tolist()
    finally:
        content = {"delete": {"query": "*:*"}}
        httpx2.post(f"{solr_9.core}/update?commit=true", json=content, timeout=60, trust_env=False)


def vespa_scores(export: ExportFolder, folder: Path) -> list[float]:
    """Scores of golden queries by the classes by which Vespa reads and evaluates a profile."""
    golden, names = export.golden_rows(), export.engine_names
    assert golden.offsets is not None
    (folder / "schemas").mkdir()
    fields = "".join(f"    field {name} type float {{ indexing: attribute }}\n" for name in names)
    profile = export.read("rank-profile.sd").decode()
    schema = f"schema rows {{\n  document rows {{\n{fields}  }}\n{profile}}}\n"
    (folder / "schemas/rows.sd").write_text(schema)
    lines = ["\t".join(["query", *names])]
    for query, (begin, end) in enumerate(pairwise(golden.offsets.tolist())):
        rows = np.nan_to_num(golden.values[begin:end]).tolist()
        lines += ["\t".join([str(query), *map(repr, row)]) for row in rows]
    (folder / "rows.tsv").write_text("\n".join(lines))
    program = HERE / "parsers/VespaFusion.java"
    command = [java_home(21) / "bin/java", "-XX:TieredStopAtLevel=1",
               "-cp", f"{ENGINES / 'vespa'}/*", program, folder]  # fmt: skip
    answer = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=500, check=False
    )
    lines = [line for line in answer.stdout.splitlines() if line.startswith("score ")]
    assert len(lines) == len(golden.scores), answer.stderr[-2000:]
    return [float(line.split()[1]) for line in lines]


@pytest.mark.parametrize(
    ("normalization", "combination"),
    [("min-max", "arithmetic"), ("rank", "rrf"), ("none", "arithmetic")],
)
def test_vespas_classes_fuse_golden_queries(
    normalization: Any, combination: Any, tmp_path: Path
) -> None:
    if not installed("vespa") and not os.environ.get("CI"):
        pytest.skip("needs vespa: run 'make engines'")
    fusion = Fusion(("bm25", "dense v2"), normalization, combination, (1, 3))
    export = export_ranker(fusion, "vespa", tmp_path / "export")
    scores = vespa_scores(export, tmp_path)
    assert np.abs(np.array(scores) - export.golden_rows().scores).max() <= export.manifest.tolerance


def test_opensearch_without_the_plugin_takes_no_fusion(
    opensearch: OpenSearchServer, tmp_path: Path
) -> None:
    export = export_ranker(Fusion(("bm25", "dense")), "opensearch", tmp_path)
    with pytest.raises(DataError, match="has no neural-search plugin"):
        deploy_export(export, connect_engine("opensearch", opensearch.url, fuses=True))
