"""A loaded version of a model: what it is, and what its requests look like."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from podium.errors import DataError
from podium.kernels import Doubles
from podium.serving.rank_request import RankDecoder
from podium.serving.refusal import Refusal
from podium.serving.rows import Rows, row_type
from podium.serving.scoring import check_scorer, read_scorer, takes_missing


class ServedModel:
    """A model in memory, checked and ready to score.

    Args:
        name: Its name.
        version: Its version.
        content: The bytes of its file.
        absent: Values of features that a document may leave out, by name.
        most_documents: The largest number of documents of a request.
    """

    def __init__(
        self,
        name: str,
        version: int,
        content: bytes,
        absent: Mapping[str, float | None],
        most_documents: int,
    ) -> None:
        self.name = name
        self.version = version
        self.digest = hashlib.sha256(content).hexdigest()
        scorer = read_scorer(content)
        check_scorer(scorer)
        self.kind, self.engine = scorer.kind, scorer.engine
        self.feature_names = scorer.feature_names
        self.definitions_hash = scorer.definitions_hash
        self.takes_missing = takes_missing(scorer)
        self.absent = {name: absent[name] for name in self.feature_names if name in absent}
        if not self.takes_missing and None in self.absent.values():
            raise DataError(
                f"{name} takes no missing values, and one of its features is missing if absent",
                hint="Give a number: --absent FEATURE=0.",
            )
        self.decoder = RankDecoder(
            self.feature_names,
            self.absent,
            most_documents,
            self.definitions_hash,
            single=scorer.single,
        )
        self.single = scorer.single
        self._score = scorer.score

    def score(self, rows: Rows) -> Doubles:
        """Score documents; a Refusal if a value is infinite, or missing where none may be."""
        if not len(rows):
            return np.empty(0)
        # Those of a search, or of the model that this one shadows, may have another precision.
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            rows = rows.astype(row_type(single=self.single), copy=False)
        if not np.isfinite(rows).all():
            self._refuse_invalid(rows)
        return self._score(rows)

    def _refuse_invalid(self, rows: Rows) -> None:
        invalid = np.isinf(rows) if self.takes_missing else ~np.isfinite(rows)
        if invalid.any():
            row, column = np.argwhere(invalid)[0]
            infinite = "infinite in single precision" if self.single else "infinite"
            problem = "missing" if np.isnan(rows[row, column]) else infinite
            feature = self.feature_names[column]
            raise Refusal(400, f"feature {feature!r} of document {row} is {problem}")

    def metadata(self, versions: list[int]) -> dict[str, Any]:
        """Return what the Open Inference Protocol says of a model, and its features' names."""
        width = len(self.feature_names)
        return {
            "name": self.name,
            "versions": [str(version) for version in versions],
            "platform": f"podium_{self.engine}",
            "inputs": [
                {
                    "name": "features",
                    "datatype": "FP32" if self.single else "FP64",
                    "shape": [-1, width],
                }
            ],
            "outputs": [{"name": "scores", "datatype": "FP64", "shape": [-1]}],
            "parameters": {
                "version": str(self.version),
                "sha256": self.digest,
                "kind": self.kind,
                "feature_names": list(self.feature_names),
                "missing_values": self.takes_missing,
                "absent": self.absent,
                "definitions": self.definitions_hash,
            },
        }
