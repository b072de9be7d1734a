"""Read a model that XGBoost saved, in JSON or in its binary form of JSON (UBJ)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.data.json_lines import parse_json
from podium.errors import DataError
from podium.kernels import Ints
from podium.scorers.feature_names import check_feature_count, check_feature_names, shortened
from podium.scorers.model_check import DELETED
from podium.scorers.single_precision import as_single
from podium.scorers.trees import TreeModel, concatenate_trees
from podium.scorers.ubjson import parse_ubjson

_MARGIN = {"binary:logistic", "binary:logitraw", "reg:logistic"}
_LOG = {"count:poisson", "reg:gamma", "reg:tweedie"}
_SAME = ("rank:", "reg:")


def read_xgboost(content: bytes, rounds: int | None = None) -> TreeModel:
    """Read a model that XGBoost saved; its scores are XGBoost's margins.

    XGBoost compares and adds in single precision: rows of single-precision values take the same
    branches, and its own sums differ in the last digits from the exact ones.

    Args:
        content: The bytes of the file.
        rounds: The number of boosting rounds to read, each of which has ``num_parallel_tree``
            trees; by default those up to the best iteration if it was stopped early, or all.
    """
    try:
        model = parse_json(content) if content[1:2] in b'"\n \t' else parse_ubjson(content)
        return _model(model["learner"], rounds)
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, AttributeError) as error:
        raise DataError(
            f"is not a valid XGBoost model ({shortened(repr(error))})",
            hint="Save it again with save_model.",
        ) from error


def _model(learner: dict[str, Any], rounds: int | None) -> TreeModel:
    booster = learner["gradient_booster"]
    weights = None
    if booster["name"] == "dart":
        weights = np.array(booster["weight_drop"], np.float64)
        booster = booster["gbtree"]
    if booster["name"] == "gblinear":
        raise _unsupported("a linear one (gblinear)")
    if booster["name"] != "gbtree":
        raise ValueError("it is not made of trees")
    model, shape = booster["model"], learner["learner_model_param"]
    if int(shape["num_class"]) > 1 or int(shape["num_target"]) > 1:
        raise _unsupported("one of several outputs")
    objective = str(learner["objective"]["name"])
    if objective not in _MARGIN | _LOG and not objective.startswith(_SAME):
        raise _unsupported(f"one of the objective {shortened(objective)}")
    count = int(shape["num_feature"])
    check_feature_count(count)
    names = tuple(map(str, learner.get("feature_names") or ()))
    check_feature_names(names)
    if not names:
        names = tuple(str(number + 1) for number in range(count))
    if len(names) != count:
        raise ValueError("it has another number of features")
    if any(model["tree_info"]):
        raise ValueError("it has several classes")
    sets: list[tuple[int, ...]] = []
    trees = [_tree(tree, sets) for tree in model["trees"]]
    read = concatenate_trees(
        trees,
        names,
        strict=True,
        base_score=_margin(str(shape["base_score"]), objective),
        category_sets=tuple(sets),
        floor_categories=True,
        single_values=True,
        single_precision=True,
    )
    if weights is not None:
        if weights.shape != (read.trees,):
            raise ValueError("its weights have a wrong length")
        read = read.rescaled(weights)
    if rounds is not None:
        return _first_rounds(read, model, rounds)
    best = learner.get("attributes", {}).get("best_iteration")
    if best is None:
        return read
    used = _first_rounds(read, model, int(best) + 1)
    return replace(used, unused=read.trees - used.trees)


def _first_rounds(read: TreeModel, model: dict[str, Any], rounds: int) -> TreeModel:
    ends = _integers(model["iteration_indptr"])
    if rounds < 0 or (np.diff(ends) < 0).any() or ends[-1] != read.trees:
        raise ValueError("its rounds are not its trees")
    return read.first_trees(int(ends[min(rounds, len(ends) - 1)]))


def _tree(tree: dict[str, Any], sets: list[tuple[int, ...]]) -> dict[str, ArrayLike]:
    left = _integers(tree["left_children"])
    right, feature, kinds = (
        _integers(tree[name], len(left))
        for name in ("right_children", "split_indices", "split_type")
    )
    leaf = left == -1
    if (leaf != (right == -1)).any() or not left.size:
        raise ValueError("its nodes do not form trees")
    if len(tree["split_conditions"]) != len(left):
        raise ValueError("split_conditions has another length")
    values = as_single(tree["split_conditions"]).astype(np.float64)
    missing_left = _integers(tree["default_left"], len(left)) != 0
    category_set = np.full(len(left), -1)
    categories, nodes, starts, sizes = (
        _integers(tree.get(name, ())).tolist()
        for name in ("categories", "categories_nodes", "categories_segments", "categories_sizes")
    )
    if min(starts + sizes, default=0) < 0 or sum(sizes) > len(categories):
        raise ValueError("its category sets overlap")  # and would take more than the file
    for node, start, size in zip(nodes, starts, sizes, strict=True):
        category_set[node] = len(sets)
        sets.append(tuple(sorted(set(categories[start : start + size]))))
    by_category = category_set >= 0
    if (by_category != (kinds == 1)).any() or leaf[by_category].any():
        raise ValueError("its category sets are not those of its splits")
    # XGBoost sends the categories of a set to the right.
    left, right = np.where(by_category, right, left), np.where(by_category, left, right)
    nodes_of_tree = {
        "feature": np.where(leaf, -1, feature),
        "threshold": np.where(leaf | by_category, 0.0, values),
        "left": np.where(leaf, 0, left),
        "right": np.where(leaf, 0, right),
        "missing_left": (missing_left ^ by_category) & ~leaf,
        "value": np.where(leaf, values, 0.0),
        "category_set": category_set,
    }
    return _without_deleted(nodes_of_tree, leaf, feature == DELETED)


def _without_deleted(
    tree: dict[str, NDArray[Any]], leaf: NDArray[np.bool_], deleted: NDArray[np.bool_]
) -> dict[str, ArrayLike]:
    """Drop nodes that pruning left in the file, below what are leaves now."""
    children = np.concatenate([tree[side][~leaf] for side in ("left", "right")])
    if ((children < 0) | (children >= len(leaf))).any() or deleted[children].any():
        raise ValueError("its nodes do not form trees")
    number = np.cumsum(~deleted) - 1
    kept: dict[str, ArrayLike] = {name: array[~deleted] for name, array in tree.items()}
    for side in ("left", "right"):
        kept[side] = np.where(leaf, 0, number[tree[side]])[~deleted]
    return kept


def _integers(values: Sequence[Any], size: int | None = None) -> Ints:
    """Check that a list has integers only, which NumPy would cut fractions to."""
    if any(not isinstance(value, int) for value in values):
        raise ValueError("a number is not an integer")
    if size is not None and len(values) != size:
        raise ValueError("lists of nodes differ in length")
    return np.array(values, np.int64)


def _margin(text: str, objective: str) -> float:
    """Return the base score as a margin: XGBoost saves what its objective transforms."""
    score = float(as_single(float(text.strip("[]"))))
    if objective in _MARGIN:
        return math.log(score / (1 - score))
    if objective in _LOG:
        return math.log(score)
    return score


def _unsupported(kind: str) -> DataError:
    return DataError(
        f"is an XGBoost model that is not supported: {kind}",
        hint="Train trees with one output and an objective rank:..., reg:... or binary:logistic.",
    )
