"""``verify_export`` notices every change of an export, and names it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.errors import DataError
from podium.export import export_ranker, verify_export
from podium.export.explanations import explain_scores
from podium.export.folder import MANIFEST, REFERENCE, ExportFolder, Feature, read_reference
from podium.export.writing import ExportSettings
from podium.kernels import Doubles
from podium.rankers import LinearRanker, NeuralRanker, TreeRanker
from podium.scorers.trees import TreeModel, concatenate_trees
from tests.export.faults import apply_fault, change_onnx, faults, rewrite
from tests.export.trained import queries

SEARCH = ("opensearch", "o19s", "solr", "elasticsearch", "vespa")


@pytest.fixture(scope="module")
def ranker() -> TreeRanker:
    return TreeRanker(n_estimators=8, num_leaves=8).fit(queries())


@pytest.fixture(scope="module")
def exports(ranker: TreeRanker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("exports")
    for target in ("onnx", *SEARCH):
        export_ranker(ranker, target, root / target)
    return {target: root / target for target in ("onnx", *SEARCH)}


@pytest.mark.parametrize("target", ["onnx", *SEARCH])
def test_an_export_holds(exports: dict[str, Path], target: str) -> None:
    found = verify_export(exports[target])
    assert found.holds
    assert (found.off, found.findings, found.changed) == ((), (), ())
    assert found.rows == ExportFolder.open(exports[target]).manifest.golden["rows"]


@pytest.mark.parametrize("target", SEARCH)
def test_each_of_100_faults_is_found_and_named(
    exports: dict[str, Path], tmp_path: Path, target: str
) -> None:
    names = ["f1", "f2"]
    for number, (name, change) in enumerate(faults(target, 20, names)):
        folder = tmp_path / str(number)
        shutil.copytree(exports[target], folder)
        words = apply_fault(ExportFolder.open(folder), change)
        found = verify_export(folder)
        assert not found.holds, name
        texts = [finding.text for finding in found.findings]
        assert texts, name
        assert all(re.search(words, text) for text in texts), (name, words, texts)
        assert all(finding.rows for finding in found.findings)


@pytest.mark.parametrize("target", SEARCH)
def test_faults_that_no_golden_row_shows_are_found_and_named(
    ranker: TreeRanker, tmp_path: Path, target: str
) -> None:
    export_ranker(ranker, target, tmp_path / "few", ExportSettings(golden_rows=1))
    golden = (tmp_path / "few" / "golden.jsonl").read_bytes().splitlines(keepends=True)
    hidden = 0
    for number, (name, change) in enumerate(faults(target, 12, ["f1", "f2"])):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "few", folder)
        rewrite(folder, "golden.jsonl", b"".join(golden[:2]))
        words = apply_fault(ExportFolder.open(folder), change)
        found = verify_export(folder)
        texts = [finding.text for finding in found.findings]
        hidden += not any(finding.rows for finding in found.findings)
        assert texts, name
        if name.startswith(("threshold", "missing")):
            assert all(re.search(words, text) for text in texts), (name, words, texts)
    assert hidden > 2


def test_a_verification_says_what_it_could_not_notice(
    exports: dict[str, Path], tmp_path: Path
) -> None:
    assert verify_export(exports["solr"]).unchecked == ("a running engine: no URL was given",)
    engine = Engine(lambda model, X: model.predict(X, np.float32))
    own_fields = "features of your own documents: golden rows have fields of their own"
    *_, last_digit, last = verify_export(exports["solr"], engine).unchecked
    assert last == own_fields
    scores = ExportFolder.open(exports["solr"]).golden_rows().scores
    step = np.spacing(np.float32(np.abs(scores).max()))
    assert f"by less than {step:.2g}, the last digit" in last_digit
    shutil.copytree(exports["solr"], tmp_path / "solr")
    golden = (tmp_path / "solr" / "golden.jsonl").read_bytes().splitlines(keepends=True)
    rewrite(tmp_path / "solr", "golden.jsonl", b"".join(golden[:1] * 3))
    found = verify_export(tmp_path / "solr", engine)
    assert found.holds
    assert re.match(r"\d+ of 64 leaves: no golden row reaches them", found.unchecked[0])
    assert re.match(r"5\d of 56 thresholds to the last digit: ", found.unchecked[1])
    assert "the ranker: all 3 golden rows have the same score" in found.unchecked


def test_a_verification_that_could_not_fail_does_not_hold(
    exports: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(exports["solr"], tmp_path / "solr")
    rewrite(tmp_path / "solr", "golden.jsonl", b"")
    found = verify_export(tmp_path / "solr", Engine(lambda model, X: model.predict(X)))
    assert not found.holds
    texts = [finding.text for finding in found.findings]
    assert texts == ["no golden row could be off: nothing was verified"]


def _move(model: dict[str, Any]) -> None:
    model["nodes_splits"][5] = np.nextafter(
        np.float32(model["nodes_splits"][5]), np.float32(np.inf)
    ) + np.spacing(np.float32(model["nodes_splits"][5]))


def _flip(model: dict[str, Any]) -> None:
    model["nodes_missing_value_tracks_true"][4] ^= 1


def _swap(model: dict[str, Any]) -> None:
    for true, false in (("nodes_truenodeids", "nodes_falsenodeids"), ("nodes_trueleafs", "nodes_falseleafs")):  # fmt: skip # noqa: E501
        model[true][0], model[false][0] = int(model[false][0]), int(model[true][0])


def _leaf(model: dict[str, Any]) -> None:
    model["leaf_weights"][3] += 1e-9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_move, "tree 0, split .*goes left instead of right"),
        (_flip, "tree 0, split .*a missing value goes"),
        (_swap, "tree 0, split 0 .* goes (left instead of right|right instead of left)"),
        (_leaf, "row scores .* instead of .*, by no single split"),
    ],
)
def test_faults_of_a_graph_are_found_and_named(
    exports: dict[str, Path], tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    shutil.copytree(exports["onnx"], tmp_path / "onnx")
    change_onnx(tmp_path / "onnx", change)
    found = verify_export(tmp_path / "onnx")
    assert not found.holds
    assert found.off
    assert re.search(words, found.findings[0].text), found.findings


def test_another_default_value_is_named(exports: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(exports["solr"], tmp_path / "solr")
    features = json.loads((tmp_path / "solr" / "features.json").read_text())
    used = read_reference((tmp_path / "solr" / REFERENCE).read_bytes())
    assert isinstance(used, TreeModel)
    column = int(used.feature[0])
    features[column]["params"]["defaultValue"] = "0.75"
    rewrite(tmp_path / "solr", "features.json", json.dumps(features).encode())
    found = verify_export(tmp_path / "solr")
    texts = [finding.text for finding in found.findings]
    assert texts
    assert all("an absent value is 0.75 instead of missing" in text for text in texts)


def test_a_changed_file_is_named(exports: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(exports["solr"], tmp_path / "solr")
    model = tmp_path / "solr" / "model.json"
    model.write_bytes(model.read_bytes() + b"\n")
    for engine in (None, Engine(lambda model, X: model.predict(X, np.float32))):
        found = verify_export(tmp_path / "solr", engine)
        assert not found.holds
        assert found.changed == ("model.json",)
        assert [finding.text for finding in found.findings] == [
            "model.json is not as it was written"
        ]


def _swap_words(first: str, second: str) -> Callable[[str], str]:
    return lambda text: text.replace(first, "@").replace(second, first).replace("@", second)


@pytest.mark.parametrize(
    ("target", "file", "first", "second"),
    [
        ("elasticsearch", "model.json", '"feature_name": "f1"', '"feature_name": "f2"'),
        ("elasticsearch", "model.json", '"field": "f1"', '"field": "f2"'),
        ("opensearch", "featureset.json", '"field": "f1"', '"field": "f2"'),
        ("solr", "features.json", '"field": "f1"', '"field": "f2"'),
        ("vespa", "rank-profile.sd", "attribute(f1)", "attribute(f2)"),
    ],
)
def test_features_that_are_read_from_the_fields_of_others_are_named(
    exports: dict[str, Path], tmp_path: Path, target: str, file: str, first: str, second: str
) -> None:
    shutil.copytree(exports[target], tmp_path / target)
    path = tmp_path / target / file
    text = path.read_text()
    assert first in text
    path.write_text(_swap_words(first, second)(text))
    found = verify_export(tmp_path / target)
    assert not found.holds
    assert [finding.text for finding in found.findings] == [
        f"{file} is not as it was written",
        "features f1 and f2 are swapped",
    ]


def test_a_feature_that_is_read_from_the_field_of_another_is_named(
    exports: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(exports["solr"], tmp_path / "solr")
    path = tmp_path / "solr" / "features.json"
    path.write_text(path.read_text().replace('"field": "f1"', '"field": "f2"'))
    texts = [finding.text for finding in verify_export(tmp_path / "solr").findings]
    assert texts[1:] == ["feature f1 is read from the field of f2"]


def test_a_file_that_is_no_longer_valid_is_named_beside_a_running_engine(
    exports: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(exports["solr"], tmp_path / "solr")
    (tmp_path / "solr" / "features.json").write_bytes(b"[{}]")
    engine = Engine(lambda model, X: model.predict(X, np.float32))
    found = verify_export(tmp_path / "solr", engine)
    assert [finding.text for finding in found.findings] == [
        "features.json is not as it was written"
    ]


@pytest.mark.parametrize("left", [0, 10])
def test_golden_rows_that_are_cut_are_noticed(
    exports: dict[str, Path], tmp_path: Path, left: int
) -> None:
    shutil.copytree(exports["onnx"], tmp_path / "onnx")
    golden = tmp_path / "onnx" / "golden.jsonl"
    golden.write_bytes(b"".join(golden.read_bytes().splitlines(keepends=True)[:left]))
    found = verify_export(tmp_path / "onnx")
    assert (found.rows, found.holds, found.changed) == (left, False, ("golden.jsonl",))


def test_a_linear_weight_is_named(tmp_path: Path) -> None:
    data = queries(missing=False)
    ranker = LinearRanker("ListNet()").fit(data)
    export = export_ranker(ranker, "opensearch", tmp_path / "linear")

    def change(model: dict[str, Any]) -> str:
        model["f2"] += 1.0
        return "the weight of f2 is"

    words = apply_fault(export, change)
    found = verify_export(tmp_path / "linear")
    assert [words in finding.text for finding in found.findings] == [True]
    assert found.off == found.findings[0].rows != ()


def test_a_network_layer_is_named(tmp_path: Path) -> None:
    ranker = NeuralRanker("ListNet()", hidden_layer_sizes=[4], epochs=2).fit(queries())
    export = export_ranker(ranker, "solr", tmp_path / "network")

    def change(model: dict[str, Any]) -> str:
        model["params"]["layers"][1]["bias"][0] += 0.5
        return "the biases of layer 1 are others"

    words = apply_fault(export, change)
    found = verify_export(tmp_path / "network")
    assert [finding.text for finding in found.findings] == [words]
    assert found.largest == pytest.approx(0.5, rel=1e-5)


class Engine:
    """An engine that scores by the model, changed as engines are known to change it."""

    def __init__(self, change: Callable[[TreeModel, Doubles], Doubles]) -> None:
        self._change = change

    def put(self, export: ExportFolder) -> None:
        """Nothing to do."""

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        model = export.reference()
        assert isinstance(model, TreeModel)
        return self._change(model, values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda model, X: model.predict(np.nan_to_num(X, nan=0.0), np.float32),
            "an absent value is 0",
        ),
        (
            lambda model, X: replace(
                model, missing_left=np.zeros_like(model.missing_left)
            ).predict(X, np.float32),
            "a missing value goes right at every split",
        ),
        (
            lambda model, X: replace(
                model, threshold=(np.float32(model.threshold) + np.float32(1e-6)).astype(float)
            ).predict(X, np.float32),
            "a millionth is added to each threshold",
        ),
        (
            lambda model, X: model.first_trees(5).predict(X, np.float32),
            "all trees after tree 4 are missing",
        ),
        (
            lambda model, X: model.rescaled(
                np.where(np.arange(model.trees) == 2, 0.0, 1.0)
            ).predict(X, np.float32),
            "tree 2 is missing",
        ),
        (
            lambda model, X: model.predict(X[:, [1, 0, 2, 3, 4, 5]], np.float32),
            "features f1 and f2 are swapped",
        ),
    ],
)  # fmt: skip
def test_what_a_running_engine_does_is_explained(
    exports: dict[str, Path], change: Callable[[TreeModel, Doubles], Doubles], words: str
) -> None:
    found = verify_export(exports["opensearch"], Engine(change))
    assert [finding.text for finding in found.findings] == [words]
    assert found.findings[0].rows == found.off
    assert found.largest > found.tolerance


def test_one_split_that_a_running_engine_takes_otherwise_is_named(
    exports: dict[str, Path],
) -> None:
    def change(model: TreeModel, X: Doubles) -> Doubles:
        missing_left = model.missing_left.copy()
        missing_left[model.roots[1]] ^= True
        return replace(model, missing_left=missing_left).predict(X, np.float32)

    found = verify_export(exports["opensearch"], Engine(change))
    assert found.findings
    named = ["tree 1, split 0" in finding.text for finding in found.findings]
    assert np.mean(named) > 0.9
    assert all("a missing value goes" in finding.text for finding in found.findings)


def test_of_splits_that_explain_a_score_the_one_nearest_to_its_threshold_is_named() -> None:
    stump = {
        "threshold": [0.0, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
        "missing_left": [True, 0, 0], "value": [0, 1, 2],
    }  # fmt: skip
    names = ("far", "near", "also far")
    trees = [{"feature": [column, -1, -1], **stump} for column in range(3)]
    model = concatenate_trees(trees, names)
    features = tuple(Feature(name, name, None) for name in names)
    row = np.array([[-5.0, -1e-9, -5.0]])
    (found,) = explain_scores(
        model, features, row, np.array([4.0]), np.array([0]), np.array([1e-9])
    )
    assert "tree 1, split 0" in found.text


def test_a_running_engine_that_agrees(exports: dict[str, Path]) -> None:
    found = verify_export(exports["solr"], Engine(lambda model, X: model.predict(X, np.float32)))
    assert found.holds


def test_an_engine_that_scores_too_few_rows(exports: dict[str, Path]) -> None:
    with pytest.raises(DataError, match="scored 1 of"):
        verify_export(exports["solr"], Engine(lambda model, X: model.predict(X)[:1]))


@pytest.mark.parametrize("name", [MANIFEST, "golden.jsonl", "reference.podium", "model.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"format": 1}', b"\xff\xfe"])
def test_malformed_files_are_refused(
    exports: dict[str, Path], tmp_path: Path, name: str, content: bytes
) -> None:
    shutil.copytree(exports["opensearch"], tmp_path / "bad")
    (tmp_path / "bad" / name).write_bytes(content)
    if name == "golden.jsonl" and content == b"":
        assert verify_export(tmp_path / "bad").changed == (name,)
        return
    with pytest.raises(DataError):
        verify_export(tmp_path / "bad")


def _circle(target: str, body: Any) -> None:
    if target == "elasticsearch":
        trees = body["definition"]["trained_model"]["ensemble"]["trained_models"]
        trees[0]["tree"]["tree_structure"][0]["left_child"] = 0
    else:
        definition = json.loads(body["model"]["model"]["definition"])
        trees = definition["learner"]["gradient_booster"]["model"]["trees"]
        trees[0]["left_children"][0] = 0
        body["model"]["model"]["definition"] = json.dumps(definition)


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_nodes_that_go_in_circles_are_refused(
    ranker: TreeRanker, tmp_path: Path, target: str
) -> None:
    options = ExportSettings(raw=target == "opensearch")
    export = export_ranker(ranker, target, tmp_path / "export", options)
    body = export.read_json("model.json")
    _circle(target, body)
    rewrite(tmp_path / "export", "model.json", json.dumps(body).encode())
    with pytest.raises(DataError, match="nodes do not form trees"):
        verify_export(tmp_path / "export")


def test_a_graph_whose_nodes_go_in_circles_is_refused(
    exports: dict[str, Path], tmp_path: Path
) -> None:
    def circle(model: dict[str, Any]) -> None:
        model["nodes_truenodeids"][0], model["nodes_trueleafs"][0] = 0, 0

    shutil.copytree(exports["onnx"], tmp_path / "onnx")
    change_onnx(tmp_path / "onnx", circle)
    with pytest.raises(DataError, match="is not a valid ONNX graph"):
        verify_export(tmp_path / "onnx")


def test_never_missing_golden_rows_have_all_values(ranker: TreeRanker, tmp_path: Path) -> None:
    options = ExportSettings(never_missing=True, engine_version="3.1")
    export = export_ranker(ranker, "opensearch", tmp_path / "old", options)
    assert not np.isnan(export.golden_rows().values).any()
    assert export.manifest.features[0].absent == 0.0
    assert verify_export(export).holds


def test_a_default_of_an_extractor_is_what_the_ranker_gets(
    ranker: TreeRanker, tmp_path: Path
) -> None:
    """Documents without the value have it in the engine, so golden rows have no absent one."""
    name = "f1"
    extractor = {
        "class": "org.apache.solr.ltr.feature.FieldValueFeature",
        "params": {"field": "clicks", "defaultValue": "0.25"},
    }
    settings = ExportSettings(extractors={name: extractor})
    export = export_ranker(ranker, "solr", tmp_path / "export", settings)
    values = export.golden_rows().values
    assert not np.isnan(values[:, 0]).any()
    assert (values[:, 0] == 0.25).any()
    assert np.isnan(values[:, 1:]).any()
    assert verify_export(export).holds
