"""What the paper's people may have done: its heap, read in every way that its text leaves open.

Niu et al. 2012 measured 142.76 judgments at 10 of 50. Algorithm 1 does not say how the heap is
updated, and says nothing of ties, of which Table 2 settles at 63 %: its rows are normalized.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from podium.judging import HABITS, Outcome, Pair, SimulatedAssessor
from podium.judging.algorithms.min_heap import heap
from podium.judging.algorithms.selection import Algorithm, Selection, run_selection
from podium.judging.assessors.simulated import Habits

WITH_TIES = Habits(ties=1.0)
"""Items closer than one standard deviation of relevance seem equal, which makes 63 % ties."""


def textbook(tie_replaces: bool) -> Algorithm[int]:
    """The heap whose items sink step by step, two judgments a level; a tie may replace the root."""
    enough = (Outcome.LEFT, Outcome.TIE) if tie_replaces else (Outcome.LEFT,)

    def select(items: Sequence[int], k: int) -> Selection[int]:
        kept = list(items[:k])
        for node in reversed(range(len(kept) // 2)):
            yield from _sink(kept, node)
        for item in items[k:]:
            (outcome,) = yield [Pair(item, kept[0])]
            if outcome in enough:
                kept[0] = item
                yield from _sink(kept, 0)
        top = []
        while kept:
            top.append(kept[0])
            kept[0] = kept[-1]
            kept.pop()
            yield from _sink(kept, 0)
        return top[::-1]

    return select


def _sink(kept: list[int], node: int) -> Generator[list[Pair[int]], list[Outcome], None]:
    while 2 * node + 1 < len(kept):
        child = 2 * node + 1
        if child + 1 < len(kept):
            (outcome,) = yield [Pair(kept[child], kept[child + 1])]
            child += outcome is Outcome.LEFT
        (outcome,) = yield [Pair(kept[node], kept[child])]
        if outcome is not Outcome.LEFT:
            return
        kept[node], kept[child] = kept[child], kept[node]
        node = child


def papers_heap(runs: int) -> list[str]:
    """A line for each reading: mean judgments and the share of ties among them."""
    readings: dict[str, Algorithm[int]] = {
        "Podium's update": heap,
        "textbook update": textbook(tie_replaces=False),
        "textbook update, a tie replaces the root": textbook(tie_replaces=True),
    }
    lines = []
    for name, algorithm in readings.items():
        for habits in (HABITS["perfect"], WITH_TIES):
            judgments, ties = _measure(algorithm, habits, runs)
            lines.append(f"{name}: {judgments:.1f} judgments with {ties:.0%} ties")
    return lines


def _measure(algorithm: Algorithm[int], habits: Habits, runs: int) -> tuple[float, float]:
    counts = []
    outcomes: list[Outcome] = []
    for seed in range(runs):
        relevance = np.random.default_rng(seed).standard_normal(50).tolist()
        judge = SimulatedAssessor[int](relevance, habits, random_state=seed)

        def answer(left: int, right: int, judge: SimulatedAssessor[int] = judge) -> Outcome:
            outcomes.append(judge(left, right))
            return outcomes[-1]

        counts.append(run_selection(algorithm, 50, 10, answer, infer=False).judgments)
    return float(np.mean(counts)), outcomes.count(Outcome.TIE) / len(outcomes)
