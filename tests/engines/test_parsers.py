"""Exports in the classes of Elasticsearch and Vespa: they read them, and score as the ranker."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._random_trees import random_model, rows_on_edges
from podium.export import export_ranker
from podium.export.folder import ExportFolder
from podium.export.targets import TARGETS
from podium.export.targets.base import Request
from podium.export.targets.elasticsearch import adds_shift, score_shift
from podium.features import read_definitions
from podium.rankers import BoostedRanker, Ranker, TreeRanker
from podium.scorers.trees import TreeModel, concatenate_trees
from tests.engines.engine_parsers import EngineParser, RefusedError
from tests.export.trained import catboost_model, queries

pytestmark = pytest.mark.slow


def catboost(folder: Path) -> Path:
    catboost_model(folder)
    return folder / "model.json"


KINDS: dict[str, Callable[[Path], Ranker | Path]] = {
    "LightGBM": lambda _: TreeRanker(n_estimators=20).fit(queries()),
    "XGBoost": lambda _: TreeRanker(engine="xgboost", n_estimators=20).fit(queries()),
    "CatBoost": catboost,
    "RankBoost": lambda _: BoostedRanker(n_estimators=20).fit(queries(missing=False)),
}


@pytest.fixture(scope="module")
def rankers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ranker | Path]:
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in KINDS.items()}


def tree_model(export: ExportFolder) -> TreeModel:
    model = export.reference()
    assert isinstance(model, TreeModel)
    return model


def version_of(parser: EngineParser) -> tuple[int, ...]:
    return tuple(map(int, parser.version().split(".")))


def shift_of(parser: EngineParser, model: TreeModel) -> float:
    return score_shift(model) if adds_shift(version_of(parser)) else 0.0


def random_files(target: str, seed: int) -> tuple[TreeModel, dict[str, bytes], np.ndarray]:
    """Trees with awkward thresholds and leaves of integers, and rows on their thresholds."""
    random = np.random.default_rng(seed)
    model = random_model(random, trees=seed % 5, depth=seed % 6, strict=seed % 2 == 1)
    writer = TARGETS[target]
    written = writer.write(Request(model, model.feature_names, "podium", writer.default_version))
    rows = rows_on_edges(random, model, 40).astype(np.float32)  # as fields of documents are
    return model, written.files, rows.astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_elasticsearch_scores_rankers(elasticsearch_parser, rankers, kind, tmp_path):
    export = export_ranker(rankers[kind], "elasticsearch", tmp_path / "export")
    golden = export.golden_rows()
    if kind in ("LightGBM", "XGBoost"):
        assert np.isnan(golden.values).any()
    shift = shift_of(elasticsearch_parser, tree_model(export))
    scores = elasticsearch_parser.score(export, golden.values)
    assert shift > 0 or not adds_shift(version_of(elasticsearch_parser))
    assert np.abs(scores - shift - golden.scores).max() <= 1e-6 * (1 + shift)
    assert not shift or scores.min() >= 0


@pytest.mark.parametrize("seed", range(30))
def test_elasticsearch_scores_awkward_trees(elasticsearch_parser, seed):
    model, files, rows = random_files("elasticsearch", seed)
    rows = rows[~np.isinf(rows).any(axis=1)]  # neither a field nor the score of a query
    scores = elasticsearch_parser.score_files(files, model.feature_names, rows)
    # Leaves are integers, so all sums are exact.
    assert np.array_equal(scores, model.predict(rows) + shift_of(elasticsearch_parser, model))


@pytest.mark.parametrize("threshold", [0.0, -0.0])
@pytest.mark.parametrize("strict", [True, False])
def test_both_zeros_are_one_number_in_elasticsearch(elasticsearch_parser, threshold, strict):
    model = replace(stump(True), threshold=np.array([threshold, 0, 0]), strict=strict)
    files = TARGETS["elasticsearch"].write(Request(model, ("a",), "podium", "8.15")).files
    scores = elasticsearch_parser.score_files(files, ["a"], np.array([[0.0], [-0.0]]))
    assert scores.tolist() == ([2.0, 2.0] if strict else [1.0, 1.0])


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
@pytest.mark.parametrize("missing_left", [True, False])
def test_elasticsearch_takes_infinite_values_for_missing_ones(
    elasticsearch_parser, infinite, missing_left
):
    model = stump(missing_left)
    files = TARGETS["elasticsearch"].write(Request(model, ("a",), "podium", "8.15")).files
    scores = elasticsearch_parser.score_files(files, ["a"], np.array([[infinite], [np.nan]]))
    assert scores[0] == scores[1] == (1.0 if missing_left else 2.0)


def stumps(names: tuple[str, ...]) -> TreeModel:
    """A tree per feature: a value above a half adds a power of two of its own."""
    trees = [
        {
            "feature": [column, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0],
            "right": [2, 0, 0], "missing_left": [True, False, False], "value": [0, 0, 2.0**column],
        }
        for column in range(len(names))
    ]  # fmt: skip
    return concatenate_trees(trees, names)


def stump(missing_left: bool, name: str = "a") -> TreeModel:
    tree = {
        "feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
        "missing_left": [missing_left, False, False], "value": [0, 1, 2],
    }  # fmt: skip
    return concatenate_trees([tree], (name,))


def elasticsearch_body(**extractors: Any) -> dict[str, Any]:
    request = Request(stump(True), ("a",), "podium", "8.15", extractors=extractors)
    body: dict[str, Any] = json.loads(TARGETS["elasticsearch"].write(request).files["model.json"])
    return body


def refusal(parser: EngineParser, body: dict[str, Any]) -> str:
    files = {"model.json": json.dumps(body).encode()}
    with pytest.raises(RefusedError) as refused:
        parser.score_files(files, ["a"], np.zeros((1, 1)))
    return str(refused.value)


def test_elasticsearch_takes_no_names_of_fields(elasticsearch_parser):
    body = elasticsearch_body() | {"input": {"field_names": ["a"]}}
    assert "cannot specify [input.field_names]" in refusal(elasticsearch_parser, body)


def test_elasticsearch_refuses_what_it_does_not_know(elasticsearch_parser):
    """The parsers are the strict ones of a request."""
    body = elasticsearch_body()
    body["inference_config"]["learning_to_rank"]["more"] = 1
    assert "unknown field [more]" in refusal(elasticsearch_parser, body)
    body = elasticsearch_body()
    node = body["definition"]["trained_model"]["ensemble"]["trained_models"][0]["tree"]
    node["tree_structure"][0]["more"] = 1
    assert "unknown field [more]" in refusal(elasticsearch_parser, body)
    del node["tree_structure"][0]["more"], node["tree_structure"][2]
    assert "missing" in refusal(elasticsearch_parser, body)
    assert "[mach]" in refusal(elasticsearch_parser, elasticsearch_body(a={"mach": {}}))


def test_elasticsearch_parses_the_queries_of_definitions(elasticsearch_parser, tmp_path):
    (tmp_path / "features.toml").write_text(
        """
        [[feature]]
        name = "title"
        source = "engine"
        template = { match = { title = "{{query}}" } }

        [[feature]]
        name = "title_or_1"
        source = "engine"
        template = { match = { title = "{{query}}" } }
        missing = 1.0

        [[feature]]
        name = "title_or_0"
        source = "engine"
        template = { match = { title = "{{query}}" } }
        missing = 0.0

        [[feature]]
        name = "clicks"
        source = "field"
        field = "clicks"

        [[feature]]
        name = "price_or_2"
        source = "field"
        field = "price"
        missing = 2.0
        """
    )
    definitions = read_definitions(tmp_path / "features.toml")
    names = tuple(definitions.names)
    extractors = definitions.extractors("elasticsearch")
    request = Request(stumps(names), names, "podium", "8.15", extractors=extractors)
    files = TARGETS["elasticsearch"].write(request).files
    scores = elasticsearch_parser.score_files(files, names, np.eye(len(names)))
    assert scores.tolist() == [2.0**column for column in range(len(names))]


@pytest.mark.parametrize("kind", KINDS)
def test_vespa_scores_rankers(vespa_parser, rankers, kind, tmp_path):
    export = export_ranker(rankers[kind], "vespa", tmp_path / "export")
    golden = export.golden_rows()
    if kind in ("LightGBM", "XGBoost"):
        assert np.isnan(golden.values).any()
    scores = vespa_parser.score(export, golden.values)
    assert np.abs(scores - golden.scores).max() <= 1e-6


@pytest.mark.parametrize("seed", range(30))
def test_vespa_scores_awkward_trees(vespa_parser, seed):
    model, files, rows = random_files("vespa", seed)
    scores = vespa_parser.score_files(files, model.feature_names, rows)
    expected = model.predict(rows)
    with np.errstate(invalid="ignore"):
        infinite = np.isposinf(rows) & np.isposinf(model.threshold).any()
    assert np.array_equal(scores[~infinite.any(1)], expected[~infinite.any(1)])


def test_vespa_takes_deep_and_large_models(vespa_parser):
    random = np.random.default_rng(0)
    depth = 400
    nodes = np.arange(depth)
    chain = {
        "feature": [*(nodes % 3), *np.full(depth + 1, -1)],
        "threshold": np.append(nodes + 0.5, np.zeros(depth + 1)),
        "left": np.append(depth + nodes, np.zeros(depth + 1)),
        "right": np.append(np.append(nodes[1:], 2 * depth), np.zeros(depth + 1)),
        "missing_left": np.zeros(2 * depth + 1),
        "value": np.append(np.zeros(depth), np.arange(depth + 1)),
    }
    deep = concatenate_trees([chain], ("a", "b", "c"))
    large = random_model(random, trees=1000, depth=6)
    for model in (deep, large):
        written = TARGETS["vespa"].write(Request(model, model.feature_names, "podium", "8"))
        rows = random.random((20, model.features)).astype(np.float32) * 200.0
        rows[random.random(rows.shape) < 0.1] = np.nan
        scores = vespa_parser.score_files(
            written.files, model.feature_names, rows.astype(np.float64)
        )
        assert np.array_equal(scores, model.predict(rows))


ORDINARY = (
    "if", "switch", "case", "in", "sum", "random", "now", "age", "e", "pi", "NaN", "True", "field",
    "attribute", "index", "document", "function", "expression", "rank_profile", "first_phase",
    "inputs", "constants", "map", "isNan", "bm25", "match", "title", "inherits", "x1", "f2",
    "rankingExpression", "lightgbm", "position", "_x",
)  # fmt: skip


def vespa_scores(parser: EngineParser, model: TreeModel, names: tuple[str, ...]) -> list[float]:
    """The score of a row per feature, in which it alone is 1; each is read from a field xN."""
    extractors = {name: f"attribute(x{number})" for number, name in enumerate(names)}
    fields = "".join(
        f"    field x{number} type float {{ indexing: attribute }}\n"
        for number in range(len(names))
    )
    request = Request(model, names, "podium", "8", extractors=extractors)
    files = TARGETS["vespa"].write(request).files
    rows = np.eye(len(names))
    scores: list[float] = parser.score_files(files, names, rows, fields).tolist()
    return scores


def test_vespa_reads_features_by_any_name_but_those_it_reserves(vespa_parser):
    powers = [2.0**column for column in range(len(ORDINARY))]
    assert vespa_scores(vespa_parser, stumps(ORDINARY), ORDINARY) == powers


@pytest.mark.parametrize("name", sorted(TARGETS["vespa"].reserved_names))
def test_vespa_cannot_read_a_feature_by_a_name_that_it_reserves(vespa_parser, name):
    names = (name, "b")
    try:
        scores = vespa_scores(vespa_parser, stumps(names), names)
    except RefusedError:
        return
    assert scores != [1.0, 2.0]


def test_features_of_reserved_names_are_numbered_for_vespa(vespa_parser, tmp_path):
    named = replace(queries(), feature_names=tuple(sorted(TARGETS["vespa"].reserved_names)))
    ranker = TreeRanker(n_estimators=5).fit(named)
    export = export_ranker(ranker, "vespa", tmp_path / "export")
    assert export.engine_names == ["f1", "f2", "f3", "f4", "f5", "f6"]
    golden = export.golden_rows()
    scores = vespa_parser.score(export, golden.values)
    assert np.abs(scores - golden.scores).max() <= 1e-6
