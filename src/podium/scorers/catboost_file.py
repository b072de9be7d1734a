"""Read a model that CatBoost saved in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.data.json_lines import parse_json
from podium.errors import DataError
from podium.scorers.feature_names import check_feature_names, shortened
from podium.scorers.single_precision import as_single
from podium.scorers.trees import Split, TreeModel, concatenate_trees, flatten_tree

_MOST_SPLITS = 16
"""CatBoost's own bound of the depth of an oblivious tree."""

_TREATMENTS = ("AsIs", "AsFalse", "AsTrue")


def read_catboost(content: bytes) -> TreeModel:
    """Read a model that CatBoost saved in JSON; its scores are CatBoost's raw values.

    Only numerical features: CatBoost turns categorical and text features into numbers by tables
    that are not part of a tree.
    """
    try:
        return _model(parse_json(content))
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise DataError(
            f"is not a valid CatBoost model ({shortened(repr(error))})",
            hint="Save it again with save_model(..., format='json').",
        ) from error


def _model(content: dict[str, Any]) -> TreeModel:
    info = content["features_info"]
    if any(info.get(name) for name in ("categorical_features", "text_features", "ctrs")):
        raise DataError(
            "is a CatBoost model with categorical or text features, which no target can express",
            hint="Train it on numerical features.",
        )
    described = info["float_features"]
    names = [""] * len(described)
    columns, treatments = {}, {}
    for entry in described:
        column = int(entry["flat_feature_index"])
        if not 0 <= column < len(names) or names[column]:
            raise ValueError("its features are not numbered")
        names[column] = str(entry["feature_id"]) or str(column + 1)
        columns[int(entry["feature_index"])] = column
        treatment = entry["nan_value_treatment"]
        if treatment not in _TREATMENTS:
            raise ValueError(f"nan_value_treatment is {treatment!r}")
        treatments[int(entry["feature_index"])] = treatment
    check_feature_names(names)
    scale, biases = content["scale_and_bias"]
    if len(biases) > 1:
        raise DataError(
            "is a CatBoost model that is not supported: one of several outputs",
            hint="Train it with one output.",
        )
    reader = _Splits(columns, treatments)
    if "oblivious_trees" in content:
        trees = [reader.oblivious(tree) for tree in content["oblivious_trees"]]
    else:
        trees = [reader.nested(tree) for tree in content["trees"]]
    base = float(biases[0]) if biases else 0.0
    read = concatenate_trees(trees, tuple(names), base_score=base, single_values=True)
    return read.rescaled(np.full(read.trees, float(scale)))


class _Splits:
    """Reads splits: a value above a border is a 1, and a missing one as its feature says."""

    def __init__(self, columns: dict[int, int], treatments: dict[int, str]) -> None:
        self._columns, self._treatments = columns, treatments

    def _split(self, split: dict[str, Any]) -> tuple[int, float, bool]:
        if split["split_type"] != "FloatFeature":
            raise ValueError(f"it has a split of type {split['split_type']!r}")
        index = int(split["float_feature_index"])
        # Borders are single-precision numbers that JSON has in double precision.
        border = float(as_single(float(split["border"])))
        return self._columns[index], border, self._treatments[index] != "AsTrue"

    def oblivious(self, tree: dict[str, Any]) -> dict[str, ArrayLike]:
        """Spell out a tree whose nodes of one level have one split: the last is the root's."""
        splits = [self._split(split) for split in tree["splits"]][::-1]
        depth, values = len(splits), [float(value) for value in tree["leaf_values"]]
        if depth > _MOST_SPLITS or len(values) != 1 << depth:
            raise ValueError("a tree has another number of leaves")
        inner = (1 << depth) - 1
        level = np.array([(node + 1).bit_length() - 1 for node in range(inner)], np.int64)
        nodes = np.arange(inner)
        pad = np.zeros(1 << depth, np.int64)
        column, border, missing = (
            np.array([split[part] for split in splits] or [0])[level] for part in range(3)
        )
        return {
            "feature": np.append(column, pad - 1).astype(np.int64),
            "threshold": np.append(border, pad),
            "left": np.append(2 * nodes + 1, pad),
            "right": np.append(2 * nodes + 2, pad),
            "missing_left": np.append(missing, pad),
            "value": np.append(np.zeros(inner), values),
        }

    def nested(self, tree: dict[str, Any]) -> dict[str, ArrayLike]:
        """Read a tree of nested nodes."""

        def expand(node: dict[str, Any]) -> Split | float:
            if "split" not in node:
                return float(node["value"])
            return Split(*self._split(node["split"]), node["left"], node["right"])

        return flatten_tree(tree, expand)
