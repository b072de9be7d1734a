"""Read a model in LightGBM's text format."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.errors import DataError
from podium.scorers.feature_names import check_feature_names
from podium.scorers.model_check import check_lightgbm
from podium.scorers.tree_kernel import ZERO
from podium.scorers.trees import TreeModel, concatenate_trees

_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_MISSING_NONE, _MISSING_ZERO, _MISSING_NAN = 0, 1, 2


def read_lightgbm(content: bytes) -> TreeModel:
    """Read a model in LightGBM's text format; its scores are LightGBM's raw scores.

    What happens to a missing value depends on ``missing_type`` of the split: with ``None`` it
    counts as 0, whatever the default direction of the split says; with ``Zero`` 0 is missing, too.
    """
    header = content[: content.find(b"\nTree=0\n") + 1]
    if re.search(rb"^num_class=0*(?!1$)[1-9]\d{0,8}$", header, re.MULTILINE):
        raise DataError(
            "is a LightGBM model that is not supported: one of several outputs",
            hint="Train it with one output.",
        )
    try:
        return _model(check_lightgbm(content).decode())
    except UnicodeDecodeError as error:
        raise DataError(
            f"is not a valid LightGBM model ({error})", hint="Save it again with save_model."
        ) from error


def _model(text: str) -> TreeModel:
    head, _, rest = text.partition("\nTree=0\n")
    header = _fields(head)
    names = tuple(header["feature_names"].split(" "))
    check_feature_names(names)
    blocks = rest.partition("\nend of trees\n")[0].split("\nTree=") if rest else []
    sets: list[tuple[int, ...]] = []
    zero_missing = np.zeros(len(names), np.bool_)
    zero_plain = np.zeros(len(names), np.bool_)
    trees = []
    for block in blocks:
        tree, by_zero = _tree(_fields(block), sets)
        feature, missing = np.asarray(tree["feature"]), np.asarray(by_zero)
        zero_missing[feature[missing == 1]] = True
        zero_plain[feature[missing == -1]] = True
        trees.append(tree)
    if (zero_missing & zero_plain).any():
        raise DataError(
            "is a LightGBM model in which 0 is a missing value of a feature in some splits only",
            hint="Train it with one setting of zero_as_missing.",
        )
    return concatenate_trees(trees, names, category_sets=tuple(sets), zero_missing=zero_missing)


def _fields(lines: str) -> dict[str, str]:
    return {
        name: value
        for name, _, value in (line.partition("=") for line in lines.split("\n") if line)
    }


def _tree(
    fields: dict[str, str], sets: list[tuple[int, ...]]
) -> tuple[dict[str, ArrayLike], NDArray[Any]]:
    """Return the arrays of a tree, and for each node whether 0 is missing (1), not (-1) or either.

    Where 0 goes to the side of missing values anyway, it makes no difference.
    """
    leaves = int(fields["num_leaves"])
    if int(fields.get("is_linear", "0")):
        raise DataError(
            "is a LightGBM model with linear trees, which no target can express",
            hint="Train it without linear_tree.",
        )
    values = _numbers(fields["leaf_value"], np.float64)
    if leaves == 1:
        return {"feature": [-1], "value": values}, np.zeros(1, np.int64)
    splits = leaves - 1
    feature = _numbers(fields["split_feature"], np.int64)
    threshold = _numbers(fields["threshold"], np.float64)
    kinds = _numbers(fields["decision_type"], np.int64)
    default_left = (kinds & _DEFAULT_LEFT) != 0
    missing = (kinds >> 2) & 3
    categorical = (kinds & _CATEGORICAL) != 0
    category_set = np.full(splits, -1)
    if categorical.any():
        bounds = _numbers(fields["cat_boundaries"], np.int64)
        words = _numbers(fields["cat_threshold"], np.int64).astype(np.uint32)
        # Nodes may share a set: each is spelled out once.
        used, place = np.unique(threshold[categorical].astype(np.int64), return_inverse=True)
        category_set[categorical] = len(sets) + place
        sets += [_members(words[bounds[index] : bounds[index + 1]]) for index in used]
    # LightGBM takes what is not farther from 0 than ZERO for 0, so no threshold lies between.
    threshold = np.where((threshold >= 0) & (threshold < ZERO), ZERO, threshold)
    below = np.nextafter(-ZERO, -np.inf)
    threshold = np.where((threshold < 0) & (threshold > below), below, threshold)
    zero_left = threshold >= 0  # where the value 0 goes, which NaN counts as
    missing_left = np.where(missing == _MISSING_NONE, zero_left, default_left)
    missing_left[categorical] = False
    # A zero lies between -ZERO and ZERO: both ends must go to the side of missing values.
    same = np.where(default_left, threshold >= ZERO, threshold < -ZERO)
    zero_is_missing = (missing == _MISSING_ZERO) & ~categorical
    zero = np.where(zero_is_missing, np.where(same, 0, 1), -1)
    zero[~zero_is_missing & same & ~categorical & (missing_left == default_left)] = 0

    def child(name: str) -> NDArray[Any]:
        children = _numbers(fields[name], np.int64)
        return np.where(children < 0, splits + ~children, children)

    # A leaf may have a lower number than its parent's other child: only splits are in order.
    pad = np.zeros(leaves, np.int64)
    return {
        "feature": np.append(feature, pad - 1),
        "threshold": np.append(np.where(categorical, 0.0, threshold), pad),
        "left": np.append(child("left_child"), pad),
        "right": np.append(child("right_child"), pad),
        "missing_left": np.append(missing_left, pad),
        "value": np.append(np.zeros(splits), values),
        "category_set": np.append(category_set, pad - 1),
    }, np.append(zero, pad)


def _members(words: NDArray[np.uint32]) -> tuple[int, ...]:
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
    return tuple(np.flatnonzero(bits).tolist())


def _numbers(text: str, dtype: type) -> NDArray[Any]:
    return np.array(text.split(), "S").astype(dtype)
