"""Read a model that XGBoost saved, in JSON or in its binary form of JSON (UBJ)."""

from __future__ import annotations

import math
import struct
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


_NUMBERS = {
    b"i": (">b", 1), b"U": (">B", 1), b"I": (">h", 2), b"l": (">i", 4), b"L": (">q", 8),
    b"d": (">f", 4), b"D": (">d", 8),
}  # fmt: skip
_DTYPES = {
    b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8",
}  # fmt: skip
_CONSTANTS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 64


def parse_ubjson(content: bytes) -> Any:
    r"""Parse untrusted UBJSON; a DataError if it is not valid.

    Example:
        >>> parse_ubjson(b"{i\x01a[$U#i\x02\x07\x08}")
        {'a': [7, 8]}
    """
    try:
        value, end = _value(content, 1, content[:1], 0)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, ValueError) as error:
        raise DataError(
            f"is not UBJSON ({shortened(repr(error))})", hint="Save the model again."
        ) from error
    if end != len(content):
        raise DataError("is not UBJSON (it goes on after its end)", hint="Save the model again.")
    return value


def _value(content: bytes, at: int, kind: bytes, depth: int) -> tuple[Any, int]:
    """Return the value of a type at a position, and the position after it."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if kind in _NUMBERS:
        form, size = _NUMBERS[kind]
        return struct.unpack_from(form, content, at)[0], at + size
    if kind in _CONSTANTS:
        return _CONSTANTS[kind], at
    if kind == b"S":
        return _text(content, at)
    if kind == b"[":
        return _array(content, at, depth)
    if kind == b"{":
        return _object(content, at, depth)
    raise ValueError(f"{kind!r} is not a type")


def _count(content: bytes, at: int) -> tuple[int, int]:
    kind = content[at : at + 1]
    if kind not in _NUMBERS or kind in (b"d", b"D"):
        raise ValueError("a length is not an integer")
    count, end = _value(content, at + 1, kind, 0)
    if not 0 <= count <= len(content):
        raise ValueError("a length is out of range")
    return int(count), end


def _text(content: bytes, at: int) -> tuple[str, int]:
    size, start = _count(content, at)
    if start + size > len(content):
        raise ValueError("a string is cut short")
    return content[start : start + size].decode(), start + size


def _array(content: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    if content[at : at + 1] == b"$":
        kind = content[at + 1 : at + 2]
        if content[at + 2 : at + 3] != b"#":
            raise ValueError("a typed array has no length")
        count, start = _count(content, at + 3)
        dtype = np.dtype(_DTYPES[kind])
        if start + count * dtype.itemsize > len(content):
            raise ValueError("an array is cut short")
        return np.frombuffer(content, dtype, count, start).tolist(), start + count * dtype.itemsize
    items: list[Any] = []
    if content[at : at + 1] == b"#":
        count, at = _count(content, at + 1)
        for _ in range(count):
            item, at = _value(content, at + 1, content[at : at + 1], depth + 1)
            items.append(item)
        return items, at
    while content[at : at + 1] != b"]":
        item, at = _value(content, at + 1, content[at : at + 1], depth + 1)
        items.append(item)
    return items, at + 1


def _object(content: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    result: dict[str, Any] = {}
    while content[at : at + 1] != b"}":
        name, at = _text(content, at)
        if name in result:
            raise ValueError("duplicate key in an object")
        result[name], at = _value(content, at + 1, content[at : at + 1], depth + 1)
    return result, at + 1
