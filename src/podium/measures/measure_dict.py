"""A dictionary of measures that takes any spelling of a measure as its key."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from podium.errors import ArgumentError
from podium.measures.names import parse_measure
from podium.measures.value import Measure

_Value = TypeVar("_Value")
_Other = TypeVar("_Other")


class ByMeasure(dict[Measure, _Value]):
    """What there is for each measure, by the measure or by any of its names.

    Example:
        >>> from podium.measures import evaluate, nDCG
        >>> means = evaluate("nDCG@10", labels=[1, 0], scores=[2, 1], group=[2]).means
        >>> means[nDCG@10], means["nDCG@10"], means["ndcg_cut_10"], "AP" in means
        (1.0, 1.0, 1.0, False)
    """

    def __getitem__(self, measure: Measure | str) -> _Value:
        found = _measure(measure)
        if found is None or not super().__contains__(found):
            raise KeyError(f"{measure!r} is not among: {', '.join(map(repr, self))}")
        return super().__getitem__(found)

    def __contains__(self, measure: object) -> bool:
        found = _measure(measure)
        return found is not None and super().__contains__(found)

    def copy(self) -> ByMeasure[_Value]:
        """A shallow copy, with the same keys."""
        return ByMeasure(self)

    @overload
    def get(self, measure: Measure | str, default: None = None) -> _Value | None: ...
    @overload
    def get(self, measure: Measure | str, default: _Other) -> _Value | _Other: ...
    def get(self, measure: Measure | str, default: Any = None) -> Any:
        """What there is for a measure, or the default."""
        try:
            return self[measure]
        except KeyError:
            return default


def _measure(key: object) -> Measure | None:
    """The measure that a key means; None if it means none."""
    if isinstance(key, str):
        try:
            return parse_measure(key)
        except ArgumentError:
            return None
    return key if isinstance(key, Measure) else None
