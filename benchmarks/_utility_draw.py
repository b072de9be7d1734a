"""The growth with the number of pairs as a picture for the docs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from studies.plots import COLORS, pyplot, save

PICTURES = Path(__file__).parents[1] / "docs" / "images"


def draw_growth(sizes: Sequence[int], seconds: Sequence[float]) -> None:
    """Draw time against pairs."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(5.6, 3.6))
    axis.plot(sizes, seconds, "o-", color=COLORS[0], label="measured")
    line = [seconds[-1] * size / sizes[-1] for size in sizes]
    axis.plot(sizes, line, "--", color="#7f7f7f", label="in proportion")
    axis.set(xscale="log", yscale="log", xlabel="pairs of rankings", ylabel="seconds, one thread")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    save(figure, PICTURES / "utility-growth.svg")
