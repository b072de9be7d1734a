"""What reports show beside the comparison itself: requirements, slices and single queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from podium.measures.comparison.decision import DECISION_HEADINGS, Decision
from podium.measures.comparison.single_queries import HardQuery, ListPair
from podium.measures.comparison.slice_differences import SliceDifference
from podium.measures.comparison.unjudged import UnjudgedBounds
from podium.reports.page import interval_text

_LEVEL = 0.05


@dataclass(frozen=True)
class Section:
    """A table of a report.

    Attributes:
        title: Above the table.
        headings: One per column.
        rows: The cells.
        notes: How to read the table.
        findings: What it amounts to, for people who do not read it.
        names: How many columns are names.
        secondary: Columns that a narrow page can do without.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    findings: Sequence[str] = ()
    names: int = 1
    secondary: Sequence[str] = ()


@dataclass(frozen=True)
class Details:
    """What was asked of a comparison, for reports of it.

    Attributes:
        decision: Whether systems may ship, by ``Comparison.require``.
        slices: The slices of queries, by ``Comparison.slices``.
        searched: The slices that were searched for, by ``Comparison.search_slices``.
        hard: The queries on which no system does well, under the first measure.
        unjudged: What the documents that were not judged could change.
        lists: Both lists of the queries that moved most.
        systems: The names of the systems that were compared.
        texts: What was searched for, by query id.
    """

    decision: Decision | None = None
    slices: tuple[SliceDifference, ...] = ()
    searched: tuple[SliceDifference, ...] = ()
    hard: tuple[HardQuery, ...] = ()
    unjudged: tuple[UnjudgedBounds, ...] = ()
    lists: tuple[ListPair, ...] = ()
    systems: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)

    def sections(self) -> list[Section]:
        """Return everything but the lists of single queries as tables of strings."""
        sections = []
        if self.decision is not None:
            sections.append(
                Section(
                    _title(self.decision),
                    DECISION_HEADINGS,
                    self.decision.rows(),
                    self.decision.notes(),
                    findings=self.decision.warnings(),
                    names=3,
                )
            )
        if self.slices:
            sections.append(_slice_section("Slices", self.slices, _SLICE_NOTE))
        if self.searched:
            sections.append(
                _slice_section("Slices that a search found", self.searched, _SEARCH_NOTE)
            )
        if self.unjudged:
            sections.append(_unjudged_section(self.unjudged))
        if self.hard:
            sections.append(self._hard_section())
        return sections

    def _hard_section(self) -> Section:
        rows = [
            [each.query_id, self.texts.get(each.query_id, ""), *(f"{v:.4f}" for v in each.values)]
            for each in self.hard
        ]
        note = "The best value of these queries is not half as good as that of the average query."
        return Section("Hard queries", ("query", "text", *self.systems), rows, [note], names=2)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON has it, to be added to the comparison's object."""
        content: dict[str, Any] = {}
        if self.decision is not None:
            content["decision"] = _decision_json(self.decision)
        for name, rows in (("slices", self.slices), ("searched_slices", self.searched)):
            if rows:
                content[name] = [_slice_json(row) for row in rows]
        content["unjudged"] = [
            {**vars(each), "measure": repr(each.measure), "could_turn": each.could_turn}
            for each in self.unjudged
        ]
        content["hard_queries"] = [
            {"query": each.query_id, "values": each.values} for each in self.hard
        ]
        content["lists"] = [asdict(each) for each in self.lists]
        return content


_SLICE_NOTE = (
    "q is the p-value corrected over all slices (Benjamini-Hochberg): of those marked with *, at "
    "most 5 % are expected to be there by chance."
)
_SEARCH_NOTE = (
    "Found on one half of the queries by a tree of at most two conditions, and tested on the other "
    "half, whose numbers these are; q as above, over these slices."
)
SLICE_HEADINGS = (
    "measure", "system", "slice", "queries", "difference", "its interval", "p", "q",
)  # fmt: skip


def _slice_section(title: str, rows: Sequence[SliceDifference], note: str) -> Section:
    lost = [row for row in rows if row.q_value < _LEVEL and _is_worse(row)]
    return Section(
        title,
        SLICE_HEADINGS,
        [
            [
                repr(row.measure),
                row.system,
                row.name,
                f"{row.queries:,}",
                f"{row.mean:+.4f}{'*' if row.q_value < _LEVEL else ''}",
                interval_text(row.low, row.high, "+"),
                f"{row.p_value:.3g}",
                f"{row.q_value:.3g}",
            ]
            for row in rows
        ],
        [note],
        findings=[
            f"{row.system} loses on {row.name}: {row.measure!r} {row.mean:+.4f}." for row in lost
        ],
        names=3,
        secondary=("its interval", "p"),
    )


def _is_worse(row: SliceDifference) -> bool:
    return (row.mean < 0) == row.measure.larger_is_better


def _unjudged_section(rows: Sequence[UnjudgedBounds]) -> Section:
    low, high = rows[0].labels
    return Section(
        "Unjudged results",
        ("measure", "system", "unjudged", "queries", "difference", "at least", "at most", "sign"),
        [
            [
                repr(each.measure),
                each.system,
                f"{each.unjudged:,}",
                f"{each.queries:,}",
                f"{each.difference:+.4f}",
                "-" if each.least is None else f"{each.least:+.4f}",
                "-" if each.most is None else f"{each.most:+.4f}",
                "may turn" if each.could_turn else "cannot turn",
            ]
            for each in rows
        ],
        [
            "What the difference is at least and at most, and whether its sign may turn, if the "
            f"unjudged documents among the first results have labels in use ({low:g} to {high:g}); "
            "others stay as they are: those below the measure's cut-off, or rank 100. With many "
            "documents the bounds are safe, but may be wide; with too many there are none (-)."
        ],
        names=2,
    )


def _slice_json(row: SliceDifference) -> dict[str, Any]:
    return {
        "measure": repr(row.measure),
        "system": row.system,
        "slice": row.name,
        "queries": row.queries,
        "difference": row.mean,
        "interval": [json_number(row.low), json_number(row.high)],
        "p_value": row.p_value,
        "q_value": row.q_value,
    }


def _title(decision: Decision) -> str:
    if decision.shown:
        return "Requirements: all shown"
    missing = sum(not each.shown for each in decision.results)
    return f"Requirements: {missing} of {len(decision.results)} not shown"


def _decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "shown": decision.shown,
        "ships": decision.ships,
        "level": decision.level,
        "look": [decision.look.number, decision.look.planned],
        "left_out": list(decision.left_out),
        "results": [
            {
                "requirement": each.requirement.text,
                "measure": repr(each.requirement.measure),
                "system": each.system,
                "slice": each.slice_name or None,
                "queries": each.queries,
                "value": each.value,
                "bound": each.bound,
                "limit": json_number(each.limit),
                "p_value": each.p_value,
                "p_value_unseen": each.unseen,
                "p_value_holm": each.corrected,
                "shown": each.shown,
                "needed": each.needed,
                "missing": each.missing or None,
            }
            for each in decision.results
        ],
    }


def json_number(value: float) -> float | None:
    """Return None for NaN and infinity, which JSON does not have."""
    return value if math.isfinite(value) else None
