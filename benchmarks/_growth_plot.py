"""The growth of losses as a picture for the docs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._growth import Point
from podium.data.atomic import atomic_write

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "loss-growth.svg"


def draw(points: Sequence[Point]) -> None:
    """Draw time per query against its documents (top 10 and whole order) and against k."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(point.loss for point in points))
    colors = plt.colormaps["tab20"](range(20))
    largest = max(point.documents for point in points)
    panels: list[tuple[str, str, Callable[[Point], object], str]] = [
        ("order of the top 10", "documents of a query", lambda p: p.k == 10, "documents"),
        ("whole order", "documents of a query", lambda p: p.k is None, "documents"),
        (f"{largest:,} documents", "k", lambda p: p.documents == largest and p.k, "k"),
    ]
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.6), sharey=True)
    for axis, (title, label, keep, across) in zip(axes, panels, strict=True):
        for index, name in enumerate(names):
            chosen = {
                getattr(point, across): point.seconds * 1e3
                for point in points
                if point.loss == name and keep(point)
            }
            if len(chosen) > 1:
                xs = sorted(chosen)
                style = "--" if index >= 10 else "-"
                axis.plot(xs, [chosen[x] for x in xs], style, color=colors[index], label=name)
        axis.set(xscale="log", yscale="log", title=title, xlabel=label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("milliseconds a query, one thread")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=7, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    PICTURE.parent.mkdir(exist_ok=True)
    with atomic_write(PICTURE) as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None})
