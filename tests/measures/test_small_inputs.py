"""What a few rows give as plain Python is to the last bit what compiled code gives."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from podium import kernels
from podium.data import read_qrels, read_run
from podium.measures import compare, evaluate
from podium.measures.presets import conventions_named
from podium.measures.registry import Measure, measure_definitions

SIZES = np.random.default_rng(1).integers(1, 25, 40)
ROWS = int(SIZES.sum())
LABELS: dict[str, Callable[[np.random.Generator], Any]] = {
    "grades": lambda random: random.integers(0, 5, ROWS).astype(float),
    "fractions": lambda random: np.round(4 * random.random(ROWS), 2),
    "a full order": lambda random: 2.0 * random.permutation(ROWS),
    "nothing relevant": lambda _random: np.zeros(ROWS),
}
OWN = [
    Measure(each.name)
    for each in measure_definitions()
    if each.function.__module__.startswith("podium.measures.definitions.")
]
ON_LABELS = [each for each in OWN if each.name not in ("ppref", "rpref", "wpref")]


def same_both_ways(monkeypatch: pytest.MonkeyPatch, function: Callable[[], bytes]) -> bool:
    monkeypatch.setattr(kernels, "SMALL", 1 << 50)
    plain = function()
    monkeypatch.setattr(kernels, "SMALL", -1)
    return plain == function()


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["podium", "trec_eval", "xgboost", "sklearn"])
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("steps", [ROWS, 8], ids=["distinct", "tied"])
def test_measures(monkeypatch: pytest.MonkeyPatch, tool: str, kind: str, steps: int) -> None:
    random = np.random.default_rng(len(kind))
    labels, scores = LABELS[kind](random), random.permutation(ROWS) % steps / 7.0
    labels[random.random(ROWS) < 0.1] = np.nan

    def values() -> bytes:
        conventions = conventions_named(tool)
        if tool == "trec_eval":  # its ties go by document ids, which there are none of
            conventions = replace(conventions, ties="input order")
        # ERR has a highest grade there.
        measures = [each for each in ON_LABELS if tool != "trec_eval" or each.name != "ERR"]
        result = evaluate(measures, labels, scores, group=SIZES, conventions=conventions)
        return b"".join(each.tobytes() for each in result.values.values())

    assert same_both_ways(monkeypatch, values)


def run(random: np.random.Generator, tag: str) -> bytes:
    lines = []
    for query in range(12):
        for document in random.permutation(30)[:20]:
            score = random.choice(["1e-3", "-.5", "12345678901234567890.5", str(random.random())])
            lines.append(f"{query} Q0 d{document} 1 {score} {tag}\n")
    return "".join(lines).encode()


def test_files(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    qrels = "".join(f"{q} 0 d{d} {random.integers(-1, 4)}\n" for q in range(12) for d in range(25))
    one, other = run(random, "one"), run(random, "other")

    def values() -> bytes:
        judged = read_qrels(io.BytesIO(qrels.encode()))
        runs = {tag: read_run(io.BytesIO(lines)) for tag, lines in (("a", one), ("b", other))}
        comparison = compare("nDCG@5", judged, runs, conventions="trec_eval")
        coherence = comparison.against_baseline["nDCG@5"]["b"].coherence
        assert coherence is not None
        values = comparison.values["nDCG@5"].tobytes() + coherence.differences.tobytes()
        return runs["a"].scores.tobytes() + values

    assert same_both_ways(monkeypatch, values)
