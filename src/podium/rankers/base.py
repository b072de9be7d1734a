"""The base class of rankers: fitting by query, predicting, ranking, explaining, saving."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Never, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from sklearn import exceptions
from sklearn.base import BaseEstimator

from podium.data import Dataset, Rankings
from podium.data.columns import are_numbers
from podium.data.frames import html_table
from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles, Floats
from podium.losses import Loss
from podium.losses.names import parse_loss
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.rankers.communicator import SINGLE_PROCESS, Communicator
from podium.rankers.explanation import Explanation, explain_features
from podium.rankers.fit_arguments import (
    check_callbacks,
    refuse_unknown_arguments,
    validation_arguments,
)
from podium.rankers.fit_progress import FitProgress, Progress
from podium.rankers.inputs import FittedFeatures
from podium.rankers.position_term import PositionTerm
from podium.rankers.sample_weights import (
    FitWeights,
    SampleWeight,
    fit_weights,
    without_zero_weights,
)
from podium.rankers.sparse_rows import SparseMatrix, SparseRows, is_sparse
from podium.rankers.storage import Archive, archive_bytes, write_archive
from podium.rankers.training_data import (
    EvalSets,
    InputRules,
    TrainingData,
    definitions_hash,
    require_preferences,
    scored_data,
)
from podium.rankers.validation_monitor import mean_value
from podium.registry import Registry
from podium.scorers.feature_names import check_feature_names
from podium.scorers.models import FittedModel

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
        position_bias_: The offset of each rank of a fit with ``position``, relative to the first;
            not saved.
    """

    KINDS: ClassVar[Registry[type[Ranker]]] = Registry("ranker")

    reads_features: bool = True
    """Whether it scores documents by features."""

    reads_texts: bool = False
    """Whether it scores them by their texts."""

    whole_queries: ClassVar[bool] = False
    """Whether the score of a document depends on the other documents of its query."""

    takes_sparse: ClassVar[bool] = False
    """Whether it reads sparse matrices of SciPy without making them dense."""

    takes_categories: ClassVar[bool] = False
    """Whether categorical columns of a data frame may be features."""

    takes_weights: ClassVar[bool] = False
    """Whether ``fit`` takes ``sample_weight``; then ``_fit`` takes ``weights``."""

    has_loss: ClassVar[bool] = False
    """Whether it minimizes its parameter ``loss``."""

    measures_steps: ClassVar[bool] = True
    """Whether validation queries are measured after each step."""

    streams: ClassVar[bool] = False
    """Whether it reads a shard set block by block instead of loading the whole set."""

    single_values: bool = True
    """Whether it compares single-precision numbers, as rankers do that Podium trained."""

    scores_fast: ClassVar[bool] = True
    """Whether its own code is the fastest for the documents of one query; if not, ``podium serve``
    scores by its ``fitted_model``."""

    importance: ClassVar[tuple[str, str] | None] = None
    """The attribute with the importance of features, and what that is."""

    extra: ClassVar[str] = "rankers"
    """What has to be installed to score with it: ``podium-rank[extra]``."""

    limits: ClassVar[tuple[str, ...]] = ()
    """What a model card says of the documents that it cannot score, or scores otherwise."""

    # What scikit-learn's metadata routing passes on without a request.
    __metadata_request__fit: ClassVar = dict.fromkeys(
        (
            *("qid", "group", "sample_weight", "position", "callbacks"),
            *("eval_set", "eval_qid", "eval_group", "eval_names"),
        ),
        True,
    )
    __metadata_request__score: ClassVar = dict.fromkeys(("qid", "group", "sample_weight"), True)

    loss: Loss | str
    measure: str | Measure = "nDCG@10"
    features_: FittedFeatures
    evals_result_: dict[str, dict[str, list[float]]]
    position_bias_: dict[str, float]

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
        position: ArrayLike | None = None,
        position_regularization: float | None = None,
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
            position: The rank at which each row was shown, if labels are clicks; or any context
                that decides how often a row was examined, such as ``"phone 3"``. The loss sees each
                score plus an offset of the rank, which is learned with the scores and left out of
                predictions, as ``Dataset(position=)`` in LightGBM for its own loss.
            position_regularization: The weight of an L2 penalty of each row's offset; by default 0,
                or LightGBM's ``lambdarank_position_bias_regularization`` if that is a parameter.
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
        data, validation, sets, qid, features = self._rules().fit_inputs(
            X, y, qid, group, eval_sets
        )
        options: dict[str, Any] = {}
        queries = data.queries if isinstance(data, SparseRows) else data
        term = self._position_term(position, position_regularization, queries, qid)
        if sample_weight is not None or term is not None:
            weights = FitWeights(np.ones(len(data)))
            if sample_weight is not None:
                weights = fit_weights(sample_weight, queries, qid)
            weights = replace(weights, position=term)
            if not isinstance(data, SparseRows):
                data, weights = without_zero_weights(data, weights)
            require_preferences(data, "training")
            self._check_weights(weights)
            options["weights"] = weights
        with self._fitting(features):
            following = FitProgress(self, sets, callbacks or (), progress)
            try:
                self._fit(data, validation, following, **options)
            finally:
                self.position_bias_ = {} if term is None else term.bias()
        return self

    def _position_term(
        self, position: ArrayLike | None, regularization: float | None, data: Any, qid: Any
    ) -> PositionTerm | None:
        own = self._position_regularization()
        if position is None:
            if regularization is not None or own is not None:
                raise ArgumentError(
                    "offsets of ranks are regularized, but there are none",
                    hint="Give fit position=, the rank at which each row was shown.",
                )
            return None
        if not self.has_loss or not self.takes_weights:
            raise ArgumentError(
                f"{type(self).__name__} has no loss that could take position",
                hint="Use a linear, tree, neural or text ranker.",
            )
        if not isinstance(data, Dataset):
            raise ArgumentError("a shard set has no position", hint="Load it: shards.load().")
        if regularization is None:
            regularization = own or 0.0
        return PositionTerm.from_rows(position, regularization, data, qid)

    def _position_regularization(self) -> float | None:
        """Return the regularization of offsets that a parameter gives, if any."""
        return None

    def _rules(self) -> InputRules:
        return InputRules(
            type(self).__name__, self.takes_sparse, self.takes_categories, self.measures_steps
        )

    def _check_weights(self, weights: FitWeights) -> None:
        """Raise an ArgumentError for weights that the ranker or its loss cannot use."""
        if not self.takes_weights:
            raise ArgumentError(
                f"{type(self).__name__} does not support sample_weight", hint="Leave it out."
            )
        if self.has_loss and self.loss_function().row_weighting is None:
            weights.require_queries_only(repr(self.loss_function()))

    @contextmanager
    def _fitting(self, features: FittedFeatures) -> Iterator[None]:
        """Set the features during a fit, and unset them if it fails."""
        if not features.names:
            raise DataError("there is no feature to learn from", hint="Give at least one.")
        self.features_, self.evals_result_ = features, {}
        try:
            yield
        except FitInterrupted:
            raise
        except BaseException:
            del self.features_
            raise

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The features' names, or their numbers from 1."""
        return self.features_.names

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return len(self.features_.names)

    @property
    def categories_(self) -> dict[str, list[str]]:
        """The categories of each categorical feature, in the order of their codes."""
        return self.features_.categories

    @property
    def definitions_hash_(self) -> str | None:
        """The hash of the definitions that the features follow, or None."""
        return self.features_.definitions_hash

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The features' names; as in scikit-learn, not defined if columns only had numbers."""
        if not self.features_.named:
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
            return self._predict(self.features_.data_set(X).features)
        self._rules().require_readable(X)
        if is_sparse(X):
            return self._predict_sparse(self.features_.sparse(X))
        return self._predict(self.features_.matrix(X))

    def score_query(
        self,
        rows: Any,
        pairs: Sequence[tuple[str, str]] = (),  # noqa: ARG002
    ) -> Doubles:
        """Score the documents of one query, without checks.

        Args:
            rows: Their features, in the order of the fit.
            pairs: The query and each document as texts, for rankers with ``reads_texts``.
        """
        return self._predict(rows)

    def fitted_model(self) -> FittedModel:
        """Return the fitted model as data, which is exported, served and explained.

        Example:
            >>> from podium.rankers import LinearRanker
            >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
            >>> ranker.fitted_model().feature_names
            ('1',)

        Raises:
            ArgumentError: If no model of a known form scores as the ranker does.
        """
        self._require_fitted()
        check_feature_names(self.feature_names_)
        return self._fitted_model()

    def _fitted_model(self) -> FittedModel:
        raise ArgumentError(
            f"{type(self).__name__} cannot be exported",
            hint="Export a tree, linear or neural ranker.",
        )

    def facts(self) -> dict[str, str]:
        """Return what a model card says of the size of the fitted model."""
        return {}

    @property
    def kind(self) -> str:
        """What it is, for people and manifests: its class."""
        return type(self).__name__

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
          computes from the rows of training that reach each node.
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
        self._rules().require_readable(X)
        # A number would be taken for the position of a query.
        return self._explain(self.features_.one_query(X, None if query is None else str(query)))

    def _explain(self, data: Dataset) -> Explanation:
        return explain_features(
            data,
            self.predict(data),
            self._contributions(data.features),
            self.categories_,
            ranker=type(self).__name__,
            method=self.contribution_method(),
        )

    def _contributions(self, _features: Floats) -> Doubles:
        """Return what each feature contributes to each score, but for a constant of the query."""
        raise ArgumentError(
            f"{type(self).__name__} does not compute what features contribute",
            hint="Explain a linear, tree, boosted or neural ranker.",
        )

    def contribution_method(self) -> str:
        """Return how contributions of features are defined, as a phrase."""
        return "the ranker's own contributions"

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
        return "features_" in vars(self)

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
        self._require_fitted()
        data, features, qid = scored_data(self._rules(), X, y, qid, group, self.categories_)
        weights = None
        if sample_weight is not None:
            weights = fit_weights(sample_weight, data, qid)
            weights.require_queries_only(f"the mean of {self.measure}")
        of_queries = None if weights is None else weights.queries
        value = mean_value(self.measure, data, self.predict(features), of_queries)
        return value if parse_measure(self.measure).larger_is_better else -value

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
            better = parse_measure(self.measure).larger_is_better
            history = vars(self).get("evals_result_", {})
            return learning_curve(history, larger_is_better=better)
        if kind != "importance":
            raise ArgumentError(f"kind is {kind!r}", hint="Give 'learning curve' or 'importance'.")
        if self.importance is None:
            raise ArgumentError(
                f"{type(self).__name__} has no importance of features",
                hint="Use TreeRanker or LinearRanker.",
            )
        attribute, what = self.importance
        values = np.asarray(getattr(self, attribute), np.float64)
        return importance_bars(self.feature_names_, values, what)

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
        metadata = {"parameters": parameters, **self.features_.metadata(), **fitted.metadata}
        return Archive(type(self).__name__, metadata, fitted.arrays, fitted.blobs)

    @classmethod
    def from_archive(cls, archive: Archive) -> Self:
        """Return the ranker whose ``archive`` it is; any error of Python's for another archive."""
        return cls(**archive.metadata["parameters"]).restore(archive)

    def restore(self, archive: Archive) -> Self:
        """Become fitted as the ranker whose ``archive`` it is; parameters stay as they are."""
        with self._fitting(FittedFeatures.from_metadata(archive.metadata)):
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

    # A ranker of features defines these four:

    def _fit(
        self, data: TrainingData, validation: TrainingData | None, progress: Progress | None
    ) -> None:
        """Fit the scorer to checked data.

        A ranker with ``takes_weights`` takes ``weights: FitWeights | None = None`` too.
        """
        raise NotImplementedError

    def _predict(self, features: Floats) -> Doubles:
        """Score checked features."""
        raise NotImplementedError

    def _archive(self) -> Archive:
        """Return the fitted model, without the parameters and the features' names."""
        raise NotImplementedError

    def _restore(self, archive: Archive) -> None:
        """Restore the fitted model that ``_archive`` returned."""
        raise NotImplementedError

    # And one that reads sparse matrices this one, too:

    def _predict_sparse(self, features: Any) -> Doubles:
        """Score checked sparse features."""
        raise NotImplementedError


class DistributedRanker(Ranker, abstract=True):
    """A ranker that several processes can fit together, each on its own queries.

    Each process calls ``fit_partition`` with its own queries and a communicator, and all of them
    end with the same model. ``podium.cluster.fit_shards`` does this on Ray.
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
        features = FittedFeatures(names, not are_numbers(names), {}, definitions_hash(data))
        with self._fitting(features):
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


def nested_rankers(ranker: Ranker) -> list[Ranker]:
    """Return the rankers that are parameters of a ranker, such as those of a cascade."""
    values = ranker.get_params(deep=False).values()
    return [nested for value in values for nested in _rankers_in(value)]


def _rankers_in(value: object) -> list[Ranker]:
    items = value if isinstance(value, list | tuple) else [value]
    return [item for item in items if isinstance(item, Ranker)]
