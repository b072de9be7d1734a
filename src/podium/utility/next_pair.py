"""What to ask next: a coroutine that yields a pair of rankings and is sent the verdict."""

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
        place: Its place in the pool.
        left: The grades of one ranking.
        right: The grades of the other.
    """

    place: int
    left: tuple[int, ...]
    right: tuple[int, ...]


def choose_pairs(
    pool: RankingPreferences,
    model: DCGLearn | None = None,
    *,
    said: RankingPreferences | None = None,
    strategy: Strategy = "change",
    first: int = 20,
    refit_every: int = 1,
    seed: int = 0,
) -> Generator[Question, int, LearnedUtility | None]:
    """Ask about the pairs that tell most, one after the other, until none is left.

    Sent each verdict (2 to -2), it ends by returning what was learned. Its whole state is the
    verdicts so far: a new one that is sent the same verdicts asks the same questions.

    The first pairs are drawn at random: with few verdicts the margins say little (Zhou et al.
    2012, figure 23a). Never asked are pairs that any increasing gains and decreasing discounts
    judge alike (proposition 1), and pairs that compare the same grades at the same positions as
    one asked before.

    Args:
        pool: The pairs that could be asked about; their choices are not looked at.
        model: What learns in between, with a C; by default ``DCGLearn(C=10, form="by-position")``.
        said: Verdicts that were given before.
        strategy: "margin" takes the pair with the smallest lead (SimpleMargin, Tong and Koller
            2002); "change" the one whose verdict is expected to move the leads of the pool most,
            by a Newton step; "random" any.
        first: How many pairs to draw at random before that.
        refit_every: How many verdicts to wait for before learning again.
        seed: Draws.

    Example:
        >>> pool = RankingPreferences.from_arrays([[2, 0], [1, 1], [2, 2]], [[1, 1], [2, 0], [0]])
        >>> asking = choose_pairs(pool)
        >>> next(asking)
        Question(place=0, left=(2, 0), right=(1, 1))
        >>> try:
        ...     asking.send(1)
        ... except StopIteration as done:
        ...     print(done.value.accuracy(pool.take([0]).with_choices([1])))
        1.0
    """
    learner = _learner(model, strategy)
    if refit_every < 1:
        raise ArgumentError(f"refit_every is {refit_every}", hint="Give 1 or more.")
    said = pool.take([]) if said is None else said
    open_places = generator(seed).permutation(informative(pool, said))
    learned = _fitted(learner, said, None) if strategy != "random" else None
    while len(open_places):
        at = 0
        if learned is not None and len(said) >= first:
            at = int(np.argmax(_worths(pool.take(open_places), said, learned, strategy, learner)))
        place = int(open_places[at])
        choice = yield Question(
            place, tuple(pool.left[place].tolist()), tuple(pool.right[place].tolist())
        )
        if choice not in (-2, -1, 0, 1, 2):
            raise DataError(f"the verdict is {choice!r}", hint="Send 2 to -2; 2 is left.")
        said = said.joined(pool.take([place]).with_choices([choice]))
        open_places = np.delete(open_places, at)
        if strategy != "random" and len(said) >= first and len(said) % refit_every == 0:
            learned = _fitted(learner, said, learned)
    return _fitted(learner, said, learned)


def next_places(
    pool: RankingPreferences,
    said: RankingPreferences | None = None,
    model: DCGLearn | None = None,
    *,
    strategy: Strategy = "change",
    first: int = 20,
    seed: int = 0,
) -> Ints:
    """The places in a pool worth asking about after some verdicts, best first.

    For several people at once: they share out the first few. Arguments as in ``choose_pairs``.

    Example:
        >>> pool = RankingPreferences.from_arrays([[2, 0], [2, 2]], [[1, 1], [0, 0]])
        >>> next_places(pool).tolist()
        [0]
    """
    learner = _learner(model, strategy)
    said = pool.take([]) if said is None else said
    places = generator(seed).permutation(informative(pool, said))
    learned = _fitted(learner, said, None) if strategy != "random" else None
    if learned is None or len(said) < first or not len(places):
        return places
    worths = _worths(pool.take(places), said, learned, strategy, learner)
    return places[np.argsort(-worths, kind="stable")]


def informative(pool: RankingPreferences, said: RankingPreferences | None = None) -> Ints:
    """The places of pairs worth asking about, one of each kind, none of a kind asked before.

    Left out are pairs whose better side is certain for any increasing gains and decreasing
    discounts: one side has at least as many documents of each grade or above within each cut-off.

    Example:
        >>> pool = RankingPreferences.from_arrays(
        ...     [[2, 1, 0], [2, 0, 1], [1, 1, 0]], [[0, 1, 2], [1, 1, 0], [2, 0, 1]]
        ... )
        >>> informative(pool).tolist()  # the first has the best order, the last repeats the second
        [1]
    """
    known = set() if said is None else {kind for _, kind in _open_kinds(said)}
    found: dict[bytes, int] = {}
    for place, kind in _open_kinds(pool):
        if kind not in known:
            found.setdefault(kind, place)
    return np.array(list(found.values()), np.int64)


def _open_kinds(pairs: RankingPreferences) -> Iterator[tuple[int, bytes]]:
    """The places of pairs without a certain better side, and what they compare, either way."""
    grades = np.arange(1, pairs.grades, dtype=np.uint8)
    for begin in range(0, len(pairs), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        surplus = (pairs.left[part, :, None] >= grades).astype(np.int8)
        surplus -= (pairs.right[part, :, None] >= grades).astype(np.int8)
        total = np.cumsum(surplus, axis=1, dtype=np.int32)
        open_ones = (total > 0).any(axis=(1, 2)) & (total < 0).any(axis=(1, 2))
        for row in np.flatnonzero(open_ones).tolist():
            yield begin + row, min(surplus[row].tobytes(), (-surplus[row]).tobytes())


def _learner(model: DCGLearn | None, strategy: str) -> DCGLearn:
    if strategy not in ("margin", "change", "random"):
        raise ArgumentError(f"no strategy {strategy!r}", hint="Give margin, change or random.")
    learner = model or DCGLearn(C=10.0, form="by-position")
    # Cross-validation after each verdict would take long and, with few, choose at random.
    return replace(learner, C=10.0) if learner.C is None else learner


def _fitted(
    learner: DCGLearn, said: RankingPreferences, before: LearnedUtility | None
) -> LearnedUtility | None:
    """What the verdicts say, or None as long as they are all ties."""
    if not said.strict.any():
        return before
    try:
        return replace(learner).fit(said, start=before).learned_
    except NoGainsError:
        return before


def _worths(
    candidates: RankingPreferences,
    said: RankingPreferences,
    learned: LearnedUtility,
    strategy: Strategy,
    learner: DCGLearn,
) -> Doubles:
    """The larger, the better to ask."""
    leads = candidates.leads(learned.table)
    if strategy == "margin":
        return -np.abs(leads)
    # A verdict moves the utilities by C * slack / (1 + C x·H^-1·x) * H^-1 x (one Newton step), and
    # so the leads of the pool. Either verdict is as likely as its logistic chance.
    C = float(learner.C or 1.0)
    chance = 0.5 + 0.5 * np.tanh(leads)
    slack = chance * np.maximum(1.0 - leads, 0.0) + (1.0 - chance) * np.maximum(1.0 + leads, 0.0)
    seen, open_ones = differences(said), differences(candidates)
    inverse = np.linalg.inv(ridge_of(said.depth, said.grades) + C * seen.T @ seen)
    pushed = open_ones @ inverse
    own = np.sum(pushed * open_ones, axis=1)
    pool = open_ones.T @ open_ones / len(open_ones)
    moved = np.sqrt(np.maximum(np.sum((pushed @ pool) * pushed, axis=1), 0.0))
    return np.asarray(slack * moved / (1.0 + C * own))


def differences(pairs: RankingPreferences) -> NDArray[np.float64]:
    """A row a pair: 1 for each grade and position of left, -1 of right, the lowest left out."""
    grades = np.arange(1, pairs.grades, dtype=np.uint8)
    found = (pairs.left[:, :, None] == grades).astype(np.float64)
    found -= pairs.right[:, :, None] == grades
    return np.asarray(found.reshape(len(pairs), -1))
