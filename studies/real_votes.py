"""Votes of real people on pairs, from the folder ``preferences`` of the data folder."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from podium.data import read_pairs
from podium.judging.agreement import Ratings


def image_search_votes(folder: Path) -> Ratings:
    """Three people each on pairs of images (Xie et al., SIGIR 2020): 1, 0 or -1 a vote."""
    with gzip.open(folder / "image-search/image_pairs_annotation.gz", "rt") as lines:
        next(lines)
        table = [line.rstrip("\n").split("\t")[-3:] for line in lines]
    return Ratings.from_table(-np.sign(np.array(table, float)))  # how much better is left out


def trec_votes(folder: Path, path: str) -> Ratings:
    """Votes without names: who judged is not in the file, so each vote has its own number."""
    pairs = read_pairs(folder / path)
    units: dict[tuple[str, str, str], int] = {}
    rows = []
    for query, left, right, verdict in zip(
        pairs.query_id_of_row().to_pylist(),
        pairs.left.to_pylist(),
        pairs.right.to_pylist(),
        pairs.verdicts.tolist(),
        strict=True,
    ):
        one, other = sorted((left, right))
        unit = units.setdefault((query, one, other), len(units))
        rows.append((unit, verdict if left == one else -verdict))
    columns = np.array(rows).T
    numbers = np.arange(len(rows))
    names = tuple(map(str, numbers))
    return Ratings(columns[0], numbers, columns[1].astype(float), names, tuple(units))
