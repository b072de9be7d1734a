"""How far Podium's ways are ahead of others when judges err, and the plots of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.judging_ways import BUDGETS, OTHERS, PODIUM, mean_and_error
from studies.plots import pyplot, save


def lead(
    quality: Mapping[str, NDArray[np.float64]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How far Podium's best way is ahead of the best other at each budget, and how sure that is.

    Returns:
        The mean difference and its standard error, paired: both methods judged the same queries.
    """
    best = []
    for names in (PODIUM, OTHERS):
        values = np.array([quality[name] for name in names])
        choice = np.nanmean(values, axis=1).argmax(axis=0)
        best.append(np.take_along_axis(values, choice[None, None, :], axis=0)[0])
    return mean_and_error(best[0] - best[1])


def draw(path: Path, title: str, curves: Mapping[str, NDArray[np.float64]]) -> None:
    """Draw the mean of each way against the budget, a band of a standard error around it."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(8.2, 4.6))
    colors = plt.colormaps["tab10"].colors
    for index, (name, values) in enumerate(curves.items()):
        means, errors = mean_and_error(values)
        ours = name in PODIUM
        style = {"color": colors[index], "linestyle": "-" if ours else "--", "label": name}
        axis.plot(BUDGETS, means, linewidth=2.4 if name.startswith("careful") else 1.4, **style)
        axis.fill_between(BUDGETS, means - errors, means + errors, color=colors[index], alpha=0.12)
    axis.set(title=title, xlabel="judgments", ylabel="κ-NDCG@10", ylim=(0, 1))
    axis.grid(alpha=0.3)
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    save(figure, path)
