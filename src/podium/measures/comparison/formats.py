"""A comparison as Markdown, LaTeX and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from podium.measures.comparison.details import Details, json_number
from podium.measures.comparison.result import (
    HEADINGS,
    Comparison,
    markdown_escaped,
    markdown_table,
    notes,
    warnings,
)
from podium.measures.registry import Measure


def as_markdown(comparison: Comparison, details: Details | None = None) -> str:
    """Format a comparison as a Markdown table with notes.

    Args:
        comparison: The comparison.
        details: Requirements, slices and single queries, if they are to be in it.

    Example:
        >>> from podium.data import Dataset
        >>> from podium.measures import compare
        >>> data = Dataset.from_arrays([[0.0]] * 4, [1, 0, 0, 1], group=[2, 2])
        >>> comparison = compare("RR", data, {"old": [1, 2, 2, 1], "new": [2, 1, 1, 2]})
        >>> as_markdown(comparison).splitlines()[3][:23]
        '| RR | new | 1.0000 | -'
    """
    lines = [str(comparison)]
    for section in () if details is None else details.sections():
        lines += [f"## {section.title}", ""]
        if section.rows:
            lines += [*markdown_table(section.headings, section.rows), ""]
        lines += [*map(markdown_escaped, section.findings), *section.notes, ""]
    return "\n".join(lines)


def as_latex(comparison: Comparison, details: Details | None = None) -> str:
    r"""Format a comparison as a LaTeX table (booktabs).

    Args:
        comparison: The comparison.
        details: Requirements, slices and single queries, each a table after it.

    Example:
        >>> from podium.data import Dataset
        >>> from podium.measures import compare
        >>> data = Dataset.from_arrays([[0.0]] * 4, [1, 0, 0, 1], group=[2, 2])
        >>> comparison = compare("RR", data, {"old": [1, 2, 2, 1], "new": [2, 1, 1, 2]})
        >>> as_latex(comparison).splitlines()[1]
        '\\toprule'
    """
    lines = _latex_table(HEADINGS, comparison.rows(), [*notes(comparison), *warnings(comparison)])
    for section in () if details is None else details.sections():
        lines += [
            f"% {section.title}",
            *_latex_table(section.headings, section.rows, [*section.findings, *section.notes]),
        ]
    return "\n".join([*lines, ""])


def _latex_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], remarks: Sequence[str]
) -> list[str]:
    return [
        r"\begin{tabular}{ll" + "r" * (len(headings) - 2) + "}",
        r"\toprule",
        " & ".join(map(_latex_escaped, headings)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_latex_escaped, row)) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *("% " + " ".join(note.split()) for note in remarks),
    ]


def as_json(comparison: Comparison, details: Details | None = None) -> str:
    """Format a comparison as JSON, with the values of each query.

    Args:
        comparison: The comparison.
        details: Requirements, slices and single queries, if they are to be in it.

    Example:
        >>> from podium.data import Dataset
        >>> from podium.measures import compare
        >>> data = Dataset.from_arrays([[0.0]] * 4, [1, 0, 0, 1], group=[2, 2])
        >>> comparison = compare("RR", data, {"old": [1, 2, 2, 1], "new": [2, 1, 1, 2]})
        >>> json.loads(as_json(comparison))["baseline"]
        'old'
    """
    content: dict[str, Any] = {
        "baseline": comparison.baseline,
        "systems": comparison.systems,
        "queries": comparison.query_ids,
        "left_out": comparison.left_out,
        "query_weights": None
        if comparison.query_weights is None
        else comparison.query_weights.tolist(),
        "conventions": comparison.conventions,
        "test": comparison.test,
        "coverage": {name: each.to_json() for name, each in comparison.coverage.items()},
        "warnings": [
            *warnings(comparison),
            *(
                finding
                for section in (() if details is None else details.sections())
                for finding in section.findings
            ),
        ],
        "measures": {},
    }
    for measure in comparison.measures:
        content["measures"][repr(measure)] = {
            system: {
                "mean": comparison.summaries[measure][system].mean,
                "interval": [
                    json_number(comparison.summaries[measure][system].low),
                    json_number(comparison.summaries[measure][system].high),
                ],
                "values": comparison.values[measure][:, column].tolist(),
                **_difference_json(comparison, measure, system),
            }
            for column, system in enumerate(comparison.systems)
        }
    if details is not None:
        content |= details.to_json()
    return json.dumps(content, indent=1, ensure_ascii=False)


def _difference_json(comparison: Comparison, measure: Measure, system: str) -> dict[str, Any]:
    outcome = comparison.against_baseline[measure].get(system)
    if outcome is None:
        return {}
    difference, coherence = outcome.difference, outcome.coherence
    return {
        "difference": difference.mean,
        "difference_interval": [json_number(difference.low), json_number(difference.high)],
        "effect": json_number(difference.effect),
        "wins_ties_losses": [difference.wins, difference.ties, difference.losses],
        "p_values": dict(difference.p_values),
        "p_values_holm": dict(outcome.corrected),
        "p_value_tukey": json_number(outcome.tukey),
        "coherence": None
        if coherence is None
        else {
            "keeps": coherence.keeps,
            "keeps_clearly": coherence.keeps_clearly,
            "turns": coherence.turns,
            "unanimous": coherence.unanimous,
            "nearest": None if coherence.nearest is None else str(coherence.nearest),
        },
    }


def _latex_escaped(text: str) -> str:
    special = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{char: "\\" + char for char in "&%$#_{}"},
    }
    return "".join(special.get(char, char) for char in text)
