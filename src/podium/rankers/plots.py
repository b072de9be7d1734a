"""Pictures of a fitted ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from podium.errors import ArgumentError
from podium.kernels import Doubles
from podium.reports.charts import Bar, curve_chart, signed_bar_chart
from podium.reports.figure import Figure

_MOST_FEATURES = 25


def learning_curve(
    results: Mapping[str, Mapping[str, Sequence[float]]], *, larger_is_better: bool
) -> Figure:
    """Draw the measure of each validation set after each step."""
    if not results:
        raise ArgumentError(
            "there is no learning curve", hint="Fit with an eval_set of validation queries."
        )
    (measure,) = next(iter(results.values()))
    curves = {
        name: (range(1, len(history[measure]) + 1), history[measure])
        for name, history in results.items()
    }
    title = f"{measure} after each step"
    if len(results) == 1:
        ((steps, values),) = curves.values()
        best = int(np.argmax(values) if larger_is_better else np.argmin(values))
        title = f"{measure} of the validation queries: best {values[best]:.4f} at step {best + 1}"
        curves = {measure: (steps, values)}
    return Figure.of_chart(title, curve_chart(curves, title=title, axis="step"))


def importance_bars(names: Sequence[str], values: Doubles, what: str) -> Figure:
    """Draw the features with the largest importance."""
    order = np.argsort(-np.abs(values), kind="stable")[:_MOST_FEATURES]
    title = what
    if len(order) < len(names):
        title = f"{what}: {len(order)} largest of {len(names)}"
    bars = [
        Bar(names[index], value, value, value, f"{value:.4g}")
        for index, value in zip(order, values[order].tolist(), strict=True)
    ]
    return Figure.of_chart(title, signed_bar_chart(title, bars, width=620))
