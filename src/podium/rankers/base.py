"""The base class of rankers: fitting by query, predicting, ranking, saving."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Never, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn import exceptions
from sklearn.base import BaseEstimator

from podium.data import Dataset, Rankings, ShardSet
from podium.data.columns import are_numbers, column_names
from podium.data.definitions_hash import checked_hash, require_same_definitions
from podium.data.frames import html_table
from podium.data.numbers import infinite_feature
from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles, Floats
from podium.losses import Loss, parse_loss
from podium.measures import Measure, evaluate, parse_measure
from podium.rankers.categories import Categories, find_categories
from podium.rankers.communicator import SINGLE_PROCESS, Communicator
from podium.rankers.explanation import Explanation, adding_up, query_documents
from podium.rankers.feature_columns import aligned_dataset, aligned_matrix, require_same_count
from podium.rankers.fit_arguments import (
    EvalSet,
    check_callbacks,
    refuse_unknown_arguments,
    validation_arguments,
)
from podium.rankers.fit_progress import FitProgress, Progress
from podium.rankers.query_column import QUERY_COLUMN, with_query_column, without_query_column
from podium.rankers.sample_weights import (
    FitWeights,
    SampleWeight,
    fit_weights,
    without_zero_weights,
)
from podium.rankers.sparse_rows import SparseMatrix, SparseRows, is_sparse, sparse_matrix
from podium.rankers.storage import Archive, archive_bytes, read_archive, write_archive
from podium.rankers.training_data import (
    EvalSets,
    TrainingData,
    ValidationSets,
    aligned_validation,
    as_training_data,
    definitions_hash,
    feature_rows,
    join_sets,
    require_preferences,
)
from podium.registry import Registry

if TYPE_CHECKING:
    from podium.reports.figure import Figure


class NotFittedError(PodiumError, exceptions.NotFittedError):  # type: ignore[misc]
    """Raised by ``predict`` before ``fit``; also a scikit-learn ``NotFittedError``."""


class FitInterrupted(KeyboardInterrupt):
    """Raised when Ctrl-C stops a fit after its first step; the ranker keeps the best model so far.

    It is a ``KeyboardInterrupt``, so a search over several rankers stops as well. Catch it around
    ``fit`` to use or save the model. After any other error of a fit that has begun, or a plain
    ``KeyboardInterrupt``, the ranker is not fitted; arguments that are refused change nothing.
    """


class Ranker(BaseEstimator):  # type: ignore[misc]
    """A ranking loss and a scorer that minimizes it, as a scikit-learn estimator.

    Rows are documents. Their queries are given by ``qid`` (one id per row, in any order) or by
    ``group`` (the number of contiguous rows of each query). ``predict`` returns one score per row:
    larger is better, and scores are comparable within a query only.

    Columns are matched by name if the training data have names (a data frame, a data set, a Parquet
    file): rows to score may have them in any order, and a missing or additional column is an error.
    Columns of arrays and LETOR files are numbered from 1 and matched by position. A data frame may
    have the query ids in a column ``qid``, as in XGBoost, which is not a feature then.

    In scikit-learn's searches, pipelines and cross-validation, ``qid`` is passed on without
    ``set_fit_request`` where metadata routing is enabled; without routing, scores need the column.

    Attributes:
        n_features_in_: The number of features it was fitted on.
        feature_names_in_: Their names as an array; not defined if they only have numbers.
        feature_names_: Their names, or their numbers from 1.
        categories_: The categories of each categorical feature, in the order of their codes.
        definitions_hash_: The hash of the definitions that its features follow, or None.
        evals_result_: The measure of the validation queries after each step, as LightGBM has it:
            ``{"valid_0": {"nDCG@10": [...]}}``. With several sets, each has its history.
    """

    KINDS: ClassVar[Registry[type[Ranker]]] = Registry("ranker")

    takes_sparse: ClassVar[bool] = False
    """Whether it reads sparse matrices of SciPy without making them dense."""

    measures_steps: ClassVar[bool] = True
    """Whether validation queries are measured after each step."""

    streams: ClassVar[bool] = False
    """Whether it reads a shard set block by block instead of loading the whole set."""

    # What scikit-learn's metadata routing passes on without a request.
    __metadata_request__fit: ClassVar = dict.fromkeys(
        (
            *("qid", "group", "sample_weight", "callbacks"),
            *("eval_set", "eval_qid", "eval_group", "eval_names"),
        ),
        True,
    )
    __metadata_request__score: ClassVar = dict.fromkeys(("qid", "group", "sample_weight"), True)

    loss: Loss | str
    n_features_in_: int
    feature_names_: tuple[str, ...]
    categories_: dict[str, list[str]]
    definitions_hash_: str | None
    _named: bool

    def __init_subclass__(cls, *, abstract: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not abstract:
            Ranker.KINDS[cls.__name__] = cls

    def fit(
        self,
        X: ArrayLike | SparseMatrix | TrainingData,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: SampleWeight | None = None,
        eval_set: TrainingData | EvalSets | None = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_names: Sequence[str] | None = None,
        callbacks: Sequence[Callable[[Any], None]] | None = None,
        progress: Progress | None = None,
        **unknown: Never,
    ) -> Self:
        """Fit the ranker to features and labels of queries.

        Args:
            X: Features, one row per document: an array, a data frame or, for ``LinearRanker``, a
                sparse matrix of SciPy; or a data set or shard set, without ``y``.
            y: One label per row: grades, a full order or a top-k order.
            qid: One query id per row; or
            group: the number of rows of each query.
            sample_weight: One weight per query (in the order of the queries' first rows), one per
                row, or ``{query id: weight}``. A query's weight multiplies its loss. Weights that
                differ within a query need a loss in which a row has a weight: ``SquaredError``,
                where it multiplies the row's squared error; or, except with linear rankers,
                ``LambdaLoss`` and losses of pairs, where it multiplies the row's gradient, as in
                LightGBM. Only ratios of weights matter to linear and boosted rankers.
            eval_set: Validation queries: the best model on them during training is kept. A data
                set, or ``[(X, y)]`` as in LightGBM; of several, ``[(X, y), ...]``, the last one
                that is not the training data (called ``training``) decides. With
            eval_qid: ``[qid, ...]``, one query id per row; or
            eval_group: ``[group, ...]``, the number of rows of each query.
            eval_names: Names of the sets instead of ``valid_0``, ``valid_1``, ...
            callbacks: Called after each step as LightGBM calls them, such as
                ``lightgbm.log_evaluation(10)`` and ``lightgbm.early_stopping(20)``.
            progress: Called after each step.
            unknown: There are no others: those of LightGBM's ``fit`` are refused with what to give
                instead.

        Raises:
            FitInterrupted: After Ctrl-C, if there is a model so far; the ranker keeps it.
            DataError: If no query of the training or validation data prefers a document to another.
        """
        refuse_unknown_arguments(unknown)
        self.check_parameters()
        eval_sets = validation_arguments(eval_set, eval_qid, eval_group, eval_names, (X, y))
        check_callbacks(callbacks, has_validation=bool(eval_sets))
        X, qid = with_query_column(X, qid, group)
        self._require_readable(X)
        categories = find_categories(X)
        if categories and not self._takes_categories():
            raise self._no_categories(next(iter(categories)))
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
            held_out = join_sets(validation) if self.measures_steps else validation[sets.deciding]
        options: dict[str, Any] = {}
        if sample_weight is not None:
            if isinstance(data, SparseRows):
                weights = fit_weights(sample_weight, data.queries, qid)
            else:
                weights = fit_weights(sample_weight, data, qid)
                data, weights = without_zero_weights(data, weights)
            require_preferences(data, "training")
            self._check_weights(weights)
            options["weights"] = weights
        named = not isinstance(X, Dataset | ShardSet) and column_names(X) is not None
        with self._fitting(names, named or not are_numbers(names), definitions_hash(data)):
            self.categories_ = categories
            following = FitProgress(self, sets, callbacks or (), progress)
            self._fit(data, held_out, following, **options)
        return self

    def _require_readable(self, X: object) -> None:
        if is_sparse(X) and not self.takes_sparse:
            raise ArgumentError(
                f"{type(self).__name__} does not take sparse matrices",
                hint="Use LinearRanker, or give X.toarray() if that fits in memory.",
            )

    def _takes_categories(self) -> bool:
        """Whether categorical columns of a data frame may be features."""
        return False

    def _no_categories(self, column: str) -> DataError:
        return DataError(
            f"column {column!r} is of categories, which this {type(self).__name__} does not take",
            hint="Encode them, as by sklearn.preprocessing.OneHotEncoder, or use TreeRanker with "
            "LightGBM.",
        )

    def _validation_data(self, eval_set: EvalSet, categories: Categories) -> TrainingData:
        X, qid = with_query_column(eval_set.X, eval_set.qid, eval_set.group)
        self._require_readable(X)
        if qid is None and eval_set.group is None and not isinstance(X, Dataset | ShardSet):
            raise ArgumentError(
                "the rows of eval_set are not grouped by query",
                hint="Give either eval_qid=[qid] or eval_group=[group], one for each set.",
            )
        return as_training_data(X, eval_set.y, qid, eval_set.group, categories)

    def _check_weights(self, weights: FitWeights) -> None:
        """Raise an ArgumentError for weights that the ranker or its loss cannot use."""
        if "weights" not in signature(self._fit).parameters:
            raise ArgumentError(
                f"{type(self).__name__} does not support sample_weight", hint="Leave it out."
            )
        if hasattr(self, "loss") and self.loss_function().row_weighting is None:
            weights.require_queries_only(repr(self.loss_function()))

    @contextmanager
    def _fitting(
        self, names: tuple[str, ...], named: bool, definitions: str | None
    ) -> Iterator[None]:
        """Set the features during a fit, and unset them if it fails."""
        if not names:
            raise DataError("there is no feature to learn from", hint="Give at least one.")
        self.feature_names_, self.n_features_in_, self._named = names, len(names), named
        self.categories_, self.definitions_hash_ = {}, definitions
        self.evals_result_: dict[str, dict[str, list[float]]] = {}
        try:
            yield
        except FitInterrupted:
            raise
        except BaseException:
            del self.feature_names_, self.n_features_in_, self._named, self.categories_
            del self.definitions_hash_
            raise

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The features' names; as in scikit-learn, not defined if columns only had numbers."""
        if not hasattr(self, "feature_names_") or not self._named:
            raise AttributeError("feature_names_in_")
        return np.array(self.feature_names_, dtype=object)

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are invalid for any data."""

    def predict(self, X: ArrayLike | SparseMatrix | Dataset) -> Doubles:
        """Score each row.

        Args:
            X: Rows with the features of the fit; columns with names may be in any order.
        """
        self._require_fitted()
        if isinstance(X, Dataset):
            return self._predict(self._aligned(X).features)
        self._require_readable(X)
        if is_sparse(X):
            return self._predict_sparse(self._checked_sparse(X))
        return self._predict(self._checked_matrix(X))

    def _checked_sparse(self, X: Any) -> Any:
        matrix = sparse_matrix(X)
        require_same_count(matrix.shape[1], self.n_features_in_)
        return matrix

    def _checked_matrix(self, X: Any) -> Floats:
        """Return the rows of an array or data frame with columns in the order of the fit."""
        if QUERY_COLUMN not in self.feature_names_:
            X = without_query_column(X)
        matrix = feature_rows(X, self.categories_)
        if np.isinf(matrix).any():
            raise infinite_feature()
        return aligned_matrix(X, matrix, self.feature_names_, self._named)

    def explain(
        self, X: ArrayLike | SparseMatrix | Dataset, *, query: str | None = None
    ) -> Explanation:
        """Explain the order of a query's documents: what each feature contributes to their scores.

        Contributions add up: over the features, to the difference between a document's score and
        the mean of the query, or between the scores of two documents (``explanation.pair(a, b)``).
        How they are defined depends on the scorer, and ``explanation.method`` says it:

        - linear: the weight times the difference of the values.
        - boosted thresholds: the sum of the feature's weak rankers.
        - trees: the engine's own Shapley values (``pred_contrib``), which take what a feature
          tells from the rows of training that reach each node.
        - networks: integrated gradients from the query's mean document, exactly.
        - cascades: Shapley values of the rankers' votes; ``explanation.parts`` explains the
          scores of each ranker.

        Args:
            X: Rows with the features of the fit: a data set, or an array or data frame. An array
                is one query.
            query: The id of the query, where there are several.

        Example:
            >>> from podium.rankers import LinearRanker
            >>> data = Dataset.from_arrays([[1.0, 0], [2.0, 0]], [0, 1], qid=["q", "q"])
            >>> explanation = LinearRanker("ListNet()").fit(data).explain(data, query="q")
            >>> pair = explanation.pair("1", "0")
            >>> bool(pair.contributions.sum() == pair.difference), pair.contributions[1].item()
            (True, 0.0)
        """
        self._require_fitted()
        # A number would be taken for the position of a query.
        return self._explain(self._one_query(X, None if query is None else str(query)))

    def _one_query(self, X: Any, query: str | None) -> Dataset:
        """Return the rows of one query, with features in the order of the fit."""
        if isinstance(X, ShardSet):
            raise ArgumentError("explain needs a data set in memory", hint="Give X.load().")
        if not isinstance(X, Dataset):
            self._require_readable(X)
            _, qid = with_query_column(X, None, None)
            if is_sparse(X):
                matrix = self._checked_sparse(X).toarray().astype(np.float32)
            else:
                matrix = self._checked_matrix(X)
            groups: dict[str, Any] = {"qid": qid}
            if qid is None:
                groups = {"group": [len(matrix)], "query_ids": ["" if query is None else query]}
            X = Dataset.from_arrays(
                matrix, np.zeros(len(matrix)), feature_names=self.feature_names_, **groups
            )
        if query is None:
            if len(X) != 1:
                raise ArgumentError(
                    f"there are {len(X)} queries", hint="Name the one to explain: query=."
                )
            return aligned_dataset(X, self.feature_names_)
        return aligned_dataset(X.select([query]), self.feature_names_)

    def _explain(self, data: Dataset) -> Explanation:
        scores = self.predict(data)
        return Explanation(
            *query_documents(data),
            self.feature_names_,
            scores,
            adding_up(self._contributions(data.features), scores, type(self).__name__),
            data.features.astype(np.float64),
            self.contribution_method(),
            self.categories_,
        )

    def _contributions(self, _features: Floats) -> Doubles:
        """Return what each feature contributes to each score, but for a constant of the query."""
        raise ArgumentError(
            f"{type(self).__name__} does not tell what features contribute",
            hint="Explain a linear, tree, boosted or neural ranker.",
        )

    def contribution_method(self) -> str:
        """Return how contributions of features are defined, as a phrase."""
        return "the ranker's own contributions"

    def _aligned(self, data: Dataset) -> Dataset:
        """Return data with the columns of the fit; a DataError if they are defined otherwise."""
        require_same_definitions(
            self.definitions_hash_, data.definitions_hash, "the ranker", "the data"
        )
        return aligned_dataset(data, self.feature_names_)

    def _repr_html_(self) -> str:
        # scikit-learn's diagram loads styles and scripts; parameters in a table say as much.
        values = self.get_params(deep=False)
        table = pa.table(
            {"parameter": list(values), "value": [repr(value) for value in values.values()]}
        )
        state = "fitted" if self.__sklearn_is_fitted__() else "not fitted"
        return html_table(table, caption=f"{type(self).__name__} ({state})", rows=100)

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} is not fitted. Call fit first.")

    def rank(self, data: Dataset, *, name: str | None = None) -> Rankings:
        """Rank the documents of a data set, as rankings to evaluate or to write as a run."""
        documents: Any = data.document_ids
        if documents is None:
            positions = np.arange(data.rows) - data.offsets[data.query_of_row]
            documents = [str(position) for position in positions]
        return Rankings.from_columns(
            data.query_id_of_row(),
            documents,
            self.predict(data),
            name=type(self).__name__ if name is None else name,
        )

    def score(
        self,
        X: ArrayLike | SparseMatrix | Dataset,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: SampleWeight | None = None,
    ) -> float:
        """Return the mean of the ranker's ``measure``, for scikit-learn's searches to maximize.

        Larger is always better, as scikit-learn expects: a measure for which smaller is better,
        such as ``WKT(k=10)``, is negated. Rankers without a ``measure`` use nDCG@10. With
        ``sample_weight``, one per query or the same for all rows of a query, it is the weighted
        mean.
        """
        X, qid = with_query_column(X, qid, group)
        if qid is None and group is None and not isinstance(X, Dataset | ShardSet):
            raise ArgumentError(
                "score needs the query of each row",
                hint="Give qid= or group=. For scikit-learn's searches and cross-validation, call "
                "sklearn.set_config(enable_metadata_routing=True), or give a data frame with a "
                f"column {QUERY_COLUMN!r}.",
            )
        self._require_fitted()
        self._require_readable(X)
        data = as_training_data(X, y, qid, group, self.categories_)
        if isinstance(data, ShardSet):
            raise ArgumentError("score needs a data set in memory", hint="Use podium.measures.")
        measure: str | Measure = getattr(self, "measure", "nDCG@10")
        if isinstance(data, SparseRows):
            data, scores = data.queries, self.predict(data.features)
        else:
            scores = self.predict(data)
        weights = None
        if sample_weight is not None:
            weights = fit_weights(sample_weight, data, qid)
            weights.require_queries_only(f"the mean of {measure}")
        value = mean_value(measure, data, scores, None if weights is None else weights.queries)
        return value if parse_measure(measure).larger_is_better else -value

    def plot(self, kind: Literal["learning curve", "importance"] = "learning curve") -> Figure:
        """Draw the fitted ranker: an SVG picture that notebooks show, with ``save(path)``.

        Args:
            kind: ``"learning curve"``: the measure of the validation queries after each step of
                a fit with an ``eval_set``. ``"importance"``: the features with the largest
                ``feature_importances_`` or, of a linear ranker, weights ``coef_``.

        Example:
            >>> from podium.rankers import LinearRanker
            >>> data = Dataset.from_arrays([[1.0], [2.0]], [0, 1], group=[2])
            >>> LinearRanker("ListNet()").fit(data, eval_set=data).plot()
            Figure('nDCG@10 of the validation queries: best 1.0000 at step 1')
        """
        from podium.rankers.plots import importance_bars, learning_curve

        self._require_fitted()
        if kind == "learning curve":
            measure: str | Measure = getattr(self, "measure", "nDCG@10")
            better = parse_measure(measure).larger_is_better
            return learning_curve(getattr(self, "evals_result_", {}), larger_is_better=better)
        if kind != "importance":
            raise ArgumentError(f"kind is {kind!r}", hint="Give 'learning curve' or 'importance'.")
        for attribute, what in (
            ("feature_importances_", "Importance of features"),
            ("coef_", "Weights of features"),
        ):
            if hasattr(self, attribute):
                values = np.asarray(getattr(self, attribute), np.float64)
                return importance_bars(self.feature_names_, values, what)
        raise ArgumentError(
            f"{type(self).__name__} has no importance of features",
            hint="Use TreeRanker or LinearRanker.",
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted ranker without pickle; equal rankers give equal bytes."""
        write_archive(self.archive(), path)

    def to_bytes(self) -> bytes:
        """Return the bytes that ``save`` writes."""
        return archive_bytes(self.archive())

    def archive(self) -> Archive:
        """Return the content that ``save`` writes: parameters, features and the fitted model."""
        fitted = self._archive()
        parameters = {
            name: repr(value) if isinstance(value, Loss | Measure) else value
            for name, value in self.get_params(deep=False).items()
            if not _rankers_in(value)  # those are saved with the fitted model
        }
        metadata = {
            "parameters": parameters,
            "feature_names": list(self.feature_names_),
            "has_feature_names": self._named,
        }
        if self.categories_:
            metadata["categories"] = self.categories_
        if self.definitions_hash_ is not None:
            metadata["definitions_hash"] = self.definitions_hash_
        kind = type(self).__name__
        return Archive(kind, metadata | fitted.metadata, fitted.arrays, fitted.blobs)

    def restore(self, archive: Archive) -> Self:
        """Become fitted as the ranker whose ``archive`` it is; parameters stay as they are."""
        names = tuple(map(str, archive.metadata["feature_names"]))
        definitions = checked_hash(archive.metadata.get("definitions_hash"))
        with self._fitting(names, bool(archive.metadata["has_feature_names"]), definitions):
            self.categories_ = _checked_categories(archive.metadata.get("categories", {}), names)
            self._restore(archive)
        return self

    def loss_function(self) -> Loss:
        """Return the loss, parsed if ``loss`` is a string."""
        loss = parse_loss(self.loss) if isinstance(self.loss, str) else self.loss
        if not isinstance(loss, Loss):
            raise ArgumentError(
                f"{loss!r} is not a loss",
                hint="Give a loss of podium.losses, or its text, such as 'ListMLE(k=10)'.",
            )
        return loss

    @abstractmethod
    def _fit(
        self, data: TrainingData, validation: TrainingData | None, progress: Progress | None
    ) -> None:
        """Fit the scorer to checked data.

        A ranker that supports ``sample_weight`` takes ``weights: FitWeights | None = None`` too.
        """

    @abstractmethod
    def _predict(self, features: Floats) -> Doubles:
        """Score checked features."""

    def _predict_sparse(self, features: Any) -> Doubles:
        """Score checked sparse features; only called if ``takes_sparse``."""
        raise NotImplementedError

    @abstractmethod
    def _archive(self) -> Archive:
        """Return the fitted model, without the parameters and the features' names."""

    @abstractmethod
    def _restore(self, archive: Archive) -> None:
        """Restore the fitted model that ``_archive`` returned."""


class DistributedRanker(Ranker, abstract=True):
    """A ranker that several processes can fit together, each on its own queries.

    Each process calls ``fit_partition`` with its own queries and a communicator, and all of them
    end with the same model. ``podium.cluster.fit`` does this on Ray.
    """

    @property
    @abstractmethod
    def backend(self) -> str:
        """The library that trains: ``lightgbm``, ``xgboost`` or ``torch``."""

    def fit_partition(
        self,
        data: TrainingData,
        communicator: Communicator,
        *,
        eval_set: TrainingData | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit the ranker together with other processes, to the queries of this one.

        Args:
            data: Training queries of this process.
            communicator: The processes of the fit.
            eval_set: Validation queries of this process; those of all processes count together.
            progress: Called after each step.
        """
        self.check_parameters()
        names = tuple(data.feature_names)
        with self._fitting(names, not are_numbers(names), definitions_hash(data)):
            self._fit(data, eval_set, progress, communicator)
        return self

    @abstractmethod
    def _fit(
        self,
        data: TrainingData,
        validation: TrainingData | None,
        progress: Progress | None,
        communicator: Communicator = SINGLE_PROCESS,
    ) -> None:
        """Fit the scorer to checked data."""


def load_ranker(source: str | os.PathLike[str] | BytesIO) -> Ranker:
    """Load a ranker saved by ``Ranker.save``, from its file or its bytes.

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
        return kind(**archive.metadata["parameters"]).restore(archive)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"is not a ranker of this Podium ({error})",
            path=None if isinstance(source, BytesIO) else source,
            hint="Train and save it again.",
        ) from error


def nested_rankers(ranker: Ranker) -> list[Ranker]:
    """Return the rankers that are parameters of a ranker, such as those of a cascade."""
    values = ranker.get_params(deep=False).values()
    return [nested for value in values for nested in _rankers_in(value)]


def _rankers_in(value: object) -> list[Ranker]:
    items = value if isinstance(value, list | tuple) else [value]
    return [item for item in items if isinstance(item, Ranker)]


def mean_value(
    measure: str | Measure, data: Dataset, scores: Doubles, sample_weight: Doubles | None = None
) -> float:
    """Return the mean of a measure over the queries that have a value.

    The measure is passed on unparsed: another tool's name for it implies that tool's conventions.
    """
    return float(evaluate(measure, data, scores, sample_weight=sample_weight).means[measure])


def _checked_categories(content: Any, names: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the categories of a saved ranker; raise a ValueError if they are malformed."""
    if not isinstance(content, dict) or not set(content) <= set(names):
        raise ValueError("the categories are of other features")
    for values in content.values():
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise ValueError("the categories are not strings")
    return content
