"""What every ranker shares: fitting by query, predicting, ranking, saving."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import exceptions
from sklearn.base import BaseEstimator

from podium.data import Dataset, Rankings, ShardSet
from podium.data.columns import are_numbers, column_names
from podium.data.numbers import as_numbers, infinite_feature
from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles, Floats
from podium.losses import Loss, parse_loss
from podium.measures import Measure, evaluate, parse_measure
from podium.rankers.feature_columns import aligned_dataset, aligned_matrix
from podium.rankers.storage import Archive, archive_bytes, read_archive, write_archive
from podium.registry import Registry

Training: TypeAlias = "Dataset | ShardSet"
"""What a ranker can be fitted on besides arrays."""

Progress: TypeAlias = "Callable[[int, float, float | None], None]"
"""Told after each step of a fit: the step, the loss, and the validation measure if there is one."""


class NotFittedError(PodiumError, exceptions.NotFittedError):  # type: ignore[misc]
    """A ranker is asked for scores before it was fitted; also an error of scikit-learn's."""


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a fit after its first step: the ranker holds the best model so far.

    It is a ``KeyboardInterrupt``, so a search that fits several rankers ends too. Catch it around
    ``fit`` to use or save what was learned. A ranker whose fit ended with any other error, or with
    a plain ``KeyboardInterrupt``, is not fitted.
    """


class Ranker(BaseEstimator):  # type: ignore[misc]
    """A loss times a scorer, as a scikit-learn estimator.

    Rows are documents; ``qid`` (an id for each row, in any order) or ``group`` (rows per query,
    contiguous) says which query they belong to. ``predict`` gives a score for each row, larger is
    better, comparable within a query only.

    Columns are known by name where the training data name them (a data frame, a data set, a
    Parquet file): rows to score may have them in any order, and a missing or additional column is
    an error. Columns of arrays and LETOR files have numbers from 1, and are known by position.

    Attributes:
        n_features_in_: How many features it was fitted on.
        feature_names_in_: Their names, as an array; not there if they only have numbers.
        feature_names_: Their names, or their numbers from 1.
    """

    KINDS: ClassVar[Registry[type[Ranker]]] = Registry("ranker")

    streams: ClassVar[bool] = False
    """Whether it goes through a shard set block by block; if not, it loads the whole set."""

    loss: Loss | str
    n_features_in_: int
    feature_names_: tuple[str, ...]
    _named: bool

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

        Raises:
            FitInterrupted: After Ctrl-C, if there is a model so far; the ranker holds it.
            DataError: If no query of the training or validation data prefers a document to another.
        """
        self.check_parameters()
        data = as_training(X, y, qid, group)
        names = tuple(data.feature_names)
        held_out = aligned_validation(validation, names)
        refuse_indifferent(data, "training")
        if held_out is not None:
            refuse_indifferent(held_out, "validation")
        named = not isinstance(X, Dataset | ShardSet) and column_names(X) is not None
        with self._fitting(names, named=named or not are_numbers(names)):
            self._fit(data, held_out, progress)
        return self

    @contextmanager
    def _fitting(self, names: tuple[str, ...], *, named: bool) -> Iterator[None]:
        """Around a fit to features: if it fails, the ranker is not fitted."""
        if not names:
            raise DataError("there is no feature to learn from", hint="Give at least one.")
        self.feature_names_, self.n_features_in_, self._named = names, len(names), named
        try:
            yield
        except FitInterrupted:
            raise
        except BaseException:
            del self.feature_names_, self.n_features_in_, self._named
            raise

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The features' names; as in scikit-learn, there are none if columns only had numbers."""
        if not hasattr(self, "feature_names_") or not self._named:
            raise AttributeError("feature_names_in_")
        return np.array(self.feature_names_, dtype=object)

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are wrong whatever the data are."""

    def predict(self, X: ArrayLike | Dataset) -> Doubles:
        """A score for each row.

        Args:
            X: Rows of the features it was fitted on. With names they may come in any order.
        """
        self._refuse_unfitted()
        if isinstance(X, Dataset):
            return self._predict(aligned_dataset(X, self.feature_names_).features)
        matrix = _matrix(X)
        if np.isinf(matrix).any():
            raise infinite_feature()
        return self._predict(aligned_matrix(X, matrix, self.feature_names_, self._named))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _refuse_unfitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} is not fitted. Call fit first.")

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
        sample_weight: None = None,
    ) -> float:
        """The mean of the ranker's ``measure``, which scikit-learn's searches maximise.

        Larger is always better, as scikit-learn expects: a measure of which smaller is better, as
        ``WKT(k=10)``, is negated. nDCG@10 for rankers without a ``measure``. Queries have no
        weights: ``sample_weight`` is there for pipelines, which may hand on None.
        """
        if sample_weight is not None:
            raise ArgumentError("score takes no sample_weight", hint="Leave it out.")
        data = as_training(X, y, qid, group)
        if not isinstance(data, Dataset):
            raise ArgumentError("score needs a data set in memory", hint="Use podium.measures.")
        measure: str | Measure = getattr(self, "measure", "nDCG@10")
        value = mean_value(measure, data, self.predict(data))
        return value if parse_measure(measure).larger_is_better else -value

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
        facts = {
            "parameters": parameters,
            "feature_names": list(self.feature_names_),
            "has_feature_names": self._named,
        }
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
        ranker._named = bool(archive.facts.get("has_feature_names", not are_numbers(names)))
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
    names = column_names(X)
    return Dataset.from_arrays(_matrix(X), y, qid=qid, group=group, feature_names=names)


def aligned_validation(validation: Training | None, names: tuple[str, ...]) -> Training | None:
    """Validation data with the features of the training data in the same order."""
    if isinstance(validation, Dataset):
        try:
            return aligned_dataset(validation, names)
        except DataError as error:
            raise DataError(
                f"validation has other features than the training data ({error.problem})",
                hint="Bring both to the same columns.",
            ) from error
    if validation is not None and tuple(validation.feature_names) != names:
        raise DataError(
            "validation has other features than the training data, or in another order",
            hint="Bring both to the same columns.",
        )
    return validation


def refuse_indifferent(data: Training, what: str) -> None:
    """Refuse data in which all documents of each query have one label: they say nothing."""
    if not any(map(has_preference, blocks_of(data))):
        raise no_preference(what, len(data))


def no_preference(what: str, queries: int) -> DataError:
    """The error of data in which each query's documents have equal labels."""
    return DataError(
        f"no document of the {what} data is preferred to another: in each of {queries} queries "
        "all labels are equal",
        hint="Check the labels.",
    )


def has_preference(block: Dataset) -> bool:
    """Whether a query has two documents with different labels.

    Example:
        >>> has_preference(Dataset.from_arrays([[1], [2], [3]], [0, 1, 1], group=[1, 2]))
        False
    """
    query = block.query_of_row
    same_query = query[1:] == query[:-1]
    return bool((same_query & (block.labels[1:] != block.labels[:-1])).any())


def mean_value(measure: str | Measure, data: Dataset, scores: Doubles) -> float:
    """The mean of a measure over the queries that have a value.

    The measure is not parsed before: another tool's name for it implies that tool's conventions.
    """
    return float(evaluate(measure, data, scores).means[measure])


def blocks_of(data: Training) -> Iterable[Dataset]:
    """The blocks of whole queries that a fit sums over, as often as it iterates."""
    return [data] if isinstance(data, Dataset) else _Shards(data)


def in_memory(data: Training) -> Dataset:
    """The whole of the data, for rankers that sort or bin every feature before they start."""
    return data.load() if isinstance(data, ShardSet) else data


class _Shards:
    """A shard set that can be gone through again and again."""

    def __init__(self, shards: ShardSet) -> None:
        self._shards = shards

    def __iter__(self) -> Iterator[Dataset]:
        return self._shards.blocks()


def _matrix(X: Any) -> Floats:
    # Rows first in memory, as in a data set: data frames have columns first, and sums in another
    # order are rounded differently.
    return np.ascontiguousarray(as_numbers(X, np.float32, "features", dimensions=2))
