"""Read a model that XGBoost saved, in JSON or in its binary form of JSON (UBJ)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.data.json_lines import parse_json
from podium.errors import DataError
from podium.export.single_precision import as_single
from podium.export.trees import TreeModel, concatenate_trees
from podium.export.ubjson import parse_ubjson

_MARGIN = {"binary:logistic", "binary:logitraw", "reg:logistic"}
_LOG = {"count:poisson", "reg:gamma", "reg:tweedie"}
_SAME = ("rank:", "reg:")
_MOST_FEATURES = 1_000_000


def read_xgboost(content: bytes) -> TreeModel:
    """Read a model that XGBoost saved; its scores are XGBoost's margins.

    A model that was stopped early has the trees up to its best iteration. XGBoost compares and adds
    in single precision: rows of single-precision values take the same branches, and its own sums
    differ in the last digits from the exact ones.
    """
    try:
        model = parse_json(content) if content[1:2] in b'"\n \t' else parse_ubjson(content)
        return _model(model["learner"])
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        raise DataError(
            f"is not a valid XGBoost model ({error!r})", hint="Save it again with save_model."
        ) from error


def _model(learner: dict[str, Any]) -> TreeModel:
    booster = learner["gradient_booster"]
    weights = None
    if booster["name"] == "dart":
        weights = np.array(booster["weight_drop"], np.float64)
        booster = booster["gbtree"]
    if booster["name"] != "gbtree":
        raise ValueError("it is not made of trees")
    model, shape = booster["model"], learner["learner_model_param"]
    count = int(shape["num_feature"])
    names = tuple(map(str, learner.get("feature_names") or ()))
    if not names and 0 < count <= _MOST_FEATURES:
        names = tuple(str(number + 1) for number in range(count))
    if len(names) != count or int(shape["num_class"]) > 1 or int(shape["num_target"]) != 1:
        raise ValueError("it has other features or several outputs")
    if any(model["tree_info"]):
        raise ValueError("it has several classes")
    sets: list[tuple[int, ...]] = []
    trees = [_tree(tree, sets) for tree in model["trees"]]
    read = concatenate_trees(
        trees,
        names,
        strict=True,
        base_score=_margin(str(shape["base_score"]), str(learner["objective"]["name"])),
        category_sets=tuple(sets),
        floor_categories=True,
        single_precision=True,
    )
    if weights is not None:
        if weights.shape != (read.trees,):
            raise ValueError("its weights have a wrong length")
        read = read.rescaled(weights)
    best = learner.get("attributes", {}).get("best_iteration")
    if best is None:
        return read
    rounds = model["iteration_indptr"]
    return read.first_trees(int(rounds[min(int(best) + 1, len(rounds) - 1)]))


def _tree(tree: dict[str, Any], sets: list[tuple[int, ...]]) -> dict[str, ArrayLike]:
    left = np.array(tree["left_children"], np.int64)
    right = np.array(tree["right_children"], np.int64)
    leaf = left == -1
    if (leaf != (right == -1)).any() or not left.size:
        raise ValueError("its nodes do not form trees")
    values = as_single(tree["split_conditions"]).astype(np.float64)
    missing_left = np.array(tree["default_left"], np.int64) != 0
    category_set = np.full(len(left), -1)
    categories = [int(category) for category in tree.get("categories", ())]
    starts, sizes = tree.get("categories_segments", ()), tree.get("categories_sizes", ())
    for node, start, size in zip(tree.get("categories_nodes", ()), starts, sizes, strict=True):
        category_set[int(node)] = len(sets)
        sets.append(tuple(sorted(set(categories[int(start) : int(start) + int(size)]))))
    by_category = category_set >= 0
    if (by_category != (np.array(tree["split_type"], np.int64) == 1)).any() or leaf[
        by_category
    ].any():
        raise ValueError("its category sets are not those of its splits")
    # XGBoost sends the categories of a set to the right.
    left, right = np.where(by_category, right, left), np.where(by_category, left, right)
    return {
        "feature": np.where(leaf, -1, np.array(tree["split_indices"], np.int64)),
        "threshold": np.where(leaf | by_category, 0.0, values),
        "left": np.where(leaf, 0, left),
        "right": np.where(leaf, 0, right),
        "missing_left": (missing_left ^ by_category) & ~leaf,
        "value": np.where(leaf, values, 0.0),
        "category_set": category_set,
    }


def _margin(text: str, objective: str) -> float:
    """Return the base score as a margin: XGBoost saves what its objective transforms."""
    score = float(as_single(float(text.strip("[]"))))
    if objective in _MARGIN:
        return math.log(score / (1 - score))
    if objective in _LOG:
        return math.log(score)
    if objective.startswith(_SAME):
        return score
    raise ValueError(f"{objective} is an objective without a known base score")
