"""Elasticsearch's own learning to rank: a tree ensemble with one query per feature.

It computes in double precision from features that are scores of queries, so single-precision
numbers that are not negative, and returns a single-precision score.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from podium.data.json_lines import parse_json
from podium.errors import DataError
from podium.export.folder import Feature
from podium.export.targets.base import EngineModel, Request, Target, Written, version_number
from podium.export.targets.opensearch import field_value, read_fields
from podium.scorers.models import FittedModel
from podium.scorers.trees import Split, TreeModel, concatenate_trees, flatten_tree

MODEL = "model.json"
_LARGEST = float(np.finfo(np.float64).max)


class Elasticsearch(Target):
    """``PUT _ml/trained_models/NAME``, whose body ``model.json`` is."""

    name = "elasticsearch"
    title = "Elasticsearch"
    default_version = "8.15"
    single_precision = False
    negative_values = False

    def write_trees(self, request: Request, model: TreeModel) -> Written:
        """Write an ensemble of trees and the queries of its features."""
        if version_number(request.version) < (8, 15):
            self.refuse(
                f"rankers in version {request.version}, where learning to rank is a preview",
                "Export for version 8.15, or to o19s.",
            )
        self.require_plain_splits(model)
        names = list(request.names)
        structures = _structures(model)
        if model.base_score or not model.trees:
            structures.insert(0, [{"node_index": 0, "leaf_value": model.base_score}])
        trees = [
            {
                "tree": {
                    "feature_names": names,
                    "tree_structure": structure,
                    "target_type": "regression",
                }
            }
            for structure in structures
        ]
        ensemble = {
            "feature_names": names,
            "trained_models": trees,
            "aggregate_output": {"weighted_sum": {"weights": [1.0] * len(trees)}},
            "target_type": "regression",
        }
        extractors = [
            {
                "query_extractor": {
                    "feature_name": name,
                    "query": request.extractors.get(name, field_value(name)),
                }
            }
            for name in names
        ]
        body = {
            "model_type": "tree_ensemble",
            "definition": {"trained_model": {"ensemble": ensemble}},
            "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
        }
        files = {MODEL: json.dumps(body, allow_nan=False).encode()}
        limits = (*_infinity_limits(model), *_shift_limits(model))
        return Written(files, (None,) * len(names), limits)

    def read(
        self, files: Mapping[str, bytes], features: Sequence[Feature], _model: FittedModel
    ) -> EngineModel:
        """Read the ensemble as Elasticsearch does."""
        columns = {feature.engine_name: column for column, feature in enumerate(features)}
        absent = np.array([np.nan if item.absent is None else item.absent for item in features])
        body = parse_json(files[MODEL])
        ensemble = body["definition"]["trained_model"]["ensemble"]
        weights = ensemble["aggregate_output"]["weighted_sum"]["weights"]
        extracted = [
            item["query_extractor"]["feature_name"]
            for item in body["inference_config"]["learning_to_rank"]["feature_extractors"]
        ]
        models = ensemble["trained_models"]
        if set(extracted) != set(columns) or weights != [1.0] * len(models):
            raise DataError("the ensemble has other features or weights", hint="Export it again.")
        operators = set()
        trees = []
        for item in models:
            names = item["tree"]["feature_names"]
            nodes = {node["node_index"]: node for node in item["tree"]["tree_structure"]}

            def expand(
                number: int, nodes: Any = nodes, names: Sequence[str] = names
            ) -> Split | float:
                node = nodes[number]
                if "left_child" not in node:
                    return float(node["leaf_value"])
                threshold = float(node["threshold"])
                if node["decision_type"] == "lt":  # as "at most", for numbers of any precision
                    with np.errstate(over="ignore"):
                        threshold = float(np.nextafter(threshold, -np.inf))
                else:
                    operators.add(node["decision_type"])
                return Split(
                    columns[names[node["split_feature"]]],
                    threshold,
                    bool(node["default_left"]),
                    node["left_child"],
                    node["right_child"],
                )

            trees.append(flatten_tree(0, expand))
        if operators - {"lte"}:
            raise DataError("a split compares in another way", hint="Export it again.")
        return EngineModel(concatenate_trees(trees, tuple(columns)), absent, False)

    def fields(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Return the field that a feature is read from, for those that are a document's field."""
        configuration = parse_json(files[MODEL])["inference_config"]["learning_to_rank"]
        extractors = [item["query_extractor"] for item in configuration["feature_extractors"]]
        return read_fields((item["feature_name"], item["query"]) for item in extractors)


def adds_shift(version: tuple[int, ...]) -> bool:
    """Return whether a version adds ``score_shift`` to scores: 8.19 and 9.0.1 do, not 9.0.0.

    Example:
        >>> [adds_shift(version) for version in ((8, 18, 8), (8, 19, 0), (9, 0, 0), (9, 0, 1))]
        [False, True, False, True]
    """
    return (8, 19) <= version < (9,) or version >= (9, 0, 1)


def score_shift(model: TreeModel) -> float:
    """Return what Elasticsearch adds to each score so that none is negative, from the leaves.

    The least score is taken to be the sum of the least leaf of each tree, whether or not a document
    can reach all of them.
    """
    if not model.trees:
        return max(0.0, -model.base_score)
    leaves = np.where(model.feature < 0, model.value, np.inf)
    return max(0.0, -float(model.base_score + np.minimum.reduceat(leaves, model.roots).sum()))


def _infinity_limits(model: TreeModel) -> tuple[str, ...]:
    at_infinity = (model.feature >= 0) & np.isposinf(model.threshold)
    if model.strict or not (at_infinity & ~model.missing_left).any():
        return ()
    return (
        "An infinite value goes right at splits by <= infinity, as Elasticsearch takes it for a "
        "missing one; the ranker sends it left.",
    )


def _shift_limits(model: TreeModel) -> tuple[str, ...]:
    shift = score_shift(model)
    if not shift:
        return ()
    step = float(np.spacing(np.float32(shift + model.largest_score())))
    return (
        f"From version 8.19 on, Elasticsearch adds {shift:.6g} to every score, so that none is "
        f"negative (elasticsearch#125694). The order stays, but scores that differ by less than "
        f"{step:.1g} may tie.",
    )


def _structures(model: TreeModel) -> list[list[dict[str, Any]]]:
    starts = [*model.roots.tolist(), len(model.feature)]
    operator, zero = ("lt", -0.0) if model.strict else ("lte", 0.0)
    structures = []
    for start, end in pairwise(starts):
        nodes: list[dict[str, Any]] = []
        for node in range(start, end):
            if model.feature[node] < 0:
                nodes.append({"node_index": node - start, "leaf_value": float(model.value[node])})
                continue
            # JSON has no infinity; all single-precision numbers are between these two.
            threshold = float(np.clip(model.threshold[node], -_LARGEST, _LARGEST))
            # Java's Double.compare has -0 below 0.
            threshold = threshold or zero
            nodes.append(
                {
                    "node_index": node - start,
                    "split_feature": int(model.feature[node]),
                    "threshold": threshold,
                    "decision_type": operator,
                    "left_child": int(model.left[node]) - start,
                    "right_child": int(model.right[node]) - start,
                    "default_left": bool(model.missing_left[node]),
                }
            )
        structures.append(nodes)
    return structures
