"""Pictures of the studies: lines with their intervals, the same in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.errors import MissingPackageError

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b")
"""Told apart by people who see fewer colors, too."""


@dataclass(frozen=True)
class PlotLine:
    """A line of a picture.

    Attributes:
        name: In the legend.
        across: Where its points are.
        values: Their heights.
        low: The lower end of each point's interval, if there are intervals.
        high: The upper end.
        dashed: For what others are compared with.
    """

    name: str
    across: Sequence[float]
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """A picture, or one of several side by side.

    Attributes:
        title: Above it.
        across: What its horizontal axis shows, with the unit.
        up: What its vertical axis shows, with the unit.
        lines: What is drawn.
        log: Whether the horizontal axis is logarithmic.
        last: What the largest point of a logarithmic axis is called, if not by its number.
        ticks: Names of the positions 0, 1, 2, … across, for an axis of categories.
        marks: Heights at which something is written, such as a paper's figure.
    """

    title: str
    across: str
    up: str
    lines: Sequence[PlotLine]
    log: bool = False
    last: str = ""
    ticks: Sequence[str] = ()
    marks: dict[str, float] = field(default_factory=dict)


def draw_panels(
    file: Path,
    panels: Sequence[Panel],
    *,
    columns: int = 2,
    width: float = 4.9,
    below: bool = False,
) -> Path:
    """Draw panels side by side into one file.

    Args:
        file: The SVG to write.
        panels: What to draw.
        columns: How many stand side by side.
        width: The width of each, in inches.
        below: One legend for all of them, under the picture.
    """
    plt = pyplot()
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    legend_height = 0.35 if below else 0.0
    size = (width * columns, 3.5 * rows + legend_height)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        _draw_panel(axis, panel)
        if not below and len(panel.lines) > 1:
            axis.legend(frameon=False, fontsize=8)
    if below:
        marks, names = axes.flat[0].get_legend_handles_labels()
        figure.legend(
            marks, names, loc="lower center", ncol=min(len(names), 3 * columns), frameon=False
        )
    return save(figure, file, bottom=legend_height / size[1])


def _draw_panel(axis: Any, panel: Panel) -> None:
    for index, line in enumerate(panel.lines):
        color = COLORS[index % len(COLORS)]
        style = "--" if line.dashed else "-"
        mark = "o" if len(line.across) <= 25 else None
        axis.plot(
            line.across,
            line.values,
            style,
            color=color,
            label=line.name,
            lw=1.6,
            marker=mark,
            ms=3,
        )
        if len(line.low):
            axis.fill_between(line.across, line.low, line.high, color=color, alpha=0.14, lw=0)
    for name, height in panel.marks.items():
        axis.axhline(height, color="#555555", lw=0.8, ls=":")
        axis.annotate(
            name, (0.99, height), xycoords=("axes fraction", "data"), ha="right", va="bottom",
            fontsize=8, color="#555555",
        )  # fmt: skip
    if panel.ticks:
        axis.set_xticks(range(len(panel.ticks)), panel.ticks)
    if panel.log:
        # At the points themselves, in plain numbers.
        points = sorted({point for line in panel.lines for point in line.across})
        axis.set_xscale("log")
        names = [f"{point:,.10g}" for point in points]
        axis.set_xticks(points, [*names[:-1], panel.last or names[-1]])
        axis.minorticks_off()
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.across, fontsize=9)
    axis.set_ylabel(panel.up, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.3)


def pyplot() -> Any:
    """Matplotlib without a screen; the same figures give the same file."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingPackageError("matplotlib", extra="studies") from error
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "podium", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    return plt


def save(figure: Any, file: Path, *, bottom: float = 0.0) -> Path:
    """Write a figure, with space for a legend at the bottom as a share of its height."""
    figure.tight_layout(rect=(0, bottom, 1, 1))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", metadata={"Date": None})
    pyplot().close(figure)
    return file
