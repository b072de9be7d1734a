"""Data that rankers are fitted on: arrays, data sets and shard sets, and their validation sets."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from numpy.typing import ArrayLike

from podium.data import Dataset, ShardSet, concat_datasets
from podium.data.columns import are_numbers, column_names
from podium.data.definitions_hash import require_same_definitions
from podium.errors import ArgumentError, DataError
from podium.rankers.categories import Categories, find_categories
from podium.rankers.fit_arguments import EvalSet
from podium.rankers.inputs import (
    QUERY_COLUMN,
    FittedFeatures,
    aligned_dataset,
    feature_rows,
    with_query_column,
)
from podium.rankers.sparse_rows import SparseMatrix, SparseRows, is_sparse

TrainingData: TypeAlias = "Dataset | ShardSet | SparseRows"
"""The data other than arrays that a ranker can be fitted on."""

EvalSets: TypeAlias = "tuple[Any, Any] | list[TrainingData] | list[tuple[Any, Any]]"
"""Validation queries as LightGBM takes them: ``(X, y)``, or a list of these."""


@dataclass(frozen=True)
class ValidationSets:
    """Which of the validation queries are of which set.

    Attributes:
        sizes: The number of queries of each set by its name, in the order of the queries.
        training: The names of those that are the training data themselves.
    """

    sizes: Mapping[str, int]
    training: frozenset[str] = frozenset()

    @property
    def first_queries(self) -> tuple[int, ...]:
        """The first query of each set but the first."""
        return tuple(accumulate(self.sizes.values()))[:-1]

    @property
    def held_out(self) -> list[str]:
        """The names of the sets that are not the training data; of all, if there is no other."""
        names = list(self.sizes)
        return [name for name in names if name not in self.training] or names

    @property
    def deciding(self) -> str:
        """The set whose measure decides which model is kept: the last, as in XGBoost."""
        return self.held_out[-1]


class FitInputs(NamedTuple):
    """What a fit works on.

    Attributes:
        data: The training data.
        validation: The validation data, of all sets together; None without any.
        sets: Which of them are of which set.
        qid: The query of each training row, if it was given so.
        features: The features.
    """

    data: TrainingData
    validation: TrainingData | None
    sets: ValidationSets | None
    qid: Any
    features: FittedFeatures


class InputRules(NamedTuple):
    """What a ranker takes.

    Attributes:
        ranker: Its class.
        sparse: Whether it takes sparse matrices.
        categories: Whether it takes categorical columns.
        several_sets: Whether all validation sets are measured, or only the one that decides.
    """

    ranker: str
    sparse: bool
    categories: bool
    several_sets: bool

    def require_readable(self, X: object) -> None:
        """Raise an ArgumentError for a sparse matrix where it is not taken."""
        if is_sparse(X) and not self.sparse:
            raise ArgumentError(
                f"{self.ranker} does not take sparse matrices",
                hint="Use LinearRanker, or give X.toarray() if that fits in memory.",
            )

    def fit_inputs(
        self, X: Any, y: Any, qid: Any, group: Any, eval_sets: Mapping[str, EvalSet]
    ) -> FitInputs:
        """Read the training data and the validation data of a fit."""
        X, qid = with_query_column(X, qid, group)
        self.require_readable(X)
        categories = find_categories(X)
        if categories and not self.categories:
            raise DataError(
                f"column {next(iter(categories))!r} is of categories, which this {self.ranker} "
                "does not take",
                hint="Encode them, as by sklearn.preprocessing.OneHotEncoder, or use TreeRanker "
                "with LightGBM.",
            )
        data = as_training_data(X, y, qid, group, categories)
        names = tuple(data.feature_names)
        validation = {
            name: aligned_validation(
                self._validation_data(each, categories), names, definitions_hash(data)
            )
            for name, each in eval_sets.items()
        }
        require_preferences(data, "training")
        held_out = sets = None
        if validation:
            for each in validation.values():
                require_preferences(each, "validation")
            training = frozenset(name for name, each in eval_sets.items() if each.is_training)
            sets = ValidationSets({name: len(each) for name, each in validation.items()}, training)
            held_out = join_sets(validation) if self.several_sets else validation[sets.deciding]
        named = not isinstance(X, Dataset | ShardSet) and column_names(X) is not None
        if "score" in names:
            warnings.warn(
                "the column 'score' is a feature here, and elsewhere the score of a ranking: "
                "rename it if it is a feature, or leave it out",
                UserWarning,
                stacklevel=4,
            )
        features = FittedFeatures(
            names, named or not are_numbers(names), categories, definitions_hash(data)
        )
        return FitInputs(data, held_out, sets, qid, features)

    def _validation_data(self, eval_set: EvalSet, categories: Categories) -> TrainingData:
        X, qid = with_query_column(eval_set.X, eval_set.qid, eval_set.group)
        self.require_readable(X)
        if qid is None and eval_set.group is None and not isinstance(X, Dataset | ShardSet):
            raise ArgumentError(
                "the rows of eval_set are not grouped by query",
                hint="Give either eval_qid=[qid] or eval_group=[group], one for each set.",
            )
        return as_training_data(X, eval_set.y, qid, eval_set.group, categories)


def join_sets(sets: Mapping[str, TrainingData]) -> TrainingData:
    """Return the queries of all sets, one set after the other.

    Queries of two sets may have the same id, as those of training and validation data often do.
    """
    if len(sets) == 1:
        return next(iter(sets.values()))
    renamed = []
    for name, data in sets.items():
        if not isinstance(data, Dataset):
            raise ArgumentError(
                f"the validation set {name!r} is not in memory, or sparse",
                hint="Give only one set, or arrays, data frames and data sets.",
            )
        ids = pa.array([f"{name}:{query}" for query in data.query_ids.to_pylist()])
        renamed.append(replace(data, query_ids=ids.cast(data.query_ids.type)))
    return concat_datasets(renamed)


def as_training_data(
    X: ArrayLike | SparseMatrix | TrainingData,
    y: ArrayLike | None,
    qid: ArrayLike | None,
    group: ArrayLike | None,
    categories: Categories | None = None,
) -> TrainingData:
    """Return arrays and their queries as a data set; a data set or shard set as it is."""
    if isinstance(X, Dataset | ShardSet):
        if y is not None or qid is not None or group is not None:
            raise ArgumentError(
                "a data set has its own labels and queries", hint="Leave out y, qid and group."
            )
        return X
    if y is None:
        raise ArgumentError("labels are missing", hint="Give y, or a data set as X.")
    if is_sparse(X):
        return SparseRows.from_arrays(X, y, qid=qid, group=group)
    names = column_names(X)
    return Dataset.from_arrays(
        feature_rows(X, categories or {}), y, qid=qid, group=group, feature_names=names
    )


def scored_data(
    rules: InputRules, X: Any, y: Any, qid: Any, group: Any, categories: Categories
) -> tuple[Dataset, Any, Any]:
    """Return labelled queries, what a ranker scores of them, and the query of each row."""
    X, qid = with_query_column(X, qid, group)
    if qid is None and group is None and not isinstance(X, Dataset | ShardSet):
        raise ArgumentError(
            "score needs the query of each row",
            hint="Give qid= or group=. For scikit-learn's searches and cross-validation, call "
            "sklearn.set_config(enable_metadata_routing=True), or give a data frame with a "
            f"column {QUERY_COLUMN!r}.",
        )
    rules.require_readable(X)
    data = as_training_data(X, y, qid, group, categories)
    if isinstance(data, ShardSet):
        raise ArgumentError("score needs a data set in memory", hint="Use podium.measures.")
    if isinstance(data, SparseRows):
        return data.queries, data.features, qid
    return data, data, qid


def aligned_validation(
    validation: TrainingData, names: tuple[str, ...], definitions: str | None
) -> TrainingData:
    """Return validation data with the features of the training data in the same order.

    Args:
        validation: The validation data.
        names: The features of the training data.
        definitions: The hash of the definitions that they follow, if known.
    """
    require_same_definitions(
        definitions, definitions_hash(validation), "the training data", "the validation data"
    )
    if isinstance(validation, Dataset):
        try:
            return aligned_dataset(validation, names)
        except DataError as error:
            raise DataError(
                f"the validation data have other features than the training data ({error.problem})",
                hint="Give both the same columns.",
            ) from error
    if tuple(validation.feature_names) != names:
        raise DataError(
            "the validation data have other features than the training data, or in another order",
            hint="Give both the same columns in the same order.",
        )
    return validation


def definitions_hash(data: TrainingData) -> str | None:
    """Return the hash of the definitions that the features of data follow, if known."""
    return None if isinstance(data, SparseRows) else data.definitions_hash


def require_preferences(data: TrainingData, role: str) -> None:
    """Raise a DataError if all documents of each query have equal labels."""
    if not any(map(has_preference, query_blocks(data))):
        raise no_preferences_error(role, len(data))


def no_preferences_error(role: str, queries: int) -> DataError:
    """Return the error for data in which the documents of each query have equal labels.

    Args:
        role: What the data are for: ``training`` or ``validation``.
        queries: The number of queries.
    """
    return DataError(
        f"no document of the {role} data is preferred to another: in each of {queries} queries "
        "all labels are equal",
        hint="Check the labels.",
    )


def has_preference(block: Dataset) -> bool:
    """Return whether any query has two documents with different labels.

    Example:
        >>> has_preference(Dataset.from_arrays([[1], [2], [3]], [0, 1, 1], group=[1, 2]))
        False
    """
    query = block.query_of_row
    same_query = query[1:] == query[:-1]
    return bool((same_query & (block.labels[1:] != block.labels[:-1])).any())


def query_blocks(data: TrainingData) -> Iterable[Dataset]:
    """Return the data as blocks of whole queries, to iterate over any number of times.

    The block of a sparse matrix has no features.
    """
    if isinstance(data, SparseRows):
        return [data.queries]
    return [data] if isinstance(data, Dataset) else _ShardBlocks(data)


class _ShardBlocks:
    """The blocks of a shard set, read anew by each iteration."""

    def __init__(self, shards: ShardSet) -> None:
        self._shards = shards

    def __iter__(self) -> Iterator[Dataset]:
        return self._shards.blocks()


def in_memory(data: TrainingData) -> Dataset:
    """Load the data, for rankers that sort or bin every feature before they start."""
    if isinstance(data, SparseRows):
        raise ArgumentError("a sparse matrix is not a data set", hint="Give X.toarray().")
    return data.load() if isinstance(data, ShardSet) else data
