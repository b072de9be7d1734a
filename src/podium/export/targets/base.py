"""What all targets have in common: names, versions, refusals and the shape of a writer."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from podium.errors import ArgumentError, DataError
from podium.export.folder import NAME, Feature
from podium.kernels import Doubles, Floats
from podium.scorers.feature_names import shortened
from podium.scorers.models import FittedModel, LinearModel, NetworkModel
from podium.scorers.single_precision import LARGEST_SINGLE, as_single
from podium.scorers.trees import TreeModel

DEEPEST_NESTING = 400
"""Parsers of JSON in Java stop at 1,000 levels, and a node takes two of them."""


@dataclass(frozen=True)
class Request:
    """What a writer is to write.

    Attributes:
        model: The model.
        names: The features' names in the target.
        model_name: The model's name in the target.
        version: The version of the target.
        never_missing: Whether every feature always has a value.
        extractors: How the target computes features, in its own terms, by the features' names in
            the target; a feature without one is read from a field of its name.
        raw: Whether to write trees as XGBoost saves them, if the target has a form for that: it is
            smaller than the one that XGBoost dumps.
    """

    model: FittedModel
    names: tuple[str, ...]
    model_name: str
    version: str
    never_missing: bool = False
    extractors: Mapping[str, Any] = field(default_factory=dict)
    raw: bool = False


@dataclass(frozen=True)
class Written:
    """What a writer wrote.

    Attributes:
        files: The files of the target, by name.
        absent: The value of each feature that a document does not have; None if it stays missing.
        limits: What the target does differently, in words.
        avoided: Intervals of a feature (its column, from, to; both included) whose values take
            another branch in the target.
    """

    files: dict[str, bytes]
    absent: tuple[float | None, ...]
    limits: tuple[str, ...] = ()
    avoided: tuple[tuple[int, float, float], ...] = ()


@dataclass(frozen=True)
class EngineModel:
    """What a target computes from its files, by the target's own rules.

    Attributes:
        model: The model as the target understands its files.
        absent: What the target takes for an absent value of each feature; NaN is missing.
        single_precision: Whether it computes in single precision.
    """

    model: FittedModel
    absent: Doubles
    single_precision: bool

    def rows(self, X: ArrayLike) -> Doubles:
        """Return rows as the target sees them: absent values filled in, rounded."""
        rows = np.asarray(X, np.float64)
        rows = np.where(np.isnan(rows), self.absent, rows)
        return as_single(rows).astype(np.float64) if self.single_precision else rows

    def predict(self, X: ArrayLike) -> Doubles:
        """Score rows."""
        rows = self.rows(X)
        return (
            self.model.predict_single(rows) if self.single_precision else self.model.predict(rows)
        )


class Target(ABC):
    """A format of another engine: a writer, and a reader that follows the engine's rules."""

    name: ClassVar[str]
    """Its name on the command line."""
    title: ClassVar[str]
    """Its name in messages."""
    default_version: ClassVar[str]
    """The version that is written for by default: the oldest that can do what is needed."""
    single_precision: ClassVar[bool]
    """Whether it computes in single precision."""
    negative_values: ClassVar[bool] = True
    """Whether a feature may be negative: where it is the score of a query, it may not."""
    computes_features: ClassVar[bool] = True
    """Whether it computes the features of a document, rather than to be given them."""
    takes_texts: ClassVar[bool] = False
    """Whether it can score texts."""
    packages: ClassVar[tuple[str, ...]] = ()
    """The packages that write the format."""
    has_raw_form: ClassVar[bool] = False
    """Whether it reads trees as XGBoost saves them, besides another form."""
    single_scores: ClassVar[bool] = True
    """Whether it returns scores in single precision, however it computes them."""
    reserved_names: ClassVar[frozenset[str]] = frozenset()
    """Names that no feature may have there."""
    largest_score: ClassVar[float] = LARGEST_SINGLE
    """The largest number that a score may be."""

    def write(self, request: Request) -> Written:
        """Return the files of a model; an ArgumentError if the target cannot express it."""
        if request.raw and not (self.has_raw_form and request.model.leaf_count is not None):
            self.refuse("this model as XGBoost saves it", "Leave out --raw.")
        self._require_range(request.model)
        write: Callable[[Request, FittedModel], Written] = getattr(self, request.model.writer)
        return write(request, request.model)

    def _require_range(self, model: FittedModel) -> None:
        """Refuse leaves and weights whose sums are infinite in the target, or in the library."""
        limit = self.largest_score
        limit = min(limit, LARGEST_SINGLE) if model.single_precision else limit
        largest, what = model.largest_number()
        if not largest <= limit:
            self.refuse(f"{what} {largest:.3g}, above {limit:.3g}", "Scale the labels.")

    @abstractmethod
    def write_trees(self, request: Request, model: TreeModel) -> Written:
        """Write a tree model."""

    def write_linear(self, request: Request, model: LinearModel) -> Written:
        """Write a linear model."""
        del request, model
        self.refuse_always("linear models", "Export it to opensearch, solr or onnx.")

    def write_network(self, request: Request, model: NetworkModel) -> Written:
        """Write a network."""
        del request, model
        self.refuse_always("networks", "Export it to onnx or solr.")

    @abstractmethod
    def read(
        self, files: Mapping[str, bytes], features: Sequence[Feature], model: FittedModel
    ) -> EngineModel:
        """Return what the target computes from its files; a DataError if they are malformed.

        Args:
            files: The files, by name.
            features: The features.
            model: The exported model, for a target whose files only a library of its own reads.
        """

    def fields(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """Return the field that a feature is read from, for those that are a document's field."""
        del files
        return {}

    def last_values(self, exact: Floats) -> Floats:
        """Return the last values that go left in the target, for those of the model itself."""
        return exact

    def refuse(self, what: str, hint: str) -> NoReturn:
        """Raise the error for what a target cannot express."""
        raise ArgumentError(f"{self.title} cannot express {what}", hint=hint)

    def refuse_always(self, what: str, hint: str) -> NoReturn:
        """Raise the error for what no version of the target can express."""
        self.refuse(f"{what} in any version", hint)

    def infinity_limits(self, model: TreeModel) -> tuple[str, ...]:
        """Return the limit of targets in whose files no threshold is infinite, if it matters."""
        if model.strict or not np.isposinf(model.threshold[model.feature >= 0]).any():
            return ()
        return (
            f"An infinite value goes right at splits by <= infinity, where {self.title} has the "
            "largest number as the threshold; the ranker sends it left.",
        )

    def require_plain_splits(self, model: TreeModel) -> None:
        """Refuse trees with categories or with 0 as a missing value."""
        if model.has_categories:
            self.refuse_always("splits by categories", "Train on numbers, or export to onnx.")
        if model.zero_missing.any():
            self.refuse_always(
                "0 as a missing value (LightGBM's zero_as_missing)",
                "Train without it, or export to onnx.",
            )
        if model.depths().max(initial=0) > DEEPEST_NESTING:
            self.refuse(f"trees deeper than {DEEPEST_NESTING}", "Train with a smaller max_depth.")


def version_number(text: str) -> tuple[int, ...]:
    """Parse a version such as ``3.8`` or ``3.8.0.0``.

    Example:
        >>> version_number("3.8.0") >= (3, 2)
        True
    """
    if not re.fullmatch(r"\d{1,4}(\.\d{1,4}){0,3}", text):
        raise ArgumentError(f"{text!r} is not a version", hint="Give one such as 3.8.")
    return tuple(map(int, text.split(".")))


def engine_names(names: Sequence[str], reserved: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return names that a target takes: letters, digits and underscores, no digit first.

    If two features would have one name, or a name is reserved or longer than 255 characters, all
    features are numbered: a name that stays as it was could be the number of another feature.

    Example:
        >>> engine_names(["1", "bm25 (title)"])
        ('f1', 'bm25__title_')
    """
    cleaned = [re.sub(r"[^A-Za-z0-9_]", "_", name) for name in names]
    cleaned = [name if re.match(r"[A-Za-z_]", name) else f"f{name}" for name in cleaned]
    usable = all(map(NAME.fullmatch, cleaned)) and reserved.isdisjoint(cleaned)
    if len(set(cleaned)) < len(cleaned) or not usable:
        cleaned = [f"f{number}" for number in range(1, len(cleaned) + 1)]
    return tuple(cleaned)


def column_of(name: Any, columns: Mapping[str, int]) -> int:
    """Return the column of a feature that a target's file names."""
    if name not in columns:
        problem = f"{shortened(repr(name))} is not a feature of the export"
        raise DataError(problem, hint="Export it again.")
    return columns[name]


def zero_goes_left(model: TreeModel) -> Any:
    """Return whether the value 0 goes to the left child of each node."""
    return model.threshold > 0 if model.strict else model.threshold >= 0
