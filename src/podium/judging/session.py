"""A judging session: the items of a query and the log of judgments on them.

Items, k, the algorithm's name, the seed and the log are all there is: everything else is worked
out from them, so a session can be closed, moved and opened again anywhere. Entries that agree
with what was known move the running algorithm on; any other entry makes it run again from the
start, which asks no pair twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from podium.data.seeds import checked_seed, hashed_permutation, hashed_uniform
from podium.errors import ArgumentError, DataError
from podium.judging.algorithms import CAREFUL, get_algorithm
from podium.judging.algorithms.selection import Pair
from podium.judging.assignment import Overlap
from podium.judging.contradictions import Contradiction, contradictions
from podium.judging.entries import (
    Entry,
    Grade,
    Mark,
    Outcome,
    Undo,
    Verdict,
    active_entries,
    check_entry,
)
from podium.judging.log_summary import LogSummary
from podium.judging.result import SessionResult, levels
from podium.judging.strategies import (
    ActiveSamplingStrategy,
    SelectionProblem,
    SelectionStrategy,
    Strategy,
    estimated_levels,
    learned_slopes,
)

_LARGEST_K = 10**6
"""Labels are single-precision numbers, exact to some millions."""


class Session:
    """The judging of one query's items, by any number of people.

    Args:
        items: The items, by id.
        k: How many to put in order.
        algorithm: A name in `podium.judging.algorithms.ALGORITHMS`, or ``careful``: for judges who
            err, it asks the most informative pairs, the same of several people if needed, until the
            budget is spent or all who judge have judged every pair.
        random_state: Draws the order in which items are taken, if there is no prior ranking, and
            which item of a pair is shown on the left.
        ordered: Whether the items come best first by an existing ranker.
        overlap: Which pairs need more than one assessor; by default none do.
        budget: How many judgments ``careful`` may ask for; by default three for each item.
        log: The entries so far.

    Example:
        >>> session = Session(["a", "b", "c", "d"], k=2)
        >>> while not session.done:
        ...     for left, right in session.open_pairs():
        ...         best = Outcome.LEFT if left < right else Outcome.RIGHT
        ...         index = session.add(Verdict(left, right, best, assessor="ann"))
        >>> session.result().top
        ('a', 'b')
    """

    def __init__(
        self,
        items: Sequence[str],
        k: int = 10,
        *,
        algorithm: str = "adaptive",
        random_state: int = 0,
        ordered: bool = False,
        overlap: Overlap | None = None,
        budget: int | None = None,
        log: Iterable[Entry] = (),
    ) -> None:
        self.items = tuple(items)
        self.k = k
        self.algorithm = algorithm
        self.random_state = checked_seed(random_state)
        self.ordered = ordered
        self.overlap = overlap
        self.budget = 3 * len(self.items) if budget is None else budget
        if algorithm != CAREFUL:
            get_algorithm(algorithm)
        self._index_of = {item: index for index, item in enumerate(self.items)}
        if len(self._index_of) < len(self.items) or not self.items:
            raise DataError("items are missing or repeated", hint="List each item once.")
        if not 1 <= k <= _LARGEST_K:
            raise ArgumentError(f"k is {k}", hint=f"Put 1 to {_LARGEST_K} items in order.")
        count = len(self.items)
        self._order = (
            list(range(count)) if ordered else hashed_permutation(count, random_state, "order")
        )
        self._log: list[Entry] = []
        for entry in log:
            self._check(entry)
            self._log.append(entry)
        self._forget()

    @property
    def log(self) -> tuple[Entry, ...]:
        """Every entry, oldest first."""
        return tuple(self._log)

    def add(self, entry: Entry) -> int:
        """Add an entry and return its position in the log."""
        self._check(entry)
        self._log.append(entry)
        if isinstance(entry, Undo) or (self._fresh and not self._summary.take(entry)):
            self._forget()
        return len(self._log) - 1

    def undo(self, assessor: str | None = None, *, at: float = 0.0) -> Undo | None:
        """Undo the last active entry, of an assessor or of anyone, if there is one."""
        for index in reversed(active_entries(self._log)):
            if assessor is None or self._log[index].assessor == assessor:
                undo = Undo(index, assessor or "", at)
                self.add(undo)
                return undo
        return None

    def open_pairs(self, assessor: str | None = None) -> list[Pair[str]]:
        """The pairs that can be judged now, in any order and by several people at once.

        Args:
            assessor: Leaves out what this person has judged already.
        """
        return [self._shown(*pair) for pair in self._current_strategy().waiting(assessor)]

    def votes_missing(self, left: str, right: str) -> int:
        """How many more people must judge a pair before it counts; ``careful`` asks one by one."""
        if self.algorithm == CAREFUL:
            return 1
        first, second = sorted((self._index(left), self._index(right)))
        votes = self._current_summary().votes.get((first, second), {})
        needed = 1 if self.overlap is None else self.overlap.needed(left, right)
        return max(needed - len(votes), 0)

    @property
    def done(self) -> bool:
        """Whether no judgment is missing."""
        return not self._current_strategy().waiting(None)

    @property
    def bad(self) -> tuple[str, ...]:
        """The items that were marked as bad."""
        return tuple(self.items[index] for index in sorted(self._current_summary().bad))

    def result(self) -> SessionResult:
        """The ordered top k: final if the session is done, else the best guess so far."""
        return self._result(*self._current_strategy().ranked())

    def estimate(self, *, reliability: bool = True) -> SessionResult:
        """The most promising top k, taking it that any verdict may be wrong.

        It weighs all verdicts, ties among them, by Bradley and Terry's model, gives less weight to
        people whom the others contradict, and puts first what has the highest expected gain. Where
        people err, or say tie where they see a small difference, it is nearer to the truth than
        `result`; where they are consistent, `result` is exact.

        Args:
            reliability: Whether people may differ in how reliable they are; not where it is not
                known who judged.
        """
        problem = SelectionProblem(self._order, self.k, self.ordered, self.random_state)
        levels = estimated_levels(problem, self._current_summary(), reliability=reliability)
        return self._result(list(chain.from_iterable(levels)), self.done, levels)

    def reliability(self) -> dict[str, float]:
        """How reliable each assessor's verdicts are, people and models, as `estimate` weighs them.

        It is learned from who contradicts whom: 1 is the mean verdict, 0 a guess, below 0 the
        opposite of what the others say. Until there are enough verdicts it stays near 1.
        """
        problem = SelectionProblem(self._order, self.k, self.ordered, self.random_state)
        return learned_slopes(problem, self._current_summary())

    def expected_left(self, draws: int = 8) -> float:
        """About how many judgments are still needed, for a progress bar.

        Args:
            draws: How many simulated orders to take the mean over.
        """
        return self._current_strategy().expected_left(draws)

    def contradictions(self) -> list[Contradiction[str]]:
        """Strict verdicts that go round in loops, each with the pair to ask again."""
        return [
            Contradiction(
                tuple(self.items[index] for index in contradiction.items),
                tuple(self.items[index] for index in contradiction.loop),
                self._shown(*contradiction.ask_again),
            )
            for contradiction in contradictions(self._current_summary().known)
        ]

    def outcome(self, left: str, right: str) -> Outcome | None:
        """What is known of a pair: judged, implied, or settled by a mark; else None."""
        record = self._current_summary()
        return record.answer(record.known, self._index(left), self._index(right))

    def _check(self, entry: Entry) -> None:
        check_entry(entry)
        if isinstance(entry, Verdict):
            if entry.left not in self._index_of or entry.right not in self._index_of:
                self._index(entry.left)
                self._index(entry.right)
        elif isinstance(entry, Mark | Grade):
            self._index(entry.item)
        elif isinstance(entry, Undo) and not 0 <= entry.entry < len(self._log):
            raise DataError(f"there is no entry {entry.entry} to undo", hint="See the log.")

    def _index(self, item: str) -> int:
        index = self._index_of.get(item)
        if index is None:
            raise DataError(f"{item!r} is not an item of this session", hint="See its items.")
        return index

    def _forget(self) -> None:
        """Drop all that was worked out; it is worked out again when it is asked for."""
        self._summary: LogSummary = LogSummary(self._index_of, self.overlap)
        self._strategy: Strategy | None = None
        self._fresh = False

    def _current_summary(self) -> LogSummary:
        if not self._fresh:
            self._summary.take_all(self._log[index] for index in active_entries(self._log))
            self._fresh = True
        return self._summary

    def _current_strategy(self) -> Strategy:
        record = self._current_summary()
        if self._strategy is None:
            problem = SelectionProblem(self._order, self.k, self.ordered, self.random_state)
            if self.algorithm == CAREFUL:
                self._strategy = ActiveSamplingStrategy(self.budget, problem, record)
            else:
                self._strategy = SelectionStrategy(get_algorithm(self.algorithm), problem, record)
        return self._strategy

    def _result(
        self, ranked: Sequence[int], complete: bool, inseparable: Sequence[Sequence[int]] = ()
    ) -> SessionResult:
        judged, bad = self._summary.known.judged, self._summary.bad
        top = [index for index in ranked if index not in bad][: self.k]
        below = [index for index in self._order if index not in bad and index not in top]
        together = levels(
            top, below, lambda first, second: judged.get((first, second)) is Outcome.TIE
        )
        return SessionResult(
            tuple(self.items[index] for index in top),
            tuple(tuple(self.items[index] for index in level) for level in together),
            self.k,
            complete,
            tuple(
                tuple(self.items[index] for index in level)
                for level in inseparable
                if len(level) > 1 and level[0] in top
            ),
        )

    def _shown(self, left: int, right: int) -> Pair[str]:
        """The pair with its sides drawn, so that nobody's liking for a side adds up."""
        first, second = sorted((self.items[left], self.items[right]))
        if hashed_uniform(self.random_state, "side", first, second) < 0.5:
            return Pair(first, second)
        return Pair(second, first)
