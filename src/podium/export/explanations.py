"""Why a running engine scores rows otherwise: what it may do with values that explains it.

Only scores are known of a running engine. So the model is changed by each rule that engines are
known to have, and a rule that gives all the engine's scores is the explanation. If there is none,
single rows are explained by the split where another branch gives the engine's score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from podium.export.differences import Finding
from podium.export.folder import Feature
from podium.kernels import Doubles, Ints
from podium.scorers.models import FittedModel, LinearModel
from podium.scorers.single_precision import as_single
from podium.scorers.trees import TreeModel

_EXAMPLES = 20
"""The number of rows that are explained one by one."""
_MOST_PAIRS = 20_000


class _Rows(NamedTuple):
    """The rows that are off: their numbers, values, scores in the engine, and tolerances."""

    numbers: Ints
    values: Doubles
    scores: Doubles
    tolerance: Doubles


def explain_scores(
    model: FittedModel,
    features: tuple[Feature, ...],
    values: Doubles,
    scores: Doubles,
    off: Ints,
    tolerance: Doubles,
) -> list[Finding]:
    """Return what explains the scores of the rows that are off, as far as anything does."""
    return _findings(model, features, _Rows(off, values[off], scores[off], tolerance[off]))


@singledispatch
def _findings(_model: FittedModel, _features: tuple[Feature, ...], _rows: _Rows) -> list[Finding]:
    return []


@_findings.register
def _explain_leaves(model: TreeModel, features: tuple[Feature, ...], rows: _Rows) -> list[Finding]:
    numbers = tuple(rows.numbers.tolist())
    if not numbers:
        return []
    for text, changed in _rules(model, features, rows):
        if (np.abs(changed - rows.scores) <= rows.tolerance).all():
            return [Finding(text, numbers)]
    findings = [
        Finding(_other_branch(model, features, *row), (number,))
        for number, *row in zip(numbers[:_EXAMPLES], *rows[1:], strict=False)
    ]
    if len(numbers) > _EXAMPLES:
        findings.append(Finding("more rows are off, which are not explained", numbers[_EXAMPLES:]))
    return findings


@_findings.register
def _explain_weights(
    model: LinearModel, features: tuple[Feature, ...], rows: _Rows
) -> list[Finding]:
    """Return the weights that the engine has, from the rows in which one feature is not 0."""
    findings = []
    for number, values, score, _ in zip(*rows, strict=True):
        (columns,) = np.nonzero(values)
        if len(columns) == 1:
            column = int(columns[0])
            weight = score / values[column]
            text = (
                f"the weight of {features[column].engine_name} is {weight:.9g} instead of "
                f"{model.weights[column]:.9g}"
            )
            findings.append(Finding(text, (int(number),)))
    return findings


def _rules(
    model: TreeModel, features: tuple[Feature, ...], rows: _Rows
) -> Iterator[tuple[str, Doubles]]:
    values = rows.values
    if np.isnan(values).any():
        yield "an absent value is 0", model.predict(np.nan_to_num(values, nan=0.0))
        for side in (False, True):
            always = replace(model, missing_left=np.full(len(model.feature), side))
            name = "left" if side else "right"
            yield f"a missing value goes {name} at every split", always.predict(values)
        flipped = replace(model, missing_left=~model.missing_left)
        yield "a missing value goes to the other side at every split", flipped.predict(values)
    other = "<" if not model.strict else "<="
    changed = replace(model, strict=not model.strict)
    yield f"splits compare by {other}", changed.predict(values)
    with np.errstate(over="ignore"):
        slack = as_single(model.threshold) + np.float32(1e-6)
    moved = replace(model, threshold=slack.astype(np.float64))
    yield "a millionth is added to each threshold", moved.predict(values)
    rounded = as_single(model.threshold).astype(np.float64)
    yield "thresholds are rounded", replace(model, threshold=rounded).predict(values)
    yield "the base score is missing", replace(model, base_score=0.0).predict(values)
    reached = model.value[model.leaves(values)]
    total = model.base_score + reached.sum(axis=1)
    for tree in range(model.trees):
        yield f"tree {tree} is missing", total - reached[:, tree]
    sums = model.base_score + np.cumsum(reached, axis=1)
    for tree in range(model.trees - 1):
        yield f"all trees after tree {tree} are missing", sums[:, tree]
    yield from _swapped(model, features, rows)


def _swapped(
    model: TreeModel, features: tuple[Feature, ...], rows: _Rows
) -> Iterator[tuple[str, Doubles]]:
    used = np.unique(model.feature[model.feature >= 0]).tolist()
    pairs = [(first, last) for first in used for last in used if first < last]
    # One row rules out most pairs; only the others are tried on all rows.
    for first, last in pairs[:_MOST_PAIRS]:
        row = rows.values[:1].copy()
        row[:, [first, last]] = row[:, [last, first]]
        if abs(model.predict(row)[0] - rows.scores[0]) <= rows.tolerance[0]:
            swapped = rows.values.copy()
            swapped[:, [first, last]] = swapped[:, [last, first]]
            names = features[first].engine_name, features[last].engine_name
            yield f"features {names[0]} and {names[1]} are swapped", model.predict(swapped)


def _other_branch(
    model: TreeModel,
    features: tuple[Feature, ...],
    row: Doubles,
    score: float,
    tolerance: float,
) -> str:
    """Name the split whose other branch gives a score, with missing values and edges first."""
    expected = float(model.predict(row[None])[0])
    difference = score - expected
    leaves = model.leaves(row[None])[0]
    parents = model.parents()
    candidates = []
    for tree, leaf in enumerate(leaves.tolist()):
        below, node = leaf, int(parents[leaf])
        while node >= 0:
            left = bool(model.left[node] == below)
            branch = int(model.right[node] if left else model.left[node])
            change = float(model.value[_leaf_below(model, branch, row)] - model.value[leaf])
            if abs(change - difference) <= tolerance:
                value = row[model.feature[node]]
                near = np.isnan(value) or abs(value - model.threshold[node]) <= 1e-5 * max(
                    1.0, abs(value)
                )
                candidates.append((not near, tree, node, left, value))
            below, node = node, int(parents[node])
    if not candidates:
        return f"row scores {score:.9g} instead of {expected:.9g}, by no single split"
    _, tree, node, left, value = min(candidates)
    name = features[int(model.feature[node])].engine_name
    side = ("right", "left")
    what = "a missing value" if np.isnan(value) else f"the value {value:.9g}"
    comparison = "<" if model.strict else "<="
    return (
        f"tree {tree}, split {node - int(model.roots[tree])} ({name} {comparison} "
        f"{model.threshold[node]:.9g}): {what} goes {side[not left]} instead of {side[left]}"
    )


def _leaf_below(model: TreeModel, node: int, row: Doubles) -> int:
    """Return the leaf that a row reaches from a node on."""
    while model.feature[node] >= 0:
        left = model.goes_left(node, row)
        node = int(model.left[node] if left else model.right[node])
    return node
