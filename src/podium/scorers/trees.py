"""One form for additive tree models, whatever library trained them.

Every difference between libraries is spelled out: the comparison of a split, the child that a
missing value goes to, what counts as missing, and how a number becomes a category. A reader
resolves its library's rules once, and a writer looks at this form only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.errors import DataError
from podium.kernels import Doubles, Ints
from podium.scorers.models import FittedModel, sum_bound
from podium.scorers.tree_kernel import ZERO, reached_leaves

_MOST_NODES = 50_000_000
_MOST_TREE_NODES = 300_000
"""LightGBM's own bound of leaves is 131,072; nodes that go in circles would go on without end."""
_DEEPEST = 5_000
_BLOCK = 1 << 22
"""The number of leaves (rows times trees) that are looked up at a time."""
_NODE_ARRAYS = (
    "roots", "feature", "threshold", "left", "right", "missing_left", "value", "category_set",
    "zero_missing",
)  # fmt: skip
_OPTIONS = ("strict", "base_score", "floor_categories", "single_values", "single_precision")


@dataclass(frozen=True, eq=False)
class TreeModel(FittedModel):
    """A sum of trees. The nodes of all trees are numbered together, and parents come first.

    A row goes to the left child of a split if its value is ``<= threshold`` (``<`` if ``strict``),
    or if its category is in the split's set. A missing value (NaN) goes left if ``missing_left``.

    Attributes:
        feature_names: The names of the features, or their numbers from 1.
        roots: The first node of each tree; its nodes end where the next tree starts.
        feature: The column that a node splits by; -1 for a leaf.
        threshold: The threshold of a numerical split.
        left: The left child; 0 for a leaf.
        right: The right child; 0 for a leaf.
        missing_left: Whether a missing value goes to the left child.
        value: The value of a leaf; 0 for a split.
        strict: Whether a value equal to the threshold goes right.
        base_score: What is added to the sum of the leaves.
        category_set: The index in ``category_sets`` of a categorical split; -1 for others.
        category_sets: Sets of categories, sorted.
        floor_categories: Whether a fraction is rounded down to its category (XGBoost), so that -0.5
            is none, rather than cut off (LightGBM).
        zero_missing: Whether 0 is a missing value, for each feature.
        single_values: Whether its library rounds values to single precision before it compares.
        single_precision: Whether its library adds in single precision, so that its own scores
            differ from the exact sum in the last digits.
        unused: The number of trees after the best iteration, which are left out.
    """

    writer = "write_trees"

    feature_names: tuple[str, ...]
    roots: Ints
    feature: Ints
    threshold: Doubles
    left: Ints
    right: Ints
    missing_left: NDArray[np.bool_]
    value: Doubles
    strict: bool = False
    base_score: float = 0.0
    category_set: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    category_sets: tuple[tuple[int, ...], ...] = ()
    floor_categories: bool = False
    zero_missing: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    single_values: bool = False
    single_precision: bool = False
    unused: int = 0

    def __post_init__(self) -> None:
        if not self.category_set.size:
            object.__setattr__(self, "category_set", np.full(len(self.feature), -1))
        if not self.zero_missing.size:
            object.__setattr__(self, "zero_missing", np.zeros(self.features, np.bool_))
        self._check()

    def _check(self) -> None:
        """Raise a DataError unless the nodes form trees and every number is in range."""
        nodes = len(self.feature)
        arrays = (
            self.threshold, self.left, self.right, self.missing_left, self.value, self.category_set,
        )  # fmt: skip
        _require(nodes <= _MOST_NODES, "it has too many nodes")
        _require(all(array.shape == (nodes,) for array in arrays), "arrays differ in length")
        _require(self.zero_missing.shape == (self.features,), "arrays differ in length")
        starts = np.append(self.roots, nodes)
        _require(bool((np.diff(starts) > 0).all()), "a tree has no nodes")
        _require(nodes == 0 or (len(self.roots) > 0 and starts[0] == 0), "a node is in no tree")
        inner = self.feature >= 0
        _require(bool((self.feature < self.features).all()), "it splits by no feature")
        _require(bool(np.isfinite(self.value[~inner]).all()), "the value of a leaf is not finite")
        _require(np.isfinite(self.base_score), "the base score is not finite")
        _require(not np.isnan(self.threshold[inner]).any(), "a threshold is not a number")
        known = (self.category_set >= -1) & (self.category_set < len(self.category_sets))
        _require(bool(known.all()), "a category set is out of range")
        for members in self.category_sets:
            _require(
                all(0 <= member < 2**31 for member in members)
                and list(members) == sorted(set(members)),
                "a category is out of range",
            )
        splits = np.flatnonzero(inner)
        children = np.concatenate([self.left[splits], self.right[splits]])
        others = np.setdiff1d(np.arange(nodes), self.roots)
        _require(np.array_equal(np.sort(children), others), "its nodes do not form trees")
        parents = np.tile(splits, 2)
        tree = np.repeat(np.arange(len(self.roots)), np.diff(starts))
        _require(
            bool((children > parents).all()) and bool((tree[children] == tree[parents]).all()),
            "its nodes do not form trees",
        )
        _require(int(self.depths().max(initial=0)) < _DEEPEST, f"it is deeper than {_DEEPEST}")

    @property
    def features(self) -> int:
        """The number of features."""
        return len(self.feature_names)

    @property
    def trees(self) -> int:
        """The number of trees."""
        return len(self.roots)

    @property
    def has_categories(self) -> bool:
        """Whether any split is by a set of categories."""
        return bool((self.category_set >= 0).any())

    def largest_number(self) -> tuple[float, str]:
        """Return a bound of the size of a score, and of every sum on the way to it."""
        return self.largest_score(), "leaves whose sum may be"

    @property
    def largest_shift(self) -> float:
        """The bound of a score: the smallest one becomes 0."""
        return self.largest_score()

    def largest_score(self) -> float:
        """Return a bound of the size of a score, and of every sum on the way to it."""
        if not self.trees:
            return abs(self.base_score)
        with np.errstate(over="ignore"):
            largest = np.maximum.reduceat(np.abs(self.value), self.roots).sum()
        return abs(self.base_score) + float(largest)

    def depths(self) -> Ints:
        """Return the depth of each node; that of a root is 0."""
        parents = self.parents()
        depths = np.zeros(len(self.feature), np.int64)
        current = np.flatnonzero(parents >= 0)
        # Level by level: a node whose parent is a root has depth 1, and so on.
        above = parents.copy()
        while current.size:
            depths[current] += 1
            above[current] = parents[above[current]]
            current = current[above[current] >= 0]
            if depths.max() > _DEEPEST:
                break
        return depths

    def parents(self) -> Ints:
        """Return the parent of each node; -1 for a root."""
        parents = np.full(len(self.feature), -1)
        splits = np.flatnonzero(self.feature >= 0)
        parents[self.left[splits]] = splits
        parents[self.right[splits]] = splits
        return parents

    def tree_of_node(self) -> Ints:
        """Return the tree of each node."""
        sizes = np.diff(np.append(self.roots, len(self.feature)))
        return np.repeat(np.arange(self.trees), sizes)

    def leaves(self, X: ArrayLike) -> Ints:
        """Return the node of the leaf that each row reaches in each tree.

        Args:
            X: Rows with the features of the model in double precision; NaN is a missing value.
        """
        rows = self._rows(X)
        result = np.empty((len(rows), self.trees), np.int64)
        starts = np.concatenate([[0], np.cumsum([len(members) for members in self.category_sets])])
        members = np.array([item for members in self.category_sets for item in members], np.int64)
        reached_leaves(
            rows, self.roots, self.feature, self.threshold, self.left, self.right,
            self.missing_left, self.category_set, starts.astype(np.int64), members,
            self.zero_missing, self.strict, self.floor_categories, result,
        )  # fmt: skip
        return result

    def predict(self, X: ArrayLike, dtype: type[np.floating[Any]] = np.float64) -> Doubles:
        """Score rows: the sum of the leaves, tree by tree, after the base score.

        Args:
            X: Rows with the features of the model.
            dtype: The precision of the sum.
        """
        rows = self._rows(X)
        scores = np.full(len(rows), dtype(self.base_score))
        values = self.value.astype(dtype)
        step = max(1, _BLOCK // max(1, self.trees))
        for first in range(0, len(rows), step):
            reached = values[self.leaves(rows[first : first + step])]
            for tree in range(self.trees):
                scores[first : first + step] += reached[:, tree]
        return scores.astype(np.float64)

    @property
    def leaf_count(self) -> int:
        """The number of leaves of all trees."""
        return int((self.feature < 0).sum())

    def reached_leaves(self, rows: Doubles) -> Ints:
        """Return the nodes of the leaves that any row reaches."""
        return np.unique(self.leaves(rows)) if len(rows) else np.empty(0, np.int64)

    def predict_single(self, rows: Doubles) -> Doubles:
        """Score rows by a sum in single precision."""
        return self.predict(rows, np.float32)

    def absolute_terms(self, rows: Doubles) -> Doubles:
        """Return the sum of the terms of each row's score, without their signs."""
        with np.errstate(over="ignore"):
            sizes = np.abs(self.value)
            terms = np.full(len(rows), abs(self.base_score))
            for start in range(0, len(rows), 256):
                reached = self.leaves(rows[start : start + 256])
                terms[start : start + 256] += sizes[reached].sum(axis=1)
            return terms

    def rounding_bound(self, rows: Doubles, dtype: type[np.floating[Any]]) -> Doubles:
        """Return how far each row's score may be off if it is computed in a precision."""
        return sum_bound(self.trees + 1, self.absolute_terms(rows), dtype)

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return its options and its arrays."""
        values = {name: getattr(self, name) for name in _OPTIONS}
        values["category_sets"] = [list(members) for members in self.category_sets]
        return values, {name: getattr(self, name) for name in _NODE_ARRAYS}

    @classmethod
    def from_content(
        cls, names: tuple[str, ...], values: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """Return the model with this ``content``."""
        kinds: dict[str, Any] = dict.fromkeys(_NODE_ARRAYS, np.int64)
        kinds |= dict.fromkeys(("threshold", "value"), np.float64)
        kinds |= dict.fromkeys(("missing_left", "zero_missing"), np.bool_)
        nodes: dict[str, Any] = {
            name: arrays[name].astype(kind, casting="same_kind") for name, kind in kinds.items()
        }
        return cls(
            feature_names=names,
            category_sets=tuple(
                tuple(int(member) for member in members) for members in values["category_sets"]
            ),
            strict=bool(values["strict"]),
            base_score=float(values["base_score"]),
            floor_categories=bool(values["floor_categories"]),
            single_values=bool(values["single_values"]),
            single_precision=bool(values["single_precision"]),
            **nodes,
        )

    def _rows(self, X: ArrayLike) -> Doubles:
        rows = np.ascontiguousarray(X, np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.features:
            raise DataError(
                f"rows of {self.features} features are needed, not an array of {rows.shape}",
                hint="Give one row per document.",
            )
        return rows

    def goes_left(self, node: int, row: Doubles) -> bool:
        """Return whether a row goes to the left child of a split."""
        column = self.feature[node]
        value = row[column]
        if np.isnan(value) or (self.zero_missing[column] and abs(value) <= ZERO):
            return bool(self.missing_left[node])
        if self.category_set[node] >= 0:
            category = np.floor(value) if self.floor_categories else np.trunc(value)
            return bool(category in self.category_sets[self.category_set[node]])
        return bool(value < self.threshold[node] if self.strict else value <= self.threshold[node])

    def first_trees(self, count: int) -> TreeModel:
        """Return the model of the first trees only."""
        end = len(self.feature) if count >= self.trees else int(self.roots[count])
        return replace(
            self,
            roots=self.roots[:count],
            **{
                name: getattr(self, name)[:end]
                for name in (
                    "feature", "threshold", "left", "right", "missing_left", "value", "category_set"
                )
            },
        )  # fmt: skip

    def rescaled(self, weights: Doubles) -> TreeModel:
        """Return the model with the leaves of each tree multiplied by a weight."""
        with np.errstate(over="ignore", invalid="ignore"):  # then a leaf is refused
            return replace(self, value=self.value * weights[self.tree_of_node()])

    def subtree(self, root: int) -> Iterator[int]:
        """Yield the nodes below a root, parents first and left before right."""
        stack = [root]
        while stack:
            node = stack.pop()
            yield node
            if self.feature[node] >= 0:
                stack += [int(self.right[node]), int(self.left[node])]


def concatenate_trees(
    trees: Sequence[Mapping[str, Any]], feature_names: tuple[str, ...], **options: Any
) -> TreeModel:
    """Return a model of trees whose nodes are each numbered from 0.

    Args:
        trees: The arrays of each tree: ``feature`` and ``value`` and, if it has any splits,
            ``threshold``, ``left``, ``right``, ``missing_left`` and ``category_set``.
        feature_names: The names of the features.
        **options: The other attributes of the model.
    """
    sizes = [len(np.atleast_1d(tree["feature"])) for tree in trees]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def joined(name: str, dtype: Any, default: int = 0) -> NDArray[Any]:
        parts = [
            np.asarray(tree[name], dtype) if name in tree else np.full(size, default, dtype)
            for tree, size in zip(trees, sizes, strict=True)
        ]
        _require([len(part) for part in parts] == sizes, "arrays differ in length")
        return np.concatenate([np.empty(0, dtype), *parts])

    feature = joined("feature", np.int64)
    offset = np.where(feature >= 0, np.repeat(starts[:-1], sizes), 0)
    return TreeModel(
        feature_names=feature_names,
        roots=starts[:-1],
        feature=feature,
        threshold=joined("threshold", np.float64),
        left=joined("left", np.int64) + offset,
        right=joined("right", np.int64) + offset,
        missing_left=joined("missing_left", np.bool_),
        value=joined("value", np.float64),
        category_set=joined("category_set", np.int64, -1),
        **options,
    )


@dataclass(frozen=True)
class Split:
    """A split of a tree of nested nodes, with its children in the tree's own form."""

    feature: int
    threshold: float
    missing_left: bool
    left: Any
    right: Any


def flatten_tree(root: Any, expand: Callable[[Any], Split | float]) -> dict[str, ArrayLike]:
    """Return the arrays of a tree of nested nodes, without recursion.

    Args:
        root: Its first node.
        expand: Returns the split of a node, or the value of a leaf.
    """
    features: list[int] = []
    thresholds: list[float] = []
    missing: list[bool] = []
    values: list[float] = []
    links: tuple[list[int], list[int]] = ([], [])
    stack: list[tuple[Any, int, int]] = [(root, -1, 0)]
    while stack:
        content, parent, side = stack.pop()
        number = len(features)
        _require(number < _MOST_TREE_NODES, "its nodes do not form trees")
        if parent >= 0:
            links[side][parent] = number
        node = expand(content)
        split = node if isinstance(node, Split) else Split(-1, 0.0, False, None, None)
        features.append(split.feature)
        thresholds.append(split.threshold)
        missing.append(split.missing_left)
        values.append(0.0 if isinstance(node, Split) else float(node))
        if isinstance(node, Split):
            stack += [(node.right, number, 1), (node.left, number, 0)]
        links[0].append(0)
        links[1].append(0)
    return {
        "feature": features, "threshold": thresholds, "missing_left": missing, "value": values,
        "left": links[0], "right": links[1],
    }  # fmt: skip


def _require(condition: bool | np.bool_, problem: str) -> None:
    if not condition:
        raise DataError(f"is not a valid tree model ({problem})", hint="Save the model again.")
