"""What a target computes from its files is what the model computes, for any model and row."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._random_trees import random_model, rows_on_edges
from podium.errors import ArgumentError
from podium.export.folder import Feature
from podium.export.targets import TARGETS
from podium.export.targets.base import EngineModel, Request, Written, engine_names
from podium.scorers.models import LinearModel, NetworkModel
from podium.scorers.trees import TreeModel, concatenate_trees

SEEDS = st.integers(0, 2**32 - 1)


def features_of(request: Request, written: Written) -> list[Feature]:
    return [
        Feature(name, engine_name, absent)
        for name, engine_name, absent in zip(
            request.model.feature_names, request.names, written.absent, strict=True
        )
    ]


def request_for(model: TreeModel | LinearModel | NetworkModel, target: str, **options) -> Request:
    version = TARGETS[target].default_version
    names = engine_names(model.feature_names)
    return Request(model, names, "podium", **{"version": version, **options})


@pytest.mark.parametrize("target", sorted(TARGETS))
@given(seed=SEEDS, strict=st.booleans(), trees=st.integers(0, 4), depth=st.integers(0, 5))
def test_trees_score_the_same(target: str, seed: int, strict: bool, trees: int, depth: int) -> None:
    random = np.random.default_rng(seed)
    model = random_model(random, trees=trees, depth=depth, strict=strict)
    rows = rows_on_edges(random, model, 40)
    request = request_for(model, target)
    written = TARGETS[target].write(request)
    for column, first, last in written.avoided:
        rows = rows[~((rows[:, column] >= first) & (rows[:, column] <= last))]
    engine = TARGETS[target].read(written.files, features_of(request, written), request.model)
    # Leaves are integers, so both sums are exact.
    assert np.array_equal(engine.predict(rows), model.predict(rows))


@pytest.mark.parametrize("target", ["opensearch", "o19s"])
@given(seed=SEEDS, strict=st.booleans(), trees=st.integers(0, 4))
def test_trees_as_xgboost_saves_them_score_the_same(
    target: str, seed: int, strict: bool, trees: int
) -> None:
    random = np.random.default_rng(seed)
    model = random_model(random, trees=trees, strict=strict)
    rows = rows_on_edges(random, model, 40)
    request = request_for(model, target, raw=True, version="3.8")
    written = TARGETS[target].write(request)
    engine = TARGETS[target].read(written.files, features_of(request, written), request.model)
    assert b"model/xgboost+json+raw" in written.files["model.json"]
    assert np.array_equal(engine.predict(rows), model.predict(rows))


def test_trees_as_xgboost_saves_them_are_for_two_targets() -> None:
    with pytest.raises(ArgumentError, match="Solr cannot express this model as XGBoost saves it"):
        TARGETS["solr"].write(request_for(_stump(0, True), "solr", raw=True))
    with pytest.raises(ArgumentError, match=r"goes left in version 1\.5\.11.*1\.5\.12 with --raw"):
        TARGETS["o19s"].write(request_for(_stump(0, True), "o19s", raw=True, version="1.5.11"))


@given(seed=SEEDS, trees=st.integers(1, 6), depth=st.integers(0, 4))
def test_no_root_in_onnx_looks_like_a_leaf_to_older_runtimes(
    seed: int, trees: int, depth: int
) -> None:
    """ONNX Runtime before 1.30 scores a tree by a wrong leaf if its root's children share a number.

    The tests run with a later one, which would not notice.
    """
    model = random_model(np.random.default_rng(seed), trees=trees, depth=depth)
    graph = onnx.load_model_from_string(
        TARGETS["onnx"].write(request_for(model, "onnx")).files["model.onnx"]
    ).graph
    ensemble = next(node for node in graph.node if node.op_type == "TreeEnsemble")
    found = {item.name: onnx.helper.get_attribute_value(item) for item in ensemble.attribute}
    assert len(found["tree_roots"]) == trees
    for root in found["tree_roots"]:
        assert found["nodes_truenodeids"][root] != found["nodes_falsenodeids"][root]


@given(seed=SEEDS, strict=st.booleans(), zero_missing=st.booleans())
def test_onnx_takes_categories_and_zeros_that_are_missing(
    seed: int, strict: bool, zero_missing: bool
) -> None:
    random = np.random.default_rng(seed)
    model = random_model(random, strict=strict, categories=True, zero_missing=zero_missing)
    rows = rows_on_edges(random, model, 60)
    request = request_for(model, "onnx")
    written = TARGETS["onnx"].write(request)
    engine = TARGETS["onnx"].read(written.files, features_of(request, written), request.model)
    assert np.array_equal(engine.predict(rows), model.predict(rows))


def _stump(threshold: float, missing_left: bool, strict: bool = False) -> TreeModel:
    tree = {
        "feature": [0, -1, -1], "threshold": [threshold, 0, 0], "left": [1, 0, 0],
        "right": [2, 0, 0], "missing_left": [missing_left, 0, 0], "value": [0, 1, 2],
    }  # fmt: skip
    return concatenate_trees([tree], ("a",), strict=strict)


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("threshold", [-np.inf, float(np.finfo(np.float32).max), 1e300, np.inf])
def test_thresholds_beyond_all_numbers(target: str, threshold: float) -> None:
    # A boosted ranker tells a missing value from any other by a threshold of minus infinity.
    model = _stump(threshold, missing_left=threshold < 0)
    request = request_for(model, target)
    written = TARGETS[target].write(request)
    engine = TARGETS[target].read(written.files, features_of(request, written), request.model)
    scores = engine.predict([[np.nan], [-1e38], [0.0], [3e38]])
    assert scores.tolist() == ([1.0, 2.0, 2.0, 2.0] if threshold < 0 else [2.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_splits_by_infinity_are_a_limit_where_files_have_no_infinity(target: str) -> None:
    model = _stump(np.inf, missing_left=False)
    request = request_for(model, target)
    written = TARGETS[target].write(request)
    engine = TARGETS[target].read(written.files, features_of(request, written), request.model)
    other = engine.predict([[np.inf]]).tolist() != model.predict([[np.inf]]).tolist()
    assert other == (target not in ("onnx", "solr"))
    assert any("An infinite value goes right" in limit for limit in written.limits) == other
    assert not TARGETS[target].write(request_for(_stump(1e300, False), target)).limits


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("leaves", [[1e39], [3e38, 3e38], [1e308, 1.7e308]])
def test_leaves_beyond_the_range_of_a_target_are_refused(target: str, leaves: list[float]) -> None:
    trees = [{"feature": [-1], "value": [leaf]} for leaf in leaves]
    model = concatenate_trees(trees, ("a",))
    single = replace(model, single_precision=True)
    limit = r"3\.4e\+38" if target != "onnx" else r"1\.8e\+308"
    if target == "onnx" and max(leaves) < 1e300:
        assert TARGETS[target].write(request_for(model, target)).files
        model, limit = single, r"3\.4e\+38"
    with pytest.raises(ArgumentError, match=f"leaves whose sum may be .*, above {limit}"):
        TARGETS[target].write(request_for(model, target))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("target", ["opensearch", "solr"])
def test_weights_beyond_the_range_of_a_target_are_refused(target: str) -> None:
    with pytest.raises(ArgumentError, match=r"a weight of 1e\+39, above 3\.4e\+38"):
        TARGETS[target].write(request_for(LinearModel(("a",), np.array([-1e39])), target))


def test_onnx_rounds_values_where_the_library_does() -> None:
    threshold = float(np.float32(0.1))
    model = replace(_stump(threshold, False, strict=True), single_values=True)
    request = request_for(model, "onnx")
    written = TARGETS["onnx"].write(request)
    engine = TARGETS["onnx"].read(written.files, features_of(request, written), request.model)
    below = 0.1  # a number below the threshold that is rounded to it
    assert below < threshold
    before = float(np.nextafter(np.float32(0.1), np.float32(0)))
    scores = engine.predict([[below], [before], [threshold], [np.nan], [np.inf], [-np.inf]])
    assert scores.tolist() == [2.0, 1.0, 2.0, 2.0, 2.0, 1.0]


def test_onnx_compares_in_double_precision() -> None:
    threshold = 0.1
    model = _stump(threshold, False)
    request = request_for(model, "onnx")
    written = TARGETS["onnx"].write(request)
    engine = TARGETS["onnx"].read(written.files, features_of(request, written), request.model)
    above = np.nextafter(threshold, 1)
    assert np.float32(above) == np.float32(threshold)
    assert engine.predict([[threshold], [above]]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("target", ["opensearch", "o19s", "solr", "elasticsearch", "vespa"])
def test_search_engines_refuse_categories(target: str) -> None:
    model = _stump(0.5, False)
    by_category = replace(model, category_set=np.array([0, -1, -1]), category_sets=((1, 2),))
    refusal = f"{TARGETS[target].title} cannot express {{}} in any version"
    if target == "vespa":
        refusal = "Podium does not write {} for Vespa"
    with pytest.raises(ArgumentError, match=refusal.format("splits by categories")):
        TARGETS[target].write(request_for(by_category, target))
    zeros = replace(model, zero_missing=np.array([True]))
    with pytest.raises(ArgumentError, match=refusal.format("0 as a missing value .*")):
        TARGETS[target].write(request_for(zeros, target))


@pytest.mark.parametrize(
    ("target", "version", "rule", "problem"),
    [
        ("opensearch", "3.1", "zero", "OpenSearch cannot express missing values .* 3.1"),
        ("opensearch", "3.7", "right", "goes left in version 3.7.*#379"),
        ("opensearch", "3.8", "node", None),
        ("o19s", "1.5.8", "zero", "where they are 0.*#481"),
        ("o19s", "1.5.9", "node", None),
        ("solr", "9.1", "zero", "they are 0 before 9.2.*SOLR-16596"),
        ("solr", "9.2", "node", None),
    ],
)
def test_missing_values_before_the_version_that_has_them(
    target: str, version: str, rule: str, problem: str | None
) -> None:
    left, right = _stump(-1.0, True), _stump(-1.0, False)
    writer = TARGETS[target]
    if problem is None:
        writer.write(request_for(left, target, version=version))
    else:
        with pytest.raises(ArgumentError, match=problem):
            writer.write(request_for(left, target, version=version))
        writer.write(request_for(left, target, version=version, never_missing=True))
    # 0 goes right at this threshold: engines for which a missing value is 0 agree.
    request = request_for(right, target, version=version)
    written = writer.write(request)
    engine = writer.read(written.files, features_of(request, written), request.model)
    assert engine.predict([[np.nan], [-1.0], [0.0]]).tolist() == [2.0, 1.0, 2.0]
    assert written.absent == ((0.0,) if rule == "zero" else (None,))


def test_elasticsearch_before_8_15_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"8\.14.*8\.15"):
        TARGETS["elasticsearch"].write(
            request_for(_stump(0, True), "elasticsearch", version="8.14")
        )


def test_elasticsearch_limits_say_what_is_added_to_scores() -> None:
    model = replace(_stump(0.5, True), value=np.array([0.0, -2.0, 2.0]), base_score=0.5)
    (limit,) = TARGETS["elasticsearch"].write(request_for(model, "elasticsearch")).limits
    # Scores of up to 4 are added in single precision: the last digit of 4 is worth 2^-21.
    assert "adds 1.5 to every score" in limit
    assert f"less than {2**-21:.1g} may tie" in limit
    above = replace(model, value=np.array([0.0, 2.0, 3.0]))
    assert TARGETS["elasticsearch"].write(request_for(above, "elasticsearch")).limits == ()


def test_solr_names_the_values_that_take_another_branch() -> None:
    request = request_for(_stump(float(np.float32(1e-35)), False), "solr")
    written = TARGETS["solr"].write(request)
    ((column, first, last),) = written.avoided
    assert (column, first, last) == (0, float(np.float32(1e-45)), float(np.float32(1e-35)))
    assert "1 thresholds are moved by at most 1e-35" in written.limits[0]
    engine = TARGETS["solr"].read(written.files, features_of(request, written), request.model)
    assert engine.predict([[0.0], [last], [1e-30]]).tolist() == [1.0, 2.0, 2.0]


@pytest.mark.parametrize("target", ["opensearch", "o19s", "solr", "onnx"])
def test_linear(target: str) -> None:
    random = np.random.default_rng(0)
    model = LinearModel(tuple(map(str, range(1, 8))), random.normal(size=7))
    request = request_for(model, target)
    written = TARGETS[target].write(request)
    engine = TARGETS[target].read(written.files, features_of(request, written), request.model)
    X = random.normal(size=(50, 7)).astype(np.float32)
    assert np.abs(engine.predict(X) - X @ model.weights).max() < 1e-5


@pytest.mark.parametrize("target", ["elasticsearch", "vespa"])
def test_linear_is_refused(target: str) -> None:
    model = LinearModel(("a",), np.ones(1))
    problem = {
        "elasticsearch": "Elasticsearch cannot express linear models in any version",
        "vespa": "Podium does not write linear models for Vespa",
    }[target]
    with pytest.raises(ArgumentError, match=problem):
        TARGETS[target].write(request_for(model, target))


def _network(random: np.random.Generator) -> NetworkModel:
    widths = [5, 4, 3, 1]
    layers = tuple(
        (
            random.normal(size=(after, before)).astype(np.float32),
            random.normal(size=after).astype(np.float32),
        )
        for before, after in pairwise(widths)
    )
    return NetworkModel(tuple("abcde"), random.normal(size=5), random.random(5) + 0.5, layers)


@pytest.mark.parametrize("target", ["solr", "onnx"])
def test_network(target: str) -> None:
    random = np.random.default_rng(0)
    model = _network(random)
    request = request_for(model, target)
    written = TARGETS[target].write(request)
    engine = TARGETS[target].read(written.files, features_of(request, written), request.model)
    X = random.normal(size=(50, 5)).astype(np.float32)
    X[random.random(X.shape) < 0.2] = np.nan
    assert np.abs(engine.predict(X) - model.predict(X)).max() < 1e-5


def test_solr_gives_an_absent_feature_of_a_network_its_mean() -> None:
    model = _network(np.random.default_rng(0))
    written = TARGETS["solr"].write(request_for(model, "solr"))
    assert written.absent == tuple(model.mean.astype(np.float32).astype(np.float64).tolist())


def test_names_that_every_engine_takes() -> None:
    assert engine_names(["1", "2"]) == ("f1", "f2")
    assert engine_names(["title bm25", "a-b"]) == ("title_bm25", "a_b")
    assert engine_names(["a b", "a-b"]) == ("f1", "f2")
    assert engine_names(["a" * 255, "b"]) == ("a" * 255, "b")
    assert engine_names(["a" * 256, "b"]) == ("f1", "f2")


def test_absent_values_are_what_the_target_takes_for_them() -> None:
    model = LinearModel(("a", "b"), np.array([1.0, 1.0]))
    X = [[np.nan, np.nan], [0.1, 2.0]]
    single = EngineModel(model, np.array([3.0, np.nan]), single_precision=True)
    np.testing.assert_array_equal(single.rows(X), [[3.0, np.nan], [float(np.float32(0.1)), 2.0]])
    double = EngineModel(model, np.array([3.0, np.nan]), single_precision=False)
    np.testing.assert_array_equal(double.rows(X), [[3.0, np.nan], [0.1, 2.0]])
