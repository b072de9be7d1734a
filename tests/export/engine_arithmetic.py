"""What OpenSearch's and Solr's modules compute, written again from their sources for tests.

Number by number and in single precision, as their loops are: ``LinearRanker`` and
``NaiveAdditiveDecisionTree`` of OpenSearch's plugin, ``LinearModel``, ``NeuralNetworkModel``,
``StandardNormalizer`` and ``MultipleAdditiveTreesModel`` of Solr's module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from podium.export.folder import ExportFolder
from podium.kernels import Doubles

Single = np.float32
Row = dict[str, Single]


class ArithmeticEngine:
    """A running engine that scores golden rows by other files than those of the export.

    Args:
        files: The files that it was given.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def put(self, export: ExportFolder) -> None:
        """Nothing to do."""

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Score rows, whose columns have the export's names."""
        score = (_opensearch if "featureset.json" in self.files else _solr)(self.files)
        rows = values.astype(Single)
        with np.errstate(all="ignore"):
            scores = [score(dict(zip(export.engine_names, row, strict=True))) for row in rows]
        return np.array(scores, np.float64)


def _opensearch(files: Mapping[str, bytes]) -> Callable[[Row], Single]:
    features = json.loads(files["featureset.json"])["featureset"]["features"]
    model = json.loads(files["model.json"])["model"]["model"]
    definition = json.loads(model["definition"])
    if model["type"] != "model/linear":
        return lambda row: _trees(definition["splits"], row)
    weights = {each["name"]: Single(definition[each["name"]]) for each in features}

    def linear(row: Row) -> Single:
        total = Single(0)
        for name, weight in weights.items():
            total += weight * (Single(0) if np.isnan(row[name]) else row[name])
        return total

    return linear


def _trees(trees: list[dict[str, Any]], row: Row) -> Single:
    total = Single(0)
    for node in trees:
        while "leaf" not in node:
            value = row[node["split"]]
            if np.isnan(value):
                child = node["missing"]
            else:
                child = node["yes" if Single(node["split_condition"]) > value else "no"]
            node = next(each for each in node["children"] if each["nodeid"] == child)
        total += Single(node["leaf"])
    return total


def _solr(files: Mapping[str, bytes]) -> Callable[[Row], Single]:
    defaults = {
        each["name"]: Single(each["params"]["defaultValue"])
        for each in json.loads(files["features.json"])
    }
    model = json.loads(files["model.json"])

    def score(row: Row) -> Single:
        values = {}
        for each in model["features"]:
            name = each["name"]
            values[name] = defaults[name] if np.isnan(row[name]) else row[name]
            if "norm" in each:
                norm = each["norm"]["params"]
                values[name] = (values[name] - Single(norm["avg"])) / Single(norm["std"])
        if model["class"].endswith("NeuralNetworkModel"):
            return _layers(model["params"]["layers"], list(values.values()))
        total = Single(0)
        if model["class"].endswith("LinearModel"):
            for name, value in values.items():
                total += value * Single(model["params"]["weights"][name])
            return total
        for tree in model["params"]["trees"]:
            total += Single(tree["weight"]) * _leaf(tree["root"], values)
        return total

    return score


def _layers(layers: list[dict[str, Any]], values: list[Single]) -> Single:
    for layer in layers:
        outputs = []
        for weights, bias in zip(layer["matrix"], layer["bias"], strict=True):
            total = Single(bias)
            for weight, value in zip(weights, values, strict=True):
                total += Single(weight) * value
            outputs.append(max(total, Single(0)) if layer["activation"] == "relu" else total)
        values = outputs
    return values[0]


def _leaf(node: dict[str, Any], values: Row) -> Single:
    while "feature" in node:
        value = values[node["feature"]]
        if np.isnan(value):
            node = node[node["missing"]]
        else:
            slack = Single(node["threshold"]) + Single(1e-6)
            node = node["left" if value <= slack else "right"]
    return Single(node["value"])
