"""What reports show beside the comparison itself: requirements, slices and single queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.measures.comparison.decision import DECISION_HEADINGS, Decision


@dataclass(frozen=True)
class Section:
    """A table of a report.

    Attributes:
        title: Above the table.
        headings: One per column.
        rows: The cells.
        notes: How to read the table.
        findings: What it amounts to, for whoever does not read it.
        names: How many columns are names.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    findings: Sequence[str] = ()
    names: int = 1


@dataclass(frozen=True)
class Details:
    """What was asked of a comparison, for reports of it.

    Attributes:
        decision: Whether systems may ship, by ``Comparison.require``.
    """

    decision: Decision | None = None

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
                    findings=self.decision.missing(),
                    names=3,
                )
            )
        return sections

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON has it, to be added to the comparison's object."""
        content: dict[str, Any] = {}
        if self.decision is not None:
            content["decision"] = _decision_json(self.decision)
        return content


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
