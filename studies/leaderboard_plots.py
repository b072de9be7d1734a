"""Pictures of the leaderboard: curves over beta, and all entries with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.leaderboard_models import BETAS, FOCUSED, K
from studies.plots import pyplot, save
from studies.standings import ERR, Standing

_COLORS = {"literature": "#4477aa", "trees": "#228833", "peers": "#cc6677"}
_WORDS = {"literature": "models", "trees": "trees with Podium's losses", "peers": "peers"}


def draw_leaderboard(
    standings: Sequence[Standing], folder: Path, name: str = "leaderboard"
) -> list[Path]:
    """Draw what there are results for, for the page of this name; return the files."""
    plt = pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    curves = [
        each for each in standings if any(row.family == "curve" for row in each.rows.values())
    ]
    if curves:
        files.append(_draw_curves(plt, curves, folder / "focused-beta.svg"))
    for truth in ("graded", "top-k"):
        shown = [each for each in standings if each.truth == truth]
        if shown:
            files.append(_draw_entries(plt, shown, folder / f"{name}-{truth}.svg"))
    return files


def _draw_curves(plt: Any, standings: Sequence[Standing], file: Path) -> Path:
    """FocusedRank's measures over beta, a row a data set, a column a model with all points."""
    shown = [
        model
        for model in FOCUSED
        if all(f"{model.name} beta {beta}" in each.rows for each in standings for beta in BETAS)
    ]
    figure, axes = plt.subplots(
        len(standings),
        len(shown),
        figsize=(3.7 * len(shown), 3.1 * len(standings)),
        squeeze=False,
    )
    for line, standing in zip(axes, standings, strict=True):
        for axis, model in zip(line, shown, strict=True):
            for measure, style in ((standing.measure, "o-"), (ERR[standing.truth], "s--")):
                means = [standing.rows[f"{model.name} beta {beta}"].mean(measure) for beta in BETAS]
                short = measure.replace(f"(k={K})", "")
                axis.plot(BETAS, means, style, label=short, markersize=4)
            title = f"{model.name}, {standing.collection}, {standing.truth}"
            axis.set(title=title, xlabel="beta")
            axis.grid(alpha=0.3)
        line[0].legend(frameon=False, fontsize=8)  # graded and top-k have measures of their own
    return save(figure, file)


def _draw_entries(plt: Any, standings: Sequence[Standing], file: Path) -> Path:
    """Every entry's measure with its interval over queries, a panel a data set."""
    columns = min(4, len(standings))
    lines = -(-len(standings) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(4.1 * columns, 5.4 * lines), squeeze=False)
    for axis in axes.flat[len(standings) :]:
        axis.set_visible(False)
    for axis, standing in zip(axes.flat, standings, strict=False):
        rows = [row for row in standing.rows.values() if row.family in _COLORS]
        rows.sort(key=lambda row: row.mean(standing.measure))
        for row_number, row in enumerate(rows):
            mean, low, high = standing.interval(row.entry, standing.measure)
            color = _COLORS[row.family]
            axis.plot([low, high], [row_number, row_number], color=color, linewidth=1)
            axis.plot([mean], [row_number], "o", color=color, markersize=4)
        axis.set_yticks(range(len(rows)), [row.entry for row in rows], fontsize=7)
        axis.set(title=standing.collection, xlabel=standing.measure)
        axis.grid(alpha=0.3, axis="x")
    marks = [
        axes[0][0].plot([], [], "o", color=color, label=_WORDS[family])[0]
        for family, color in _COLORS.items()
    ]
    figure.legend(handles=marks, loc="lower center", ncol=3, frameon=False)
    return save(figure, file, bottom=0.06 / lines)
