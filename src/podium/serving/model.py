"""A loaded version of a model: what it is, and what its requests look like."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from podium.errors import DataError
from podium.export.reading import ranker_of_bytes
from podium.kernels import Doubles
from podium.rankers import Ranker
from podium.serving.rank_request import RankDecoder
from podium.serving.refusal import Refusal
from podium.serving.rows import Rows, row_type
from podium.serving.scoring import Pair, check_scorer, scorer_of, takes_missing


class ServedModel:
    """A model of features in memory, checked and ready to score.

    Args:
        name: Its name.
        version: Its version.
        content: The bytes of its file.
        absent: Values of features that a document may leave out, by name.
        most_documents: The largest number of documents of a request.
        ranker: What the file holds, if it was read already.
    """

    reads_features: ClassVar[Literal[True]] = True

    def __init__(
        self,
        name: str,
        version: int,
        content: bytes,
        absent: Mapping[str, float | None],
        most_documents: int,
        ranker: Ranker | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.digest = hashlib.sha256(content).hexdigest()
        scorer = scorer_of(ranker_of_bytes(content) if ranker is None else ranker)
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
        self.reads_texts = scorer.score_texts is not None
        self._score, self._score_texts = scorer.score, scorer.score_texts

    def score(self, rows: Rows, pairs: Sequence[Pair] = ()) -> Doubles:
        """Score documents; a Refusal if a value is infinite, or missing where none may be.

        Args:
            rows: Their features.
            pairs: The query and each document as texts, if the model ``reads_texts``.
        """
        if not len(rows):
            return np.empty(0)
        # Those of a search, or of the model that this one shadows, may have another precision.
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            rows = rows.astype(row_type(single=self.single), copy=False)
        if not np.isfinite(rows).all():
            self._refuse_invalid(rows)
        return self._score(rows) if self._score_texts is None else self._score_texts(rows, pairs)

    def select(self, rows: Rows, names: Sequence[str]) -> Rows:
        """Return the model's features, in its order, of rows that have these."""
        if tuple(names) == self.feature_names:
            return rows
        column = {name: number for number, name in enumerate(names)}
        missing = [name for name in self.feature_names if name not in column]
        if missing:
            raise DataError(f"{self.name} reads {missing[0]!r}, which the documents do not have")
        return np.ascontiguousarray(rows[:, [column[name] for name in self.feature_names]])

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
                "texts": self.reads_texts,
                "absent": self.absent,
                "definitions": self.definitions_hash,
            },
        }
