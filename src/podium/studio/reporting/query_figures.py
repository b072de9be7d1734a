"""What one query adds to a project's reports, worked out from its log once it has moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.judging import Outcome, Verdict
from podium.judging.agreement import self_consistency
from podium.judging.seeded_hash import draw
from podium.studio.judging.judged import JudgedQuery
from podium.studio.judging.modes import PairsMode, QueryLogEntry
from podium.studio.store.enums import Kind, Purpose

RECENT = 40
"""How many of someone's latest judgments of a query are kept, to see how fast they are."""
_MOST_LOOPS = 10
_VALUED = (Kind.VERDICT, Kind.GRADE, Kind.SIDE_BY_SIDE)


def query_figures(
    judged: JudgedQuery, gold: Mapping[tuple[int, int], int], lengths: Sequence[int]
) -> dict[str, Any]:
    """What a query adds, as JSON.

    Args:
        judged: The query with its log.
        gold: The outcomes that are known, lower place first.
        lengths: How long each document's text is.
    """
    gone = {entry.undoes for entry in judged.log if entry.kind is Kind.UNDO}
    stands = [
        entry for entry in judged.log if entry.place not in gone and entry.kind is not Kind.UNDO
    ]
    return {
        "units": _units(stands),
        "again": _again(stands),
        "gold": _gold(stands, gold),
        "sides": _sides(stands),
        "recent": _recent(judged.log, lengths),
        "loops": _loops(judged),
    }


def _units(stands: Sequence[QueryLogEntry]) -> list[list[Any]]:
    """What several people judged: the pair (or item), and what each said.

    Which document of a pair is the first is drawn. With the better ranked one always first, most
    verdicts would say first, and kappa would take their agreement for chance.
    """
    entry: dict[tuple[int, int], dict[int, int]] = {}
    for each in stands:
        if each.kind in _VALUED and each.purpose is Purpose.MAIN and each.left is not None:
            pair, value = _oriented(each)
            turned = pair[1] >= 0 and draw(0, "first", *pair) < 0.5
            entry.setdefault(pair, {})[each.user] = -value if turned else value
    return [[*pair, list(votes.items())] for pair, votes in entry.items() if len(votes) > 1]


def _oriented(entry: QueryLogEntry) -> tuple[tuple[int, int], int]:
    """A pair with the lower place first, and the value turned round to fit."""
    left, right, value = entry.left or 0, entry.right, entry.value or 0
    if right is None:
        return (left, -1), value
    return ((left, right), value) if left < right else ((right, left), -value)


def _again(stands: Sequence[QueryLogEntry]) -> dict[str, list[int]]:
    """To each person how often they judged a pair again, and how often they said the same."""
    verdicts = [
        Verdict(str(each.left), str(each.right), Outcome(each.value or 0), str(each.user))
        for each in stands
        if each.kind is Kind.VERDICT and each.purpose is not Purpose.GOLD
    ]
    return {who: [again, same] for who, (again, same) in self_consistency({"": verdicts}).items()}


def _gold(
    stands: Sequence[QueryLogEntry], gold: Mapping[tuple[int, int], int]
) -> dict[str, list[int]]:
    """To each person how many gold pairs they were asked, and how many they got right."""
    found: dict[str, list[int]] = {}
    for each in stands:
        if each.kind is Kind.VERDICT and each.purpose is Purpose.GOLD:
            pair, value = _oriented(each)
            if pair in gold:
                counts = found.setdefault(str(each.user), [0, 0])
                counts[0] += 1
                counts[1] += value == gold[pair]
    return found


def _sides(stands: Sequence[QueryLogEntry]) -> dict[str, list[int]]:
    """To each person how often they chose left, neither and right, as it was on the screen."""
    found: dict[str, list[int]] = {}
    for each in stands:
        if each.kind in (Kind.VERDICT, Kind.SIDE_BY_SIDE) and each.value is not None:
            place = 0 if each.value > 0 else 1 if each.value == 0 else 2
            found.setdefault(str(each.user), [0, 0, 0])[place] += 1
    return found


def _recent(log: Sequence[QueryLogEntry], lengths: Sequence[int]) -> dict[str, list[list[float]]]:
    """To each person their latest judgments: when, how long it took, how long the texts are."""
    found: dict[str, list[list[float]]] = {}
    for each in log:
        if each.kind in (Kind.VERDICT, Kind.GRADE):
            read = sum(
                lengths[place]
                for place in (each.left, each.right)
                if place is not None and place < len(lengths)
            )
            found.setdefault(str(each.user), []).append(
                [round(each.at, 1), round(each.seconds, 2), read]
            )
    return {who: latest[-RECENT:] for who, latest in found.items()}


def _loops(judged: JudgedQuery) -> list[dict[str, Any]]:
    """Verdicts that go round: places of documents, each judged better than the next."""
    mode = judged.state.mode
    if not isinstance(mode, PairsMode):
        return []
    places = {item: place for place, item in enumerate(judged.items)}
    return [
        {"loop": [places[item] for item in found.loop]}
        for found in mode.session.contradictions()[:_MOST_LOOPS]
    ]
