"""A loaded text ranker: checked, and stopped when time is up."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from podium.errors import DataError
from podium.kernels import Doubles
from podium.rankers import Ranker

_AT_ONCE = 64
"""Documents that are scored before the time is looked at again."""


class ServedTextModel:
    """A ranker in memory that reads texts and no features: one of texts, or stages of such.

    Args:
        name: Its name.
        version: Its version.
        content: The bytes of its file.
        ranker: The ranker.
    """

    reads_features: ClassVar[Literal[False]] = False

    def __init__(self, name: str, version: int, content: bytes, ranker: Ranker) -> None:
        self.name = name
        self.version = version
        self.digest = hashlib.sha256(content).hexdigest()
        self._ranker = ranker
        if not np.isfinite(self.score("query", ["document", ""], threading.Event())).all():
            raise DataError("does not give finite scores", hint="Train it again.")

    def score(self, query: str, documents: Sequence[str], stop: threading.Event) -> Doubles:
        """Score documents; what is left when ``stop`` is set has no score (NaN).

        Stages are not stopped: their budget says how much they score.
        """
        if self._ranker.whole_queries:
            return self._ranker.score_query((), [(query, each) for each in documents])
        scores = np.full(len(documents), np.nan)
        for first in range(0, len(documents), _AT_ONCE):
            if stop.is_set():
                break
            part = documents[first : first + _AT_ONCE]
            scores[first : first + len(part)] = self._ranker.predict(
                [(query, each) for each in part]
            )
        return scores

    def metadata(self, versions: list[int]) -> dict[str, Any]:
        """Return what the Open Inference Protocol says of a model."""
        return {
            "name": self.name,
            "versions": [str(version) for version in versions],
            "platform": "podium_torch",
            "inputs": [
                {"name": "query", "datatype": "BYTES", "shape": [1]},
                {"name": "documents", "datatype": "BYTES", "shape": [-1]},
            ],
            "outputs": [{"name": "scores", "datatype": "FP64", "shape": [-1]}],
            "parameters": {
                "version": str(self.version),
                "sha256": self.digest,
                "kind": type(self._ranker).__name__,
            },
        }
