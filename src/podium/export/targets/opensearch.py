"""The learning-to-rank plugins of OpenSearch and (o19s) of Elasticsearch.

Both read trees as XGBoost dumps them (``model/xgboost+json``) and compute in single precision: a
row goes left if its value is below the threshold. What an absent feature does depends on the
version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

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
from podium.scorers.models import FittedModel, LinearModel
from podium.scorers.single_precision import as_single, below
from podium.scorers.trees import Split, TreeModel, concatenate_trees, flatten_tree

FEATURES, MODEL = "featureset.json", "model.json"
_DUMPED, _RAW = "model/xgboost+json", "model/xgboost+json+raw"
ABOVE_ALL = 3.5e38
"""A number above all single-precision ones."""
_OBJECTIVE = "rank:pairwise"
"""Scores are used as they are; every version knows this one."""


class OpenSearch(Target):
    """OpenSearch's plugin: ``PUT _ltr/_featureset/NAME``, ``POST .../_createmodel``.

    ``featureset.json`` and ``model.json`` are the bodies of these two requests.
    """

    name = "opensearch"
    title = "OpenSearch"
    default_version = "3.8"
    single_precision = True
    negative_values = False
    has_raw_form = True

    def absent_rule(self, version: str, raw: bool) -> Literal["zero", "right", "node"]:
        """Return what an absent feature does: it is 0, goes right, or as each node says."""
        del raw
        number = version_number(version)
        if number >= (3, 8):  # learning-to-rank-base#379
            return "node"
        return "right" if number >= (3, 2) else "zero"  # learning-to-rank-base#206

    def _missing_hint(self) -> str:
        return (
            "Export for version 3.8 (opensearch-learning-to-rank-base#379), "
            "or pass --never-missing if every feature always has a value."
        )

    def write_trees(self, request: Request, model: TreeModel) -> Written:
        """Write trees as XGBoost dumps them."""
        self.require_plain_splits(model)
        rule = self.absent_rule(request.version, request.raw)
        inner = model.feature >= 0
        if not request.never_missing:
            if rule == "zero" and (zero_goes_left(model) != model.missing_left)[inner].any():
                self.refuse(
                    f"missing values in version {request.version}, where they are 0",
                    self._missing_hint(),
                )
            if rule == "right" and model.missing_left[inner].any():
                self.refuse(
                    f"a missing value that goes left in version {request.version}",
                    self._missing_hint(),
                )
        thresholds = below(model.threshold, strict=model.strict).astype(np.float64)
        # JSON has no infinity, but the plugin reads what is too large as one.
        thresholds = np.minimum(thresholds, ABOVE_ALL)
        leaves = as_single(model.value).astype(np.float64)
        base = [float(np.float32(model.base_score))] if model.base_score or not model.trees else []
        absent = 0.0 if rule == "zero" else None
        limits = self.infinity_limits(model)
        if request.raw:
            trees = [_raw_leaf(score) for score in base] + _raw_trees(model, thresholds, leaves)
            return self._written(request, _RAW, _saved(trees, request.names), absent, limits)
        splits = [{"nodeid": 0, "leaf": score} for score in base]
        splits += nested_trees(model, thresholds, leaves, request.names)
        definition = {"objective": _OBJECTIVE, "splits": splits}
        return self._written(request, _DUMPED, definition, absent, limits)

    def write_linear(self, request: Request, model: LinearModel) -> Written:
        """Write the weight of each feature."""
        weights = model.weights.astype(np.float32).astype(np.float64).tolist()
        definition = dict(zip(request.names, weights, strict=True))
        return self._written(request, "model/linear", definition, 0.0)

    def _written(
        self,
        request: Request,
        kind: str,
        definition: Any,
        absent: float | None,
        limits: tuple[str, ...] = (),
    ) -> Written:
        templates = {
            name: request.extractors.get(name, field_value(name)) for name in request.names
        }
        features = [
            {
                "name": name,
                "params": _parameters(template),
                "template_language": "mustache",
                "template": template,
            }
            for name, template in templates.items()
        ]
        set_name = feature_set_name(templates)
        feature_set = {"featureset": {"name": set_name, "features": features}}
        text = json.dumps(definition, separators=(",", ":"), allow_nan=False)
        model = {"name": request.model_name, "model": {"type": kind, "definition": text}}
        return Written(
            {
                FEATURES: json.dumps(feature_set, indent=1).encode(),
                MODEL: json.dumps({"model": model}).encode(),
            },
            absent=(absent,) * len(request.names),
            limits=limits,
        )

    def read(
        self, files: Mapping[str, bytes], features: Sequence[Feature], _model: FittedModel
    ) -> EngineModel:
        """Read both files as the plugin does."""
        listed = parse_json(files[FEATURES])["featureset"]["features"]
        names = [str(entry["name"]) for entry in listed]
        if sorted(names) != sorted(feature.engine_name for feature in features):
            raise DataError("the feature set has other features", hint="Export it again.")
        columns = {feature.engine_name: column for column, feature in enumerate(features)}
        model = parse_json(files[MODEL])["model"]["model"]
        definition = parse_json(model["definition"].encode())
        absent = np.array(
            [np.nan if feature.absent is None else feature.absent for feature in features]
        )
        if model["type"] == "model/linear":
            weights = np.zeros(len(features))
            for name, weight in definition.items():
                weights[column_of(name, columns)] = as_single(float(weight))
            linear = LinearModel(tuple(columns), weights)
            return EngineModel(linear, absent, single_precision=True)
        if model["type"] == _RAW:
            trees = _read_saved(definition["learner"], columns)
            read = concatenate_trees(trees, tuple(columns), strict=True)
            return EngineModel(read, absent, single_precision=True)
        if model["type"] != _DUMPED or definition["objective"] != _OBJECTIVE:
            raise DataError("the model is of another type", hint="Export it again.")

        def expand(node: dict[str, Any]) -> Split | float:
            if "leaf" in node:
                return float(as_single(float(node["leaf"])))
            left, right = node["children"]
            if left["nodeid"] != node["yes"] or right["nodeid"] != node["no"]:
                raise DataError("the children of a split are not its own", hint="Export it again.")
            return Split(
                column_of(node["split"], columns),
                float(as_single(float(node["split_condition"]))),
                node.get("missing") == node["yes"],
                left,
                right,
            )

        trees = [flatten_tree(root, expand) for root in definition["splits"]]
        read = concatenate_trees(trees, tuple(columns), strict=True)
        return EngineModel(read, absent, single_precision=True)

    def fields(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Return the field that a feature is read from, for those that are a document's field."""
        listed = parse_json(files[FEATURES])["featureset"]["features"]
        return read_fields((entry["name"], entry["template"]) for entry in listed)


class ElasticsearchPlugin(OpenSearch):
    """The o19s plugin for Elasticsearch, from which OpenSearch's descends."""

    name = "o19s"
    title = "Elasticsearch with the o19s plugin"
    default_version = "1.5.9"

    def absent_rule(self, version: str, raw: bool) -> Literal["zero", "right", "node"]:
        """Return what an absent feature does."""
        number = version_number(version)
        if raw and (1, 5, 9) <= number < (1, 5, 12):  # o19s#518
            return "right"
        return "node" if number >= (1, 5, 9) else "zero"  # o19s#481

    def _missing_hint(self) -> str:
        return (
            "Export for version 1.5.9 (elasticsearch-learning-to-rank#481; 1.5.12 with --raw), "
            "or pass --never-missing if every feature always has a value."
        )


def _parameters(template: Any) -> list[str]:
    """Return the parameters of a template, which the query must give: ``{{keywords}}``."""
    return sorted(set(re.findall(r"\{\{\{?\s*(\w+)\s*\}?\}\}", json.dumps(template))))


def field_value(name: str) -> dict[str, Any]:
    """Return the query of a feature that is a field of the document, absent without the field."""
    return {
        "function_score": {
            "query": {"exists": {"field": name}},
            "functions": [{"field_value_factor": {"field": name}}],
            "boost_mode": "replace",
        }
    }


def read_fields(queries: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return the field of each feature whose query ``field_value`` could have written."""
    fields = {}
    for name, query in queries:
        try:
            field = query["function_score"]["functions"][0]["field_value_factor"]["field"]
        except (KeyError, TypeError, IndexError):
            continue  # an extractor
        fields[name] = str(field)
    return fields


def _raw_leaf(value: float) -> dict[str, Any]:
    lists = {"left_children": [-1], "right_children": [-1], "parents": [2**31 - 1]}
    lists |= {"split_indices": [0], "split_type": [0], "default_left": [0]}
    return {**lists, "split_conditions": [value], "base_weights": [value]}


def _raw_trees(model: TreeModel, thresholds: Any, leaves: Any) -> list[dict[str, Any]]:
    """Return trees as XGBoost saves them: a list per property of nodes."""
    trees = []
    parents = model.parents()
    for start, end in pairwise([*model.roots.tolist(), len(model.feature)]):
        nodes = slice(start, end)
        inner = model.feature[nodes] >= 0
        above = parents[nodes]
        values = np.where(inner, thresholds[nodes], leaves[nodes]).tolist()
        trees.append(
            {
                "left_children": np.where(inner, model.left[nodes] - start, -1).tolist(),
                "right_children": np.where(inner, model.right[nodes] - start, -1).tolist(),
                "parents": np.where(above < 0, 2**31 - 1, above - start).tolist(),
                "split_indices": np.where(inner, model.feature[nodes], 0).tolist(),
                "split_type": [0] * (end - start),
                "default_left": model.missing_left[nodes].astype(np.int64).tolist(),
                "split_conditions": values,
                # The plugins take the value of a leaf from here.
                "base_weights": np.where(inner, 0.0, leaves[nodes]).tolist(),
            }
        )
    return trees


def _saved(trees: list[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    numbered = [{"id": number, **tree} for number, tree in enumerate(trees)]
    model = {"trees": numbered, "tree_info": [0] * len(trees)}
    return {
        "learner": {
            "feature_names": list(names),
            "feature_types": ["float"] * len(names),
            "gradient_booster": {"model": model, "name": "gbtree"},
            "objective": {"name": _OBJECTIVE},
        },
        "version": [3, 0, 0],
    }


def _read_saved(learner: dict[str, Any], columns: Mapping[str, int]) -> list[dict[str, Any]]:
    if learner["objective"]["name"] != _OBJECTIVE:
        raise DataError("the model is of another type", hint="Export it again.")
    order = [column_of(name, columns) for name in learner["feature_names"]]
    trees = []
    for tree in learner["gradient_booster"]["model"]["trees"]:

        def expand(node: int, tree: dict[str, Any] = tree) -> Split | float:
            if node < 0:
                raise DataError("a node is out of range", hint="Export it again.")
            if tree["left_children"][node] == -1 or tree["right_children"][node] == -1:
                return float(as_single(float(tree["base_weights"][node])))
            return Split(
                order[tree["split_indices"][node]],
                float(as_single(float(tree["split_conditions"][node]))),
                tree["default_left"][node] == 1,
                tree["left_children"][node],
                tree["right_children"][node],
            )

        trees.append(flatten_tree(0, expand))
    return trees


def nested_trees(
    model: TreeModel, thresholds: Any, leaves: Any, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return trees as XGBoost dumps them: nested nodes that go left below a threshold."""
    nodes: list[dict[str, Any]] = [{}] * len(model.feature)
    depths = model.depths().tolist()
    roots = model.roots[model.tree_of_node()].tolist()
    features, left, right = model.feature.tolist(), model.left.tolist(), model.right.tolist()
    missing_left = model.missing_left.tolist()
    for node in range(len(features) - 1, -1, -1):  # children come after their parents
        number = node - roots[node]
        if features[node] < 0:
            nodes[node] = {"nodeid": number, "leaf": float(leaves[node])}
            continue
        yes, no = left[node] - roots[node], right[node] - roots[node]
        nodes[node] = {
            "nodeid": number,
            "depth": depths[node],
            "split": names[features[node]],
            "split_condition": float(thresholds[node]),
            "yes": yes,
            "no": no,
            "missing": yes if missing_left[node] else no,
            "children": [nodes[left[node]], nodes[right[node]]],
        }
    return [nodes[root] for root in model.roots.tolist()]
