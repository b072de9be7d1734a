"""An export of a ranker: its folder, its manifest and its golden rows."""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import podium
from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from podium.export import export_ranker, verify_export
from podium.export.folder import (
    REFERENCE,
    ExportFolder,
    GoldenRows,
    read_reference,
    reference_bytes,
    write_folder,
)
from podium.export.reading import read_ranker
from podium.export.targets import TARGETS
from podium.export.targets.base import Request, Written
from podium.export.targets.solr import Solr
from podium.export.verifying import read_written
from podium.export.writing import ExportSettings
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
)
from podium.scorers.models import LinearModel
from podium.scorers.trees import TreeModel, concatenate_trees
from tests.data.shared_files import shared
from tests.export.trained import catboost_model, lightgbm_model, queries, xgboost_model

RANKERS = {
    "lightgbm": lambda: TreeRanker("ListMLE(k=5)", n_estimators=30, early_stopping_rounds=3),
    "xgboost": lambda: TreeRanker(engine="xgboost", n_estimators=30, early_stopping_rounds=3),
    "RankBoost": lambda: BoostedRanker(n_estimators=20),
    "FocusedBoost": lambda: BoostedRanker(beta=0.5, k=5, list_measure="nDCG", n_estimators=20),
    "linear": lambda: LinearRanker("ListNet()"),
    "AdaRank": lambda: BoostedRanker(beta=1, weak_ranker="feature", n_estimators=5),
    "network": lambda: NeuralRanker("ListNet()", hidden_layer_sizes=[4], epochs=2),
}
NEEDS_VALUES = ("linear", "AdaRank")


def _fitted(name: str) -> tuple[Ranker, Dataset]:
    data = queries(missing=name not in NEEDS_VALUES)
    return RANKERS[name]().fit(data, eval_set=data.select(np.arange(10))), data


@pytest.mark.parametrize("name", RANKERS)
def test_the_model_of_a_ranker_scores_as_the_ranker(name: str) -> None:
    ranker, data = _fitted(name)
    model = ranker.fitted_model()
    # XGBoost and networks compute in single precision.
    tolerance = {"xgboost": 1e-5, "network": 1e-5}.get(name, 1e-12)
    assert np.abs(model.predict(data.features) - ranker.predict(data)).max() < tolerance
    if isinstance(model, TreeModel) and isinstance(ranker, TreeRanker):
        assert model.trees == ranker.n_estimators_ < 30


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("target", ["onnx", "solr"])
def test_every_ranker_can_be_exported_and_holds(name: str, target: str, tmp_path: Path) -> None:
    ranker, _ = _fitted(name)
    export = export_ranker(ranker, target, tmp_path / "export")
    assert verify_export(tmp_path / "export").holds
    golden = export.golden_rows()
    # The expected scores are the ranker's own.
    assert np.array_equal(golden.scores, ranker.predict(golden.values))
    assert np.isnan(golden.values).any() == (name not in NEEDS_VALUES)


def test_the_manifest_tells_what_was_exported(tmp_path: Path) -> None:
    ranker, _ = _fitted("lightgbm")
    ranker.save(tmp_path / "ranker")
    options = ExportSettings(model_name="mine", measure={"nDCG@10": 0.5})
    export = export_ranker(tmp_path / "ranker", "opensearch", tmp_path / "export", options)
    manifest = export.manifest
    assert manifest.ranker == {
        "kind": "TreeRanker",
        "sha256": hashlib.sha256((tmp_path / "ranker").read_bytes()).hexdigest(),
    }
    assert (manifest.target, manifest.engine_version, manifest.model_name) == (
        "opensearch", "3.8", "mine",
    )  # fmt: skip
    assert [feature.name for feature in manifest.features] == ["1", "2", "3", "4", "5", "6"]
    assert export.engine_names == ["f1", "f2", "f3", "f4", "f5", "f6"]
    assert manifest.measure == {"nDCG@10": 0.5}
    assert manifest.versions["podium"] == podium.__version__
    assert manifest.golden["leaves_reached"] == manifest.golden["leaves"]
    assert sorted(manifest.files) == [
        "featureset.json", "golden.jsonl", "model.json", "reference.podium",
    ]  # fmt: skip
    assert export.changed_files() == []
    names = [item["name"] for item in export.read_json("featureset.json")["featureset"]["features"]]
    assert names == export.engine_names
    assert ExportFolder.open(tmp_path / "export").manifest == manifest


def test_extractors_take_the_place_of_fields(tmp_path: Path) -> None:
    ranker, _ = _fitted("lightgbm")
    query = {"match": {"title": "{{keywords}}"}}
    options = ExportSettings(extractors={"2": query})
    export = export_ranker(ranker, "opensearch", tmp_path / "export", options)
    features = export.read_json("featureset.json")["featureset"]["features"]
    assert features[1]["template"] == query
    assert features[1]["params"] == ["keywords"]
    assert features[0]["template"]["function_score"]["query"] == {"exists": {"field": "f1"}}
    with pytest.raises(DataError, match="'bm25' is not a feature of the ranker"):
        export_ranker(
            ranker, "opensearch", tmp_path / "export", ExportSettings(extractors={"bm25": {}})
        )


def test_models_that_podium_never_trained(tmp_path: Path) -> None:
    (tmp_path / "lightgbm.txt").write_text(lightgbm_model().model_to_string())
    xgboost_model().save_model(tmp_path / "xgboost.ubj")
    (tmp_path / "catboost.json").write_bytes(catboost_model(tmp_path)[1])
    for name in ("lightgbm.txt", "xgboost.ubj", "catboost.json"):
        export = export_ranker(tmp_path / name, "onnx", tmp_path / f"{name}.onnx")
        assert verify_export(export).holds
        assert export.manifest.ranker["kind"] == "TreeModel"
    # Only the last has no categories.
    export_ranker(tmp_path / "catboost.json", "vespa", tmp_path / "vespa")
    with pytest.raises(ArgumentError, match="does not write splits by categories for Vespa"):
        export_ranker(tmp_path / "lightgbm.txt", "vespa", tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_a_cascade_is_refused(tmp_path: Path) -> None:
    data = queries(missing=False)
    ranker = CascadeRanker(LinearRanker("ListNet()"), [LinearRanker("ListNet()")], candidates=5)
    with pytest.raises(ArgumentError, match="a cascade ranks the documents of a query by votes"):
        export_ranker(ranker.fit(data), "onnx", tmp_path / "cascade")


def test_missing_and_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_ranker(tmp_path / "none")
    with (tmp_path / "large").open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(DataError, match="larger than 1 GiB"):
        read_ranker(tmp_path / "large")


@pytest.mark.parametrize("target", ["onnx", "vespa", "solr"])
def test_an_export_that_fails_leaves_no_folder(tmp_path: Path, target: str) -> None:
    content = json.loads(bytes(xgboost_model(2, max_depth=1).save_raw("json")))
    content["learner"]["feature_names"] = ["a\ud800", *"bcdef"]
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"model\.json: has a feature whose name is not valid"):
        export_ranker(tmp_path / "model.json", target, tmp_path / "export")
    ranker = TreeRanker(n_estimators=2).fit(queries())
    options = ExportSettings(extractors={"a" * 500: {}})
    with pytest.raises(DataError, match=r"'a{59}\.\.\. is not a feature of the ranker"):
        export_ranker(ranker, target, tmp_path / "export", options)
    assert not (tmp_path / "export").exists()


def test_an_expression_for_vespa_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    ranker = TreeRanker(n_estimators=2).fit(queries())
    options = ExportSettings(extractors={"1": "attribute(\ud800)"})
    with pytest.raises(DataError, match="an extractor is not valid Unicode"):
        export_ranker(ranker, "vespa", tmp_path / "export", options)
    assert not (tmp_path / "export").exists()


def test_a_manifest_that_could_not_be_opened_is_not_written(tmp_path: Path) -> None:
    export = export_ranker(TreeRanker(n_estimators=2).fit(queries()), "vespa", tmp_path / "export")
    manifest = replace(export.manifest, model_name="no name")
    with pytest.raises(ValueError, match="'no name' is not a name"):
        write_folder(tmp_path / "other", manifest, export.golden_rows().lines(), {REFERENCE: b""})
    assert not (tmp_path / "other").exists()


def test_a_full_disk_leaves_the_export_before(tmp_path: Path) -> None:
    ranker = TreeRanker(n_estimators=2).fit(queries())
    export = export_ranker(ranker, "vespa", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    rows, files = export.golden_rows(), {REFERENCE: b"new", "zz.json": b"x" * 200}
    golden = GoldenRows(rows.values[:1], rows.scores[:1])  # what fits into buffers fails last
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(DataError, match=r"cannot be written \(File too large\)"):
            write_folder(tmp_path, export.manifest, golden.lines(), files)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_of_the_export_before_is_kept_if_it_is_read(tmp_path: Path) -> None:
    ranker = TreeRanker(n_estimators=2).fit(queries())
    export_ranker(ranker, "opensearch", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    options = ExportSettings(inputs=[tmp_path / "featureset.json"])
    with pytest.raises(ArgumentError, match=r"featureset\.json is one of the files to read"):
        export_ranker(ranker, "vespa", tmp_path, options)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_manifest_of_something_else_is_not_replaced(tmp_path: Path) -> None:
    ranker, manifest = TreeRanker(n_estimators=2).fit(queries()), tmp_path / "manifest.json"
    for text in ('{"shards": []}', "[1]", '{"name": "x", "target": "web"}', "// by hand\n{}", ""):
        manifest.write_text(text)
        with pytest.raises(ArgumentError, match=r"manifest\.json is not of an export"):
            export_ranker(ranker, "vespa", tmp_path)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
            "manifest.json": text
        }
    # An export whose files were changed is replaced.
    manifest.unlink()
    export_ranker(ranker, "solr", tmp_path)
    (tmp_path / REFERENCE).write_text("changed")
    assert export_ranker(ranker, "vespa", tmp_path).manifest.target == "vespa"


def test_an_unknown_target_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="opensearch"):
        export_ranker(_fitted("RankBoost")[0], "opensaerch", tmp_path / "export")


def test_a_folder_that_is_no_export(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        ExportFolder.open(tmp_path)


def test_files_outside_the_export_are_not_read(tmp_path: Path) -> None:
    export = export_ranker(_fitted("RankBoost")[0], "solr", tmp_path / "export")
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(DataError, match="no such file in the export"):
        export.read("../secret")
    manifest = json.loads((tmp_path / "export" / "manifest.json").read_text())
    manifest["files"]["../secret"] = ""
    (tmp_path / "export" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="not the manifest of an export"):
        ExportFolder.open(tmp_path / "export")


@pytest.mark.parametrize(
    "change",
    [
        {"tolerance": "large"},
        {"tolerance": None},
        {"model_name": "../x"},
        {"features": [{"name": "a", "engine_name": "a b"}]},
        {"features": [{"name": "a", "engine_name": "a", "absent": "x"}]},
        {"features": [{"name": "a"}]},
        {"limits": 3},
        {"files": []},
        {"format": 2},
        {"more": 1},
    ],
)
def test_a_manifest_with_other_values_is_refused(change: dict, tmp_path: Path) -> None:
    export_ranker(_fitted("RankBoost")[0], "solr", tmp_path / "export")
    manifest = json.loads((tmp_path / "export" / "manifest.json").read_text())
    (tmp_path / "export" / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(DataError):
        verify_export(tmp_path / "export")


def test_a_reference_is_read_back() -> None:
    model = _fitted("lightgbm")[0].fitted_model()
    assert isinstance(model, TreeModel)
    model = replace(model, base_score=0.25)
    again = read_reference(reference_bytes(model))
    X = queries().features
    assert isinstance(again, TreeModel)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.feature_names == model.feature_names
    network = _fitted("network")[0].fitted_model()
    assert np.array_equal(read_reference(reference_bytes(network)).predict(X), network.predict(X))
    linear = LinearModel(("a", "b"), np.array([0.5, -1.0]))
    again = read_reference(reference_bytes(linear))
    assert isinstance(again, LinearModel)
    assert again.weights.tolist() == [0.5, -1.0]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"left": [1, 0, 0, 0, 0]}, "arrays differ in length"),
        ({"left": [3, 0, 0]}, "do not form trees"),
        ({"left": [0, 0, 0]}, "do not form trees"),
        ({"left": [2, 0, 0]}, "do not form trees"),
        ({"feature": [1, -1, -1]}, "splits by no feature"),
        ({"threshold": [np.nan, 0, 0]}, "threshold is not a number"),
        ({"value": [0, np.inf, 0]}, "value of a leaf is not finite"),
        ({"category_set": [0, -1, -1]}, "category set is out of range"),
    ],
)
def test_nodes_that_form_no_tree_are_refused(change: dict, problem: str) -> None:
    tree = {
        "feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
        "missing_left": [0, 0, 0], "value": [0, 1, 2],
    }  # fmt: skip
    with pytest.raises(DataError, match=problem):
        concatenate_trees([tree | change], ("a",))


@pytest.mark.slow
def test_real_rows_score_the_same(tmp_path: Path) -> None:
    from podium.data import read_letor

    data = read_letor(shared("letor/MQ2008/S1.txt.gz"))
    ranker = TreeRanker(n_estimators=50).fit(data)
    export = export_ranker(ranker, "onnx", tmp_path / "export")
    engine = read_written(export, ranker.fitted_model())
    assert np.abs(engine.predict(data.features) - ranker.predict(data)).max() < 1e-12


def test_files_that_would_score_otherwise_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Careless(Solr):
        """Forgets where missing values go."""

        def write_trees(self, request: Request, model: TreeModel) -> Written:
            return super().write_trees(request, replace(model, missing_left=~model.missing_left))

    monkeypatch.setitem(TARGETS, "careless", Careless())
    ranker, _ = _fitted("lightgbm")
    with pytest.raises(DataError, match=r"Solr would score a golden row .* off"):
        export_ranker(ranker, "careless", tmp_path / "export")
    assert not (tmp_path / "export").exists()


def test_a_base_installation_is_told_the_one_extra_it_lacks() -> None:
    code = "import sys\nsys.modules['sklearn'] = None\nimport podium.export\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "scikit-learn is not installed: pip install 'podium-rank[export]'." in done.stderr


def test_trees_after_the_best_iteration_are_told(tmp_path: Path) -> None:
    import xgboost

    X = np.random.default_rng(0).random((60, 2))
    booster = xgboost.train({"max_depth": 2}, xgboost.DMatrix(X, X[:, 0]), 5)
    booster.save_model(tmp_path / "whole.json")
    booster.set_attr(best_iteration="2")
    booster.save_model(tmp_path / "stopped.json")
    whole = export_ranker(tmp_path / "whole.json", "onnx", tmp_path / "whole")
    stopped = export_ranker(tmp_path / "stopped.json", "onnx", tmp_path / "stopped")
    assert whole.manifest.limits == ()
    assert "its 2 trees after the best iteration are left out" in stopped.manifest.limits[0]


def test_an_export_to_another_target_leaves_no_files_of_the_first(tmp_path: Path) -> None:
    ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "notes.txt").write_text("mine")
    export_ranker(ranker, "solr", tmp_path / "both")
    export_ranker(ranker, "opensearch", tmp_path / "both")
    export_ranker(ranker, "opensearch", tmp_path / "one")
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert {path.name for path in (tmp_path / "both").iterdir()} == names | {"notes.txt"}


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot be written .*Check the path"):
        export_ranker(ranker, "onnx", tmp_path / "file" / "folder")
