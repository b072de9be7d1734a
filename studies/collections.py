"""The data sets of the studies, in folds, from a folder that the reader fills.

None of them comes with Podium. The folder has the layout ``letor/MQ2007/S1.txt.gz`` and so on; a
data set that is not there is left out.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from podium.data import Dataset, concat_datasets, read_letor
from podium.errors import ArgumentError


@dataclass(frozen=True)
class Fold:
    """Queries to train on, to choose parameters on, and to test on."""

    train: Dataset
    validation: Dataset
    test: Dataset

    def map(self, change: Callable[[Dataset], Dataset]) -> Fold:
        """The fold with each of its parts changed."""
        return Fold(change(self.train), change(self.validation), change(self.test))


@dataclass(frozen=True)
class Collection:
    """A data set of the studies.

    Attributes:
        name: On the command line and in tables.
        folder: Where it lies in the data folder.
        load: Reads its folds from there.
        about: A line on what it is.
    """

    name: str
    folder: str
    load: Callable[[Path], list[Fold]]
    about: str


def _letor_parts(folder: Path) -> list[Fold]:
    """LETOR's folds: three parts to train, one to choose, one to test, in a circle."""
    parts = [read_letor(folder / f"S{part}.txt.gz") for part in range(1, 6)]
    return _circle(parts)


def _circle(parts: Sequence[Dataset]) -> list[Fold]:
    count = len(parts)
    return [
        Fold(
            concat_datasets([parts[(fold + step) % count] for step in range(count - 2)]),
            parts[(fold + count - 2) % count],
            parts[(fold + count - 1) % count],
        )
        for fold in range(count)
    ]


def _letor_folds(folder: Path) -> list[Fold]:
    """LETOR 2.0 gives each fold whole, with raw features: normalized here, as its figures were."""
    return [
        Fold(
            *(
                read_letor(folder / f"Fold{fold}.{part}.txt.gz").normalize("min-max")
                for part in ("training", "validation", "test")
            )
        )
        for fold in range(1, 6)
    ]


def _shuffled_folds(data: Dataset) -> list[Fold]:
    """Five folds of a data set that comes without: queries dealt out by a fixed seed."""
    order = np.random.default_rng(0).permutation(len(data))
    return _circle([data.select(np.sort(order[part::5])) for part in range(5)])


def _sample(folder: Path) -> list[Fold]:
    return _shuffled_folds(read_letor(folder / "sample.txt.gz").normalize("min-max"))


def _lightgbm_example(folder: Path) -> list[Fold]:
    parts = [read_letor(folder / f"rank.{part}") for part in ("train", "test")]  # with .query files
    width = max(len(part.feature_names) for part in parts)
    return _shuffled_folds(
        concat_datasets(
            [
                Dataset.from_arrays(
                    np.pad(part.features, ((0, 0), (0, width - len(part.feature_names)))),
                    labels=part.labels,
                    qid=[f"{number}.{query}" for query in part.query_id_of_row().to_pylist()],
                )
                for number, part in enumerate(parts)
            ]
        )
    )


# The values that one assessor's grade has there; values between them are means of several.
_YANDEX_GRADES = np.array([0.0, 0.07, 0.14, 0.41, 0.61])


def _yandex(folder: Path) -> list[Fold]:
    """Tab-separated: query, label, URL, number, features."""
    parts = []
    for file in ("features.txt.gz", "featuresTest.txt.gz"):
        with gzip.open(folder / file, "rt", encoding="utf-8", errors="replace") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
        table = np.array([[float(cell) for cell in row[4:]] for row in rows], np.float32)
        labels = [float(row[1]) for row in rows]
        query = [f"{file[:9]}{row[0]}" for row in rows]
        parts.append(Dataset.from_arrays(table, labels=labels, qid=query))
    return _shuffled_folds(concat_datasets(parts))


COLLECTIONS: dict[str, Collection] = {
    each.name: each
    for each in (
        Collection("OHSUMED-2", "letor/OHSUMED-2", _letor_folds, "LETOR 2.0: 106 queries"),
        Collection("MQ2007", "letor/MQ2007", _letor_parts, "LETOR 4.0: 1,692 queries"),
        Collection("MQ2008", "letor/MQ2008", _letor_parts, "LETOR 4.0: 784 queries"),
        Collection("Yandex", "yandex", _yandex, "finely graded: 3,334 queries"),
        Collection("OHSUMED", "letor/OHSUMED", _letor_parts, "LETOR 3.0: 106 queries"),
        Collection("MSLR-sample", "mslr-sample", _sample, "a sample of MSLR-WEB: 56 queries"),
        Collection(
            "LightGBM-example", "lightgbm-lambdarank", _lightgbm_example, "made up: 251 queries"
        ),
    )
}
"""Every data set by its name."""


def load_folds(name: str, folder: Path) -> list[Fold]:
    """The folds of a data set."""
    if name not in COLLECTIONS:
        raise ArgumentError(
            f"{name!r} is not a known data set", hint=f"Choose from {', '.join(COLLECTIONS)}."
        )
    collection = COLLECTIONS[name]
    return collection.load(folder / collection.folder)


def available(folder: Path) -> list[str]:
    """The names of the data sets that a folder has."""
    return [name for name, each in COLLECTIONS.items() if (folder / each.folder).is_dir()]


def graded(name: str, data: Dataset) -> Dataset:
    """A data set's graded truth."""
    if name != "Yandex":
        return data
    middles = (_YANDEX_GRADES[1:] + _YANDEX_GRADES[:-1]) / 2
    return replace(data, labels=np.digitize(data.labels, middles).astype(np.float32))
