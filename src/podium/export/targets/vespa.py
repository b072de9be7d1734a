"""Vespa: trees in the form of LightGBM's JSON dump, and a rank profile.

Vespa turns a split into ``feature < threshold``, or ``!(feature >= threshold)`` where a missing
value goes left: so a threshold is written as the next single-precision number, which its compiled
forests and its expressions read alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from podium.data.json_lines import parse_json
from podium.errors import ArgumentError, DataError
from podium.export.folder import Feature
from podium.export.targets.base import EngineModel, Request, Target, Written
from podium.export.targets.opensearch import ABOVE_ALL
from podium.scorers.models import FittedModel
from podium.scorers.single_precision import as_single, below
from podium.scorers.trees import Split, TreeModel, concatenate_trees, flatten_tree

MODEL, PROFILE = "model.json", "rank-profile.sd"
_ATTRIBUTE = re.compile(r"function (\w+)\(\) \{\n\s*expression: attribute\((\w+)\)\n")


class Vespa(Target):
    """``model.json`` goes to ``models/`` of the application, the profile into its schema."""

    name = "vespa"
    title = "Vespa"
    default_version = "8"
    single_precision = True
    # The first two are numbers in expressions; profiles with functions of the others are refused.
    reserved_names = frozenset({"true", "false", "constant", "inline", "tensor", "unpack_bits"})

    def write_trees(self, request: Request, model: TreeModel) -> Written:
        """Write what LightGBM's ``dump_model`` returns, as far as Vespa reads it."""
        self.require_plain_splits(model)
        thresholds = below(model.threshold, strict=model.strict).astype(np.float64)
        thresholds = np.minimum(thresholds, ABOVE_ALL)  # JSON has no infinity
        roots: list[dict[str, Any]] = []
        if model.base_score or not model.trees:
            roots.append({"leaf_value": model.base_score})
        roots += _nested(model, thresholds)
        dump = {
            # The parser reads both even where LightGBM leaves them out (own objectives).
            "objective": "regression",
            "pandas_categorical": [],
            "feature_names": list(request.names),
            "tree_info": [
                {"tree_index": number, "tree_structure": root} for number, root in enumerate(roots)
            ],
        }
        functions = [
            f"    function {name}() {{\n        expression: "
            f"{request.extractors.get(name, f'attribute({name})')}\n    }}\n"
            for name in request.names
        ]
        profile = (
            f"rank-profile {request.model_name} {{\n{''.join(functions)}"
            f'    second-phase {{\n        expression: lightgbm("{request.model_name}.json")\n'
            "    }\n}\n"
        )
        try:
            written = profile.encode()
        except UnicodeEncodeError as error:
            raise DataError("an extractor is not valid Unicode", hint="Correct it.") from error
        files = {MODEL: json.dumps(dump, allow_nan=False).encode(), PROFILE: written}
        return Written(files, (None,) * len(request.names), self.infinity_limits(model))

    def refuse_always(self, what: str, hint: str) -> NoReturn:
        """Raise the error for what is not written: Vespa's expressions could do more."""
        raise ArgumentError(f"Podium does not write {what} for Vespa", hint=hint)

    def read(
        self, files: Mapping[str, bytes], features: Sequence[Feature], _model: FittedModel
    ) -> EngineModel:
        """Read the dump as Vespa's parser does."""
        columns = {feature.engine_name: column for column, feature in enumerate(features)}
        absent = np.array([np.nan if item.absent is None else item.absent for item in features])
        dump = parse_json(files[MODEL])
        names = dump["feature_names"]
        if dump["objective"] != "regression" or set(names) != set(columns):
            raise DataError("the dump has other features", hint="Export it again.")

        def expand(node: dict[str, Any]) -> Split | float:
            if "leaf_value" in node:
                return float(node["leaf_value"])
            if node["decision_type"] != "<=":
                raise DataError("a split compares in another way", hint="Export it again.")
            return Split(
                columns[names[node["split_feature"]]],
                float(as_single(float(node["threshold"]))),
                bool(node["default_left"]),
                node["left_child"],
                node["right_child"],
            )

        trees = [flatten_tree(tree["tree_structure"], expand) for tree in dump["tree_info"]]
        read = concatenate_trees(trees, tuple(columns), strict=True)
        return EngineModel(read, absent, single_precision=True)

    def fields(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Return the attribute that a feature is read from, for those that are one."""
        return dict(_ATTRIBUTE.findall(files[PROFILE].decode()))


def _nested(model: TreeModel, thresholds: Any) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = [{}] * len(model.feature)
    features, left, right = model.feature.tolist(), model.left.tolist(), model.right.tolist()
    for node in range(len(features) - 1, -1, -1):  # children come after their parents
        if features[node] < 0:
            nodes[node] = {"leaf_value": float(model.value[node])}
            continue
        nodes[node] = {
            "split_feature": features[node],
            "threshold": float(thresholds[node]),
            "decision_type": "<=",
            "default_left": bool(model.missing_left[node]),
            "left_child": nodes[left[node]],
            "right_child": nodes[right[node]],
        }
    return [nodes[root] for root in model.roots.tolist()]
