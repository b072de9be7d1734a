"""Generated lists with every edge case, and OpenSearch's documented arithmetic in plain Python.

``python -m tests.hybrid.fusion_cases FILE`` writes 10,000 cases as lines for a program that calls
OpenSearch's own classes; ``python -m tests.hybrid.fusion_cases FILE ANSWERS`` compares its answers,
the bits of single-precision numbers, with ``fuse``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np

from podium.hybrid.fusion import Fusion, fuse
from podium.kernels import Doubles

single = np.float32
_FORMS: list[Any] = [
    *((normalization, mean) for normalization in ("min-max", "l2", "rank")
      for mean in ("arithmetic", "geometric", "harmonic")),
    ("z-score", "arithmetic"),
    ("rank", "rrf"),
]  # fmt: skip
_TECHNIQUES = {"min-max": "min_max", "l2": "l2", "z-score": "z_score", "rank": "rrf"}
_MEANS = {
    "rrf": "rrf",
    **{each: f"{each}_mean" for each in ("arithmetic", "geometric", "harmonic")},
}


def cases(count: int, seed: int = 0) -> Iterator[tuple[Fusion, Doubles]]:
    """Yield fusions, and a query's lists for each: NaN where a list does not have a document."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        lists, documents = int(rng.integers(1, 6)), int(rng.choice([1, 2, 3, 5, 8, 13, 30]))
        kind = number % 7
        votes = rng.lognormal(0, rng.choice([0.1, 1, 3]), (documents, lists))
        if kind == 1:
            votes = np.ceil(votes * 2)  # ties
        elif kind == 2:
            votes[:] = rng.choice([0.0, 1e-30, 0.5, 7.0, 1e20], lists)  # all equal
        elif kind == 3:
            votes -= rng.choice([1.0, 5.0])  # negative
        elif kind == 4:
            votes = 1 + rng.integers(0, 4, votes.shape) * 1.2e-7  # one unit in the last place
        elif kind == 5:
            votes *= 10.0 ** rng.integers(-12, 13, lists)
        elif kind == 6:
            votes[rng.random(votes.shape) < 0.4] = 0.0
        votes[rng.random(votes.shape) < rng.choice([0.0, 0.3, 0.8])] = np.nan
        normalization, combination = _FORMS[number % len(_FORMS)]
        weights = rng.integers(1, 11, lists).astype(float)
        if rng.random() < 0.3:
            weights[rng.integers(lists)] = 0.0
        if not weights.any():
            weights[:] = 1.0
        constant = int(rng.choice([1, 10, 60, 10_000]))
        fusion = Fusion(
            tuple(f"list{each}" for each in range(lists)), normalization, combination,
            tuple(weights.tolist()), constant,
        )  # fmt: skip
        yield fusion, votes


def documented(fusion: Fusion, votes: Doubles) -> list[float]:
    """Score a query's documents by OpenSearch's formulas, one number after the other."""
    rows: list[list[np.float32]] = [[single(0)] * votes.shape[1] for _ in votes]
    for column in range(votes.shape[1]):
        found = [row for row in range(len(votes)) if not math.isnan(votes[row, column])]
        found.sort(key=lambda row: -single(votes[row, column]))  # stable
        scores = _normalized(fusion, [single(votes[row, column]) for row in found])
        for row, score in zip(found, scores, strict=True):
            rows[row][column] = score
    weights = [single(weight) for weight in fusion.weights]
    with np.errstate(all="ignore"):
        return [float(_combined(fusion.combination, row, weights)) for row in rows]


def _normalized(fusion: Fusion, scores: list[np.float32]) -> list[np.float32]:
    if not scores:
        return []
    least = single(0.001)
    with np.errstate(all="ignore"):
        if fusion.normalization == "rank":
            places = Decimal("0.0000000001")
            return [
                single(
                    float(
                        (1 / Decimal(fusion.rank_constant + rank)).quantize(places, ROUND_HALF_UP)
                    )
                )
                for rank in range(1, len(scores) + 1)
            ]
        if fusion.normalization == "min-max":
            low, high = min(scores), max([*scores, single(1.4e-45)])
            if low == high:
                return [single(1)] * len(scores)
            scaled = [(score - low) / (high - low) for score in scores]
            return [least if score == 0 else score for score in scaled]
        if fusion.normalization == "l2":
            squares = single(0)
            for score in scores:
                squares += score * score
            norm = single(math.sqrt(squares))
            return [single(0) if norm == 0 else score / norm for score in scores]
        values = [float(score) for score in scores]
        count, mean = len(values), _sum(values) / len(values)
        mean += _sum([value - mean for value in values]) / count
        variance = 0.0
        if count > 1:
            rest = _sum([value - mean for value in values])
            squared = _sum([(value - mean) * (value - mean) for value in values])
            variance = (squared - rest * rest / count) / (count - 1)
        center, deviation = single(mean), single(math.sqrt(variance))
        answers = []
        for score in scores:
            if score == center:
                answers.append(scores[0])
            elif deviation == 0:
                answers.append(scores[-1])
            else:
                standard = (score - center) / deviation
                answers.append(least if standard <= 0 else standard)
        return answers


def _sum(values: Sequence[float]) -> float:
    total = 0.0  # the built-in sum compensates for rounding
    for value in values:
        total += value
    return total


def _combined(
    combination: str, scores: list[np.float32], weights: list[np.float32]
) -> np.float32 | float:
    total, weight_sum = single(0), single(0)
    for score, weight in zip(scores, weights, strict=True):
        if combination in ("arithmetic", "rrf"):
            if score >= 0:
                total += score * weight
                weight_sum += weight
        elif score > 0:
            weight_sum += weight
            if combination == "geometric":
                total = single(float(total) + float(weight) * math.log(score))
            else:
                total += weight / score
    if combination == "rrf":
        return total
    if combination == "harmonic":
        return weight_sum / total if total > 0 else 0.0
    if weight_sum == 0:
        return 0.0
    if combination == "geometric":
        return single(math.exp(total / weight_sum))
    return total / weight_sum


def _line(fusion: Fusion, votes: Doubles) -> str:
    lists = []
    for column in votes.T:
        found = np.flatnonzero(~np.isnan(column))
        scores = column.astype(single)
        order = found[np.argsort(-scores[found], kind="stable")]
        lists.append(",".join(f"{row}:{scores[row].item()!r}" for row in order.tolist()))
    head = (
        _TECHNIQUES[fusion.normalization], _MEANS[fusion.combination], str(fusion.rank_constant),
        ",".join(map(repr, fusion.weights)), str(len(votes)),
    )  # fmt: skip
    return "|".join([" ".join(head), *lists])


def _compare(lines: list[str], generated: list[tuple[Fusion, Doubles]]) -> int:
    different = 0
    for line, (fusion, votes) in zip(lines, generated, strict=True):
        theirs = np.array(line.split(), np.int64).astype(np.int32).view(single)
        ours = fuse(votes, [0, len(votes)], fusion).astype(single)
        found = ~np.isnan(votes).all(axis=1)
        if not np.array_equal(ours[found], theirs[found]):
            different += 1
            if different <= 5:
                print(fusion, votes, theirs, ours, sep="\n")
    print(f"{different} of {len(generated)} cases differ")
    return int(different > 0)


def main() -> int:
    """Write cases, or compare answers."""
    generated = list(cases(10_000))
    path = Path(sys.argv[1])
    if len(sys.argv) == 2:
        path.write_text("\n".join(_line(*each) for each in generated) + "\n")
        return 0
    return _compare(Path(sys.argv[2]).read_text().splitlines(), generated)


if __name__ == "__main__":
    sys.exit(main())
