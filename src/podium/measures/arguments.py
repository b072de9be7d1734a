"""What the functions of measures may ask of an evaluation, by the names of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np

from podium.data.gains import DISCOUNTS, GAINS, DiscountsName, GainsName
from podium.kernels import Doubles
from podium.measures.conventions import Conventions
from podium.measures.parameters import Parameter, Value

EXPONENTIAL, LINEAR, TABLE = range(3)
"""The values of ``curve``: how a label that has no entry in ``gains`` becomes a gain."""

# 2^1024 is beyond a double.
_LABELS = 1024
# The gain of each label from 0, so that a loop looks up what it would compute per document.
_TABLES = {name: gains(np.arange(_LABELS, dtype=np.float64)) for name, gains in GAINS.items()}
_CURVES = {"exponential": EXPONENTIAL, "linear": LINEAR}


class EvaluationArguments:
    """The cut-off, the parameters of a measure and the conventions, as functions take them.

    Each property is an argument that a measure's function may ask for by its name.

    Args:
        parameters: Those of the measure, as set or by default; None leaves it to the conventions.
        cut_off: How many documents count; None means all.
        conventions: Those that apply to the measure.
        longest: The length of the longest list, ranked or ideal.
    """

    def __init__(
        self,
        parameters: Mapping[str, Value | None],
        cut_off: int | None,
        conventions: Conventions,
        longest: int,
    ) -> None:
        self._parameters = parameters
        self._cut_off = cut_off
        self._conventions = conventions
        self._longest = longest

    def argument(self, name: str, parameters: Mapping[str, Parameter]) -> Any:
        """Return an argument by its name: a property below, or a parameter of the measure."""
        if name in EVALUATION_ARGUMENTS:
            return getattr(self, name)
        value, value_type = self._parameters[name], parameters[name].value_type
        return np.array(value, np.float64) if value_type is tuple else value_type(value)

    @cached_property
    def cut(self) -> int:
        """How many documents count; more than any list has where there is no cut-off."""
        return self._longest + 1 if self._cut_off is None else self._cut_off

    @cached_property
    def has_cut(self) -> bool:
        """Whether there is a cut-off."""
        return self._cut_off is not None

    @cached_property
    def nearest_recall(self) -> bool:
        """Whether a level of recall is rounded to the nearest number of relevant documents."""
        return self._conventions.recall_rounding == "nearest"

    @cached_property
    def rel(self) -> float:
        """The least label that counts as relevant."""
        return _least_label(_number(self._parameters.get("rel"), self._conventions.relevant_from))

    @cached_property
    def gains(self) -> Doubles:
        """The gain of each integer label from 0 on."""
        gains = self._gains
        if isinstance(gains, tuple):
            return np.array(gains, np.float64)
        return _TABLES[cast(GainsName, gains)]

    @cached_property
    def curve(self) -> int:
        """How a label that ``gains`` does not have becomes a gain."""
        return TABLE if isinstance(self._gains, tuple) else _CURVES[str(self._gains)]

    @cached_property
    def discounts(self) -> Doubles:
        """The discount of each rank from the first to the cut-off."""
        discounts, cut = self._discounts, self._cut_off
        if isinstance(discounts, tuple):
            return np.array(discounts[:cut], np.float64)
        reach = self._longest if cut is None else min(cut, self._longest)
        return DISCOUNTS[cast(DiscountsName, discounts)](np.arange(1, reach + 1, dtype=np.float64))

    @cached_property
    def ideal_discounts(self) -> Doubles:
        """The same discounts, largest first: those of the ideal ranking."""
        if isinstance(self._discounts, tuple):
            return np.sort(self.discounts)[::-1].copy()
        return self.discounts

    @cached_property
    def max(self) -> float:
        """The highest grade; 0 means the highest of the query."""
        highest = self._parameters.get("max")
        highest = self._conventions.highest_grade if highest is None else highest
        return _number(highest, 0.0)

    @cached_property
    def divide_by_size(self) -> bool:
        """Whether precision divides by the length of a list shorter than ``cut``."""
        return self._cut_off is None or self._conventions.short_list == "length"

    @cached_property
    def divide_by_cut(self) -> bool:
        """Whether average precision divides by no more than ``cut``."""
        return self._conventions.ap_divisor == "cut-off"

    @cached_property
    def labels_are_probabilities(self) -> bool:
        """Whether a label is itself the probability that a document satisfies."""
        return self._conventions.satisfaction == "label"

    @cached_property
    def graded(self) -> bool:
        """Whether rank-biased precision adds up labels rather than ones."""
        return self._conventions.rbp_gain == "label"

    @cached_property
    def ties_share_last_rank(self) -> bool:
        """Whether documents with one score all have the rank of the last of them."""
        return self._conventions.ties == "together"

    @cached_property
    def _gains(self) -> Value:
        # ERR and the κ-measures are defined with exponential gains and have no such parameter.
        if "gains" not in self._parameters:
            return "exponential"
        return self._parameters["gains"] or self._conventions.gains

    @cached_property
    def _discounts(self) -> Value:
        return self._parameters.get("discounts") or self._conventions.discounts


EVALUATION_ARGUMENTS = {
    name: str(each.__doc__)
    for name, each in vars(EvaluationArguments).items()
    if isinstance(each, cached_property) and not name.startswith("_")
}
"""What a function may ask for besides its measure's own parameters, and what it means."""


def _number(value: Value | None, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default


def _least_label(threshold: float) -> float:
    """Return the least label that reaches a threshold: labels are float32, thresholds float64.

    A label means the decimal number that was written, 0.7 and not 0.699999988: it reaches the
    threshold 0.7, but not 0.70000001, which rounds to the same float32.
    """
    with np.errstate(over="ignore"):
        nearest = np.float32(threshold)
    if float(nearest) < threshold and float(str(nearest)) < threshold:
        nearest = np.nextafter(nearest, np.float32(np.inf))
    return float(nearest)
