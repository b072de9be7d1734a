"""``python docs/social_card.py``: the picture that other sites show for a link to this one."""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

CARD = Path(__file__).parent / "images/social-card.png"
INDIGO, WHITE = "#3949ab", "#ffffff"


def draw(path: Path) -> None:
    """Draw the name, what it is for, and a podium of three steps, 1200 by 630 pixels."""
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor=INDIGO)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1200), ylim=(0, 630))
    axes.set_axis_off()
    axes.text(80, 400, "Podium", color=WHITE, fontsize=84, fontweight="bold", va="center")
    words = "From pairwise judgments\nto a ranker in production"
    axes.text(84, 250, words, color=WHITE, fontsize=27, va="center", linespacing=1.4)
    axes.text(84, 110, "judge · learn · measure · ship", color=WHITE, fontsize=20, alpha=0.8)
    for left, height, rank in ((790, 200, "2"), (910, 300, "1"), (1030, 130, "3")):
        axes.add_patch(Rectangle((left, 80), 110, height, color=WHITE, alpha=0.92))
        axes.text(left + 55, 80 + height - 55, rank, color=INDIGO, fontsize=40, ha="center",
                  va="center", fontweight="bold")  # fmt: skip
    # Without the version of Matplotlib in it, the same drawing gives the same bytes.
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(CARD)
