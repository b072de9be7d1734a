"""Niu et al. (2012), tables 4 and 5, figures 1 and 2: FocusedRank against its two halves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.rankers.models import Model
from studies.claims import Claim, ClaimVerdict, on_a_stand_in, table
from studies.collections import load_folds
from studies.leaderboard import LeaderboardPlan
from studies.leaderboard_models import BETAS, ENTRIES, FOCUSED, K, Truth
from studies.parts import Part
from studies.plots import Panel, PlotLine, draw_panels
from studies.standings import COMPONENTS, ERR, Standing, collect
from studies.study import Setup, Study, Written

ENTRIES_OF_TABLES = (*dict.fromkeys(n for pair in COMPONENTS.items() for n in (*pair[1], pair[0])),)
"""Each half and each FocusedRank, once."""

TABLE_4: dict[Truth, dict[str, tuple[float, float]]] = {
    "graded": {
        "SVMMAP": (0.4419, 0.3146), "RankSVM": (0.4447, 0.3178), "FocusedSVM": (0.4400, 0.3196),
        "AdaRank": (0.4345, 0.3061), "RankBoost": (0.4438, 0.3101),
        "FocusedBoost": (0.4422, 0.3199),
        "ListNet": (0.4442, 0.3206), "RankNet": (0.4451, 0.3157), "FocusedNet": (0.4459, 0.3223),
        "top-10 ListMLE": (0.4443, 0.3168),
    },
    "top-k": {
        "SVMMAP": (0.6690, 0.6227), "RankSVM": (0.6655, 0.6205), "FocusedSVM": (0.6739, 0.6287),
        "AdaRank": (0.6190, 0.5637), "RankBoost": (0.6571, 0.6131),
        "FocusedBoost": (0.6628, 0.6187),
        "ListNet": (0.6613, 0.6195), "RankNet": (0.6603, 0.6143), "FocusedNet": (0.6735, 0.6336),
        "top-10 ListMLE": (0.6673, 0.6228),
    },
}  # fmt: skip
"""nDCG@10 and ERR on grades, κ-NDCG@10 and κ-ERR on the top 10, of MQ2007."""

_MEASURE: dict[Truth, str] = {"graded": "letor:nDCG@10", "top-k": "kNDCG(k=10)@10"}


def _plan(setup: Setup) -> LeaderboardPlan | None:
    name = "MQ2008" if setup.quick else "MQ2007"
    if setup.data is None or not setup.has(f"letor/{name}"):
        return None
    curves = tuple(entry for entry in ENTRIES if ENTRIES[entry].family == "curve")
    return LeaderboardPlan(
        setup.data,
        setup.folder("leaderboard"),
        (name,),
        (*ENTRIES_OF_TABLES, "top-10 ListMLE", *curves),
        ("top-k",) if setup.quick else ("graded", "top-k"),
        folds=1 if setup.quick else 5,
        quick=setup.quick,
    )


def known_grades(data: Path) -> float:
    """κ-NDCG@10 of MQ2007 for a ranker that knows the grades: none that learns from them can more.

    Ties are averaged over, as everywhere.
    """
    measure = parse_measure(_MEASURE["top-k"])
    values = [
        evaluate(measure, fold.test.top_k(K), fold.test.labels)[measure]
        for fold in load_folds("MQ2007", data)
    ]
    return float(np.mean(np.concatenate(values)))


def _parts(setup: Setup) -> list[Part]:
    if setup.quick or not setup.has("letor/MQ2007"):
        return []
    return [Part("oracle", known_grades, (setup.data,))]


def _standings(setup: Setup) -> list[Standing]:
    """Those of the plan, and those of Yandex as far as the leaderboard has them."""
    plan = _plan(setup)
    if plan is None:
        return []
    standings = collect(plan.tasks(), plan.results)
    if not setup.quick and setup.has("yandex"):
        more = LeaderboardPlan(
            plan.data, plan.results, ("Yandex",), plan.entries, plan.ground_truths, plan.folds
        )
        standings += collect(more.tasks(), more.results)
    return standings


def _write(results: Mapping[str, Any], setup: Setup, images: Path) -> Written:
    standings = _standings(setup)
    curves = [
        each for each in standings if any(row.family == "curve" for row in each.rows.values())
    ]
    if curves:
        _draw(curves, images / "focused.svg")
    first = [each for each in standings if each.collection == "MQ2007"]
    second = [each for each in standings if each.collection == "Yandex"]
    absent = "TD2003 is not available; Yandex, finely graded, replaces it"
    claims = [
        _comparison(
            "Table 4",
            first,
            "MQ2007: on grades comparable, on the top k ahead of both",
            oracle=results.get("oracle"),
        ),
        _curve("Figure 1", [each for each in curves if each in first], "")
        if first
        else Claim("Niu'12", "Figure 1", "", "—", "not run"),
        _comparison("Table 5", second, "TD2003: on the top k ahead of both halves", absent),
        _curve("Figure 2", [each for each in curves if each in second], absent),
    ]
    sections = [_table(each) for each in standings]
    if curves:
        sections.append(_CAPTION)
    return Written(claims, sections)


def _comparison(
    item: str, standings: Sequence[Standing], says: str, why: str = "", oracle: float | None = None
) -> Claim:
    if not standings:
        return Claim("Niu'12", item, says, "—", "not run", why)
    details, ahead, behind, total = [], 0, 0, 0
    for standing in standings:
        counts = {"ahead": 0, "even": 0, "behind": 0}
        for name, halves in COMPONENTS.items():
            for half in halves:
                difference, p = standing.against(name, half)
                counts["even" if p >= 0.05 else "ahead" if difference > 0 else "behind"] += 1
        details.append(
            f"{standing.truth}: {', '.join(f'{n} {word}' for word, n in counts.items())}"
        )
        if standing.truth == "top-k":
            ahead, behind, total = counts["ahead"], counts["behind"], sum(counts.values())
    verdict = _verdict(ahead, ahead, total)
    levels = [
        f"κ-NDCG@10 of FocusedNet {each.rows['FocusedNet'].mean(each.measure):.3f} here"
        for each in standings
        if each.truth == "top-k" and item == "Table 4"
    ]
    if levels:
        levels[0] += ", 0.674 there: the order within a grade is drawn at random, as the paper says"
        if oracle is not None:
            levels[0] += f"; to rank by the true grades themselves reaches {oracle:.3f} here"
    return Claim(
        "Niu'12",
        item,
        says,
        f"FocusedRank against its halves, paired t-test at 0.05: {'; '.join(details)}"
        + (f" ({behind} behind)" if behind and not ahead else ""),
        on_a_stand_in(verdict) if why else verdict,
        "; ".join([*([why] if why else []), *levels]),
    )


def _verdict(held: int, partly: int, total: int) -> ClaimVerdict:
    """How many comparisons are on the truth of the top k; graded truth alone decides nothing."""
    if not total:
        return "not run"
    return "reproduced" if held == total else "partly" if partly else "not reproduced"


def _curve(item: str, standings: Sequence[Standing], why: str) -> Claim:
    says = "performance rises with beta to a maximum and drops; the variation is small (2.7 %)"
    if not standings:
        return Claim("Niu'12", item, says, "—", "not run", why)
    details, inner, some, total = [], 0, 0, 0
    for standing in standings:
        for model in _whole_curves(standing):
            sentence, rises, drops = _shape(standing, model)
            details.append(f"{standing.truth}: {sentence}")
            if standing.truth == "top-k":
                inner += rises and drops
                some += rises or drops
                total += 1
    verdict = _verdict(inner, some, total)
    left_out = [
        f"{model.name} ({standing.truth}) was not run at every beta"
        for standing in standings
        for model in FOCUSED
        if model not in _whole_curves(standing)
    ]
    return Claim(
        "Niu'12",
        item,
        says,
        "; ".join(details),
        on_a_stand_in(verdict) if why else verdict,
        "; ".join([*([why] if why else []), "the verdict is by the top-k labels", *left_out]),
    )


def _shape(standing: Standing, model: Model) -> tuple[str, bool, bool]:
    """Where a curve over beta is highest, and whether that is ahead of its left and right end."""
    means = np.array(
        [standing.rows[f"{model.name} beta {beta}"].mean(standing.measure) for beta in BETAS]
    )
    best_index = int(means.argmax())
    best = f"{model.name} beta {BETAS[best_index]}"
    ends = [standing.against(best, f"{model.name} beta {end}")[1] for end in (0.0, 1.0)]
    rises, drops = (bool(p < 0.05) for p in ends)
    spread = (means.max() - means.min()) / means.mean()
    beside = ", ".join(
        f"{'ahead of' if ahead else 'even with'} beta {end}"
        for end, ahead in ((0, rises), (1, drops))
        if BETAS[best_index] != end  # it is not compared with itself
    )
    return (
        f"{model.name} best at beta {BETAS[best_index]:g} ({beside} at p < 0.05), "
        f"from worst to best {spread:.1%}",
        rises,
        drops,
    )


def _whole_curves(standing: Standing) -> list[Model]:
    """The models that have been run at every beta."""
    return [
        model
        for model in FOCUSED
        if all(f"{model.name} beta {beta}" in standing.rows for beta in BETAS)
    ]


def _table(standing: Standing) -> str:
    paper = TABLE_4[standing.truth] if standing.collection == "MQ2007" else {}
    measure, err = _MEASURE[standing.truth], ERR[standing.truth]
    rows = []
    for name in (*ENTRIES_OF_TABLES, "top-10 ListMLE"):
        if name not in standing.rows:
            continue
        cells = []
        for column, each in enumerate((measure, err)):
            mean, low, _ = standing.interval(name, each)
            published = f" ({paper[name][column]:.4f})" if paper else ""
            cells.append(f"{mean:.4f} ± {mean - low:.3f}{published}")
        rows.append([name, *cells])
    truth = "grades" if standing.truth == "graded" else "the top 10"
    note = " The paper's figure in brackets." if paper else ""
    if standing.truth == "graded" and paper:
        note += " Its ERR divides by another largest gain, so its level differs."
    head = ["model", measure.removeprefix("letor:"), err]
    return f"## {standing.collection}, {truth}\n\nMeans with 95 % intervals.{note}\n\n" + table(
        head, rows
    )


_CAPTION = """## Over beta

![FocusedRank over beta](../images/focused.svg)

The list half alone is at 1, the pair half alone at 0; all else is chosen on validation queries.
Bands are 95 % intervals over queries.
"""


_DRAWN: dict[Truth, tuple[str, ...]] = {
    "graded": ("nDCG@5", "nDCG@10", ERR["graded"]),
    "top-k": ("kNDCG(k=10)@5", "kNDCG(k=10)@10", ERR["top-k"]),
}


def _draw(standings: Sequence[Standing], file: Path) -> None:
    panels = []
    for standing in standings:
        for measure in _DRAWN[standing.truth]:
            lines = []
            for model in _whole_curves(standing):
                rows = [f"{model.name} beta {beta}" for beta in BETAS]
                stats = [standing.interval(row, measure) for row in rows]
                mean, low, high = ([each[part] for each in stats] for part in range(3))
                lines.append(PlotLine(model.name, BETAS, mean, low, high))
            short = measure.replace("(k=10)", "")
            panels.append(Panel(f"{standing.collection}: {short}", "beta", short, lines))
    draw_panels(file, panels, columns=3, below=True)


STUDY = Study(
    "focused",
    "FocusedRank against its two halves",
    "Niu et al. 2012, tables 4 and 5, figures 1 and 2: FocusedRank.",
    """
Niu et al. (SIGIR 2012) combine a list loss on the ordered top k and a pair loss between it and the
rest, weighted by beta (FocusedSVM, FocusedBoost, FocusedNet), and report that each is ahead of both
of its halves on the truth of the top k and comparable on grades. The fits are those of the
[leaderboard](leaderboard.md).
""",
    "all folds of MQ2007 and, for what is in the leaderboard's results already, Yandex.",
    _parts,
    _write,
    _plan,
    needs_data=True,
)
