"""A comparison as Markdown, LaTeX and JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from podium.measures.comparison.result import HEADINGS, Comparison
from podium.measures.value import Measure


def as_markdown(found: Comparison) -> str:
    """A comparison as a Markdown table with its notes.

    Example:
        >>> from podium.data import Dataset
        >>> from podium.measures import compare
        >>> data = Dataset.from_arrays([[0.0]] * 4, [1, 0, 0, 1], group=[2, 2])
        >>> found = compare("RR", data, {"old": [1, 2, 2, 1], "new": [2, 1, 1, 2]})
        >>> as_markdown(found).splitlines()[3][:23]
        '| RR | new | 1.0000 | 1'
    """
    lines = ["| " + " | ".join(HEADINGS) + " |", "| " + " | ".join("---" for _ in HEADINGS) + " |"]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in found.rows()
    ]
    return "\n".join([*lines, "", *notes(found), ""])


def as_latex(found: Comparison) -> str:
    r"""A comparison as a LaTeX table (booktabs).

    Example:
        >>> from podium.data import Dataset
        >>> from podium.measures import compare
        >>> data = Dataset.from_arrays([[0.0]] * 4, [1, 0, 0, 1], group=[2, 2])
        >>> found = compare("RR", data, {"old": [1, 2, 2, 1], "new": [2, 1, 1, 2]})
        >>> as_latex(found).splitlines()[1]
        '\\toprule'
    """
    body = [" & ".join(map(_latex_escaped, row)) + r" \\" for row in found.rows()]
    return "\n".join(
        [
            r"\begin{tabular}{ll" + "r" * (len(HEADINGS) - 2) + "}",
            r"\toprule",
            " & ".join(map(_latex_escaped, HEADINGS)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            *(f"% {note}" for note in notes(found)),
            "",
        ]
    )


def as_json(found: Comparison) -> str:
    """Everything a comparison found, per query too, as JSON.

    Example:
        >>> from podium.data import Dataset
        >>> from podium.measures import compare
        >>> data = Dataset.from_arrays([[0.0]] * 4, [1, 0, 0, 1], group=[2, 2])
        >>> found = compare("RR", data, {"old": [1, 2, 2, 1], "new": [2, 1, 1, 2]})
        >>> json.loads(as_json(found))["baseline"]
        'old'
    """
    content: dict[str, Any] = {
        "baseline": found.baseline,
        "systems": found.systems,
        "queries": found.query_ids,
        "left_out": found.left_out,
        "conventions": found.conventions,
        "test": found.test,
        "measures": {},
    }
    for measure in found.measures:
        content["measures"][repr(measure)] = {
            system: {
                "mean": found.summaries[measure][system].mean,
                "interval": [
                    _number(found.summaries[measure][system].low),
                    _number(found.summaries[measure][system].high),
                ],
                "values": found.values[measure][:, place].tolist(),
                **_verdict_json(found, measure, system),
            }
            for place, system in enumerate(found.systems)
        }
    return json.dumps(content, indent=1, ensure_ascii=False)


def notes(found: Comparison) -> list[str]:
    """What a reader of the table must know, a sentence each."""
    sentences = [
        f"{len(found.query_ids)} queries"
        + (
            f", {found.left_out} left out (no value for one of the systems)"
            if found.left_out
            else ""
        )
        + f"; differences are against {found.baseline}.",
        f"Conventions: {found.conventions}.",
        f"* p < 0.05 by the {_test_in_words(found)}, Holm-corrected over systems; Tukey's p is for "
        "all pairs; effect is Cohen's d of the differences.",
        "coherent: the share of a family of sensible gains and discounts, the measure's own among "
        "them, under which the same system is ahead; 'all' means that no increasing gains and "
        "decreasing discounts put the other one ahead.",
    ]
    for measure in found.measures:
        for system, verdict in found.verdicts[measure].items():
            coherence = verdict.coherence
            if coherence is not None and coherence.nearest is not None:
                sentences.append(
                    f"{measure!r}: {system} against {found.baseline} turns round with "
                    f"{coherence.nearest}."
                )
    return sentences


def _test_in_words(found: Comparison) -> str:
    return {
        "t": "paired t-test",
        "randomisation": "paired randomisation test",
        "wilcoxon": "Wilcoxon signed-rank test",
        "sign": "sign test",
    }[found.test]


def _number(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else None


def _verdict_json(found: Comparison, measure: Measure, system: str) -> dict[str, Any]:
    verdict = found.verdicts[measure].get(system)
    if verdict is None:
        return {}
    difference, coherence = verdict.difference, verdict.coherence
    return {
        "difference": difference.mean,
        "difference_interval": [_number(difference.low), _number(difference.high)],
        "effect": _number(difference.effect),
        "wins_ties_losses": [difference.wins, difference.ties, difference.losses],
        "p_values": dict(difference.p_values),
        "p_values_holm": dict(verdict.corrected),
        "p_value_tukey": verdict.tukey,
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
