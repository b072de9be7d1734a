"""Interleaving: one list of two rankings, and how much a click on each document says about them.

A click's credit is positive for the second ranking, negative for the first, and 0 where the two do
not differ. Credits of a search add up; with equal rankings all of them are 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Literal, TypeAlias, TypeVar

import numpy as np

from podium.errors import ArgumentError

Method: TypeAlias = Literal["team-draft", "probabilistic", "balanced"]
METHODS: tuple[Method, ...] = ("team-draft", "probabilistic", "balanced")
_DECAY = 3.0
"""The probabilistic draft takes rank r with weight r to the power of minus this."""

Document = TypeVar("Document", bound=Hashable)


@dataclass(frozen=True)
class Draft(Generic[Document]):
    """An interleaved list.

    Attributes:
        documents: The documents to show, best first.
        credits: What a click on each says: above 0 for the second ranking, below for the first.
    """

    documents: list[Document]
    credits: list[float]

    @property
    def differs(self) -> bool:
        """Whether any click could say something."""
        return any(self.credits)


def share_of(key: bytes, text: str) -> float:
    """Return a number in [0, 1) that only who knows the key can predict from the text.

    Example:
        >>> share_of(b"key", "search 1") == share_of(b"key", "search 1")
        True
        >>> 0 <= share_of(b"key", "search 2") < 1
        True
    """
    digest = hashlib.blake2b(text.encode(), key=key[:64], digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def interleave(
    first: Sequence[Document],
    second: Sequence[Document],
    size: int | None = None,
    *,
    method: Method = "team-draft",
    random_state: int | np.random.Generator = 0,
) -> Draft[Document]:
    """Interleave two rankings.

    With the same ``random_state``, a longer draft begins with the shorter one, so that the pages of
    a search fit together.

    Args:
        first: The documents of one ranking, best first.
        second: Those of the other one.
        size: How many to show; by default all.
        method: ``"team-draft"`` (Radlinski et al.): in each round a coin says who picks first, and
            each ranking picks its best document that is left. What both would pick when a round
            begins belongs to neither. ``"probabilistic"`` (Hofmann et al.): a coin for each
            position, and documents drawn by rank; a click's credit is the difference of the
            chances that one or the other ranking has placed the document, and nothing after one
            has ended. ``"balanced"``: the rankings take turns, one coin says who begins, and a
            click is weighted by the difference of the document's examination in the two rankings
            over its mean examination in the two lists that the coin chooses from, with 1/r at rank
            r: if all documents are shown, the sum's expectation is the difference of clicks that
            users who examine so would give the two rankings. A shorter draft lacks the rest.
        random_state: The seed of the coins.

    Example:
        >>> draft = interleave(["a", "b", "c"], ["a", "c", "d"], random_state=1)
        >>> draft.documents, draft.credits
        (['a', 'c', 'b', 'd'], [0.0, 1.0, -1.0, 0.0])
    """
    for ranking in (first, second):
        if len(set(ranking)) < len(ranking):
            raise ArgumentError("a ranking has a document twice", hint="Leave out the second one.")
    if method not in METHODS:
        raise ArgumentError(f"method is {method!r}", hint=f"Give one of {', '.join(METHODS)}.")
    every = len({*first, *second})
    size = every if size is None else min(size, every)
    random = np.random.default_rng(random_state)
    if method == "balanced":
        return _balanced(first, second, size, random)
    steps = _team_draft if method == "team-draft" else _probabilistic
    drawn = list(islice(steps(first, second, random), size))
    return Draft([document for document, _ in drawn], [value for _, value in drawn])


def _team_draft(
    first: Sequence[Document], second: Sequence[Document], random: np.random.Generator
) -> Iterator[tuple[Document, float]]:
    taken: set[Document] = set()
    at = [0, 0]
    # Who still picks in this round. In its middle every pick belongs to one of them: else the one
    # who picks second would do so at different ranks.
    waiting: list[int] = []
    rankings = (first, second)
    while True:
        for side, ranking in enumerate(rankings):
            while at[side] < len(ranking) and ranking[at[side]] in taken:
                at[side] += 1
        left = [side for side in (0, 1) if at[side] < len(rankings[side])]
        if not left:
            return
        if not waiting and len(left) == 1:  # the other ranking has ended
            document, value = rankings[left[0]][at[left[0]]], 0.0
        elif not waiting and first[at[0]] == second[at[1]]:
            document, value = first[at[0]], 0.0
        else:
            waiting = waiting or ([0, 1] if random.random() < 0.5 else [1, 0])
            side = waiting.pop(0)
            document, value = rankings[side][at[side]], 2.0 * side - 1.0
        taken.add(document)
        yield document, value


def _probabilistic(
    first: Sequence[Document], second: Sequence[Document], random: np.random.Generator
) -> Iterator[tuple[Document, float]]:
    rankings = (first, second)
    place = [{document: at for at, document in enumerate(ranking)} for ranking in rankings]
    weights = [np.arange(1, len(ranking) + 1) ** -_DECAY for ranking in rankings]
    left = [len(ranking) for ranking in rankings]

    def chance(side: int, document: Document) -> float:
        at = place[side].get(document)
        return 0.0 if at is None else float(weights[side][at] / weights[side].sum())

    while any(left):
        side = int(random.random() >= 0.5)
        toss = random.random()
        both = all(left)
        if not left[side]:
            side = 1 - side
        cumulative = np.cumsum(weights[side])
        row = int(np.searchsorted(cumulative, toss * cumulative[-1], side="right"))
        document = rankings[side][row]
        here, there = chance(0, document), chance(1, document)
        yield document, (there - here) / (there + here) if both else 0.0
        for other in (0, 1):
            if document in place[other]:
                weights[other][place[other].pop(document)] = 0.0
                left[other] -= 1


def _balanced(
    first: Sequence[Document], second: Sequence[Document], size: int, random: np.random.Generator
) -> Draft[Document]:
    shown = random.random() < 0.5
    lists = [_merged(first, second), _merged(second, first)]
    own, other = (lists[0], lists[1]) if shown else (lists[1], lists[0])
    there = {document: at for at, document in enumerate(other)}
    ranks = [
        {document: at for at, document in enumerate(ranking, 1)} for ranking in (first, second)
    ]

    def examined(rank: int | None) -> float:
        return 0.0 if rank is None else 1.0 / rank

    credit = []
    for at, document in enumerate(own[:size], 1):
        gain = examined(ranks[1].get(document)) - examined(ranks[0].get(document))
        credit.append(2 * gain / (examined(at) + examined(there[document] + 1)))
    return Draft(own[:size], credit)


def _merged(first: Sequence[Document], second: Sequence[Document]) -> list[Document]:
    """Return both rankings in turns, the first one's best document first, each document once."""
    merged: dict[Document, None] = {}
    for at in range(max(len(first), len(second))):
        for ranking in (first, second):
            if at < len(ranking):
                merged.setdefault(ranking[at])
    return list(merged)
