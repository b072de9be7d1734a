"""The figures as pictures for the docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks._utility_curves import Curve

PICTURES = Path(__file__).parents[1] / "docs" / "images"
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def draw_panels(
    name: str, panels: Mapping[str, tuple[str, Sequence[Curve]]], *, columns: int = 3
) -> None:
    """Draw one picture of several panels.

    Args:
        name: Of the file, after ``utility-``.
        panels: To each title what its horizontal axis shows, and its lines.
        columns: How many panels stand side by side.
    """
    plt = _pyplot()
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.3 * columns, 3.3 * rows), squeeze=False)
    for axis, (title, (across, curves)) in zip(axes.flat, panels.items(), strict=False):
        for place, curve in enumerate(curves):
            colour = _COLOURS[place % len(_COLOURS)]
            style = "--" if curve.name == "Other" else "-"
            axis.plot(curve.steps, curve.means, style, color=colour, label=curve.name, lw=1.6)
            if len(curve.values) > 2 and curve.name != "Other":
                spread = curve.values.std(axis=0, ddof=1) / len(curve.values) ** 0.5
                low, high = curve.means - 2 * spread, curve.means + 2 * spread
                axis.fill_between(curve.steps, low, high, color=colour, alpha=0.15, lw=0)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(across, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.grid(alpha=0.3)
        if len(curves) > 1:
            axis.legend(fontsize=8, frameon=False)
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("share of pairs", fontsize=9)
    _save(figure, name)


def draw_growth(sizes: Sequence[int], seconds: Sequence[float]) -> None:
    """Draw time against pairs."""
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(5.6, 3.6))
    axis.plot(sizes, seconds, "o-", color=_COLOURS[0], label="measured")
    line = [seconds[-1] * size / sizes[-1] for size in sizes]
    axis.plot(sizes, line, "--", color="#7f7f7f", label="in proportion")
    axis.set(xscale="log", yscale="log", xlabel="pairs of rankings", ylabel="seconds, one thread")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    _save(figure, "growth")


def _pyplot():
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams |= {"svg.hashsalt": "podium", "svg.fonttype": "none"}
    from matplotlib import pyplot

    return pyplot


def _save(figure, name: str) -> None:
    figure.tight_layout()
    PICTURES.mkdir(exist_ok=True)
    figure.savefig(PICTURES / f"utility-{name}.svg", metadata={"Date": None})
