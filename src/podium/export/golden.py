"""Golden rows: few rows that reach every leaf that data can reach, on both sides of each split."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from podium.data.seeds import generator
from podium.export.golden_kernel import LEFT, MISSING, RIGHT, cover
from podium.kernels import Doubles, Floats, Ints
from podium.scorers.models import FittedModel, LinearModel, NetworkModel
from podium.scorers.single_precision import as_single, at_most
from podium.scorers.trees import TreeModel

_BACKGROUND = 64
"""The number of rows with ordinary values."""
_REACH = 3.0
"""How many scales a feature of a network is moved to make its units count."""
_MOST_EXPONENT = 120.0
"""Larger powers of two have products that single precision does not have."""
_MOST_MORE = 20_000
"""The maximum number of leaves that get rows of their own."""


class _Options(NamedTuple):
    """What rows may be, as ``golden_values`` takes it."""

    most_rows: int
    sample: Floats | None
    can_miss: bool
    negative: bool
    avoided: Sequence[tuple[int, float, float]]
    rng: np.random.Generator


def golden_values(
    model: FittedModel,
    *,
    most_rows: int = 2000,
    sample: Floats | None = None,
    can_miss: bool = True,
    negative: bool = True,
    avoided: Sequence[tuple[int, float, float]] = (),
    random_state: int = 0,
) -> tuple[Doubles, dict[str, int]]:
    """Return the values of golden rows, and how much of the model they reach.

    The rows of trees have, for each split that a row can come to, the last single-precision value
    that goes left, the next one, which goes right, and a missing value.

    Args:
        model: The model.
        most_rows: The maximum number of rows that are searched for splits; a leaf that none of them
            reaches gets a row of its own.
        sample: Real rows, whose values are used where no split asks for another.
        can_miss: Whether a value may be missing.
        negative: Whether a value may be negative.
        avoided: Intervals of a feature whose values are avoided.
        random_state: The seed.
    """
    rng = generator(random_state)
    rows = _rows(model, _Options(most_rows, sample, can_miss, negative, avoided, rng))
    for column, first, last in avoided:
        rows = rows[~((rows[:, column] >= first) & (rows[:, column] <= last))]
    reached = {"rows": len(rows)}
    if model.leaf_count is not None:
        reached |= {
            "leaves": model.leaf_count,
            "leaves_reached": len(model.reached_leaves(rows)),
        }
    return rows, reached


def split_edges(model: TreeModel) -> tuple[Doubles, Doubles]:
    """Return the last value that goes left and the first that goes right, for each node."""
    last = at_most(model.threshold, strict=model.strict)
    with np.errstate(over="ignore"):
        first = np.nextafter(last, np.float32(np.inf)).astype(np.float64)
    left = last.astype(np.float64)
    for node in np.flatnonzero(model.category_set >= 0):
        members = set(model.category_sets[model.category_set[node]])
        left[node] = min(members, default=np.inf)
        first[node] = next(number for number in range(len(members) + 1) if number not in members)
    return left, first


@singledispatch
def _rows(model: FittedModel, _options: _Options) -> Doubles:
    raise NotImplementedError(f"golden rows of a {type(model).__name__}")


@_rows.register
def _tree_rows(model: TreeModel, options: _Options) -> Doubles:
    most_rows, sample, can_miss, negative, avoided, rng = options
    edges = np.stack(split_edges(model))
    for column, first, last in avoided:
        # The nearest values outside go to the same sides.
        avoided = (model.feature == column) & (edges >= first) & (edges <= last)
        outside = np.nextafter(as_single([first, last]), as_single([-np.inf, np.inf]))
        edges = np.where(avoided, outside[:, None].astype(np.float64), edges)
    inner = model.feature >= 0
    splits = np.flatnonzero(inner)
    background = _background(model, edges, sample, can_miss, negative, rng)
    met = np.zeros((3, len(model.feature)), np.bool_)
    met[LEFT], met[RIGHT] = ~np.isfinite(edges[0]), ~np.isfinite(edges[1])
    met[MISSING] = not can_miss
    parents = model.parents()
    is_left = np.zeros(len(parents), np.bool_)
    is_left[model.left[splits]] = True
    rows = np.empty((most_rows, model.features))
    smallest = np.full(model.features, -np.inf if negative else 0.0)
    random = rng.random((most_rows, model.features))
    count = cover(
        model.feature, parents, is_left, model.missing_left, edges,
        model.category_set >= 0, rng.permutation(splits), met, smallest, can_miss, random,
        background, rows,
    )  # fmt: skip
    rows = np.concatenate([background, rows[:count]])
    leaves = np.setdiff1d(np.flatnonzero(~inner), model.leaves(rows))
    more = [
        _row_to_leaf(model, int(leaf), parents, edges, background[0], can_miss, negative)
        for leaf in leaves[:_MOST_MORE]
    ]
    return np.concatenate([rows, *(row[None] for row in more if row is not None)])


def _row_to_leaf(
    model: TreeModel,
    leaf: int,
    parents: Ints,
    edges: Doubles,
    background: Doubles,
    can_miss: bool,
    negative: bool,
) -> Doubles | None:
    """Return a row that reaches a leaf, or None if there is none.

    On the way to a leaf, features are independent of each other: for each of them one of few values
    takes all the turns, or none does.
    """
    row = background.copy()
    turns: dict[int, list[tuple[int, bool]]] = {}
    below, node = leaf, int(parents[leaf])
    while node >= 0:
        turns.setdefault(int(model.feature[node]), []).append((node, model.left[node] == below))
        below, node = node, int(parents[node])
    for column, passed in turns.items():
        nodes = [node for node, _ in passed]
        values = [*edges[:, nodes].ravel().tolist(), *([np.nan] if can_miss else [])]
        for node in nodes:
            if model.category_set[node] >= 0:
                members = model.category_sets[model.category_set[node]]
                values += [*map(float, members), max(members, default=0) + 1.0]
        for value in values:
            if np.isinf(value) or (value < 0 and not negative):
                continue
            row[column] = value
            if all(model.goes_left(node, row) == left for node, left in passed):
                break
        else:
            return None
    return row


def _background(
    model: TreeModel,
    edges: Doubles,
    sample: Floats | None,
    can_miss: bool,
    negative: bool,
    rng: np.random.Generator,
) -> Doubles:
    """Return rows with ordinary values: real ones, or ones that the model's splits separate."""
    if sample is not None and len(sample):
        chosen = rng.choice(len(sample), min(_BACKGROUND, len(sample)), replace=False)
        rows = sample[np.sort(chosen)].astype(np.float64)
    else:
        rows = np.zeros((_BACKGROUND, model.features))
        for column in range(model.features):
            values = edges[:, model.feature == column].ravel()
            values = values[np.isfinite(values)]
            if values.size:
                rows[:, column] = rng.choice(values, _BACKGROUND)
        rows[rng.random(rows.shape) < 0.1] = np.nan
    if not can_miss:
        rows = np.nan_to_num(rows, nan=0.0)
    return rows if negative else np.abs(rows)


@_rows.register
def _linear_rows(model: LinearModel, options: _Options) -> Doubles:
    scale = _linear_scales(model, options.sample)
    return _plain_rows(
        np.zeros(len(scale)), scale, [np.diag(scale)], options._replace(can_miss=False)
    )


@_rows.register
def _network_rows(model: NetworkModel, options: _Options) -> Doubles:
    scale = model.scale
    # Each unit of the first layer is far on either side of where it begins to count.
    towards = _REACH * scale * np.sign(model.layers[0][0])
    parts = [np.diag(scale), np.diag(-scale), towards, -towards]
    return _plain_rows(model.mean, scale, parts, options)


def _plain_rows(
    center: Doubles, scale: Doubles, parts: Sequence[Doubles], options: _Options
) -> Doubles:
    """Return rows that differ in one feature each, at its scale, and ordinary ones."""
    sample, rng = options.sample, options.rng
    width = len(scale)
    if sample is not None and len(sample):
        chosen = rng.choice(len(sample), min(_BACKGROUND, len(sample)), replace=False)
        drawn = sample[chosen].astype(np.float64)
    else:
        drawn = center + scale * rng.normal(size=(_BACKGROUND, width))
    rows = np.concatenate([[center], *(center + part for part in parts), drawn])
    rows = as_single(rows).astype(np.float64)
    if options.can_miss:
        without = np.tile(rows[-1], (width, 1))
        np.fill_diagonal(without, np.nan)
        rows = np.concatenate([rows, without])
    else:
        rows = np.nan_to_num(rows, nan=0.0)
    return rows if options.negative else np.abs(rows)


def _linear_scales(model: LinearModel, sample: Floats | None) -> Doubles:
    """Return a power of two for each feature: its product with a weight is not rounded.

    The one nearest to the median of the sample's values other than 0; without these, the one that
    gives all terms of a score about the same size.
    """
    sizes = np.abs(model.weights)
    known = sizes > 0
    scales = np.ones(len(sizes))
    if known.any():
        typical = np.exp(np.log(sizes[known]).mean())
        scales[known] = typical / sizes[known]
    if sample is not None:
        for column in range(len(sizes)):
            values = np.abs(sample[:, column].astype(np.float64))
            values = values[np.isfinite(values) & (values > 0)]
            if len(values):
                scales[column] = np.median(values)
    exponents = np.clip(np.round(np.log(scales) / np.log(2.0)), -_MOST_EXPONENT, _MOST_EXPONENT)
    powers: Doubles = np.ldexp(1.0, exponents.astype(np.int64))
    return powers
