"""Solr's learning-to-rank module: trees, weighted sums and small networks.

It computes in single precision. A row goes left if its value is at most the threshold plus a
millionth, so the threshold that is written is that much smaller. Near 0, and just above a negative
power of two, a threshold cannot always be written that way: the sum is rounded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from podium.data.json_lines import parse_json
from podium.errors import DataError
from podium.export.folder import Feature, feature_set_name
from podium.export.targets.base import (
    EngineModel,
    Request,
    Target,
    Written,
    column_of,
    version_number,
    zero_goes_left,
)
from podium.kernels import Floats
from podium.scorers.models import FittedModel, LinearModel, NetworkModel
from podium.scorers.single_precision import as_single, at_most
from podium.scorers.trees import Split, TreeModel, concatenate_trees, flatten_tree

FEATURES, MODEL = "features.json", "model.json"
SLACK = np.float32(1e-6)
_NEIGHBOURS = 3
_PACKAGE = "org.apache.solr.ltr"
_FIELD_VALUE = f"{_PACKAGE}.feature.FieldValueFeature"
_LARGE = 1_000_000


class Solr(Target):
    """``PUT /solr/NAME/schema/feature-store`` and ``.../model-store``.

    ``features.json`` and ``model.json`` are the bodies of these two requests.
    """

    name = "solr"
    title = "Solr"
    default_version = "9.2"
    single_precision = True

    def write_trees(self, request: Request, model: TreeModel) -> Written:
        """Write a MultipleAdditiveTreesModel."""
        self.require_plain_splits(model)
        inner = model.feature >= 0
        with_missing = version_number(request.version) >= (9, 2)
        differs = (zero_goes_left(model) != model.missing_left)[inner].any()
        if differs and not with_missing and not request.never_missing:
            self.refuse(
                f"missing values in version {request.version}: they are 0 before 9.2",
                "Export for version 9.2 (SOLR-16596), or pass --never-missing if every feature "
                "always has a value.",
            )
        exact = at_most(model.threshold, strict=model.strict)
        written, effective = written_thresholds(exact)
        avoided = {
            (int(model.feature[node]), *_between(exact[node], effective[node]))
            for node in np.flatnonzero(inner & (exact != effective))
        }
        leaves = as_single(model.value).astype(np.float64)
        trees = [
            {"weight": "1", "root": root}
            for root in _nested(model, written, leaves, request.names, with_missing)
        ]
        if model.base_score or not model.trees:
            base = {"value": _text(np.float32(model.base_score))}
            trees.insert(0, {"weight": "1", "root": base})
        parameters: dict[str, Any] = {"trees": trees}
        if with_missing:
            parameters["isNullSameAsZero"] = False
        features = [{"name": name} for name in request.names]
        absent = None if with_missing else 0.0
        limits = []
        if avoided:
            limits.append(
                f"{len(avoided)} thresholds are moved by at most "
                f"{max(last - first for _, first, last in avoided):.2g}: Solr adds a millionth to "
                "each, in single precision."
            )
        content = self._written(
            request, "MultipleAdditiveTreesModel", features, parameters, [absent] * len(features)
        )
        if len(content[MODEL]) > _LARGE:
            limits.append(
                "The model is larger than 1 MB, which ZooKeeper does not take (SOLR-11049): load "
                "it by a DefaultWrapperModel in SolrCloud."
            )
        return Written(content, (absent,) * len(features), tuple(limits), tuple(sorted(avoided)))

    def write_linear(self, request: Request, model: LinearModel) -> Written:
        """Write a LinearModel."""
        weights = model.weights.astype(np.float32).astype(np.float64).tolist()
        features = [{"name": name} for name in request.names]
        parameters = {"weights": dict(zip(request.names, weights, strict=True))}
        absent = [0.0] * len(features)
        content = self._written(request, "LinearModel", features, parameters, absent)
        return Written(content, tuple(absent))

    def write_network(self, request: Request, model: NetworkModel) -> Written:
        """Write a NeuralNetworkModel; an absent feature is its mean."""
        mean, scale = model.mean.astype(np.float32), model.scale.astype(np.float32)
        features = [
            {
                "name": name,
                "norm": {
                    "class": f"{_PACKAGE}.norm.StandardNormalizer",
                    "params": {"avg": _text(mean[column]), "std": _text(scale[column])},
                },
            }
            for column, name in enumerate(request.names)
        ]
        last = len(model.layers) - 1
        layers = [
            {
                "matrix": weights.astype(np.float64).tolist(),
                "bias": biases.astype(np.float64).tolist(),
                "activation": "identity" if number == last else "relu",
            }
            for number, (weights, biases) in enumerate(model.layers)
        ]
        absent = mean.astype(np.float64).tolist()
        content = self._written(request, "NeuralNetworkModel", features, {"layers": layers}, absent)
        return Written(content, tuple(absent))

    def _written(
        self,
        request: Request,
        kind: str,
        features: list[dict[str, Any]],
        parameters: dict[str, Any],
        absent: Sequence[float | None],
    ) -> dict[str, bytes]:
        extractors = {
            name: request.extractors.get(name, field_value(name, value))
            for name, value in zip(request.names, absent, strict=True)
        }
        store = feature_set_name(extractors)
        described = [
            {"store": store, "name": name, **extractor} for name, extractor in extractors.items()
        ]
        model = {
            "class": f"{_PACKAGE}.model.{kind}",
            "name": request.model_name,
            "store": store,
            "features": features,
            "params": parameters,
        }
        return {
            FEATURES: json.dumps(described, indent=1).encode(),
            MODEL: json.dumps(model, allow_nan=False).encode(),
        }

    def read(
        self, files: Mapping[str, bytes], features: Sequence[Feature], _model: FittedModel
    ) -> EngineModel:
        """Read both files as Solr does."""
        columns = {feature.engine_name: column for column, feature in enumerate(features)}
        absent = np.array([np.nan if item.absent is None else item.absent for item in features])
        listed = parse_json(files[FEATURES])
        for entry in listed:
            column = column_of(entry["name"], columns)
            default = entry["params"].get("defaultValue")
            if default is not None:
                absent[column] = float(default)
        model = parse_json(files[MODEL])
        kind, parameters = model["class"].removeprefix(f"{_PACKAGE}.model."), model["params"]
        names = [entry["name"] for entry in model["features"]]
        order = [column_of(name, columns) for name in names]
        if sorted(order) != list(range(len(features))):
            raise DataError("the model has other features", hint="Export it again.")
        if kind == "LinearModel":
            weights = np.zeros(len(features))
            for name, weight in parameters["weights"].items():
                weights[column_of(name, columns)] = as_single(float(weight))
            return EngineModel(LinearModel(tuple(columns), weights), absent, True)
        if kind == "NeuralNetworkModel":
            return EngineModel(_network(model, order, tuple(columns)), absent, True)
        if kind != "MultipleAdditiveTreesModel":
            raise DataError("the model is of another class", hint="Export it again.")
        with_missing = parameters.get("isNullSameAsZero", True) is False

        def expand(node: dict[str, Any]) -> Split | float:
            if "feature" not in node:
                return float(as_single(float(node["value"])))
            with np.errstate(over="ignore"):
                threshold = as_single(float(node["threshold"])) + SLACK
            # Without support of missing values, a comparison with NaN is false.
            missing_left = with_missing and node["missing"] == "left"
            column = column_of(node["feature"], columns)
            return Split(column, float(threshold), missing_left, node["left"], node["right"])

        trees = []
        for tree in parameters["trees"]:
            if as_single(float(tree["weight"])) != 1:
                raise DataError("a tree has another weight", hint="Export it again.")
            trees.append(flatten_tree(tree["root"], expand))
        return EngineModel(concatenate_trees(trees, tuple(columns)), absent, True)

    def fields(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Return the field that a feature is read from, for those that are a document's field."""
        return {
            entry["name"]: str(entry["params"]["field"])
            for entry in parse_json(files[FEATURES])
            if entry["class"] == _FIELD_VALUE
        }

    def last_values(self, exact: Floats) -> Floats:
        """Return the last values that go left: not every threshold can be written."""
        return written_thresholds(exact)[1]


def written_thresholds(exact: Floats) -> tuple[Floats, Floats]:
    """Return the thresholds to write, and what they become when Solr adds its millionth.

    Where none becomes the threshold that is wanted, the nearest one with 0 on the same side.

    Example:
        >>> _, effective = written_thresholds(np.array([0.5, 0, 100], np.float32))
        >>> effective.tolist()
        [0.5, 0.0, 100.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.where(np.isinf(exact), exact, exact - SLACK).astype(np.float32)
        candidates = [nearest]
        for direction in (np.float32(-np.inf), np.float32(np.inf)):
            moved = nearest
            for _ in range(_NEIGHBOURS):
                moved = np.nextafter(moved, direction)
                candidates.append(moved)
        written = np.stack(candidates)
        effective = written + SLACK
        gap = np.abs(effective.astype(np.float64) - exact.astype(np.float64))
    gap = np.where(effective == exact, 0.0, gap)
    gap[(effective >= 0) != (exact >= 0)] = np.inf
    best = np.argmin(gap, axis=0)[None]
    return (
        np.take_along_axis(written, best, 0)[0],
        np.take_along_axis(effective, best, 0)[0],
    )


def field_value(name: str, absent: float | None) -> dict[str, Any]:
    """Return the feature that is a field of the document."""
    default = "NaN" if absent is None else _text(np.float32(absent))
    return {
        "class": _FIELD_VALUE,
        "params": {"field": name, "defaultValue": default},
    }


def _between(exact: Any, effective: Any) -> tuple[float, float]:
    """Return the first and the last value that take another branch."""
    low, high = min(exact, effective), max(exact, effective)
    return float(np.nextafter(low, np.float32(np.inf))), float(high)


def _nested(
    model: TreeModel, thresholds: Floats, leaves: Any, names: Sequence[str], with_missing: bool
) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = [{}] * len(model.feature)
    features, left, right = model.feature.tolist(), model.left.tolist(), model.right.tolist()
    for node in range(len(features) - 1, -1, -1):  # children come after their parents
        if features[node] < 0:
            nodes[node] = {"value": repr(float(leaves[node]))}
            continue
        nodes[node] = {
            "feature": names[features[node]],
            "threshold": _text(thresholds[node]),
            "left": nodes[left[node]],
            "right": nodes[right[node]],
        }
        if with_missing:
            nodes[node]["missing"] = "left" if model.missing_left[node] else "right"
    return [nodes[root] for root in model.roots.tolist()]


def _network(model: dict[str, Any], order: list[int], names: tuple[str, ...]) -> NetworkModel:
    mean, scale = np.zeros(len(names)), np.ones(len(names))
    for column, entry in zip(order, model["features"], strict=True):
        norm = entry["norm"]["params"]
        mean[column], scale[column] = as_single(float(norm["avg"])), as_single(float(norm["std"]))
    layers = []
    for number, layer in enumerate(model["params"]["layers"]):
        weights = np.array(layer["matrix"], np.float32)
        last = number + 1 == len(model["params"]["layers"])
        if layer["activation"] != ("identity" if last else "relu"):
            raise DataError("a layer has another activation", hint="Export it again.")
        if number == 0:
            weights = weights[:, np.argsort(order)]
        layers.append((weights, np.array(layer["bias"], np.float32)))
    return NetworkModel(names, mean, scale, tuple(layers))


def _text(value: Any) -> str:
    """Write a number as Java's ``Float.parseFloat`` reads it."""
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))
