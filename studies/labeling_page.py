"""The page of the study of pairs against five grades."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from podium.judging.agreement import Agreement
from podium.judging.assessors.simulated import GRADE_SECONDS, PAIR_SECONDS
from podium.measures.comparison.statistics import mean_interval
from studies.claims import Claim, of_parts, on_a_stand_in, table
from studies.plots import Panel, PlotLine, draw_panels
from studies.study import Setup, Written

_PAPER = "heap as the paper's people may have used it"
_DEFAULT = "Podium's default (adaptive)"
_GRADES = "five grades"
_NOISES = {
    "study-real": "noise and ties of real people",
    "study-tie-prone": "the same with twice the ties",
    "study-ties-only": "no noise, items closer than a standard deviation tie",
}
_MATRIX_2 = "0.675 0.277 0.049; 0.114 0.820 0.066; 0.105 0.378 0.517"
_MATRIX_3 = "0.627 0.291 0.082; 0.283 0.523 0.194; 0.153 0.383 0.464"


def write(results: Mapping[str, Any], _setup: Setup, images: Path) -> Written:
    """The claims, tables and the picture."""
    sections = [_work(results), _agreement(results)]
    if "minutes" in results:
        _draw(results["minutes"], images / "labeling.svg")
        sections.append(_CAPTION.format(simulations=results["minutes"]["simulations"]))
    claims = []
    if "study-real" in results and "study-ties-only" in results:
        claims = [_table_1(results), *_tables_2_and_3(results)]
    return Written(claims, sections)


def _minutes(study: Mapping[str, Any], way: str) -> tuple[float, float]:
    """Judgments a query and minutes by the paper's seconds."""
    mean = float(np.mean(study["judgments"][way]))
    return mean, mean * (GRADE_SECONDS if way == _GRADES else PAIR_SECONDS) / 60


def _table_1(results: Mapping[str, Any]) -> Claim:
    ties, _ = _minutes(results["study-ties-only"], _PAPER)
    judged, minutes = _minutes(results["study-real"], _PAPER)
    default, fewer = _minutes(results["study-real"], _DEFAULT)
    graded = 50 * GRADE_SECONDS / 60
    as_many_pairs = abs(ties / 142.76 - 1) < 0.1
    comparable = max(minutes, graded) / min(minutes, graded) < 1.35
    return Claim(
        "Niu'12",
        "Table 1",
        "142.76 pairs in 13.13 min a query against 50 grades in 11.78 min: comparable",
        f"heap {judged:.1f} pairs, {minutes:.1f} min ({ties:.1f} pairs with ties as often as "
        "theirs); "
        f"50 grades {graded:.1f} min; Podium's default {default:.1f} pairs, {fewer:.1f} min",
        on_a_stand_in(of_parts(as_many_pairs, comparable)),
        f"seconds per judgment are the paper's, not measured here; pairs are the faster way as "
        "long "
        f"as a pair takes less than {50 / judged:.2f} of a grade with the heap, "
        f"{50 / default:.2f} with Podium's default (the paper's people: {5.51 / 13.87:.2f})",
    )


def _shares(study: Mapping[str, Any], way: str) -> tuple[float, float]:
    agreement = Agreement(np.array(study["tables"][way]))
    return agreement.overall, agreement.without_ties


def _tables_2_and_3(results: Mapping[str, Any]) -> list[Claim]:
    study = results["study-real"]
    pairs, grades = _shares(study, _PAPER), _shares(study, _GRADES)
    overall, strict = (
        float(np.mean([each[side] for each in study["chi-square"][_PAPER]])) for side in (0, 1)
    )
    higher = [pairs[side] > grades[side] for side in (0, 1)]
    verdict = of_parts(*higher)
    same = _shares(study, "five grades, on the pairs that the heap asked")
    why = ""
    if verdict == "partly":
        held, failed = ("overall", "without ties") if higher[0] else ("without ties", "overall")
        why = f"holds {held}, not {failed}: "
    why += f"on the pairs that the heap asked, grades agree on {same[0]:.1%} and {same[1]:.1%}; "
    why += (
        f"chi-square of one study {overall:.1f} and {strict:.1f}. Simulated people grade as well "
    )
    why += "as they compare and use each grade for a fifth of the documents; real people do not"
    return [
        Claim(
            "Niu'12",
            "Table 2",
            "two people agree on 74.5 % of pairs, 89.7 % without ties",
            f"{pairs[0]:.1%}, and {pairs[1]:.1%} without ties",
            verdict,
            why,
        ),
        Claim(
            "Niu'12",
            "Table 3",
            "and on 54.7 % of pairs inferred from grades, 83.1 % without ties (chi-square 420.7, "
            "28.5)",
            f"{grades[0]:.1%}, and {grades[1]:.1%} without ties",
            verdict,
            "as for Table 2",
        ),
    ]


def _work(results: Mapping[str, Any]) -> str:
    text = [
        "## Table 1: how much work\n\nMean judgments a query, minutes by the paper's seconds, and "
        "κ-NDCG@10 of one person's result against the truth, with 95 % intervals.\n"
    ]
    for part, words in _NOISES.items():
        if part not in results:
            continue
        rows = []
        for way in results[part]["judgments"]:
            judged, minutes = _minutes(results[part], way)
            mean, low, _ = mean_interval(np.array(results[part]["quality"][way]))
            rows.append([way, f"{judged:.1f}", f"{minutes:.1f}", f"{mean:.3f} ± {mean - low:.3f}"])
        text.append(f"**People: {words}.** {results[part]['repeats']} studies of 50 queries.\n")
        text.append(table(["way", "judgments", "minutes", "κ-NDCG@10"], rows))
    if "readings" in results:
        text.append("The paper's heap, read in every way that its text leaves open:\n")
        text.append("\n".join(f"- {line}" for line in results["readings"]) + "\n")
    return "\n".join(text)


def _agreement(results: Mapping[str, Any]) -> str:
    text = [
        "## Tables 2 and 3: how far people agree\n\nA row for what one person said (left better, "
        "tie, right better), a column for what another said of the same pair; rows add up to 1.\n"
    ]
    rows = [
        ["Niu et al., pairs (Table 2)", _MATRIX_2, "74.5 %", "89.7 %"],
        ["Niu et al., grades (Table 3)", _MATRIX_3, "54.7 %", "83.1 %"],
    ]
    for part, words in _NOISES.items():
        # Without noise everybody says the same.
        tables = results[part]["tables"] if part in results and part != "study-ties-only" else {}
        rows += [_matrix_row(f"{way}; {words}", counts) for way, counts in tables.items()]
    if "images" in results:
        rows.append(_matrix_row("real people, pairs of images", results["images"]["table"]))
    text.append(table(["people and way", "matrix", "agreed", "without ties"], rows))
    return "\n".join(text)


def _matrix_row(name: str, counts: list[list[int]]) -> list[str]:
    agreement = Agreement(np.array(counts))
    matrix = "; ".join(" ".join(f"{cell:.3f}" for cell in row) for row in agreement.rows)
    return [
        name,
        matrix,
        f"{100 * agreement.overall:.1f} %",
        f"{100 * agreement.without_ties:.1f} %",
    ]


_CAPTION = """## What a query's minutes buy

![κ-NDCG@10 against minutes](../images/labeling.svg)

κ-NDCG@10 of the best guess so far against the minutes spent, at the paper's seconds per judgment,
people with the noise of real ones, 10 of 50, {simulations} simulations up to 50 judgments and a
third of them beyond; bands are one standard error to each side. When all documents have a grade,
grading starts another round. `careful` is Podium's strategy for people who err. A selection
algorithm falls where it ends: the guess weighs all verdicts, its own result breaks ties by the
order of the items.
"""


def _draw(minutes: Mapping[str, Any], file: Path) -> None:
    lines = []
    for name, line in minutes["lines"].items():
        mean, error = np.array(line["means"]), np.array(line["errors"])
        low, high = (mean - error).tolist(), (mean + error).tolist()
        dashed = name in ("heap", "five grades")
        lines.append(PlotLine(name, line["minutes"], mean.tolist(), low, high, dashed=dashed))
    panel = Panel("Top 10 of 50", "minutes per query (paper's seconds)", "κ-NDCG@10", lines)
    draw_panels(file, [panel], width=7.0)
