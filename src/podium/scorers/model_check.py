"""Whether an engine's model is well formed, before the engine sees it.

LightGBM and XGBoost trust the numbers in a model file: a child that is not a node, an array that is
too short or a size that points past the text makes them read or write memory that is not theirs,
which ends the process or worse. So models are checked here: every array has its length, every index
is in range, and the nodes form a tree. What passes cannot make an engine leave its arrays; that it
ranks well, no check can tell.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.json_lines import parse_json
from podium.errors import DataError

_MOST_LEAVES = 131_072
"""LightGBM's own bound."""
_DEEPEST = 5_000
"""Engines walk down some trees by recursion, and a stack is finite."""
_MOST_FEATURES = 10_000_000
DELETED = 2**31 - 1
"""The feature that XGBoost writes for a node that pruning has deleted and left in its array."""

_HEADER = {
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective",
    "average_output", "feature_names", "monotone_constraints", "feature_infos", "tree_sizes",
}  # fmt: skip
_NODES = {
    "split_feature": int, "split_gain": float, "threshold": float, "decision_type": int,
    "left_child": int, "right_child": int, "internal_value": float, "internal_weight": float,
    "internal_count": int,
}  # fmt: skip
_LEAVES = {"leaf_value": float, "leaf_weight": float, "leaf_count": int}
_SCALARS = {"num_leaves", "num_cat", "is_linear", "shrinkage"}
_CATEGORIES = {"cat_boundaries", "cat_threshold"}
_LINEAR = {"leaf_const", "num_features", "leaf_features", "leaf_coeff"}
_NUMBER = re.compile(rb"[-+]?(\d+(\.\d*)?([eE][-+]?\d{1,3})?|nan|inf)")
_INTEGER = re.compile(rb"-?\d{1,10}")
_OBJECTIVE = re.compile(rb"[a-z0-9_ .:,-]{0,200}")


def check_lightgbm(model: bytes) -> bytes:
    """A model in LightGBM's text format, up to the end of its trees.

    What follows them, importances and the parameters of training, LightGBM does not need to
    predict, and a line of it that is cut short ends the process.
    """
    try:
        return _checked_text(model)
    except (ValueError, KeyError, OverflowError) as error:
        raise _malformed("LightGBM", error) from error


def check_xgboost(model: bytes) -> bytes:
    """A model in XGBoost's JSON format, written anew from what was checked."""
    try:
        content = parse_json(model)
        _check_json(content)
        # Written anew, so that the engine's parser reads what was checked and nothing else.
        return json.dumps(content).encode()
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _malformed("XGBoost", error) from error


def _malformed(engine: str, error: Exception) -> DataError:
    return DataError(
        f"is not a valid {engine} model ({error})",
        hint="Save it again, and do not load it if it comes from someone else.",
    )


def _checked_text(model: bytes) -> bytes:
    begin = model.find(b"\nTree=0\n") + 1
    end = model.find(b"\nend of trees\n") + 1
    head, lines = model[: begin or end].partition(b"\n")[::2]
    _require(head == b"tree" and end > 0, "it does not begin as one")
    header = _fields(lines, _HEADER)
    _require(header["version"] == b"v4", "it is of another version")
    _require(_whole(header["num_class"]) == 1, "it has several classes")
    _require(_whole(header["num_tree_per_iteration"]) == 1, "it has several classes")
    _require(bool(_OBJECTIVE.fullmatch(header.get("objective", b""))), "its objective is odd")
    features = _whole(header["max_feature_idx"]) + 1
    _require(0 <= _whole(header["label_index"]) <= features, "its label is out of range")
    _require(0 < features <= _MOST_FEATURES, "it has no features")
    for name in ("feature_names", "feature_infos"):
        _require(len(header[name].split(b" ")) == features, f"{name} has another length")
    if "monotone_constraints" in header:
        _require(_numbers(header["monotone_constraints"], int).size == features, "constraints")
    sizes = _numbers(header["tree_sizes"], int)
    _require(bool((sizes > 0).all()), "a tree has no size")
    position = begin or end
    for number, size in enumerate(sizes.tolist()):
        tree = model[position : position + size]
        start, fields = tree.partition(b"\n")[::2]
        _require(start == b"Tree=%d" % number, f"tree {number} is not where its size says")
        known = _SCALARS | _NODES.keys() | _LEAVES.keys() | _CATEGORIES | _LINEAR
        _check_tree(_fields(fields, known), features, number)
        position += size
    _require(position == end, "its trees are not as long as it says")
    return model[:end] + b"end of trees\n\nparameters:\n\nend of parameters\n"


def _check_tree(fields: dict[str, bytes], features: int, number: int) -> None:
    leaves, categories = _whole(fields["num_leaves"]), _whole(fields["num_cat"])
    _require(1 <= leaves <= _MOST_LEAVES and categories >= 0, f"tree {number} has no leaves")
    _require(bool(_NUMBER.fullmatch(fields["shrinkage"])), f"tree {number} has no shrinkage")
    arrays = {}
    for names, length in ((_NODES, leaves - 1), (_LEAVES, leaves)):
        for name, kind in names.items():
            # LightGBM leaves out, or leaves empty, what a tree of one leaf has no use for.
            present = fields.get(name, b"") if leaves == 1 else fields[name]
            arrays[name] = _numbers(present, kind)
            optional = leaves == 1 and name != "leaf_value" and not arrays[name].size
            _require(
                arrays[name].size == length or optional,
                f"{name} of tree {number} has a wrong length",
            )
    if leaves > 1:
        _require_below(arrays["split_feature"], features, f"tree {number} splits by no feature")
        _check_links(arrays["left_child"], arrays["right_child"], leaves, number)
        kinds = arrays["decision_type"]
        _require_below(kinds, 16, f"tree {number} decides in no known way")
        splits = arrays["threshold"][(kinds & 1) == 1]
        _require(
            bool(((splits >= 0) & (splits < categories) & (splits == np.floor(splits))).all()),
            f"tree {number} has a category set that is none",
        )
    if categories:
        bounds = _numbers(fields["cat_boundaries"], int)
        words = _numbers(fields["cat_threshold"], int)
        _require(
            bounds.size == categories + 1
            and bounds[0] == 0
            and bounds[-1] == words.size
            and bool((np.diff(bounds) >= 0).all()),
            f"tree {number} has category sets of wrong lengths",
        )
        _require_below(words, 2**32, f"tree {number} has a category out of range")
    if _whole(fields.get("is_linear", b"0")):
        counts, used = _numbers(fields["num_features"], int), _numbers(fields["leaf_features"], int)
        _require(
            counts.size == leaves
            and bool((counts >= 0).all())
            and counts.sum() == used.size == _numbers(fields["leaf_coeff"], float).size
            and _numbers(fields["leaf_const"], float).size == leaves,
            f"tree {number} has linear leaves of wrong lengths",
        )
        _require_below(used, features, f"a leaf of tree {number} uses no feature")


def _check_links(left: NDArray[Any], right: NDArray[Any], leaves: int, number: int) -> None:
    """Whether children form one tree; leaf i is ~i."""
    children = np.concatenate([left, right])
    parents = np.tile(np.arange(leaves - 1), 2)
    inner = children >= 0
    reached = np.sort(np.concatenate([~children[~inner] - leaves, children[inner]]))
    # Leaves 0 to n - 1 are moved below the nodes 1 to n - 2: each must come exactly once.
    expected = np.concatenate([np.arange(-leaves, 0), np.arange(1, leaves - 1)])
    _require(
        reached.size == expected.size
        and bool((reached == expected).all())
        and bool((children[inner] > parents[inner]).all()),
        f"the nodes of tree {number} form no tree",
    )
    _check_depth(children, parents, inner, leaves - 1, number)


def _check_depth(
    children: NDArray[Any], parents: NDArray[Any], inner: NDArray[Any], nodes: int, number: int
) -> None:
    parent_of = np.full(nodes, -1)
    parent_of[children[inner]] = parents[inner]
    depth = [0] * nodes
    for node, parent in enumerate(parent_of.tolist()):
        if parent >= 0:  # parents come first
            depth[node] = depth[parent] + 1
    _require(max(depth) < _DEEPEST, f"tree {number} is deeper than {_DEEPEST} nodes")


def _check_json(content: Any) -> None:
    learner = content["learner"]
    booster = learner["gradient_booster"]
    if booster["name"] == "dart":
        dropped = booster["weight_drop"]
        booster = booster["gbtree"]
        _require(len(dropped) == len(booster["model"]["trees"]), "its weights have a wrong length")
    _require(booster["name"] == "gbtree", "it is not made of trees")
    model, shape = booster["model"], learner["learner_model_param"]
    features = int(shape["num_feature"])
    _require(0 < features <= _MOST_FEATURES, "it has no features")
    _require(int(shape["num_class"]) <= 1 and int(shape["num_target"]) == 1, "several outputs")
    for name in ("feature_names", "feature_types"):
        _require(len(learner.get(name, [])) in (0, features), f"{name} has another length")
    _require(not any(model.get("cats", {}).values()), "it has categories")
    trees = model["trees"]
    count = int(model["gbtree_model_param"]["num_trees"])
    _require(len(trees) == count == len(model["tree_info"]), "it has another number of trees")
    _require(not any(model["tree_info"]), "it has several classes")
    rounds = np.array(model["iteration_indptr"], np.int64)
    parallel = int(model["gbtree_model_param"]["num_parallel_tree"])
    _require(
        parallel >= 1 and bool((rounds == np.arange(rounds.size) * parallel).all())
        and rounds.size >= 1 and rounds[-1] == count, "its rounds are not its trees",
    )  # fmt: skip
    for number, tree in enumerate(trees):
        _check_json_tree(tree, features, number)


def _check_json_tree(tree: dict[str, Any], features: int, number: int) -> None:
    shape = {name: int(value) for name, value in tree["tree_param"].items()}
    nodes = shape["num_nodes"]
    _require(
        1 <= nodes <= 2 * _MOST_LEAVES
        and nodes % 2 == 1
        and shape["num_feature"] == features
        and shape["size_leaf_vector"] in (0, 1)
        and tree["id"] == number,
        f"tree {number} is not of this model",
    )
    arrays = {
        name: np.array(tree[name], kind)
        for name, kind in {
            "left_children": np.int64, "right_children": np.int64, "parents": np.int64,
            "split_indices": np.int64, "split_type": np.int64, "default_left": np.int64,
            "split_conditions": np.float64, "base_weights": np.float64,
            "loss_changes": np.float64, "sum_hessian": np.float64,
        }.items()
    }  # fmt: skip
    for name, array in arrays.items():
        _require(array.shape == (nodes,), f"{name} of tree {number} has a wrong length")
    _require(
        not arrays["split_type"].any()
        and not any(tree.get(name) for name in tree if name.startswith("categories")),
        f"tree {number} has categories",
    )
    present = arrays["split_indices"] != DELETED
    _require(
        bool(present[0]) and int((~present).sum()) == shape["num_deleted"],
        f"tree {number} has another number of deleted nodes",
    )
    split_by = arrays["split_indices"][present]
    _require_below(split_by, features, f"tree {number} splits by no feature")
    _require_below(arrays["default_left"], 2, f"tree {number} has no default side")
    left, right = arrays["left_children"], arrays["right_children"]
    inner = left != -1
    parents = np.full(nodes, 2**31 - 1)
    children = np.concatenate([left[inner], right[inner]])
    by = np.tile(np.flatnonzero(inner), 2)
    _require(
        bool(((right == -1) == ~inner).all())
        and bool(present[inner].all())
        and np.array_equal(np.sort(children), np.flatnonzero(present)[1:])
        and bool((children > by).all()),
        f"the nodes of tree {number} form no tree",
    )
    parents[children] = by
    _require_below(arrays["parents"][~present], nodes, f"tree {number} has other parents")
    _require(
        np.array_equal(parents[present], arrays["parents"][present]),
        f"tree {number} has other parents",
    )
    every = np.ones(children.size, bool)
    _check_depth(children, by, every, nodes, number)


def _fields(lines: bytes, known: set[str]) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    for line in lines.split(b"\n"):
        name, _, value = line.partition(b"=")
        if line:
            _require(name.decode("ascii") in known, f"{name[:40]!r} is not a known field")
            _require(name.decode() not in fields, f"{name.decode()} comes twice")
            fields[name.decode()] = value
    return fields


def _numbers(text: bytes, kind: type) -> NDArray[Any]:
    words = text.split()
    pattern = _INTEGER if kind is int else _NUMBER
    _require(all(map(pattern.fullmatch, words)), f"{text[:40]!r} are not numbers")
    return np.array(words, "S").astype(np.int64 if kind is int else np.float64)


def _whole(text: bytes) -> int:
    _require(bool(_INTEGER.fullmatch(text)), f"{text[:40]!r} is not an integer")
    return int(text)


def _require_below(numbers: NDArray[Any], bound: int, problem: str) -> None:
    _require(bool(((numbers >= 0) & (numbers < bound)).all()), problem)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
