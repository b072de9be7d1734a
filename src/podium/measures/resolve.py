"""From a measure and conventions to the settings that its function reads."""

from __future__ import annotations

from typing import cast

import numpy as np

from podium.data.gains import DISCOUNTS, GAINS, DiscountsName, GainsName
from podium.kernels import Doubles
from podium.measures.compiled.ranked import EXPONENTIAL, LINEAR, TABLE, Settings
from podium.measures.conventions import Conventions
from podium.measures.registry import kind_of
from podium.measures.value import Measure, Value

# 2^1024 is beyond a double.
_LABELS = 1024
_NONE: Doubles = np.zeros(0)

# Of each label from 0, so that a loop looks up what it would compute for every document.
_TABLES = {name: gains(np.arange(_LABELS, dtype=np.float64)) for name, gains in GAINS.items()}
_CURVES = {"exponential": EXPONENTIAL, "linear": LINEAR}


def settle(measure: Measure, conventions: Conventions, longest: int) -> Settings:
    """The settings of a measure.

    Args:
        measure: With its parameters.
        conventions: What holds for this measure.
        longest: The length of the longest list, ranked or ideal.
    """
    given = {each.name: measure[each.name] for each in kind_of(measure).parameters}
    cut = cut_of(measure, conventions)
    reach = longest if cut is None else min(cut, longest)
    # ERR and the κ-measures are defined with exponential gains and have no such parameter.
    worth = given["gains"] or conventions.gains if "gains" in given else "exponential"
    curve, gains = _gains_of(worth)
    discounts = given.get("discounts") or conventions.discounts
    if isinstance(discounts, tuple):
        table = np.array(discounts[:cut], np.float64)
    else:
        table = DISCOUNTS[cast(DiscountsName, discounts)](np.arange(1, reach + 1, dtype=np.float64))
    highest = conventions.highest_grade if given.get("max") is None else given["max"]
    own = [value for value in given.values() if isinstance(value, int | float)]
    return Settings(
        cut=longest + 1 if cut is None else cut,
        rel=_least_label(_number(given.get("rel"), conventions.relevant_from)),
        k=int(_number(given.get("k"), 0)),
        p=_number(given.get("p"), 0.0),
        highest=0.0 if isinstance(highest, str) else _number(highest, 0.0),
        curve=curve,
        divide_by_size=cut is None or conventions.short_list == "length",
        at_most_cut=conventions.ap_divisor == "cut-off",
        labels_are_chances=conventions.satisfaction == "label",
        graded=conventions.rbp_gain == "label",
        together=conventions.ties == "together",
        gains=gains,
        discounts=table,
        best_discounts=np.sort(table)[::-1].copy() if isinstance(discounts, tuple) else table,
        own=np.array(own, np.float64) if own else _NONE,
    )


def cut_of(measure: Measure, conventions: Conventions) -> int | None:
    """How many documents count; None means all of them."""
    if measure.cut_off is None and kind_of(measure).takes_cut_off:
        return conventions.cut_off
    return measure.cut_off


def _gains_of(gains: Value) -> tuple[int, Doubles]:
    if isinstance(gains, tuple):
        return TABLE, np.array(gains, np.float64)
    return _CURVES[str(gains)], _TABLES[cast(GainsName, gains)]


def _least_label(threshold: float) -> float:
    """The least label that reaches a threshold: labels are float32, thresholds float64.

    A label means the decimal number that was written, 0.7 and not 0.699999988: it reaches the
    threshold 0.7, but not 0.70000001, which rounds to the same float32.
    """
    with np.errstate(over="ignore"):
        nearest = np.float32(threshold)
    if float(nearest) < threshold and float(str(nearest)) < threshold:
        nearest = np.nextafter(nearest, np.float32(np.inf))
    return float(nearest)


def _number(value: Value | None, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default
