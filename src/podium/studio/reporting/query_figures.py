"""The figures that one query contributes to its project's report, computed from its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from podium.data.seeds import hashed_uniform
from podium.judging import Outcome, Verdict
from podium.judging.agreement.matrix import self_consistency
from podium.studio.json_types import JsonObject
from podium.studio.judging.adjudication import disputes_of
from podium.studio.judging.judged import JudgedQuery
from podium.studio.judging.modes import PairsMode, QueryLogEntry
from podium.studio.store.enums import Kind, Purpose

RECENT = 40
"""How many of someone's latest judgments of a query are kept, to measure their speed."""
_MAX_LOOPS = 10
_VALUED = (Kind.VERDICT, Kind.GRADE, Kind.SIDE_BY_SIDE)


def query_figures(
    judged: JudgedQuery, gold: Mapping[tuple[int, int], int], lengths: Sequence[int]
) -> JsonObject:
    """A query's figures, as JSON; those of people, not of models.

    Args:
        judged: The query with its log.
        gold: The known outcomes of pairs, lower position first.
        lengths: The length of each document's text.
    """
    log = [entry for entry in judged.log if entry.purpose is not Purpose.MODEL]
    entries = [entry for entry in judged.standing if entry.purpose is not Purpose.MODEL]
    # An adjudicator sees the answers of others, so it does not show how careful anyone is.
    blind = [entry for entry in entries if entry.purpose is not Purpose.ADJUDICATE]
    units = _units(entries)
    return {
        "units": units,
        "decided": _decided(judged, units),
        "disputes": len(disputes_of(judged)),
        "again": _again(blind),
        "gold": _gold(entries, gold),
        "sides": _sides(blind),
        "recent": _recent(log, lengths),
        "loops": _loops(judged),
        "skips": sum(entry.kind is Kind.SKIP for entry in entries),
    }


def shared_agreement(figures: JsonObject) -> float | None:
    """The share of every two votes on the same thing that are the same; None without any.

    Example:
        >>> shared_agreement({"units": [[0, 1, [[7, 1], [8, 1], [9, -1]]]]}) == 1 / 3
        True
    """
    same = total = 0
    for _, _, votes in figures["units"]:
        for (_, one), (_, other) in combinations(votes, 2):
            total += 1
            same += one == other
    return same / total if total else None


def _units(entries: Sequence[QueryLogEntry]) -> list[list[object]]:
    """Pairs (or items) that several people judged, with their votes.

    The first document of a pair is chosen at random. If it were always the better ranked one, most
    verdicts would favour it, and kappa would attribute their agreement to chance.
    """
    votes_by_pair: dict[tuple[int, int], dict[int, int]] = {}
    for each in entries:
        if (
            each.kind in _VALUED
            and each.purpose is Purpose.MAIN
            and each.counts
            and each.left is not None
        ):
            pair, value = oriented(each)
            votes_by_pair.setdefault(pair, {})[each.user] = _drawn_first(pair, value)
    return [[*pair, list(votes.items())] for pair, votes in votes_by_pair.items() if len(votes) > 1]


def _decided(judged: JudgedQuery, units: list[list[object]]) -> list[int | None]:
    """To each pair that several people judged, what an adjudicator decided, or None."""
    decided: list[int | None] = []
    for first, second, _ in units:
        pair = (int(str(first)), int(str(second)))
        decision = judged.state.adjudication_of((min(pair), max(pair)))
        value = None if decision is None else _drawn_first(*oriented(decision))
        decided.append(value)
    return decided


def _drawn_first(pair: tuple[int, int], value: int) -> int:
    """A value of a pair as that of one of its documents, which is drawn."""
    return -value if pair[1] >= 0 and hashed_uniform(0, "first", *pair) < 0.5 else value


def oriented(entry: QueryLogEntry) -> tuple[tuple[int, int], int]:
    """A pair with the lower position first, and the value flipped to match."""
    left, right, value = entry.left or 0, entry.right, entry.value or 0
    if right is None:
        return (left, -1), value
    return ((left, right), value) if left < right else ((right, left), -value)


def _again(entries: Sequence[QueryLogEntry]) -> dict[str, list[int]]:
    """For each person: pairs judged again, and how many with the same answer."""
    verdicts = [
        Verdict(str(each.left), str(each.right), Outcome(each.value or 0), str(each.user))
        for each in entries
        if each.kind is Kind.VERDICT and each.purpose is not Purpose.GOLD
    ]
    return {who: [again, same] for who, (again, same) in self_consistency({"": verdicts}).items()}


def _gold(
    entries: Sequence[QueryLogEntry], gold: Mapping[tuple[int, int], int]
) -> dict[str, list[int]]:
    """For each person: gold pairs judged, and how many correctly."""
    counts_by_user: dict[str, list[int]] = {}
    for each in entries:
        if each.kind is Kind.VERDICT and each.purpose is Purpose.GOLD:
            pair, value = oriented(each)
            if pair in gold:
                counts = counts_by_user.setdefault(str(each.user), [0, 0])
                counts[0] += 1
                counts[1] += value == gold[pair]
    return counts_by_user


def _sides(entries: Sequence[QueryLogEntry]) -> dict[str, list[int]]:
    """For each person: how often they chose left, neither and right, as displayed."""
    counts_by_user: dict[str, list[int]] = {}
    for each in entries:
        if each.kind in (Kind.VERDICT, Kind.SIDE_BY_SIDE) and each.value is not None:
            position = 0 if each.value > 0 else 1 if each.value == 0 else 2
            counts_by_user.setdefault(str(each.user), [0, 0, 0])[position] += 1
    return counts_by_user


def _recent(log: Sequence[QueryLogEntry], lengths: Sequence[int]) -> dict[str, list[list[float]]]:
    """For each person: their latest judgments as time, seconds and text length."""
    counts_by_user: dict[str, list[list[float]]] = {}
    for each in log:
        if each.kind in (Kind.VERDICT, Kind.GRADE):
            read = sum(
                lengths[position]
                for position in (each.left, each.right)
                if position is not None and position < len(lengths)
            )
            counts_by_user.setdefault(str(each.user), []).append(
                [round(each.at, 1), round(each.seconds, 2), read]
            )
    return {who: latest[-RECENT:] for who, latest in counts_by_user.items()}


def _loops(judged: JudgedQuery) -> list[JsonObject]:
    """Contradictions: loops of documents, each judged better than the next."""
    mode = judged.state.mode
    if not isinstance(mode, PairsMode):
        return []
    positions = {item: position for position, item in enumerate(judged.items)}
    return [
        {"loop": [positions[item] for item in counts_by_user.loop]}
        for counts_by_user in mode.session.contradictions()[:_MAX_LOOPS]
    ]
