"""A learned utility: its measure, its training loss, and its file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.files import Source, numbered_lines, open_write, source_name
from podium.data.json_lines import json_line, parse_json
from podium.errors import DataError
from podium.kernels import Doubles
from podium.losses import LambdaLoss
from podium.measures import DCG, nDCG
from podium.measures.registry import Measure
from podium.utility.preferences import RankingPreferences

_VERSION = 1
_DECIMALS = 6
_KEYS = {"podium", "version", "form", "normalized", "C", "objective", "gains", "discounts", "table"}


@dataclass(frozen=True, eq=False)
class LearnedUtility:
    """Gains and discounts that agree with people's preferences.

    Attributes:
        table: What a document of each grade is worth at each position: one row per position,
            one column per grade, the first column 0. A clear preference is a lead of 1.
        gains: The gain of each grade, from 0 to 1. With gains by position, the rank-one fit.
        discounts: The discount of each position, the first 1; likewise.
        form: "rank-one" if the table is gains times discounts, or "by-position".
        normalized: Whether leads are relative to the ideal of each query.
        C: The weight of the slacks.
        objective: The minimum of ``w·w + C * slacks``.

    Example:
        >>> from podium.utility import DCGLearn
        >>> pairs = RankingPreferences.from_arrays([[1, 0], [0, 1]], [[0, 1], [0, 0]], [1, 1])
        >>> DCGLearn(C=100.0).fit(pairs).learned_.measure
        DCG(gains=(0, 1), discounts=(1, 0.498753))@2
    """

    table: Doubles
    gains: Doubles
    discounts: Doubles
    form: str
    normalized: bool
    C: float
    objective: float

    @property
    def depth(self) -> int:
        """How many positions count."""
        return len(self.discounts)

    @property
    def dcg(self) -> Measure:
        """The utility as a DCG measure, for ``evaluate`` and ``compare``."""
        return DCG(gains=_rounded(self.gains), discounts=_rounded(self.discounts)) @ self.depth

    @property
    def ndcg(self) -> Measure:
        """The utility as an nDCG measure."""
        return nDCG(gains=_rounded(self.gains), discounts=_rounded(self.discounts)) @ self.depth

    @property
    def measure(self) -> Measure:
        """The measure that was learned: nDCG if normalized, else DCG."""
        return self.ndcg if self.normalized else self.dcg

    @property
    def loss(self) -> LambdaLoss:
        """The training loss: pairs weighted by how much swapping them changes this utility."""
        if self.form == "by-position":
            return LambdaLoss(table=tuple(map(tuple, self.table.tolist())))
        return LambdaLoss(gains=_rounded(self.gains), discounts=_rounded(self.discounts))

    def accuracy(self, pairs: RankingPreferences) -> float:
        """Compute the share of strict preferences that the utility agrees with."""
        return accuracy(pairs, pairs.leads(self.table))


def accuracy(pairs: RankingPreferences, leads: Doubles) -> float:
    """Compute the weighted share of strict preferences whose better side leads.

    A pair without a lead counts half.

    Example:
        >>> pairs = RankingPreferences.from_arrays([[1], [1], [0]], [[0], [0], [1]], [1, -1, 0])
        >>> accuracy(pairs, pairs.leads(np.array([[0.0, 1.0]])))
        0.5
    """
    strict = pairs.strict
    weights = pairs.pair_weights[strict]
    if not weights.sum() > 0:
        raise DataError("there is no strict preference", hint="Ties have no better side to find.")
    return float(np.average(hits(pairs, leads)[strict], weights=weights))


def hits(pairs: RankingPreferences, leads: Doubles) -> Doubles:
    """Return 1 where the better side leads, 0 where the other does, 0.5 where neither does."""
    size = np.abs(leads).max(initial=0.0)
    rounded = np.where(np.abs(leads) <= 1e-12 * size, 0.0, leads)
    return np.asarray((np.sign(rounded) * np.sign(pairs.choices) + 1.0) / 2.0)


def write_learned(learned: LearnedUtility, target: Source) -> None:
    """Write a learned utility as one line of JSON.

    Example:
        >>> import io
        >>> from podium.utility import DCGLearn, RankingPreferences
        >>> pairs = RankingPreferences.from_arrays([[1, 0]] * 3, [[0, 1]] * 3, [1] * 3)
        >>> learned, file = DCGLearn(C=1.0).fit(pairs).learned_, io.BytesIO()
        >>> write_learned(learned, file)
        >>> read_learned(io.BytesIO(file.getvalue())).measure == learned.measure
        True
    """
    content = {
        "podium": "utility",
        "version": _VERSION,
        "measure": repr(learned.measure),
        "form": learned.form,
        "normalized": learned.normalized,
        "C": learned.C,
        "objective": learned.objective,
        "gains": learned.gains.tolist(),
        "discounts": learned.discounts.tolist(),
        "table": learned.table.tolist(),
    }
    with open_write(target) as write:
        write(json_line(content))


def read_learned(source: Source) -> LearnedUtility:
    r"""Read a learned utility that ``write_learned`` wrote.

    Example:
        >>> import io
        >>> from podium.utility import DCGLearn
        >>> pairs = RankingPreferences.from_arrays([[1, 0], [0, 1]], [[0, 1], [0, 0]], [1, 1])
        >>> write_learned(DCGLearn(C=1.0).fit(pairs).learned_, file := io.BytesIO())
        >>> read_learned(io.BytesIO(file.getvalue())).depth
        2
    """
    name = source_name(source)
    text = b"".join(line for _, line in numbered_lines(source))
    try:
        content = parse_json(text)
    except DataError as error:
        raise DataError(error.problem, path=name, hint=_HINT) from error
    if not isinstance(content, dict) or content.get("podium") != "utility":
        raise DataError("is not a learned utility", path=name, hint=_HINT)
    if content.get("version") != _VERSION:
        raise DataError(
            f"has version {content.get('version')!r}", path=name, hint="Install a newer Podium."
        )
    missing = _KEYS - content.keys()
    if missing:
        raise DataError(f"has no {min(missing)!r}", path=name, hint=_HINT)
    try:
        return _learned(content)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"is not a learned utility ({error})", path=name, hint=_HINT) from error


_HINT = "Name a file that `podium utility learn` wrote."


def _learned(content: dict[str, Any]) -> LearnedUtility:
    table = np.array(content["table"], np.float64)
    gains, discounts = (np.array(content[key], np.float64) for key in ("gains", "discounts"))
    if table.ndim != 2 or gains.shape != (table.shape[1],) or discounts.shape != (len(table),):
        raise ValueError("gains, discounts and table have different sizes")
    if not all(np.all(np.isfinite(each)) for each in (table, gains, discounts)):
        raise ValueError("a value is not finite")
    numbers = [float(content[key]) for key in ("C", "objective")]
    if content["form"] not in ("rank-one", "by-position") or not all(map(math.isfinite, numbers)):
        raise ValueError("form, C or objective is not valid")
    return LearnedUtility(
        table, gains, discounts, content["form"], bool(content["normalized"]), *numbers
    )


def _rounded(values: Doubles) -> tuple[float, ...]:
    """Round to six decimals: finer than any preferences can determine, and short enough to read."""
    return tuple(np.round(values, _DECIMALS).tolist())
