"""Real preferences between whole result pages of image search (Xie et al., SIGIR 2020)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from podium.utility import RankingPreferences

_SOGOU, _BAIDU = "sogou", "baidu"
_CHOICES = {"0": 1, "1": 0, "2": -1}


def read_pages(folder: Path, depth: int, grades: int) -> RankingPreferences:
    """The two pages of each query, grades by equal shares of the relevance scores.

    Left is Sogou's page, right is Baidu's, in the order of the images on the page.
    """
    scores: dict[tuple[str, str, int], float] = {}
    for line in (folder / "relevance_data").read_text(encoding="utf-8").splitlines()[1:]:
        query, image, score = line.split("\t")
        engine, _, name = image.partition("/")
        number = int(name.rpartition("_")[2].removesuffix(".jpg"))
        scores[query, engine, number] = float(score)
    bounds = np.quantile(list(scores.values()), np.arange(1, grades) / grades)
    positions = json.loads((folder / "Image_position.json").read_text(encoding="utf-8"))
    verdicts = (folder / "SERP_level_preference").read_text(encoding="utf-8").splitlines()[1:]
    pages: dict[str, list[list[int]]] = {_SOGOU: [], _BAIDU: []}
    choices, queries = [], []
    for line in verdicts:
        query, winner = line.split("\t")
        for side, engine in enumerate((_SOGOU, _BAIDU)):
            numbers = sorted(map(int, positions[query][str(side)]))
            values = [scores[query, engine, number] for number in numbers]
            pages[engine].append(np.searchsorted(bounds, values, side="right").tolist())
        choices.append(_CHOICES[winner])
        queries.append(query)
    return RankingPreferences.from_arrays(
        pages[_SOGOU], pages[_BAIDU], choices, queries=queries, grades=grades, depth=depth
    )
