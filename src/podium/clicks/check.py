"""Whether a log may be learned from: traps of logging, and examination apart from relevance."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from podium.clicks.cells import CellFiles, by_rank, swap_sums
from podium.clicks.importing import WHAT_TO_LOG
from podium.clicks.models import DEPTH, connected, examine_moved, information
from podium.clicks.table import ClickLog, Searches
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles

Verdict: TypeAlias = Literal["learnable", "assumptions", "no"]
"""Whether examination can be learned from a log: yes; roughly, if more is assumed; or not."""

_MOST_FACTOR = 2.0
_MOST_SHARE = 0.9
_FULL = 0.98


@dataclass(frozen=True)
class LogFinding:
    """Something in a log that misleads those who learn from it.

    Attributes:
        kind: A short name.
        count: How often.
        text: What it is, and what to do.
    """

    kind: str
    count: int
    text: str


@dataclass(frozen=True)
class LogCheck:
    """Whether a log may be learned from.

    Attributes:
        verdict: Whether examination by rank can be learned.
        reasons: Why.
        findings: Traps of logging.
        pairs: Pairs of query and document.
        moved: How many of them were shown at more than one rank.
        clicked_moved: How many of these were clicked.
        components: Ranks that documents connect by having been shown at both, largest part first.
        swaps: The effective number of swaps of each rank with others: the sum over pairs and other
            ranks of a b / (a + b), for a impressions at the one and b at the other.
        condition: The ratio of the largest to the smallest eigenvalue of the information about
            examination; infinite if ranks are not connected.
        factors: For each rank how far off its examination may be, as a factor (95 %).

    Example:
        >>> import tempfile
        >>> from podium.clicks import import_clicks
        >>> rows = {"search_id": [*"aabb"], "query": ["tv"] * 4, "document_id": [*"xyxy"],
        ...         "rank": [1, 2, 1, 2], "clicked": [True, False, True, True]}
        >>> check_log(import_clicks(rows, tempfile.mkdtemp() + "/log")).verdict
        'no'
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    findings: tuple[LogFinding, ...]
    pairs: int
    moved: int
    clicked_moved: int
    components: tuple[tuple[int, ...], ...]
    swaps: Doubles
    condition: float
    factors: Doubles

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        return {
            "learnable": "Position bias can be learned from this log, if examination depends on "
            "the rank alone and documents did not move because of what users thought of them.",
            "assumptions": "Position bias can be learned from this log only with assumptions: that "
            "examination follows a smooth curve of the rank, the same for all queries.",
            "no": "Position bias cannot be learned from this log: nothing separates examination "
            "from relevance.",
        }[self.verdict]


def check_log(log: ClickLog | str | os.PathLike[str], *, depth: int = DEPTH) -> LogCheck:
    """Check a log: traps of logging, and whether position bias can be learned from it.

    A document that was shown at two ranks for a query shows how much more often the one is
    examined. Ranks that no such document connects, even through others, cannot be compared.

    Args:
        log: The log, or its folder.
        depth: The last rank to take.

    Example:
        >>> import tempfile
        >>> from podium.clicks import import_clicks
        >>> rows = {"search_id": [*"aabb"], "query": ["tv"] * 4, "document_id": [*"xyyx"],
        ...         "rank": [1, 2, 1, 2], "clicked": [True, False, True, True]}
        >>> check_log(import_clicks(rows, tempfile.mkdtemp() + "/log")).moved
        2
    """
    if depth < 2:
        raise ArgumentError(f"depth is {depth}", hint="Give 2 or more.")
    opened = log if isinstance(log, ClickLog) else ClickLog.open(log)
    files = CellFiles(
        opened, lambda each: {"attracted": by_rank(each, depth)}, depth,
        lambda each: _summary(each, depth),
    )  # fmt: skip
    try:
        return _check(opened, files, depth)
    finally:
        files.close()


def _summary(searches: Searches, depth: int) -> Doubles:
    """Return impressions and clicks by rank; below, what is odd about searches."""
    rank = searches.rank - 1
    sums = np.zeros((3, depth))
    sums[0] = np.bincount(rank, minlength=depth)[:depth]
    sums[1] = np.bincount(rank, searches.clicked, minlength=depth)[:depth]
    begins = searches.offsets[:-1]
    same = np.zeros(len(rank), bool)
    same[1:] = rank[1:] == rank[:-1]
    same[begins] = False
    clicks = np.add.reduceat(searches.clicked.astype(np.int64), begins)
    sizes = np.diff(searches.offsets)
    odd = np.logical_or.reduceat(same, begins)
    sums[2, :2] = odd.sum(), (clicks == sizes).sum()
    return sums


def _check(log: ClickLog, files: CellFiles, depth: int) -> LogCheck:
    impressions, clicks, odd = files.sums
    moved, linked = np.zeros((2, depth, depth))
    several = pairs = 0
    for cells in files("attracted"):
        several += swap_sums(cells.begins, cells.context, cells.shown, moved, linked)
        pairs += cells.pairs
    shown = np.flatnonzero(impressions)
    if not len(shown):
        raise DataError(f"nothing was shown at ranks 1 to {depth}", hint="Give a larger depth.")
    first = int(shown[0])
    components = _components(linked, shown.tolist())
    theta, _, high, _ = examine_moved(files, depth, 100, 1e-4)
    factors = np.full(depth, np.inf)
    np.divide(high, theta, out=factors, where=np.isfinite(theta))
    clicked = [cells.at_several() for cells in files("attracted")]
    hessian = information(clicked, np.log(np.nan_to_num(theta, nan=1.0))).hessian
    one_click = connected(hessian, first)
    condition = np.inf
    if len(components) == 1 and len(one_click) > 1:
        inside = sorted(one_click)
        values = np.linalg.eigvalsh(hessian[np.ix_(inside, inside)])
        condition = float(values[-1] / values[1]) if values[1] > 0 else np.inf
    findings = tuple(_findings(log, odd, clicks.sum(), impressions.sum()))
    verdict, reasons = _verdict(findings, components, impressions, clicks, factors, several)
    return LogCheck(
        verdict, tuple(reasons), findings, pairs, int(several), sum(each.pairs for each in clicked),
        components, moved.sum(axis=1)[shown], condition, factors[shown],
    )  # fmt: skip


def _components(linked: Doubles, ranks: list[int]) -> tuple[tuple[int, ...], ...]:
    left, parts = set(ranks), []
    while left:
        part = connected(linked, min(left))
        parts.append(tuple(rank + 1 for rank in sorted(part)))
        left -= part
    return tuple(sorted(parts, key=len, reverse=True))


def _verdict(
    findings: tuple[LogFinding, ...],
    components: tuple[tuple[int, ...], ...],
    impressions: Doubles,
    clicks: Doubles,
    factors: Doubles,
    several: int,
) -> tuple[Verdict, list[str]]:
    total = impressions.sum()
    if not clicks.sum():
        return "no", ["Nothing was clicked."]
    if any(finding.kind == "only clicks" for finding in findings):
        return "no", ["What was shown and not clicked is unknown. " + WHAT_TO_LOG]
    if not several:
        return "no", [
            "No document was shown at two ranks for the same query: each of "
            f"{len(components)} ranks stands alone. Let some searches swap documents."
        ]
    largest = max(impressions[np.array(part) - 1].sum() for part in components)
    finite = np.isfinite(factors)
    if largest < _MOST_SHARE * total:
        return "no", [
            f"Documents connect ranks in {len(components)} separate parts; the largest has "
            f"{largest / total:.0%} of what was shown."
        ]
    if impressions[finite].sum() < 0.5 * total:
        return "no", [
            "Hardly any document that was shown at two ranks was clicked: they compare ranks with "
            f"{impressions[finite].sum() / total:.0%} of what was shown."
        ]
    reasons = []
    if len(components) > 1:
        reasons.append(f"Documents connect ranks in {len(components)} separate parts.")
    exact = finite & (factors <= _MOST_FACTOR)
    if impressions[exact].sum() < _MOST_SHARE * total:
        reasons.append(
            f"Examination is known up to a factor of {_MOST_FACTOR:g} for ranks with "
            f"{impressions[exact].sum() / total:.0%} of what was shown; more searches, or more "
            "that swap documents, would make it exact."
        )
    if reasons:
        return "assumptions", reasons
    return "learnable", [
        f"{several:,} documents were shown at several ranks, and they connect all that matter."
    ]


def _findings(log: ClickLog, odd: Doubles, clicks: float, shown: float) -> list[LogFinding]:
    facts, counts = log.facts, log.counts
    findings = []

    def add(kind: str, count: float, text: str) -> None:
        if count:
            findings.append(LogFinding(kind, int(count), text))

    same_rank, all_clicked = odd[:2]
    if shown and clicks >= _FULL * shown:
        add("only clicks", clicks, "Nearly everything in the log was clicked. " + WHAT_TO_LOG)
    elif all_clicked > 0.5 * log.searches:
        add("only clicks", all_clicked, "Most searches show nothing but clicks. " + WHAT_TO_LOG)
    for name, count in facts.get("hit_lists", {}).items():
        if name != "query_response_hit_ids":
            add("older name of the list", count, f"Lists are called {name}; they were read.")
    bases = facts.get("rank_base", {})
    for application, base in bases.items():
        if base == 0:
            of = f" of {application}" if application else ""
            add("ranks from 0", 1, f"Ordinals{of} begin at 0; 1 was added.")
    if len(set(bases.values())) > 1:
        add(
            "mixed ranks", len(bases), "Applications count ranks differently. Import them apart "
            "(--application) if they do not rank the same documents.",
        )  # fmt: skip
    add(
        "no object_id_field", facts.get("without_object_field", 0),
        "Events without object_id_field: their ids may be Lucene's numbers, which change.",
    )  # fmt: skip
    add(
        "multiplied queries", facts.get("multiplied_queries", 0),
        "Searches with several query records, as _msearch writes them; the longest list was taken.",
    )  # fmt: skip
    add(
        "no query text", facts.get("without_query_text", 0),
        "Impressions and clicks without user_query; that of their query was taken, if it has one.",
    )  # fmt: skip
    add(
        "lists without impressions", facts.get("lists_without_impression", 0),
        "Searches whose list nobody saw, as far as impressions show; they were left out.",
    )  # fmt: skip
    add(
        "clicks without a search",
        counts.get("actions", {}).get("search was not shown", 0),
        "Actions in searches of which nothing was shown.",
    )
    add(
        "clicked, not shown",
        facts.get("clicked_not_shown", 0),
        "Actions on documents that were not logged as shown: impressions are incomplete.",
    )
    for reason in ("bot", "reload", "re-sorted by the user", "repeated in its search"):
        add(reason, counts.get("shown", {}).get(reason, 0), "Shown documents were left out.")
    for reason in ("repeated", "late", "before its search"):
        add(f"{reason} actions", counts.get("actions", {}).get(reason, 0), "Actions were left out.")
    add(
        "same rank twice", same_rank,
        "Searches with two documents at one rank: pages that count from the start again, or a "
        "search id that several lists share.",
    )  # fmt: skip
    return findings
