"""What every ranker shares: fitting by query, predicting, ranking, saving."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn import exceptions
from sklearn.base import BaseEstimator

from podium.data import Dataset, Rankings, ShardSet
from podium.data.numbers import as_numbers
from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles, Floats
from podium.losses import Loss, parse_loss
from podium.measures import Measure, evaluate, nDCG
from podium.rankers.storage import Archive, archive_bytes, read_archive, write_archive
from podium.registry import Registry

Training: TypeAlias = "Dataset | ShardSet"
"""What a ranker can be fitted on besides arrays."""

Progress: TypeAlias = "Callable[[int, float, float | None], None]"
"""Told after each step of a fit: the step, the loss, and the validation measure if there is one."""


class NotFittedError(PodiumError, exceptions.NotFittedError):  # type: ignore[misc]
    """A ranker is asked for scores before it was fitted; also an error of scikit-learn's."""


class Ranker(BaseEstimator):  # type: ignore[misc]
    """A loss times a scorer, as a scikit-learn estimator.

    Rows are documents; ``qid`` (an id for each row, in any order) or ``group`` (rows per query,
    contiguous) says which query they belong to. ``predict`` gives a score for each row, larger is
    better, comparable within a query only.
    """

    KINDS: ClassVar[Registry[type[Ranker]]] = Registry("ranker")

    streams: ClassVar[bool] = False
    """Whether it goes through a shard set block by block; if not, it loads the whole set."""

    loss: Loss | str
    n_features_in_: int
    feature_names_: tuple[str, ...]

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        Ranker.KINDS[cls.__name__] = cls

    def fit(
        self,
        X: ArrayLike | Training,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        validation: Training | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit to features and labels of queries.

        Args:
            X: Features, a row a document; or a data set or shard set, and nothing else.
            y: A label for each row: grades, a full order or a top-k order.
            qid: A query id for each row, or
            group: the number of rows of each query.
            validation: Queries that choose the best of the models met on the way.
            progress: Called after each step.
        """
        data = as_training(X, y, qid, group)
        self.n_features_in_ = len(data.feature_names)
        self.feature_names_ = tuple(data.feature_names)
        if validation is not None and tuple(validation.feature_names) != self.feature_names_:
            raise DataError(
                "validation has other features than the training data",
                hint="Bring both to the same columns.",
            )
        self._fit(data, validation, progress)
        return self

    def predict(self, X: ArrayLike | Dataset) -> Doubles:
        """A score for each row."""
        return self._predict(self._checked(X))

    def _checked(self, X: ArrayLike | Dataset) -> Floats:
        """The features of rows to score, if they are those it was fitted on."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted. Call fit first.")
        features = X.features if isinstance(X, Dataset) else _matrix(X)
        if features.shape[1] != self.n_features_in_:
            raise DataError(
                f"{features.shape[1]} features, the ranker was fitted on {self.n_features_in_}",
                hint="Give the same columns in the same order.",
            )
        return features

    def rank(self, data: Dataset, *, name: str | None = None) -> Rankings:
        """The rankings of a data set's documents, ready to evaluate or to write as a run."""
        documents: Any = data.document_ids
        if documents is None:
            places = np.arange(data.rows) - data.offsets[data.query_of_row]
            documents = [str(place) for place in places]
        return Rankings.from_columns(
            data.query_id_of_row(),
            documents,
            self.predict(data),
            name=type(self).__name__ if name is None else name,
        )

    def score(
        self,
        X: ArrayLike | Dataset,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> float:
        """The mean nDCG@10, which scikit-learn's searches maximise unless told otherwise."""
        data = X if isinstance(X, Dataset) else as_training(X, y, qid, group)
        if not isinstance(data, Dataset):
            raise ArgumentError("score needs a data set in memory", hint="Use podium.measures.")
        return evaluate(nDCG @ 10, data, self.predict(data)).means[nDCG @ 10]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted ranker; no pickle is involved, and equal rankers give equal bytes."""
        write_archive(self._whole_archive(), path)

    def to_bytes(self) -> bytes:
        """What ``save`` would write."""
        return archive_bytes(self._whole_archive())

    def _whole_archive(self) -> Archive:
        archive = self._archive()
        parameters = {
            name: repr(value) if isinstance(value, Loss | Measure) else value
            for name, value in self.get_params(deep=False).items()
            if not _rankers_in(value)  # those are in the ranker's own part
        }
        facts = {"parameters": parameters, "feature_names": list(self.feature_names_)}
        kind = type(self).__name__
        return Archive(kind, facts | archive.facts, archive.arrays, archive.blobs)

    @abstractmethod
    def _fit(self, data: Training, validation: Training | None, progress: Progress | None) -> None:
        """Fit to checked data."""

    @abstractmethod
    def _predict(self, features: Floats) -> Doubles:
        """Scores of checked features."""

    @abstractmethod
    def _archive(self) -> Archive:
        """What the scorer keeps, beyond the parameters and the features' names."""

    @abstractmethod
    def _restore(self, archive: Archive) -> None:
        """Take back what ``_archive`` gave."""

    def _loss(self) -> Loss:
        loss = parse_loss(self.loss) if isinstance(self.loss, str) else self.loss
        if not isinstance(loss, Loss):
            raise ArgumentError(f"{loss!r} is no loss. Give one of podium.losses, or its text.")
        return loss


def load_ranker(source: str | os.PathLike[str] | BytesIO) -> Ranker:
    """Load a ranker that was saved by ``Ranker.save``, from its file or its bytes.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
        >>> load_ranker(BytesIO(ranker.to_bytes()))
        LinearRanker(loss='ListNet()')
    """
    archive = read_archive(source)
    kind = Ranker.KINDS.get(archive.kind)
    try:
        if kind is None:
            raise KeyError(archive.kind)
        ranker = kind(**archive.facts["parameters"])
        names = tuple(map(str, archive.facts["feature_names"]))
        ranker.feature_names_, ranker.n_features_in_ = names, len(names)
        ranker._restore(archive)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"is no ranker of this Podium ({error})",
            path=None if isinstance(source, BytesIO) else source,
            hint="Train and save it again.",
        ) from error
    return ranker


def members_of(ranker: Ranker) -> list[Ranker]:
    """The rankers that are parameters of a ranker."""
    return [one for value in ranker.get_params(deep=False).values() for one in _rankers_in(value)]


def _rankers_in(value: object) -> list[Ranker]:
    several = value if isinstance(value, list | tuple) else [value]
    return [one for one in several if isinstance(one, Ranker)]


def as_training(
    X: ArrayLike | Training,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    group: ArrayLike | None,
) -> Training:
    """The data of a fit, however they were given."""
    if isinstance(X, Dataset | ShardSet):
        if y is not None or qid is not None or group is not None:
            raise ArgumentError(
                "a data set has labels and queries of its own", hint="Give it alone."
            )
        return X
    if y is None:
        raise ArgumentError("labels are missing", hint="Give y, or a data set as X.")
    return Dataset.from_arrays(_matrix(X), y, qid=qid, group=group)


def blocks_of(data: Training) -> Iterable[Dataset]:
    """The blocks of whole queries that a fit sums over, as often as it iterates."""
    return [data] if isinstance(data, Dataset) else _Shards(data)


def in_memory(data: Training) -> Dataset:
    """The whole of the data, for rankers that sort or bin every feature before they start."""
    found = data.load() if isinstance(data, ShardSet) else data
    if not found.feature_names:
        raise DataError("there is no feature to learn from", hint="Give at least one.")
    return found


class _Shards:
    """A shard set that can be gone through again and again."""

    def __init__(self, shards: ShardSet) -> None:
        self._shards = shards

    def __iter__(self) -> Iterator[Dataset]:
        return self._shards.blocks()


def _matrix(X: Any) -> Floats:
    return as_numbers(X, np.float32, "features", dimensions=2)
