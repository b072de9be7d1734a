"""A dictionary of measures that takes any spelling of a measure as its key."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from podium.errors import ArgumentError
from podium.measures.names import is_ir_measure, parse_measure
from podium.measures.registry import Measure

_Value = TypeVar("_Value")
_Other = TypeVar("_Other")


class ByMeasure(dict[Measure, _Value]):
    """A dictionary keyed by measure that also takes any of a measure's names.

    Example:
        >>> from podium.measures import evaluate, nDCG
        >>> means = evaluate("nDCG@10", labels=[1, 0], scores=[2, 1], group=[2]).means
        >>> means[nDCG@10], means["nDCG@10"], means["ndcg_cut_10"], "AP" in means
        (1.0, 1.0, 1.0, False)
    """

    def __getitem__(self, measure: Measure | str) -> _Value:
        parsed = _measure(measure)
        if parsed is None or not super().__contains__(parsed):
            raise KeyError(f"{measure!r} is not among: {', '.join(map(repr, self))}")
        return super().__getitem__(parsed)

    def __contains__(self, measure: object) -> bool:
        parsed = _measure(measure)
        return parsed is not None and super().__contains__(parsed)

    def copy(self) -> ByMeasure[_Value]:
        """Return a shallow copy."""
        return ByMeasure(self)

    @overload
    def get(self, measure: Measure | str, default: None = None) -> _Value | None: ...
    @overload
    def get(self, measure: Measure | str, default: _Other) -> _Value | _Other: ...
    def get(self, measure: Measure | str, default: Any = None) -> Any:
        """Return the value of a measure, or the default."""
        try:
            return self[measure]
        except KeyError:
            return default


def _measure(key: object) -> Measure | None:
    """Return the measure that a key stands for, or None."""
    if isinstance(key, str) or is_ir_measure(key):
        try:
            return parse_measure(str(key))
        except ArgumentError:
            return None
    return key if isinstance(key, Measure) else None
