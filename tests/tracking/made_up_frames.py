"""Data with named features, for models of MLflow."""

from podium.data import Dataset
from tests.rankers.made_up import made_up

NAMES = ["a", "b", "c", "d", "e", "f"]


def named(data: Dataset) -> Dataset:
    return Dataset.from_arrays(
        data.features, data.labels, qid=data.query_id_of_row(), feature_names=NAMES
    )


TRAIN, TEST = named(made_up(12, 12)), named(made_up(8, 12, seed=1))
