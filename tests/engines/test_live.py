"""Exports in running engines: put there, they score golden rows as the ranker does."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import numpy as np
import pytest

from podium.errors import ArgumentError, DataError
from podium.export import connect_engine, export_ranker, verify_export
from podium.export.folder import ExportFolder
from podium.export.live.http_client import EngineClient
from podium.export.verifying import read_written
from podium.export.writing import ExportSettings
from podium.rankers import BoostedRanker, LinearRanker, NeuralRanker, TreeRanker
from tests.cli.run_podium import podium

pytestmark = pytest.mark.slow

ROWS, COLUMNS = 300, 5


def data(missing: float = 0.0):
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, 2.0, (ROWS, COLUMNS)).astype(np.float32)
    y = (np.where(X[:, 0] > 2, 2.0, 0.0) + (X[:, 1] < 1)).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, [10] * (ROWS // 10)


@pytest.fixture(scope="module")
def trees_with_missing_values():
    X, y, group = data(missing=0.2)
    return TreeRanker(n_estimators=20).fit(X, y, group=group)


@pytest.fixture(scope="module")
def trees():
    X, y, group = data()
    return TreeRanker(n_estimators=20).fit(X, y, group=group)


@pytest.fixture(scope="module")
def linear():
    X, y, group = data()
    return LinearRanker("ListNet()").fit(X, y, group=group)


def verified(export: ExportFolder, url: str):
    """Put an export into an engine and verify it there."""
    engine = connect_engine(export.manifest.target, url)
    engine.put(export)
    return verify_export(export, engine)


def without_missing(ranker, folder: Path, version: str) -> ExportFolder:
    options = ExportSettings(engine_version=version, never_missing=True)
    return export_ranker(ranker, "solr", folder, options)


def indices(url: str) -> list[str]:
    listed = httpx2.get(
        f"{url}/_cat/indices?h=index&format=json", trust_env=False, timeout=60
    ).json()
    return sorted(each["index"] for each in listed)


def test_opensearch_scores_trees_with_missing_values(
    opensearch_ltr, trees_with_missing_values, tmp_path
):
    export = export_ranker(trees_with_missing_values, "opensearch", tmp_path)
    verification = verified(export, opensearch_ltr.url)
    assert np.isnan(export.golden_rows().values).any()
    assert (verification.rows, verification.off) == (len(export.golden_rows().scores), ())
    assert verification.largest <= 1e-6
    assert not any(name.startswith("podium-golden") for name in indices(opensearch_ltr.url))


def test_opensearch_scores_single_precision_exactly_as_the_target_reads_it(
    opensearch_ltr, trees_with_missing_values, tmp_path
):
    """The engine and the evaluator of its format agree in every bit."""
    export = export_ranker(trees_with_missing_values, "opensearch", tmp_path)
    engine = connect_engine("opensearch", opensearch_ltr.url)
    engine.put(export)
    read = read_written(export, trees_with_missing_values.fitted_model())
    expected = read.predict(export.golden_rows().values)
    np.testing.assert_array_equal(engine.score(export, export.golden_rows().values), expected)


def test_opensearch_scores_a_linear_ranker(opensearch_ltr, linear, tmp_path):
    verification = verified(export_ranker(linear, "opensearch", tmp_path), opensearch_ltr.url)
    assert verification.off == ()


@pytest.mark.parametrize("kind", [BoostedRanker, lambda: TreeRanker(engine="xgboost")])
def test_opensearch_scores_other_trees(opensearch_ltr, tmp_path, kind):
    X, y, group = data()
    export = export_ranker(kind().fit(X, y, group=group), "opensearch", tmp_path)
    assert verified(export, opensearch_ltr.url).off == ()


def test_versions_of_a_model_are_beside_each_other_in_opensearch(
    opensearch_ltr, trees, linear, tmp_path
):
    first = export_ranker(trees, "opensearch", tmp_path / "first")
    second = export_ranker(linear, "opensearch", tmp_path / "second")
    assert verified(first, opensearch_ltr.url).off == ()
    assert verified(second, opensearch_ltr.url).off == ()
    assert verify_export(first, connect_engine("opensearch", opensearch_ltr.url)).off == ()


def test_another_model_that_was_uploaded_by_hand_is_found_in_opensearch(
    opensearch_ltr, trees, linear, tmp_path
):
    export = export_ranker(trees, "opensearch", tmp_path / "trees", ExportSettings("3.8", "byhand"))
    other = export_ranker(
        linear, "opensearch", tmp_path / "linear", ExportSettings("3.8", "byhand")
    )
    engine = connect_engine("opensearch", opensearch_ltr.url)
    engine.put(other)  # with the feature set
    path = "_ltr/_featureset/{}/_createmodel".format(
        other.read_json("featureset.json")["featureset"]["name"]
    )
    with EngineClient(opensearch_ltr.url, "OpenSearch") as client:
        client.request("POST", path, other.read("model.json"))
    assert not verify_export(export, engine).holds
    assert verify_export(other, engine).holds


def test_a_model_that_was_not_put_is_told(opensearch_ltr, linear, tmp_path):
    export = export_ranker(linear, "opensearch", tmp_path, ExportSettings(model_name="unput"))
    with pytest.raises(
        DataError,
        match=r"OpenSearch has no model 'podium-unput-[0-9a-f]{12}' and no 'unput'",
    ):
        connect_engine("opensearch", opensearch_ltr.url).score(export, export.golden_rows().values)


def test_an_older_opensearch_is_refused(opensearch_ltr, linear, tmp_path):
    export = export_ranker(linear, "opensearch", tmp_path, ExportSettings(engine_version="3.99"))
    with pytest.raises(
        DataError, match=r"the server has version 3\.8\.0, .* version 3\.99 or later"
    ):
        connect_engine("opensearch", opensearch_ltr.url).put(export)


def test_a_model_whose_features_are_queries_scores_golden_rows_all_the_same(
    opensearch_ltr, linear, tmp_path
):
    name = export_ranker(linear, "opensearch", tmp_path / "plain").engine_names[0]
    options = ExportSettings(extractors={name: {"match": {"title": "{{words}}"}}})
    export = export_ranker(linear, "opensearch", tmp_path / "query", options)
    assert verified(export, opensearch_ltr.url).off == ()


def test_a_server_without_the_plugin_is_told(solr, linear, tmp_path):
    export = export_ranker(linear, "opensearch", tmp_path)
    with pytest.raises(DataError, match="OpenSearch answers"):
        connect_engine("opensearch", solr.url).put(export)


def test_solr_scores_trees(solr, trees, tmp_path):
    export = without_missing(trees, tmp_path, "8.11")
    verification = verified(export, solr.core)
    assert (verification.rows, verification.off) == (len(export.golden_rows().scores), ())
    assert verification.largest <= 1e-6
    remaining = httpx2.get(f"{solr.core}/select?q=*:*", trust_env=False, timeout=60).json()
    assert remaining["response"]["numFound"] == 0


def test_solr_scores_a_linear_ranker(solr, linear, tmp_path):
    assert verified(without_missing(linear, tmp_path, "8.11"), solr.core).off == ()


def test_solr_scores_a_network(solr, tmp_path):
    X, y, group = data()
    ranker = NeuralRanker("ListNet()", hidden_layer_sizes=[4], epochs=2).fit(X, y, group=group)
    assert verified(without_missing(ranker, tmp_path, "8.11"), solr.core).off == ()


def test_solr_9_scores_trees_with_missing_values(solr_9, trees_with_missing_values, tmp_path):
    export = export_ranker(trees_with_missing_values, "solr", tmp_path)
    verification = verified(export, solr_9.core)
    assert np.isnan(export.golden_rows().values).any()
    assert (verification.rows, verification.off) == (len(export.golden_rows().scores), ())
    assert verification.largest <= 1e-6


def test_versions_of_a_model_are_beside_each_other_in_solr(solr, trees, linear, tmp_path):
    first = without_missing(trees, tmp_path / "first", "8.11")
    second = without_missing(linear, tmp_path / "second", "8.11")
    assert verified(first, solr.core).off == ()
    assert verified(second, solr.core).off == ()
    assert verify_export(first, connect_engine("solr", solr.core)).off == ()


def test_another_model_that_was_uploaded_by_hand_is_found_in_solr(solr, trees, linear, tmp_path):
    options = ExportSettings("8.11", model_name="byhand", never_missing=True)
    export = export_ranker(trees, "solr", tmp_path / "trees", options)
    other = export_ranker(linear, "solr", tmp_path / "linear", options)
    engine = connect_engine("solr", solr.core)
    engine.put(other)  # with the feature store
    with EngineClient(solr.core, "Solr") as client:
        client.request("PUT", "schema/model-store", other.read("model.json"))
    assert not verify_export(export, engine).holds
    assert verify_export(other, engine).holds


def test_an_older_solr_is_refused(solr, trees_with_missing_values, tmp_path):
    export = export_ranker(trees_with_missing_values, "solr", tmp_path)
    with pytest.raises(DataError, match=r"version 8\.11\.4, and the export is for version 9\.2"):
        connect_engine("solr", solr.core).put(export)


def test_a_collection_with_documents_is_not_touched(solr, linear, tmp_path):
    """Golden rows are scored with values that requests give."""
    export = without_missing(linear, tmp_path, "8.11")
    engine = connect_engine("solr", solr.core)
    engine.put(export)
    update = f"{solr.core}/update?commit=true"
    httpx2.post(update, json=[{"id": "served"}], trust_env=False, timeout=60).raise_for_status()
    try:
        assert verify_export(export, engine).off == ()
        answer = httpx2.get(f"{solr.core}/select?q=*:*&fl=id", trust_env=False, timeout=60).json()
        assert answer["response"]["docs"] == [{"id": "served"}]
        assert engine.stored().leftovers == ()
    finally:
        delete = {"delete": {"query": "*:*"}}
        httpx2.post(update, json=delete, trust_env=False, timeout=60).raise_for_status()


@pytest.mark.parametrize(
    ("target", "file"), [("solr", "model.json"), ("opensearch", "featureset.json")]
)
def test_names_from_elsewhere_address_nothing_else(solr, linear, tmp_path, target, file):
    """Nothing is sent: both kinds of requests would be answered here, if only with an error."""
    export = export_ranker(linear, target, tmp_path, ExportSettings("3.8", never_missing=True))
    path = tmp_path / file
    path.write_text(path.read_text().replace("podium_features", "../../admin/cores"))
    with pytest.raises(
        DataError, match=r"'\.\./\.\./admin/cores_\w{12}' is not a name that engines take"
    ):
        connect_engine(target, solr.core).put(export)


def test_a_name_that_means_all_models_is_refused(linear, tmp_path):
    """Elasticsearch would delete them."""
    export = export_ranker(linear, "opensearch", tmp_path, ExportSettings(model_name="_all"))
    with pytest.raises(DataError, match="'_all' is not a name that engines take"):
        connect_engine("elasticsearch", "http://127.0.0.1:1").put(export)


@pytest.mark.parametrize("url", ["localhost:9200", "file:///etc/passwd", "http://", "http://h/?q"])
def test_an_address_that_is_none_is_refused(linear, tmp_path, url):
    export = export_ranker(linear, "opensearch", tmp_path)
    with pytest.raises(ArgumentError, match="is not the address of a search engine"):
        connect_engine("opensearch", url).put(export)


def test_a_server_that_does_not_run_is_told(linear, tmp_path):
    export = export_ranker(linear, "opensearch", tmp_path)
    with pytest.raises(DataError, match=r"OpenSearch cannot be reached \(ConnectError\)"):
        connect_engine("opensearch", "http://127.0.0.1:1").put(export)


@pytest.mark.parametrize("target", ["onnx", "vespa"])
def test_targets_without_a_running_engine_are_told(target):
    with pytest.raises(ArgumentError, match="is not put into a running engine"):
        connect_engine(target, "http://localhost")


def test_the_commands_put_and_verify_in_a_running_engine(solr, trees, tmp_path):
    trees.save(tmp_path / "trees.podium")
    folder = tmp_path / "export"
    done = podium(
        "export", tmp_path / "trees.podium", "--to", "solr", "--engine-version", "8.11",
        "--never-missing", "-o", folder, "--name", "by_command", "--put", solr.core,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.decode().split())
    assert re.search(r"Uploaded podium-by_command-\w{12} to Solr", said)
    assert "Searches for by_command refer to it now" in said
    done = podium("verify", folder, solr.core)
    rows = len(ExportFolder.open(folder).golden_rows().scores)
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"0 of {rows} golden rows off" in " ".join(done.stdout.decode().split())


def test_the_commands_refuse_targets_without_a_running_engine_before_they_write(trees, tmp_path):
    trees.save(tmp_path / "trees.podium")
    folder = tmp_path / "export"
    done = podium(
        "export", tmp_path / "trees.podium", "--to", "onnx", "-o", folder, "--put", "http://x"
    )
    assert done.returncode == 2
    assert "is not put into a running engine" in " ".join(done.stderr.decode().split())
    assert not folder.exists()
