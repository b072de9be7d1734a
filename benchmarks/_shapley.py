"""Shapley values by their formula, subset by subset: what explanations of rankers must equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from podium.kernels import Doubles, Floats
from podium.rankers import TreeRanker


def brute_force(value: Callable[[set[int]], float], players: int) -> Doubles:
    """Return the Shapley value of each player.

    Args:
        value: The value of a coalition.
        players: Their number.
    """
    result = np.zeros(players)
    for player in range(players):
        others = [other for other in range(players) if other != player]
        for size in range(players):
            for subset in combinations(others, size):
                share = factorial(size) * factorial(players - size - 1) / factorial(players)
                result[player] += share * (value({*subset, player}) - value(set(subset)))
    return result


def tree_shapley(ranker: TreeRanker, rows: Floats) -> Doubles:
    """Return the path-dependent Shapley values of a tree ranker, a row per row.

    By their definition: where the feature of a split is not in the coalition, both branches count
    by the training rows (LightGBM) or the second derivatives (XGBoost) that went there.
    """
    trees = _lightgbm_trees(ranker) if ranker.engine == "lightgbm" else _xgboost_trees(ranker)

    def of_row(row: Floats) -> Doubles:
        def value(known: set[int]) -> float:
            return sum(_expected(tree, row, known) for tree in trees)

        return brute_force(value, rows.shape[1])

    return np.array([of_row(row) for row in rows])


def mean_document_shapley(
    predict: Callable[[Floats], Doubles], rows: Floats, document: int
) -> Doubles:
    """Return Shapley values where unknown features are those of the query's other documents."""

    def value(known: set[int]) -> float:
        mixed = rows.copy()
        mixed[:, list(known)] = rows[document, list(known)]
        return float(predict(mixed).mean())

    return brute_force(value, rows.shape[1])


def _expected(node: dict[str, Any], row: Floats, known: set[int]) -> float:
    if "value" in node:
        return float(node["value"])
    left, right = node["left"], node["right"]
    if node["feature"] in known:
        return _expected(left if node["goes_left"](row[node["feature"]]) else right, row, known)
    total = left["cover"] + right["cover"]
    return float(
        left["cover"] / total * _expected(left, row, known)
        + right["cover"] / total * _expected(right, row, known)
    )


def _lightgbm_trees(ranker: TreeRanker) -> list[dict[str, Any]]:
    def convert(node: dict[str, Any]) -> dict[str, Any]:
        if "leaf_value" in node:
            return {"value": node["leaf_value"], "cover": node["leaf_count"]}
        return {
            "feature": node["split_feature"],
            "goes_left": lambda value: value <= node["threshold"],
            "left": convert(node["left_child"]),
            "right": convert(node["right_child"]),
            "cover": node["internal_count"],
        }

    return [convert(tree["tree_structure"]) for tree in ranker.booster_.dump_model()["tree_info"]]


def _xgboost_trees(ranker: TreeRanker) -> list[dict[str, Any]]:
    def convert(tree: dict[str, Any], node: int) -> dict[str, Any]:
        number, cover = np.float32(tree["split_conditions"][node]), tree["sum_hessian"][node]
        if tree["left_children"][node] < 0:
            return {"value": number, "cover": cover}
        return {
            "feature": tree["split_indices"][node],
            "goes_left": lambda value: value < number,
            "left": convert(tree, tree["left_children"][node]),
            "right": convert(tree, tree["right_children"][node]),
            "cover": cover,
        }

    learner = json.loads(bytes(ranker.booster_.save_raw("json")))["learner"]
    return [convert(tree, 0) for tree in learner["gradient_booster"]["model"]["trees"]]
