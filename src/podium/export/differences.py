"""Where the trees of a target's files differ from those of the exported model, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.export.folder import Feature, GoldenRows
from podium.export.golden import split_edges
from podium.export.targets.base import EngineModel, Target
from podium.kernels import Doubles, Ints
from podium.scorers.models import FittedModel, LinearModel, NetworkModel
from podium.scorers.single_precision import LARGEST_SINGLE, as_single, at_most
from podium.scorers.tree_kernel import ZERO
from podium.scorers.trees import TreeModel

_MOST_TREES, _MOST_ROWS = 100, 100
"""The number of trees that are explained, and of golden rows for each."""


@dataclass(frozen=True)
class Finding:
    """A difference between the exported model and what the target computes.

    Attributes:
        text: The tree, the split and the rule that explain it.
        rows: The golden rows that it changes, or the first of them.
    """

    text: str
    rows: tuple[int, ...]


def file_findings(
    reference: FittedModel,
    engine: EngineModel,
    target: Target,
    features: tuple[Feature, ...],
    golden: GoldenRows,
    off: Ints,
) -> list[Finding]:
    """Compare the exported model with what a target computes from its files.

    Args:
        reference: The exported model.
        engine: What the target computes.
        target: The target.
        features: The features.
        golden: The golden rows.
        off: Those whose scores differ.
    """
    if type(engine.model) is not type(reference):
        return [Finding(f"the files have a {type(engine.model).__name__}", tuple(off.tolist()))]
    return _findings(reference, _Files(engine, engine.model, target, features, golden.values, off))


class _Files(NamedTuple):
    """What a target computes from the files of an export, for the golden rows."""

    engine: EngineModel
    written: Any
    target: Target
    features: tuple[Feature, ...]
    values: Doubles
    off: Ints

    def rounded(self, numbers: ArrayLike) -> NDArray[Any]:
        """Return numbers as the target has them, to compare others with its own."""
        if self.engine.single_precision:
            return as_single(numbers)
        return np.asarray(numbers, np.float64)


@singledispatch
def _findings(reference: FittedModel, _files: _Files) -> list[Finding]:
    raise NotImplementedError(f"differences of a {type(reference).__name__}")


@_findings.register
def _tree_findings(reference: TreeModel, files: _Files) -> list[Finding]:
    """Compare tree by tree: every golden row must reach a leaf of the same value.

    Where golden rows show no difference, the nodes are compared.
    """
    return _Comparison(reference, files).findings()


class _Comparison:
    def __init__(self, reference: TreeModel, files: _Files) -> None:
        written: TreeModel = files.written
        self.reference, self.written, self.features = reference, written, files.features
        self.target, self.values = files.target, files.values
        self.precision = files.rounded
        self.rows = files.engine.rows(files.values)
        # Formats without a base score have a first tree of one leaf for it.
        self.has_base_tree = written.base_score == 0 and (
            reference.base_score != 0 or not reference.trees
        )
        self.edges = split_edges(reference), split_edges(written)

    def findings(self) -> list[Finding]:
        every = tuple(range(len(self.values)))
        expected = float(self.precision(self.reference.base_score))
        base = self.written.base_score
        start = int(self.has_base_tree)
        if self.has_base_tree and self.written.trees:
            base = self.written.value[self.written.roots[0]]
            if self.written.feature[self.written.roots[0]] >= 0:
                start, base = 0, 0.0
        findings = []
        if self.precision(base) != expected:
            text = f"the base score is {base:.9g} instead of {expected:.9g}"
            findings.append(Finding(text, every))
        count = self.written.trees - start
        if count != self.reference.trees:
            findings += self._wrong_count(start, count, every)
            return findings
        reached = self.precision(self.reference.value)[self.reference.leaves(self.values)]
        other = self.precision(self.written.value)[self.written.leaves(self.rows)][:, start:]
        wrong = reached != other
        texts: dict[str, list[int]] = {}
        for tree in np.flatnonzero(wrong.any(axis=0))[:_MOST_TREES]:
            for row in np.flatnonzero(wrong[:, tree])[:_MOST_ROWS]:
                text = self._explain(int(tree), start, int(row))
                texts.setdefault(text, []).append(int(row))
        swapped = self._swapped_features(list(texts))
        if swapped:
            rows = sorted({row for rows in texts.values() for row in rows})
            return [*findings, Finding(swapped, tuple(rows))]
        findings += [Finding(text, tuple(rows)) for text, rows in texts.items()]
        hidden = (text for tree, text in self._nodes(start) if not wrong[:, tree].any())
        return findings + [Finding(text, ()) for text in islice(hidden, _MOST_TREES)]

    def _nodes(self, start: int) -> Iterator[tuple[int, str]]:
        """Yield the tree and the text of each node that differs, whether or not a row shows it."""
        ours, theirs = self.reference, self.written
        tree_of_node = ours.tree_of_node()
        last, moved = self._last_values(ours, self.target), self._last_values(theirs)
        node, other = ours.roots, theirs.roots[start:]
        while len(node):
            inner = ours.feature[node] >= 0
            shape = inner != (theirs.feature[other] >= 0)
            leaf = ~inner & ~shape
            value, written = self.precision(ours.value[node]), self.precision(theirs.value[other])
            plain = inner & ~shape & (ours.category_set[node] < 0)
            column = np.where(plain, ours.feature[node], 0)
            # A feature that is never missing in the target goes nowhere then.
            missing = plain & np.array([item.absent is None for item in self.features])[column]
            differences = {
                "the tree has another shape": shape,
                "its value is {value:.9g} instead of {exact:.9g}": leaf & (value != written),
                "it splits by {name}": plain & (ours.feature[node] != theirs.feature[other]),
                "values up to {moved:.9g} go left instead of up to {last:.9g}":
                    plain & (last[node] != moved[other]),
                "a missing value goes {side}":
                    missing & (ours.missing_left[node] != theirs.missing_left[other]),
            }  # fmt: skip
            for text, wrong in differences.items():
                for number in np.flatnonzero(wrong):
                    at, there = int(node[number]), int(other[number])
                    tree = int(tree_of_node[at])
                    is_leaf = ours.feature[at] < 0
                    where = "leaf" if is_leaf else "split"
                    condition = "" if is_leaf else f" ({self._condition(at)})"
                    what = text.format(
                        value=written[number], exact=value[number], moved=moved[there],
                        last=last[at], side="left" if theirs.missing_left[there] else "right",
                        name=theirs.feature_names[theirs.feature[there]],
                    )  # fmt: skip
                    yield tree, f"tree {tree}, {where} {at - ours.roots[tree]}{condition}: {what}"
            below = inner & ~shape
            node, other = (
                np.concatenate([model.left[nodes[below]], model.right[nodes[below]]])
                for model, nodes in ((ours, node), (theirs, other))
            )

    def _last_values(self, model: TreeModel, target: Target | None = None) -> Doubles:
        last = at_most(model.threshold, strict=model.strict)
        # Files have no infinity: their largest number takes its place.
        return np.minimum(target.last_values(last) if target else last, LARGEST_SINGLE)

    def _wrong_count(self, start: int, count: int, every: tuple[int, ...]) -> list[Finding]:
        ours = [self._signature(0, tree) for tree in range(self.reference.trees)]
        theirs = [self._signature(1, tree + start) for tree in range(count)]
        first = next(
            (
                number
                for number, pair in enumerate(zip(ours, theirs, strict=False))
                if pair[0] != pair[1]
            ),
            min(len(ours), len(theirs)),
        )
        missing = len(ours) - len(theirs)
        what = f"{abs(missing)} tree{'s are' if abs(missing) > 1 else ' is'}"
        side = "missing" if missing > 0 else "too many"
        return [Finding(f"tree {first}: {what} {side} from here on", every)]

    def _signature(self, side: int, tree: int) -> tuple[bytes, ...]:
        model = (self.reference, self.written)[side]
        nodes = list(model.subtree(int(model.roots[tree])))
        # Its leaves tell a tree from others; thresholds may be moved on purpose.
        return (model.feature[nodes] >= 0).tobytes(), self.precision(model.value[nodes]).tobytes()

    def _explain(self, tree: int, start: int, row: int) -> str:
        """Walk down both trees with a row until they part."""
        ours, theirs = self.reference, self.written
        node, other = int(ours.roots[tree]), int(theirs.roots[tree + start])
        while ours.feature[node] >= 0 and theirs.feature[other] >= 0:
            problem = self._split_problem(node, other, row)
            if problem:
                number = node - int(ours.roots[tree])
                return f"tree {tree}, split {number} ({self._condition(node)}): {problem}"
            side = ours.goes_left(node, self.values[row])
            node = int(ours.left[node] if side else ours.right[node])
            other = int(theirs.left[other] if side else theirs.right[other])
        number = node - int(ours.roots[tree])
        if ours.feature[node] < 0 and theirs.feature[other] < 0:
            return (
                f"tree {tree}, leaf {number}: its value is {theirs.value[other]:.9g} instead of "
                f"{ours.value[node]:.9g}"
            )
        return f"tree {tree}, node {number}: the tree has another shape"

    def _split_problem(self, node: int, other: int, row: int) -> str:
        ours, theirs = self.reference, self.written
        column, theirs_column = int(ours.feature[node]), int(theirs.feature[other])
        if ours.category_set[node] < 0 and column != theirs_column:
            name = theirs.feature_names[theirs_column]
            return f"it splits by {name} instead of {self._name(column)}"
        if self._swapped_children(node, other):
            return "its children are swapped"
        value = self.values[row, column]
        missing = np.isnan(value) or (ours.zero_missing[column] and abs(value) <= ZERO)
        left = ours.goes_left(node, self.values[row])
        if theirs.goes_left(other, self.rows[row]) == left:
            return ""
        seen = self.rows[row, theirs_column]
        side = ("right", "left")
        if missing and not np.isnan(seen) and ours.category_set[node] < 0:
            return f"an absent value is {seen:.9g} instead of missing"
        if missing:
            return f"a missing value goes {side[not left]} instead of {side[left]}"
        if ours.category_set[node] >= 0:
            return f"category {value:g} goes {side[not left]} instead of {side[left]}"
        (last, _), (moved, _) = self.edges
        return (
            f"the value {value:.9g} goes {side[not left]} instead of {side[left]}: values up to "
            f"{moved[other]:.9g} go left instead of up to {last[node]:.9g}"
        )

    def _swapped_children(self, node: int, other: int) -> bool:
        pairs = (
            (self.reference.left[node], self.written.right[other]),
            (self.reference.right[node], self.written.left[other]),
        )
        straight = (
            (self.reference.left[node], self.written.left[other]),
            (self.reference.right[node], self.written.right[other]),
        )
        return all(self._same(*pair) for pair in pairs) and not all(
            self._same(*pair) for pair in straight
        )

    def _same(self, node: int, other: int) -> bool:
        """Whether two subtrees have the same splits and leaves."""
        pairs = zip(
            self.reference.subtree(int(node)), self.written.subtree(int(other)), strict=False
        )
        sizes = 0
        for ours, theirs in pairs:
            sizes += 1
            if (self.reference.feature[ours] >= 0) != (self.written.feature[theirs] >= 0):
                return False
            if self.reference.feature[ours] < 0:
                value = self.reference.value[ours], self.written.value[theirs]
                if self.precision(value[0]) != self.precision(value[1]):
                    return False
        return sizes > 0

    def _condition(self, node: int) -> str:
        model = self.reference
        name = self._name(int(model.feature[node]))
        if model.category_set[node] >= 0:
            return f"{name} in a set of categories"
        return f"{name} {'<' if model.strict else '<='} {model.threshold[node]:.9g}"

    def _name(self, column: int) -> str:
        return self.features[column].engine_name

    def _swapped_features(self, texts: list[str]) -> str:
        """Name two features that are swapped everywhere, if that explains the difference."""
        names = {feature.engine_name for feature in self.features}
        pairs = set()
        for text in texts:
            words = text.partition("it splits by ")[2].split(" instead of ")
            if len(words) != 2 or not set(words) <= names:
                return ""
            pairs.add(frozenset(words))
        if len(pairs) != 1 or len(texts) < 2:
            return ""
        return f"features {' and '.join(sorted(next(iter(pairs))))} are swapped"


@_findings.register
def _weight_findings(reference: LinearModel, files: _Files) -> list[Finding]:
    written = files.written
    ours, theirs = files.rounded(reference.weights), files.rounded(written.weights)
    return [
        Finding(
            f"the weight of {written.feature_names[column]} is {theirs[column]:.9g} instead of "
            f"{ours[column]:.9g}",
            tuple(files.off.tolist()),
        )
        for column in np.flatnonzero(ours != theirs)
    ]


@_findings.register
def _network_findings(reference: NetworkModel, files: _Files) -> list[Finding]:
    texts = _layer_differences(reference, files)
    return [Finding(text, tuple(files.off.tolist())) for text in texts]


def _layer_differences(ours: NetworkModel, files: _Files) -> Iterator[str]:
    theirs = files.written
    for what in ("mean", "scale"):
        pair = files.rounded(getattr(ours, what)), files.rounded(getattr(theirs, what))
        for column in np.flatnonzero(pair[0] != pair[1]):
            yield f"the {what} of {theirs.feature_names[column]} is {pair[1][column]:.9g}"
    if len(ours.layers) != len(theirs.layers):
        yield f"it has {len(theirs.layers)} layers instead of {len(ours.layers)}"
    for number, (layer, other) in enumerate(zip(ours.layers, theirs.layers, strict=False)):
        for what, expected, value in zip(("weights", "biases"), layer, other, strict=True):
            if expected.shape != value.shape or (expected != value).any():
                yield f"the {what} of layer {number} are others"
