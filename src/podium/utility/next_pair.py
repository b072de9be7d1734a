"""Active choice of the next pair of rankings to judge, as a coroutine over the verdicts."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.utility.learn import DCGLearn
from podium.utility.learned_utility import LearnedUtility
from podium.utility.newton import ridge_of
from podium.utility.preferences import RankingPreferences
from podium.utility.utility_tables import NoGainsError

Strategy = Literal["margin", "change", "random"]

_BLOCK = 4096


class Question(NamedTuple):
    """A pair to ask about.

    Attributes:
        pool_index: Its index in the pool.
        left: The grades of one ranking.
        right: The grades of the other.
    """

    pool_index: int
    left: tuple[int, ...]
    right: tuple[int, ...]


def choose_pairs(
    pool: RankingPreferences,
    model: DCGLearn | None = None,
    *,
    judged: RankingPreferences | None = None,
    strategy: Strategy = "change",
    first: int = 20,
    refit_every: int = 1,
    random_state: int = 0,
) -> Generator[Question, int, LearnedUtility | None]:
    """Yield the most informative pair to judge next, until none is left.

    Send it each verdict (2 to -2); it returns the learned utility at the end. Its whole state is
    the verdicts so far: a new coroutine that is sent the same verdicts asks the same questions.

    The first pairs are drawn at random: with few verdicts the margins mean little (Zhou et al.
    2012, figure 23a). It never asks about pairs that any increasing gains and decreasing discounts
    judge alike (proposition 1), or about pairs that compare the same grades at the same positions
    as an earlier one.

    Args:
        pool: The pairs that could be asked about; their choices are ignored.
        model: The model to learn with, with a C; by default
            ``DCGLearn(C=10, form="by-position")``.
        judged: Pairs with earlier verdicts.
        strategy: "margin" takes the pair with the smallest lead (SimpleMargin, Tong and Koller
            2002); "change" the one whose verdict is expected to move the leads of the pool most,
            by a Newton step; "random" any.
        first: How many pairs to draw at random before that.
        refit_every: How many verdicts to wait for before learning again.
        random_state: Seed of the random order.

    Example:
        >>> pool = RankingPreferences.from_arrays([[2, 0], [1, 1], [2, 2]], [[1, 1], [2, 0], [0]])
        >>> asking = choose_pairs(pool)
        >>> next(asking)
        Question(pool_index=0, left=(2, 0), right=(1, 1))
        >>> try:
        ...     asking.send(1)
        ... except StopIteration as done:
        ...     print(done.value.accuracy(pool.take([0]).with_choices([1])))
        1.0
    """
    learner = _learner(model, strategy)
    if refit_every < 1:
        raise ArgumentError(f"refit_every is {refit_every}", hint="Give 1 or more.")
    judged = pool.take([]) if judged is None else judged
    open_indices = generator(random_state).permutation(informative(pool, judged))
    learned = _fitted(learner, judged, None) if strategy != "random" else None
    while len(open_indices):
        at = 0
        if learned is not None and len(judged) >= first:
            at = int(
                np.argmax(_scores(pool.take(open_indices), judged, learned, strategy, learner))
            )
        pool_index = int(open_indices[at])
        choice = yield Question(
            pool_index,
            tuple(pool.left[pool_index].tolist()),
            tuple(pool.right[pool_index].tolist()),
        )
        if choice not in (-2, -1, 0, 1, 2):
            raise DataError(f"the verdict is {choice!r}", hint="Send 2 to -2; 2 is left.")
        judged = judged.joined(pool.take([pool_index]).with_choices([choice]))
        open_indices = np.delete(open_indices, at)
        if strategy != "random" and len(judged) >= first and len(judged) % refit_every == 0:
            learned = _fitted(learner, judged, learned)
    return _fitted(learner, judged, learned)


def next_positions(
    pool: RankingPreferences,
    judged: RankingPreferences | None = None,
    model: DCGLearn | None = None,
    *,
    strategy: Strategy = "change",
    first: int = 20,
    random_state: int = 0,
) -> Ints:
    """Return the indices of the pool's pairs worth judging next, best first.

    For several people at once, who split the first few. Arguments as in ``choose_pairs``.

    Example:
        >>> pool = RankingPreferences.from_arrays([[2, 0], [2, 2]], [[1, 1], [0, 0]])
        >>> next_positions(pool).tolist()
        [0]
    """
    learner = _learner(model, strategy)
    judged = pool.take([]) if judged is None else judged
    indices = generator(random_state).permutation(informative(pool, judged))
    learned = _fitted(learner, judged, None) if strategy != "random" else None
    if learned is None or len(judged) < first or not len(indices):
        return indices
    scores = _scores(pool.take(indices), judged, learned, strategy, learner)
    return indices[np.argsort(-scores, kind="stable")]


def informative(pool: RankingPreferences, judged: RankingPreferences | None = None) -> Ints:
    """Return the indices of pairs worth asking about: one of each kind, no kind asked before.

    Pairs are left out if their better side is certain for any increasing gains and decreasing
    discounts: one side has at least as many documents of each grade or above within each cut-off.

    Example:
        >>> pool = RankingPreferences.from_arrays(
        ...     [[2, 1, 0], [2, 0, 1], [1, 1, 0]], [[0, 1, 2], [1, 1, 0], [2, 0, 1]]
        ... )
        >>> informative(pool).tolist()  # the first has the best order, the last repeats the second
        [1]
    """
    known = set() if judged is None else {kind for _, kind in _open_kinds(judged)}
    first_of_kind: dict[bytes, int] = {}
    for pool_index, kind in _open_kinds(pool):
        if kind not in known:
            first_of_kind.setdefault(kind, pool_index)
    return np.array(list(first_of_kind.values()), np.int64)


def _open_kinds(pairs: RankingPreferences) -> Iterator[tuple[int, bytes]]:
    """Yield the index of each pair without a certain better side, and a key of what it compares."""
    grades = np.arange(1, pairs.grades, dtype=np.uint8)
    for begin in range(0, len(pairs), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        surplus = (pairs.left[part, :, None] >= grades).astype(np.int8)
        surplus -= (pairs.right[part, :, None] >= grades).astype(np.int8)
        total = np.cumsum(surplus, axis=1, dtype=np.int32)
        open_rows = (total > 0).any(axis=(1, 2)) & (total < 0).any(axis=(1, 2))
        for row in np.flatnonzero(open_rows).tolist():
            yield begin + row, min(surplus[row].tobytes(), (-surplus[row]).tobytes())


def _learner(model: DCGLearn | None, strategy: str) -> DCGLearn:
    if strategy not in ("margin", "change", "random"):
        raise ArgumentError(f"no strategy {strategy!r}", hint="Give margin, change or random.")
    learner = model or DCGLearn(C=10.0, form="by-position")
    # Cross-validation after each verdict would take long and, with few, choose at random.
    return replace(learner, C=10.0) if learner.C is None else learner


def _fitted(
    learner: DCGLearn, judged: RankingPreferences, before: LearnedUtility | None
) -> LearnedUtility | None:
    """Learn from the verdicts; keep what was learned before if they determine no gains."""
    if not judged.strict.any():
        return before
    try:
        return replace(learner).fit(judged, start=before).learned_
    except NoGainsError:
        return before


def _scores(
    candidates: RankingPreferences,
    judged: RankingPreferences,
    learned: LearnedUtility,
    strategy: Strategy,
    learner: DCGLearn,
) -> Doubles:
    """Score the candidates: the higher, the more informative."""
    leads = candidates.leads(learned.table)
    if strategy == "margin":
        return -np.abs(leads)
    # A verdict moves the utilities by C * slack / (1 + C x·H^-1·x) * H^-1 x (one Newton step), and
    # so the leads of the pool. Either verdict is as likely as its logistic chance.
    C = learner.C
    assert C is not None  # `_learner` chose one
    chance = 0.5 + 0.5 * np.tanh(leads)
    slack = chance * np.maximum(1.0 - leads, 0.0) + (1.0 - chance) * np.maximum(1.0 + leads, 0.0)
    judged_rows, open_rows = differences(judged), differences(candidates)
    inverse = np.linalg.inv(ridge_of(judged.depth, judged.grades) + C * judged_rows.T @ judged_rows)
    shifts = open_rows @ inverse
    leverage = np.sum(shifts * open_rows, axis=1)
    pool = open_rows.T @ open_rows / len(open_rows)
    movement = np.sqrt(np.maximum(np.sum((shifts @ pool) * shifts, axis=1), 0.0))
    return np.asarray(slack * movement / (1.0 + C * leverage))


def differences(pairs: RankingPreferences) -> NDArray[np.float64]:
    """One row per pair: 1 for each grade and position of left, -1 of right, without the lowest."""
    grades = np.arange(1, pairs.grades, dtype=np.uint8)
    rows = (pairs.left[:, :, None] == grades).astype(np.float64)
    rows -= pairs.right[:, :, None] == grades
    return np.asarray(rows.reshape(len(pairs), -1))
