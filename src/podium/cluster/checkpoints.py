"""What a resume point belongs to: nobody goes on from the checkpoint or table of another fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from podium.cluster.filesystems import display_url, exists, read_bytes, write_bytes
from podium.cluster.sources import ShardSource
from podium.data import Dataset, ShardSet
from podium.errors import DataError

if TYPE_CHECKING:
    from podium.rankers import Ranker
    from podium.rankers.training_data import TrainingData

_FACTS = "fit.json"


def fit_identity(
    ranker: Ranker, train: ShardSource, validation: ShardSource | None, *, but: Collection[str] = ()
) -> dict[str, Any]:
    """What a fit is: the ranker with its parameters, and the shards; for JSON.

    Args:
        ranker: What is fitted.
        train: To what.
        validation: Chooses the best model so far, if there are validation queries.
        but: Parameters that may change when the fit goes on.
    """
    parameters = ranker.get_params()
    return {
        "ranker": type(ranker).__name__,
        "parameters": {name: repr(parameters[name]) for name in sorted(parameters.keys() - but)},
        "train": [shard.sha256 for shard in train.shards],
        "validation": None if validation is None else [one.sha256 for one in validation.shards],
    }


def claim(url: str, facts: dict[str, Any]) -> None:
    """Take a folder for the checkpoints of a fit; raises DataError if it is another one's."""
    if not exists(url, _FACTS):
        write_bytes(json.dumps(facts, indent=1).encode(), url, _FACTS)
        return
    content = read_bytes(url, _FACTS)
    try:
        same = json.loads(content) == facts
    except ValueError:
        same = False
    if not same:
        raise_other_fit(url)


def raise_other_fit(url: str) -> NoReturn:
    """Say that a folder's checkpoints are of another fit."""
    raise DataError(
        "has the checkpoint of another fit", path=display_url(url), hint="Choose a new folder."
    )


def fingerprint(ranker: Ranker, measure: object, *sets: TrainingData) -> str:
    """A short name of what trials are of: the ranker, the measure, and all values of the data."""
    digest = hashlib.sha256()
    parameters = sorted((name, repr(value)) for name, value in ranker.get_params().items())
    digest.update(repr((type(ranker).__name__, parameters, repr(measure))).encode())
    for each in sets:
        if isinstance(each, Dataset):
            for values in (each.labels, each.offsets, each.features):
                digest.update(np.ascontiguousarray(values).view(np.uint8).data)
        elif isinstance(each, ShardSet):
            digest.update(repr([shard.sha256 for shard in each.shards]).encode())
    return digest.hexdigest()[:16]
